"""The slices of all keys, behind one contract.

contract       what a state does: insert slices, answer windows, forget slices
memory         a state in memory: a forest for each group of aggregates
forest         a finger B-tree of slices for each key
forest_kernel  the kernel of a forest
parted_forest  a forest in several memories, for threads
key_numbers    numbers for the keys of a forest, in the order in which they come
slice_order    the rows of a large batch in order of key and slice, in one pass
tiles          a state in a store: parts, each a tree of tiles, and an index of the parts
tile           entries of many keys, as arrays and as bytes
part           a part: the records of some keys, as a tree over time
part_index     the index: which parts exist, and when a step must visit each one
visit          a step's work on parts: read records, number keys, insert slices
emission       windows computed from the entries of a visit
layout         which entries a step drops, and which records it divides and writes
saving         write the records of a visit
scan           compute windows from events or slices in order, in one pass
scan_kernel    the kernel of a scan
places         combine rows in any order into slices
folds          combine runs of partials
answers        turn the outputs of a kernel into columns
"""
