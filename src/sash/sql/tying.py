"""Tie a statement to the columns of a table: find all type errors before there are rows, with their
place in the text.

columns → before: expressions, WHERE → plan of the query → its results → after: SELECT list, HAVING
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..engine.results import check_typed, result_schema
from ..engine.supported import Asked, Place, check
from ..query.aggregates import count
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..query.signatures import Mode
from ..tables.arrow import no_rows, plain_type
from ..windows import Merging
from .errors import SqlError
from .nodes import At, Ref, Star
from .planned import Planned
from .tabled import prepared, projected

__all__ = ["Tied", "check_place", "check_query", "computes_after", "tie"]

#: The errors of a plan or a place for columns, aggregates or windows that it refuses.
_REFUSED = (KeyError, TypeError, ValueError)


@dataclass(frozen=True)
class Tied:
    """The schemas of a statement, stage by stage."""

    plan: Plan
    columns: pa.Schema  # of the columns that the query reads, computed ones included
    results: pa.Schema  # of the query's result
    rows: pa.Schema  # of the statement's rows


def tie(
    planned: Planned,
    schema: pa.Schema,
    zone: str | None,
    place: Place = "Query.run",
    mode: Mode = "final",
    *,
    early: bool = False,
    late: bool = False,
) -> Tied:
    """Tie a statement to the columns of the table in place of FROM, or raise an `SqlError`."""
    streams = place != "Query.run"
    schema = pa.schema([f.with_type(plain_type(f.type)) for f in schema])
    whole = streams and not planned.driven
    columns = prepared(planned, no_rows(schema), zone, whole=whole)[0].schema
    plan = _plan(planned, columns, whole=not streams)
    if streams:
        planned.check_event_columns(mode, schema.names)
        _check_typed(planned, plan)
    check_place(planned, Asked(planned.query, plan, mode, early, late), place)
    if place == "Spark stream":
        planned.check_own(_own_on_spark(planned, mode, late=late))
    results = result_schema(plan, columns, mode)
    rows, _ = projected(planned, no_rows(results), zone, live=mode == "live")
    return Tied(plan, columns, results, rows.schema)


def check_place(planned: Planned, asked: Asked, place: Place) -> None:
    """Refuse a query that a place does not support; the error points to the window in the text."""
    if asked.early and asked.mode != "live":  # not a mistake in the text
        check(place, asked)
    try:
        check(place, asked)
    except _REFUSED as error:
        raise _said(planned, error, planned.windowed) from None


def _own_on_spark(planned: Planned, mode: Mode, *, late: bool) -> list[str]:
    """The columns that a stream on Spark adds to results."""
    own = ["event_time", *(["late"] if late else [])]
    if mode == "live":
        withdrawn = planned.having is not None or isinstance(planned.query.window, Merging)
        own += ["revision", *(["deleted"] if withdrawn else [])]
    return own


def _check_typed(planned: Planned, plan: Plan) -> None:
    """Refuse columns without a type on a stream."""
    try:
        check_typed(plan)
    except TypeError as error:
        bad = next(f.name for f in plan.schema if pa.types.is_null(f.type))
        node = planned.before[bad] if bad in planned.before else planned.read[bad]
        raise _said(planned, error, node.at) from None


def computes_after(planned: Planned) -> bool:
    """True if the SELECT list, or a clause after it, has expressions whose types can be wrong."""
    if planned.having is not None or planned.order:
        return True
    return not all(isinstance(o.node, Ref | Star) for o in planned.outputs)


def check_query(
    planned: Planned, columns: pa.Schema, place: Place, mode: Mode, *, late: bool = False
) -> None:
    """Raise an `SqlError` if the query cannot read these columns, or the place cannot run the
    query."""
    plan = _plan(planned, columns, whole=False)
    check_place(planned, Asked(planned.query, plan, mode, late=late), place)


def _plan(planned: Planned, columns: pa.Schema, *, whole: bool) -> Plan:
    try:
        return make_plan(planned.query, columns, whole=whole)
    except _REFUSED as error:
        raise _said(planned, error, _place_of(planned, columns, error)) from None


def _place_of(planned: Planned, columns: pa.Schema, error: Exception) -> At:
    """The place of a plan's error in the text: the time or a key, if even a count has no plan;
    otherwise the aggregate that has no plan by itself."""
    query = planned.query
    n = {"n": count()}
    if _refused(query, columns, select=n, by=()) is not None:
        return planned.timed.at
    for key in query.by:
        if _refused(query, columns, select=n, by=(key,)) is not None:
            return (planned.before[key] if key in planned.before else planned.read[key]).at
    bad = {
        name: own
        for name, chosen in query.select.items()
        if (own := _refused(query, columns, select={name: chosen})) is not None
    }
    if not bad:
        return planned.timed.at
    return planned.places[next((name for name, own in bad.items() if own == str(error)), min(bad))]


def _refused(query: Query, columns: pa.Schema, **changed: Any) -> str | None:
    """The reason why a query with some changes has no plan; None if it has one."""
    try:
        make_plan(dataclasses.replace(query, **changed), columns)
    except _REFUSED as error:
        return str(error)
    return None


def _said(planned: Planned, error: Exception, at: At) -> SqlError:
    said = error.args[0] if isinstance(error, KeyError) else error
    return planned.source.error(str(said), *at)
