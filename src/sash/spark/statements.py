"""`sash.spark.sql`: an SQL text over Spark's tables and views.

    FROM, WHERE and expressions → Spark → the query → Spark: SELECT list, HAVING, ORDER BY, LIMIT

Spark runs the expressions before and after the window as they are written; sash runs only the
aggregates and the window.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ..engine.supported import Place
from ..operators.contract import Operator
from ..query.query import Query
from ..query.signatures import Mode
from ..sql.errors import Source
from ..sql.nodes import At, Cql, Guarded, Node, Other, Star, Table
from ..sql.pieces import Pieces
from ..sql.plan import plan
from ..sql.planned import Planned
from ..sql.read_select import read
from ..sql.scope import spliced
from ..sql.statement import Statement, check_stream, checked_operators
from ..sql.tying import check_query
from ..windows import duration
from .sql_errors import analysed, first_refused
from .types import quoted, quoted_name

__all__ = ["aggregated", "prepared_frame", "projected_frame", "query_of", "sql"]

#: Columns that sash adds to the results of a stream.
_OWN = ("revision", "deleted", "event_time", "late")


def sql(
    spark: SparkSession,
    text: str,
    lateness: Any = None,
    mode: Mode = "final",
    late: bool = False,
    *,
    time: str | None = None,
    timezone: str | None = None,
    operators: Mapping[str, Operator] | None = None,
) -> DataFrame:
    """The results of an SQL statement as a DataFrame, batch or streaming as its FROM is: the
    columns of the SELECT list, then those that sash adds to the results of a stream.

    Spark itself runs the FROM (a table, a view, a subquery, a join) and every expression before and
    after the window, as it is written.  `lateness` is the delay of the watermark; without it, the
    time column of a stream needs `withWatermark`.  `mode` and `late` are as for `aggregate`;
    `time`, `timezone` and `operators` as for `sash.sql`.
    """
    if not isinstance(text, str):
        raise TypeError(f"sash.spark.sql takes a text of SQL, not {type(text).__name__}")
    source = Source(text)
    planned = plan(
        read(source),
        source,
        time=time,
        timezone=timezone,
        operators=checked_operators(operators),
        functions=None,
    )
    names = _columns_of(spark, planned) if _needs_columns(planned, mode) else []
    text_before = _before(planned)
    with analysed(planned, text_before, planned.select.source.at):
        df = spark.sql(text_before.text)
        df.schema  # noqa: B018 (so that Spark Connect analyses the text now, and not later)
    if lateness is not None:
        if not df.isStreaming:
            raise ValueError("lateness is for streams, and FROM is none; leave it out")
        delay = f"{duration(lateness, 'the lateness')} microseconds"
        df = df.withWatermark(quoted_name(planned.query.time), delay)
    if df.isStreaming:
        check_stream(planned, mode)
        planned.check_event_columns(mode, names)
    found = aggregated(planned, df, mode, late)
    return projected_frame(planned, found, names, streaming=df.isStreaming, mode=mode)


def aggregated(planned: Planned, df: DataFrame, mode: Mode, late: bool, *more: Any) -> DataFrame:
    """The results of a statement's query.  An error about types or the window points to its place
    in the text."""
    from .frames import aggregate, schema_for

    query = query_of(planned)
    try:
        return aggregate(df, query, mode, late, *more)
    except (KeyError, TypeError, ValueError):
        place: Place = "Spark stream" if df.isStreaming else "Spark batch"
        behind = dataclasses.replace(planned, query=query)
        check_query(behind, schema_for(df, query), place, mode, late=late)
        raise


def query_of(planned: Planned) -> Query:
    """The statement's query without its condition, as Spark has run the WHERE."""
    return dataclasses.replace(planned.query, where=None)


def _needs_columns(planned: Planned, mode: Mode) -> bool:
    return planned.stars or bool(planned.aliases) or (planned.driven and mode == "live")


def _add_from(made: Pieces, planned: Planned) -> Pieces:
    """Add the FROM clause to a text for Spark."""
    given = planned.select.source
    made.add(" FROM ")
    if not isinstance(given, Table | Cql):
        return made.copy(given.at)
    return made.copy(given.table).add(f" AS {quoted_name(given.alias)}" if given.alias else "")


def _opened(planned: Planned) -> Pieces:
    """The start of a text for Spark: WITH, if there is one, and SELECT."""
    made, ctes = Pieces(planned.source), planned.select.ctes
    return made.add("SELECT ") if ctes is None else made.copy(ctes).add(" SELECT ")


def _columns_of(spark: SparkSession, planned: Planned) -> list[str]:
    """The columns of the FROM clause."""
    text = _add_from(_opened(planned).add("*"), planned)
    with analysed(planned, text, planned.select.source.at):
        names = spark.sql(text.text).columns
    for alias, at in planned.aliases:
        if any(n.lower() == alias.lower() for n in names):
            raise planned.source.error(
                f"{alias} is a column of the table and an alias of the SELECT list; give the alias "
                "another name",
                *at,
            )
    return names


def _read(planned: Planned) -> list[Pieces]:
    """The expressions by which Spark computes the columns that the query reads."""
    source = planned.source
    made = [Pieces(source).add(quoted_name(name), node.at) for name, node in planned.read.items()]
    if planned.stars:
        made = [Pieces(source).add("*", planned.select.at)]
    for name, node in planned.before.items():
        if name != planned.where:
            made.append(_add(Pieces(source), node).add(f" AS {quoted_name(name)}"))
    return made


