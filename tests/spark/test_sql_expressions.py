"""Expressions of SQL: what Arrow computes in this process equals what Spark computes, on nulls,
NaN, extremes and empty text; and where one of them fails, so does the other."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sash.sql.errors import Source
from sash.sql.evaluate import Evaluator, check_expression
from sash.sql.read_expression import ExpressionReader
from sash.sql.spark_types import spark_name
from sash.sql.values import plain, reasons

pytest.importorskip("pyspark")

inf, nan = math.inf, math.nan
TABLE = pa.table(
    {
        "id": pa.array(range(10), pa.int32()),
        "i": pa.array([0, 1, -1, 7, None, 2**31 - 1, -(2**31), 3, 10, -10], pa.int32()),
        "l": pa.array([0, 3, -7, 2**63 - 1, -(2**63), None, 1, 100, 15, 25], pa.int64()),
        "b": pa.array([0, 127, -128, None, 5, -5, 1, 2, 3, 4], pa.int8()),
        "f": pa.array([0.1, -0.0, nan, inf, None, 1.5, 3e38, 2.5, -2.5, 1e-40], pa.float32()),
        "d": pa.array([0.0, -0.0, nan, inf, -inf, None, 2.675, 1e300, -1.5, 5e-324]),
        "e": pa.array(
            [nan, 0.5, 2.5, -2.5, 1e15, 1234567.891, 0.001, None, 9007199254740993.0, 1.0]
        ),
        "s": pa.array(["", " ", "abc", "Äß", " 12 ", None, "x%y_z", "1e3", "true", "-7"]),
        "u": pa.array(["", "a", "abc", "abd", "NaN", "12", None, "2013-02-01", "F", "a\nb"]),
        "n": pa.array(
            [
                Decimal("0.00"),
                Decimal("1.25"),
                Decimal("-1.25"),
                Decimal("99999999.99"),
                None,
                Decimal("2.50"),
                Decimal("0.01"),
                Decimal("3.33"),
                Decimal("-99999999.99"),
                Decimal("1.00"),
            ],
            pa.decimal128(10, 2),
        ),
        "t": pa.array(
            [
                dt.datetime(2013, 1, 1),
                dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
                dt.datetime(2012, 12, 31, 12, 30, 15, 250000),
                None,
                dt.datetime(2016, 2, 29, 6, 7, 8),
                dt.datetime(2013, 6, 30, 1, 2, 3),
                dt.datetime(1900, 1, 1),
                dt.datetime(2013, 10, 6, 23, 0, 0, 1),
                dt.datetime(2021, 1, 3),
                dt.datetime(2013, 12, 30),
            ],
            pa.timestamp("us"),
        ),
        "day": pa.array(
            [dt.date(2013, 1, 1), None, dt.date(1969, 12, 31), *[dt.date(2016, 2, 29)] * 7]
        ),
        "ok": pa.array([True, False, None, True, False, True, None, True, False, True]),
    }
)

EXPRESSIONS = """
-9223372036854775808
- 9223372036854775808
-(9223372036854775808)
-2147483648
-2147483649
l + -9223372036854775808
l -9223372036854775808
-128Y
-1.50
i + 1
i - l
l * 2
b + b
b * 2
-i
-l
i + d
f + i
f * f
f / 2
d * 2 - 1
i / 2
i / l
1 / 2
d / e
d / 0
i % 3
l % i
-7 % 3
d % 2.5D
i % 0
l DIV 2
l DIV i
n DIV 2
i DIV n
n DIV NULL
n * 0.7D
n + d
7Y - n
n + 1
n * 2
n * n
n / 3
n / n
n % 2
n - i
i * 0.5
l * 0.5
i / 2.0
d * 0.5
1.5 + 2.25
10 / 4.0
f + n
i = l
i <> l
d = e
d < e
d <= e
d > e
d >= 0
d = d
d <> d
f = d
i < d
n = 1.25
n > i
s = u
s < u
s <=> u
d <=> d
i <=> NULL
s = ''
t > '2013-01-01'
t = TIMESTAMP '2013-01-01 00:00:00'
day < t
day = DATE '2016-02-29'
s = 12
i > '3'
ok = 'true'
ok AND i > 0
ok OR i > 0
NOT ok
i > 0 AND 10 / i > 2
i = 0 OR 10 / i > 2
ok IS NULL
ok IS NOT TRUE
ok IS FALSE
d IS NOT NULL
s IS DISTINCT FROM u
i IN (1, 7, NULL)
i NOT IN (1, 7)
d IN (0, 2.675)
e IN (d, 1)
s IN ('', 'abc')
i BETWEEN 0 AND 7
i NOT BETWEEN l AND 3
d BETWEEN 0 AND 3
s LIKE 'a%'
s LIKE '%\\\\%%'
s LIKE 'x_y%'
s LIKE '_'
s LIKE ''
u LIKE 'a%b'
s NOT LIKE '%b_'
s LIKE 'x!%y!_z' ESCAPE '!'
CASE WHEN i > 0 THEN 'p' WHEN i < 0 THEN 'm' END
CASE i WHEN 1 THEN 'one' WHEN 7 THEN 'seven' ELSE s END
CASE WHEN i = 0 THEN 0 ELSE 10 / i END
CASE WHEN ok THEN i ELSE d END
CASE WHEN ok THEN 1 ELSE 2.5 END
CASE d WHEN 0 THEN 'zero' WHEN CAST('NaN' AS double) THEN 'nan' END
COALESCE(i, l)
COALESCE(i, l, 0)
COALESCE(s, u, 'none')
COALESCE(i, 1 / 0)
COALESCE(d, i)
NULLIF(i, 1)
NULLIF(d, 0)
NULLIF(s, '')
CAST(i AS string)
CAST(l AS string)
CAST(d AS string)
CAST(e AS string)
CAST(f AS string)
CAST(n AS string)
CAST(ok AS string)
CAST(t AS string)
CAST(day AS string)
CAST(s AS int)
TRY_CAST(s AS int)
TRY_CAST(u AS int)
TRY_CAST(s AS double)
TRY_CAST(u AS double)
TRY_CAST(s AS boolean)
TRY_CAST(u AS boolean)
TRY_CAST(s AS decimal(10, 3))
TRY_CAST(u AS date)
TRY_CAST(s AS tinyint)
CAST(d AS int)
CAST(d AS bigint)
TRY_CAST(d AS bigint)
TRY_CAST(e AS int)
TRY_CAST(d AS decimal(10, 2))
CAST(i AS tinyint)
TRY_CAST(i AS tinyint)
CAST(i AS decimal(5, 2))
TRY_CAST(l AS decimal(20, 2))
CAST(l AS double)
CAST(l AS float)
CAST(n AS int)
CAST(n AS double)
CAST(n AS decimal(8, 1))
TRY_CAST(n AS decimal(8, 1))
CAST(n AS boolean)
CAST(i AS boolean)
CAST(d AS boolean)
CAST(ok AS int)
CAST(ok AS double)
CAST(t AS date)
CAST(NULL AS int)
CAST(i AS bigint)
i::double
abs(i)
abs(l)
abs(d)
abs(n)
abs(b)
round(d)
round(d, 2)
round(e, 1)
round(e)
round(e, -1)
round(f, 1)
round(i)
round(i, -1)
round(l, -2)
round(n)
round(n, 1)
round(n, -1)
floor(d)
floor(e)
floor(i)
floor(n)
ceil(d)
ceil(e)
ceil(n)
ceiling(l)
lower(s)
upper(s)
upper(u)
length(s)
char_length(u)
length(i)
substring(u, 2)
substring(u, 0, 2)
substring(u, -2)
substring(u, -5, 3)
substring(u, 2, 0)
substring(u, 1, -1)
substr(u, i, 2)
substring(u FROM 2 FOR 1)
concat(s, u)
concat(s, i)
concat(s, '-', ok, d)
s || u
extract(year FROM t)
extract(quarter FROM t)
extract(month FROM t)
extract(week FROM t)
extract(yearofweek FROM t)
extract(day FROM t)
extract(doy FROM t)
extract(dow FROM t)
extract(dow_iso FROM t)
extract(hour FROM t)
extract(minute FROM t)
extract(second FROM t)
extract(year FROM day)
extract(dayofweek FROM day)
""".strip().split("\n")


def ours(text: str) -> tuple[list[Any], dict[int, str], str]:
    """The values, the rows that failed, and Spark's name of the type."""
    source = Source(text)
    node = ExpressionReader(source).expression()
    check_expression(node, source)
    rows = TABLE.num_rows
    evaluator = Evaluator(source, rows, lambda name, _: plain(TABLE.column(name)))
    value = evaluator.value(node)
    return value.array(rows).to_pylist(), reasons(value.failed), spark_name(value.type)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (
            a == b and math.copysign(1, a) == math.copysign(1, b)
        )
    return type(a) is type(b) and a == b


