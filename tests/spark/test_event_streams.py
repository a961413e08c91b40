"""Windows that events make, over a streaming DataFrame: the rows of brute force and of the same
query in batch, over restarts from the checkpoint, and nothing lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest

import sash
from sash.testing.queries import differences, replay, rows_of
from sash.testing.streams import batches

pytest.importorskip("pyspark")
from pyspark.sql import functions as F

import sash.spark
from sash.windows import Driven

from .test_streaming import SECOND, START, Stream, events, figures, last_one, told

SELECT = {
    "rows": sash.count(),
    "top": sash.max("x"),
    "newest": sash.last("i"),
    "all": sash.collect("n"),
}
FAR = START + 9 * 10**5 * SECOND


def query(window: Any, **more: Any) -> sash.Query:
    return sash.Query(**{"time": "t", "by": ["k"], "window": window, "select": SELECT} | more)


@pytest.fixture
def files(spark: Any, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


NUMBERS = {name: SELECT[name] for name in ("rows", "top")}
#: Several sizes in one row.
OVER = SELECT | {
    "more": sash.count().over("9 seconds"),
    "few": sash.collect("n").over("1 second"),
    "ever": sash.count().over(sash.lifetime()),
}
FINAL = [
    query(sash.trailing("5 seconds"), tie="n", select=OVER),
    query(sash.session("1 second"), select=NUMBERS),
    query(sash.window(keep=sash.rows(3), every="2 seconds"), tie="n"),
]
if os.environ.get("SASH_FAULTS"):  # more of them in `make test-faults`: each takes a while
    FINAL += [
        query(sash.lifetime(closed="left"), tie="n"),
        query(sash.rows(4, every=2), tie="n"),
        query(sash.delta("x", 3.0, every=2.0), tie="n"),
        query(sash.punctuated("b"), tie="n"),
        query(sash.policies.at_most(3), tie="n"),
    ]


def end_of(table: pa.Table) -> pa.Table:
    """One row of a key of its own, long after all others, which closes their windows."""
    return last_one(table).set_column(table.column_names.index("k"), "k", pa.array(["end"]))


@pytest.mark.parametrize("q", FINAL, ids=lambda q: repr(q.window))
def test_final_over_a_restart(files: Stream, q: sash.Query) -> None:
    """Late rows among them: each row once; the rest on the late output."""
    table = events("disorder", 120)
    # the first rows once more at the end, when most are too late
    again = table.set_column(1, "n", pa.compute.add(table["n"], 1000)).slice(0, 100)
    cut = [*batches(table, seed=3, least=30, most=50), again, end_of(table)]
    half = len(cut) // 2
    given, seen = None, []
    for part in (cut[:half], cut[half:]):
        files.write(*part)
        out = sash.spark.aggregate(files.read("1 second"), q, late=True, buckets=3)
        given, progress = files.run(out)
        seen.append(figures(progress))
    results, late = sash.spark.split(given)
    right, missed = replay(q, cut, "1 second", behind=1)
    right = [row for row in right if row["window_end"] < FAR]
    driven = isinstance(q.window, Driven)
    rows = rows_of(results.toArrow())
    if driven:
        right, rows = (sorted(some, key=lambda row: row["n"]) for some in (right, rows))
    assert not differences(q, right, rows, ordered=driven)

    columns = table.column_names if driven else q.columns
    assert len(missed) > 30, "the test is about late rows"
    lost = rows_of(late.drop("late_reason", "late_missed").toArrow())
    assert told(lost) == told([{c: row[c] for c in columns} for row, _ in missed])
    assert late.where("late_missed is null").count() == 0

    total = {name: sum(s.get(name, 0) for s in seen) for name in seen[0]}
    assert total["rows_in"] == sum(t.num_rows for t in cut)
    assert total["rows_late"] == len(missed)
    assert total["rows_counted"] == total["rows_in"] - len(missed)
    assert total["rows_out"] == len(right)
    assert total["state_records"] > 0
    batch = sash.spark.aggregate(files.spark.read.parquet(str(files.place / "in")), q)
    kept = [f for f in out.schema if f.name not in ("event_time", "late")]
    assert [(f.name, f.dataType) for f in kept] == [(f.name, f.dataType) for f in batch.schema]
    assert out.schema["window"].metadata == batch.schema["window"].metadata


@pytest.mark.parametrize("window", [sash.trailing("5 seconds"), sash.session("1 second")], ids=repr)
def test_live_and_its_sink(files: Stream, tmp_path: Path, window: Any) -> None:
    """Each row at once, and again when a late one changes it; sessions that merge are withdrawn.
    Each batch is handed over twice."""
    table = events("bursts", 120)
    cut = [*batches(table, seed=3, least=50, most=70), end_of(table)]
    more = {"more": sash.count().over("9 seconds"), "ever": sash.max("x").over(sash.lifetime())}
    q = query(window, select=NUMBERS | more if isinstance(window, Driven) else NUMBERS)
    write = sash.spark.upsert(str(tmp_path / "kept"))

    def twice(batch: Any, number: int) -> None:
        write(batch, number)
        write(batch, number)

    corrections = 0
    for part in (cut[:2], cut[2:]):
        files.write(*part)
        out = sash.spark.aggregate(files.read("30 seconds"), q, mode="live", buckets=2)
        corrections += figures(files.run(out, each=twice)[1])["corrections"]
    got = sash.spark.latest(files.spark, str(tmp_path / "kept"))
    right, missed = replay(q, cut, "30 seconds", behind=1)
    assert not missed
    assert corrections > 0
    rows = rows_of(got.toArrow())
    driven = isinstance(window, Driven)
    if driven:
        right, rows = (sorted(some, key=lambda row: (row["n"], row["t"])) for some in (right, rows))
    else:
        every = files.spark.read.parquet(str(tmp_path / "kept"))
        assert every.where("deleted").count() > 0
    assert not differences(q, right, rows, ordered=driven)


def test_columns_of_any_type_are_kept(files: Stream) -> None:
    """The same rows as in batch, with columns that only travel."""
    table = events("disorder", 60)
    files.write(table.slice(0, 40), table.slice(40), end_of(table))
    q = query(sash.trailing("5 seconds"), by=["k", "f"], tie="n", select={"rows": sash.count()})

    def odd(df: Any) -> Any:
        return (
            df.withColumn("day", F.date_add(F.lit("2024-03-10"), F.col("n").cast("int")))
            .withColumn("ntz", F.col("w").cast("timestamp_ntz"))
            .withColumn("struct", F.struct("w", "day", "s", F.array("i", "i")))
            .withColumn("map", F.create_map(F.lit("a"), F.col("i"), F.lit("b"), F.lit(None)))
            .withColumn("decimal", F.col("n").cast("decimal(12,3)"))
            .withColumn("bytes", F.col("s").cast("binary"))
            .withColumn("a.b `c`", F.col("i"))
        )

    given, _ = files.run(sash.spark.aggregate(odd(files.read("60 seconds")), q, buckets=2))
    batch = odd(files.spark.read.parquet(str(files.place / "in")))
    right = sash.spark.aggregate(batch, q).where(F.unix_micros("t") < FAR)
    found = [sorted(str(r) for r in df.drop("event_time").collect()) for df in (given, right)]
    assert len(found[1]) == 60
    assert found[0] == found[1]


def test_what_is_refused(files: Stream) -> None:
    files.write(events("disorder", 10))
    df = files.read()
    trailing = query(sash.trailing("5 seconds"))
    for other, given, why in (
        (df.withColumnRenamed("x", "Event_time"), trailing, "has 'event_time' of its own"),
        (df.withColumnRenamed("w", "late"), trailing, "has 'late' of its own"),
        (df.withColumnRenamed("w", "TOP"), trailing, "which are one name to Spark"),
        (df.withColumnRenamed("w", "window"), trailing, "would have 'window' twice"),
    ):
        with pytest.raises(ValueError, match=why):
            sash.spark.aggregate(other, given)
    for q, asked, why in (
        (trailing, {"slices": "python"}, "cannot be had for trailing"),
        (query(sash.session("1 second")), {"slices": "spark"}, "cannot be had for session"),
        (query(sash.trailing("5 seconds"), tie="n"), {"mode": "live"}, "`tie` cannot put them"),
        (query(sash.session("1 second"), tie="n"), {}, "`tie` cannot put them"),
        (query(sash.lifetime()), {"mode": "live"}, "use mode='final', or sash.trailing"),
        (query(sash.rows(3)), {"mode": "live"}, "a late one would change all later rows"),
        (query(sash.session("1 second"), by=["Deleted"]), {"mode": "live"}, "has 'deleted' of"),
    ):
        with pytest.raises(ValueError, match=why):
            sash.spark.aggregate(df, q, **asked)
    own = sash.operator(identity=(), lift=lambda s: (s,), combine=lambda a, b: a + b, name="own")
    objects = {"x": sash.aggregate(own, "s", returns=pa.list_(pa.string()))}
    with pytest.raises(TypeError, match="without encode and decode"):
        sash.spark.aggregate(df, query(sash.session("1 second"), select=objects))
