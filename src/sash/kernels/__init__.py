"""Hot loops: written once in plain Python, run compiled where an operator allows it.

slots        the words kernels are written in
program      a kernel specialised to an operator: compiled, checked, or on objects
layout       how an operator's partials lie in memory, and what its answers look like
text         the source generated for a kernel and an operator
chains       functions that combine many slots; vector_chains has them for vectors
rewrite      a kernel's source with its words replaced and small functions written out
fingerprint  what functions and values are, the same in every process
freeze       Python functions as text
cache        where generated sources and compiled code are kept
native       loads and stores for compiled kernels
linked       functions that only other compiled functions call
checked      the same loads and stores in Python, with bounds
objects      the words on Python lists
core         a kernel's functions and memory, for one aggregator
call         the arrays of a call of a kernel
columns      values from users and answers to them
"""
