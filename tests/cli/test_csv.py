"""CSV as Spark reads it, or not at all: escapes by backslash, or by a second quote where that is
said.  What Spark makes of each line is in tests/spark/test_jobs.py as well."""

from __future__ import annotations

from decimal import Decimal
from math import inf, nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sash.cli.errors import RunError
from sash.cli.read import read
from sash.cli.source import Files

pytestmark = pytest.mark.plain

SCHEMA = pa.schema({"a": pa.string(), "b": pa.string()})

#: Lines, and the two values that Spark has for each; None where it guesses.
LINES: dict[str, tuple[str | None, str | None] | None] = {
    r'"a\"b",2': ('a"b', "2"),
    r'"a\\b",3': (r"a\b", "3"),
    r'"a\\",4': ("a\\", "4"),
    r'"a\nb",5': (r"a\nb", "5"),
    r"a\b,6": (r"a\b", "6"),
    r"a\"b,7": (r"a\"b", "7"),
    r'a"b,8': ('a"b', "8"),
    r'"a\,b",12': (r"a\,b", "12"),
    r'"a,b",13': ("a,b", "13"),
    r'"a" ,18': ("a", "18"),
    r'"\\\"",22': ('\\"', "22"),
    r'"",23': (None, "23"),
    r",24": (None, "24"),
    r"\\,30": (r"\\", "30"),
    r'"a""b",1': None,
    r'"""a""",2': None,
    r'"a"b,3': None,
    r'"a,4': None,
    '"a\nb",5': None,
}


def rows(
    folder: Path, text: str, schema: pa.Schema = SCHEMA, **options: str
) -> list[tuple[Any, ...]]:
    file = folder / "a.csv"
    file.write_text(text, newline="")
    made = read(file, Files("csv", str(folder), (file,), schema), dict(options))
    return [tuple(row.values()) for row in made.to_pylist()]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_line_is_read_as_spark_reads_it(tmp_path: Path, line: str, end: str) -> None:
    wanted = LINES[line]
    if wanted is None:
        with pytest.raises(RunError, match="line 2 has a quote within a field that no"):
            rows(tmp_path, f"x,1\n{line}{end}")
    else:
        assert rows(tmp_path, f"x,1\n{line}{end}y,2\n" if end else line)[bool(end)] == wanted


def test_two_quotes_are_one_where_that_is_said(tmp_path: Path) -> None:
    text = '"a""b\\",1\n"""",2\nx,3'
    assert rows(tmp_path, text, escape='"') == [('a"b\\', "1"), ('"', "2"), ("x", "3")]
    with pytest.raises(RunError, match="line 1 has a quote within a field"):
        rows(tmp_path, '"a\\"b",1\n', escape='"')


def test_a_text_may_stand_for_null(tmp_path: Path) -> None:
    text = '"",1\n,2\n"NA",3\nNA,4\n'
    assert [row[0] for row in rows(tmp_path, text, nullValue="NA")] == ["", None, None, None]
    assert [row[0] for row in rows(tmp_path, text)] == [None, None, "NA", "NA"]


def test_other_separators_quotes_and_encodings(tmp_path: Path) -> None:
    assert rows(tmp_path, "'a\\'b';1\n", sep=";", quote="'") == [("a'b", "1")]
    (tmp_path / "a.csv").write_bytes('"é\\"",1\n'.encode("utf-16"))
    files = Files("csv", str(tmp_path), (tmp_path / "a.csv",), SCHEMA)
    made = read(tmp_path / "a.csv", files, {"encoding": "utf-16"})
    assert made.to_pylist() == [{"a": 'é"', "b": "1"}]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("before", ["", "\ufeff", "\n", "\n\n", " \n\t\n", "\ufeff\n"])
def test_a_header_is_the_first_line_that_is_not_empty(
    tmp_path: Path, before: str, end: str
) -> None:
    before = before.replace("\n", end)
    for text in ("a,b", "a,b\n", "a,b\n\n", '"a","b"'):
        assert rows(tmp_path, before + text.replace("\n", end), header="true") == [], text
    assert rows(tmp_path, f"{before}a,b{end}{end}1,2{end}", header="true") == [("1", "2")]
    assert rows(tmp_path, before, header="true") == []
    with pytest.raises(RunError, match="starts with the columns a, c, and the schema lists a, b"):
        rows(tmp_path, f"{before}a,c", header="true")


def test_a_header_that_no_one_announced_is_named(tmp_path: Path) -> None:
    schema = pa.schema({"a": pa.string(), "b": pa.float64()})
    hint = r"; its first line has the names of the columns: add options = \{ header = true \}"
    for head in ("a,b", '"A","B"'):
        with pytest.raises(RunError, match=hint):
            rows(tmp_path, f"{head}\nx,1.5\n", schema)
        assert rows(tmp_path, f"{head}\nx,1.5\n", schema, header=True) == [("x", 1.5)]
    for text, options in (("a,c\nx,1.5\n", {}), ("x,b\n", {"header": False})):
        with pytest.raises(RunError, match="column 'b'") as raised:
            rows(tmp_path, text, schema, **options)
        assert "header =" not in str(raised.value)


#: What Spark 4 reads as each type, and what it makes null.
VALUES: dict[pa.DataType, tuple[dict[str, Any], tuple[str, ...]]] = {
    pa.int64(): (
        {"5": 5, "-0": 0, "007": 7, '"5"': 5},
        (" 5", "5 ", "\t5", '" 5"', "0x1F", "0X1f", "5.0", "1e3", "true", " "),
    ),
    pa.int8(): ({"-128": -128}, ("128", " 1", "0x1")),
    pa.float64(): (
        {" 5": 5.0, "5 ": 5.0, '" 5"': 5.0, "+5": 5.0, ".5": 0.5, "1e3": 1000.0, "NaN": nan}
        | {"Inf": inf, "-Inf": -inf, "Infinity": inf, "+Infinity": inf, "-Infinity": -inf},
        ("nan", "NAN", "inf", "INF", "-inf", "infinity", "0x1F", " Inf", " ", "x"),
    ),
    pa.float32(): ({" 5": 5.0, "Inf": inf}, ("inf", "nan")),
    pa.decimal128(9, 2): (
        {"5": Decimal(5), "+5": Decimal(5), ".5": Decimal("0.5"), "1e3": Decimal(1000)},
        (" 5", "5 ", "0x1F", "NaN"),
    ),
    pa.bool_(): (
        {"true": True, "TRUE": True, "tRUE": True, "False": False},
        ("1", "0", " true", "false ", "t", "yes"),
    ),
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_a_value_is_what_spark_reads_or_an_error(tmp_path: Path, kind: pa.DataType) -> None:
    good, bad = VALUES[kind]
    schema = pa.schema({"a": pa.string(), "b": kind})
    found = rows(tmp_path, "".join(f"x,{text}\n" for text in good) + "x,\n", schema)
    assert str([row[1] for row in found[:-1]]) == str(
        [v if not isinstance(v, Decimal) else v.quantize(Decimal("0.01")) for v in good.values()]
    )
    assert found[-1][1] is None
    first = next(iter(good))
    for text in bad:
        for other in ("x", "0x"):  # for which hexadecimal numbers are looked for
            with pytest.raises(RunError, match="cannot be read as csv: column 'b': "):
                rows(tmp_path, f"{other},{first}\nx,{text}\n", schema)
    nulls = rows(tmp_path, f'x,{first}\nx,"-"\nx,-\n', schema, nullValue="-")[1:]
    assert nulls == [("x", None)] * 2
