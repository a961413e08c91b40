"""Find the form of a statement, and its window, time and keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ..query.aggregates import Aggregate
from ..query.names import nearest
from ..windows import Trailing, Window, lifetime
from .errors import Source
from .nodes import Call, Column, Cql, Node, Select, Table, WindowSpec, walk
from .windows import Framed, cql_window, framed, spark_window, table_window

__all__ = ["Asked", "window_of"]

_OLD = ("tumble", "hop", "session", "cumulate")
_OLD_BOUNDS = tuple(f"{name}_{end}" for name in _OLD for end in ("start", "end", "rowtime"))
_FORMS = (
    "GROUP BY k, window(ts, '1 hour', '1 minute')",
    "FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR)) GROUP BY k, "
    "window_start, window_end",
    "sum(x) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT "
    "ROW)",
    "FROM t [RANGE 1 HOUR SLIDE 1 MINUTE]",
)


@dataclass(frozen=True)
class Asked:
    """The window, the time and the keys of a statement."""

    window: Window
    time: Node
    keys: tuple[Node, ...]
    tie: Node | None = None
    call: Call | None = None  # Spark's window(…) or session_window(…)
    over: bool = False
    cql_rows: bool = False
    measured: tuple[Column, ...] = ()  # columns that the window reads
    sizes: dict[WindowSpec, Trailing] = field(default_factory=dict)  # of each OVER

    @property
    def named_bounds(self) -> bool:
        """True if the window's bounds are the columns window_start and window_end."""
        return self.call is None and not self.over and not self.cql_rows

    @property
    def bounds(self) -> tuple[str, ...]:
        """How the text writes the window's bounds."""
        if self.call is not None:
            return f"{self.call.name}.start", f"{self.call.name}.end"
        return ("window_start", "window_end") if self.named_bounds else ()

    def sized(self, call: Call, made: Aggregate) -> Aggregate:
        """Give an aggregate the window size of its OVER."""
        own = None if call.over is None else self.sizes.get(call.over)
        if own is None or own == self.window:
            return made
        return made.over(lifetime() if own.size is None else own.size)


def window_of(
    select: Select,
    source: Source,
    time: str | None,
    timezone: Any,
    is_aggregate: Callable[[Node], bool],
) -> Asked:
    """Find the window, the time and the keys of a statement."""
    calls = [n for g in select.group for n in walk(g) if isinstance(n, Call)]
    _check_old(select, source, calls)
    spark = [c for c in calls if c.name in ("window", "session_window")]
    overs = [n for n in _selected(select) if isinstance(n, Call) and n.over is not None]
    found: list[tuple[str, Node]] = []
    found += [(f"{c.name}(…) in GROUP BY", c) for c in spark]
    if isinstance(select.source, Table | Cql):
        found.append((f"{_called(select.source)} in FROM", select.source))
    found += [("OVER", c) for c in overs[:1]]
    if len(found) > 1:
        raise source.error(
            f"there are two windows, {found[0][0]} and {found[1][0]}; a SELECT has one",
            *found[1][1].at,
        )
    if not found:
        raise _no_window(select, source, is_aggregate)
    asked: Asked
    if spark:
        asked = _by_spark(select, source, timezone, spark[0])
    elif isinstance(select.source, Table):
        asked = _by_table(select, select.source, source, timezone)
    elif isinstance(select.source, Cql):
        asked = _by_cql(select, select.source, source, time, timezone)
    else:
        asked = _by_over(select, source, overs)
    named = asked.time.name if isinstance(asked.time, Column) else ""
    if time is not None and named.lower() != time.lower():
        raise source.error(
            f"the windows of this text are over {named or 'an expression'}, and the column of "
            f"times is given as {time!r}; make the two the same",
            *asked.time.at,
        )
    if select.windows and not asked.over:
        spec = next(iter(select.windows.values()))
        raise source.error("no OVER uses this window", *spec.at)
    return asked


def _selected(select: Select) -> list[Node]:
    parts: list[Node] = [*select.items, *select.order]
    parts += [n for n in (select.having, select.where) if n is not None]
    return [n for part in parts for n in walk(part)]


def _called(given: Table | Cql) -> str:
    return given.function if isinstance(given, Table) else "[…]"


def _check_old(select: Select, source: Source, grouped: list[Call]) -> None:
    """Refuse Flink's old GROUP BY HOP(…), and show the form to write."""
    for call in [*grouped, *(n for n in _selected(select) if isinstance(n, Call))]:
        if call.name in _OLD or call.name in _OLD_BOUNDS:
            name = call.name.split("_")[0].upper()
            rest = {
                "TUMBLE": "size",
                "HOP": "slide, size",
                "CUMULATE": "step, size",
                "SESSION": "gap",
            }[name]
            keys = " PARTITION BY k" if name == "SESSION" else ""
            raise source.error(
                f"{call.name.upper()}(…) is Flink's old form; write FROM TABLE({name}(TABLE "
                f"t{keys}, DESCRIPTOR(ts), {rest})) … GROUP BY window_start, window_end",
                *call.at,
            )


