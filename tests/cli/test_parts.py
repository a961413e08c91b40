"""The parts of a job: lines of keys, columns in Spark's words, words for numbers."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sash.cli.ddl import DdlError, read_ddl
from sash.cli.doctor import examine
from sash.cli.lines import scan
from sash.cli.report import bytes_text, span_text

pytestmark = pytest.mark.plain

TOML = """\
# a = 1
title = "x # no comment" # a comment
"quoted key" = 'a\\'
[source] # here
options = { header = true, "a.b" = [1, { c = "}" }] }
a.b.c = 1

[[query]]
sql = \"\"\"
[source]
path = 1 \\""\"\"\"
[[query]]
sql = '''
x = 1'''
numbers = [
  1, # one
  "]",
]
after = 1
[query.more]
x = 1
"""


def test_every_key_has_its_line() -> None:
    assert scan(TOML).keys == {
        ("title",): 2,
        ("quoted key",): 3,
        ("source",): 4,
        ("source", "options"): 5,
        ("source", "options", "header"): 5,
        ("source", "options", "a.b"): 5,
        ("source", "options", "a.b", "c"): 5,
        ("source", "a"): 6,
        ("source", "a", "b"): 6,
        ("source", "a", "b", "c"): 6,
        ("query",): 8,
        ("query", 0): 8,
        ("query", 0, "sql"): 9,
        ("query", 1): 12,
        ("query", 1, "sql"): 13,
        ("query", 1, "numbers"): 15,
        ("query", 1, "after"): 19,
        ("query", 1, "more"): 20,
        ("query", 1, "more", "x"): 21,
    }
    assert scan(TOML).text(("query", 0, "sql")) == 10
    assert scan(TOML).text(("query", 1, "sql")) == 14
    assert scan(TOML).of(("source", "nothing", "here")) == 4
    assert scan(TOML.replace("\n", "\r\n")) == scan(TOML)


def test_columns_are_read_as_spark_reads_them() -> None:
    text = (
        "a INT NOT NULL COMMENT 'x, y', `b c`: array<struct<x: double, y map<string, date>>>, "
        "d decimal(12,2), e dec, f timestamp_ntz, g varchar(3), h timestamp"
    )
    inner = pa.struct({"x": pa.float64(), "y": pa.map_(pa.string(), pa.date32())})
    wanted = {
        "b c": pa.list_(inner),
        "d": pa.decimal128(12, 2),
        "e": pa.decimal128(10, 0),
        "f": pa.timestamp("us"),
        "g": pa.string(),
        "h": pa.timestamp("us", "UTC"),
    }
    assert read_ddl(text) == pa.schema([pa.field("a", pa.int32(), False), *wanted.items()])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "the type of column 'a' is missing after 'a'"),
        ("a int,", "the name of a column is missing after 'a int ,'"),
        ("a int b int", "'b' is unexpected after 'a int'"),
        ("a array<int", "'>' is missing after 'array < int'"),
        ("a decimal(40,2)", "column 'a' is a decimal of at most 38 digits"),
        ("a varchar(x)", "the type of column 'a' has 'x' for a number"),
        ("a int; b int", "cannot read '; b int'"),
        (" ", "no column is there"),
        ("a interval", "column 'a' has type 'interval', which is unknown"),
    ],
)
def test_a_text_that_lists_no_columns_is_refused(text: str, message: str) -> None:
    with pytest.raises(DdlError) as caught:
        read_ddl(text)
    assert str(caught.value).startswith(message)


def test_numbers_have_words() -> None:
    assert [span_text(s) for s in (0.04, 59.9, 60, 3_661, 200_000)] == [
        "0.0 s",
        "59.9 s",
        "1 min",
        "1 h 1 min",
        "2 d 7 h",
    ]
    assert [bytes_text(b) for b in (None, 0, 2_048, 5 * 2**30, 2**50)] == [
        "–",
        "0 B",
        "2.0 KiB",
        "5.0 GiB",
        "1024.0 TiB",
    ]


def test_a_doctor_finds_what_these_tests_run_on() -> None:
    found = {finding.what: finding for finding in examine()}
    assert all(found[name].found for name in ("Python", "sash", "numpy", "numba", "pyarrow"))
    assert all(finding.found or finding.how for finding in found.values())
