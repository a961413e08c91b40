"""Several queries over a stream that is fed batch by batch: `Shared.stream`.

batch ─→ members: bundles of queries that share slices, and others one by one
      ─→ a result for each query
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

import pyarrow as pa

from ..query.query import Query
from ..query.shared import Shared, check_queries
from ..query.signatures import Mode
from ..stores.journal import Journal
from ..tables.arrow import as_given, kind_of
from . import oracle
from .asked import refuse_at
from .bundle_stream import BundleStream
from .bundles import Bundle, bundled
from .failures import for_query
from .identity import fingerprint
from .late import LATE_LIMIT, LateOutput
from .members import Member, bundles_of, seen, sharing
from .shared_intake import check_fits, read_once
from .shared_late import QUERIES, NamedLate, check_no_queries
from .shared_snapshots import from_shared_bytes, shared_bytes
from .stream import Stream
from .turns import Turns, in_turn

if TYPE_CHECKING:
    from ..explain.shared import SharedExplanation

__all__ = ["SharedStream"]

#: Which events an added query sees: those from now on, or also those that the stream holds.
Since: TypeAlias = Literal["now", "held"]


class SharedStream:
    """Several queries over one stream; made by `Shared.stream`.

    `push`, `advance` and `close` return a dict: for each query, the result that its own stream
    would return.  Queries that share slices keep one copy of them, and insert an event once.  In
    `late`, a row has the names of the `queries` whose windows it missed.  If one of the queries
    that share slices cannot use a row, none of them uses it.  The tables that one call returns may
    share memory, so the table of one query may keep the rows of all queries alive.  If you keep
    the tables of a few queries for long, or pickle them, copy them first, with
    `table.take(list(range(len(table))))`, say.

    >>> import sash
    >>> n = {"n": sash.count()}
    >>> fast = sash.Query(time="t", window=sash.tumbling(10), select=n)
    >>> slow = sash.Query(time="t", window=sash.tumbling(20), select=n)
    >>> s = sash.share({"fast": fast, "slow": slow}).stream()
    >>> made = s.push([{"t": 3}, {"t": 12}])
    >>> made["fast"].to_pylist(), made["slow"].num_rows
    ([{'window_start': 0, 'window_end': 10, 'n': 1}], 0)
    >>> s.push({"t": 4})["fast"].num_rows, s.late["queries"].to_pylist()
    (0, [['fast']])
    >>> s.close()["slow"].to_pylist()
    [{'window_start': 0, 'window_end': 20, 'n': 3}]
    """

    _journal: Journal | None = None  # the store's records, if the state is not in memory

    def __init__(
        self,
        shared: Shared,
        *,
        lateness: Any = 0,
        mode: Mode = "final",
        early: bool = False,
        schema: pa.Schema | None = None,
        keep_late: int | None = LATE_LIMIT,
    ) -> None:
        if not isinstance(shared, Shared):
            raise TypeError(f"a shared stream runs what sash.share gave, not {shared!r}")
        self._queries = dict(shared.queries)
        self._fingerprints = {name: fingerprint(q) for name, q in self._queries.items()}
        self._late = LateOutput(keep_late)
        self._turns = Turns()
        self._closed = False
        self._removed: dict[str, Query] = {}  # removed queries whose partials are still kept
        self._settings: dict[str, Any] = {"lateness": lateness, "mode": mode, "early": early}
        self._schema = schema
        self._members: list[Member] = []
        for bundle in _bundles(shared):
            self._members.append(self._member(bundle, schema))

    def _member(self, bundle: Bundle, schema: pa.Schema | None) -> Member:
        """Make the stream of a bundle."""
        late = NamedLate(self._late, bundle.names)
        if bundle.composite is not None and not oracle.asked_for():
            stream: Stream = self._started(
                BundleStream, bundle, late=late, schema=schema, **self._settings
            )
            return Member(bundle.names, stream)
        ((name, query),) = bundle.queries.items()
        made = oracle.OracleStream if oracle.asked_for() else Stream
        with for_query(name):
            stream = self._started(made._for(query), query, schema=schema, **self._settings)
        stream._late = late
        return Member(bundle.names, stream)

    def _started(self, kind: Any, *given: Any, **more: Any) -> Any:
        """Make a member's stream, in memory or over its records in the store."""
        if self._journal is None:
            return kind(*given, **more)
        from .stored_shared import member_stream

        return member_stream(kind, self._journal, len(self._members), *given, **more)

    def __repr__(self) -> str:
        from .described import shared_line

        return shared_line(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a stream cannot be pickled; save it with to_bytes(), and restore it with "
            "sash.SharedStream.from_bytes(data, shared)"
        )

    def __copy__(self) -> SharedStream:
        """A copy with its own state."""
        return deepcopy(self)

    def __deepcopy__(self, memo: Any) -> SharedStream:
        return self._copied(memo)

    @in_turn
    def _copied(self, memo: dict[int, Any]) -> SharedStream:
        self._check_in_memory("copied", "open its store under another name instead")
        made = memo[id(self)] = object.__new__(type(self))
        vars(made).update({name: deepcopy(value, memo) for name, value in vars(self).items()})
        return made

    def _settle(self) -> None:
        """Do nothing: each member inserts its own noted events."""

    @property
    def queries(self) -> Mapping[str, Query]:
        """The queries, by name."""
        return dict(self._queries)

    @property
    def time(self) -> int | None:
        """Stream time, in microseconds: the largest event time so far, over all queries."""
        with self._turns.between():
            return max((t for m in self._members if (t := m.stream.time) is not None), default=None)

    @property
    def watermark(self) -> int | None:
        """Windows of all queries that end by this time, in microseconds, are closed.  If conditions
        leave some queries behind, this is the earliest watermark of all queries."""
        with self._turns.between():
            each = [member.stream.watermark for member in self._members]
        return None if None in each else min(t for t in each if t is not None)

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """The counts of each query; see `Stream.counts`."""
        made: dict[str, dict[str, int]] = {}
        with self._turns.between():
            for member in self._members:
                made |= member.counts()
            return {name: made[name] for name in self._queries}

    @property
    def delays(self) -> dict[str, list[int]]:
        """A histogram of how late the rows of each query came; see `Stream.delays`."""
        with self._turns.between():
            each = {name: m.stream.delays for m in self._members for name in m.names}
            return {name: each[name] for name in self._queries}

    @property
    def late(self) -> pa.Table:
        """Rows that missed windows or could not be used, as in `Stream.late`, with the names of the
        `queries` for which they are late.  If a row missed different windows of several queries,
        it is here several times."""
        return self._late_rows()

    @in_turn
    def _late_rows(self) -> pa.Table:
        return self._late_table()

    def _late_table(self) -> pa.Table:
        made = self._late.table(self._time_type())
        if QUERIES not in made.column_names:
            made = made.append_column(QUERIES, pa.array([], pa.list_(pa.string())))
        return made

    def _time_type(self) -> pa.DataType | None:
        plans = (member.stream._plan for member in self._members)
        return next((plan.time_type for plan in plans if plan is not None), None)

    @in_turn
    def take_late(self) -> pa.Table:
        """Return the rows in `late`, and empty it."""
        made = self._late_table()
        self._turns.changing = True  # an error from here on would lose the rows
        self._late.take(self._time_type())
        return made

    @property
    def late_dropped(self) -> int:
        """How many late rows the stream dropped unread, because there were more than
        `keep_late`."""
        return self._late.dropped

    @in_turn
    def push(self, batch: Any) -> dict[str, Any]:
        """Insert a batch, as `Stream.push` does, and return the windows that are then due, for each
        query."""
        check_no_queries(batch)
        kind, given = kind_of(batch), batch
        if len(self._members) > 1:
            given = read_once(batch)
            self._check_fits(given)
        if self._journal is not None:
            self._journal.spill()  # an error has changed nothing
        made = self._all(lambda stream: stream.push(given))
        if given is not batch and isinstance(given, pa.Table):
            made = {name: as_given(table, kind) for name, table in made.items()}
            for member in self._members:  # for what `advance` and `close` return
                member.stream._kind = kind
        if self._late.unsaid:
            self._turns.changing = False  # the change is complete; a warning may raise
            self._late.warn()
        return made

    def _check_fits(self, batch: Any) -> None:
        """Refuse a batch that one of the queries would refuse, before any of them has it."""
        for member in self._members:
            some = {name: self._queries[name] for name in member.names}
            check_fits(member.stream, some, batch, self._schema)

    def _all(self, call: Callable[[Stream], Any]) -> dict[str, Any]:
        """Call each member, and collect the results by query.  If a member raises after another
        has changed, part of the batch is in, so the stream then refuses further use."""
        made: dict[str, Any] = {}
        for number, member in enumerate(self._members):
            try:
                made |= member.named(call(member.stream))
            except BaseException:
                self._turns.changing = number > 0
                raise
            self._turns.changing = True
        return {name: made[name] for name in self._queries}

    @in_turn
    def explain(
        self, schema: Any = None, *, data: Any = None, batch: int = 1000
    ) -> SharedExplanation:
        """Explain what the queries share on this stream, and why; see `sash.SharedExplanation`.

        If some queries have seen no batch yet, the types of the columns come from `schema`, which
        may also be a table.  With `data`, `explain` pushes this sample into a new stream in memory,
        in batches of `batch` rows, and counts combines."""
        from ..explain.shared import explain_shared
        from ..windows import duration

        lateness = duration(self._settings["lateness"], "the lateness")
        more = {n: self._settings[n] for n in ("mode", "early")}
        return explain_shared(
            Shared(self._queries),
            seen(self._members) if schema is None else schema,
            data,
            lateness=lateness,
            batch=batch,
            bundles=None if oracle.asked_for() else bundles_of(self._members, self._queries),
            place="Query.stream" if self._journal is None else "Query.stream, in a store",
            **more,
        )

    @in_turn
    def advance(self, watermark: Any) -> dict[str, Any]:
        """Close all windows that end by a time, even if no event has reached it, and return the
        windows that are then due, for each query.  A time before the watermark changes nothing."""
        return self._all(lambda stream: stream.advance(watermark))

    @in_turn
    def close(self) -> dict[str, Any]:
        """Close all windows, and return those that were not emitted, for each query; refuse pushes
        from now on."""
        made = self._all(lambda stream: stream.close())
        self._closed = True
        return made

    @in_turn
    def add(self, name: str, query: Query, since: Since = "now") -> None:
        """Add a query to the stream.

        With `since="now"`, the query sees the events that come from now on, as a new stream would.
        With `since="held"`, the query shares the slices that other queries keep.  Then its windows
        that are still open, or not due, hold the same events as if the query had run for as long as
        those queries, as far back as the longest of their windows reaches.  For that, its
        aggregates and its edges must be among those of the other queries.  If those depend on the
        order of events, the stream keeps each time apart, and any edges will do.  If one of them
        has a lifetime, all before the longest window is one partial, so the query must not reach
        farther back.  The query does not know windows from before it joined: it compares a key's
        first window with none, fills no gap before it, and numbers revisions from then on.

        >>> import sash
        >>> n = {"n": sash.count()}
        >>> q = sash.Query(time="t", window=sash.sliding(20, 10), select=n)
        >>> s = sash.share({"q": q}).stream()
        >>> s.push([{"t": 12}, {"t": 14}])["q"].num_rows
        0
        >>> s.add("held", sash.Query(time="t", window=sash.tumbling(10), select=n), since="held")
        >>> s.add("new", sash.Query(time="t", window=sash.tumbling(10), select=n))
        >>> {name: table["n"].to_pylist() for name, table in s.push({"t": 20}).items()}
        {'q': [2], 'held': [2], 'new': []}
        """
        self._check_open()
        self._check_in_memory("given further queries", "start another stream for those")
        queries = check_queries({**self._queries, name: query})
        if name in self._queries or name in self._removed:
            raise ValueError(f"there is, or was, a query {name!r} already; choose another name")
        if since not in ("now", "held"):
            raise ValueError(f"since is 'now' or 'held', not {since!r}")
        known = fingerprint(query)
        if since == "held":
            member, stream = sharing(self._members, name, query)
            made = stream.joined(name, query)
            self._turns.changing = True
            stream.add(name, *made)
            member.names += (name,)
        else:
            member = self._member(bundled({name: query}), self._schema)
            self._turns.changing = True
            self._members.append(member)
        self._queries = queries
        self._fingerprints[name] = known

    @in_turn
    def remove(self, name: str) -> None:
        """Remove a query from the stream; it emits nothing more.  The stream forgets slices that
        only the query's windows held.  It keeps partials that only the query read until it ends,
        so `from_bytes` still needs the query.

        >>> import sash
        >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
        >>> s = sash.share({"q": q, "r": q}).stream()
        >>> s.remove("r")
        >>> list(s.push({"t": 10}))
        ['q']
        """
        self._check_open()
        self._check_in_memory("deprived of a query", "leave its results unread")
        member = self._member_of(name)
        if len(self._queries) == 1:
            raise ValueError(f"{name!r} is the only query of this stream; close it instead")
        alone = len(member.names) == 1
        if not alone:
            assert isinstance(member.stream, BundleStream)
            member.stream.settle()
        self._turns.changing = True
        if alone:
            self._members.remove(member)
            for gone in member.all_names():  # also removed queries whose partials are still there
                self._fingerprints.pop(gone, None)
                self._removed.pop(gone, None)
        else:
            kept = member.stream._plan is not None
            member.remove(name)
            if kept:
                self._removed[name] = self._queries[name]
            else:
                del self._fingerprints[name]
        del self._queries[name]

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("this stream is closed; make a new one with share(…).stream(…)")

    @in_turn
    def query(
        self, name: str, key: Any = (), lo: Any = None, hi: Any = None, *, at: Any = None
    ) -> dict[str, Any]:
        """The values of one query over the times `[lo, hi)` of one key, or as of a time; see
        `Stream.query`.

        >>> import sash
        >>> q = sash.Query(
        ...     time="t", by=["k"], window=sash.sliding(30, 10), select={"n": sash.count()}
        ... )
        >>> s = sash.share({"q": q}).stream()
        >>> s.push([{"t": 3, "k": "a"}, {"t": 12, "k": "a"}])["q"].num_rows
        1
        >>> s.query("q", "a"), s.query("q", "a", 10, 20)
        ({'n': 2}, {'n': 1})
        """
        stream = self._member_of(name).stream
        if isinstance(stream, BundleStream):
            refuse_at(self._queries[name], at)
            return stream.ask(name, key, lo, hi)
        return stream.query(key, lo, hi, at=at)

    def _member_of(self, name: str) -> Member:
        for member in self._members:
            if name in member.names:
                return member
        raise KeyError(f"there is no query {name!r} here; there are: {', '.join(self._queries)}")

    @in_turn
    def state_size(self) -> dict[str, int]:
        """How many keys and slices the stream holds, and how many bytes they take.  A key counts
        once in each bundle."""
        each = [member.stream.state_size() for member in self._members]
        return {name: sum(size[name] for size in each) for name in ("keys", "slices", "bytes")}

    @in_turn
    def to_bytes(self) -> bytes:
        """Write the whole stream as bytes, with a version and a checksum, for `from_bytes`."""
        self._check_in_memory("written as bytes", "it is durable by sync()")
        return shared_bytes(self)

    @in_turn
    def sync(self) -> None:
        """Make all changes up to now durable, for a stream with a store, as `Stream.sync` does.

        >>> import sash
        >>> n = {"n": sash.count()}
        >>> fast = sash.Query(time="t", window=sash.tumbling(10), select=n)
        >>> slow = sash.Query(time="t", window=sash.tumbling(20), select=n)
        >>> both, store = sash.share({"fast": fast, "slow": slow}), sash.stores.memory()
        >>> s = both.stream(store=store, name="hits")
        >>> s.push([{"t": 3}, {"t": 12}])["fast"].num_rows
        1
        >>> s.sync()
        >>> s.release()
        >>> made = both.stream(store=store, name="hits").close()
        >>> made["fast"]["n"].to_pylist(), made["slow"]["n"].to_pylist()
        ([1], [2])
        """
        from .stored_shared import sync

        sync(self)

    def release(self) -> None:
        """Let another process, or another stream object of this process, open the stream in its
        store.  Changes since the last `sync` are lost, and this object cannot be used any more."""
        journal = self._journal
        if journal is not None and not journal.space.released:
            with self._turns.between():
                journal.space.release()
                self._turns.broken = f"{journal!r} was let go of by release(); open it again"

    def _check_in_memory(self, what: str, instead: str) -> None:
        if self._journal is not None:
            raise ValueError(f"{self._journal!r} is in a store, and cannot be {what}; {instead}")

    @classmethod
    def from_bytes(cls, data: bytes, shared: Shared, trust: Sequence[str] = ()) -> SharedStream:
        """Restore a stream from the bytes of `to_bytes` and the same queries.

        sash refuses another set of queries, and names the difference.  `trust` has the names of
        aggregates whose partials mean the same, as for `Stream.from_bytes`.

        >>> import sash
        >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
        >>> s = sash.share({"q": q}).stream()
        >>> s.push([{"t": 3}])["q"].num_rows
        0
        >>> SharedStream.from_bytes(s.to_bytes(), sash.share({"q": q})).close()["q"].num_rows
        1
        >>> SharedStream.from_bytes(s.to_bytes(), sash.share({"r": q}))
        Traceback (most recent call last):
        ValueError: these bytes are of other queries (q is not there any more; r is new); use the \
queries as they were
        """
        return from_shared_bytes(cls, data, shared, trust)

    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
        for member in self._members:
            member.stream._check()


def _bundles(shared: Shared) -> list[Bundle]:
    """The bundles of the queries; where brute force answers, a bundle for each query."""
    if not oracle.asked_for():
        return list(shared.plan.bundles)
    return [Bundle({name: query}, None, "") for name, query in shared.queries.items()]
