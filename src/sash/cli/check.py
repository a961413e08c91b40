"""Check a job against its source's columns, without Java and without reading rows.  `sash run`
accepts every job that passes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import sash

from ..engine.late import check_names
from ..engine.results import check_answers, check_typed, with_types
from ..engine.shared_late import check_no_queries
from ..engine.supported import Asked, Place, check
from ..query import Query
from ..query.names import check_column
from ..query.plan import Plan, make_plan
from ..query.query import RESERVED
from ..query.signatures import Mode
from ..tables.arrow import filtered, no_rows
from ..windows import Driven
from .errors import JobError, Problem
from .formats import check_options_on_spark
from .job import Job, is_remote, load
from .queries import load_queries, sql_problem
from .sink_formats import check_columns_on_spark, check_sink_on_spark
from .source import LOCAL_FORMATS, Files, find

__all__ = ["Ready", "arrives_by_tie", "columns_of", "prepare", "query_of"]

#: Columns that the engine adds to results on Spark, besides those of all results.
_SPARK_RESERVED = ("event_time", "late", "sash_batch")


@dataclass(frozen=True)
class Ready:
    """A checked job, ready to run."""

    job: Job
    source: Files
    queries: dict[str, Any]
    notes: tuple[str, ...] = field(default=())

    @property
    def mode(self) -> Mode:
        return self.job.tables.run.mode


def prepare(path: str | Path, *, local: bool = False) -> Ready:
    """Read and check a job, for Spark or for this process."""
    job = load(path)
    source = find(job)
    notes: list[str] = []
    if local:
        _check_local(job, source)
        notes += _whole_times(job, source)
    else:
        notes += check_options_on_spark(job, source.format)
        notes += check_sink_on_spark(job)
        if source.schema is not None:
            _check_types(job, source.schema)
        else:
            notes.append("the columns are not checked: Spark knows them")
    _check_sinks(job)
    queries = load_queries(job)
    problems: list[Problem] = []
    for i, (name, query) in enumerate(queries.items()):
        try:
            _check_query(job, source, query, local=local)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, sash.SqlError):
                problems.append(sql_problem(job, i, error))
                continue
            table = job.tables.query[i]
            key = next(k for k in ("python", "sql", "file") if getattr(table, k) is not None)
            said = error.args[0] if isinstance(error, KeyError) else error
            problems.append(Problem(job.lines.of(("query", i, key)), f"query {name!r}: {said}"))
    if problems:
        raise JobError(job.file, problems)
    return Ready(job, source, queries, tuple(notes))


def query_of(given: Any) -> Query:
    """The Query of a query or of a statement of SQL."""
    made = given if isinstance(given, Query) else given.query
    assert isinstance(made, Query)
    return made


def columns_of(given: Any, schema: pa.Schema) -> pa.Schema:
    """The columns that a query reads: those of the source, and those that SQL computes."""
    return schema if isinstance(given, Query) else given.schema(schema)


def _check_local(job: Job, source: Files) -> None:
    """Refuse sources and sinks that only Spark can read or write."""
    if source.place is None or not source.files:
        raise job.problem(
            "--local reads files of this machine, and this source has none; run it on Spark",
            "source",
            "path" if source.place is not None else "format",
        )
    if source.format not in LOCAL_FORMATS:
        raise job.problem(
            f"--local reads Parquet, CSV and JSON files, not {source.format}; run it on Spark",
            "source",
            "format",
        )
    sink = job.tables.sink
    if sink.format not in (None, "console"):
        raise job.problem(
            f"--local writes to a path or the console, not to {sink.format}; run it on Spark",
            "sink",
            "format",
        )
    for place in (sink.path, sink.late):
        if place is not None and is_remote(place):
            raise job.problem(
                f"--local writes to folders of this machine, not to {place}; run it on Spark",
                "sink",
                "path" if place == sink.path else "late",
            )
    from .read import check_options, check_types

    check_options(job, source.format)
    check_types(job, source)


def _whole_times(job: Job, source: Files) -> list[str]:
    """A note about times that are whole numbers."""
    time = job.tables.source.time
    if source.schema is None or not pa.types.is_integer(source.schema.field(time).type):
        return []
    return [
        f"source.time: column {time!r} has whole numbers, which sash reads as microseconds since "
        "1970; seconds or milliseconds must become timestamps first"
    ]


def _check_types(job: Job, schema: pa.Schema) -> None:
    """Refuse a time column for which Spark has no watermark, and columns of Parquet files that
    Spark cannot read."""
    time = job.tables.source.time
    if time in schema.names and not pa.types.is_timestamp(schema.field(time).type):
        raise job.problem(
            f"source.time: column {time!r} has type {schema.field(time).type}, and Spark's "
            "watermark needs a timestamp; --local also takes whole numbers of microseconds",
            "source",
            "time",
        )
    for column in schema:
        kind = column.type
        if pa.types.is_timestamp(kind) and kind.unit == "ns":
            raise job.problem(
                f"source.path: column {column.name!r} has times in nanoseconds, which Spark cannot "
                "read; write the files with microseconds, in pandas with "
                "to_parquet(…, coerce_timestamps='us'), or run with --local",
                "source",
                "path",
            )


def _check_sinks(job: Job) -> None:
    """Refuse folders that the job cannot create or write to."""
    sink = job.tables.sink
    keys = ((sink.path, "sink", "path"), (sink.late, "sink", "late"))
    for place, *key in (*keys, (job.tables.run.checkpoint, "run", "checkpoint")):
        if place is None or is_remote(place):
            continue
        there = Path(job.place(place))
        while not there.exists():
            there = there.parent
        called = ".".join(key)
        if not there.is_dir():
            text = f"{called}: {there} is a file, so no folder {job.place(place)} can be made"
            raise job.problem(text, *key)
        if not os.access(there, os.W_OK):
            raise job.problem(f"{called}: {there} cannot be written to", *key)


def _check_query(job: Job, source: Files, given: Any, *, local: bool) -> None:
    """Refuse a query that cannot run in this mode over these columns."""
    tables, query, schema = job.tables, query_of(given), source.schema
    mode, late = tables.run.mode, tables.sink.late is not None
    place: Place = "Query.stream" if local else "Spark stream"
    if not isinstance(given, Query):
        given.check_stream(mode)
    if query.time != tables.source.time:
        raise ValueError(
            f"its time column is {query.time!r}, and the source's is {tables.source.time!r}; make "
            "them the same"
        )
    if schema is None:
        check(place, Asked(query, None, mode, late=late))
        _check_names(query, ())
        return
    if isinstance(given, Query):
        plan, names = _plan(query, schema, place, mode, late=late), schema.names
        kept = names if isinstance(query.window, Driven) else query.by
        rows, types = [*kept, "window", *query.select], None
    else:
        tied = given.tie(schema, place, mode, late=late)
        plan, names = tied.plan, tied.columns.names
        rows, types = tied.rows.names, tied.rows
    if local:
        check_names(names)
        if len(tables.query) > 1:
            check_no_queries(dict.fromkeys(schema.names))
    else:
        _check_names(query, names)
        check_columns_on_spark(job, rows, types)
        check_answers(with_types(plan))


def _plan(query: Query, schema: pa.Schema, place: Place, mode: Mode, *, late: bool) -> Plan:
    """The plan of a query for these columns; raises an error if a stream in this place cannot run
    it."""
    _check_columns(query, schema.names)
    plan = make_plan(query, schema)
    if query.where is not None:
        filtered(no_rows(schema), query.where)
    if place == "Query.stream":
        if arrives_by_tie(plan, mode):
            query = dataclasses.replace(query, tie=None)
            plan = make_plan(query, schema)
        check_typed(plan)
    check(place, Asked(query, plan, mode, late=late))
    return plan


def arrives_by_tie(plan: Plan, mode: str) -> bool:
    """True if a stream in this process uses order of arrival where the query has a `tie`."""
    driven = isinstance(plan.query.window, Driven) and mode == "final"
    return plan.query.tie is not None and plan.ordered and not driven


def _check_columns(query: Query, there: list[str]) -> None:
    for name in query.columns:
        check_column(name, there, reader="it", what="the source")


def _check_names(query: Query, columns: Iterable[str]) -> None:
    """Refuse names that would be in results on Spark twice."""
    kept = columns if isinstance(query.window, Driven) else query.by
    taken = {name.lower() for name in (*RESERVED, *_SPARK_RESERVED)}
    seen: set[str] = set()
    for name in (*kept, *query.select):
        if name.lower() in taken:
            raise ValueError(f"results on Spark have {name.lower()!r} of their own; rename it")
        if name.lower() in seen:
            raise ValueError(
                f"{name!r} is in the result twice, because Spark ignores case; rename one"
            )
        seen.add(name.lower())