def test_expressions_equal_sparks(spark: Any, frame: Callable[[Any], Any]) -> None:
    df = frame(TABLE).coalesce(1).cache()
    df.createOrReplaceTempView("expressions")
    found = [ours(text) for text in EXPRESSIONS]
    columns = []
    for i, (text, (_, failed, _)) in enumerate(zip(EXPRESSIONS, found, strict=True)):
        rows = ", ".join(map(str, sorted(failed))) or "-1"
        columns.append(f"CASE WHEN id NOT IN ({rows}) THEN ({text}) END AS c{i}")
    wrong: list[str] = []

    def ask(start: int, end: int) -> None:
        """Compare some of the expressions, or half of them if Spark fails on one."""
        part = spark.sql(f"SELECT id, {', '.join(columns[start:end])} FROM expressions")
        try:
            rows = sorted(part.collect(), key=lambda row: row["id"])
        except Exception as error:
            if end - start == 1:
                wrong.append(f"{EXPRESSIONS[start]}: is {found[start][:2]}, Spark: {error}"[:500])
                return
            middle = (start + end) // 2
            ask(start, middle)
            ask(middle, end)
            return
        for i in range(start, end):
            values, failed, kind = found[i]
            theirs = [row[f"c{i}"] for row in rows]
            mine = [None if row in failed else v for row, v in enumerate(values)]
            if not all(map(same, mine, theirs)):
                wrong.append(f"{EXPRESSIONS[i]}: {mine} and Spark's {theirs}")
            said = (
                part.schema[f"c{i}"].dataType.simpleString().replace("timestamp_ntz", "timestamp")
            )
            if said not in (kind, "void"):
                wrong.append(f"{EXPRESSIONS[i]}: is {kind}, and Spark's {said}")

    for start in range(0, len(columns), 25):
        ask(start, min(start + 25, len(columns)))
    for text, (_, failed, _) in zip(EXPRESSIONS, found, strict=True):
        if failed:  # Spark fails on the first of these rows as well
            one = spark.sql(f"SELECT ({text}) AS c FROM expressions WHERE id = {min(failed)}")
            try:
                got = one.collect()
                wrong.append(f"{text}: fails with {failed[min(failed)]}, and Spark has {got}")
            except Exception:
                pass
    spark.catalog.dropTempView("expressions")
    assert not wrong, "\n" + "\n".join(wrong)
