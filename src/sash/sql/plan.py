"""Plan a statement: the columns to compute before the query, the query, and the columns of the
result.

    table → before: expressions, WHERE → Query → after: SELECT list, HAVING, ORDER BY, LIMIT

In the expressions after the query, a `Ref` to a column of the query's result replaces the key, the
aggregate or the window's bound in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from ..operators.contract import Operator
from ..query.aggregates import Aggregate
from ..query.names import nearest
from ..query.query import RESERVED, Query
from ..windows import Window
from .aggregates import AGGREGATES, Then, aggregate_of, constants, is_aggregate, refuse_ranking
from .errors import Source
from .forms import Asked, window_of
from .nodes import (
    Alias,
    At,
    Call,
    Column,
    Field,
    Guarded,
    Item,
    Lambda,
    Literal_,
    Node,
    Order,
    Ref,
    Select,
    Star,
    free_columns,
    rebuilt,
    walk,
)
from .planned import Output, Planned
from .scope import Scope, text_of

__all__ = ["plan"]


def plan(
    select: Select,
    source: Source,
    *,
    time: str | None,
    timezone: Any,
    operators: Mapping[str, Operator],
    functions: Collection[str] | None,
) -> Planned:
    """Plan a statement.  `functions` has the scalar functions that exist; None for Spark, which
    checks them itself."""
    return _Planner(select, source, time, timezone, operators, functions).plan()


class _Planner:
    def __init__(
        self,
        select: Select,
        source: Source,
        time: str | None,
        timezone: Any,
        operators: Mapping[str, Operator],
        functions: Collection[str] | None,
    ) -> None:
        self.source, self.functions = source, functions
        self.operators = {name.lower(): op for name, op in operators.items()}
        self.scope = Scope(select, source, on_spark=functions is None)
        self.select = self.scope.resolved(select)
        self.aliases: list[tuple[str, At]] = []
        self.group = tuple(map(self._grouped, self.select.group))
        self.asked: Asked = window_of(
            replace(self.select, group=self.group), source, time, timezone, self._is_aggregate
        )
        self.before: dict[str, Node] = {}
        self.read: dict[str, Column] = {}
        self.aggregates: dict[str, Aggregate] = {}
        self.conditions: dict[str, None] = {}
        self.then: dict[str, Then] = {}
        self.refs: dict[Node, Ref] = {}  # aggregates that already have a name
        self.keys: dict[Node, str] = {}
        self.taken: set[str] = {name.lower() for name in RESERVED}
        self.taken |= {n.folded for n in self._every(Column)}

    def plan(self) -> Planned:
        self._check_calls()
        asked = self.asked
        for key in asked.keys:
            self.keys[key] = self._key(key)
        clock = self._column(asked.time)
        for column in asked.measured:
            self._column(column)
        tie = None if asked.tie is None else self._column(asked.tie)
        where = self._where()
        outputs = self._outputs()
        having = None
        if self.select.having is not None:
            if asked.over:
                self._fail(
                    "HAVING goes with GROUP BY; filter the result instead", self.select.having
                )
            having = self._after(self._aliased(self.select.having, outputs))
        order = tuple(self._ordered(o, outputs) for o in self.select.order)
        if self.select.stream == "istream":
            self._check_shown(outputs, having, order)
        query = self._query(clock, tie, where)
        return Planned(
            self.source,
            self.select,
            query,
            self.before,
            self.read,
            where,
            frozenset(self.conditions),
            tuple(outputs),
            having,
            order,
            self.then,
            tuple(self.aliases),
            asked.time,
            {ref.name: call.at for call, ref in self.refs.items()},
            self._window_place(),
        )

    def _window_place(self) -> At:
        """The place of the window in the text: in GROUP BY, in FROM, or behind an aggregate."""
        if self.asked.call is not None:
            return self.asked.call.at
        if self.asked.over:
            return next(iter(self.refs.values())).at
        return self.select.source.at

    def _fail(self, problem: str, node: Node, **more: Any) -> NoReturn:
        raise self.source.error(problem, *node.at, **more)

    def _every(self, kind: type) -> list[Any]:
        return [n for n in walk(self.select) if isinstance(n, kind)]

    def _is_aggregate(self, node: Node) -> bool:
        return isinstance(node, Call) and is_aggregate(node, self.operators)

    # before the query

    def _grouped(self, node: Node) -> Node:
        """Resolve an expression of GROUP BY: a number stands for an item of the SELECT list, and a
        name that is no column may be an alias."""
        items = self.select.items
        if isinstance(node, Literal_) and isinstance(node.value, int):
            if not 1 <= node.value <= len(items):
                self._fail(f"the SELECT list has {len(items)} items, not {node.value}", node)
            node = items[node.value - 1].of
            if any(map(self._is_aggregate, walk(node))):
                self._fail("GROUP BY cannot name an aggregate", node)
            return node
        if not isinstance(node, Column) or node.before:
            return node
        for item in items:
            aliased = item.alias is not None and item.alias.lower() == node.folded
            if not aliased or item.of == node:
                continue
            columns = [n for n in walk(item.of) if isinstance(n, Column)]
            if any(c.folded == node.folded for c in columns):
                continue  # SQL takes the column itself
            if any(map(self._is_aggregate, walk(item.of))):
                self._fail(f"{node.name} is an aggregate, by which rows cannot be grouped", node)
            self.aliases.append((node.name, node.at))
            return item.of
        return node

    def _column(self, node: Node) -> str:
        """The name of the column that holds the values of an expression; if that is no column of
        the table, compute it before the query."""
        if any(map(self._is_aggregate, walk(node))):
            inner = next(n for n in walk(node) if self._is_aggregate(n))
            self._fail("an aggregate cannot stand within another one", inner)
        if isinstance(node, Column) and not node.before:
            known = self.read.setdefault(self._canonical(node), node)
            return known.name
        for name, computed in self.before.items():
            if computed == node:
                return name
        return self._computed(node)

    def _computed(self, node: Node) -> str:
        """The name of a column to compute before the query."""
        for column in free_columns(node):
            if not column.before:
                self.read.setdefault(self._canonical(column), column)
        name = self._fresh(text_of(self.source, node))
        self.before[name] = node
        return name

    def _canonical(self, column: Column) -> str:
        """The query's name for a column: its first spelling in the text."""
        for name in self.read:
            if name.lower() == column.folded:
                return name
        return column.name

    def _fresh(self, name: str) -> str:
        """A name that is not in use."""
        made, count = name, 1
        while made.lower() in self.taken:
            count += 1
            made = f"{name} {count}"
        self.taken.add(made.lower())
        return made

    def _key(self, node: Node) -> str:
        if any(map(self._is_aggregate, walk(node))):
            self._fail("rows cannot be grouped by an aggregate", node)
        if isinstance(node, Literal_):
            self._fail("a key is a column or an expression of columns", node)
        return self._column(node)

    def _where(self) -> str | None:
        where = self.select.where
        if where is None:
            return None
        for node in walk(where):
            if self._is_aggregate(node):
                over = isinstance(node, Call) and node.over is not None
                self._fail(
                    "an aggregate cannot stand in WHERE, which chooses rows before there are "
                    f"windows; {'filter the result instead' if over else 'write HAVING'}",
                    node,
                )
        return self._condition(where)

    def _condition(self, node: Node) -> str:
        """The name of the computed column that holds a condition."""
        for inner in walk(node):
            if self._is_aggregate(inner):
                self._fail("an aggregate cannot stand within another one", inner)
        known = [n for n in self.conditions if self.before[n] == node]
        name = known[0] if known else self._computed(node)
        self.conditions[name] = None
        return name

    # after the query

    def _outputs(self) -> list[Output]:
        found: list[Output] = []
        for item in self.select.items:
            if isinstance(item.of, Star):
                if not self.asked.over:
                    self._fail(
                        "* has all columns, and rows of windows have keys, the window's bounds and "
                        "aggregates; list these",
                        item.of,
                    )
                found.append(Output("*", item.of, item.at))
                continue
            name = item.alias or self._output_name(item)
            if any(o.name.lower() == name.lower() for o in found):
                self._fail(f"two columns are called {name}; give one another name with AS", item)
            found.append(Output(name, self._after(item.of, item.alias), item.at))
        return found

    def _output_name(self, item: Item) -> str:
        if isinstance(item.of, Column | Field):
            return item.of.name
        return text_of(self.source, item.of)

    def _ordered(self, order: Order, outputs: list[Output]) -> Order:
        by = order.by
        if isinstance(by, Literal_) and isinstance(by.value, int):
            if not 1 <= by.value <= len(outputs):
                self._fail(f"the SELECT list has {len(outputs)} items, not {by.value}", by)
            return replace(order, by=outputs[by.value - 1].node)
        return replace(order, by=self._after(self._aliased(by, outputs)))

    def _aliased(self, node: Node, outputs: list[Output]) -> Node:
        """Resolve aliases of the SELECT list in an expression behind it; a key of the same name
        takes precedence."""
        named = {o.name.lower(): o.node for o in outputs}

        def change(part: Node) -> Node | None:
            if isinstance(part, Column) and part.folded in named and part not in self.keys:
                return Alias(named[part.folded], at=part.at)
            return part if self._is_aggregate(part) else None

        return rebuilt(node, change)

    def _after(self, node: Node, alias: str | None = None) -> Node:
        """Rewrite an expression in terms of the query's result."""
        direct = node if self._is_aggregate(node) else None
        if self.asked.over and not any(map(self._is_aggregate, walk(node))):
            if isinstance(node, Column) and not node.before:
                return Ref(self._column(node), at=node.at)
            if not isinstance(node, Literal_ | Alias):
                return Ref(self._column(node), at=node.at)

        def change(part: Node) -> Node | None:
            if isinstance(part, Alias):
                return part
            if part in self.keys and not isinstance(part, Literal_):
                return Ref(self.keys[part], at=part.at)
            bound = self._bound(part)
            if bound is not None:
                return bound
            if self._is_aggregate(part):
                assert isinstance(part, Call)
                return self._aggregate(part, alias if part is direct else None)
            if isinstance(part, Call) and part.over is not None:
                refuse_ranking(part, self.source)
                self._unknown(part)
            if isinstance(part, Lambda):
                return _in_lambda(part, change)
            if isinstance(part, Column):
                return self._kept(part)
            if isinstance(part, Star):
                self._fail("* can stand by itself in the SELECT list, or in count(*)", part)
            return None

        return rebuilt(node, change)

    def _bound(self, part: Node) -> Ref | None:
        """A reference to the window or one of its bounds."""
        asked = self.asked
        if asked.call is not None and part == asked.call:
            return Ref("window", at=part.at)
        if isinstance(part, Field) and asked.call is not None and part.of == asked.call:
            return self._part(part, part.name)
        if not isinstance(part, Column):
            return None
        if asked.call is not None and part.folded in ("window", "session_window"):
            if part.folded != asked.call.name:
                self._fail(f"the window is called {asked.call.name}", part)
            return Ref("window", at=part.at)
        qualified = asked.call is not None and len(part.before) == 1
        if qualified and part.before[0].lower() == asked.call.name:  # type: ignore[union-attr]
            return self._part(part, part.name)
        if part.folded in ("window_start", "window_end") and asked.named_bounds:
            return self._part(part, part.name.lower().removeprefix("window_"))
        return None

    def _part(self, node: Node, name: str) -> Ref:
        if name.lower() not in ("start", "end"):
            near = nearest(name, ("start", "end"))
            self._fail(f"a window has no {name}", node, allowed=("start", "end"), nearest=near)
        return Ref("window", name.lower(), at=node.at)  # type: ignore[arg-type]

    def _kept(self, column: Column) -> Node:
        """A column after the query: one that the events' rows keep, or else an error."""
        if self.asked.over:
            return Ref(self._column(column), at=column.at)
        keys = [k.name if isinstance(k, Column) else text_of(self.source, k) for k in self.keys]
        bounds = self.asked.bounds
        near = nearest(column.written, [*keys, *bounds])
        raise self.source.error(
            f"column {column.written} is neither grouped nor aggregated; put it into "
            f"{'GROUP BY' if not self.asked.cql_rows else 'PARTITION BY and GROUP BY'}, or into an "
            f"aggregate such as max({column.name})",
            *column.at,
            (*keys, *bounds, "aggregates"),
            near,
        )

    def _aggregate(self, call: Call, alias: str | None) -> Ref:
        known = self.refs.get(call)
        if known is not None:
            return replace(known, at=call.at)
        if self.asked.over and call.over is None:
            self._fail(
                f"{call.name} has no OVER, and others have; give it one, or GROUP BY a window",
                call,
            )

        def column(node: Node) -> str:
            if node is call.where:
                return self._condition(node)
            if call.where is None or isinstance(node, Column | Literal_):
                return self._column(node)
            return self._column(Guarded(node, call.where, at=node.at))

        made = aggregate_of(call, self.operators, column, self.source)
        aggregate = self.asked.sized(call, made.aggregate)
        name = self._fresh(alias) if alias else self._fresh(text_of(self.source, call))
        self.aggregates[name] = aggregate
        if made.then:
            self.then[name] = made.then
        ref = Ref(name, at=call.at)
        self.refs[call] = ref
        return ref

    # checks

    def _check_calls(self) -> None:
        """Refuse unknown functions."""
        calls = self._every(Call)
        lists = [a for c in calls if self._is_aggregate(c) for a in constants(c)]
        for call in calls:
            refuse_ranking(call, self.source)
            if call == self.asked.call or self._is_aggregate(call) or call in lists:
                continue
            if self.functions is not None and call.name not in self.functions:
                self._unknown(call)
            for what, there in _ONLY.items():
                if getattr(call, there):
                    self._fail(f"{call.name} is no aggregate, so {what} cannot follow it", call)

    def _check_shown(
        self, outputs: Iterable[Output], having: Node | None, order: Iterable[Order]
    ) -> None:
        """Refuse an aggregate of ISTREAM that is not by itself in the SELECT list: a change of the
        aggregate would repeat a row."""
        shown = {o.node.name for o in outputs if isinstance(o.node, Ref)}
        parts = [o.node for o in outputs] + [o.by for o in order]
        parts += [] if having is None else [having]
        for ref in (n for part in parts for n in walk(part) if isinstance(n, Ref)):
            if ref.name in self.aggregates and ref.name not in shown:
                self._fail(
                    "ISTREAM has a row where an aggregate has changed, and this one is not in the "
                    "list by itself; list it, as in ISTREAM(k, max(x) AS m), and compute with the "
                    "result",
                    ref,
                )

    def _unknown(self, call: Call) -> NoReturn:
        known = [*(self.functions or ()), *AGGREGATES(), *self.operators]
        if call.name in ("count_if", "countif"):
            raise self.source.error(
                f"{call.name} is not supported; write count(*) FILTER (WHERE …)", *call.named
            )
        raise self.source.error(
            f"there is no function {call.name}",
            *call.named,
            known,
            nearest(call.name, known),
        )

    def _query(self, clock: str, tie: str | None, where: str | None) -> Query:
        import pyarrow.compute as pc

        if not self.aggregates:
            self._fail(
                "the SELECT list has no aggregate; put one there, such as count(*)",
                self.select.items[0],
            )
        window: Window = self.asked.window
        try:
            return Query(
                time=clock,
                by=list(self.keys.values()),
                window=window,
                select=self.aggregates,
                tie=tie,
                where=None if where is None else pc.field(where),
                emit="changes" if self.select.stream == "istream" else "all",
            )
        except (ValueError, TypeError) as error:
            raise self.source.error(str(error), *self.select.at) from None


def _in_lambda(part: Lambda, change: Callable[[Node], Node | None]) -> Node:
    """Replace parts of a lambda's body, except its own parameters."""
    names = {name.lower() for name in part.names}

    def inner(node: Node) -> Node | None:
        own = isinstance(node, Column) and node.folded in names
        return node if own else change(node)

    return replace(part, body=rebuilt(part.body, inner))


_ONLY = {
    "DISTINCT": "distinct",
    "FILTER": "where",
    "OVER": "over",
    "IGNORE NULLS": "nulls",
    "WITHIN GROUP": "within",
    "ORDER BY": "ordered",
}
