"""Check the format and the options of a sink on Spark, and the columns that the format can hold.

Spark finds a format that it cannot write, or a missing topic, only when the job starts, and a
column that the format cannot hold only with the first result.
"""

from __future__ import annotations

from difflib import get_close_matches

import pyarrow as pa

from .formats import check_option_names
from .job import Job

__all__ = ["check_columns_on_spark", "check_sink_on_spark"]

_FILES = "path compression maxRecordsPerFile retention"
_TEXT = """charset encoding lineSep locale dateFormat timeFormat timestampFormat
timestampNTZFormat timeZone"""

#: The options of the formats that Spark itself writes, in Spark's spelling, by format.
_OPTIONS = {
    "csv": f"""{_FILES} {_TEXT} codec sep delimiter quote quoteAll escape escapeQuotes header
ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace nullValue emptyValue comment extension
charToEscapeQuoteEscaping""",
    "json": f"""{_FILES} {_TEXT} ignoreNullFields pretty sortKeys
writeNonAsciiCharacterAsCodePoint writeNullIfWithDefaultValue""",
    "xml": f"""{_FILES} {_TEXT} rowTag rootTag declaration arrayElementName nullValue
attributePrefix valueTag indent validateName""",
    "parquet": f"{_FILES} codec",
    "orc": _FILES,
    "avro": f"""{_FILES} avroSchema avroSchemaUrl recordName recordNamespace
positionalFieldMatching""",
    "text": f"{_FILES} lineSep encoding",
    "kafka": "topic kafka.bootstrap.servers includeHeaders",
    "noop": "",
}
_OF_FILES = ("csv", "json", "xml", "parquet", "orc", "avro", "text")
#: Formats that a package or a platform brings; their options are not checked.
_OTHERS = (
    *("delta", "deltasharing", "eventhubs", "hudi", "iceberg", "jdbc", "kinesis"),
    *("mongodb", "paimon", "pubsub", "pulsar"),
)
#: Formats that Spark only reads, or that end with the job.
_NO_SINKS = {
    **dict.fromkeys(
        ("rate", "rate-micro-batch", "socket", "binaryfile"), "Spark only reads this format"
    ),
    "memory": "its rows are in the job's own memory, and go when the job ends",
}
_SERVERS = "kafka.bootstrap.servers"


def check_sink_on_spark(job: Job) -> list[str]:
    """Refuse a format that Spark cannot write, and misspelt and missing options; return notes about
    options and formats that sash does not know."""
    sink = job.tables.sink
    if sink.format is None or sink.format == "console":
        return []
    format_ = sink.format.lower()
    if "." in format_ or format_ in _OTHERS:
        return []
    if format_ in _NO_SINKS:
        raise job.problem(
            f"sink.format: {sink.format!r} is no place for results: {_NO_SINKS[format_]}; give "
            f'path = "…", or one of console, {", ".join(sorted(_OPTIONS))}',
            "sink",
            "format",
        )
    if format_ not in _OPTIONS:
        near = get_close_matches(format_, ["console", *_OPTIONS, *_OTHERS], 1, 0.7)
        if near:
            raise job.problem(
                f"sink.format: Spark has no format {sink.format!r}; did you mean {near[0]!r}?",
                "sink",
                "format",
            )
        return [f"sink.format: {sink.format!r} is none of Spark's own, so a package must bring it"]
    given = {name.lower() for name in sink.options}
    at = "options" if sink.options else "format"
    if "checkpointlocation" in given:
        name = next(name for name in sink.options if name.lower() == "checkpointlocation")
        raise job.problem(
            f'sink.options.{name}: a job\'s checkpoint is checkpoint = "…" in [run]',
            "sink",
            "options",
            name,
        )
    notes = check_option_names(job, "sink", format_, _OPTIONS[format_], sink.options)
    if format_ in _OF_FILES and "path" not in given:
        raise job.problem(
            f'sink.options: {format_} files need a place: options = {{ path = "…" }}', "sink", at
        )
    if format_ == "xml" and "rowtag" not in given:
        raise job.problem(
            'sink.options: xml needs the name of a row\'s element: rowTag = "row"', "sink", at
        )
    if format_ == "kafka" and _SERVERS not in given:
        raise job.problem(
            f'sink.options: a Kafka sink needs "{_SERVERS}" = "host:9092", with the quotes',
            "sink",
            at,
        )
    return notes


def check_columns_on_spark(job: Job, names: list[str], types: pa.Schema | None) -> None:
    """Refuse results that the sink's format cannot hold: the names of their columns, and of a
    statement their types.  The results of a query have its window as a struct."""
    sink = job.tables.sink
    format_ = (sink.format or "").lower()
    have = f"the columns of the results are {', '.join(names)}"
    if format_ == "kafka":
        there = {name.lower() for name in names}
        if "value" not in there:
            raise ValueError(f"a Kafka sink writes a column called value, of text; {have}")
        if "topic" not in there and "topic" not in {name.lower() for name in sink.options}:
            raise ValueError(
                'a Kafka sink needs topic = "…" in its options, or a column called topic; ' + have
            )
        if types is not None:
            value = types.field(next(n for n in names if n.lower() == "value")).type
            if not (pa.types.is_string(value) or pa.types.is_binary(value)):
                raise ValueError(
                    f"a Kafka sink writes a column called value, of text, and here its type is "
                    f"{value}; write CAST(… AS string) AS value"
                )
    elif format_ == "text" and (
        len(names) != 1 or types is None or not pa.types.is_string(types.field(0).type)
    ):
        raise ValueError(f"text files hold one column, of text; {have}")
    elif format_ == "csv":
        nested = ["window"] if types is None else [f.name for f in types if _is_nested(f.type)]
        if nested:
            raise ValueError(
                f"csv files hold no structs, lists and maps, and {nested[0]} is one; select its "
                "parts in SQL, such as window.start, or write json or parquet"
            )


def _is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind))
