"""A query over a streaming DataFrame: what is closed equals brute force and Spark's own batch
answer, nothing is lost, and what goes wrong is said."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
import pytest

import sash
from sash.testing.queries import answers, differences, replay, rows_of
from sash.testing.streams import batches, stream

pytest.importorskip("pyspark")
from pyspark.sql import functions as F

import sash.spark

SECOND = 1_000_000
START = 1_700_000_000 * SECOND


def events(kind: str, count: int, **more: Any) -> pa.Table:
    """A stream of our days; Spark has no watermark before 1970."""
    table = stream(kind, count, **more)
    at = pa.timestamp("us", "UTC")
    for name in "tw":
        moved = pa.compute.add(table[name].cast(pa.int64()), START).cast(at)
        table = table.set_column(table.column_names.index(name), name, moved)
    return table


def last_one(table: pa.Table) -> pa.Table:
    """A batch with one row, long after all others, which closes their windows."""
    row = table.slice(0, 1)
    later = pa.array([START + 10**6 * SECOND], pa.timestamp("us", "UTC"))
    return row.set_column(row.column_names.index("t"), "t", later)


class Stream:
    """Batches as files, one for each micro-batch, and a checkpoint."""

    def __init__(self, spark: Any, place: Path) -> None:
        self.spark, self.place = spark, place
        self.written = 0
        (place / "in").mkdir()

    def write(self, *tables: pa.Table) -> None:
        for table in tables:
            file = self.place / "in" / f"{self.written:05d}.parquet"
            pa.parquet.write_table(table, file)
            os.utime(file, (START // SECOND + self.written,) * 2)  # files are read in this order
            self.written += 1

    def read(self, lateness: str = "5 seconds", time: str = "t") -> Any:
        schema = self.spark.read.parquet(str(self.place / "in")).schema
        source = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return source.parquet(str(self.place / "in")).withWatermark(time, lateness)

    def run(self, df: Any, *, each: Any = None, checkpoint: Any = None) -> tuple[Any, Any]:
        """All that is there now; the rows given, and the query's progress."""
        at = checkpoint or self.place / "checkpoint"
        writer = df.writeStream.option("checkpointLocation", str(at)).trigger(availableNow=True)
        if each is None:
            out = str(self.place / "out")
            query = writer.format("parquet").option("path", out).start()
        else:
            query = writer.foreachBatch(each).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
        rows = None if each is not None else self.spark.read.parquet(str(self.place / "out"))
        return rows, query.recentProgress


