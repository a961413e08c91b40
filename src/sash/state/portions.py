"""Divide a batch into portions: each has the keys in some neighbouring slots of the index's root.

A step works on all the parts of the state that it touches together, as arrays.  A batch with events
of many keys may touch all of a large state.  So such a batch runs as several steps, one for each
portion: the memory that it takes depends on the portion, not on the state.
"""

from __future__ import annotations

import numpy as np

from ..kernels.columns import Array
from .contract import Slices, Step, some_slices
from .key_hash import hash_keys
from .layout import PAGE
from .part_index import NODE_BITS, root_slots

__all__ = ["few", "portions", "slices_among", "slots_of"]

#: The most slices in one portion, of the state and of the batch.  A step takes some 400 bytes of
#: memory for each slice.
MOST = 1 << 17


def few(children: Array, counts: Array) -> bool:
    """True if one portion is enough for a batch of keys with these counts of slices."""
    held = float(children["slices"].sum() + children["keys"].sum())
    return held + int(counts.sum()) <= MOST


def portions(children: Array, slots: Array, counts: Array, step: Step) -> list[tuple[int, int]]:
    """Ranges of slots of the root, both ends inclusive, with about the same number of slices each.

    `children` are those of the root.  For each key of the batch, `slots` has its slot and `counts`
    the number of its slices.
    """
    every = 1 << NODE_BITS
    weights = np.bincount(slots, counts, minlength=every)
    keys = np.bincount(slots, minlength=every)
    at = root_slots(children["prefix"])
    spans = np.left_shift(1, NODE_BITS - np.minimum(children["bits"], NODE_BITS))
    starts = np.ones(every, dtype=bool)  # True for slots at which a portion may start
    for first, span, child in zip(at.tolist(), spans.tolist(), children, strict=True):
        held = float(child["slices"] + child["keys"])
        if child["due"] >= step.due and child["drop"] >= step.keep:  # a key is in one part
            some = int(keys[first : first + span].sum())
            held *= min(1.0, some * PAGE / max(float(child["bytes"]), 1.0))
        weights[first] += held
        starts[first + 1 : first + span] = False
    made, first, weight = [], 0, 0.0
    heads = np.flatnonzero(starts)
    sums = np.add.reduceat(weights, heads)
    for head, more in zip(heads.tolist(), sums.tolist(), strict=True):
        if weight and weight + more > MOST:
            made.append((first, head - 1))
            first, weight = head, 0.0
        weight += more
    return [*made, (first, every - 1)]


def slots_of(slices: Slices | None) -> Array:
    """The slot of the root for each key of a batch."""
    if slices is None:
        return np.empty(0, dtype=np.int64)
    return root_slots(hash_keys(slices.keys, len(slices.bounds) - 1))


def slices_among(slices: Slices | None, slots: Array, among: tuple[int, int]) -> Slices | None:
    """The slices of the keys between two slots of the root, both inclusive."""
    if slices is None:
        return None
    here = (slots >= among[0]) & (slots <= among[1])
    if not here.any():
        return None
    return some_slices(slices, np.repeat(here, np.diff(slices.bounds)))
