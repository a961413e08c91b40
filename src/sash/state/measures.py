"""The frames of driven windows and of sessions.

rows in order of key and time → a range of rows for each event that fires, or for each session
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array, Table, read
from ..kernels.core import make_core, shared_core
from ..operators import count
from ..operators.contract import Operator
from ..policies.contract import Policy, guard
from ..query.types import column_type
from ..tables.arrow import flat
from ..tables.rows import Ordered
from ..windows import Trailing
from ..windows.contract import LATEST, Change, Count, Driven, Fires, Keeps, Mark, Rule, Span
from ..windows.durations import duration_text
from .frame_steps import HOLDS
from .frames import Apart, Excluding, Frames, InTime, LastRows, Ranges
from .measures_kernel import KEPT, SPANS
from .over_frames import Sizes
from .ragged import Places, ragged

__all__ = [
    "Found",
    "Spans",
    "frames_of",
    "gaps_of",
    "held_in_time",
    "longest_in_time",
    "marks_in",
    "policy_columns",
    "sessions_of",
    "since_changed",
    "since_ruled",
    "sizes_of",
    "tick_runs",
    "ticks_between",
    "ticks_of",
    "values_of",
    "values_range",
    "without_gaps",
]

_FOREVER = 2**61  # longer than the distance between any two times


@dataclass(frozen=True)
class Found:
    """The frames of a window, and the oldest event in each frame."""

    frames: Frames
    oldest: Callable[[], tuple[Array, Array]]  # its time, and whether there is one
    #: If every frame has one, and their times are pieces of the rows' times: these pieces.
    earlier: tuple[Array, ...] | None = None


def frames_of(window: Driven, rows: Ordered) -> Found:
    """The frames of a window."""
    keeps, times = window.keeps, rows.times
    if isinstance(keeps, Span) and window.fires == Count(1):
        if window.excluded in ("row", "ties"):
            return _excluding(keeps, rows, ties=window.excluded == "ties")
        evicts = keeps.older is not None
        older = _FOREVER if keeps.older is None else keeps.older
        frames = InTime(times, rows.bounds, older, keeps.younger, evicts)
        return Found(frames, lambda: _oldest(*_spans(keeps, rows), times, times))
    assert window.excluded in (None, "group"), "where something is excluded, every event fires"
    if isinstance(keeps, Count) and window.fires == Count(1):
        frames_of_rows = LastRows(rows.bounds, keeps.rows)
        oldest = lambda: _times_before(frames_of_rows, rows)  # noqa: E731
        return Found(frames_of_rows, oldest, _earlier(frames_of_rows, rows))
    first, last = _kept(keeps, rows, window.columns)
    fired = _fired(window.fires, rows)
    if fired is None:
        return Found(Ranges(first, last), lambda: _oldest(first, last, times, times))
    first, last, own = first[fired], last[fired], times[fired]
    return Found(Ranges(first, last, fired), lambda: _oldest(first, last, times, own))


def sizes_of(windows: Sequence[Trailing], rows: Ordered) -> Sizes:
    """The frames of windows of several sizes, longest first.  The windows must hold all events at
    one time, or none of them."""
    frames = [frames_of(window, rows).frames for window in windows]
    held = [f for f in frames if isinstance(f, InTime)]
    assert len(held) == len(frames), "the frames of a span of time"
    return Sizes(tuple(held))


def longest_in_time(frames: InTime) -> int:
    """A number of rows that no frame exceeds, and the longest frame hardly falls short of.  Threads
    may call this at the same time."""
    core = make_core(SPANS, count.of("int64"), 1)
    with core.call() as call:
        given = call.integers(frames.times), call.integers(frames.bounds), len(frames.bounds) - 1
        return int(core.run.longest(core.m, *given, frames.older, frames.younger))


def _excluding(keeps: Span, rows: Ordered, *, ties: bool) -> Found:
    """The frames of windows that exclude some of the events at an event's own time."""
    first, last = _spans(keeps, rows)
    _, ends = _spans(Span(None, -1), rows)
    longest = 0 if keeps.older is None else int((last - first).max(initial=0))

    def oldest() -> tuple[Array, Array]:
        time, held = _oldest(first, last, rows.times, rows.times)
        return time, held | ties | (ends - last > 1)

    return Found(Excluding(first, last, ends, longest, ties), oldest)


def _oldest(first: Array, last: Array, times: Array, own: Array) -> tuple[Array, Array]:
    """The time of the oldest event in each frame, or the frame's own time if it is empty; and
    whether the frame holds any event."""
    held = last > first
    if held.all():
        return times[first], held
    return np.where(held, times[np.minimum(first, len(times) - 1)], own), held


