"""Turn a call of an aggregate in the text into an `Aggregate` over columns.

The registry of operators has the names: an operator's own name, its aliases, and its names in SQL.
The Python function of the same name determines the columns and parameters of an aggregate.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import pyarrow.compute as pc

from ..operators.contract import Operator
from ..query import aggregates as ready
from ..query.aggregates import Aggregate
from ..query.registry import REGISTRY, SQL_NAMES
from .errors import Source
from .nodes import Call, Literal_, Node, Star, Unary

__all__ = ["AGGREGATES", "Made", "aggregate_of", "constants", "is_aggregate", "refuse_ranking"]

#: What to do with an answer: keep it, round it to a whole number, or take the one field of a
#: struct, or its fields as a list.
Then = Literal["", "whole", "field", "list"]

#: Window functions that are no aggregates, and what to write instead.
_RANKING = {
    **dict.fromkeys(
        ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"),
        "ranking functions are not supported; count(*) OVER (… ROWS or RANGE …) counts the events "
        "up to each",
    ),
    "lag": "lag is not supported; write nth_youngest(x, 2) OVER (… ROWS BETWEEN 1 PRECEDING AND "
    "CURRENT ROW)",
    "lead": "lead is not supported: a window ends at its event or before it",
    "nth_value": "nth_value is not supported; write nth_youngest(x, n), which counts from the end",
}

#: Names of aggregates that are scalar functions in SQL.
_SCALAR = ("concat",)


@dataclass(frozen=True)
class Made:
    """An aggregate, and what to do with its answers."""

    aggregate: Aggregate
    then: Then = ""


@cache
def _names() -> dict[str, str]:
    """The name of the Python function, by the name in SQL."""
    found: dict[str, str] = {}
    for name, facts in REGISTRY.items():
        for other in (name, *facts.aliases, *SQL_NAMES.get(name, ())):
            if other not in _SCALAR and hasattr(ready, name):
                found[other] = name
    return found


def AGGREGATES() -> list[str]:
    """All names of aggregates in SQL."""
    return sorted(_names())


def is_aggregate(call: Call, operators: Mapping[str, Operator]) -> bool:
    """True if a call names an aggregate."""
    return call.name in _names() or call.name in operators


def refuse_ranking(call: Call, source: Source) -> None:
    """Refuse window functions that are no aggregates."""
    if call.name in _RANKING:
        raise source.error(_RANKING[call.name], *call.named)


def aggregate_of(
    call: Call,
    operators: Mapping[str, Operator],
    column: Callable[[Node], str],
    source: Source,
) -> Made:
    """The aggregate for a call; `column` returns the name of the column that holds the values of an
    expression."""
    if call.ordered:
        raise source.error(
            f"ORDER BY within {call.name} is not supported: values are in order of event time",
            *call.ordered[0].at,
        )
    where = {} if call.where is None else {"where": pc.field(column(call.where))}
    if call.name in operators:
        return _own(call, operators[call.name], column, source, where)
    name = _names()[call.name]
    if call.distinct:
        name = _distinct(call, name, source)
    args = list(call.args)
    if call.within:
        args = _within(call, args, source)
    ignore = call.nulls == "ignore"
    if name == "count":
        return Made(_count(call, args, column, source, where))
    function = getattr(ready, name)
    parameters = inspect.signature(function).parameters
    if "ignore_nulls" in parameters and len(args) == 2 and _is_flag(args[1]) and name in _FLAGGED:
        ignore = bool(args.pop().value)  # type: ignore[attr-defined]
    if call.nulls is not None and "ignore_nulls" not in parameters:
        raise source.error(
            f"{call.name} takes no {call.nulls.upper()} NULLS, which is for first, last and "
            "functions that pick a value",
            *call.at,
        )
    given, scalar = _arguments(call, args, parameters, column, source)
    if ignore:
        where["ignore_nulls"] = True
    try:
        made = function(*given, **where)
    except (ValueError, TypeError) as error:
        raise source.error(f"{call.name}: {error}", *call.at) from None
    if call.name in ("approx_count_distinct", "approx_distinct"):
        return Made(made, "whole")
    if name == "quantiles" and call.name != "quantiles":
        return Made(made, "field" if scalar else "list")
    return Made(made)


_FLAGGED = ("first", "last", "any_value")


def _is_flag(node: Node) -> bool:
    return isinstance(node, Literal_) and node.kind == "boolean"


def _own(
    call: Call,
    operator: Operator,
    column: Callable[[Node], str],
    source: Source,
    where: dict[str, Any],
) -> Made:
    """An aggregate of the user's own operator, over columns."""
    if call.distinct or call.nulls or call.within:
        raise source.error(
            f"{call.name} is your own operator, and takes only columns and FILTER", *call.at
        )
    try:
        return Made(ready.aggregate(operator, *map(column, call.args), **where))
    except (ValueError, TypeError) as error:
        raise source.error(str(error), *call.at) from None


