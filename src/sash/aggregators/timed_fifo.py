"""Times for in-order aggregators: an adapter.

    order      in order of time
    operator   whatever the aggregator takes
    time       as the aggregator's; finding a time: log2 n comparisons
    space      as the aggregator's, and at most 4n integers

A stream that comes in order needs no search tree: the times lie in a queue beside the
aggregator's own, and say how many elements leave.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..kernels.columns import Array, Table, read
from ..kernels.slots import CAPACITY, END, START
from ..kernels.spans import LARGE, MODERATE, Span, reserve
from ..operators.contract import Operator
from .guard import InUse, alone
from .in_order import FEW, MUCH, SMALLEST, InOrder
from .level_window import LevelWindow
from .snapshot import Copyable, open_bytes, seal
from .timed import LEAST, MANY, as_time, as_times, check_rows, keep, late

__all__ = ["Timed"]

#: At most so many words of the span are given back at once: 512 KiB take some 50 µs.
PIECE = 1 << 16


class Queue:
    """Times in order: appended at the end, dropped from the front, always in one piece.

    A long queue goes forward through a span: pages come before its end and are given back behind
    its start, and no time is moved until the span ends, after some thousand million times.  Each
    change gives back one piece at the most, because the pages behind a bulk eviction would delay it
    by milliseconds.

    >>> queue = Queue()
    >>> queue.extend(np.array([3, 5, 5, 8]))
    >>> queue.drop(1)
    >>> queue.times().tolist()
    [5, 5, 8]
    """

    def __init__(self) -> None:
        self._array = np.empty(SMALLEST, dtype=np.int64)
        self._cells = memoryview(self._array)  # type: ignore[arg-type]
        self._span: Span | None = None
        self._start = self._end = 0
        self._given = 0  # up to where pages of the span are given back
        self._full = SMALLEST  # before a time is added here, there is work to do: `_make_room`

    def __copy__(self) -> Queue:
        made = Queue()
        made.extend(self.times())
        return made

    def __len__(self) -> int:
        return self._end - self._start

    def times(self) -> Array:
        """All times; a view, good until the next change."""
        return self._array[self._start : self._end]

    def first(self) -> int:
        return self._cells[self._start]

    def last(self) -> int:
        return self._cells[self._end - 1]

    def append(self, time: int) -> None:
        """Add one time."""
        if self._end >= self._full:
            self._make_room(1)
        self._cells[self._end] = time
        self._end += 1

    def extend(self, times: Array) -> None:
        """Add times."""
        if self._end + len(times) > self._full:
            self._make_room(len(times))
        many = self._span is not None and times.nbytes >= LARGE
        if many:
            self._span.use_large_pages(True)  # type: ignore[union-attr]
        self._array[self._end : self._end + len(times)] = times
        if many:
            self._span.use_large_pages(False)  # type: ignore[union-attr]
        self._end += len(times)

    def undo(self, n: int) -> None:
        """Take back the n that were added last."""
        self._end -= n

    def drop(self, n: int) -> None:
        """Drop the n oldest.  Later changes give back much memory, not this one."""
        self._start += n
        if self._span is not None:
            if self._start - self._given > MUCH:
                self._give_back(self._span)
        elif 4 * len(self) < len(self._array) > SMALLEST:
            if n > FEW and len(self._array) > MUCH:
                self._full = 0
            else:
                self._move(len(self))

    def _give_back(self, span: Span) -> None:
        """Give back a piece behind the start.  If more is left, the next change goes on."""
        self._given = span.give_back(self._given, min(self._start, self._given + PIECE))
        self._full = 0 if self._start - self._given > MUCH else len(self._array)

    def _make_room(self, n: int) -> None:
        """Make room for n more times, after giving back what is owed."""
        if self._span is not None and not self._full:
            self._give_back(self._span)
        if self._span is None or self._end + n > len(self._array):
            self._move(len(self) + n)

    def _move(self, room: int) -> None:
        """Move to the front of a span, or of an array in which at most half of this room is in use,
        so that the next move is as many changes away as this one costs."""
        times, room = self.times(), max(2 * room, SMALLEST)
        span = reserve(8 * room) if 8 * room > MODERATE else None
        array = np.empty(room, dtype=np.int64) if span is None else span.words(span.size // 8)
        assert array is not None
        array[: len(times)] = times
        cells = memoryview(array)  # type: ignore[arg-type]
        made = {"_array": array, "_cells": cells, "_span": span, "_given": 0}
        # in one step, whatever interrupts it
        vars(self).update(made, _start=0, _end=len(times), _full=len(array))


class Timed(Copyable):
    """An in-order aggregator with times; `Timed(Amta(…))` evicts any number of them in O(log n).

    A time is an integer, a datetime or a numpy datetime64.  Values of one time stay elements of
    their own; they leave together.  Values must come in order of time, and times leave
    from the oldest on: `Fiba` has no such limits.

    >>> from sash.aggregators import DabaLite
    >>> from sash.operators import concat
    >>> window = Timed(DabaLite(concat))
    >>> for time, value in [(1, "a"), (2, "b"), (2, "c"), (7, "d")]:
    ...     window.insert(time, value)
    >>> window.bulk_evict(1)
    >>> window.query(), len(window), window.oldest(), window.youngest()
    ('bcd', 3, 2, 7)
    >>> Timed(DabaLite(concat)).slide([1, 2, 4, 5], ["a", "b", "c", "d"], span=2)
    ['a', 'ab', 'bc', 'cd']
    """

    def __init__(self, fifo: InOrder) -> None:
        if not isinstance(fifo, InOrder):
            raise TypeError(
                f"Timed gives times to an in-order aggregator, such as DabaLite(operator), and "
                f"not to {fifo!r}"
            )
        if isinstance(fifo, LevelWindow) and fifo.policy is not None:
            raise ValueError(
                f"times and {fifo.policy!r} would both say what leaves; use the window without "
                "Timed, with times in a column of their own and sash.policies.at_most_span"
            )
        if len(fifo):
            raise ValueError(f"{fifo!r} holds values without times: give an empty one")
        self._fifo = fifo
        self._queue = Queue()

    @property
    def fifo(self) -> InOrder:
        """The in-order aggregator; change it only through its times."""
        return self._fifo

    @property
    def operator(self) -> Operator:
        """The operator, tied to types if it is."""
        return self._fifo.operator

    @alone
    def insert(self, time: Any, value: Any) -> None:
        """Add a value at a time that is not older than the youngest."""
        t, fifo, queue = as_time(time), self._fifo, self._queue
        if len(queue) and t < queue.last():
            raise late(type(self), t, queue.last())
        self._changing = True
        queue.append(t)
        try:
            fifo.insert(value)
        except BaseException:
            queue.undo(len(queue) - fifo._length())
            self._changing = False
            raise
        self._changing = False

    @alone
    def evict(self, time: Any) -> None:
        """Drop the oldest time; a time that is not there is no error."""
        t, queue = as_time(time), self._queue
        if not len(queue) or t < queue.first():
            return
        if t == queue.first():
            self._bulk_evict(t)
            return
        times = queue.times()
        at = int(np.searchsorted(times, t))
        if at < len(times) and times[at] == t:
            raise ValueError(
                f"{type(self).__name__} lets go of the oldest time only, which is "
                f"{queue.first()}, and not of {t}; use Reactive or Fiba, which drop any time"
            )

    @alone
    def query(self) -> Any:
        """The answer over the whole window."""
        return self._fifo.query()

    @alone
    def bulk_insert(self, times: Any, values: Any) -> None:
        """Add values in order of time."""
        made, table = self._read(times, values)
        limits = np.full(table.rows, LEAST)
        self._fifo._alone(self._run, made, table, limits, MANY, answers=0)

    @alone
    def bulk_evict(self, time: Any) -> None:
        """Drop all times up to and including this one."""
        self._bulk_evict(as_time(time))

    def _bulk_evict(self, time: int) -> None:
        fifo, queue = self._fifo, self._queue
        leave = int(np.searchsorted(queue.times(), time, side="right"))
        self._changing = True
        try:
            fifo._alone(fifo._leave, leave)
        finally:
            queue.drop(len(queue) - fifo._length())
            self._changing = False

    @alone
    def oldest(self) -> int | None:
        """The oldest time, None if there is none."""
        return self._queue.first() if len(self._queue) else None

    @alone
    def youngest(self) -> int | None:
        """The youngest time, None if there is none."""
        return self._youngest()

    def _youngest(self) -> int | None:
        return self._queue.last() if len(self._queue) else None

    @alone
    def __len__(self) -> int:
        return len(self._queue)

    @alone
    def slide(self, times: Any, values: Any, *, span: Any = None, count: int | None = None) -> Any:
        """Insert each value in turn and answer after each, over the values that are at most `span`
        older than it, or over the youngest `count` values.

        Answers come back as the kind of container that the values came in.
        """
        made, table = self._read(times, values)
        limits, most = keep(made, span, count)
        return self._fifo._alone(self._run, made, table, limits, most, answers=1)

    def _read(self, times: Any, values: Any) -> tuple[Array, Table]:
        """Rows to insert, checked before anything is done with them."""
        made, table = as_times(times), read(values, len(self._fifo._given.skips))
        check_rows(type(self), made, table, self._youngest())
        return made, table

    def _run(self, times: Array, table: Table, limits: Array, most: int, *, answers: int) -> Any:
        """Take the aggregator through rows, with the times in step whatever happens."""
        fifo, queue, rows = self._fifo, self._queue, table.rows
        fifo._tie(table)
        if not answers:
            fifo._reserve(len(queue) + rows)
        core = fifo._core
        start, end = core.get(START), core.get(END)
        self._changing = True
        queue.extend(times)
        held = queue.times()
        if rows:  # none of those that stay is looked at, but for the first
            leave = max(int(np.searchsorted(held, limits[-1])), len(held) - most)
            held = held[: 1 + leave]
        row = 0
        with core.call(rows) as call:
            try:
                columns, outputs = call.columns(table), call.outputs(rows if answers else 0)
                limit = call.integers(limits)
                while row < rows:
                    handle = call.integers(held[core.get(START) - start :])
                    row = core.run.slide_by(
                        core.m, columns, outputs, row, rows, handle, limit, most, answers
                    )  # fmt: skip
                    if row < rows:
                        fifo._resize(fifo._larger(core.get(CAPACITY)))
            except OverflowError as error:
                raise call.at_row(error, core.get(END) - end - 1) from None
            finally:
                queue.undo(rows - (core.get(END) - end))
                queue.drop(core.get(START) - start)
                self._changing = False
                fifo._shrink()
            return call.answers(table.kind) if answers else None

    def _intact(self, error: BaseException) -> bool:
        fifo = self._fifo  # if it is in use, then by another call, or it broke off
        return not fifo._broken and (isinstance(error, InUse) or hasattr(fifo, "_free"))

    def _why(self, error: BaseException) -> str:
        return self._fifo._broken or (
            f"{type(error).__name__} came in the middle of a change, and the times and values of "
            "this window are not sound any more: make a new one, or restore it from its bytes"
        )

    def _check(self) -> None:
        """Raise AssertionError if the aggregator or the times are not as they must be."""
        self._fifo._check()
        times = self._queue.times()
        assert len(times) == len(self._fifo), "not as many times as values"
        assert (times[:-1] <= times[1:]).all(), "times are not in order"
        queue = self._queue
        if queue._span is not None:
            behind = queue._start - queue._given
            assert behind <= MUCH or not queue._full, "pages were not given back"
        else:
            assert len(queue._array) <= max(4 * len(times), SMALLEST) or not queue._full, (
                "memory was not given back"
            )

    @alone
    def to_bytes(self) -> bytes:
        """The whole window as bytes, with a version and a checksum."""
        times = self._queue.times().astype("<i8").tobytes()
        head = [type(self).__name__, type(self._fifo).__name__, str(len(self._queue))]
        return seal(head, times + self._fifo.to_bytes())

    @classmethod
    def from_bytes(cls, data: bytes, fifo: InOrder) -> Self:
        """The window again, from what `to_bytes` gave and an empty aggregator like its own."""
        said, body = open_bytes(data)
        made = cls(fifo)
        wanted = [cls.__name__, type(fifo).__name__]
        if said[:2] != wanted:
            raise ValueError(
                f"these bytes hold a {said[0]} of {said[1]}; they cannot become a "
                f"{wanted[0]} of {wanted[1]}"
            )
        size = 8 * int(said[2])
        made._fifo = type(fifo).from_bytes(body[size:], fifo._given)
        made._fifo._keep_room(fifo._floor)
        made._queue.extend(np.frombuffer(body[:size], dtype="<i8"))
        return made

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._fifo!r}>"