def _times_before(frames: LastRows, rows: Ordered) -> tuple[Array, Array]:
    """The time of the oldest event in each frame, and True, because each frame has one."""
    earlier = _earlier(frames, rows)
    oldest = rows.times[frames.ranges()[0]] if earlier is None else np.concatenate(earlier)
    return oldest, np.broadcast_to(np.True_, len(rows))


def _earlier(frames: LastRows, rows: Ordered) -> tuple[Array, ...] | None:
    """The time of the oldest event in each frame, if there is one group, as two pieces: the first
    time for each of the first frames, then the times of the rows from the first on."""
    if len(rows.bounds) > 2:
        return None
    first = min(frames.size - 1, len(rows))
    return np.repeat(rows.times[:1], first), rows.times[: len(rows) - first]


def _kept(keeps: Keeps, rows: Ordered, columns: tuple[str, ...]) -> tuple[Array, Array]:
    """For each row the rows `[first, last)` that are kept when it has come."""
    if isinstance(keeps, Span):
        return _spans(keeps, rows)
    last = np.arange(1, len(rows) + 1)
    if isinstance(keeps, Count):
        first = np.maximum(last - keeps.rows, rows.begins)
    elif isinstance(keeps, Mark):
        marked = np.where(_marks(keeps, rows), last, 0)  # the row after a mark
        since = np.maximum.accumulate(marked) if len(marked) else marked
        first = np.maximum(np.append(0, since[:-1])[: len(rows)], rows.begins)
    elif isinstance(keeps, Change):
        first = _changed(keeps, rows, more=True)
    else:
        first = _ruled(keeps, rows, columns)
    return first, last


def _fired(fires: Fires, rows: Ordered) -> Array | None:
    """The rows that fire, None for all."""
    if isinstance(fires, Count):
        if fires.rows == 1:
            return None
        return np.flatnonzero((np.arange(1, len(rows) + 1) - rows.begins) % fires.rows == 0)
    if isinstance(fires, Mark):
        return np.flatnonzero(_marks(fires, rows))
    since = _changed(fires, rows, more=False)
    every = np.arange(len(rows))
    return np.flatnonzero((since == every) & (rows.begins != every))


def _marks(mark: Mark, rows: Ordered) -> Array:
    """True for rows that are marks."""
    return marks_in(mark, rows.column(mark.column))


def marks_in(mark: Mark, column: pa.Array) -> Array:
    """True for values of a column that are marks; null is none."""
    if not pa.types.is_boolean(column.type):
        raise TypeError(
            f"the column of marks {mark.column!r} has type {column.type}; it must hold bools"
        )
    return np.asarray(column.fill_null(False))


# Change of a value


def _differs(by: float, kind: str, *, more: bool) -> Operator:
    """An operator for the youngest value, with a rule: the oldest value differs from the youngest
    by more than `by` or, without `more`, by at least `by`."""
    zero = 0.0 if kind == "float64" else 0
    youngest = Operator("youngest", (0, zero), lambda x: (1, x), lambda a, b: b if b[0] else a)
    if more:
        rule = lambda total, old: abs(total[1] - old[1]) > by  # noqa: E731
    else:
        rule = lambda total, old: abs(total[1] - old[1]) >= by  # noqa: E731
    sign = ">" if more else ">="
    return guard(count, Policy(rule, youngest, (0,), f"change {sign} {by}")).of(kind)


_cached_differs = lru_cache(maxsize=64, typed=True)(_differs)


def _changed(change: Change, rows: Ordered, *, more: bool) -> Array:
    """For each row the first row that is kept.  With `more`, the oldest rows go while their values
    differ from the row's value by more than the change; without, all rows before the row go if the
    oldest one's value differs by at least the change."""
    values, there = values_of(change, rows.column(change.column))
    least, most = values_range(values, there)
    if most - least >= 2**63:
        raise OverflowError(f"the values of column {change.column!r} are too far apart for int64")
    values, _ = without_gaps(values, there, rows.bounds)
    return since_changed(change, values, rows.bounds, rows.bounds[:-1], more=more)


def since_changed(
    change: Change, values: Array, bounds: Array, fresh: Array, *, more: bool
) -> Array:
    """For each row of groups the first row that is kept.  With `more`, the oldest rows go while
    their values differ from the row's value by more than the change; without, all rows before the
    row go if the oldest one's value differs by at least the change.  The rows of a group before its
    `fresh` row stay until that row comes."""
    kind = "float64" if values.dtype == np.float64 else "int64"
    by = float(change.by) if kind == "float64" else change.by
    operator = _cached_differs(by, kind, more=more)
    return _kept_under(operator, read(values, 1), bounds, fresh, anew=not more)