def _add(made: Pieces, node: Node) -> Pieces:
    """Add an expression as it is written; if FILTER guards it, only for the rows that count."""
    if not isinstance(node, Guarded):
        return made.copy(node.at)
    _add(made.add("CASE WHEN "), node.where)
    return _add(made.add(" THEN "), node.of).add(" END")


def _before(planned: Planned) -> Pieces:
    """The part of the statement before the query, as a SELECT for Spark."""
    made = _opened(planned)
    for i, column in enumerate(_read(planned)):
        made.join(column) if not i else made.add(", ").join(column)
    _add_from(made, planned)
    where = planned.select.where
    return made if where is None else made.add(" WHERE ").copy(where.at)


def prepared_frame(statement: Statement, df: DataFrame, *others: Statement) -> DataFrame:
    """Compute the columns that a statement's query reads from a DataFrame, which replaces the
    FROM.  `others` are statements that compute the same columns under the same condition; their
    queries' columns are added."""
    planned = statement._planned
    given = planned.select.source
    assert not isinstance(given, Other)
    df = df.alias(given.alias or given.name)
    where = planned.select.where
    if where is not None:
        chosen = Pieces(planned.source).copy(where.at)
        with analysed(planned, chosen, where.at):
            df = df.where(chosen.text)
    read = {column.text: column for column in _read(planned)}
    for other in others:
        for name in other._planned.read:
            read.setdefault(quoted_name(name), Pieces(planned.source).add(quoted_name(name)))
    columns = list(read.values())
    with analysed(planned, None, planned.select.at):
        try:
            return df.selectExpr(*(column.text for column in columns))
        except AnalysisException:
            first_refused(planned, [(c, planned.select.at, df.selectExpr) for c in columns])
            raise


def projected_frame(
    planned: Planned, found: DataFrame, names: list[str], *, streaming: bool, mode: Mode
) -> DataFrame:
    """Apply the part of the statement after the query: HAVING, ORDER BY, LIMIT, the SELECT list."""
    found = _with_answers(planned, found)
    with analysed(planned, None, planned.select.at):
        try:
            return _projected(planned, found, names, streaming=streaming, mode=mode)
        except AnalysisException:
            nodes = [o.node for o in planned.outputs if not isinstance(o.node, Star)]
            nodes += [o.by for o in planned.order]
            if planned.having is not None:
                nodes.append(planned.having)
            tries: list[tuple[Pieces, At, Callable[[str], DataFrame]]] = [
                (spliced(planned.source, n), n.at, found.selectExpr) for n in nodes
            ]
            if planned.having is not None:
                tries.append((tries[-1][0], planned.having.at, found.where))
            first_refused(planned, tries)
            raise


def _projected(
    planned: Planned, found: DataFrame, names: list[str], *, streaming: bool, mode: Mode
) -> DataFrame:
    source = planned.source
    own = [n for n in _OWN if n in found.columns] if streaming else []
    if planned.having is not None:
        found, own = _having(planned, found, own, live=streaming and mode == "live")
    if planned.order:
        keys = [_sorted(source, o) for o in planned.order]
        found = found.orderBy(*keys)
    if planned.select.limit is not None:
        found = found.limit(planned.select.limit)
    planned.check_own(own)
    made: list[Column] = []
    for output in planned.outputs:
        if isinstance(output.node, Star):
            made += [quoted(n) for n in names]
        else:
            made.append(_expr(source, output.node).alias(output.name))
    return found.select(*made, *own)


def _sorted(source: Source, order: Any) -> Column:
    by = _expr(source, order.by)
    last = order.nulls == "last" if order.nulls else order.descending
    if order.descending:
        return by.desc_nulls_last() if last else by.desc_nulls_first()
    return by.asc_nulls_last() if last else by.asc_nulls_first()


def _with_answers(planned: Planned, found: DataFrame) -> DataFrame:
    """Turn answers of aggregates into the form that SQL gives them, where the two differ."""
    made = {}
    for name, then in planned.then.items():
        column = quoted(name)
        if then == "whole":
            made[name] = F.round(column).cast("bigint")
            continue
        kind = found.schema[name].dataType
        assert isinstance(kind, StructType)
        fields = [column.getField(field.name) for field in kind]
        made[name] = fields[0] if then == "field" else F.when(column.isNotNull(), F.array(*fields))
    return found.withColumns(made) if made else found


def _having(
    planned: Planned, found: DataFrame, own: list[str], *, live: bool
) -> tuple[DataFrame, list[str]]:
    assert planned.having is not None
    kept = F.coalesce(_expr(planned.source, planned.having), F.lit(False))
    if "late" in own:
        kept = kept | F.col("late").isNotNull()
    if not live:
        return found.where(kept), own
    gone = ~kept
    if "deleted" in own:
        gone = gone | F.coalesce(F.col("deleted"), F.lit(False))
    found = found.withColumn("deleted", gone).where(~F.col("deleted") | (F.col("revision") > 0))
    return found, [n for n in _OWN if n in (*own, "deleted")]


def _expr(source: Source, node: Node) -> Column:
    return F.expr(spliced(source, node).text)
