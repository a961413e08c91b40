"""Statements of SQL over one stream: `sash.share(…).stream`.

batch ─→ before: expressions, WHERE, once where they are the same
      ─→ streams of queries that share slices ─→ after: SELECT list, HAVING of each statement

A row for which an expression fails is late only for the statements that compute that expression.
So statements share slices only if they compute the same columns under the same condition.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from ..aggregators.snapshot import open_bytes, seal
from ..engine.described import counts_of, line_of, names_text, stream_time, streams_of
from ..engine.late import ADDED, joined_late
from ..engine.shared_late import QUERIES, check_no_queries
from ..engine.shared_stream import SharedStream
from ..engine.snapshots import check_bytes, joined, parts
from ..engine.turns import Turns, in_turn
from ..query.query import Query
from ..query.shared import Shared
from ..query.signatures import Mode
from ..tables.arrow import as_arrow, as_given, kind_of
from ..windows import Driven
from .intake import Intake
from .shared_members import Alone, Group, Member, Queries
from .statement import Statement
from .stream import SqlStream, known_of, with_known

if TYPE_CHECKING:
    from ..explain.shared import SharedExplanation
    from .shared import SharedStatements

__all__ = ["SharedSqlStream"]

_KIND = "SharedSqlStream 1"


class SharedSqlStream:
    """Statements and queries over one stream; `sash.share(…).stream` starts it.

    It has the methods of `sash.SharedStream`, except those that change its queries or need a store.
    Statements that compute the same columns before
    their queries share slices.  A row for which an expression fails is late for the statements that
    compute it.  In `late`, the column `queries` of a row names the queries for which it is late.

    >>> import sash
    >>> text = "SELECT max({} * x) AS m FROM t GROUP BY window(t, '{} microseconds')"
    >>> given = {"fast": sash.sql(text.format(2, 2)), "slow": sash.sql(text.format(2, 10))}
    >>> s = sash.share(given).stream()
    >>> made = s.push([{"t": 1, "x": 5}, {"t": 6, "x": 4}])
    >>> made["fast"].to_pylist(), s.close()["slow"].to_pylist()
    ([{'m': 10}], [{'m': 10}])
    """

    def __init__(
        self,
        shared: SharedStatements,
        *,
        lateness: Any = 0,
        mode: Mode = "final",
        early: bool = False,
        schema: pa.Schema | None = None,
        keep_late: int | None = 1_000_000,
    ) -> None:
        if not hasattr(shared, "given"):
            raise TypeError(f"a shared stream runs what sash.share gave, not {shared!r}")
        self._given = dict(shared.given)
        self._turns = Turns()
        self._kind = ""
        more: dict[str, Any] = {"lateness": lateness, "mode": mode, "early": early}
        more["keep_late"] = keep_late
        self._members: list[Member] = []
        for names in grouped(self._given):
            some = {name: self._given[name] for name in names}
            self._members.append(_member(some, schema, more))

    def __repr__(self) -> str:
        if not vars(self).get("_members"):  # making it failed
            return object.__repr__(self)
        counts: dict[str, str] = {}
        for member in self._members:
            counts |= counts_of(member.names, member.stream)
        streams = streams_of(member.stream for member in self._members)
        return line_of(
            "sash.SharedSqlStream",
            names_text(list(self._given)),
            (streams[0]._mode, streams[0]._lateness),
            {name: counts[name] for name in self._given},
            stream_time(streams),
            closed=streams[0]._closed,
            broken=self._turns.broken,
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a stream cannot be pickled; save it with to_bytes(), and restore it with "
            "sash.SharedSqlStream.from_bytes(data, shared)"
        )

    def __copy__(self) -> SharedSqlStream:
        """A copy with its own state."""
        return deepcopy(self)

    def __deepcopy__(self, memo: Any) -> SharedSqlStream:
        return self._copied(memo)

    @in_turn
    def _copied(self, memo: dict[int, Any]) -> SharedSqlStream:
        made = memo[id(self)] = object.__new__(type(self))
        vars(made).update({name: deepcopy(value, memo) for name, value in vars(self).items()})
        return made

    def _settle(self) -> None:
        """Do nothing: members settle by themselves."""

    @property
    def queries(self) -> Mapping[str, Query | Statement]:
        """The queries and statements, by name."""
        return dict(self._given)

    @in_turn
    def push(self, batch: Any) -> dict[str, Any]:
        """Insert a batch, as `Stream.push` does, and return the rows that are then due, for each
        statement."""
        kind = kind_of(batch)
        if hasattr(batch, "__arrow_c_stream__") or hasattr(type(batch), "columns"):
            batch = as_arrow(batch)  # once for all members
        elif not isinstance(batch, Mapping | str | bytes):
            batch = list(batch)
        check_no_queries(batch)
        self._kind = kind
        taken = self._taken(batch)
        return self._all(lambda number, member: member.stream.push(taken[number]))

    def _taken(self, batch: Any) -> list[Any]:
        """The batch as each member reads it; an error here changes no member."""
        intakes = [m.intake for m in self._members]
        before = [None if intake is None else intake.known for intake in intakes]
        try:
            made = [batch if intake is None else intake.taken(batch) for intake in intakes]
            for member, one in zip(self._members, made, strict=True):
                member.check(one)
            return made
        except BaseException:
            for intake, known in zip(intakes, before, strict=True):
                if intake is not None:
                    intake.known = known
            raise

    def _all(self, call: Callable[[int, Member], Any]) -> dict[str, Any]:
        """Call each member, and collect the results.  A batch is in or out as a whole: if a member
        raises, the members before it have already changed."""
        made: dict[str, Any] = {}
        for number, member in enumerate(self._members):
            try:
                found = call(number, member)
            except BaseException:
                self._turns.changing = number > 0
                raise
            self._turns.changing = True
            made |= member.each(found)
        return {name: as_given(made[name], self._kind) for name in self._given}

    @in_turn
    def advance(self, watermark: Any) -> dict[str, Any]:
        """Close all windows that end by a time, like `Stream.advance`."""
        return self._all(lambda _, member: member.stream.advance(watermark))

    @in_turn
    def close(self) -> dict[str, Any]:
        """Close all windows and return their rows; the stream takes no more batches."""
        return self._all(lambda _, member: member.stream.close())

    @property
    def late(self) -> pa.Table:
        """Rows that missed windows or that the stream could not use, like `SharedStream.late`."""
        with self._turns.between():
            return _together([m.late(m.stream.late) for m in self._members])

    @in_turn
    def take_late(self) -> pa.Table:
        """Return the rows in `late`, and empty it."""
        made = self.late
        self._turns.changing = True  # an error from here on would lose rows
        for member in self._members:
            member.stream.take_late()
        return made

    @property
    def late_dropped(self) -> int:
        """The number of late rows that the stream dropped unread."""
        with self._turns.between():
            return sum(m.stream.late_dropped for m in self._members)

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """The counts of each statement's query, like `Stream.counts`."""
        return self._by_name("counts")

    @property
    def delays(self) -> dict[str, list[int]]:
        """The lateness of the rows of each statement, like `Stream.delays`."""
        return self._by_name("delays")

    @in_turn
    def explain(
        self, schema: Any = None, *, data: Any = None, batch: int = 1000
    ) -> SharedExplanation:
        """Explain what the statements share on this stream, and why, like `SharedStream.explain`;
        `schema` and `data` describe the pushed batches.

        >>> import sash
        >>> text = "SELECT max(2 * x) AS m FROM t GROUP BY window(t, '{} microseconds')"
        >>> both = sash.share({"a": sash.sql(text.format(2)), "b": sash.sql(text.format(10))})
        >>> both.stream().explain({"t": [1], "x": [1]}).bundles[0].names
        ('a', 'b')
        """
        from ..explain.shared import explained_together

        if isinstance(schema, pa.Schema):
            schema = schema.empty_table()
        known, sample = (None if t is None else as_arrow(t) for t in (schema, data))
        each = [member.explained(known, sample, batch) for member in self._members]
        why = "no other statement computes the same columns under the same WHERE"
        return explained_together(each, self._given, why)

    def _by_name(self, what: str) -> dict[str, Any]:
        each: dict[str, Any] = {}
        with self._turns.between():
            for member in self._members:
                each |= member.by_name(getattr(member.stream, what))
        return {name: each[name] for name in self._given}

    @property
    def time(self) -> int | None:
        """Stream time, in microseconds: the largest event time so far, over all statements."""
        with self._turns.between():
            return max((t for m in self._members if (t := m.stream.time) is not None), default=None)

    @property
    def watermark(self) -> int | None:
        """The watermark: all windows that end by this time, in microseconds, are closed."""
        with self._turns.between():
            each = [m.stream.watermark for m in self._members]
        return None if None in each else min(each)

    @in_turn
    def query(
        self, name: str, key: Any = (), lo: Any = None, hi: Any = None, *, at: Any = None
    ) -> dict[str, Any]:
        """The aggregates of one statement or query, for one key, over a range of times or as of a
        time; see `SqlStream.query`."""
        for member in self._members:
            if name in member.names:
                named = (name,) if isinstance(member.stream, SharedStream) else ()
                found: dict[str, Any] = member.stream.query(*named, key, lo, hi, at=at)
                return found
        raise KeyError(f"there is no statement {name!r} here; there are: {', '.join(self.queries)}")

    @in_turn
    def state_size(self) -> dict[str, int]:
        """The size of the state, like `SharedStream.state_size`."""
        each = [m.stream.state_size() for m in self._members]
        return {name: sum(size[name] for size in each) for name in ("keys", "slices", "bytes")}

    @in_turn
    def to_bytes(self) -> bytes:
        """The whole stream as bytes, with a version and a checksum, for `from_bytes`."""
        texts = {n: _text(given) for n, given in self._given.items()}
        blobs = [json.dumps(texts).encode()]
        for member in self._members:
            known = None if member.intake is None else member.intake.known
            blobs.append(with_known(known, member.stream.to_bytes()))
        return seal((_KIND, self._kind), joined(blobs))

    @classmethod
    def from_bytes(
        cls, data: bytes, shared: SharedStatements, trust: Sequence[str] = ()
    ) -> SharedSqlStream:
        """Restore a stream from the bytes of `to_bytes` and the same statements."""
        check_bytes(data)
        (said, *kind), body = open_bytes(bytes(data))
        if said != _KIND:
            raise ValueError(f"these bytes hold a {said}, and this release reads a {_KIND}")
        head, *blobs = parts(body)
        texts = {n: _text(given) for n, given in shared.given.items()}
        if json.loads(head) != texts:
            raise ValueError(
                "these bytes are of other statements, or of statements in another order; use the "
                "statements as they were"
            )
        made = cls(shared)
        made._kind = "".join(kind)
        made._members = []
        for names, blob in zip(grouped(shared.given), blobs, strict=True):
            known, _, rest = known_of(blob)
            some = {name: shared.given[name] for name in names}
            made._members.append(_restored(some, known, blob, rest, trust))
        return made


