"""The kinds of window, and the questions that the rest of the code may ask of each.

    kind      windows                          what they depend on
    aligned   sliding, tumbling, cumulate,     the clock alone: the same spans for every key
              and those of calendars
    driven    trailing, lifetime, rows,        a key's events: each one may evict, and may fire
              delta, punctuated, policies,
              window(keep, every)
    merging   session                          the gaps between a key's events

Aligned windows are numbered in order of time, so that both their starts and their ends rise with
the number (or stay the same).  So the windows that hold a time are neighbours, from `first(time)`
to `last(time)`, and all windows before `first(watermark)` are closed.  They repeat by a `Cycle`, on
a `Clock` by which they are regular: UTC, or the calendar of a time zone.

Driven windows make two choices: what is kept when an event comes, and which events fire.  Each is
a measure: a span of time, a number of rows, the change of a column, a mark in the stream; what is
kept may also be a policy's to say.  Which events fire is measured from the last one that fired, or
from the key's first event: so many rows, so much change.  An event that fires has a row of its own
in the result, with all its columns, over what is kept of its key just then.  A key's events count
in order of time, those of one time in order of `tie` or arrival.

Merging windows say how far an event reaches: the spans of events that touch are one window.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, overload

__all__ = [
    "EVER",
    "LATEST",
    "PLAIN",
    "UTC",
    "Aligned",
    "Arithmetic",
    "Change",
    "Clock",
    "Count",
    "Cycle",
    "Driven",
    "Exclude",
    "Fires",
    "Keeps",
    "Kind",
    "Mark",
    "Merging",
    "Rule",
    "Sized",
    "Span",
    "Ticked",
    "Window",
]

#: Times and lengths beyond this (more than 36,000 years) are refused, so that no sum of three
#: leaves int64.
LATEST = 2**60
#: As far back as a lifetime reaches: before all times, from any.
EVER = 2**61

Kind = Literal["aligned", "driven", "merging"]


class Clock:
    """What windows are regular by.  A clock turns times into readings, which rise with the time:
    windows are of one length in readings, also where they are not in time.  This one, UTC, shows
    times as they are; that of a calendar (`calendars`) counts as much for each day, or month.

    >>> UTC.reading(5), UTC.time(5)
    (5, 5)
    """

    #: Times up to the first and from the second on cannot be used.
    limits: tuple[int, int] = (-LATEST, LATEST)
    #: What to say of them.
    beyond = "out of range"

    def reading(self, time: Any) -> Any:
        """What the clock shows at a time, or at each in an array."""
        return time

    def time(self, reading: Any) -> Any:
        """When the clock shows this."""
        return reading

    def around(self, time: Any, on: Arithmetic) -> tuple[Any, Any]:
        """Readings that what the clock shows at a time lies between, both ends in; close to it, and
        simple enough for Spark's columns."""
        return time, time


