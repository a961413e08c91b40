"""Works on results in `foreachBatch`: separates late rows from results, and keeps the latest
revision of each window.

Parquet has no atomic upsert.  So `upsert` appends revisions: it writes each micro-batch to its own
folder, and writes this folder anew if Spark replays the batch.  `latest` reads the last revision of
each window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload
from urllib.parse import quote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from .types import normal, quoted, quoted_name

__all__ = ["compact", "latest", "split", "upsert"]

BATCH = "sash_batch"
#: Spark's error conditions for a folder that does not exist or has no files.
_NOTHING_YET = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")


@overload
def split(df: DataFrame) -> tuple[DataFrame, DataFrame]: ...
@overload
def split(df: DataFrame, query: str) -> DataFrame: ...
def split(df: DataFrame, query: str | None = None) -> Any:
    """Separate an output with `late=True` into results, and rows that missed windows or are
    unusable.  These have the row's columns, `late_reason`, and `late_missed`, from the start of
    the first missed window to the end of the last; for several queries also `late_queries`, the
    names of the queries for which the row is late.

    With the name of a `query`, return only that query's results out of the output of several
    queries (`sash.share`), with the columns that the query has by itself."""
    if query is not None:
        return _of_query(df, query)
    if "late" not in df.columns:
        raise ValueError(
            "split parts the output of sash.spark.aggregate(…, late=True), and this has no column "
            "'late'"
        )
    results = df.where(F.col("late").isNull()).drop("late")
    about = [
        F.col("late.reason").alias("late_reason"),
        F.col("late.missed").alias("late_missed"),
    ]
    if "queries" in df.schema["late"].dataType.names:  # type: ignore[attr-defined]
        about.append(F.col("late.queries").alias("late_queries"))
    rows = df.where(F.col("late").isNotNull()).select("late.row.*", *about)
    return results, rows


def _of_query(df: DataFrame, query: str) -> DataFrame:
    """The results of one of several queries."""
    if query not in _queries_of(df):
        raise ValueError(
            f"split(…, {query!r}) takes the output of sash.spark.aggregate for several queries of "
            f"which one has that name; here they are: {', '.join(_queries_of(df)) or 'none'}"
        )
    rows = df.where(F.col("query") == F.lit(query))
    more = ["event_time"] if "event_time" in df.columns else []
    return rows.select(f"{quoted_name(query)}.*", *more)


def upsert(path: str, *, late: str | None = None) -> Callable[[DataFrame, int], None]:
    """A function for `foreachBatch` that writes results under a path, each batch once even if Spark
    replays it.  With `late`, it writes rows that missed windows under that path.

        out.writeStream.foreachBatch(sash.spark.upsert("results")).option(…).start()
        sash.spark.latest(spark, "results")

    The results of each of several queries (`sash.share`) have their own path, which ends with the
    query's name: `latest(spark, "results/fast")`.  They have the columns that the query has by
    itself, `event_time` among them.
    """

    def write(batch: DataFrame, batch_id: int) -> None:
        queries = _queries_of(batch)
        if not queries and "late" not in batch.columns:
            overwrite(batch, path, batch_id)
            return
        if not queries and late is None:
            results, _ = split(batch)
            overwrite(results, path, batch_id)
            return
        batch = batch.persist()
        try:
            results = batch
            if "late" in batch.columns:
                results, rows = split(batch)
                if late is not None:
                    overwrite(rows, late, batch_id)
            for query in queries:
                own = _of_query(results, query)
                overwrite(own, f"{path.rstrip('/')}/{quote(query, safe=' ')}", batch_id)
            if not queries:
                overwrite(results, path, batch_id)
        finally:
            batch.unpersist()

    return write


def _queries_of(df: DataFrame) -> list[str]:
    """The names of the queries, if these are the results of several queries."""
    if "query" not in df.columns or "window" in df.columns:
        return []
    structs = [field.name for field in df.schema if isinstance(field.dataType, StructType)]
    return [name for name in structs if name != "late"]


def overwrite(df: DataFrame, path: str, batch_id: int) -> None:
    """Write the rows of a micro-batch to its own folder under a path; a replayed batch replaces
    them."""
    df.write.mode("overwrite").parquet(f"{path.rstrip('/')}/{BATCH}={batch_id}")


def latest(
    spark: SparkSession,
    path: str,
    keys: Sequence[str] = (),
    schema: StructType | None = None,
) -> DataFrame:
    """The last revision of each window under a path of `upsert`, without withdrawn sessions.

    Before the first micro-batch is written, there are no files, and so no columns are known.  With
    the `schema` of the stream's results, the table is then empty; without it, this is an error.

        out = sash.spark.aggregate(stream, query, mode="live")
        sash.spark.latest(spark, "results", schema=out.schema)
    """
    try:
        df = spark.read.parquet(path)
        _ = df.schema  # Spark Connect looks for the files only now
    except AnalysisException as error:
        if error.getCondition() not in _NOTHING_YET:
            raise
        if schema is None:
            raise ValueError(
                f"there are no results under {path!r} yet; wait for the first micro-batch, or give "
                "the schema of the stream's results, latest(…, schema=out.schema), for an empty "
                "table until then"
            ) from None
        kept = [field for field in schema.fields if field.name not in ("late", BATCH)]
        return spark.createDataFrame([], StructType(kept))
    if "revision" not in df.columns:
        return df.drop(BATCH)
    by = [*keys] if keys else df.columns[: df.columns.index("window")]
    alike = [normal(quoted(key), df.schema[key].dataType, key) for key in by]
    newest = [F.col(BATCH).desc()] if BATCH in df.columns else []  # compacted results lack it
    withdraws = _withdraws(df.columns)
    # the start identifies a session, as its end moves
    window = "window.start" if withdraws else "window"
    order = Window.partitionBy(*alike, window).orderBy(*newest, F.col("revision").desc())
    ranked = df.withColumn("__sash_rank", F.row_number().over(order))
    last = ranked.where(F.col("__sash_rank") == 1).drop("__sash_rank", BATCH)
    return last.where(~F.col("deleted")) if withdraws else last


def _withdraws(columns: list[str]) -> bool:
    """True if sash may mark rows `deleted`.  A user's column of that name comes before the column
    `revision`."""
    return "deleted" in columns[columns.index("revision") :]


def compact(spark: SparkSession, path: str, target: str) -> None:
    """Write the last revision of each window to another path."""
    kept: Any = latest(spark, path)
    kept.write.mode("overwrite").parquet(target)