def _text(given: Query | Statement) -> str:
    """The text by which a snapshot identifies a statement; a query has its own fingerprint."""
    return given.text if isinstance(given, Statement) else ""


def grouped(given: Mapping[str, Query | Statement]) -> list[tuple[str, ...]]:
    """Group the names of the queries and statements that run together: all queries, and statements
    that compute the same columns under the same condition.  A statement with a driven window runs
    by itself, because it keeps the columns that it reads."""
    found: list[list[str]] = []
    for name, one in given.items():
        for names in found:
            if _alike(one, given[names[0]]):
                names.append(name)
                break
        else:
            found.append([name])
    return [tuple(names) for names in found]


def _alike(one: Query | Statement, other: Query | Statement) -> bool:
    if not isinstance(one, Statement) or not isinstance(other, Statement):
        return not isinstance(one, Statement) and not isinstance(other, Statement)
    if any(isinstance(s.query.window, Driven) for s in (one, other)):
        return False
    a, b = one._planned, other._planned
    return (one.computed, a.where, a.conditions) == (other.computed, b.where, b.conditions)


def _member(given: Mapping[str, Any], schema: pa.Schema | None, more: Mapping[str, Any]) -> Member:
    """The stream of queries or statements that run together."""
    name, first = next(iter(given.items()))
    if not isinstance(first, Statement):
        return Queries(tuple(given), Shared(given).stream(schema=schema, **more))
    if len(given) == 1:
        return Alone(name, first.stream(schema=schema, **more))
    for one in given.values():
        one.check_stream(more["mode"])
    intake = _intake(given, more["mode"], early=more["early"])
    read = None if schema is None else intake.learn(schema)
    shared = Shared({n: s.query for n, s in given.items()})
    return Group(given, intake, shared.stream(schema=read, **more))