@pytest.fixture
def files(spark: Any, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


def figures(progress: Any, name: str = "sash") -> dict[str, int]:
    """The observed metrics of all micro-batches, summed."""
    total: dict[str, int] = {}
    for batch in progress:
        seen = batch.observedMetrics.get(name)
        for field, value in (seen.asDict() if seen else {}).items():
            if field not in ("lateness", "queries"):
                total[field] = total.get(field, 0) + (value or 0)
    return total


def query(window: Any = None, **more: Any) -> sash.Query:
    given: dict[str, Any] = {"time": "t", "by": ["k"], "select": {"n": sash.count()}}
    given["window"] = window or sash.sliding("10 seconds", "2 seconds")
    return sash.Query(**(given | more))


SELECT = {
    "n": sash.count(),
    "top": sash.max("x"),
    "total": sash.sum("i"),
    "mean": sash.mean("x"),
    "text": sash.max("s"),
    "when": sash.min("w"),
}
#: Without text: what Spark and Python can combine before the shuffle.
COMBINED = {name: chosen for name, chosen in SELECT.items() if name != "text"}
COMBINED |= {"spread": sash.stddev("x"), "low": sash.min("x"), "sum": sash.sum("x")}


def told(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(str(row) for row in rows)


def test_final(files: Stream) -> None:
    """Late rows among them: all that is closed, once; the rest on the late output."""
    table = events("disorder", 150)
    # the first rows once more at the end, when some or all of their windows are closed
    cut = [*batches(table, seed=3, least=50, most=80), table.slice(0, 140), last_one(table)]
    files.write(*cut)
    q = query(sash.sliding("7 seconds", "3 seconds"), by=["k", "f"], select=SELECT)
    out = sash.spark.aggregate(files.read("1 second"), q, late=True, buckets=4)
    given, progress = files.run(out)
    results, late = sash.spark.split(given)

    right, missed = replay(q, cut, "1 second", behind=1)
    open_from = START + (10**6 - 8) * SECOND
    right = [row for row in right if row["window_end"] <= open_from]
    assert not differences(q, right, results.toArrow(), ordered=False)
    assert missed, "the test is about late rows"

    rows = rows_of(late.drop("late_reason", "late_missed").toArrow())
    columns = q.columns
    assert told(rows) == told([{c: row[c] for c in columns} for row, _ in missed])
    spans = late.select(F.unix_micros("late_missed.start"), F.unix_micros("late_missed.end"))
    assert sorted(tuple(r) for r in spans.collect()) == sorted(
        (m[0][0], m[-1][1]) for _, m in missed
    )

    seen = figures(progress)
    wholly = late.where("late_reason = 'all its windows were closed before it came'").count()
    assert seen["rows_in"] == sum(t.num_rows for t in cut)
    assert seen["rows_in"] == seen["rows_counted"] + seen["rows_late"]
    assert seen["rows_late"] == wholly
    assert seen["rows_late"] + seen["rows_partly_late"] == len(missed)
    assert seen["rows_out"] == len(right)
    assert seen["state_records"] > 0
    assert seen["state_bytes"] > 0
    assert max(b.observedMetrics["sash"]["watermark"] for b in progress) == open_from + 7 * SECOND
    assert [f.name for f in out.schema][2:] == ["window", *SELECT, "event_time", "late"]
    last = results.select(F.unix_micros("event_time"), F.unix_micros("window.end"))
    assert all(at >= end - 1 for at, end in last.collect())


def test_slices_before_the_shuffle(files: Stream) -> None:
    """Rows that travel as slices: the same results, and what is late is counted in rows."""
    table = events("disorder", 150)
    cut = [*batches(table, seed=3, least=50, most=80), table.slice(0, 140), last_one(table)]
    files.write(*cut)
    q = query(sash.sliding("7 seconds", "3 seconds"), by=["k", "f"], select=COMBINED)
    out = sash.spark.aggregate(files.read("1 second"), q, slices="python", buckets=4)
    given, progress = files.run(out)
    right, missed = replay(q, cut, "1 second", behind=1)
    open_from = START + (10**6 - 8) * SECOND
    right = [row for row in right if row["window_end"] <= open_from]
    assert not differences(q, right, given.toArrow(), ordered=False)
    seen = figures(progress)
    assert seen["rows_in"] == sum(t.num_rows for t in cut)
    assert seen["rows_in"] == seen["rows_counted"] + seen["rows_late"]
    assert seen["rows_late"] + seen["rows_partly_late"] == len(missed) > 0
    with pytest.raises(ValueError, match="late rows are wanted"):
        sash.spark.aggregate(files.read(), q, slices="python", late=True)


def test_tumbling_windows_by_spark_itself(files: Stream) -> None:
    """The same rows as sash's own, also where a sum overflows, zeros have signs, and times are
    null; and what follows takes them as it takes those."""
    table = events("disorder", 150).select(["t", "k", "f", "i", "x", "w"])
    cut = [*batches(table, seed=3, least=50, most=80), table.slice(0, 140)]
    odd = table.slice(0, 6)
    values = {
        "i": pa.array([2**63 - 1, 1, None, None, 5, 6], pa.int64()),
        "x": pa.array([-0.0, 0.0, float("nan"), None, 1.0, 2.0]),
        "t": pa.array([0, 0, 0, 0, 0, None], pa.timestamp("us", "UTC")),
        "f": pa.array([0.0, -0.0, float("nan"), None, None, None]),
        "k": pa.array(["odd"] * 6),
    }
    later = pa.compute.add(values["t"].cast(pa.int64()), START + 1000 * SECOND)
    values["t"] = later.cast(pa.timestamp("us", "UTC"))
    for name, column in values.items():
        odd = odd.set_column(odd.column_names.index(name), name, column)
    files.write(*cut, odd, last_one(table))
    q = query(sash.tumbling("7 seconds", offset="-1.5 seconds"), by=["k", "f"], select=COMBINED)
    got = []
    for slices in ("spark", "auto"):
        out = sash.spark.aggregate(files.read("1 second"), q, slices=slices)  # type: ignore[arg-type]
        place, files.place = files.place, files.place / slices
        (files.place / "in").parent.mkdir()
        given, progress = files.run(out)
        files.place = place
        assert figures(progress)["rows_out"] == given.count() > 100
        got.append((out.schema, given))
    (schema, mine), (wanted, right) = got
    assert [(x.name, x.dataType) for x in schema] == [(x.name, x.dataType) for x in wanted]
    assert schema["window"].metadata == wanted["window"].metadata
    assert "spark.watermarkDelayMs" in schema["event_time"].metadata
    rows = rows_of(right.drop("event_time").toArrow())
    odds = [(r["f"], r["n"], r["total"]) for r in rows if r["k"] == "odd"]
    assert str(sorted(odds, key=str)) == "[(0.0, 2, None), (None, 2, 5), (nan, 1, None)]"
    assert not differences(q, rows, mine.drop("event_time").toArrow(), ordered=False)
    for other, asked, why in (
        (query(), {}, "where each is a window"),
        (q, {"late": True}, "drops late rows"),
        (q, {"mode": "live"}, "no revisions"),
        (query(sash.tumbling("7 seconds"), select={"last": sash.last("k")}), {}, "does not have"),
    ):
        with pytest.raises(ValueError, match=why):
            sash.spark.aggregate(files.read(), other, slices="spark", **asked)


def test_live_and_its_sink(files: Stream, tmp_path: Path) -> None:
    """Each batch is handed to the sink twice, as after a failure."""
    table = events("bursts", 150)
    cut = [*batches(table, seed=3, least=50, most=80), last_one(table)]
    files.write(*cut)
    order = {"all": sash.collect("s"), "who": sash.arg_max("n", by="i"), "first": sash.first("x")}
    q = query(select={**order, "times": sash.collect("w")}, tie="n")
    out = sash.spark.aggregate(files.read("30 seconds"), q, mode="live", late=True, buckets=3)
    kept, late = str(tmp_path / "kept"), str(tmp_path / "late")
    write = sash.spark.upsert(kept, late=late)

    def twice(batch: Any, number: int) -> None:
        write(batch, number)
        write(batch, number)

    _, progress = files.run(out, each=twice)
    got = sash.spark.latest(files.spark, kept)
    right, missed = replay(q, cut, "30 seconds", behind=1)
    open_from = START + (10**6 - 30) * SECOND
    right = [row for row in right if row["window_end"] <= open_from]
    closed = got.where(F.unix_micros("window.end") <= open_from)
    assert not differences(q, right, closed.toArrow(), ordered=False)
    assert not missed
    assert files.spark.read.parquet(late).count() == 0
    assert figures(progress)["corrections"] > 0
    assert got.agg(F.max("revision")).first()[0] > 0
    sash.spark.compact(files.spark, kept, str(tmp_path / "compact"))
    again = sash.spark.latest(files.spark, str(tmp_path / "compact"))
    assert again.columns == got.columns
    assert again.count() == got.count()


def test_equal_to_native_with_a_stateful_operator_after_it(files: Stream) -> None:
    """The same stream through window() in append mode; then results are counted by hours."""
    table = events("disorder", 120)
    files.write(table.slice(0, 60), table.slice(60), last_one(table))
    keys = ["k", "f", "day", "w", "ntz", "all"]
    q = query(by=keys, select={"n": sash.count(), "top": sash.max("x")})
    source = (
        files.read("60 seconds")
        .withColumn("day", F.date_add(F.lit("2024-03-10").cast("date"), F.col("n").cast("int") % 3))
        .withColumn("ntz", F.col("w").cast("timestamp_ntz"))
        .withColumn("all", F.struct("w", "day", "s"))
    )
    ours = sash.spark.aggregate(source, q, buckets=4)
    window = F.window("t", "10 seconds", "2 seconds")
    native = source.groupBy(*keys, window).agg(F.count("*").alias("n"), F.max("x").alias("top"))

    got: dict[str, list[Any]] = {"ours": [], "native": [], "counted": []}

    def into(name: str) -> Any:
        return lambda batch, _: got[name].append(batch.toArrow())

    files.run(ours, each=into("ours"), checkpoint=files.place / "1")
    files.run(native, each=into("native"), checkpoint=files.place / "2")
    rows = {name: [r for t in tables for r in rows_of(t)] for name, tables in got.items()}
    assert len(rows["native"]) > 100
    assert not differences(q, rows["native"], rows["ours"], ordered=False)

    hours = ours.groupBy(F.window("event_time", "1 hour")).agg(F.count("*").alias("n"))
    files.run(hours, each=into("counted"), checkpoint=files.place / "3")
    counted = [r for t in got["counted"] for r in rows_of(t)]
    assert sum(r["n"] for r in counted) == len(rows["ours"])


def test_a_poison_row_does_not_stop_the_stream(files: Stream) -> None:
    times = [START, None, START + SECOND, -(2**61) - 5, START + 2 * SECOND]
    at = pa.timestamp("us", "UTC")
    first = pa.table({"t": pa.array(times, at), "k": list("abcde")})
    then = pa.table({"t": pa.array([START + 90 * SECOND], at), "k": ["f"]})
    beyond = pa.table({"t": pa.array([2**61 + 5], at), "k": ["g"]})
    after = pa.table({"t": pa.array([START + 95 * SECOND], at), "k": ["h"]})
    files.write(first, then, beyond, after)
    q = query(sash.tumbling("10 seconds"))
    given, progress = files.run(sash.spark.aggregate(files.read(), q, late=True, buckets=2))
    results, late = sash.spark.split(given)
    good = pa.concat_tables([first.take([0, 2, 4]), then, after])
    assert not differences(q, answers(q, good), results.toArrow(), ordered=False)
    # a time far in the future moves Spark's watermark with it, which judges the batch after next
    assert sorted(tuple(r) for r in late.select("k", "late_reason").collect()) == [
        ("b", "its time is null"),
        ("d", "its time is out of range"),
        ("g", "its time is out of range"),
    ]
    assert late.where("late_missed is null").count() == 3
    seen = figures(progress)
    assert (seen["rows_in"], seen["rows_counted"], seen["rows_late"]) == (8, 5, 3)


def test_only_changes_an_operator_of_ones_own_and_odd_names(files: Stream) -> None:
    xor = sash.operator(identity=0, lift=lambda x: x, combine=lambda a, b: a ^ b, name="xor")
    table = events("disorder", 90, plain=True)
    table = table.append_column("b.1", table["b"].cast(pa.int64()))
    table = table.append_column("bucket", table["b"])
    cut = [table.slice(0, 50), table.slice(50), last_one(table)]
    files.write(*cut)
    q = query(
        select={"own": sash.aggregate(xor, "b.1")},
        emit="changes",
        by=["bucket"],
        tie="n",
        where=pa.compute.field("n") != 7,
    )
    given, _ = files.run(sash.spark.aggregate(files.read("60 seconds"), q, buckets=2))
    right, _ = replay(q, cut, "60 seconds", behind=1)
    right = [row for row in right if row["window_end"] < START + 9 * 10**5 * SECOND]
    assert not differences(q, right, given.toArrow(), ordered=False)


def test_state_of_something_else_is_refused(files: Stream) -> None:
    table = events("disorder", 40)
    files.write(table.slice(0, 20))
    files.run(sash.spark.aggregate(files.read(), query(), buckets=4))
    files.write(table.slice(20, 1))
    others = {
        r"has 4 buckets of keys, and the query now has 8: say .*buckets=4": (query(), 8),
        r"window was sliding\('10 seconds', '2 seconds'\) and is sliding\('1 minute'": (
            query(sash.sliding("60 seconds", "2 seconds")),
            4,
        ),
        r"n: operator was count and is max": (
            query(select={"n": sash.max("i")}),
            4,
        ),
    }
    for message, (q, buckets) in others.items():
        with pytest.raises(Exception, match=message):
            files.run(sash.spark.aggregate(files.read(), q, buckets=buckets))
    files.run(sash.spark.aggregate(files.read(), query(), buckets=4))


def test_a_mended_operator_goes_on_with_trust(files: Stream) -> None:
    def own(combine: Any) -> sash.Query:
        made = sash.operator(identity=0, lift=lambda x: x, combine=combine)
        return query(select={"spread": sash.aggregate(made, "i", returns=pa.int64())})

    wrong, mended = own(lambda a, b: a - b), own(lambda a, b: a ^ b)
    table = events("disorder", 40)
    files.write(table.slice(0, 20))
    files.run(sash.spark.aggregate(files.read(), wrong, buckets=4))
    files.write(table.slice(20, 1))
    with pytest.raises(Exception, match=r"\(spread: combine differs\).*trust="):
        files.run(sash.spark.aggregate(files.read(), mended, buckets=4))
    with pytest.raises(ValueError, match="its aggregates are: spread"):
        sash.spark.aggregate(files.read(), mended, trust=["n"])
    files.run(sash.spark.aggregate(files.read(), mended, buckets=4, trust=["spread"]))
    # in one micro-batch all buckets have become the new query's, also those without rows
    files.write(table.slice(21, 19))
    files.run(sash.spark.aggregate(files.read(), mended, buckets=4))


def test_what_is_wrong_is_said_before_a_stream_starts(files: Stream, tmp_path: Path) -> None:
    files.write(events("disorder", 10))
    df = files.read()
    schema = files.spark.read.parquet(str(tmp_path / "in")).schema
    source = files.spark.readStream.schema(schema).parquet(str(tmp_path / "in"))
    with pytest.raises(ValueError, match=r"needs a watermark.*df.withWatermark\('t', '10 minutes'"):
        sash.spark.aggregate(source, query())
    with pytest.raises(KeyError, match="reads column 'z', which is not there"):
        sash.spark.aggregate(df, query(by=["z"]))
    with pytest.raises(TypeError, match="the time column 's' has type string"):
        sash.spark.aggregate(df, query(time="s"))
    with pytest.raises(TypeError, match="a tie column of text cannot be kept"):
        sash.spark.aggregate(df, query(select={"x": sash.first("x")}, tie="s"))
    with pytest.raises(ValueError, match="needs mode='final'"):
        sash.spark.aggregate(df, query(emit="changes"), mode="live")
    for name in ("late", "event_time", "sash_batch"):
        with pytest.raises(ValueError, match=f"has '{name}' of its own; choose another name"):
            sash.spark.aggregate(df, query(select={name: sash.count()}))
    with pytest.raises(TypeError, match="the time of a stream must be a timestamp"):
        sash.spark.aggregate(source, query(time="n"))
    own = sash.operator(identity=(), lift=lambda s: (s,), combine=lambda a, b: a + b, name="own")
    objects = query(select={"x": sash.aggregate(own, "s", returns=pa.list_(pa.string()))})
    with pytest.raises(TypeError, match="without encode and decode"):
        sash.spark.aggregate(df, objects)
    with pytest.raises(ValueError, match="has no column 'late'"):
        sash.spark.split(sash.spark.aggregate(df, query()))


def test_a_checkpoint_that_cannot_be_written(files: Stream, tmp_path: Path) -> None:
    files.write(events("disorder", 10))
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(Exception, match=r"(?i)file"):
        files.run(
            sash.spark.aggregate(files.read(), query()), checkpoint=tmp_path / "file" / "checkpoint"
        )


def test_nothing_of_the_jvm_is_touched() -> None:
    """So that it runs on Spark Connect as well."""
    source = Path(sash.spark.__file__).parent
    for file in source.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            name = getattr(node, "attr", getattr(node, "id", ""))
            assert name not in ("_jvm", "_jdf", "_jsc", "_sc", "sparkContext", "rdd"), file


CONNECT = """
import sys
import sash, sash.spark

spark = sash.spark.session(remote="local[2]")
assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
place = sys.argv[1]
q = sash.Query(
    time="t", by=["k"], window=sash.sliding("10 seconds", "2 seconds"), select={"n": sash.count()}
)
table = spark.read.parquet(place + "/in")
rows = sash.spark.aggregate(table, q)
assert "connect" in type(rows).__module__
closed = rows.where("window.end < timestamp_seconds(1700900000)")
source = spark.readStream.schema(table.schema).option("maxFilesPerTrigger", 1)
df = source.parquet(place + "/in").withWatermark("t", "60 seconds")
out = sash.spark.aggregate(df, q)
query = (
    out.writeStream.format("parquet").option("path", place + "/out")
    .option("checkpointLocation", place + "/checkpoint").trigger(availableNow=True).start()
)
query.awaitTermination()
got = spark.read.parquet(place + "/out").drop("event_time")
right = {tuple(map(str, r)) for r in closed.collect()}
assert {tuple(map(str, r)) for r in got.collect()} == right
assert len(right) > 50
print("the same", len(right), "rows")
"""


def test_on_spark_connect(files: Stream, tmp_path: Path) -> None:
    """A server of its own, in a process of its own."""
    for package in ("grpc", "grpc_status", "zstandard", "google.rpc"):
        pytest.importorskip(package)
    table = events("disorder", 80)
    files.write(table, last_one(table))
    (tmp_path / "connect.py").write_text(CONNECT)
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    environment.pop("PYSPARK_GATEWAY_PORT", None)
    run = subprocess.run(
        [sys.executable, str(tmp_path / "connect.py"), str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr[-5000:]
    assert "the same" in run.stdout