class Window(ABC):
    """A window: a small frozen dataclass that validates itself.

    >>> import sash
    >>> sash.sliding("1 hour", "1 minute").kind
    'aligned'
    """

    kind: ClassVar[Kind]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the window reads, besides the time."""
        return ()

    @property
    def clock(self) -> Clock:
        """What the window is regular by."""
        return UTC


class Sized(Window):
    """Windows that are all as long, and that there are of any other length too, with the same ends
    (`Aggregate.over`).  All of a key since the beginning is a length, None, as well.

    >>> import sash
    >>> window = sash.trailing(10)
    >>> window.length, window.of_length(3)
    (10, trailing('3 microseconds'))
    """

    @property
    @abstractmethod
    def length(self) -> int | None:
        """How long each window is, in microseconds."""

    @abstractmethod
    def of_length(self, length: int | None) -> Window:
        """The windows of another length that end where these do.  Aligned ones have the same
        numbers."""


@dataclass(frozen=True)
class Arithmetic:
    """The operations that windows and edges are numbered with, so that one formula serves
    integers, numpy arrays and Spark's columns.  Sums and products are Python's own operators."""

    div: Callable[[Any, int], Any]  # floor division
    most: Callable[[Any, int], Any]  # the greater of two
    at_least: Callable[[Any, int], Any]  # 1 where a >= b, else 0


#: The clock of all windows but those of calendars.
UTC = Clock()

#: For integers and numpy arrays.
PLAIN = Arithmetic(
    div=lambda a, b: a // b,
    most=lambda a, b: a + (b - a) * (a < b),
    at_least=lambda a, b: (a >= b) * 1,
)


@dataclass(frozen=True)
class Cycle:
    """Windows that repeat with the clock; times here are what it shows.  The windows of a cycle
    start together when it begins; the first lasts `shortest`, each further one a `step` more, the
    last `longest`.

        length 4, shortest 2, step 2, longest 6
        0    2    4    6    8    10
        [----)                            window 0
        [---------)                       window 1
        [--------------)                  window 2
                  [----)                  window 3
                  [---------)             window 4

    Cycles begin at `offset` and at whole multiples of `length` from there.

    >>> three = Cycle(length=4, shortest=2, step=2, longest=6)
    >>> [(three.start(n), three.end(n)) for n in range(4)]
    [(0, 2), (0, 4), (0, 6), (4, 6)]
    >>> three.first(5), three.last(5)
    (2, 5)
    """

    length: int
    shortest: int
    longest: int
    step: int = 1
    offset: int = 0

    @property
    def windows(self) -> int:
        """The number of windows in a cycle."""
        return (self.longest - self.shortest) // self.step + 1

    def start(self, number: Any, on: Arithmetic = PLAIN) -> Any:
        """When a window starts."""
        if self.windows > 1:
            number = on.div(number, self.windows)
        made = number * self.length
        made += self.offset  # into an array that is not needed any more
        return made

    def end(self, number: Any, on: Arithmetic = PLAIN) -> Any:
        """When a window ends."""
        if self.windows == 1:
            made = number * self.length
            made += self.offset + self.longest
            return made
        cycle = on.div(number, self.windows)
        within = number - cycle * self.windows
        return cycle * self.length + within * self.step + (self.offset + self.shortest)

    def first(self, time: Any, on: Arithmetic = PLAIN) -> Any:
        """The first window that ends after a time."""
        into = time - self.offset
        cycle = on.div(into - self.longest, self.length) + 1
        if self.windows == 1:
            return cycle
        within = on.div(into - cycle * self.length - self.shortest, self.step) + 1
        return cycle * self.windows + on.most(within, 0)

    def last(self, time: Any, on: Arithmetic = PLAIN) -> Any:
        """The last window that starts by a time."""
        return on.div(time - self.offset, self.length) * self.windows + (self.windows - 1)

    def among(self, low: Any, high: Any, on: Arithmetic) -> tuple[Any, Any]:
        """The first and the last of windows among which are all that hold a time from `low` to
        `high`; few more, if they are not all as long."""
        return Cycle.first(self, low, on), Cycle.last(self, high, on)


class Aligned(Window):
    """Windows that the clock alone decides.  Times are int64 microseconds; each question takes
    one time or number, or an array of them.

    >>> import sash
    >>> window = sash.sliding(10, 5)
    >>> [(window.start(n), window.end(n)) for n in range(window.first(12), window.last(12) + 1)]
    [(5, 15), (10, 20)]
    """

    kind: ClassVar[Kind] = "aligned"

    #: Whether windows that hold nothing are emitted, between two of a key that hold something;
    #: and how far, in microseconds, the end of the one and the start of the other may be apart.
    empty: Literal["zero"] | None = None
    idle: int | None = None

    @property
    @abstractmethod
    def cycle(self) -> Cycle:
        """How the windows repeat, in what their clock shows."""

    @overload
    def start(self, number: int) -> int: ...
    @overload
    def start(self, number: Any) -> Any: ...

    def start(self, number: Any) -> Any:
        """When a window starts."""
        return self.clock.time(self.cycle.start(number))

    @overload
    def end(self, number: int) -> int: ...
    @overload
    def end(self, number: Any) -> Any: ...

    def end(self, number: Any) -> Any:
        """When a window ends, and so the watermark that closes it."""
        return self.clock.time(self.cycle.end(number))

    @overload
    def first(self, time: int) -> int: ...
    @overload
    def first(self, time: Any) -> Any: ...

    def first(self, time: Any) -> Any:
        """The number of the first window that holds a time, which is the first that is still open
        when the watermark is there."""
        return self.cycle.first(self.clock.reading(time))

    @overload
    def last(self, time: int) -> int: ...
    @overload
    def last(self, time: Any) -> Any: ...

    def last(self, time: Any) -> Any:
        """The number of the last window that holds a time."""
        return self.cycle.last(self.clock.reading(time))


@dataclass(frozen=True)
class Span:
    """A measure by time: of an event at time t, the times from `t - older` up to `t - younger`,
    which is not included.  Without `older`, all times before."""

    older: int | None
    younger: int


@dataclass(frozen=True)
class Count:
    """A measure by rows: the last so many; every so many."""

    rows: int


@dataclass(frozen=True)
class Change:
    """A measure by the values of a column: those that differ by at most `by`; every change of at
    least `by`.  A null, or NaN, is no change."""

    column: str
    by: int | float


@dataclass(frozen=True)
class Mark:
    """A measure by a bool column: what has come since the last event that is marked; every event
    that is.  A null is no mark."""

    column: str


@dataclass(frozen=True, eq=False)
class Rule:
    """A measure by a window slide policy (`sash.policies`): what the policy lets stay."""

    policy: Any


Keeps: TypeAlias = Span | Count | Change | Mark | Rule
Fires: TypeAlias = Count | Change | Mark

#: What an event's window leaves out of the events at its own time, as SQL's EXCLUDE: the event
#: itself (CURRENT ROW), all of them (GROUP), all but itself (TIES).
Exclude: TypeAlias = Literal["row", "group", "ties"]


class Driven(Window):
    """Windows that a key's events decide.

    >>> import sash
    >>> window = sash.trailing(10)
    >>> window.kind, window.keeps, window.fires
    ('driven', Span(older=10, younger=-1), Count(rows=1))
    """

    kind: ClassVar[Kind] = "driven"

    @property
    @abstractmethod
    def keeps(self) -> Keeps:
        """What is kept when an event comes.  Where the window excludes something, events at the
        event's own time are not in it."""

    @property
    @abstractmethod
    def fires(self) -> Fires:
        """Which events fire."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are measured."""
        read = [m.column for m in (self.keeps, self.fires) if isinstance(m, Change | Mark)]
        return tuple(dict.fromkeys(read))

    @property
    def excluded(self) -> Exclude | None:
        """What is left out of the events at an event's own time."""
        return None

    def spans(self, times: Any) -> tuple[Any, Any]:
        """The start and end that the results of events at these times show.  None for the start
        stands for the time of the oldest event that each holds."""
        return None, times


class Ticked(Window):
    """Windows that events fill and the clock fires: at every tick, counted from 1970 in UTC, from
    the first one after a key's first event to the first after its last, where something is kept.
    They end at the tick, and hold what is kept of the events before it.

    >>> import sash
    >>> window = sash.window(keep=sash.rows(10), every="1 minute")
    >>> window.kind, window.keeps, window.tick
    ('driven', Count(rows=10), 60000000)
    """

    kind: ClassVar[Kind] = "driven"

    @property
    @abstractmethod
    def keeps(self) -> Count | Change | Mark:
        """What is kept when an event comes."""

    @property
    @abstractmethod
    def tick(self) -> int:
        """How far ticks are apart, in microseconds."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The column that is measured, if there is one."""
        return () if isinstance(self.keeps, Count) else (self.keeps.column,)


class Merging(Window):
    """Windows of events that are close to each other.

    >>> import sash
    >>> sash.session("30 minutes").kind
    'merging'
    """

    kind: ClassVar[Kind] = "merging"

    @property
    @abstractmethod
    def reach(self) -> int | str:
        """How far an event reaches: so many microseconds, or as many as a column says."""

    @property
    @abstractmethod
    def longest(self) -> int | None:
        """How long a window may be; an event that would make it longer begins another."""
