"""Divide a batch into portions: each has the keys in some neighbouring slots of the index's root.

A step works on all the parts of the state that it touches together, as arrays.  A batch with events
of many keys may touch all of a large state.  So such a batch runs as several steps, one for each
portion: the memory that it takes depends on the portion, not on the state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ..kernels.columns import Array
from .contract import Slices, some_slices
from .key_hash import hash_keys
from .layout import PAGE
from .part_index import NODE_BITS, root_slots

__all__ = [
    "SLOTS",
    "Among",
    "Coming",
    "by_slot",
    "no_coming",
    "portions",
    "slices_among",
    "slots_of",
]

#: The most slices in one portion, of the state and of the batch.  A step takes some 400 bytes of
#: memory for each slice.
MOST = 1 << 17

#: Slots of the index's root.
SLOTS = 1 << NODE_BITS

#: The first and the last slot of a portion; None for all.
Among: TypeAlias = tuple[int, int] | None

#: What comes in a batch, by slot: how much it weighs, in slices, and how many keys it has.
Coming: TypeAlias = tuple[Array, Array]


def portions(
    children: Array,
    held: Array,
    weight: float,
    coming: Callable[[], Coming],
    due: int,
    keep: int,
) -> list[Among]:
    """The portions of a batch that weighs so much, with about as many slices each.

    `children` are those of the root, and `held` says what each of them weighs if all of it is read:
    those are, in which window `due` is due or all before `keep` can be dropped.  What comes is
    asked for only if one portion may not do.
    """
    if float(held.sum()) + weight <= MOST:
        return [None]
    weights, keys = coming()
    weights = weights.astype(np.float64)
    at = root_slots(children["prefix"])
    spans = np.left_shift(1, NODE_BITS - np.minimum(children["bits"], NODE_BITS))
    whole = (children["due"] < due) | (children["drop"] < keep)
    starts = np.ones(SLOTS, dtype=bool)  # whether a portion may start with a slot
    for first, span, child, all_of_it, more in zip(
        at.tolist(), spans.tolist(), children, whole.tolist(), held.tolist(), strict=True
    ):
        if not all_of_it:  # a key is in one part
            some = int(keys[first : first + span].sum())
            more *= min(1.0, some * PAGE / max(float(child["bytes"]), 1.0))
        weights[first] += more
        starts[first + 1 : first + span] = False
    made: list[Among] = []
    first, weight = 0, 0.0
    heads = np.flatnonzero(starts)
    sums = np.add.reduceat(weights, heads)
    for head, more in zip(heads.tolist(), sums.tolist(), strict=True):
        if weight and weight + more > MOST:
            made.append((first, head - 1))
            first, weight = head, 0.0
        weight += more
    return [*made, (first, SLOTS - 1)] if made else [None]


def no_coming() -> Coming:
    """What a batch without rows has."""
    return np.zeros(SLOTS), np.zeros(SLOTS)


def by_slot(slots: Array, counts: Array) -> Coming:
    """What a batch has of keys in some slots, with so many slices each."""
    return np.bincount(slots, counts, minlength=SLOTS), np.bincount(slots, minlength=SLOTS)


def slots_of(slices: Slices | None) -> Array:
    """The slot of the root for each key of a batch."""
    if slices is None:
        return np.empty(0, dtype=np.int64)
    return root_slots(hash_keys(slices.keys, len(slices.bounds) - 1))


def slices_among(slices: Slices | None, slots: Array, among: Among) -> Slices | None:
    """The slices of the keys between two slots of the root, both inclusive."""
    if slices is None or among is None:
        return slices
    here = (slots >= among[0]) & (slots <= among[1])
    if not here.any():
        return None
    return some_slices(slices, np.repeat(here, np.diff(slices.bounds)))