def _intake(given: Mapping[str, Statement], mode: Mode, *, early: bool) -> Intake:
    return Intake([(s._planned, s._zone) for s in given.values()], mode, bool(early))


def _restored(
    given: Mapping[str, Any],
    known: pa.Schema | None,
    blob: bytes,
    rest: bytes,
    trust: Sequence[str],
) -> Member:
    """Restore the stream of queries or statements that run together, from its bytes."""
    name, first = next(iter(given.items()))
    if isinstance(first, Statement) and len(given) == 1:
        return Alone(name, SqlStream.from_bytes(blob, first, trust))
    inner = {n: s.query if isinstance(s, Statement) else s for n, s in given.items()}
    stream = SharedStream.from_bytes(rest, Shared(inner), trust)
    if not isinstance(first, Statement):
        return Queries(tuple(given), stream)
    intake = _intake(given, stream._settings["mode"], early=stream._settings["early"])
    intake.known = known
    return Group(given, intake, stream)


def _together(tables: list[pa.Table]) -> pa.Table:
    """Join the late rows of several members, with the columns of the events first."""
    made = joined_late([t for t in tables if t.num_rows] or tables[:1])
    added = [n for n in (*ADDED, QUERIES) if n in made.column_names]
    return made.select([*(n for n in made.column_names if n not in added), *added])
