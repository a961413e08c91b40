"""Hot loops: written once in plain Python, run compiled where an operator allows it.

slots        the primitives that kernels are written in
program      a kernel specialised to an operator: compiled, checked, or on objects
layout       how an operator's partials lie in memory, and what its answers look like
text         generates the source for a kernel and an operator: the primitives and functions
leaf_text    the generated lines that load and store one leaf's share of a slot
row_text     the generated lines that read input columns and write output columns
chains       functions that combine many slots; `vector_chains` has them for vectors
rewrite      rewrites a kernel's source: replaces primitives and inlines small functions
equal        lets kernels share the functions in which they are equal
fingerprint  functions and values as text that is the same in every process
callables    turns any callable into a plain function
freeze       writes Python functions as text
cache        the folder of generated sources and compiled code
native       loads and stores for compiled kernels
lanes        eight floats as one value, for compiled kernels
linked       compiles functions that only other compiled functions call
checked      the loads and stores of `native` in Python, with bounds checks
objects      the primitives on Python lists
core         a kernel's functions and memory, for one aggregator
memory       what the two kinds of memory share: `buffer_memory` and `object_memory`
moving       moves a ring to another capacity, a few elements per operation
spans        reserves address space in which a memory grows without moving
partials     partials as bytes and as words
call         the arrays that one call of a kernel works on
columns      turns values from users into columns, and output columns into answers
threads      runs work in several threads
outside      finds the line that called into sash, for warnings
"""
