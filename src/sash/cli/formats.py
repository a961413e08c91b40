"""Check the format and the options of a source on Spark.

Spark finds a wrong format, or a missing topic, only when the job starts, and says nothing at all
about an option that it does not know: a misspelt `header` reads the header as a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

import pyarrow as pa

from .job import Job, Source

__all__ = [
    "check_format",
    "check_option_names",
    "check_options_on_spark",
    "options_on_spark",
    "own_columns",
]

_FILES = """ignoreCorruptFiles ignoreMissingFiles ignoredPathSegmentRegex pathGlobFilter
recursiveFileLookup basePath ignoreInvalidPartitionPaths modifiedBefore modifiedAfter path
maxFilesPerTrigger maxBytesPerTrigger latestFirst fileNameOnly maxFileAge maxCachedFiles
discardCachedInputRatio cleanSource sourceArchiveDir compression mergeSchema"""
_TEXT = """charset encoding lineSep locale mode multiLine samplingRatio columnNameOfCorruptRecord
dateFormat timeFormat timestampFormat timestampNTZFormat enableDateTimeParsingFallback timeZone
singleVariantColumn"""
_REBASE = "datetimeRebaseMode int96RebaseMode"

#: The options of Spark's own sources, in Spark's spelling, by format.
_OPTIONS = {
    "csv": f"""{_FILES} {_TEXT} sep delimiter quote escape comment header inferSchema preferDate
enforceSchema ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace nullValue nanValue positiveInf
negativeInf maxColumns maxCharsPerColumn maxMalformedLogPerPartition charToEscapeQuoteEscaping
emptyValue unescapedQuoteHandling codec escapeQuotes quoteAll columnPruning inputBufferSize
extension""",
    "json": f"""{_FILES} {_TEXT} primitivesAsString prefersDecimal inferTimestamp allowComments
allowUnquotedFieldNames allowSingleQuotes allowNumericLeadingZeros
allowBackslashEscapingAnyCharacter allowUnquotedControlChars allowNonNumericNumbers
dropFieldIfAllNull ignoreNullFields useUnsafeRow""",
    "xml": f"""{_FILES} {_TEXT} rowTag excludeAttribute inferSchema nullValue attributePrefix
valueTag ignoreSurroundingSpaces rowValidationXSDPath ignoreNamespace wildcardColName preferDate
prefersDecimal useLegacyXMLParser validateName arrayElementName""",
    "parquet": f"{_FILES} {_REBASE}",
    "orc": _FILES,
    "avro": f"""{_FILES} datetimeRebaseMode avroSchema avroSchemaUrl recordName recordNamespace
ignoreExtension mode positionalFieldMatching enableStableIdentifiersForUnionType
stableIdentifierPrefixForUnionType recursiveFieldMaxDepth""",
    "text": f"{_FILES} wholetext encoding lineSep",
    "binaryfile": _FILES,
    "kafka": """subscribe subscribePattern assign startingOffsets startingTimestamp
