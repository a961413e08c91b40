"""The slices of all keys, behind one contract.

contract       what a state does: insert slices, answer windows, forget
memory         a state in memory: a forest for each group of aggregates
forest         a finger B-tree of slices for each key
forest_kernel  its kernel
parted_forest  a forest in several memories, for threads
key_numbers    the keys of a forest, numbered as they come
tile           a tile: the slices of many keys in a stretch of time, as arrays and as bytes
tile_store     the tiles of a state, read and written at most once a batch
tile_tree      a state in a store: a tree of tiles
scan           windows out of events or slices in order, in one scan
scan_kernel    its kernel
folds          runs of partials, combined
answers        what a kernel answered, as columns
"""