def values_of(change: Change, column: pa.Array) -> tuple[Array, Array]:
    """The values of a column of numbers, and True for each value that is neither null nor NaN."""
    if column_type(column.type) not in ("int64", "float64"):
        raise TypeError(
            f"the column {change.column!r} of a delta has type {column.type}; it must hold numbers"
        )
    real = pa.types.is_floating(column.type)
    there = np.asarray(column.is_valid())
    try:
        kind = pa.float64() if real else pa.int64()
        values: Array = pc.fill_null(column.cast(kind), 0).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        raise OverflowError(f"column {change.column!r} has values that do not fit int64") from None
    return values, there & ~np.isnan(values) if real else there


def values_range(values: Array, there: Array) -> tuple[int, int]:
    """The least and the greatest whole number; 0 and 0 for floats, whose differences always
    exist."""
    known = values[there]
    if values.dtype == np.float64 or not len(known):
        return 0, 0
    return int(known.min()), int(known.max())


def without_gaps(values: Array, there: Array, bounds: Array) -> tuple[Array, Array]:
    """Fill the gaps in the values of groups of rows: with the value before, at the start of a group
    with the first value after.  Also return True for each row that then has a value."""
    if there.all():
        return values, there
    every = np.arange(len(values))
    counts = np.diff(bounds)
    begins, ends = np.repeat(bounds[:-1], counts), np.repeat(bounds[1:], counts)
    before = np.maximum.accumulate(np.where(there, every, -1))
    after = np.minimum.accumulate(np.where(there, every, len(values))[::-1])[::-1]
    at = np.where(before >= begins, before, after)
    known = at < ends
    return np.where(known, values[np.minimum(at, len(values) - 1)], 0), known


# Policies


@lru_cache(maxsize=64)
def _guarded(policy: Policy, types: tuple[str, ...]) -> Operator:
    columns = tuple(range(len(types)))
    own = Policy(policy.rule, policy.over, columns, policy.name)
    return guard(count, own).of(*types)


def _ruled(rule: Rule, rows: Ordered, columns: tuple[str, ...]) -> Array:
    """For each row the first row that a policy keeps."""
    operator, table = policy_columns(rule, [rows.column(name) for name in columns])
    return _kept_under(operator, table, rows.bounds, rows.bounds[:-1], anew=False)


def policy_columns(rule: Rule, arrays: list[pa.Array]) -> tuple[Operator, Table]:
    """A policy's operator with its rule, and the columns that it reads."""
    operator = _guarded(rule.policy, tuple(column_type(a.type) for a in arrays))
    return operator, read(tuple(arrays) if len(arrays) > 1 else arrays[0], len(arrays))


def since_ruled(operator: Operator, table: Table, bounds: Array, fresh: Array) -> Array:
    """For each row of groups the first row that a policy's rule keeps.  The rows of a group before
    its `fresh` row stay until that row comes."""
    return _kept_under(operator, table, bounds, fresh, anew=False)


def _kept_under(
    operator: Operator, table: Table, bounds: Array, fresh: Array, *, anew: bool
) -> Array:
    """For each row the first row that an operator's rule keeps."""
    most = int(np.diff(bounds).max(initial=0))
    core = make_core(KEPT, operator, 1 << max(3, most.bit_length()))
    core.header[HOLDS] = 1
    with core.call() as call:
        columns, at_bounds = call.columns(table), call.integers(bounds)
        first, at = call.space(table.rows)
        at_fresh = call.integers(fresh.copy())  # it may be a slice of `bounds`
        core.run.kept(core.m, columns, at_bounds, len(bounds) - 1, at_fresh, int(anew), at)
        return np.asarray(first, dtype=np.int64)


# Time


def _spans(keeps: Span, rows: Ordered) -> tuple[Array, Array]:
    """For each row the rows that a span of time holds."""
    return held_in_time(keeps, rows.times, rows.bounds)


def held_in_time(keeps: Span, times: Array, bounds: Array) -> tuple[Array, Array]:
    """For each row of groups, which are in order of time, the rows of its group that a span of time
    holds."""
    core = shared_core(SPANS)
    older = _FOREVER if keeps.older is None else keeps.older
    with core.call() as call:
        given = call.integers(times), call.integers(bounds)
        first, at_first = call.space(len(times))
        last, at_last = call.space(len(times))
        groups = len(bounds) - 1
        core.run.spans(core.m, *given, groups, older, keeps.younger, at_first, at_last)
        return np.asarray(first), np.asarray(last)


