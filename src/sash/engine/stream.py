"""A query over a stream that is fed batch by batch: `Query.stream`.

    batch → slices of each key → a tree a key → windows that are due → a table of results

Stream time is the largest event time so far, over all keys; the watermark is stream time less the
lateness, and moves after each batch.  A window is closed when its end is not after the watermark.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa

from ..aggregators.forest import UNBOUNDED
from ..kernels.columns import Array, to_micros
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..query.signatures import Mode
from ..query.types import value_type
from ..windows import duration, duration_text
from ..windows.sliding import LATEST
from .batch import as_time
from .forests import Forest, Given, Slices
from .given import Changes, Revisions, Rows
from .intake import bad_rows, chosen, conform, given_table, in_time, some_rows
from .keys import by_group, key_codes
from .late import LateRows, check_names
from .live_keys import LiveKeys
from .tables import as_given, one_array, plain_type, times_of

__all__ = ["Stream"]

#: Where a schema keeps the columns that only `where` reads, for snapshots.
_OPTIONAL = b"sash optional"


class Stream:
    """A query over a stream; made by `Query.stream`.

    `push` takes a batch and gives the windows that are due: in `final` mode each window once, when
    it closes; in `live` mode when stream time passes its end, and again, with a higher
    `revision`, whenever a late event changes it.  With `early`, the window that ends next is
    given too, as it stands, after each batch.  An event counts in each of its windows that is not
    closed; one that misses some or all of them, or that cannot be used, is in `late`.

    `schema` has the types of the columns; if it is not given, the first batch tells.

    >>> import sash
    >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
    >>> s = q.stream(lateness=5)
    >>> s.push([{"t": 3}, {"t": 12}]).num_rows  # the watermark is 7
    0
    >>> s.push([{"t": 4}, {"t": 17}]).to_pylist()
    [{'window_start': 0, 'window_end': 10, 'n': 2}]
    >>> s.push({"t": 5}).num_rows, s.late["missed_first"].to_pylist()
    (0, [0])
    >>> s.close().to_pylist()
    [{'window_start': 10, 'window_end': 20, 'n': 2}]
    """

    def __init__(
        self,
        query: Query,
        *,
        lateness: Any = 0,
        mode: Mode = "final",
        early: bool = False,
        schema: pa.Schema | None = None,
    ) -> None:
        if not isinstance(query, Query):
            raise TypeError(f"a stream runs a sash.Query, not {query!r}")
        if mode not in ("final", "live"):
            raise ValueError(f"mode is 'final' or 'live', not {mode!r}")
        if early and mode != "live":
            raise ValueError("early=True gives windows before they end, so it needs mode='live'")
        if mode == "live" and query.emit == "changes":
            raise ValueError(
                "emit='changes' needs mode='final': in live mode the window before may still be "
                "revised, so whether a window differs from it is not settled"
            )
        self._query, self._mode, self._early = query, mode, bool(early)
        self._lateness = duration(lateness, "the lateness")
        if not 0 <= self._lateness <= LATEST:
            raise ValueError(
                f"the lateness is a length of time, not {duration_text(self._lateness)}"
            )
        self._plan: Plan | None = None
        self._forests: list[Forest] = []
        self._time: int | None = None
        self._watermark: int | None = None
        self._closed = False
        self._like: Any = None
        self._rows = self._given = 0
        self._late = LateRows()
        self._revisions = Revisions()
        self._changes = Changes() if query.emit == "changes" else None
        self._optional: dict[str, pa.DataType] = {}  # columns that only `where` reads
        if schema is not None:
            if not isinstance(schema, pa.Schema):
                raise TypeError(
                    "schema is a pyarrow.Schema such as pyarrow.schema({'t': pyarrow.int64()}), "
                    f"not {schema!r}"
                )
            self._set_up(pa.schema([f.with_type(plain_type(f.type)) for f in schema]))

    @property
    def time(self) -> int | None:
        """Stream time, in microseconds: the largest event time so far."""
        return self._time

    @property
    def watermark(self) -> int | None:
        """Windows that end by this time, in microseconds, are closed."""
        return self._watermark

    @property
    def late(self) -> pa.Table:
        """Rows that missed windows or could not be used: their columns, the `reason`, how many
        windows they `missed`, and where the first and the last of those start (in microseconds).
        They are kept until `take_late` takes them off."""
        return self._late.table()

    def take_late(self) -> pa.Table:
        """What `late` has, which is empty afterwards."""
        return self._late.take()

    @property
    def counts(self) -> dict[str, int]:
        """Since the start: `rows` that `where` let through or that could not be used; those
        `counted` in all their windows, and those on the `late` output, which together are all
        rows; rows `given`."""
        late = self._late.count
        return {
            "rows": self._rows,
            "counted": self._rows - late,
            "late": late,
            "given": self._given,
        }

    def push(self, batch: Any) -> Any:
        """Insert a batch (a table of any kind, an event that is a dict, or several), and give the
        windows that are then due, as the same kind of table, ordered by keys, then window."""
        self._check_open()
        known = self._schema if self._plan else None
        table, reasons = given_table(batch, self._query, known, self._optional)
        check_names(table.column_names)
        whole = table.schema
        if self._plan is None and not len(whole):
            return self._answer(None)
        if self._query.where is not None:
            table, reasons = chosen(table, self._query.where, reasons)
        if self._plan is None:
            self._set_up(whole)
        self._like = batch[:0] if type(batch).__module__[:6] in ("pandas", "polars") else None
        return self._answer(self._insert(table, reasons))

    def advance(self, watermark: Any) -> Any:
        """Close all windows that end by a time, though no event says that it has come; a time
        before the watermark changes nothing.

        >>> import sash
        >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
        >>> s = q.stream()
        >>> s.push({"t": 3}).num_rows, s.advance(10).num_rows
        (0, 1)
        """
        self._check_open()
        at = to_micros(watermark)
        if not -LATEST < at < LATEST:
            raise ValueError(f"a watermark of {watermark} is out of range")
        return self._answer(self._move(at, at))

    def close(self) -> Any:
        """Close all windows and give what is left; nothing can be pushed any more."""
        self._check_open()
        made = self._move(UNBOUNDED, UNBOUNDED)
        self._closed = True
        return self._answer(made)

    def query(self, key: Any = (), lo: Any = None, hi: Any = None) -> dict[str, Any]:
        """The values over the times `[lo, hi)` of one key (a tuple, if there are several key
        columns), out of what later windows need: from `lo` up to but not including `hi`.

        Events of one slice are kept as one partial where their order does not matter; then
        both ends have to be where a window starts or ends.

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
        if self._plan is None:
            raise ValueError("nothing was pushed into this stream yet")
        window = self._query.window
        begin = -UNBOUNDED if self._watermark is None else window.first_of(self._watermark)
        first = begin if lo is None else to_micros(lo)
        last = UNBOUNDED if hi is None else to_micros(hi)
        if first < begin:
            raise ValueError(f"lo is {first}, and what lies before {begin} is evicted")
        if first > last:
            raise ValueError(f"a range goes from an older to a younger time, not {lo!r}, {hi!r}")
        if any(f.whole for f in self._forests):
            for name, given, at in (("lo", lo, first), ("hi", hi, last)):
                edge = window.slice_of(at)
                if given is not None and edge != at:
                    raise ValueError(
                        f"{name} is {at}, within the slice that starts at {edge}; no window starts "
                        "or ends there, and its events are not kept apart"
                    )
        number = self._keys.number(key if isinstance(key, tuple) else (key,))
        made: dict[str, Any] = {}
        for forest in self._forests:
            made |= forest.ask(number, first, last - 1)
        return {name: made[name] for name in self._query.select}

    def state_size(self) -> dict[str, int]:
        """How many keys and slices there are, and how many bytes they take."""
        return {
            "keys": len(self._keys) if self._plan else 0,
            "slices": sum(f.slices() for f in self._forests),
            "bytes": sum(f.size() for f in self._forests),
        }

    def to_bytes(self) -> bytes:
        """The whole stream as bytes, with a version and a checksum; `from_bytes` restores it."""
        from .snapshots import to_bytes

        return to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes, query: Query) -> Stream:
        """Restore a stream from its bytes and the same query.

        >>> import sash
        >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
        >>> s = q.stream(lateness=5)
        >>> s.push([{"t": 3}, {"t": 12}]).num_rows
        0
        >>> Stream.from_bytes(s.to_bytes(), q).push({"t": 15}).to_pylist()
        [{'window_start': 0, 'window_end': 10, 'n': 1}]
        """
        from .snapshots import from_bytes

        return from_bytes(cls, data, query)

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("this stream is closed; make a new one with query.stream(…)")

    def _set_up(self, schema: pa.Schema) -> None:
        """Tie the query to the types of its columns."""
        query = self._query
        plan = make_plan(query, schema)
        for field in plan.schema:
            if pa.types.is_null(field.type):
                raise TypeError(
                    f"column {field.name!r} has nothing but nulls, so its type is not known; give "
                    "the stream a schema, or push a batch with types first"
                )
        if query.tie is not None and not all(g.operator.commutative for g in plan.groups):
            raise ValueError(
                "on a stream, events of one time are in the order of their arrival, and `tie` "
                "cannot put them into another; leave it out, or select only what has no order"
            )
        read = {*query.by, *(c for a in query.select.values() for c in a.columns)}
        self._only_time = None if query.time in read else query.time
        fields = [f.with_type(value_type(f.type)) for f in plan.schema]
        others = [f for f in schema if f.name not in plan.schema.names]
        told = (schema.metadata or {}).get(_OPTIONAL)
        if told is not None:  # from a snapshot
            others = list(pa.ipc.read_schema(pa.py_buffer(told)))
        elif query.where is None:
            others = []
        self._optional = {f.name: f.type for f in others}
        kept = pa.schema(others).serialize().to_pybytes()
        self._schema = pa.schema(fields, metadata={_OPTIONAL: kept} if others else None)
        forests = [Forest(g, query.window, plan.types) for g in plan.groups]
        for forest in forests:
            forest.no_values()  # whether answers can have the types that are wanted
        self._forests = forests
        self._keys = LiveKeys([self._schema.field(name).type for name in query.by])
        self._plan = plan

    def _insert(self, table: pa.Table, reasons: dict[int, str]) -> pa.Table | None:
        """Insert all rows that can be used, and move on."""
        assert self._plan is not None
        given, misfits = conform(table, self._schema, self._only_time)
        times, unusable = times_of(one_array(given.column(self._query.time)))
        reasons = reasons | misfits
        if unusable.any():
            column = given.column(self._query.time)
            for row in np.flatnonzero(unusable).tolist():
                what = "out of range" if column[row].is_valid else "null"
                reasons.setdefault(row, f"its time is {what}")
        rows = self._usable(times, reasons)
        try:
            keys, slices = self._cut(some_rows(given, rows), times[rows])
        except Exception:
            wrong = bad_rows(self._lift, some_rows(given, rows))
            if not wrong:
                raise
            reasons |= {int(rows[i]): why for i, why in wrong.items()}
            rows = self._usable(times, reasons)
            keys, slices = self._cut(some_rows(given, rows), times[rows])
        visits = self._keys.add(keys, len(slices[0].bounds) - 1) if len(rows) else None
        self._rows += len(times)
        self._late.note(table, times, reasons, self._query.window, self._watermark)
        if visits is None:
            return None
        newest = int(times[rows].max())
        return self._move(newest, newest - self._lateness, visits, slices)

    def _usable(self, times: Array, reasons: dict[int, str]) -> Array:
        """The rows with no reason against them that have a window which is not closed."""
        usable = np.ones(len(times), dtype=bool)
        usable[list(reasons)] = False
        if self._watermark is not None:
            window, old = self._query.window, np.flatnonzero(times < self._watermark)
            usable[old] &= window.last_of(times[old]) + window.size > self._watermark
        return np.flatnonzero(usable)

    def _lift(self, given: pa.Table) -> None:
        """Read and lift all values, for nothing but the errors."""
        rows = np.arange(given.num_rows)
        bounds = np.array([0, given.num_rows])
        for forest in self._forests:
            forest.cut(forest.columns(given), rows, np.zeros_like(rows), bounds)

    def _cut(self, given: pa.Table, times: Array) -> tuple[list[pa.Array], list[Slices]]:
        """The keys of a batch, in order, and each group's slices of them; changes nothing."""
        codes, keys = key_codes([one_array(given.column(c)) for c in self._query.by], len(times))
        rows, bounds = by_group(codes, len(keys[0]) if keys else 1, in_time(times))
        in_order = times[rows]
        return keys, [f.cut(f.columns(given), rows, in_order, bounds) for f in self._forests]

    def _move(
        self,
        time: int,
        watermark: int,
        visits: Array | None = None,
        slices: list[Slices] | None = None,
    ) -> pa.Table | None:
        """Insert slices of some keys, which are told by number, move on to a time and a watermark,
        and give the windows that are due."""
        window, live = self._query.window, self._mode == "live"
        was = self._time if live else self._watermark
        opened = -UNBOUNDED if self._watermark is None else window.first_of(self._watermark)
        fresh = -UNBOUNDED if was is None else window.first_of(was)
        self._time = time if self._time is None else max(time, self._time)
        self._watermark = watermark if self._watermark is None else max(watermark, self._watermark)
        if self._plan is None:
            return None
        limit = self._time if live else self._watermark
        keep = window.first_of(self._watermark)
        early = self._early and limit < UNBOUNDED
        asked = [opened, fresh, limit, keep, live, early, self._changes is not None]
        visits = np.zeros(0, dtype=np.int64) if visits is None else visits
        for forest in self._forests:
            forest.make_room(self._keys.most)
        if early or keep > opened or window.first_of(limit) > fresh:
            here, visits = visits, self._keys.in_order()
            if slices is not None:
                places = self._keys.places(here)
                slices = [s.among(places, len(visits)) for s in slices]
        given = [
            f.step(asked, visits, None if slices is None else slices[i])
            for i, f in enumerate(self._forests)
        ]
        table = self._results(given)
        self._revisions.close(keep)
        self._remove(given[0].gone)
        return table

    def _remove(self, gone: Array) -> None:
        """Let keys leave."""
        if not len(gone):
            return
        self._keys.remove(gone)
        if self._changes is not None:
            self._changes.remove(gone)
        kept = self._keys.compact()
        if kept is not None:
            for forest in self._forests:
                forest.renumber(kept)
            self._revisions.renumber(kept)
            if self._changes is not None:
                self._changes.renumber(kept)

    def _results(self, given: list[Given]) -> pa.Table | None:
        """Windows that were given, as a table."""
        assert self._plan is not None
        first = given[0]
        if not len(first.keys):
            return None
        failed = {row: why for g in given for row, why in g.failed.items()}
        if failed:
            warnings.warn(
                f"{len(failed)} window(s) have no answer, and nulls instead: "
                f"{', '.join(sorted(set(failed.values())))}",
                RuntimeWarning,
                stacklevel=5,
            )
        values = {name: v for g in given for name, v in g.values.items()}
        rows = Rows(first.keys, first.starts, first.marks, values)
        if self._changes is not None:
            rows = self._changes.only(rows)
        self._given += len(rows.keys)
        return self._table(rows)

    def _table(self, rows: Rows) -> pa.Table:
        """Windows as a table: keys, the window's start and end, values, and the revision."""
        assert self._plan is not None
        query, at = self._query, pa.array(rows.keys)
        columns = {n: c.take(at) for n, c in zip(query.by, self._keys.columns, strict=True)}
        for name, edge in (("window_start", 0), ("window_end", query.window.size)):
            columns[name] = as_time(rows.starts + edge, self._plan.time_type)
        columns |= {name: rows.values[name] for name in query.select}
        if self._mode == "live":
            made = self._revisions.of(rows.keys, rows.starts, rows.marks, early=self._early)
            columns["revision"] = pa.array(made)
        return pa.table(columns)

    def _answer(self, table: pa.Table | None) -> Any:
        return as_given(self._empty() if table is None else table, self._like)

    def _empty(self) -> pa.Table:
        """A result without rows."""
        if self._plan is None:
            return pa.table({})
        none = np.zeros(0, dtype=np.int64)
        values = {n: v for f in self._forests for n, v in f.no_values().items()}
        return self._table(Rows(none, none, none, values))

    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
        for forest in self._forests:
            forest._check()
