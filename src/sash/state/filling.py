"""Fill the gaps between a key's windows with empty windows: windows without events.

rows of a key     3      4             7             windows, by number
filled            3      4   5   6     7             5 and 6 have the answers over no events
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..tables.answers import concat_answers, from_objects
from ..windows import Aligned
from .ragged import ragged
from .scan import Windows

__all__ = ["NONE", "Filled", "filled_values", "filled_windows", "gaps_filled", "remembered_until"]

#: Stands for no window, before the first one of a key.
NONE = -(2**62)


@dataclass
class Filled:
    """Windows together with those that fill gaps: the number of each; the row that it is or, if it
    fills a gap, the row after the gap; and whether it is that row."""

    numbers: Array
    rows: Array
    own: Array

    def moved(self, rows: dict[int, str]) -> dict[int, str]:
        """Reasons by the rows' new places, from reasons by row."""
        places = np.flatnonzero(self.own)
        return {int(places[row]): why for row, why in rows.items()}


def gaps_filled(window: Aligned, numbers: Array, before: Array) -> Filled:
    """Fill the gaps before windows; `before` has the window before each one of the same key."""
    known = before > NONE
    last = np.where(known, before, numbers)
    gap = np.where(known, numbers - last - 1, 0)
    if window.idle is not None:
        some = np.flatnonzero(gap > 0)
        apart = window.start(numbers[some]) - window.end(last[some])
        gap[some[apart > window.idle]] = 0
    made = ragged(numbers - gap, gap + 1)
    rows = np.repeat(np.arange(len(numbers)), gap + 1)
    own = np.zeros(len(made), dtype=bool)
    own[np.cumsum(gap + 1) - 1] = True
    # a day that a time zone skipped has no length
    keep = own | (window.end(made) > window.start(made))
    return Filled(made[keep], rows[keep], own[keep])


def filled_values(
    plan: Plan, filled: Filled, values: Mapping[str, pa.Array]
) -> dict[str, pa.Array]:
    """The values of windows together with those of the windows that fill gaps."""
    if filled.own.all():
        return dict(values)
    at = {name: np.where(filled.own, filled.rows, len(column)) for name, column in values.items()}
    return {
        name: concat_answers(column, _over_nothing(plan, name, column.type)).take(
            pa.array(at[name])
        )
        for name, column in values.items()
    }


def filled_windows(plan: Plan, windows: Windows) -> Windows:
    """The windows of groups, together with those that fill gaps."""
    window, numbers, groups = plan.query.aligned, windows.numbers, windows.groups
    before = np.full(len(numbers), NONE)
    same = groups[1:] == groups[:-1]
    before[1:][same] = numbers[:-1][same]
    filled = gaps_filled(window, numbers, before)
    counts = np.bincount(groups[filled.rows], minlength=len(windows.ends))
    return Windows(
        np.cumsum(counts),
        filled.numbers,
        windows.covered,
        filled_values(plan, filled, windows.values),
        filled.moved(windows.lacking),
    )


def remembered_until(window: Aligned, numbers: Array) -> Array:
    """For each of these windows, the last later window up to which a gap would be filled."""
    assert window.idle is not None
    found: Array = window.last(window.end(numbers) + window.idle)
    return found


def _over_nothing(plan: Plan, name: str, kind: pa.DataType) -> pa.Array:
    """The answer of an aggregate for no events; null if it has none."""
    chosen = plan.query.select[name]
    answer: Any = None
    if chosen.columns:
        operator = chosen.operator
        try:
            answer = operator.python_lower()(operator.identity)
            return from_objects([answer], plan.types[name] or kind, operator.fields)
        except Exception:  # a function of the user's that takes no identity
            return pa.nulls(1, kind)
    return pa.array([0], kind)
