"""Find the slots of the partials of a forest's trees in its memory."""

from __future__ import annotations

import numpy as np

from ..aggregators.nodes import FEW, LEAF
from ..kernels.columns import Array
from .ragged import ragged

__all__ = ["slots_of"]


def slots_of(memory: Array, roots: Array, entries: int, width: int) -> tuple[Array, Array]:
    """The slots of all entries of the trees with these roots, and the slots of all aggregates in
    their nodes, some of which may be out of date.  A node has room for `entries` entries of `width`
    words each; `aggregators.nodes` has the drawing."""
    held, derived = [], []
    nodes = roots
    while len(nodes):
        counts = memory[nodes + 1] & FEW
        partials = nodes + 2 + entries
        own = partials + width * entries
        held.append(_each(partials, counts, width))
        derived += [own, own + width]
        inner = memory[nodes + 1] & LEAF == 0
        children, many = own[inner] + 2 * width, counts[inner] + 1
        derived.append(_each(children + entries + 1, many, width))
        nodes = memory[ragged(children, many)]
    none = np.zeros(0, dtype=np.int64)
    return np.concatenate([none, *held]), np.concatenate([none, *derived])


def _each(starts: Array, counts: Array, width: int) -> Array:
    """The slots from each start on, as many as its count."""
    made: Array = np.repeat(starts, counts) + width * ragged(np.zeros_like(counts), counts)
    return made
