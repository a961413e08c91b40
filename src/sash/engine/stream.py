"""A query over a stream that is fed batch by batch: `Query.stream`.

This module has what all streams share: settings, intake, late rows, counts, turns and snapshots.
Each class of streams turns batches into results in its own way: `aligned_stream` for windows that
are aligned to the clock, `event_stream` for windows that events make.

Stream time is the largest event time so far, over all keys; the watermark is stream time less the
lateness, and moves after each batch.  A window is closed when it ends by the watermark.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NoReturn, Self

import pyarrow as pa

from ..kernels.columns import to_micros
from ..query.names import check_column
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..query.signatures import Mode
from ..query.types import value_type
from ..stores.contract import Store
from ..stores.journal import Journal
from ..tables.arrow import kind_of, plain_type
from ..tables.intake import chosen, given_table, known_names, lacks_types, with_names
from ..tables.whole_times import warn_of_whole
from ..windows import Driven, Merging, Ticked, Trailing, duration, duration_text
from ..windows.contract import LATEST
from .delays import no_delays
from .identity import fingerprint
from .late import LATE_LIMIT, LateOutput, check_names
from .lifecycle import UNBOUNDED, Progress, latest
from .pending import Pending
from .results import check_typed
from .supported import Asked, Place, check
from .turns import Turns, in_turn, in_turn_as_it_is

if TYPE_CHECKING:
    from ..explain import Explanation
    from .shared_stream import SharedStream

__all__ = ["Stream"]

#: The metadata field of a schema that keeps, for snapshots, the columns that only `where` reads.
_OPTIONAL = b"sash optional"


class Stream(ABC):
    """A query over a stream; made by `Query.stream`.

    `push` takes a batch and returns the windows that are due: in `final` mode each window once,
    when it closes; in `live` mode when stream time passes its end, and again, with a higher
    `revision`, whenever a late event changes it.  With `early`, each push also emits the window
    that ends next, as it stands after the batch.  An event counts in each of its windows that is
    not closed.  If the event misses some or all of its windows, or cannot be used, its row is in
    `late`.

    Where events make the windows, an event before the watermark is late.  Only with sessions of one
    gap and no `max_size`, an event whose gap reaches the watermark can still join an open session.
    An event's row is due when the watermark has passed the event.  A tick is due when the watermark
    has reached it; after a gap, the watermark must also have passed an event behind the gap.  A
    session is due when the watermark has passed its end.  In live mode a session is emitted at
    once, and again when an event joins it.  A session's key and start identify it; if its events
    become part of a session with another start, a row with `deleted` true withdraws it.

    `schema` has the types of the columns; without it, the first batch decides.  The stream keeps
    at most `keep_late` late rows (None: all) until `take_late` takes them.

    Threads can share a stream: each call waits for its turn.  If a call breaks off, by Ctrl-C
    say, it has changed nothing, or the stream refuses further use.

    >>> import sash
    >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
    >>> s = q.stream(lateness=5)
    >>> s.push([{"t": 3}, {"t": 12}]).num_rows  # the watermark is 7
    0
    >>> s.push([{"t": 4}, {"t": 17}]).to_pylist()
    [{'window_start': 0, 'window_end': 10, 'n': 2}]
    >>> s.push({"t": 5}).num_rows, s.late["missed_start"].to_pylist()
    (0, [0])
    >>> s
    <sash.Stream of tumbling('10 microseconds'), final, lateness 5 microseconds; \
