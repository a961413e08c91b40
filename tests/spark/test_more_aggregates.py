"""Aggregates against Spark's own: values, types, nulls and NaN, over real flights and edges."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.engine.test_engines import flights

import sash
from sash.testing.queries import answers, differences
from sash.testing.streams import batches, stream

pytest.importorskip("pyspark")
from pyspark.sql import functions as F

import sash.spark

from .test_streaming import SECOND, START, Stream, last_one
from .test_streaming import events as recent

Frame = Callable[[Any], Any]

SELECT = {
    "median": sash.median("x"),
    "high": sash.quantile("i", 0.9),
    "cov": sash.covariance("y", "i"),
    "pop": sash.population_covariance("y", "i"),
    "corr": sash.correlation("y", "n"),
    "skew": sash.skewness("y"),
    "kurt": sash.kurtosis("y"),
    "any": sash.any("b"),
    "all": sash.all("b"),
    "or": sash.bit_or("i"),
    "and": sash.bit_and("i"),
    "xor": sash.bit_xor("i"),
    "mode": sash.mode("s"),
    "some": sash.count(where=pc.field("x") > 1.0),
    "part": sash.sum("i", where=pc.field("s") == "x"),
    "sum": sash.sum("d"),
    "mean": sash.mean("d"),
}
NATIVE = {
    "median": "median(x)",
    "high": "percentile(i, 0.9)",
    "cov": "covar_samp(y, i)",
    "pop": "covar_pop(y, i)",
    "corr": "corr(y, n)",
    "skew": "skewness(y)",
    "kurt": "kurtosis(y)",
    "any": "bool_or(b)",
    "all": "bool_and(b)",
    "or": "bit_or(i)",
    "and": "bit_and(i)",
    "xor": "bit_xor(i)",
    "mode": "mode(s, true)",
    "some": "count(*) FILTER (WHERE x > 1.0 AND NOT isnan(x))",
    "part": "sum(i) FILTER (WHERE s = 'x')",
    "sum": "sum(d)",
    "mean": "avg(d)",
}


def events(count: int = 160) -> pa.Table:
    """A stream with decimals `d`, and floats `y` without infinities: Spark's moments of these go by
    the order of rows."""
    table = stream("disorder", count)
    finite = [None if x is not None and math.isinf(x) else x for x in table["x"].to_pylist()]
    table = table.append_column("y", pa.array(finite, pa.float64()))
    return table.append_column("d", decimals(count))


def decimals(count: int) -> pa.Array:
    values = [None if n % 9 == 0 else Decimal(n * 7919 % 1999 - 999) / 100 for n in range(count)]
    return pa.array(values, pa.decimal128(7, 2))


def departures(count: int = 2500) -> pa.Table:
    """Real flights, in the columns of `events`; those that never left have no delay."""
    given = flights(count)
    delay = given["delay"].cast(pa.float64())
    return pa.table(
        {
            "t": given["t"].cast(pa.timestamp("us", "UTC")),
            "k": given["origin"],
            "s": pc.if_else(pc.greater(given["delay"], 15), "x", "on time"),
            "x": pc.divide(delay, 4.0),
            "y": delay,
            "i": given["delay"],
            "n": given["row"],
            "b": pc.greater(given["delay"], 15),
            "d": pc.divide(delay, 4.0).cast(pa.decimal128(7, 2)),
        }
    )


@pytest.mark.parametrize(("made", "size"), [(events, "5 seconds"), (departures, "1 hour")])
def test_values_and_types_are_sparks(frame: Frame, made: Any, size: str) -> None:
    table = made()
    df = frame(table)
    q = sash.Query(time="t", by=["k"], window=sash.tumbling(size), select=SELECT)
    ours = sash.spark.aggregate(df, q)
    native = df.groupBy("k", F.window("t", size)).agg(
        *[F.expr(text).alias(name) for name, text in NATIVE.items()]
    )
    for name in SELECT:
        assert ours.schema[name].dataType == native.schema[name].dataType, name
    rows = [{(r["k"], r["window"]["start"]): r for r in made.collect()} for made in (ours, native)]
    assert rows[0].keys() == rows[1].keys()
    for key, row in rows[0].items():
        for name in SELECT:
            mine, other = row[name], rows[1][key][name]
            assert alike(mine, other), (key, name, mine, other)


def alike(mine: Any, other: Any) -> bool:
    if mine is None or other is None or not isinstance(mine, float):
        return mine == other
    if mine != mine or other != other:
        return mine != mine and other != other
    return math.isclose(mine, other, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("slices", ["rows", "python"])
def test_exact_sums_are_the_same_to_the_bit(frame: Frame, slices: Any) -> None:
    kinds = (1e308, 1.0, -1e308, 0.1, 3.3, 1e16, -1e16, None)
    count = 300
    table = pa.table(
        {
            "t": pa.array([n * 7919 % 60 * 10**6 for n in range(count)], pa.timestamp("us", "UTC")),
            "x": pa.array([kinds[n * 31 % 8 if n % 5 else 3] for n in range(count)], pa.float64()),
        }
    )
    select = {"sum": sash.sum("x", exact=True), "mean": sash.mean("x", exact=True)}
    q = sash.Query(time="t", window=sash.sliding("20 s", "5 s"), select=select)
    got = sash.spark.aggregate(frame(table).repartition(3), q, slices=slices)
    rows = sorted((r["window"]["start"], r["sum"], r["mean"]) for r in got.collect())
    right = q.run(table)
    assert [r[1:] for r in rows] == list(zip(right["sum"].to_pylist(), right["mean"].to_pylist()))
    assert not differences(q, answers(q, table), right)


def test_decimals_at_the_edge_of_precision(frame: Frame) -> None:
    """Sums of 28 digits and more stay within 38, means have four more behind the point."""
    for precision, scale in ((18, 6), (28, 3), (38, 18)):
        most = Decimal((0, (9,) * min(precision - 2, 32), -scale))
        values = [most, -most, most, Decimal((0, (1,), -scale)), None, most]
        table = pa.table(
            {
                "t": pa.array([n * 10**6 for n in range(6)], pa.timestamp("us", "UTC")),
                "d": pa.array(values, pa.decimal128(precision, scale)),
            }
        )
        df = frame(table)
        select = {"sum": sash.sum("d"), "mean": sash.mean("d")}
        q = sash.Query(time="t", window=sash.tumbling("3 s"), select=select)
        ours = sash.spark.aggregate(df, q)
        native = df.groupBy(F.window("t", "3 seconds")).agg(
            F.sum("d").alias("sum"), F.avg("d").alias("mean")
        )
        for name in select:
            assert ours.schema[name].dataType == native.schema[name].dataType
        found = [
            sorted(made.select("window.start", "sum", "mean").collect()) for made in (ours, native)
        ]
        assert found[0] == found[1]


def test_a_decimal_of_too_many_digits_is_an_error_as_in_spark(frame: Frame) -> None:
    times = pa.array([1, 2], pa.timestamp("us", "UTC"))
    most = pa.array([Decimal(10**38 - 1)] * 2, pa.decimal128(38, 0))
    df = frame(pa.table({"t": times, "d": most}))
    with pytest.raises(Exception, match=r"ARITHMETIC_OVERFLOW|NUMERIC_VALUE_OUT_OF_RANGE"):
        df.groupBy(F.window("t", "3 seconds")).agg(F.sum("d")).collect()
    q = sash.Query(time="t", window=sash.tumbling("3 s"), select={"s": sash.sum("d")})
    with pytest.raises(Exception, match="s: it has more digits than its type"):
        sash.spark.aggregate(df, q).collect()


def test_an_aggregator_of_sparks_shape(frame: Frame) -> None:
    class Tally:
        """How often each value is there; it changes its buffers."""

        commutative = True

        def zero(self) -> dict[str, int]:
            return {}

        def reduce(self, buffer: dict[str, int], x: str) -> dict[str, int]:
            buffer[str(x)] = buffer.get(str(x), 0) + 1
            return buffer

        def merge(self, a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
            for key, count in b.items():
                a[key] = a.get(key, 0) + count
            return a

        def finish(self, buffer: dict[str, int]) -> str:
            return ", ".join(f"{key}: {buffer[key]}" for key in sorted(buffer))

    chosen = sash.aggregate(Tally(), "s", returns=pa.string())
    q = sash.Query(time="t", by=["k"], window=sash.sliding("6 s", "3 s"), select={"all": chosen})
    table = events(60)
    got = sash.spark.aggregate(frame(table), q)
    assert not differences(q, answers(q, table), got.toArrow(), ordered=False)


#: Conditions, decimals of few digits and of many, sums that cancel, quantiles: all that keeps more
#: in a stream's state than a word or two.
STREAMED = {
    "some": sash.count(where=pc.field("s") == "x"),
    "top": sash.max("x", where=pc.field("i") > 0),
    "part": sash.sum("d", where=pc.field("s") == "x"),
    "sum": sash.sum("d"),
    "mean": sash.mean("d"),
    "wide": sash.sum("wide"),
    "median": sash.median("x"),
    "high": sash.quantile("i", 0.9, where=pc.field("b")),
    "mode": sash.mode("s"),
    "skew": sash.skewness("i"),
    "or": sash.bit_or("i"),
    "a second": sash.rate("i"),
}
EXACT = {
    "exact": sash.sum("huge", exact=True),
    "exact mean": sash.mean("huge", exact=True, where=pc.field("n") > 9),
}


def test_a_stream_has_the_rows_of_a_table(spark: Any, tmp_path: Path) -> None:
    """Exact sums to the bit, whatever the batches."""
    count = 120
    table = recent("disorder", count)
    kinds = (1e308, 1.0, -1e308, 0.1, 3.3, 1e16, -1e16, None)
    huge = [kinds[n * 31 % 8 if n % 5 else 3] for n in range(count)]
    table = table.append_column("huge", pa.array(huge, pa.float64()))
    table = table.append_column("d", decimals(count))
    table = table.append_column("wide", decimals(count).cast(pa.decimal128(30, 10)))
    cut = [*batches(table, seed=3, least=40, most=60), last_one(table)]
    files = Stream(spark, tmp_path)
    files.write(*cut)
    window, select = sash.sliding("7 seconds", "3 seconds"), STREAMED | EXACT
    q = sash.Query(time="t", by=["k"], window=window, select=select)
    given, _ = files.run(sash.spark.aggregate(files.read("1 hour"), q, buckets=2))
    right = [r for r in answers(q, table) if r["window_end"] < START + 10**5 * SECOND]
    assert not differences(q, right, given.toArrow(), ordered=False)
    found = given.select("k", F.unix_micros("window.start"), *(f"`{name}`" for name in EXACT))
    wanted = [(r["k"], r["window_start"], *(r[name] for name in EXACT)) for r in right]
    assert sorted(map(str, map(tuple, found.collect()))) == sorted(map(str, wanted))
