"""Windows of a shared state from pyramids of its slices, where a step has many of them due.

A tree answers one window at a time, and looks for its edges each time.  Where a step emits about as
many rows as there are slices, it is less work to lay the slices of all keys out in order, build a
pyramid over them (`state.pyramid`), and answer all windows of a key while the processor's cache has
its slices.  The trees keep the slices between steps, as they take them in any order.
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

_WORTH = 4096  # rows of a step, as another kernel is needed
_SLICES = 4  # that may be laid out for a row
_EMPTY = 16  # windows that may be looked at for a slice, as many may hold nothing
_LENGTH, _WINDOWS = 3, 5  # of the fields that say which windows a query has


def pays(asks: Asks, forest: SharedForest, visits: Array, starts: Array) -> bool:
    """True if a step has so many windows due that pyramids take less than trees."""
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
    """The windows that are due, of the queries that have some, whose cycles these are, for keys in
    order."""
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