rows: 5 in, 1 late, 1 out; stream time 17>
    >>> s.close().to_pylist()
    [{'window_start': 10, 'window_end': 20, 'n': 2}]
    """

    _place: Place = "Query.stream"
    _store: Store | None = None  # where the state is, if it is not in memory
    _journal: Journal | None = None  # the same, if the stream is synced with it
    _prefix = b""  # how the keys of its records begin there
    _beside = ""  # what the stream's owner keeps with it
    _pending: Pending | None = None  # events that are noted, for streams that put some off

    def __new__(cls, *_: Any, **__: Any) -> Self:
        if cls is Stream:
            raise TypeError(
                "a stream is made by its query: write query.stream(lateness=…) instead of "
                "sash.Stream(query, lateness=…)"
            )
        return super().__new__(cls)

    def __init__(
        self,
        query: Query,
        *,
        lateness: Any = 0,
        mode: Mode = "final",
        early: bool = False,
        schema: pa.Schema | None = None,
        keep_late: int | None = LATE_LIMIT,
    ) -> None:
        if mode not in ("final", "live"):
            raise ValueError(f"mode is 'final' or 'live', not {mode!r}")
        self._query, self._mode, self._early = query, mode, bool(early)
        check(self._place, Asked(query, mode=mode, early=self._early))
        self._lateness = duration(lateness, "the lateness")
        if not 0 <= self._lateness <= LATEST:
            raise ValueError(
                "the lateness is how long the stream waits, from 0 seconds to 36,000 years, not "
                f"{duration_text(self._lateness)}"
            )
        self._fingerprint = fingerprint(query)  # now, as its functions may change what they use
        self._turns = Turns()
        self._plan: Plan | None = None
        self._progress = Progress()
        self._delays = no_delays()
        self._closed = False
        self._kind = ""  # the library of the last batch's table
        self._late = LateOutput(keep_late)
        self._optional: dict[str, pa.DataType] = {}  # columns that only `where` reads
        if schema is not None:
            if not isinstance(schema, pa.Schema):
                raise TypeError(
                    "schema is a pyarrow.Schema such as pyarrow.schema({'t': pyarrow.int64()}), "
                    f"not {schema!r}"
                )
            self._set_up(pa.schema([f.with_type(plain_type(f.type)) for f in schema]))

    def __repr__(self) -> str:
        from .described import stream_line

        return stream_line(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a stream cannot be pickled; save it with to_bytes(), and restore it with "
            "sash.Stream.from_bytes(data, query)"
        )

    def __copy__(self) -> Stream:
        """A copy with its own state."""
        return deepcopy(self)

    @property
    def time(self) -> int | None:
        """Stream time, in microseconds: the largest event time so far."""
        with self._turns.between():
            return latest(self._progress.stream_time, self._noted_time())

    @property
    def watermark(self) -> int | None:
        """Windows that end by this time, in microseconds, are closed."""
        with self._turns.between():
            newest = self._noted_time()
            noted = None if newest is None else newest - self._lateness
            return latest(self._progress.watermark, noted)

    def _noted_time(self) -> int | None:
        """The newest time of the noted events; None if there are none."""
        return self._pending.newest if self._pending is not None and self._pending.count else None

    def __deepcopy__(self, memo: Any) -> Stream:
        return self._copied(memo)

    @in_turn
    def _copied(self, memo: dict[int, Any]) -> Stream:
        if self._journal is not None:
            raise TypeError(
                f"{self._journal!r} has one writer, so it cannot be copied; "
                "Stream.from_bytes(stream.to_bytes(), query) is a copy in memory"
            )
        made = memo[id(self)] = object.__new__(type(self))
        vars(made).update({name: deepcopy(value, memo) for name, value in vars(self).items()})
        return made

    @property
    def late(self) -> pa.Table:
        """Rows that missed windows or could not be used.  Besides its own columns, a row has the
        `reason`, the number of windows that it `missed`, and their span, from `missed_start` to
        `missed_end`.  The stream keeps these rows until `take_late` takes them.  If there are more
        than `keep_late`, it drops the oldest, with a warning; `late_dropped` counts them."""
        return self._late_rows()

    @in_turn
    def _late_rows(self) -> pa.Table:
        return self._late.table(self._plan and self._plan.time_type)

    @in_turn
    def take_late(self) -> pa.Table:
        """Return the rows in `late`, and empty it."""
        self._late.table(self._plan and self._plan.time_type)
        self._turns.changing = True  # an error from here on would lose the rows
        return self._late.take(self._plan and self._plan.time_type)

    @property
    def late_dropped(self) -> int:
        """How many late rows the stream dropped unread, because there were more than
        `keep_late`."""
        return self._late.dropped

    @property
    def counts(self) -> dict[str, int]:
        """How many rows came since the start, how many of them are late, and how many rows the
        stream emitted.  `rows` counts rows that `where` let through or that could not be used.
        Each of them is `counted`, if it is in some window, or `late`, if it is in none.
        `partly_late` rows are counted, but missed other windows.  `emitted` counts the rows of
        results."""
        with self._turns.between():
            at = vars(self._progress)
            noted = self._pending.count if self._pending is not None else 0
            names = ("rows", "counted", "late", "partly_late", "emitted")
            return {n: at[n] + noted * (n in ("rows", "counted")) for n in names}

    @property
    def delays(self) -> list[int]:
        """A histogram of how late rows came: stream time at the start of the row's push, less the
        row's own time.  The first count is of rows that came in order; 24 buckets follow, up to 1
        second, 2, 4, …; the last one has no bound.  Rows that could not be used are left out.

        >>> import sash
        >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
        >>> s = q.stream()
        >>> for second in (10, 20, 18, 17):
        ...     _ = s.push({"t": second * 1_000_000})
        >>> s.delays[:4]
        [2, 0, 1, 1]
        """
        return self._counted_delays()

    @in_turn
    def _counted_delays(self) -> list[int]:
        return [int(many) for many in self._delays]

    @in_turn_as_it_is
    def push(self, batch: Any) -> Any:
        """Insert a batch (a table of any kind, an event as a dict, or several events), and return
        the windows that are then due, as the same kind of table.  The rows are in order of key and
        window; where events drive the windows, in the order in which the events came."""
        made = self._push(batch)
        if self._late.unsaid:
            self._turns.changing = False  # the change is complete; a warning may raise
            self._late.warn()
        return made

    @abstractmethod
    def _push(self, batch: Any) -> Any:
        """Insert a batch, and return the result of `push`."""

    @abstractmethod
    def _move(self, time: int) -> Any:
        """Move stream time and watermark to a time, and emit the windows that are then due."""

    @abstractmethod
    def _as_pushed(self, outcome: Any) -> Any:
        """Turn the outcome of a batch or a move into the kind of table that was pushed."""

    def _settle(self) -> None:  # noqa: B027 -- most put nothing off
        """Insert the noted events; they make nothing due."""

    def _taken(self, batch: Any) -> tuple[pa.Table, dict[int, str]] | None:
        """The rows of a batch that `where` lets through, and reasons by row for those that cannot
        be used.  The first batch with columns and types sets the stream up; a batch before it,
        without columns or without rows, gives None."""
        self._check_open()
        table, reasons = self._tabled(batch)
        check_names(table.column_names, self._late.added)
        whole = table.schema
        if self._plan is None and not len(whole):
            self._kind = kind_of(batch)
            return None
        if self._plan is None and not table.num_rows:
            for name in self._query.columns:
                check_column(name, whole.names, what="the batch")
            if lacks_types(table, self._query):
                self._kind = kind_of(batch)
                return None
        if self._query.where is not None:
            table, reasons = chosen(table, self._query.where, reasons)
        if self._plan is None:
            warn_of_whole(self._query, table, first=True)
            self._set_up(whole)
        self._kind = kind_of(batch)
        return table, reasons

    def _tabled(self, batch: Any) -> tuple[pa.Table, dict[int, str]]:
        """A batch as a table, and reasons by row for those that cannot be used."""
        known = self._schema if self._plan else None
        return given_table(batch, self._query, known, self._optional)

    @in_turn
    def advance(self, watermark: Any) -> Any:
        """Close all windows that end by a time, even if no event has reached it, and return the
        windows that are then due.  A time before the watermark changes nothing.

        >>> import sash
        >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
        >>> s = q.stream()
        >>> s.push({"t": 3}).num_rows, s.advance(10).num_rows
        (0, 1)
        """
        return self._advance(watermark)

    def _advance(self, watermark: Any) -> Any:
        self._check_open()
        at = to_micros(watermark)
        if not -LATEST < at < LATEST:
            raise ValueError(f"a watermark of {watermark} is out of range")
        return self._as_pushed(self._move(at))

    @in_turn
    def close(self) -> Any:
        """Close all windows, and return those that were not emitted; refuse pushes from now on."""
        return self._close()

    def _close(self) -> Any:
        self._check_open()
        outcome = self._move(UNBOUNDED)
        self._closed = True
        return self._as_pushed(outcome)

    @abstractmethod
    def query(
        self, key: Any = (), lo: Any = None, hi: Any = None, *, at: Any = None
    ) -> dict[str, Any]:
        """The values of one key (a tuple, if there are several key columns) over the times
        `[lo, hi)`, from the events that later windows need.  Where each event has a window of the
        time up to it (`trailing`, `lifetime`), the values as of the time `at`, which must not be
        before the watermark.

        If the order of events does not matter, a stream keeps one partial for a slice; then `lo`
        and `hi` must be times at which a window starts or ends.

        >>> import sash
        >>> q = sash.Query(
        ...     time="t", by=["k"], window=sash.sliding(30, 10), select={"n": sash.count()}
        ... )
        >>> s = q.stream()
        >>> s.push([{"t": 3, "k": "a"}, {"t": 12, "k": "a"}, {"t": 14, "k": "b"}]).num_rows
        1
        >>> s.query("a"), s.query("a", 10, 20), s.query("c")
        ({'n': 2}, {'n': 1}, {'n': 0})
        """

    def _as_given(self) -> Query:
        """The query that the user made the stream for."""
        return self._query

    @abstractmethod
    def state_size(self) -> dict[str, int]:
        """How many keys and slices the stream holds, and how many bytes they take."""

    @in_turn
    def explain(self, schema: Any = None, *, data: Any = None, batch: int = 1000) -> Explanation:
        """How the stream runs, why, and what it keeps and costs; see `sash.Explanation`.

        A stream that has seen no batch yet takes the types of the columns from `schema`, which may
        also be a table.  With `data`, `explain` pushes this sample into a new stream of the same
        kind, in batches of `batch` rows, and counts combines.

        >>> import sash
        >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
        >>> q.stream(lateness=5).explain().kept.entries
        2
        """
        from ..explain.streams import explain_stream

        known = schema if self._plan is None or schema is not None else self._plan.schema
        return explain_stream(
            self._as_given(),
            known,
            data,
            lateness=self._lateness,
            mode=self._mode,
            early=self._early,
            batch=batch,
            place=self._place,
        )

    @in_turn
    def to_bytes(self) -> bytes:
        """Write the whole stream as bytes, with a version and a checksum, for `from_bytes`."""
        from .snapshots import to_bytes

        return to_bytes(self)

    def shared(self, name: str) -> SharedStream:
        """Copy this stream into a shared stream, in which the query has this name; there, `add` and
        `remove` let more queries come and go.  Push further batches into that one instead.

        >>> import sash
        >>> n = {"n": sash.count()}
        >>> s = sash.Query(time="t", window=sash.sliding(20, 10), select=n).stream()
        >>> s.push([{"t": 12}, {"t": 14}]).num_rows
        0
        >>> both = s.shared("long")
        >>> both.add("short", sash.Query(time="t", window=sash.tumbling(10), select=n), "held")
        >>> {name: table["n"].to_pylist() for name, table in both.push({"t": 20}).items()}
        {'long': [2], 'short': [2]}
        """
        from .shared_start import shared_from

        return shared_from(self, name)

    @in_turn
    def sync(self) -> None:
        """Make all changes up to now durable, for a stream with a store.  After a kill or a
        failure of the machine, a process that opens the stream again continues from here.

        >>> import sash
        >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
        >>> store = sash.stores.memory()
        >>> s = q.stream(store=store, name="hits")
        >>> s.push([{"t": 3}, {"t": 4}]).num_rows
        0
        >>> s.sync()
        >>> s.push({"t": 5}).num_rows
        0
        >>> s.release()  # what was not synced is lost, as by a kill
        >>> q.stream(store=store, name="hits").close().to_pylist()
        [{'window_start': 0, 'window_end': 10, 'n': 2}]
        """
        from .stored import sync

        sync(self)

    def release(self) -> None:
        """Let another process, or another stream object of this process, open the stream in its
        store.  Changes since the last `sync` are lost, and this object cannot be used any more."""
        journal = self._journal
        if journal is not None and not journal.space.released:
            with self._turns.between():
                journal.space.release()
                self._turns.broken = f"{journal!r} was let go of by release(); open it again"

    @classmethod
    def from_bytes(cls, data: bytes, query: Query, trust: Sequence[str] = ()) -> Stream:
        """Restore a stream from the bytes of `to_bytes` and the same query.

        sash refuses another query, also if only a function of your own operator has changed, or
        code that the function uses.  If the operator's partials still mean the same, because you
        fixed its `combine`, say, name the aggregate in `trust`.

        >>> import sash
        >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
        >>> s = q.stream(lateness=5)
        >>> s.push([{"t": 3}, {"t": 12}]).num_rows
        0
        >>> Stream.from_bytes(s.to_bytes(), q).push({"t": 15}).to_pylist()
        [{'window_start': 0, 'window_end': 10, 'n': 1}]
        """
        from .snapshots import from_bytes

        return from_bytes(cls, data, query, trust)

    @classmethod
    def _for(cls, query: Query) -> type[Stream]:
        """The class of streams that runs a query."""
        if cls is not Stream:
            return cls
        from .aligned_stream import AlignedStream
        from .driven_stream import DrivenStream, TickStream
        from .session_stream import SessionStream
        from .sized_stream import SizedStream
        from .trailing_stream import TrailingStream

        window = query.window
        if isinstance(window, Trailing) and not window.excludes_some:
            return TrailingStream
        if isinstance(window, Driven):
            return DrivenStream
        if isinstance(window, Ticked):
            return TickStream
        if isinstance(window, Merging):
            return SessionStream
        return SizedStream if query.several else AlignedStream

    def _dump(self) -> list[bytes]:
        """Write the state as bytes."""
        if self._journal is not None:
            return [part for record in self._journal.scan() for part in record]
        self._turns.changing = True  # a dump renumbers keys, and labels values
        try:
            return self._dump_state()
        except Exception:  # an operator's own encode, say
            self._turns.changing = False
            raise

    @abstractmethod
    def _dump_state(self) -> list[bytes]:
        """Write a state in memory as bytes."""

    def _load(self, blobs: list[bytes]) -> None:
        """Restore the state from the bytes of `_dump`."""
        if self._journal is not None:
            self._journal.put_many(dict(zip(blobs[::2], blobs[1::2], strict=True)))
        else:
            self._load_state(blobs)

    @abstractmethod
    def _load_state(self, blobs: list[bytes]) -> None:
        """Restore a state in memory from the bytes of `_dump_state`."""

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("this stream is closed; make a new one with query.stream(…)")

    @abstractmethod
    def _set_up(self, schema: pa.Schema) -> None:
        """Bind the query to the types of its columns, and make the state."""

    def _planned(self, schema: pa.Schema) -> Plan:
        """Make the plan for a schema."""
        return make_plan(self._query, schema, labelled=True)

    def _tied(self, schema: pa.Schema) -> Plan:
        """Make and check the plan for a schema, and note the parts of the schema that the stream
        needs later."""
        query = self._query
        plan = self._planned(schema)
        check_typed(plan)
        check(self._place, Asked(query, plan, self._mode, self._early))
        read = {*query.by, *query.window.columns}
        read |= {c for a in query.select.values() for c in a.reads}
        self._only_time = None if query.time in read else query.time
        fields = [f.with_type(value_type(f.type)) for f in plan.schema]
        others = [f for f in schema if f.name not in plan.schema.names]
        kept_before = (schema.metadata or {}).get(_OPTIONAL)
        if kept_before is not None:  # from a snapshot
            others = list(pa.ipc.read_schema(pa.py_buffer(kept_before)))
        elif query.where is None:
            others = []
        self._optional = {f.name: f.type for f in others}
        kept = pa.schema(others).serialize().to_pybytes()
        made = pa.schema(fields, metadata={_OPTIONAL: kept} if others else None)
        self._schema = with_names(made, known_names(schema))
        return plan

    def _spill(self) -> None:
        """Write changes to the store if there are many; an error here has changed nothing."""
        if self._journal is not None:
            self._journal.spill()

    @abstractmethod
    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
