"""Hot loops: written once in plain Python, run compiled where an operator allows it.

slots        the primitives that kernels are written in
program      a kernel specialised to an operator: compiled, checked, or on objects
layout       how an operator's partials lie in memory, and what its answers look like
text         the source generated for a kernel and an operator: its primitives and functions
leaf_text    the part of it that loads and stores one operator's share of a slot
row_text     the part of it that reads input columns and writes output columns
chains       functions that combine many slots; vector_chains has them for vectors
rewrite      a kernel's source with primitives replaced and small functions written out
fingerprint  what functions and values are, the same in every process
callables    whatever can be called as a plain function
freeze       Python functions as text
cache        where generated sources and compiled code are kept
native       loads and stores for compiled kernels
linked       functions that only other compiled functions call
checked      the same loads and stores in Python, with bounds
objects      the primitives on Python lists
core         a kernel's functions and memory, for one aggregator
memory       what the two kinds of memory share: buffer_memory and object_memory
partials     partials as bytes and as words
call         the arrays of a call of a kernel
columns      values from users and answers to them
"""
