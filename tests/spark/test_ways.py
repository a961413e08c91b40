"""The ways that a query can take over a table have the same rows, types and errors."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.testing.queries import answers, differences
from sash.testing.streams import stream
from sash.windows.contract import LATEST

pytest.importorskip("pyspark")
from pyspark.errors import PySparkException
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

import sash.spark
from sash.query.plan import make_plan
from sash.spark import batch, combining, portions
from sash.spark.results import result_fields

Frame = Callable[[Any], Any]

#: All that Spark has, over every type.
NATIVE = {
    "n": sash.count(),
    "known": sash.count("x"),
    "total": sash.sum("i"),
    "small": sash.sum("j"),
    "sum": sash.sum("x"),
    "flags": sash.sum("b"),
    "mean": sash.mean("x"),
    "mean_i": sash.mean("i"),
    "mean_j": sash.mean("j"),
    "spread": sash.stddev("x"),
    "variance": sash.variance("j"),
    "all_variance": sash.population_variance("b"),
    "all_spread": sash.population_stddev("x"),
    "top": sash.max("x"),
    "low": sash.min("x"),
    "low_i": sash.min("i"),
    "top_j": sash.max("j"),
    "flag": sash.max("b"),
    "when": sash.min("w"),
    "wide": sash.span("x"),
}

#: The greatest distance from zero; Spark has nothing of the kind.
farthest = sash.operator(
    identity=0.0,
    lift=lambda x: abs(x),
    combine=lambda a, b: a if a > b else b,
    commutative=True,
    name="farthest",
)

WINDOWS = [
    sash.tumbling("5 seconds", offset="1 second"),
    sash.sliding("10 seconds", "2 seconds"),
    sash.sliding("7 seconds", "3 seconds", offset="-1.5 seconds"),
    sash.cumulate("6 seconds", "2 seconds"),
]


def events(kind: str, count: int = 200) -> pa.Table:
    """A stream, with a column `j` of 32 bits."""
    table = stream(kind, count)
    small = [None if x is None else x % 2**31 for x in table["i"].to_pylist()]
    return table.append_column("j", pa.array(small, pa.int32()))


def check(frame: Frame, q: sash.Query, table: pa.Table, ways: tuple[str, ...]) -> None:
    """The rows of all ways are those of brute force, in the same columns."""
    df, right = frame(table), answers(q, table)
    assert right
    schema = sash.spark.aggregate(df, q, slices="rows").schema
    for slices in ways:
        got = sash.spark.aggregate(df, q, slices=slices)  # type: ignore[arg-type]
        assert got.schema == schema, slices
        assert not differences(q, right, got.toArrow(), ordered=False), slices


@pytest.mark.parametrize("window", WINDOWS[:3], ids=str)
def test_all_ways_have_the_same_rows(frame: Frame, window: sash.Window) -> None:
    by = ["f"] if window is WINDOWS[2] else ["k", "b"]
    q = sash.Query(time="t", by=by, window=window, select=NATIVE)
    check(frame, q, events("disorder"), ("spark", "python", "rows"))


@pytest.mark.parametrize("window", [WINDOWS[0], WINDOWS[3]], ids=str)
def test_only_changes_whichever_way(frame: Frame, window: sash.Window) -> None:
    select = {name: NATIVE[name] for name in ("n", "top", "total")}
    q = sash.Query(time="t", by=["k"], window=window, select=select, emit="changes")
    check(frame, q, events("gaps"), ("spark", "python", "rows"))


def test_times_without_a_zone_and_before_1970(frame: Frame) -> None:
    table = events("before 1970")
    for name in "tw":
        at = table.column_names.index(name)
        plain = table[name].cast(pa.int64()).cast(pa.timestamp("us"))
        table = table.set_column(at, name, plain)
    select = {name: NATIVE[name] for name in ("n", "when", "mean")}
    for window in WINDOWS[:2]:
        q = sash.Query(time="t", window=window, select=select)
        check(frame, q, table, ("spark", "python", "rows"))


def test_the_first_and_the_last_times_that_can_be_used(frame: Frame) -> None:
    """The first slice begins before them."""
    times = [1 - LATEST, 5 - LATEST, 0, LATEST - 1]
    table = pa.table({"t": times, "x": [1.0, 2.0, -0.0, 4.0], "i": [1, 2, 0, 4]})
    select = {name: NATIVE[name] for name in ("n", "top", "total", "mean")}
    for window in (sash.sliding(70, 7), sash.sliding(1_000, 300, offset=11)):
        q = sash.Query(time="t", window=window, select=select)
        check(frame, q, table, ("spark", "python", "rows"))


def test_operators_of_ones_own_and_conditions(frame: Frame) -> None:
    select = {"far": sash.aggregate(farthest, "i"), "product": sash.product("x")}
    where = pc.field("n") > 20
    q = sash.Query(time="t", by=["k"], window=WINDOWS[1], select=select, where=where)
    check(frame, q, events("disorder"), ("python", "rows"))
    df = frame(events("disorder"))
    with pytest.raises(ValueError, match=r"slices='spark' cannot be had .*: it has a condition"):
        sash.spark.aggregate(df, q, slices="spark")


def test_a_way_that_cannot_be_had_says_why(frame: Frame) -> None:
    def refused(slices: Any, why: str, select: Any, **more: Any) -> None:
        q = sash.Query(time="t", window=more.pop("window", WINDOWS[1]), select=select, **more)
        with pytest.raises(ValueError, match=f"slices='{slices}' cannot be had .*: {why}"):
            sash.spark.aggregate(df, q, slices=slices)

    df, far = frame(events("gaps", 5)), {"far": sash.aggregate(farthest, "i")}
    days = sash.tumbling("1 day", timezone="America/New_York")
    refused("spark", "Spark lacks one of the operators", far)
    refused("spark", "the slices of a calendar", {"n": sash.count()}, window=days)
    for more in ({}, {"where": pc.field("n") > 2}, {"window": days}):
        for slices in ("spark", "python"):
            refused(slices, "the order of events matters", {"n": sash.last("n")}, **more)


def test_conditions_of_aggregates_whichever_way(frame: Frame) -> None:
    """Nulls, NaN and two zeros are among what is compared."""
    conditions = [
        (pc.field("x") > 0.5) & (pc.field("s") != "x"),
        ~(pc.field("x") == 0.0) | pc.field("x").is_null(),
        ~(pc.field("x") != 1.0),
        ~pc.field("i").isin([1, 2]) & ~pc.field("b"),
        pc.field("s").is_valid() & (pc.field("j") <= pc.field("n")),
    ]
    chosen = ("n", "known", "total", "sum", "mean", "spread", "top", "low_i", "wide")
    select = {}
    for i, name in enumerate(chosen):
        # one aggregate is there twice, under two conditions
        for where in (conditions[i % 5], conditions[(i + 2) % 5])[: 2 if name == "total" else 1]:
            given = NATIVE[name]
            made = sash.aggregate(given.operator, *given.columns, where=where)
            select[f"{name}_{len(select)}"] = made
    q = sash.Query(time="t", by=["k"], window=WINDOWS[1], select={**select, "all": sash.count()})
    check(frame, q, events("disorder"), ("spark", "python", "rows"))
    odd = {"n": sash.count(where=pc.starts_with(pc.field("s"), "x"))}
    q = sash.Query(time="t", by=["k"], window=WINDOWS[0], select=odd)
    check(frame, q, events("disorder"), ("python", "rows"))
    with pytest.raises(ValueError, match="slices='spark' cannot be had"):
        sash.spark.aggregate(frame(events("ties")), q, slices="spark")


EDGE = 2**63 - 1


@pytest.mark.parametrize("window", WINDOWS[:2], ids=str)
def test_sums_are_exact_and_overflow_only_in_their_window(frame: Frame, window: Any) -> None:
    """Sums that leave int64 on the way are right in the end, in any order."""
    values = [EDGE, EDGE, -EDGE, -EDGE, -5, 2**40]
    table = pa.table(
        {
            "t": pa.array([60_000_000] * len(values), pa.timestamp("us", "UTC")),
            "v": pa.array(values, pa.int64()),
        }
    )
    q = sash.Query(time="t", window=window, select={"total": sash.sum("v"), "mean": sash.mean("v")})
    check(frame, q, table, ("spark", "python", "rows"))
    beyond = frame(table.slice(0, 2))
    for slices in ("spark", "python", "rows"):
        with pytest.raises(PySparkException, match="total: the sum leaves int64"):
            sash.spark.aggregate(beyond, q, slices=slices).collect()  # type: ignore[arg-type]
    mean = sash.Query(time="t", window=window, select={"mean": sash.mean("v")})
    check(frame, mean, table.slice(0, 2), ("spark", "python", "rows"))


@pytest.mark.parametrize(
    "values", [[-0.0, 0.0], [0.0, -0.0], [-0.0, -0.0], [math.nan, 1.0], [None, None]]
)
def test_zeros_nans_and_nulls(frame: Frame, values: list[float | None]) -> None:
    table = pa.table(
        {
            "t": pa.array([10, 20], pa.timestamp("us", "UTC")),
            "x": pa.array(values, pa.float64()),
        }
    )
    names = ("n", "known", "sum", "mean", "spread", "top", "low", "wide")
    select = {name: NATIVE[name] for name in names}
    for window in WINDOWS[:2]:
        q = sash.Query(time="t", window=window, select=select)
        check(frame, q, table, ("spark", "python"))
        for slices in ("spark", "python"):
            rows = sash.spark.aggregate(frame(table), q, slices=slices).collect()  # type: ignore[arg-type]
            for name, pick in (("low", min), ("top", max)):
                if 0.0 in values:
                    wanted = pick(math.copysign(1.0, x) for x in values if x is not None)
                    assert {math.copysign(1.0, row[name]) for row in rows} == {wanted}


@pytest.mark.parametrize("slices", ["spark", "python", "rows"])
def test_a_time_that_cannot_be_used_is_an_error(frame: Frame, slices: Any) -> None:
    q = sash.Query(time="t", window=WINDOWS[0], select={"n": sash.count()})
    table = pa.table({"t": pa.array([1, None], pa.timestamp("us", "UTC"))})
    with pytest.raises(PySparkException, match="null"):
        sash.spark.aggregate(frame(table), q, slices=slices).collect()
    kept = sash.spark.aggregate(frame(table), q, slices=slices, bad="drop").collect()
    assert [row["n"] for row in kept] == [1]


def test_the_way_and_its_reason(frame: Frame) -> None:
    df = frame(events("disorder"))

    def way(window: Any, more: Any = None, **given: Any) -> str:
        select = {"rows": sash.count(), **({"more": more} if more else {})}
        return str(sash.spark.way(df, sash.Query(time="t", window=window, select=select, **given)))

    minute = sash.sliding("1 minute", "20 seconds")
    assert way(WINDOWS[0]) == "tumbled: Spark has all of the operators, and a slice is a window"
    assert way(minute).startswith("spark: Spark has all of the operators, and a slice has")
    assert way(minute, sash.product("x")).startswith("python: the operators commute")
    assert way(minute, where=pc.field("x") > 0).startswith("python: ")
    assert way(minute, sash.last("x")) == "rows: the order of events matters to an aggregate"
    large = "rows: an aggregate has partials that are Python objects, or large"
    assert way(minute, sash.max("s")) == large
    assert way(minute, sash.count_min("i", 64, 4)) == large
    assert way(sash.sliding("1 minute", 7), by="n") == "rows: a slice has 1.0 rows of a sample"
    with pytest.raises(ValueError, match="slices is one of auto, spark, python, rows, not 'no'"):
        sash.spark.aggregate(df, sash.Query(time="t", window=minute, select=NATIVE), slices="no")  # type: ignore[arg-type]


# A task goes through its keys in portions


@pytest.mark.parametrize("keys", [["k"], ["k", "s"], []], ids=str)
@pytest.mark.parametrize("emit", ["all", "changes"])
def test_a_task_with_many_windows_has_some_of_them_at_a_time(
    keys: list[str], emit: Any, monkeypatch: pytest.MonkeyPatch, files: list[Any]
) -> None:
    query = sash.Query(
        time="t",
        by=keys,
        window=sash.sliding(60, 2),
        select={"n": sash.count(), "all": sash.collect("t")},
        emit=emit,
    )
    rows = 400
    table = pa.table(
        {
            "t": pa.array([(i * 7919) % 1000 for i in range(rows)]),
            "k": pa.array([None if i % 19 == 0 else i % 13 for i in range(rows)]),
            "s": pa.array([f"{i % 3}" for i in range(rows)]),
            "__sash_stretch": pa.array([0] * rows),
        }
    )
    plan = make_plan(query, table.drop_columns("__sash_stretch").schema)
    kinds = {"t": LongType(), "k": LongType(), "s": StringType()}
    result = result_fields(plan, StructType([StructField(n, kind) for n, kind in kinds.items()]))
    places = [table.column_names.index(name) for name in [*keys, "__sash_stretch"]]
    made = batch._Work(
        batch._RowWork(query, table.column_names).windows,
        places,
        batch.Stretches.of(query),
        result,
    )

    held: list[int] = []
    cut = made._windows
    made._windows = lambda table, *more: held.append(table.num_rows) or cut(table, *more)  # type: ignore[func-returns-value]

    def found() -> list[Any]:
        held.clear()
        out = pa.Table.from_batches(made(table.to_batches(max_chunksize=90)))
        return sorted(out.to_pylist(), key=repr)

    whole = found()
    assert held == [rows]
    made._portions = dataclasses.replace(made._portions, windows=1500)
    assert found() == whole
    groups = len({tuple(row[k] for k in keys) for row in table.to_pylist()})
    # 1024 windows of each key, and no more than 30 times the rows
    assert len(held) <= -(-min(1024 * groups, 30 * rows) // 1500)
    assert len(held) > 4 if groups > 1 else len(held) == 1

    # more rows than a task holds go through files, which are gone afterwards
    monkeypatch.setattr(portions, "_CHUNK", 1000)
    for bits in (5, 1):  # with one, files go to files again
        monkeypatch.setattr(portions, "_BITS", bits)
        made._portions = dataclasses.replace(made._portions, windows=10**9, size=table.nbytes // 3)
        assert found() == whole
        assert len(held) > 2 if groups > 1 else len(held) == 1
        assert sum(held) == rows
        assert files
        assert all(file.closed for file in files)
    started = made(table.to_batches(max_chunksize=90))
    next(started)
    assert not all(file.closed for file in files)
    started.close()
    assert all(file.closed for file in files)


# What Spark does with the plan


def test_adaptive_execution_parts_no_key(spark: Any, frame: Frame) -> None:
    """Spark may join small tasks, but neither split a large one nor read what each task before
    wrote, as it does below a join: a task must have all rows of its keys."""
    from pyspark.sql import functions as F

    rows = 600
    table = pa.table(
        {
            "t": pa.array([i * 7919 % 20_021 for i in range(rows)]),
            "k": pa.array([i % 50 if i % 5 == 0 else 7 for i in range(rows)]),
        }
    )
    q = sash.Query(time="t", by=["k"], window=sash.sliding(20, 10), select={"n": sash.count()})
    right = answers(q, table)
    df = frame(table)
    few = F.broadcast(frame(pa.table({"k": list(range(50))})))
    settings = {
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "64B",
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "64B",
        "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "1.1",
        "spark.sql.adaptive.rebalancePartitionsSmallPartitionFactor": "0.9",
    }
    before = spark.conf.get("spark.sql.shuffle.partitions")
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        out = sash.spark.aggregate(df, q, slices="rows")
        plan = out._jdf.queryExecution().executedPlan().toString()
        assert "REPARTITION_BY_COL" in plan  # a shuffle that it neither splits nor reads in part
        assert not differences(q, right, out.join(few, "k").toArrow(), ordered=False)
    finally:
        for name in settings:
            spark.conf.unset(name)
        spark.conf.set("spark.sql.shuffle.partitions", before)


def test_expressions_of_sash_have_no_call_sites(
    frame: Frame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes PySpark five calls of the JVM; those of the user's have them, as before."""
    from pyspark.errors import utils
    from pyspark.sql import functions as F

    noted = []
    found = utils._capture_call_site
    monkeypatch.setattr(
        utils, "_capture_call_site", lambda depth: noted.append(depth) or found(depth)
    )
    df = frame(events("gaps", 20))
    noted.clear()
    for window in WINDOWS[:2]:
        sash.spark.aggregate(df, sash.Query(time="t", by=["k"], window=window, select=NATIVE))
    assert not noted
    assert F.col("k") + 1 is not None
    assert noted


