"""The intake of a batch: judge its rows, and cut them into slices."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..state.contract import Slices
from ..tables.arrow import one_array
from ..tables.intake import bad_rows, some_rows
from .delays import delay_counts, no_delays
from .failures import name_failure
from .late import Late, refused_times
from .passes import survey

__all__ = ["Judge", "Taken", "take_in"]

L = TypeVar("L")


class Cuts(Protocol):
    """A state that cuts rows into slices."""

    def cut(self, table: pa.Table, times: Array) -> Slices:
        """Cut rows into slices."""


@dataclass
class Taken:
    """A judged batch: the slices of its usable rows, its late rows, and its counts."""

    slices: Slices | None
    late: Late
    newest: int | None = None
    rows: int = 0
    lost: int = 0
    partly_late: int = 0
    delays: Array = field(default_factory=no_delays)  # a histogram of how late rows came

    @classmethod
    def of(
        cls, slices: Slices | None, late: Late, newest: int | None, rows: int, delays: Array
    ) -> Taken:
        """A judged batch of `rows` rows, with counts from its late rows."""
        lost = int(late.lost.sum())
        return cls(slices, late, newest, rows, lost, len(late.rows) - lost, delays)


@dataclass(frozen=True)
class Judge(Generic[L]):
    """Judges rows by a watermark.  `judge` takes the times of rows, and reasons for rows that
    cannot be used; it returns a mask of the rows that are in an open window, and the late rows.
    `none` has no late rows."""

    watermark: int | None
    judge: Callable[[Array, dict[int, str]], tuple[Array, L]]
    none: L


def take_in(
    plan: Plan,
    state: Cuts,
    batch: pa.Table,
    refused: dict[int, str],
    judge: Judge[L],
    came: Array | int | None,
) -> tuple[Slices | None, L, int | None, Array]:
    """Judge the rows of a batch, and cut the usable ones into slices.  Return the slices, the late
    rows, the newest time of usable rows, and a histogram of how late rows came.  `came` is stream
    time when the batch came, or when each row came."""
    column = one_array(batch.column(plan.query.time))
    clock = plan.query.window.clock
    seen = None if refused else survey(column, came, clock)
    if seen is not None and (judge.watermark is None or seen.least >= judge.watermark):
        # from the watermark on, no window is closed: so no row is late
        with suppress(Exception):  # the rows that cannot be used are found below
            return state.cut(batch, seen.times), judge.none, seen.greatest, seen.delays
    times, refused = refused_times(column, refused, clock)
    usable, late = judge.judge(times, refused)
    delays = delay_counts(times, came, refused)
    rows = np.flatnonzero(usable)
    if not len(rows):
        return None, late, None, delays
    held, shown = batch, times
    if len(rows) < len(times):
        held, shown = some_rows(batch, rows), times[rows]
    try:
        slices = state.cut(held, shown)
    except Exception as error:
        # if `lift` refuses a value, its row is late; if `combine` raises, the operator has a defect
        wrong = bad_rows(lambda part: state.cut(part, np.zeros(len(part), np.int64)), held)
        if not wrong:
            raise name_failure(plan, held, shown, error) from error
        refused |= {int(rows[i]): why for i, why in wrong.items()}
        return take_in(plan, state, batch, refused, judge, came)
    return slices, late, int(shown.max()), delays
