"""Turn the windows of Spark, Flink, the standard and CQL into windows of sash.

Spark      GROUP BY window(ts, size[, slide[, offset]])     sliding, tumbling
           GROUP BY session_window(ts, gap)                 session
Flink      TABLE(HOP(TABLE t, DESCRIPTOR(ts), slide, size)) sliding; TUMBLE, CUMULATE, SESSION
standard   OVER (… RANGE BETWEEN size PRECEDING AND …)      trailing, lifetime
           OVER (… ROWS BETWEEN n PRECEDING AND …)          rows
CQL        t [RANGE size SLIDE slide], t [ROWS n SLIDE m]   sliding, rows
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ..windows import (
    Trailing,
    Window,
    cumulate,
    duration,
    duration_text,
    rows,
    session,
    sliding,
)
from ..windows.durations import terms
from .errors import Source
from .intervals import length_text
from .nodes import Bound, Call, Column, Cql, Frame, Literal_, Node, Table, WindowSpec

__all__ = ["Framed", "cql_window", "framed", "spark_window", "table_window"]

_CALENDAR = ("day", "week", "month", "quarter", "year")
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class _Reader:
    """Reads lengths of time; it has the text, for errors, and the calendar's zone."""

    source: Source
    timezone: Any

    def length(self, node: Node, what: str) -> str:
        """A length of time as text, checked."""
        text = length_text(node, self.source, what)
        if not self._is_calendar(text):
            self.made(node, lambda: duration(text, what, _MONTHS))
        return text

    def _is_calendar(self, text: str) -> bool:
        """True if a length counts days or longer units of a time zone's calendar."""
        if self.timezone is None:
            return False
        try:
            units = [unit for _, unit in terms(text, "")]
        except ValueError:
            return False
        return all(unit.removesuffix("s") in _CALENDAR for unit in units)

    def made(self, node: Node, make: Callable[[], _Made]) -> _Made:
        """Call `make`; its errors point to a node."""
        try:
            return make()
        except (ValueError, TypeError) as error:
            raise self.source.error(str(error), *node.at) from None

    def sliding(self, node: Node, size: str, every: str, offset: str | None) -> Window:
        """Sliding windows; they follow the calendar if their size or slide does."""
        calendar = self._is_calendar(size) or self._is_calendar(every)

        def make() -> Window:
            if not calendar:
                return sliding(size, every, offset or 0)
            made: Window = sliding(size, every, offset or 0, timezone=self.timezone)
            return made

        return self.made(node, make)


_MONTHS = "give sash.sql a timezone, whose calendar has months, or say it in days"


def spark_window(call: Call, source: Source, timezone: Any) -> tuple[Node, Window]:
    """The time and the windows of window(…) or session_window(…)."""
    read = _Reader(source, timezone)
    form = _SPARK[call.name]
    needed, most = (2, 4) if call.name == "window" else (2, 2)
    if not needed <= len(call.args) <= most or call.distinct:
        raise source.error(f"{call.name} is written as {form}", *call.at)
    time = call.args[0]
    if isinstance(time, Literal_):
        raise source.error(
            f"the first argument of {call.name} is the column of times: {form}", *time.at
        )
    if call.name == "session_window":
        gap = call.args[1]
        if isinstance(gap, Column):
            return time, session(gap.name)
        text = read.length(gap, "a session's gap")
        return time, read.made(gap, lambda: session(duration(text)))
    names = ("a window's size", "a window's slide", "a window's offset")
    lengths = [read.length(a, n) for a, n in zip(call.args[1:], names, strict=False)]
    size, every = lengths[0], lengths[1] if len(lengths) > 1 else lengths[0]
    _check_order(read, call.args[2] if len(lengths) > 1 else call, size, every, form)
    return time, read.sliding(call, size, every, lengths[2] if len(lengths) > 2 else None)


_SPARK = {
    "window": "window(ts, size[, slide[, offset]])",
    "session_window": "session_window(ts, gap)",
}


def _check_order(read: _Reader, node: Node, size: str, every: str, form: str) -> None:
    """Refuse a slide longer than the size: the text has probably swapped them."""
    try:
        longer = duration(every) > duration(size)
    except ValueError:  # calendar windows compare these themselves
        return
    if longer:
        raise read.source.error(
            f"the slide of {every} is longer than the size of {size}; the order of arguments is "
            f"{form}",
            *node.at,
        )


def table_window(table: Table, source: Source, timezone: Any) -> Window:
    """The windows of Flink's TUMBLE, HOP, CUMULATE and SESSION."""
    read = _Reader(source, timezone)
    given = {
        name: read.length(node, f"{table.function}'s {name.lower()}")
        for name, node in table.given.items()
        if name not in ("DATA", "TIMECOL")
    }
    if table.function == "SESSION":
        gap = table.given["GAP"]
        return read.made(gap, lambda: session(duration(given["GAP"])))
    size, offset = given["SIZE"], given.get("OFFSET")
    at = table.given["SIZE"]
    if table.function == "TUMBLE":
        return read.sliding(at, size, size, offset)
    if table.function == "HOP":
        form = "HOP(TABLE t, DESCRIPTOR(ts), slide, size)"
        _check_order(read, table.given["SLIDE"], size, given["SLIDE"], form)
        return read.sliding(at, size, given["SLIDE"], offset)
    form = "CUMULATE(TABLE t, DESCRIPTOR(ts), step, size)"
    if duration(given["STEP"]) > duration(size):
        raise source.error(
            f"the step of {given['STEP']} is longer than the size of {size}; the order of "
            f"arguments is {form}",
            *table.given["STEP"].at,
        )
    return read.made(at, lambda: cumulate(size, given["STEP"], offset or 0))


