"""Expressions in this process: values and failures that Arrow by itself would get wrong."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import sash
from sash.sql.errors import Source
from sash.sql.evaluate import Evaluator
from sash.sql.read_expression import ExpressionReader
from sash.sql.values import reasons


def evaluated(text: str, **columns: pa.Array) -> tuple[Any, str | None]:
    """The value of an expression for one row, and why there is none."""
    source = Source(text)
    node = ExpressionReader(source).expression()
    evaluator = Evaluator(source, 1, lambda name, _: columns[name])
    value = evaluator.value(node)
    return value.array(1)[0].as_py(), reasons(value.failed).get(0)


def decimal(digits: int, scale: int) -> str:
    """A decimal of a type, of nines."""
    nines = "9" * (digits - scale) + "." + "9" * scale
    return f"CAST('{nines}' AS decimal({digits},{scale}))"


#: An expression and its value.
VALUES: list[tuple[str, Any]] = [
    # results beyond the 76 digits of Arrow's decimals
    (f"{decimal(19, 18)} * {decimal(19, 18)}", Decimal("99." + "9" * 16 + "80" + "0" * 16)),
    (f"{decimal(38, 18)} / {decimal(36, 18)}", Decimal("100.000000")),
    (f"{decimal(38, 38)} + CAST(1 AS decimal(38,0))", Decimal("2.000000")),
    (f"{decimal(38, 18)} * CAST('0.5' AS decimal(38,37))", Decimal(5 * 10**19)),
    (decimal(38, 18), Decimal("9" * 20 + "." + "9" * 18)),
    ("-12345678901234567890.123456789012", Decimal("-12345678901234567890.123456789012")),
    # a carry through more than 38 nines
    ("9999999999999999999999999 * 10.000000000000000000000001", Decimal(10**26)),
    # decimals are the closest doubles, in expressions, too
    ("0.35 * 1D", 0.35),
    ("CAST('12345678901234567890.35' AS decimal(38,2)) * 1D", 12345678901234567890.35),
    ("0.57 / 1D", 0.57),
    # DIV of decimals
    ("7.5 DIV 2", 3),
    ("-7.5 DIV 2", -3),
    ("NULL DIV 0", None),
    # literals, and digits beyond all numbers
    ("-128Y", -128),
    ("1e3BD", Decimal(1000)),
    ("round(1e0, 400)", 1.0),
    ("round(12.5, 400)", Decimal("12.5")),
    ("round(12.5, -400)", Decimal(0)),
    ("round(1e300, -2147483647)", 0.0),
    ("round(12345, -2147483647)", 0),
    # times
    ("CAST('2020-01-01 23:00:00-05:00' AS date)", date(2020, 1, 1)),
    ("CAST('2020-01-01 abc' AS date)", date(2020, 1, 1)),
    ("CAST('2020-01-01Tabc' AS date)", date(2020, 1, 1)),
    ("CAST(TIMESTAMP '1970-01-01 00:00:01.25' AS decimal(20,6))", Decimal("1.250000")),
    ("CAST(TIMESTAMP '1969-12-31 23:59:59.75' AS decimal(20,6))", Decimal("-0.250000")),
    ("CAST(TIMESTAMP '1969-12-31 23:59:59.75' AS bigint)", -1),
    ("TRY_CAST('٣' AS double)", None),
    ("TRY_CAST('٣' AS decimal(3,1))", None),
    ("TRY_CAST('٢٠٢٠-01-01' AS date)", None),
]


@pytest.mark.parametrize(("text", "wanted"), VALUES)
def test_values(text: str, wanted: Any) -> None:
    assert evaluated(text) == (wanted, None)


#: An expression over the text column s, which is 'x', and why it fails.
FAILURES = [
    ("s + s", "CAST: 'x' is no double"),
    ("s + '1'", "CAST: 'x' is no double"),
    ("7.5 DIV 0.0", "division by zero"),
    ("99999999999999999999 DIV 1", "DIV is beyond bigint"),
    ("s IS TRUE", "CAST: 'x' is no boolean"),
    ("s IS NOT FALSE", "CAST: 'x' is no boolean"),
    (f"{decimal(38, 0)} * {decimal(38, 0)}", f"{(10**38 - 1) ** 2} does not fit decimal(38,0)"),
]


@pytest.mark.parametrize(("text", "why"), FAILURES)
def test_failures(text: str, why: str) -> None:
    assert evaluated(text, s=pa.array(["x"]))[1] == why


HOUR = 3_600_000_000
FIVE = "1970-01-01 05:00:00Z"


@pytest.mark.parametrize(
    ("zone", "timezone"),
    [("America/New_York", None), ("UTC", "America/New_York"), ("UTC", None), (None, None)],
)
@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        (f"ts >= '{FIVE}'", 5),
        (f"ts >= TIMESTAMP '{FIVE}'", 5),
        (f"ts >= CAST('{FIVE}' AS timestamp)", 5),
        ("ts >= CAST(s AS timestamp)", 5),
        ("ts >= CAST(18000 AS timestamp)", 5),
        ("ts = CAST(ts AS timestamp)", 6),
        ("CAST(CAST(ts AS timestamp) AS bigint) = CAST(ts AS bigint)", 6),
        (f"CAST(TIMESTAMP '{FIVE}' AS bigint) = 18000", 6),
    ],
)
def test_timestamps_are_instants(
    zone: str | None, timezone: str | None, condition: str, wanted: int
) -> None:
    table = pa.table(
        {
            "ts": pa.array([0, 5 * HOUR, 6 * HOUR], pa.timestamp("us", zone)),
            "x": [1, 2, 3],
            "s": [FIVE] * 3,
        }
    )
    rest = "GROUP BY window(ts, '100 hours', '100 hours', '-50 hours')"
    text = f"SELECT sum(x) AS n FROM t WHERE {condition} {rest}"
    assert sash.sql(text, timezone=timezone).run(table).to_pylist() == [{"n": wanted}]
    after = f"SELECT max(ts) >= TIMESTAMP '1970-01-01 06:00:00Z' AS n FROM t {rest}"
    assert sash.sql(after, timezone=timezone).run(table).to_pylist() == [{"n": True}]


@pytest.mark.plain
def test_a_sum_of_texts_that_are_no_numbers_fails() -> None:
    statement = sash.sql("SELECT sum(s + s) AS n FROM t GROUP BY window(ts, '10 microseconds')")
    with pytest.raises(sash.SqlError, match="'x' is no double"):
        statement.run({"ts": [1], "s": ["x"]})
    stream = statement.stream()
    stream.push([{"ts": 1, "s": "x"}, {"ts": 2, "s": "1"}])
    assert stream.late["ts"].to_pylist() == [1]
    assert stream.close().to_pylist() == [{"n": 2.0}]
