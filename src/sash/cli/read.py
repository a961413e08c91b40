"""Read files of this machine as Arrow tables, as Spark reads them with the same options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .csv_text import NotAsSpark, for_arrow
from .csv_values import is_cast, with_values
from .errors import RunError
from .job import Job
from .source import Files

__all__ = ["check_options", "check_types", "read"]

#: The options of Spark's readers that this module understands, by format; in lower case, because
#: Spark ignores case. Options for the reading rate have no effect on one file at a time.
_PACE = ("maxfilespertrigger", "maxbytespertrigger", "latestfirst", "cleansource")
_KNOWN = {
    "parquet": (),
    "csv": ("header", "sep", "delimiter", "nullvalue", "quote", "escape", "encoding"),
    "json": (),
}
#: What may precede a header: a UTF-8 byte order mark, and blank lines.
_EMPTY_LINES = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:[ \t]*(?:[\r\n]|\Z))*")


def check_options(job: Job, format_: str) -> None:
    """Refuse options that this module does not understand and that change the rows."""
    for name in job.tables.source.options:
        known = _KNOWN[format_]
        if name.lower() not in (*known, *_PACE):
            have = f"; it knows {', '.join(known)}" if known else ""
            raise job.problem(
                f"source.options.{name}: --local does not know this option of {format_}{have}",
                "source",
                "options",
                name,
            )
    if format_ == "csv":
        _check_csv(job)


def _check_csv(job: Job) -> None:
    """Refuse separators, quotes and encodings that this module cannot read."""
    for name, given in job.tables.source.options.items():
        option, value, said = name.lower(), str(given), ""
        if option in ("sep", "delimiter"):
            if not _is_sign(value):
                said = f"{name} is one ASCII character with --local, not {value!r}"
            elif value in "\r\n":
                said = f"{name} cannot be the end of a line"
        elif option in ("quote", "escape") and value and not _is_sign(value):
            said = f"{name} is one ASCII character with --local, or empty, not {value!r}"
        elif option == "encoding" and not _is_encoding(value):
            said = f"Python has no encoding {value!r} of text; it has utf-8, utf-16, iso-8859-1, …"
        if said:
            raise job.problem(f"source.options.{name}: {said}", "source", "options", name)


def _is_sign(text: str) -> bool:
    return len(text) == 1 and text.isascii()


def _is_encoding(name: str) -> bool:
    try:
        b" ".decode(name)  # one byte, because Python does not look up the codec for none
    except UnicodeDecodeError:  # half a character
        return True
    except (LookupError, ValueError):
        return False
    return True


def check_types(job: Job, source: Files) -> None:
    """Refuse columns of types that this module cannot read from this format."""
    for field in source.schema or ():
        if source.format == "csv" and pa.types.is_nested(field.type):
            said = "which CSV files cannot have; leave it out, or read it as string"
        elif source.format == "json" and _has_map(field.type):
            said = "and --local reads no maps from JSON; write it as a struct, or run it on Spark"
        else:
            continue
        raise job.problem(
            f"source.schema: column {field.name!r} has type {field.type}, {said}",
            "source",
            "schema",
        )


def _has_map(kind: pa.DataType) -> bool:
    inner = (kind.field(i).type for i in range(kind.num_fields))
    return bool(pa.types.is_map(kind)) or any(_has_map(one) for one in inner)


def read(file: Path, source: Files, options: dict[str, Any]) -> pa.Table:
    """Read the rows of a file, with the columns of the source."""
    options = {k.lower(): v for k, v in options.items()}
    try:
        if source.format == "parquet":
            made = _parquet(file, source)
        elif source.format == "csv":
            made = _csv(file, source, options)
        else:
            made = _json(file, source)
    except (pa.ArrowException, OSError) as error:
        hint = ""
        if source.format == "csv" and "header" not in options and _has_header(file, source):
            hint = "; its first line has the names of the columns: add options = { header = true }"
        raise RunError(f"{file} cannot be read as {source.format}: {error}{hint}") from None
    return made


def _has_header(file: Path, source: Files) -> bool:
    """True if the first line of a CSV file has the names of the columns."""
    try:
        with pa.input_stream(str(file)) as stream:
            line = stream.read(1 << 16).decode(errors="replace").lstrip("\ufeff").splitlines()[0]
    except (OSError, IndexError):
        return False
    words = [word.strip().lower() for word in re.findall(r"[^\s\"',;|]+", line)]
    assert source.schema is not None
    return words == [name.lower() for name in source.schema.names]


def _parquet(file: Path, source: Files) -> pa.Table:
    import pyarrow.parquet as pq

    assert source.schema is not None
    made = pq.ParquetFile(file).read()
    missing = [name for name in source.schema.names if name not in made.column_names]
    if missing:
        raise RunError(
            f"{file} has no column {missing[0]!r}; it has {', '.join(made.column_names)}"
        )
    made = made.select(source.schema.names)
    types = pa.schema([pa.field(f.name, f.type) for f in source.schema])
    return made if made.schema.types == types.types else made.cast(types)


def _csv(file: Path, source: Files, options: dict[str, Any]) -> pa.Table:
    from pyarrow import csv

    assert source.schema is not None
    if not file.stat().st_size:
        return source.schema.empty_table()
    header = _is_true(options.get("header", False))
    names = source.schema.names
    # as in Spark, an empty field is null, also in quotes; if another text stands for null, an empty
    # field in quotes is an empty text
    null = options.get("nullvalue")
    converts = csv.ConvertOptions(
        column_types=_written(source.schema, numbers=True),
        strings_can_be_null=True,
        quoted_strings_can_be_null=null is None,
        null_values=["", *([] if null is None else [str(null)])],
    )
    reads = csv.ReadOptions(column_names=names, skip_rows=1 if header else 0)
    sep = str(options.get("sep", options.get("delimiter", ",")))
    quote = str(options.get("quote", '"'))
    parses = csv.ParseOptions(delimiter=sep, quote_char=quote or False)
    data = _text(file, str(options.get("encoding", "utf8")))
    try:
        data = for_arrow(data, sep=sep, quote=quote, escape=str(options.get("escape", "\\")))
    except NotAsSpark as error:
        raise RunError(f"{file}: {error}") from None
    if header:
        data = _from_header(data)
        if not data:
            return source.schema.empty_table()
        _check_header(file, data, names, parses)
    made = csv.read_csv(pa.BufferReader(data), reads, parses, converts)
    if null is not None:  # this text is null in quotes as well
        for i, column in enumerate(made.columns):
            if pa.types.is_string(column.type):
                there = pc.if_else(
                    pc.equal(column, str(null)), pa.scalar(None, pa.string()), column
                )
                made = made.set_column(i, made.schema.field(i), there)
    made = with_values(made, source.schema, hexadecimal=b"0x" in data or b"0X" in data)
    return _with_times(made, source.schema)


def _text(file: Path, encoding: str) -> bytes:
    """The text of a file, decompressed if necessary, in UTF-8."""
    with pa.input_stream(str(file)) as stream:
        data: bytes = stream.read()
    if encoding.lower().replace("-", "") in ("utf8", "ascii", "usascii"):
        return data
    try:
        return data.decode(encoding).encode()
    except (LookupError, UnicodeDecodeError) as error:
        raise RunError(f"{file} cannot be read as {encoding}: {error}") from None


def _from_header(data: bytes) -> bytes:
    """The text from its header on, which is the first non-empty line.  The header gets a newline if
    it has none, because Arrow needs one to skip it."""
    data = _EMPTY_LINES.sub(b"", data, count=1)
    if data and re.search(rb"[\r\n]", data) is None:
        data += b"\n"
    return data


def _check_header(file: Path, data: bytes, names: list[str], parses: Any) -> None:
    """Refuse a header that differs from the schema: Spark uses only the order of columns."""
    from pyarrow import csv

    with csv.open_csv(pa.BufferReader(data), parse_options=parses) as reader:
        found = reader.schema.names
    if [n.strip().lower() for n in found] != [n.lower() for n in names]:
        raise RunError(
            f"{file} starts with the columns {', '.join(found)}, and the schema lists "
            f"{', '.join(names)}; columns are taken in the schema's order, so make them the same"
        )


def _json(file: Path, source: Files) -> pa.Table:
    from pyarrow import json

    assert source.schema is not None
    if not file.stat().st_size:
        return source.schema.empty_table()
    parses = json.ParseOptions(
        explicit_schema=_written(source.schema), unexpected_field_behavior="ignore"
    )
    made = json.read_json(file, parse_options=parses).select(source.schema.names)
    return _with_times(made, source.schema)


def _written(schema: pa.Schema, *, numbers: bool = False) -> pa.Schema:
    """The types for Arrow's reader: text for times and dates, and on request also for numbers and
    booleans."""
    text = [_is_time(f.type) or (numbers and is_cast(f.type)) for f in schema]
    pairs = zip(schema, text, strict=True)
    return pa.schema([pa.field(f.name, pa.string() if plain else f.type) for f, plain in pairs])


def _with_times(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Cast the table's text to times and dates; a time without a zone is in UTC, as in the session
    on Spark."""
    for i, field in enumerate(schema):
        if not _is_time(field.type):
            continue
        column = table.column(field.name)
        if pa.types.is_timestamp(field.type):
            day = pc.match_substring_regex(column, r"^\s*\d{4}-\d{2}-\d{2}\s*$")
            column = pc.if_else(day, pc.binary_join_element_wise(column, "00:00:00", " "), column)
            if field.type.tz is not None:
                zoned = pc.match_substring_regex(column, r"(?:Z|[+-]\d{2}(?::?\d{2})?)\s*$")
                utc = pc.binary_join_element_wise(column, "Z", "")
                column = pc.if_else(zoned, column, utc)
        try:
            column = column.cast(field.type)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(f"column {field.name!r}: {error}") from None
        table = table.set_column(i, field, column)
    return table


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _is_true(given: Any) -> bool:
    return str(given).lower() == "true"