def cql_window(cql: Cql, source: Source, timezone: Any) -> Window:
    """The windows of CQL's brackets."""
    read = _Reader(source, timezone)
    if cql.unit == "rows":
        assert isinstance(cql.size, Literal_)
        every = cql.slide.value if isinstance(cql.slide, Literal_) else 1
        return read.made(cql.size, lambda: rows(cql.size.value, every))  # type: ignore[attr-defined]
    if cql.slide is None:
        raise source.error(
            "a RANGE needs a SLIDE, which says how often there is a row: [RANGE 1 HOUR SLIDE 1 "
            "MINUTE]; for a row at each event write OVER (ORDER BY ts RANGE BETWEEN …)",
            *cql.size.at,
            ["SLIDE"],
        )
    size, every = read.length(cql.size, "a RANGE"), read.length(cql.slide, "a SLIDE")
    _check_order(read, cql.slide, size, every, "[RANGE size SLIDE slide]")
    return read.sliding(cql.size, size, every, None)


@dataclass(frozen=True)
class Framed:
    """The contents of one OVER: keys, time, the column that orders events of one time, and the
    window."""

    partition: tuple[Node, ...]
    time: Node
    tie: Node | None
    window: Window
    spec: WindowSpec

    def differs(self, other: Framed) -> str | None:
        """The first thing that two OVER of one SELECT must share but do not; None if they agree."""
        if self.partition != other.partition:
            return "PARTITION BY"
        if (self.time, self.tie) != (other.time, other.tie):
            return "ORDER BY"
        one, two = self.window, other.window
        if isinstance(one, Trailing) and isinstance(two, Trailing):
            if one.exclude != two.exclude:
                return "EXCLUDE"
            return "the end of the frame" if one.delay != two.delay else None
        if type(one) is not type(two):
            return "RANGE or ROWS"
        return "the number of ROWS" if one != two else None


def framed(spec: WindowSpec, source: Source) -> Framed:
    """Read the contents of an OVER, whose named window is already resolved."""
    if not spec.order:
        raise source.error(
            "this window has no ORDER BY, so that it is all rows of its key; write OVER (PARTITION "
            "BY k ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW)",
            *spec.at,
            ["ORDER BY"],
        )
    for order in spec.order:
        if order.descending or order.nulls == "last":
            raise source.error(
                "events are in order of rising time; leave out DESC and NULLS LAST", *order.at
            )
    frame = spec.frame
    counts = frame is not None and frame.unit == "rows"
    if len(spec.order) > (2 if counts else 1):
        raise source.error(
            "ORDER BY has the column of times alone, or with ROWS one more, which orders events of "
            "one time",
            *spec.order[-1].at,
        )
    tie = spec.order[1].by if len(spec.order) > 1 else None
    window = _window_of(frame, source)
    return Framed(spec.partition, spec.order[0].by, tie, window, spec)


def _window_of(frame: Frame | None, source: Source) -> Window:
    if frame is None:
        return Trailing(None)
    _check_ends(frame, source)
    read = _Reader(source, None)
    if frame.unit == "rows":
        return _rows(frame, read)
    start = None if frame.start.kind == "unbounded" else _distance(frame.start, read)
    delay = _distance(frame.end, read)
    if start is None:
        return read.made(frame, lambda: Trailing(None, exclude=frame.exclude, delay=delay))
    if start == delay:
        raise source.error(
            "this frame has events of one time alone, and a window has a length; write RANGE "
            "BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW",
            *frame.at,
        )
    if start < delay:
        raise source.error(
            f"this frame begins {duration_text(start)} before the event and ends "
            f"{duration_text(delay)} before it; the first end is the older one",
            *frame.at,
        )
    size = start - delay
    return read.made(frame, lambda: Trailing(size, exclude=frame.exclude, delay=delay))


def _check_ends(frame: Frame, source: Source) -> None:
    for bound in (frame.start, frame.end):
        if bound.way == "following" and bound.kind != "current":
            raise source.error(
                "FOLLOWING is not supported: a window ends at its event or before it; write "
                "BETWEEN … PRECEDING AND CURRENT ROW",
                *bound.at,
                ["PRECEDING", "CURRENT ROW"],
            )
    if frame.end.kind == "unbounded":
        raise source.error(
            "a frame cannot end with UNBOUNDED PRECEDING; write CURRENT ROW", *frame.end.at
        )


def _distance(bound: Bound, read: _Reader) -> int:
    """The distance from an end of a frame to the event, in microseconds."""
    if bound.kind == "current":
        return 0
    assert bound.amount is not None
    length: int = duration(read.length(bound.amount, "an end of a RANGE frame"))
    if length < 0:
        raise read.source.error("an end of a frame is not negative", *bound.amount.at)
    return length


def _rows(frame: Frame, read: _Reader) -> Window:
    if frame.exclude:
        raise read.source.error(
            "EXCLUDE is for RANGE frames; leave it out, or write RANGE BETWEEN INTERVAL …",
            *frame.at,
        )
    if frame.end.kind != "current":
        raise read.source.error(
            "a ROWS frame ends with CURRENT ROW", *frame.end.at, ["CURRENT ROW"]
        )
    if frame.start.kind == "unbounded":
        raise read.source.error(
            "a ROWS frame has a number of rows; for all since the beginning write RANGE BETWEEN "
            "UNBOUNDED PRECEDING AND CURRENT ROW",
            *frame.start.at,
        )
    if frame.start.kind == "current":
        return rows(1)
    amount = frame.start.amount
    if not isinstance(amount, Literal_) or not isinstance(amount.value, int) or amount.value < 0:
        assert amount is not None
        raise read.source.error(
            "a ROWS frame begins a whole number of rows before the event, as in ROWS BETWEEN 9 "
            "PRECEDING AND CURRENT ROW",
            *amount.at,
        )
    return rows(amount.value + 1)
