"""A batch in portions: the keys of a part of the index at a time.

A step works on all parts of the state that it touches together, as arrays, and a batch with events
of many keys may touch all of a large state.  So such a batch is done in several steps, each with
the keys in some neighbouring slots of the index's root: memory goes by the portion, not by the
state.
"""

from __future__ import annotations

import numpy as np

from ..kernels.columns import Array
from .contract import Slices, Step, some_slices
from .key_hash import hash_keys
from .layout import PAGE
from .part_index import NODE_BITS, root_slots

__all__ = ["few", "portions", "slices_among", "slots_of"]

#: Slices of the state and of the batch in one portion; each takes some 400 bytes on its way.
MOST = 1 << 17


def few(children: Array, counts: Array) -> bool:
    """True if one portion will do for a batch of keys with so many slices."""
    held = float(children["slices"].sum() + children["keys"].sum())
    return held + int(counts.sum()) <= MOST


def portions(children: Array, slots: Array, counts: Array, step: Step) -> list[tuple[int, int]]:
    """Ranges of slots of the root, the last one of each included, with about as many slices each.

    `children` are those of the root; keys of the batch are in `slots`, with `counts` slices.
    """
    every = 1 << NODE_BITS
    weights = np.bincount(slots, counts, minlength=every)
    keys = np.bincount(slots, minlength=every)
    at = root_slots(children["prefix"])
    spans = np.left_shift(1, NODE_BITS - np.minimum(children["bits"], NODE_BITS))
    starts = np.ones(every, dtype=bool)  # whether a portion may start with a slot
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
    """The slot of the root that each key of a batch is in."""
    if slices is None:
        return np.empty(0, dtype=np.int64)
    return root_slots(hash_keys(slices.keys, len(slices.bounds) - 1))


def slices_among(slices: Slices | None, slots: Array, among: tuple[int, int]) -> Slices | None:
    """The slices of the keys in some slots."""
    if slices is None:
        return None
    here = (slots >= among[0]) & (slots <= among[1])
    if not here.any():
        return None
    return some_slices(slices, np.repeat(here, np.diff(slices.bounds)))
