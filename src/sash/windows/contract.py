"""The kinds of window, and the methods that the rest of the code may call on each kind.

    kind      windows                          depends on
    aligned   sliding, tumbling, cumulate,     the clock alone: the same spans for every key
              and calendar windows
    driven    trailing, lifetime, rows,        a key's events: each one may evict, and may fire
              delta, punctuated, policies,
              window(keep, every)
    merging   session                          the gaps between a key's events

Aligned windows are numbered in order of time: both starts and ends rise with the number, or stay
the same.  So the windows that hold a time are neighbours, from `first(time)` to `last(time)`, and
all windows before `first(watermark)` are closed.  The windows repeat in a `Cycle`, on the `Clock`
in whose readings they are regular: UTC, or the calendar of a time zone.

A driven window makes two choices when an event comes: which events it keeps, and whether the event
fires.  A measure makes each choice: a span of time, a number of rows, the change of a column, or a
mark in the stream.  A policy may also choose which events stay.  For firing, rows and change count
from the event that fired last, or from the key's first event.  An event that fires gets a row of
its own in the result, with all its columns, aggregated over the events that the window then keeps
of its key.  A key's events are taken in order of time; events at one time in order of `tie`, or of
arrival.

In a merging window, each event covers a span; events whose spans touch are in one window.
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

#: sash refuses times and lengths beyond this (more than 36,000 years), so that no sum of three
#: overflows int64.
LATEST = 2**60
#: The length of a lifetime: longer than the distance between any two times.
EVER = 2**61

Kind = Literal["aligned", "driven", "merging"]


class Clock:
    """The clock on which windows are regular.  A clock turns times into readings, which rise with
    the time.  All windows have one length in readings, even where their lengths in time differ.
    The readings of this clock, UTC, are the times themselves; the clock of a calendar (`calendars`)
    gives each day, or each month, the same number of readings.

    >>> UTC.reading(5), UTC.time(5)
    (5, 5)
    """

    #: sash refuses times up to the first limit, and times from the second limit on.
    limits: tuple[int, int] = (-LATEST, LATEST)
    #: The message for such a time.
    beyond = "out of range"

    def reading(self, time: Any) -> Any:
        """The reading at a time, or at each time of an array."""
        return time

    def time(self, reading: Any) -> Any:
        """The time of a reading."""
        return reading

    def around(self, time: Any, on: Arithmetic) -> tuple[Any, Any]:
        """A lower and an upper bound of the reading at a time, both inclusive: close to the
        reading, and simple enough to compute on Spark's columns."""
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
        """The clock on which the windows are regular."""
        return UTC


class Sized(Window):
    """Windows of one length.  They can be made with any other length and the same ends, for
    `Aggregate.over`.  The length None means all of a key's events since the beginning.

    >>> import sash
    >>> window = sash.trailing(10)
    >>> window.length, window.of_length(3)
    (10, trailing('3 microseconds'))
    """

    @property
    @abstractmethod
    def length(self) -> int | None:
        """The length of each window, in microseconds."""

    @abstractmethod
    def of_length(self, length: int | None) -> Window:
        """The windows of another length with the same ends.  Aligned windows keep their
        numbers."""


@dataclass(frozen=True)
class Arithmetic:
    """The operations that number windows and edges, so that one formula works on integers, numpy
    arrays and Spark's columns.  Sums and products are Python's own operators."""

    div: Callable[[Any, int], Any]  # floor division
    most: Callable[[Any, int], Any]  # the greater of two
    at_least: Callable[[Any, int], Any]  # 1 where a >= b, else 0


#: The clock of all windows except calendar windows.
UTC = Clock()

#: For integers and numpy arrays.
PLAIN = Arithmetic(
    div=lambda a, b: a // b,
    most=lambda a, b: a + (b - a) * (a < b),
    at_least=lambda a, b: (a >= b) * 1,
)


