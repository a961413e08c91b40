"""Answer windows of a shared state from pyramids of its slices, if a step has many due windows.

A tree answers one window at a time, and searches for its edges each time.  If a step emits about as
many rows as there are slices, it is less work to lay out the slices of all keys in order, build a
pyramid over them (`state.pyramid`), and answer all windows of a key while its slices are in the
processor's cache.  Between steps the trees keep the slices, because they take slices in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..kernels.columns import Array
from ..slicing.cycles import Cycles
from ..windows.contract import UTC
from .forest_fields import WITH_AGAIN, WITH_EARLY
from .pyramid import Answers, Pyramid
from .shared_fields import ACTIVE, CHANGES_OF, DUE_OF, FRESH_OF, LIMIT
from .shared_forest import Asks, SharedForest
from .trace import note_step

__all__ = ["pays", "windows_due"]

_WORTH = 4096  # a step needs this many rows, because pyramids need another kernel
_SLICES = 4  # the most slices to lay out for a row
_EMPTY = 16  # the most windows to look at for a slice, because many may hold none
_LENGTH, _WINDOWS = 3, 5  # among the fields that describe a query's windows


def pays(asks: Asks, forest: SharedForest, visits: Array, starts: Array) -> bool:
    """True if a step has so many due windows that pyramids take less time than trees."""
    active = asks.call[ACTIVE]
    if not active or asks.call[WITH_AGAIN] or asks.call[WITH_EARLY] or len(asks.sizes):
        return False
    oldest = min(forest.oldest(visits), int(starts.min(initial=asks.call[LIMIT])))
    due = asks.fields[:active]
    cycles = max(asks.call[LIMIT] - oldest, 0) // due[:, _LENGTH] + 1
    some = np.minimum(due[:, DUE_OF] - due[:, FRESH_OF], cycles * np.maximum(due[:, _WINDOWS], 1))
    rows = int(some.sum()) * len(visits)
    held = forest.slices() + len(starts)
    return rows >= _WORTH and held <= rows * _SLICES and rows <= held * _EMPTY


def windows_due(
    forests: Sequence[SharedForest], visits: Array, asks: Asks, cycles: Cycles
) -> Answers:
    """The due windows of the queries that have any, for keys in order.  `cycles` are those of these
    queries."""
    note_step("windows that are due from a pyramid of the slices")
    due = asks.fields[: asks.call[ACTIVE]]
    fresh, changes = due[:, FRESH_OF], due[:, CHANGES_OF] > 0
    low = int(cycles.start(np.maximum(fresh, cycles.first(forests[0].oldest(visits)))).min())
    wanted = np.stack([fresh, due[:, DUE_OF]], axis=1)
    found: Answers | None = None
    for forest in forests:
        pyramid = Pyramid(forest.group, forest.laid_out(visits, low), 0, UTC)
        parts = [part for _, part in pyramid.answers(forest.for_pyramid(), cycles, changes, wanted)]
        made = Answers.one_after_another(parts)
        if found is None:
            found = made
            continue
        found.values.update(made.values)
        for row, reasons in made.failed.items():
            found.failed.setdefault(row, {}).update(reasons)
    assert found is not None
    return found
