"""Several queries in one pass and one stateful operator, and several sizes of sliding windows: the
rows of each query alone by brute force, over a restart, and another set of queries refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.testing.queries import answers, differences, replay, rows_of
from sash.testing.streams import batches

pytest.importorskip("pyspark")
from pyspark.sql import functions as F

import sash.spark
from sash.spark import portions

from .test_streaming import SECOND, START, Stream, events, figures, last_one, told

NUMBERS = {"n": sash.count(), "top": sash.max("x"), "total": sash.sum("i")}
SIZED = NUMBERS | {
    "day": sash.sum("i").over("40 seconds"),
    "now": sash.count().over("1 second"),
    "ever": sash.count().over(sash.lifetime()),
}


def query(window: Any, select: Any = None, **more: Any) -> sash.Query:
    given: dict[str, Any] = {"time": "t", "by": ["k"], "select": select or NUMBERS}
    return sash.Query(**(given | {"window": window} | more))


QUERIES = {
    "sizes": query(sash.sliding("6 seconds", "2 seconds"), SIZED),
    "slow": query(sash.tumbling("11 seconds"), {"rows": sash.count(), "text": sash.max("s")}),
    "other keys": query(sash.tumbling("4 seconds"), by=["f", "k"], where=pc.field("i") > 0),
    "each": query(sash.trailing("5 seconds"), {"rows": sash.count()}, tie="n"),
    "gaps": query(sash.session("1 second"), {"rows": sash.count()}),
}


@pytest.fixture
def files(spark: Any, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


def test_a_table(spark: Any, frame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portions, "_WINDOWS", 40)  # a task works on few keys at a time
    table = events("disorder", 120)
    shared = sash.share(QUERIES)
    assert shared.plan.bundles[0].names == ("sizes", "slow")
    found = sash.spark.explain(frame(table), shared, data=table).bundles[0]
    assert found.measured.combines <= found.expected.combines
    made = sash.spark.aggregate(frame(table), shared, buckets=3)
    assert made.columns == ["query", *QUERIES]
    made = spark.createDataFrame(made.toArrow()).cache()  # it is run once
    for name, q in QUERIES.items():
        found = sash.spark.split(made, name)
        assert not differences(q, answers(q, table), found.toArrow(), ordered=False)
    with pytest.raises(ValueError, match="here they are: sizes, slow"):
        sash.spark.split(made, "fast")
    alone = sash.spark.aggregate(frame(table), QUERIES["sizes"])
    right = answers(QUERIES["sizes"], table)
    assert not differences(QUERIES["sizes"], right, alone.toArrow(), ordered=False)


def test_each_query_drops_the_times_that_its_own_clock_lacks(frame: Any) -> None:
    """The last hours of the year 9999 are in the year 10000 in Tokyo, beyond all calendars."""
    times = [None, START, (253_402_300_800 - 3600) * SECOND, (253_402_300_800 + 5) * SECOND]
    table = pa.table({"t": pa.array(times, pa.timestamp("us", "UTC")), "k": ["a"] * 4})
    select = {"n": sash.count()}
    plain = query(sash.tumbling("1 hour"), select)
    local = query(sash.tumbling("1 day", timezone="Asia/Tokyo"), select)
    gaps = query(sash.session("1 minute"), select)
    df = frame(table)
    for names in (("plain", "local", "gaps"), ("local", "gaps", "plain"), ("local",)):
        queries = {name: {"plain": plain, "local": local, "gaps": gaps}[name] for name in names}
        made = sash.spark.aggregate(df, sash.share(queries), bad="drop")
        rows = made.groupBy("query").count().collect()
        assert {row["query"]: row["count"] for row in rows} == {
            name: 1 if name == "local" else 3 for name in names
        }
    with pytest.raises(Exception, match="beyond the years 1 to 9999"):
        sash.spark.aggregate(df.where("t is not null"), sash.share({"local": local})).collect()


def test_final_over_a_restart(files: Stream) -> None:
    """Late rows among them, which name the queries that they are late for."""
    table = events("disorder", 120)
    again = table.set_column(1, "n", pc.add(table["n"], 1000)).slice(0, 100)
    cut = [*batches(table, seed=3, least=30, most=50), again, last_one(table)]
    half = len(cut) // 2
    shared, seen, given = sash.share(QUERIES), [], None
    for part in (cut[:half], cut[half:]):
        files.write(*part)
        out = sash.spark.aggregate(files.read("1 second"), shared, late=True, buckets=2)
        given, progress = files.run(out)
        seen += progress
    results, late = sash.spark.split(given)
    late = late.withColumn("name", F.explode("late_queries")).toArrow()
    told_of = set()
    for name, q in QUERIES.items():
        right, missed = replay(q, cut, "1 second", behind=1)
        right = [row for row in right if _closed(q, row)]
        made = sash.spark.split(results, name).drop("event_time").toArrow()
        assert not differences(q, right, made, ordered=False), name
        own = late.filter(pc.equal(late["name"], name)).select(list(q.columns))
        assert told(rows_of(own)) == told([{c: row[c] for c in q.columns} for row, _ in missed])
        told_of |= {name} if missed else set()
    assert len(told_of) > 3, "the test is about late rows"
    assert figures(seen)["rows_in"] == sum(part.num_rows for part in cut)

    files.write(last_one(table))
    others = {name: q for name, q in QUERIES.items() if name != "gaps"}
    others["slow"] = query(sash.tumbling("12 seconds"))
    out = sash.spark.aggregate(files.read("1 second"), sash.share(others), late=True, buckets=2)
    with pytest.raises(Exception, match=r"gaps is not there any more; slow: window was tumbling"):
        files.run(out)


def _closed(q: sash.Query, row: dict[str, Any]) -> bool:
    """True if a row was emitted before the stream's end."""
    far = START + 9 * 10**5 * SECOND
    if row["window_end"] >= far:
        return False
    return "t" not in row or row["t"] < far


def test_live(files: Stream) -> None:
    """The last revision of each window is that of the batch run, of several sizes too."""
    table = events("disorder", 100)
    files.write(*batches(table, seed=5, least=50, most=70), last_one(table))
    queries = {name: QUERIES[name] for name in ("sizes", "slow", "gaps")}
    shared, source = sash.share(queries), files.read("40 seconds")
    given = {"mode": "live", "lateness": "40 seconds", "data": table}
    found = sash.spark.explain(source, shared, **given)
    assert found.bundles[0].measured.rows > 0
    said = str(found)
    assert "of one stateful operator" in " ".join(said.split())
    assert said.startswith("3 queries in one stateful operator of Spark, mode='live', in 1 bundle")
    assert "so it shares the intake only" in " ".join(said.split())
    out = sash.spark.aggregate(source, shared, mode="live", buckets=2)
    _, progress = files.run(out, each=sash.spark.upsert(str(files.place / "kept")))
    assert figures(progress)["corrections"] > 0
    for name, q in queries.items():
        right = [row for row in answers(q, table) if _closed(q, row)]
        made = sash.spark.latest(files.spark, str(files.place / "kept" / name))
        made = made.where(F.col("window.start") < F.timestamp_micros(F.lit(START + 10**5 * SECOND)))
        assert made.columns == sash.spark.split(out, name).columns, "as the query has by itself"
        made = made.drop("revision", "deleted", "event_time")
        assert not differences(q, right, made.toArrow(), ordered=False)
