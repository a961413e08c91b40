"""Copies the slices of one query's state into a state of several queries.

The memories of the two kinds of forests are laid out differently, so slices are read one by one and
inserted again, key by key.  Numbers of keys, labels of values, revisions and remembered windows
stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..aggregators.forest import RECORD, UNBOUNDED
from ..kernels.core import BufferCore
from .forest_fields import EXPIRES, NEXT
from .labels import Labels
from .memory import ForestState
from .parted_forest import PartedForest
from .shared import SharedState

__all__ = ["transplant"]


def transplant(state: ForestState, into: SharedState, columns: Mapping[str, str]) -> None:
    """Copy a state into an empty one, whose only query is the same; `columns` maps the columns of
    its result to aggregates of the other state's plan."""
    state._check_sound()
    state._settle()
    source, target = state._grove, into._grove
    mine = [tuple(columns[n] for n in f.group.names) for f in source.forests]
    theirs = [f.group.names for f in target.forests]
    if mine != theirs:
        raise ValueError(f"the aggregates {mine} are kept as {theirs} by several queries")
    target.keys.restore(source.keys.table())
    for old, new in zip(source.forests, target.forests, strict=True):
        _copy(old, new)
    (view,) = into.views.values()
    view.keep = state._keep
    view.before.load(*state._before.dump())
    there = target.keys.in_order()
    into._idle = np.sort(there[~target.holds(there)])


def _copy(old: PartedForest, new: PartedForest) -> None:
    """Insert all slices of a forest into an empty one."""
    if isinstance(new._labels, Labels):
        assert isinstance(old._labels, Labels)
        old._sweep()
        new._labels.load(old._labels.dump())
    new.make_room(len(old._records) // RECORD)
    numbers: list[int] = []
    starts: list[int] = []
    partials: list[Any] = []
    for part in old._parts:
        slots = []
        for number, tree in part.trees():
            for start, slot in tree._slots():
                numbers.append(number)
                starts.append(start)
                slots.append(slot)
        core = part._core
        if isinstance(core, BufferCore):
            words = np.array(slots, dtype=np.int64)[:, None] + np.arange(core.width)
            partials.append(core.buffer[words])
        else:
            partials += [core.peek(slot) for slot in slots]
    if not numbers:
        return
    if isinstance(new._core, BufferCore):
        order = np.argsort(numbers, kind="stable")  # memories hold keys in no order
        each = np.array(numbers)[order]
        new.plant(each, np.array(starts)[order], np.concatenate(partials)[order])
    else:
        new.plant(np.array(numbers), np.array(starts), partials)
    for number in set(numbers):  # the next step asks each key what is due
        at = RECORD * number
        new._records[at + NEXT] = new._records[at + EXPIRES] = -UNBOUNDED