def test_a_dense_table_is_judged_by_its_first_rows(spark: Any) -> None:
    """No more partitions are read, where a slice has several of the first rows."""
    from pyspark.sql import functions as F

    at = F.col("id")
    later = F.raise_error(F.lit("a later partition was read")).cast("long")
    df = spark.range(0, 80_000, numPartitions=4).select(
        (at % 5).alias("k"), F.when(at < 40_000, at).otherwise(later).alias("t")
    )
    q = sash.Query(time="t", by=["k"], window=sash.sliding(200, 100), select={"n": sash.count()})
    assert sash.spark.way(df, q).name == "spark"
    with pytest.raises(PySparkException, match="a later partition was read"):
        sash.spark.way(df, dataclasses.replace(q, window=sash.sliding(2, 1)))


def test_a_condition_that_leaves_a_task_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python combines some rows of a task at a time, and the condition may leave none of them."""
    monkeypatch.setattr(combining, "COMBINED", 2)
    select = {"far": sash.aggregate(farthest, "x")}
    where = pc.field("x") > 3
    q = sash.Query(time="t", by=["k"], window=sash.tumbling(10), select=select, where=where)
    rows = pa.table({"t": [1, 2, 3, 4, 5, 6], "k": [1] * 6, "x": [1.0, 2.0, 4.0, 3.0, 0.0, 1.0]})
    fields = [StructField("key_0", LongType()), StructField("time", LongType(), nullable=False)]
    made = StructType([*fields, StructField("partials_0", BinaryType(), nullable=False)])
    work = combining._Combine(q, rows.column_names, made)
    (batch,) = work(rows.to_batches(max_chunksize=2))
    assert batch.column("time").to_pylist() == [0]
    assert list(work(rows.slice(0, 2).to_batches())) == []