def _no_window(select: Select, source: Source, is_aggregate: Callable[[Node], bool]) -> Exception:
    place: Node = select
    for node in _selected(select):
        if is_aggregate(node):
            place = node
            break
    at = select.grouped or place.at
    return source.error("there is no window; write one of these", at[0], at[1], _FORMS)


def _by_spark(select: Select, source: Source, timezone: Any, call: Call) -> Asked:
    if call not in select.group:
        raise source.error(f"{call.name}(…) must be an item of GROUP BY by itself", *call.at)
    time, window = spark_window(call, source, timezone)
    keys = tuple(g for g in select.group if g != call)
    measured = tuple(a for a in call.args[1:] if isinstance(a, Column))
    return Asked(window, time, keys, call=call, measured=measured)


def _by_table(select: Select, table: Table, source: Source, timezone: Any) -> Asked:
    window = table_window(table, source, timezone)
    bounds = {"window_start", "window_end"}
    found = {g.folded for g in select.group if isinstance(g, Column)} & bounds
    if found != bounds:
        missing = " and ".join(sorted(bounds - found, reverse=True))
        at = select.grouped or select.at
        raise source.error(
            f"GROUP BY lacks {missing}; the rows of {table.function} are grouped by window_start "
            "and window_end, with the keys",
            *at,
            sorted(bounds - found),
        )
    keys = tuple(g for g in select.group if not (isinstance(g, Column) and g.folded in bounds))
    if table.function == "SESSION" and set(keys) != set(table.partition):
        at = table.partition[0].at if table.partition else table.at
        raise source.error(
            "the keys of SESSION's PARTITION BY are those of GROUP BY, besides window_start and "
            "window_end",
            *at,
        )
    return Asked(window, table.given["TIMECOL"], keys)


def _by_cql(select: Select, cql: Cql, source: Source, time: str | None, timezone: Any) -> Asked:
    if time is None:
        raise source.error(
            "CQL does not name the column of times; give it: sash.sql(text, time='ts')", *cql.at
        )
    window = cql_window(cql, source, timezone)
    clock = Column(time, (), time.lower(), at=cql.at)
    if cql.unit == "range":
        if cql.partition:
            raise source.error(
                "PARTITION BY is for ROWS; the keys of RANGE are those of GROUP BY",
                *cql.partition[0].at,
            )
        return Asked(window, clock, select.group)
    if set(cql.partition) != set(select.group):
        if not cql.partition:
            raise source.error(
                "[ROWS …] are the last rows of all keys together; for the last of each key write "
                "[PARTITION BY k ROWS …]",
                *cql.at,
            )
        raise source.error("the keys of PARTITION BY are those of GROUP BY", *cql.partition[0].at)
    return Asked(window, clock, select.group, cql_rows=True)


def _by_over(select: Select, source: Source, calls: list[Call]) -> Asked:
    if select.group or select.grouped:
        raise source.error(
            "GROUP BY returns a row for each group, and OVER one for each event; use one of them",
            *(select.grouped or select.at),
        )
    resolved: dict[WindowSpec, Framed] = {}
    used: set[str] = set()
    for call in calls:
        assert call.over is not None
        if call.over not in resolved:
            resolved[call.over] = framed(_named(call.over, select, source, used), source)
    for name, spec in select.windows.items():
        if name not in used:
            raise source.error(f"no OVER uses the window {name}", *spec.at)
    first, *others = resolved.values()
    for other in others:
        differs = first.differs(other)
        if differs:
            raise source.error(
                f"{differs} is not the same in all OVER of this SELECT; run one statement for each",
                *other.spec.at,
            )
    sizes = {
        spec: found.window for spec, found in resolved.items() if isinstance(found.window, Trailing)
    }
    bounded = [w for w in sizes.values() if w.size is not None]
    window = bounded[0] if bounded else first.window
    return Asked(window, first.time, first.partition, first.tie, over=True, sizes=sizes)


def _named(
    spec: WindowSpec, select: Select, source: Source, used: set[str], within: tuple[str, ...] = ()
) -> WindowSpec:
    """Fill in a window from its named window; `within` has the names on the way to it."""
    if spec.base is None:
        return spec
    name = spec.base.lower()
    if name not in select.windows:
        raise source.error(
            f"there is no window {spec.base}",
            *spec.at,
            [f"WINDOW {spec.base} AS (…)", *select.windows],
            nearest(spec.base, select.windows),
        )
    if name in within:
        raise source.error(f"the window {spec.base} refers to itself", *spec.at)
    used.add(name)
    base = _named(select.windows[name], select, source, used, (*within, name))
    if (spec.partition and base.partition) or (spec.order and base.order):
        raise source.error(f"the window {spec.base} already has this clause", *spec.at)
    return replace(
        spec,
        base=None,
        partition=spec.partition or base.partition,
        order=spec.order or base.order,
        frame=spec.frame or base.frame,
    )