def _distinct(call: Call, name: str, source: Source) -> str:
    """The name of the aggregate over distinct values."""
    made = {
        "count": "count_distinct",
        "count_distinct": "count_distinct",
        "collect": "collect_distinct",
        "collect_distinct": "collect_distinct",
        "max": "max",
        "min": "min",
    }
    if name not in made:
        raise source.error(
            f"{call.name}(DISTINCT …) is not supported; DISTINCT goes with count, collect_list, "
            "array_agg, min and max",
            *call.at,
        )
    return made[name]


def _within(call: Call, args: list[Node], source: Source) -> list[Node]:
    """The arguments of percentile_cont(0.5) WITHIN GROUP (ORDER BY x), the values first."""
    order = call.within[0]
    if len(call.within) != 1 or order.descending or order.nulls or "percentile" not in call.name:
        raise source.error(
            "WITHIN GROUP (ORDER BY x) is for percentiles, with one expression in rising order",
            *order.at,
        )
    return [order.by, *args]


def _count(
    call: Call,
    args: list[Node],
    column: Callable[[Node], str],
    source: Source,
    where: dict[str, Any],
) -> Aggregate:
    if len(args) != 1:
        raise source.error("count takes * or one expression", *call.at)
    (of,) = args
    if call.nulls:
        raise source.error(
            "count takes no IGNORE NULLS: count(x) leaves nulls out, and count(*) has them",
            *call.at,
        )
    if isinstance(of, Star) or (isinstance(of, Literal_) and of.kind != "null"):
        return ready.count(**where)
    return ready.count(column(of), **where)


def _arguments(
    call: Call,
    args: list[Node],
    parameters: Mapping[str, inspect.Parameter],
    column: Callable[[Node], str],
    source: Source,
) -> tuple[list[Any], bool]:
    """The arguments for the Python function, and whether its last parameter is a single number."""
    wanted = [p for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    needed = [p for p in wanted if p.default is p.empty]
    if not len(needed) <= len(args) <= len(wanted):
        some = ", ".join(p.name if p in needed else f"[{p.name}]" for p in wanted)
        raise source.error(f"{call.name} is written as {call.name}({some})", *call.at)
    made: list[Any] = []
    scalar = True
    for node, parameter in zip(args, wanted, strict=False):
        if isinstance(node, Star):
            raise source.error(f"{call.name} takes a column, not *", *node.at)
        if str(parameter.annotation).startswith("str"):
            made.append(column(node))
            continue
        value = _constant(node)
        if value is None:
            raise source.error(
                f"{parameter.name} of {call.name} must be a number in the text", *node.at
            )
        scalar = not isinstance(value, list)
        made.append(value)
    return made, scalar


def constants(call: Call) -> list[Node]:
    """The arguments of an aggregate that are numbers in array(…)."""
    return [a for a in call.args if isinstance(a, Call) and _constant(a) is not None]


def _constant(node: Node) -> Any:
    """A number, or the numbers in array(…); None for anything else."""
    if isinstance(node, Unary) and node.op == "+":
        return _constant(node.of)
    if isinstance(node, Call) and node.name == "array" and node.args:
        values = [_constant(a) for a in node.args]
        return None if None in values else values
    if isinstance(node, Literal_) and node.kind not in ("null", "date", "timestamp"):
        whole = isinstance(node.value, int | str)
        return node.value if whole else float(node.value)
    return None