@dataclass(frozen=True)
class Cycle:
    """Windows that repeat with the clock; all times here are readings of the clock.  The windows of
    a cycle start together when the cycle begins.  The first lasts `shortest`, each further window a
    `step` more, the last `longest`.

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
        """The start of a window."""
        if self.windows > 1:
            number = on.div(number, self.windows)
        made = number * self.length
        made += self.offset  # in place, as no one else uses this array
        return made

    def end(self, number: Any, on: Arithmetic = PLAIN) -> Any:
        """The end of a window."""
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
        """The last window that starts at or before a time."""
        return on.div(time - self.offset, self.length) * self.windows + (self.windows - 1)

    def among(self, low: Any, high: Any, on: Arithmetic) -> tuple[Any, Any]:
        """The numbers of two windows; every window that holds a time from `low` to `high` lies
        between them.  If windows differ in length, a few other windows do too."""
        return Cycle.first(self, low, on), Cycle.last(self, high, on)


class Aligned(Window):
    """Windows whose spans depend on the clock alone.  Times are int64 microseconds; each method
    takes one time or number, or an array of them.

    >>> import sash
    >>> window = sash.sliding(10, 5)
    >>> [(window.start(n), window.end(n)) for n in range(window.first(12), window.last(12) + 1)]
    [(5, 15), (10, 20)]
    """

    kind: ClassVar[Kind] = "aligned"

    #: "zero" emits windows without events too, between two windows of a key with events.  `idle`
    #: is the longest gap, in microseconds, from the end of the one to the start of the other.
    empty: Literal["zero"] | None = None
    idle: int | None = None

    @property
    @abstractmethod
    def cycle(self) -> Cycle:
        """How the windows repeat, in readings of their clock."""

    @overload
    def start(self, number: int) -> int: ...
    @overload
    def start(self, number: Any) -> Any: ...

    def start(self, number: Any) -> Any:
        """The start of a window."""
        return self.clock.time(self.cycle.start(number))

    @overload
    def end(self, number: int) -> int: ...
    @overload
    def end(self, number: Any) -> Any: ...

    def end(self, number: Any) -> Any:
        """The end of a window, which is also the watermark that closes the window."""
        return self.clock.time(self.cycle.end(number))

    @overload
    def first(self, time: int) -> int: ...
    @overload
    def first(self, time: Any) -> Any: ...

    def first(self, time: Any) -> Any:
        """The number of the first window that holds a time.  When the watermark is at that time,
        this is the first open window."""
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
    """A measure by time: for an event at time t, the times from `t - older` up to but not including
    `t - younger`.  If `older` is None, all times before `t - younger`."""

    older: int | None
    younger: int


@dataclass(frozen=True)
class Count:
    """A measure by rows: a window keeps the last `rows` events, or fires at every `rows`-th."""

    rows: int


@dataclass(frozen=True)
class Change:
    """A measure by the values of a column: a window keeps events whose values differ from the
    newest value by at most `by`, or fires at every change of at least `by`.  A null, or NaN, is no
    change."""

    column: str
    by: int | float


@dataclass(frozen=True)
class Mark:
    """A measure by a bool column, which marks events: a window keeps the events since the last
    marked event, or fires at every marked event.  A null is no mark."""

    column: str


@dataclass(frozen=True, eq=False)
class Rule:
    """A measure by a window slide policy (`sash.policies`): the window keeps the events that the
    policy lets stay."""

    policy: Any


Keeps: TypeAlias = Span | Count | Change | Mark | Rule
Fires: TypeAlias = Count | Change | Mark

#: Which events at the event's own time its window leaves out, as SQL's EXCLUDE: the event itself
#: (CURRENT ROW), all of them (GROUP), all but the event itself (TIES).
Exclude: TypeAlias = Literal["row", "group", "ties"]


class Driven(Window):
    """Windows that depend on a key's events.

    >>> import sash
    >>> window = sash.trailing(10)
    >>> window.kind, window.keeps, window.fires
    ('driven', Span(older=10, younger=-1), Count(rows=1))
    """

    kind: ClassVar[Kind] = "driven"

    @property
    @abstractmethod
    def keeps(self) -> Keeps:
        """Which events the window keeps when an event comes.  If the window excludes something,
        these do not include the events at the event's own time."""

    @property
    @abstractmethod
    def fires(self) -> Fires:
        """Which events fire."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the measures read."""
        read = [m.column for m in (self.keeps, self.fires) if isinstance(m, Change | Mark)]
        return tuple(dict.fromkeys(read))

    @property
    def excluded(self) -> Exclude | None:
        """Which events at an event's own time the window leaves out."""
        return None

    def spans(self, times: Any) -> tuple[Any, Any]:
        """The `window_start` and `window_end` of the rows of events at these times.  A start of
        None means the time of the oldest event in each window."""
        return None, times


class Ticked(Window):
    """Windows that events fill and the clock fires.  Ticks are counted from 1970 in UTC.  A key's
    windows fire from the first tick after the key's first event to the first tick after its last
    event, at each tick at which the window keeps an event.  A window ends at its tick, and holds
    the events before the tick that the measure keeps.

    >>> import sash
    >>> window = sash.window(keep=sash.rows(10), every="1 minute")
    >>> window.kind, window.keeps, window.tick
    ('driven', Count(rows=10), 60000000)
    """

    kind: ClassVar[Kind] = "driven"

    @property
    @abstractmethod
    def keeps(self) -> Count | Change | Mark:
        """Which events the window keeps when an event comes."""

    @property
    @abstractmethod
    def tick(self) -> int:
        """The time between two ticks, in microseconds."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The column that the measure reads, if there is one."""
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
        """How long a span each event covers: microseconds, or the column that holds them."""

    @property
    @abstractmethod
    def longest(self) -> int | None:
        """The longest that a window may be; an event that would make it longer begins another."""