startingOffsetsByTimestamp startingOffsetsByTimestampStrategy failOnDataLoss
kafkaConsumer.pollTimeoutMs fetchOffset.numRetries fetchOffset.retryIntervalMs maxOffsetsPerTrigger
minOffsetsPerTrigger maxTriggerDelay minPartitions maxRecordsPerPartition groupIdPrefix
includeHeaders kafka.bootstrap.servers""",
    "rate": "rowsPerSecond rampUpTime numPartitions",
    "rate-micro-batch": "rowsPerBatch startTimestamp advanceMillisPerBatch numPartitions",
    "socket": "host port includeTimestamp numPartitions",
}
_OF_FILES = ("csv", "json", "xml", "parquet", "orc", "avro", "text", "binaryfile")
#: Formats that a package or a platform brings; their options are not checked.
_OTHERS = (
    *("cloudfiles", "delta", "deltasharing", "eventhubs", "hudi", "iceberg", "kinesis"),
    *("mongodb", "paimon", "pubsub", "pulsar"),
)
#: The options that say what Kafka reads, of which Spark wants exactly one.
_TOPICS = ("subscribe", "subscribePattern", "assign")
_SERVERS = "kafka.bootstrap.servers"
_KAFKA = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestampType": pa.int32(),
    }
)
_HEADERS = pa.field("headers", pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})))
_RATE = pa.schema({"timestamp": pa.timestamp("us", "UTC"), "value": pa.int64()})


def check_format(job: Job) -> None:
    """Refuse a format that is a misspelt one, and a format of files without a path."""
    source = job.tables.source
    if source.format is None:
        return
    known = source.format.lower()
    if known not in (*_OPTIONS, *_OTHERS) and "." not in known:
        near = get_close_matches(known, [*_OPTIONS, *_OTHERS], 1, 0.7)
        if near:
            raise job.problem(
                f"source.format: Spark has no format {source.format!r}; did you mean {near[0]!r}?",
                "source",
                "format",
            )
    if known in _OF_FILES and source.path is None and "path" not in _said(source):
        raise job.problem(
            f'source.format: {known} files need a place: add path = "…" to [source]',
            "source",
            "format",
        )


def check_options_on_spark(job: Job, format_: str) -> list[str]:
    """Refuse misspelt and missing options of Spark's own formats; return notes about options and
    formats that sash does not know."""
    source = job.tables.source
    if format_ not in _OPTIONS:
        if format_ in _OTHERS or "." in format_:
            return []
        return [f"source.format: {format_!r} is none of Spark's own, so a package must bring it"]
    if format_ == "kafka":
        _check_kafka(job)
    return check_option_names(job, "source", format_, _OPTIONS[format_], source.options)


def check_option_names(
    job: Job, table: str, format_: str, known: str, given: Mapping[str, object]
) -> list[str]:
    """Refuse misspelt options of a source or a sink; return notes about options that sash does not
    know."""
    notes = []
    spelt = {name.lower(): name for name in known.split()}
    for name in given:
        if name.lower() in spelt or _passes_on(name, format_):
            continue
        near = get_close_matches(name.lower(), spelt, 1, 0.75)
        if near:
            raise job.problem(
                f"{table}.options.{name}: Spark's {format_} has no such option, and would ignore "
                f"it; did you mean {spelt[near[0]]!r}?",
                table,
                "options",
                name,
            )
        notes.append(
            f"{table}.options.{name}: sash knows no such option of {format_}, and Spark ignores "
            "options that it does not know"
        )
    return notes


def options_on_spark(
    job: Job, given: Mapping[str, object], query: str | None = None
) -> dict[str, str]:
    """The options of a source or a sink as Spark reads them: text, and a path relative to the job's
    folder made absolute.  If a job has several queries, each `query` has a folder of its own there:
    of two streams that write into one folder of files, Spark leaves out the rows of one."""
    made = {n: str(v).lower() if isinstance(v, bool) else str(v) for n, v in given.items()}
    below = "" if query is None or len(job.tables.query) == 1 else f"/{query}"
    return {
        n: f"{job.place(v).rstrip('/')}{below}" if n.lower() == "path" else v
        for n, v in made.items()
    }


def _passes_on(name: str, format_: str) -> bool:
    """True if Spark passes an option on, to Kafka's client or to the file system."""
    return name.lower().startswith("kafka.") if format_ == "kafka" else "." in name


def _check_kafka(job: Job) -> None:
    """Refuse a Kafka source that does not say where, or what, it reads."""
    source = job.tables.source
    said, at = _said(source), "options" if source.options else "format"
    topics = [name for name in _TOPICS if name.lower() in said]
    if len(topics) != 1:
        have = f"it has {' and '.join(topics)}" if topics else "it has none of them"
        raise job.problem(
            'source.options: a Kafka source needs one of subscribe = "topic", subscribePattern = '
            f'"pattern" and assign = \'{{"topic": [0, 1]}}\'; {have}',
            "source",
            at,
        )
    if _SERVERS not in said:
        raise job.problem(
            f'source.options: a Kafka source needs "{_SERVERS}" = "host:9092", with the quotes',
            "source",
            at,
        )
    if source.ddl is not None:
        raise job.problem(
            f"source.schema: a Kafka source has columns of its own, {', '.join(_KAFKA.names)}; "
            "leave out schema",
            "source",
            "schema",
        )


def own_columns(source: Source) -> pa.Schema | None:
    """The columns of a source without files, if its format decides them."""
    format_ = (source.format or "").lower()
    if format_ == "kafka":
        with_headers = str(_said(source).get("includeheaders", "")).lower() == "true"
        return _KAFKA.append(_HEADERS) if with_headers else _KAFKA
    return _RATE if format_ in ("rate", "rate-micro-batch") else None


def _said(source: Source) -> dict[str, object]:
    """The options by their names in lower case: Spark ignores case."""
    return {name.lower(): value for name, value in source.options.items()}