def held_at(
    keeps: Span, times: Array, bounds: Array, asked: Array, asked_bounds: Array
) -> tuple[Array, Array]:
    """The rows of a group that a span of time holds, for each of the times `asked` of that group,
    which are in order."""
    core = shared_core(SPANS)
    older = _FOREVER if keeps.older is None else keeps.older
    with core.call() as call:
        given = [call.integers(a) for a in (times, bounds, asked, asked_bounds)]
        first, at_first = call.space(len(asked))
        last, at_last = call.space(len(asked))
        groups = len(bounds) - 1
        core.run.spans_at(core.m, *given, groups, older, keeps.younger, at_first, at_last)
        return np.array(first), np.array(last)


@dataclass(frozen=True)
class Spans:
    """Windows of groups of events that do not belong to single events: the group, start, end and
    frame of each, in order."""

    groups: Array
    starts: Array
    ends: Array
    frames: Ranges


def ticks_of(keeps: Count | Change | Mark, tick: int, rows: Ordered) -> Spans:
    """The window at each tick: from the first tick after a group's first event to the first tick
    after its last event."""
    first, last = _kept(keeps, rows, ())
    marks = _marks(keeps, rows) if isinstance(keeps, Mark) else None
    groups, ends = ticks_between(*tick_runs(rows.times, rows.bounds, marks, tick), tick)
    at = Places(rows.codes, rows.times).find(groups, ends) - 1  # the last event before the tick
    return Spans(groups, rows.times[first[at]], ends, Ranges(first[at], last[at]))


def tick_runs(
    times: Array, bounds: Array, marks: Array | None, tick: int
) -> tuple[Array, Array, Array]:
    """The runs of ticks at which groups of events keep something: the group, and the numbers of
    the first and the last tick.  With marks, nothing is kept from a mark to the next event."""
    last = bounds[1:][np.diff(bounds) > 0] - 1
    if marks is not None:
        last = np.union1d(last, np.flatnonzero(marks))
    first = np.append(bounds[0], last + 1)[: len(last)]
    after = 1 if marks is None else ~marks[last]
    groups = np.searchsorted(bounds, last, side="right") - 1
    return groups, times[first] // tick + 1, times[last] // tick + after


def ticks_between(owners: Array, begin: Array, end: Array, tick: int) -> tuple[Array, Array]:
    """The times of the ticks from `begin` to `end`, with the owner of each."""
    counts = np.maximum(end - begin + 1, 0)
    try:
        return np.repeat(owners, counts), ragged(begin, counts) * tick
    except MemoryError:
        raise MemoryError(
            f"the result does not fit into memory: between the events of a key, a clock that fires "
            f"every {duration_text(tick)} fires up to {counts.max():,} times; let it fire less "
            "often, or use sash.sliding, which emits only windows that hold events"
        ) from None


def sessions_of(times: Array, reaches: Array, bounds: Array, longest: int | None = None) -> Spans:
    """The sessions of groups of events, which are in order of time.  An event covers the span from
    its time to `reaches`, both inclusive."""
    core, count = shared_core(SPANS), len(times)
    with core.call() as call:
        given = [call.integers(a) for a in (times, reaches, bounds)]
        groups, at_groups = call.space(count)
        first, at_first = call.space(count)
        ends, at_ends = call.space(count)
        limit = 2 * _FOREVER if longest is None else longest  # a session may have gaps at both ends
        made = core.run.sessions(
            core.m, *given, len(bounds) - 1, limit, at_groups, at_first, at_ends
        )
        groups, first, ends = (np.asarray(a)[:made].copy() for a in (groups, first, ends))
    last = np.append(first[1:], count) if made else first
    return Spans(groups, times[first], ends, Apart(first, last))


def gaps_of(table: pa.Table, name: str) -> Array:
    """A column of gaps in microseconds; 0 for a row without a gap."""
    column = flat(table.column(name))
    kind = column.type
    if pa.types.is_duration(kind):
        scale = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}[kind.unit]
        finer = 1_000 if kind.unit == "ns" else 1
    elif pa.types.is_integer(kind):
        scale, finer = 1, 1
    else:
        raise TypeError(
            f"the column of gaps {name!r} has type {kind}; it must hold durations, or whole "
            "numbers of microseconds"
        )
    if pa.types.is_uint64(kind):
        column = pc.min_element_wise(column, pa.scalar(LATEST, kind), skip_nulls=False)
    plain = column.cast(pa.int64()).fill_null(0).to_numpy() // finer
    gaps: Array = np.clip(plain, 0, LATEST // scale) * scale
    return gaps
