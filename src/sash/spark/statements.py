"""`sash.spark.sql`: a text of SQL over Spark's tables and views.

    FROM, WHERE and expressions → Spark → the query → Spark: SELECT list, HAVING, ORDER BY, LIMIT

Spark runs what is before and after the window as it is written; only the aggregates and the window
are sash's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ..operators.contract import Operator
from ..query.query import Query
from ..query.signatures import Mode
from ..sql.errors import Source
from ..sql.nodes import Cql, Guarded, Node, Other, Star, Table
from ..sql.plan import plan
from ..sql.planned import Planned
from ..sql.read_select import read
from ..sql.scope import spliced
from ..sql.statement import Statement, check_stream, checked_operators
from ..windows import duration
from .types import quoted, quoted_name

__all__ = ["prepared_frame", "projected_frame", "query_of", "sql"]

#: Columns that results of a stream have for themselves.
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
    """The results of a statement of SQL, as a DataFrame, batch or streaming as its FROM is: the
    columns of the SELECT list, then those that streams have for themselves.

    Spark itself runs the FROM (a table, a view, a subquery, a join) and every expression before and
    after the window, as it is written.  `lateness` is the delay of the watermark; without it, the
    time column of a stream needs `withWatermark`.  `mode` and `late` are as for `aggregate`;
    `time`, `timezone` and `operators` as for `sash.sql`.
    """
    from .frames import aggregate

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
    df = spark.sql(_before(planned))
    if lateness is not None:
        if not df.isStreaming:
            raise ValueError("lateness is for streams, and FROM is none; leave it out")
        delay = f"{duration(lateness, 'the lateness')} microseconds"
        df = df.withWatermark(quoted_name(planned.query.time), delay)
    if df.isStreaming:
        check_stream(planned, mode)
        planned.check_event_columns(mode, names)
    found = aggregate(df, query_of(planned), mode=mode, late=late)
    return projected_frame(planned, found, names, streaming=df.isStreaming, mode=mode)


def query_of(planned: Planned) -> Query:
    """The query, behind Spark's own WHERE."""
    return dataclasses.replace(planned.query, where=None)


def _needs_columns(planned: Planned, mode: Mode) -> bool:
    return planned.stars or bool(planned.aliases) or (planned.driven and mode == "live")


def _from(planned: Planned) -> str:
    """What is behind FROM, for Spark to read."""
    given, source = planned.select.source, planned.source
    if isinstance(given, Table | Cql):
        alias = f" AS {quoted_name(given.alias)}" if given.alias else ""
        return source[given.table[0] : given.table[1]] + alias
    return source[given.at[0] : given.at[1]]


def _with(planned: Planned) -> str:
    ctes = planned.select.ctes
    return "" if ctes is None else planned.source[ctes[0] : ctes[1]] + " "


def _columns_of(spark: SparkSession, planned: Planned) -> list[str]:
    """The columns of what is behind FROM."""
    names = spark.sql(f"{_with(planned)}SELECT * FROM {_from(planned)}").columns
    for alias, at in planned.aliases:
        if any(n.lower() == alias.lower() for n in names):
            raise planned.source.error(
                f"{alias} is a column of the table and an alias of the SELECT list; give the alias "
                "another name",
                *at,
            )
    return names


def _read(planned: Planned) -> list[str]:
    """The columns that the query reads, as Spark computes them."""
    made = ["*"] if planned.stars else [quoted_name(name) for name in planned.read]
    for name, node in planned.before.items():
        if name != planned.where:
            made.append(f"{_text(planned.source, node)} AS {quoted_name(name)}")
    return made


def _text(source: Source, node: Node) -> str:
    """An expression as it is written; where FILTER guards it, only for the rows that count."""
    if isinstance(node, Guarded):
        return f"CASE WHEN {_text(source, node.where)} THEN {_text(source, node.of)} END"
    return source[node.at[0] : node.at[1]]


def _before(planned: Planned) -> str:
    """What comes before the query, as a SELECT for Spark."""
    where = planned.select.where
    condition = "" if where is None else f" WHERE {planned.source[where.at[0] : where.at[1]]}"
    return f"{_with(planned)}SELECT {', '.join(_read(planned))} FROM {_from(planned)}{condition}"


def prepared_frame(statement: Statement, df: DataFrame) -> DataFrame:
    """A DataFrame in place of a statement's FROM, with the columns that its query reads."""
    planned = statement._planned
    given = planned.select.source
    assert not isinstance(given, Other)
    df = df.alias(given.alias or given.name)
    where = planned.select.where
    if where is not None:
        df = df.where(planned.source[where.at[0] : where.at[1]])
    return df.selectExpr(*_read(planned))


def projected_frame(
    planned: Planned, found: DataFrame, names: list[str], *, streaming: bool, mode: Mode
) -> DataFrame:
    """What comes after the query: HAVING, ORDER BY, LIMIT and the SELECT list."""
    source = planned.source
    found = _with_answers(planned, found)
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
            made.append(F.expr(spliced(source, output.node)).alias(output.name))
    return found.select(*made, *own)


def _sorted(source: Source, order: Any) -> Column:
    by = F.expr(spliced(source, order.by))
    last = order.nulls == "last" if order.nulls else order.descending
    if order.descending:
        return by.desc_nulls_last() if last else by.desc_nulls_first()
    return by.asc_nulls_last() if last else by.asc_nulls_first()


def _with_answers(planned: Planned, found: DataFrame) -> DataFrame:
    """What becomes of aggregates' answers that SQL has in another form."""
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
    kept = F.coalesce(_expr(planned, planned.having), F.lit(False))
    if "late" in own:
        kept = kept | F.col("late").isNotNull()
    if not live:
        return found.where(kept), own
    gone = ~kept
    if "deleted" in own:
        gone = gone | F.coalesce(F.col("deleted"), F.lit(False))
    found = found.withColumn("deleted", gone).where(~F.col("deleted") | (F.col("revision") > 0))
    return found, [n for n in _OWN if n in (*own, "deleted")]


def _expr(planned: Planned, node: Node) -> Column:
    return F.expr(spliced(planned.source, node))
