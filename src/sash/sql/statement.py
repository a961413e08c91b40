"""`sash.sql`: a statement from a text of SQL, which runs over tables and streams like a query."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..operators.contract import Operator
from ..query.query import Query
from ..query.signatures import Mode
from ..tables.arrow import as_arrow, as_given, kind_of
from ..windows import Merging
from .errors import Source
from .evaluate import check_expression
from .functions import FUNCTIONS
from .nodes import Interval, Ref, walk
from .plan import plan
from .planned import Planned
from .read_select import read
from .stream import SqlStream
from .tabled import Noted, identity, prepared, projected
from .tying import Tied, computes_after, tie

if TYPE_CHECKING:
    from ..engine.supported import Place
    from ..explain import Explanation
    from ..stores.contract import Store

__all__ = ["Statement", "check_stream", "checked_operators", "statement"]


class Statement:
    """A statement of SQL, ready to run; `sash.sql` builds it.

    `query` is its query.  `before` has the texts of the expressions to compute before the query, by
    the names of their columns.

    >>> import sash
    >>> s = sash.sql(
    ...     "SELECT k, window.end, sum(2 * x) AS double FROM t "
    ...     "WHERE x > 0 GROUP BY k, window(ts, '1 hour', '1 minute') HAVING count(*) > 1"
    ... )
    >>> s.query.window, s.query.by, s.before
    (sliding('1 hour', '1 minute'), ('k',), {'x > 0': 'x > 0', '2 * x': '2 * x'})
    """

    def __init__(self, text: str, planned: Planned, timezone: str | None) -> None:
        self._text, self._planned, self._zone = text, planned, timezone

    @property
    def query(self) -> Query:
        """The query, which also reads the computed columns."""
        return self._planned.query

    @property
    def before(self) -> dict[str, str]:
        """The expressions to compute before the query, by the names of their columns."""
        source = self._planned.source
        return {n: source[e.at[0] : e.at[1]] for n, e in self._planned.before.items()}

    @property
    def text(self) -> str:
        """The text."""
        return self._text

    def __repr__(self) -> str:
        return f"sash.sql({self._text!r})"

    def schema(self, given: pa.Schema) -> pa.Schema:
        """The columns that the query reads, including computed ones, for a table of this schema.

        >>> import pyarrow as pa, sash
        >>> s = sash.sql("SELECT sum(x / 2) AS s FROM t GROUP BY window(ts, '1 hour')")
        >>> s.schema(pa.schema({"ts": pa.int64(), "x": pa.int32()})).names
        ['ts', 'x', 'x / 2']
        """
        return prepared(self._planned, given.empty_table(), self._zone, whole=False)[0].schema

    def tie(
        self,
        schema: pa.Schema,
        place: Place = "Query.run",
        mode: Mode = "final",
        *,
        late: bool = False,
    ) -> Tied:
        """Tie the statement to the columns of a table in place of FROM: the expressions before its
        query, the query, and the expressions after it.  Raises an `SqlError` if a type is wrong, or
        if this place and mode do not support the statement.

        >>> import pyarrow as pa, sash
        >>> s = sash.sql("SELECT sum(x / 2) > 9 AS big FROM t GROUP BY window(ts, '1 hour')")
        >>> s.tie(pa.schema({"ts": pa.int64(), "x": pa.int32()})).rows.types
        [DataType(bool)]
        """
        if place != "Query.run":
            check_stream(self._planned, mode)
        return tie(self._planned, schema, self._zone, place, mode, late=late)

    def check_source(self, name: str) -> None:
        """Raise an error if FROM is not this name.

        >>> import sash
        >>> sash.sql("SELECT max(x) AS m FROM t GROUP BY window(ts, '1 hour')").check_source("t")
        """
        given = self._planned.select.source
        called = getattr(given, "name", "")
        if called.lower() != name.lower():
            raise self._planned.source.error(
                f"FROM is {called or 'more than a name'}, and the source is called {name}; write "
                f"FROM {name}",
                *given.at,
            )

    def check_stream(self, mode: Mode) -> None:
        """Raise an error if a stream in this mode cannot run the statement.

        >>> import sash
        >>> sash.sql("SELECT max(x) AS m FROM t GROUP BY window(ts, '1 h')").check_stream("final")
        """
        check_stream(self._planned, mode)

    def run(self, table: Any, *, threads: int | None = None) -> Any:
        """Run the statement over a whole table (pandas, Polars or Arrow).  The result is the same
        kind of table, with the columns of the SELECT list, in its order.  `threads` is that of
        `Query.run`.

        >>> import sash
        >>> s = sash.sql("SELECT max(x) AS worst FROM t GROUP BY window(ts, '10 microseconds')")
        >>> s.run({"ts": [1, 8, 15], "x": [3, 4, 5]})["worst"].to_pylist()
        [4, 5]
        """
        given = as_arrow(table, self._wanted(table))
        if computes_after(self._planned):  # to find a mistake there before the work
            self.tie(given.schema)
        ready = self.prepared(given)
        try:
            found = self.query.run(ready, threads=threads)
        except (KeyError, TypeError, ValueError):
            self.tie(given.schema)  # its errors point to the text
            raise
        return self.projected(found, table)

    @property
    def computed(self) -> dict[str, Any]:
        """The expressions before the query, by name, in a form that can be compared."""
        return {name: (node, self._zone) for name, node in self._planned.before.items()}

    def prepared(self, table: pa.Table) -> pa.Table:
        """The table for the query, from an Arrow table in place of FROM."""
        ready, noted = prepared(self._planned, table, self._zone, whole=False)
        if noted:
            raise self._failure(noted, "row")
        return ready

    def projected(self, found: pa.Table, table: Any, hidden: Collection[str] = ()) -> Any:
        """The rows of the statement, from its query's result, as the same kind of table as the
        input; * leaves out the `hidden` columns."""
        made, noted = projected(self._planned, found, self._zone, hidden=hidden)
        if noted:
            raise self._failure(noted, "row of the result")
        return self._as_given(made, table)

    def explain(self, schema: Any = None, *, data: Any = None) -> Explanation:
        """Explain how `run` computes the statement's query, why, and what it costs; see
        `sash.Explanation`.  `schema` is the schema of the table in place of FROM, or a table;
        `data` is a sample, over which `explain` runs the query to measure the costs.

        >>> import sash
        >>> s = sash.sql("SELECT sum(x * 2) FROM t GROUP BY window(ts, '6 min', '2 min')")
        >>> print(s.explain({"ts": [1], "x": [1]}))  # doctest: +ELLIPSIS
        sum(x * 2) = sum('x * 2')
        ...
        """
        if schema is not None and not isinstance(schema, pa.Schema):
            schema = as_arrow(schema).schema
        given = None if schema is None else self.schema(schema)
        sample = None if data is None else self.prepared(as_arrow(data))
        return self.query.explain(given, data=sample)

    def _wanted(self, table: Any) -> list[str] | None:
        """The columns to read, or None for all: `*` needs all, and aliases are compared with
        all."""
        planned = self._planned
        return None if planned.stars or planned.aliases else list(planned.read)

    def _failure(self, noted: list[Noted], what: str) -> Exception:
        first = min(noted, key=lambda n: n.row)
        rows = len({n.row for n in noted})
        more = f" ({rows} such rows)" if rows > 1 else ""
        return self._planned.source.error(f"{what} {first.row}: {first.why}{more}", *first.at)

    def _as_given(self, made: pa.Table, table: Any) -> Any:
        kind = kind_of(table)
        if kind != "pandas":
            return as_given(made, kind)
        same = {n: n for n in made.column_names if self._planned.stars and n in table.columns}
        if self._planned.driven:
            for output in self._planned.outputs:
                if isinstance(output.node, Ref) and output.node.name in table.columns:
                    same[output.name] = output.node.name
        like = table[list(same.values())].set_axis(list(same), axis=1) if same else None
        return as_given(made, kind, like)

    def identity(self, table: pa.Table) -> list[pa.Array]:
        """The columns of a result that identify a window in live mode: of the rows with equal
        values in them, the one with the highest revision counts.

        >>> import sash
        >>> s = sash.sql("SELECT k, window, max(x) AS m FROM t GROUP BY k, window(ts, '1 hour')")
        >>> len(s.identity(s.run({"ts": [1], "k": ["a"], "x": [3]})))
        3
        """
        return identity(self._planned, table)

    @property
    def withdraws(self) -> bool:
        """True if a live stream can withdraw rows, so that rows have a column `deleted`."""
        merging = isinstance(self.query.window, Merging)
        return merging or self._planned.having is not None

    def stream(
        self,
        lateness: Any = 0,
        mode: Mode = "final",
        early: bool = False,
        schema: Any = None,
        keep_late: int | None = 1_000_000,
        *,
        store: Store | None = None,
        name: str | None = None,
        trust: Sequence[str] = (),
    ) -> SqlStream:
        """Start a stream of the statement, into which you push batches; the arguments are those of
        `Query.stream`.  A store refuses a statement with another `query`; HAVING, and expressions
        over aggregates, may change.

        A row for which an expression fails, for example by a division by zero, is late, with the
        reason.

        >>> import sash
        >>> s = sash.sql("SELECT sum(6 / x) AS s FROM t GROUP BY window(ts, '10 microseconds')")
        >>> stream = s.stream()
        >>> stream.push([{"ts": 1, "x": 2}, {"ts": 2, "x": 0}]).num_rows
        0
        >>> stream.close()["s"].to_pylist(), stream.late["reason"].to_pylist()
        ([3.0], ['6 / x: division by zero'])
        """
        check_stream(self._planned, mode)
        return SqlStream(
            self._planned,
            self._zone,
            lateness=lateness,
            mode=mode,
            early=early,
            schema=schema,
            keep_late=keep_late,
            store=store,
            name=name,
            trust=trust,
        )


def check_stream(planned: Planned, mode: Mode) -> None:
    """Refuse a statement that a stream cannot run: one with ORDER BY or LIMIT, and in live mode one
    whose columns do not identify a row across revisions."""
    select, source = planned.select, planned.source
    if select.order:
        raise source.error(
            "ORDER BY is for tables: a stream has no last row to sort by", *select.order[0].at
        )
    if select.limited is not None:
        raise source.error("LIMIT is for tables: a stream has no end", *select.limited)
    if mode != "live" or planned.driven:
        return
    shown = {(o.node.name, o.node.part) for o in planned.outputs if isinstance(o.node, Ref)}
    missing = [key for key in planned.query.by if (key, None) not in shown]
    if ("window", None) not in shown:
        missing += [f"the window's {p}" for p in ("start", "end") if ("window", p) not in shown]
    if missing:
        raise source.error(
            f"in live mode the SELECT list has the keys and the window's bounds, so that revisions "
            f"of a window can be told apart; it lacks {', '.join(missing)}",
            select.items[0].at[0],
            select.items[-1].at[1],
        )


def statement(
    text: str,
    time: str | None = None,
    timezone: Any = None,
    operators: Mapping[str, Operator] | None = None,
) -> Statement:
    """Read the statement in a text; see `sash.sql`."""
    source = _source(text)
    zone = _zone_name(timezone)
    select = read(source)
    planned = plan(
        select,
        source,
        time=time,
        timezone=zone,
        operators=checked_operators(operators),
        functions=FUNCTIONS,
    )
    _check(planned)
    return Statement(text, planned, zone)


def _source(text: Any) -> Source:
    if not isinstance(text, str):
        raise TypeError(f"sash.sql takes a text of SQL, not {type(text).__name__}")
    return Source(text)


def _zone_name(timezone: Any) -> str | None:
    if timezone is None or isinstance(timezone, str):
        return timezone
    key = getattr(timezone, "key", None)
    if isinstance(key, str):
        return key
    raise TypeError(
        "timezone is the name of a time zone such as 'Europe/Berlin', or a zoneinfo.ZoneInfo that "
        f"has one, not {timezone!r}"
    )


def checked_operators(operators: Mapping[str, Operator] | None) -> Mapping[str, Operator]:
    """Check the user's own operators, by name."""
    for name, operator in (operators or {}).items():
        if not isinstance(name, str) or not isinstance(operator, Operator):
            raise TypeError(
                "operators has names and operators of your own, such as {'spread': spread}, not "
                f"{name!r}: {operator!r}"
            )
    return operators or {}


def _check(planned: Planned) -> None:
    """Refuse expressions that this process cannot compute."""
    source = planned.source
    nodes = [*planned.before.values(), *(o.node for o in planned.outputs)]
    nodes += [o.by for o in planned.order]
    nodes += [] if planned.having is None else [planned.having]
    for node in nodes:
        check_expression(node, source)
        for part in walk(node):
            if isinstance(part, Interval):
                raise source.error(
                    "an interval is the length of a window, and no value in this process; "
                    "sash.spark.sql has all expressions of Spark",
                    *part.at,
                )
