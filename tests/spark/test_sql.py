"""SQL on Spark: a statement has the rows that Spark has for the same text, in batch and on a
stream; FROM and all expressions are Spark's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from tests.engine.test_engines import flights

import sash
from sash.testing.queries import rows_of

pytest.importorskip("pyspark")
from tests.spark.test_streaming import Stream, events, files, last_one

import sash.spark

__all__ = ["files"]

Frame = Callable[[Any], Any]

#: Texts that Spark runs by itself as well.
GROUPED = {
    "sliding": "SELECT origin, window.start AS s, window.end AS e, count(*) AS n, count(delay) AS "
    "known, count(*) FILTER (WHERE delay / 60 > 0.5) AS long, sum(100 / delay) FILTER "
    "(WHERE delay = 4) AS part, sum(delay * 2 + 1) AS total, max(delay) AS worst, max_by(row, "
    "row) AS last FROM flights WHERE delay > -5 OR delay IS NULL GROUP BY origin, window(t, "
    "'3 hours', '10 minutes') HAVING count(*) > 3",
    "tumbling": "SELECT window, CASE WHEN origin = 'JFK' THEN 'far' ELSE lower(origin) END AS "
    "place, round(avg(delay) / 60, 3) AS hours, max(delay) - min(delay) AS spread, "
    "round(percentile(delay, 0.9), 6) AS most, median(delay) AS middle FROM flights f "
    "WHERE f.delay IS NOT NULL GROUP BY place, window(t, '1 day', '1 day', '5 hours')",
    "session": "SELECT origin, session_window.start AS s, session_window.end AS e, count(*) AS n "
    "FROM flights GROUP BY session_window(t, '20 minutes'), origin ORDER BY n DESC, s, origin "
    "LIMIT 9",
}
OVER = {
    "range": "SELECT row, origin, count(*) OVER w AS n, max(delay) OVER w - min(delay) OVER w AS "
    "spread, delay / 2 AS half FROM flights WINDOW w AS (PARTITION BY origin ORDER BY t RANGE "
    "BETWEEN INTERVAL '180' MINUTE PRECEDING AND INTERVAL '10' MINUTE PRECEDING)",
    "lifetime": "SELECT *, sum(delay) OVER (PARTITION BY origin ORDER BY t) AS total FROM flights",
    "rows": "SELECT row, sum(delay) OVER (PARTITION BY origin ORDER BY t, row ROWS BETWEEN 9 "
    "PRECEDING AND CURRENT ROW) AS ten FROM flights WHERE delay % 2 = 0",
}


def bag(table: Any) -> list[str]:
    return sorted(map(str, rows_of(table)))


@pytest.mark.parametrize("name", [*GROUPED, *OVER])
def test_a_statement_has_sparks_rows(spark: Any, frame: Frame, name: str) -> None:
    text = (GROUPED | OVER)[name]
    table = flights(3000)
    frame(table).createOrReplaceTempView("flights")
    theirs = spark.sql(text)
    ours = sash.spark.sql(spark, text)
    assert ours.columns == theirs.columns
    wanted = bag(theirs.toArrow())
    assert bag(ours.toArrow()) == wanted
    here = sash.sql(text).run(table)
    assert here.column_names == theirs.columns
    assert bag(here) == wanted
    assert len(wanted) > 8


def test_from_is_whatever_spark_reads(spark: Any, frame: Frame) -> None:
    frame(flights(2000)).createOrReplaceTempView("flights")
    places = pa.table({"code": ["JFK", "LGA", "EWR"], "state": ["NY", "NY", "NJ"]})
    frame(places).createOrReplaceTempView("places")
    text = (
        "WITH late AS (SELECT * FROM flights WHERE delay > 0) SELECT p.state, window.start, "
        "count(*) AS n, sum(CASE WHEN l.delay > 30 THEN 1 ELSE 0 END) AS long, "
        "transform(array(max(l.delay)), d -> d + 1)[0] AS more "
        "FROM late l JOIN (SELECT code, state FROM places) p ON l.origin = p.code "
        "WHERE trim(BOTH FROM p.state) <> '' GROUP BY p.state, window(l.t, '6 hours', '2 hours') "
        "HAVING n > 2"
    )
    theirs = spark.sql(text)
    ours = sash.spark.sql(spark, text)
    assert ours.columns == theirs.columns
    assert bag(ours.toArrow()) == bag(theirs.toArrow()) != []


def test_flinks_and_cqls_words_and_a_statement_over_a_frame(spark: Any, frame: Frame) -> None:
    table = flights(2000)
    df = frame(table)
    df.createOrReplaceTempView("flights")
    hop = (
        "SELECT origin, window_start, window_end, count(*) AS n, max(delay) / 2 AS half FROM "
        "TABLE(HOP(TABLE flights, DESCRIPTOR(t), INTERVAL '1' HOUR, INTERVAL '3' HOUR)) "
        "WHERE delay <> 0 GROUP BY origin, window_start, window_end HAVING max(delay) > 10"
    )
    wanted = bag(sash.sql(hop).run(table))
    assert bag(sash.spark.sql(spark, hop).toArrow()) == wanted != []
    assert bag(sash.spark.aggregate(df, sash.sql(hop)).toArrow()) == wanted
    cql = "SELECT ISTREAM(window_start, max(delay) AS m) FROM flights [RANGE 3 HOURS SLIDE 1 HOUR]"
    there = sash.spark.sql(spark, cql, time="t")
    assert bag(there.toArrow()) == bag(sash.sql(cql, time="t").run(table)) != []


def test_a_stream_has_the_rows_of_the_table(spark: Any, files: Stream) -> None:
    table = events("disorder", 60, plain=True)
    files.write(table.slice(0, 30), table.slice(30), last_one(table))
    schema = spark.read.parquet(str(files.place / "in")).schema
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    source.parquet(str(files.place / "in")).createOrReplaceTempView("events")
    text = (
        "SELECT k, window.start AS s, count(*) + 1 AS more, max(x) AS m FROM events "
        "GROUP BY k, window(t, '10 seconds', '4 seconds') HAVING count(*) > 1"
    )
    with pytest.raises(sash.SqlError, match="ORDER BY is for tables"):
        sash.spark.sql(spark, text + " ORDER BY k", lateness="1 day")
    found, _ = files.run(sash.spark.sql(spark, text, lateness="1 day"))
    rows = found.toArrow()
    assert rows.column_names == ["k", "s", "more", "m", "event_time"]
    assert bag(rows.drop_columns("event_time")) == bag(sash.sql(text).run(table)) != []


def test_live_revisions_that_having_rejects_are_deleted(spark: Any, files: Stream) -> None:
    table = events("disorder", 60, plain=True)
    half = [table.take(list(range(i, 60, 2))) for i in (0, 1)]
    files.write(*half, last_one(table))
    files.read("1 day").createOrReplaceTempView("events")
    text = (
        "SELECT k, window.start AS s, window.end AS e, count(*) AS n FROM events "
        "GROUP BY k, window(t, '10 seconds', '4 seconds') HAVING count(*) < 3"
    )
    short = text.replace("k, window.start AS s, window.end AS e", "window.start AS s")
    with pytest.raises(sash.SqlError, match="it lacks k, the window's end"):
        sash.spark.sql(spark, short, mode="live")
    found, _ = files.run(sash.spark.sql(spark, text, mode="live"))
    rows = found.toArrow()
    assert rows.column_names == ["k", "s", "e", "n", "revision", "deleted", "event_time"]
    last: dict[Any, Any] = {}
    for row in sorted(rows.to_pylist(), key=lambda r: r["revision"]):
        last[row["k"], row["s"]] = row
    kept = [{n: r[n] for n in ("k", "s", "e", "n")} for r in last.values() if not r["deleted"]]
    wanted = sash.sql(text).run(table).to_pylist()
    assert any(r["deleted"] for r in last.values())
    order = lambda r: (str(r["k"]), r["s"])  # noqa: E731
    start = min(r["s"] for r in wanted)
    kept = [r for r in kept if r["s"].timestamp() - start.timestamp() < 9e5]
    assert [(r["k"], r["n"]) for r in sorted(kept, key=order)] == [
        (r["k"], r["n"]) for r in sorted(wanted, key=order)
    ]


def test_what_is_wrong_is_said(spark: Any, frame: Frame) -> None:
    frame(flights(100)).createOrReplaceTempView("flights")
    text = "SELECT origin, count(*) FROM flights GROUP BY origin, window(t, '1 hour')"
    with pytest.raises(ValueError, match="lateness is for streams"):
        sash.spark.sql(spark, text, lateness="1 hour")
    with pytest.raises(sash.SqlError, match="column row is neither grouped nor aggregated"):
        sash.spark.sql(spark, text.replace("SELECT", "SELECT row,"))
    with pytest.raises(sash.SqlError, match="a column of the table and an alias"):
        sash.spark.sql(
            spark,
            "SELECT upper(origin) AS delay, count(*) FROM flights GROUP BY delay, "
            "window(t, '1 hour')",
        )
    with pytest.raises(TypeError, match=r"aggregate takes a sash\.Query or a sash\.Statement"):
        sash.spark.aggregate(frame(flights(100)), "SELECT 1")


#: What Spark refuses: the mistake, marked by the lines of its place, and what is said about it.
REFUSED = {
    "SELECT max(«dely») AS m FROM flights GROUP BY window(t, '1 hour')": "column dely is not there",
    "SELECT max(delay) AS m FROM flights WHERE delay > 0 AND «orgin» = 'JFK' "
    "GROUP BY window(t, '1 hour')": "column orgin is not there",
    "SELECT max(delay) AS m FROM «fligths» GROUP BY window(t, '1 hour')": "table fligths is not",
    "SELECT count(*) AS n\nFROM (SELECT «tt» AS t FROM flights) GROUP BY window(t, '1 hour')":
    "column tt is not there",
    "SELECT max(«array(delay) + 1») AS m FROM flights GROUP BY window(t, '1 hour')": "mismatch",
    "SELECT «max(delay) + array(1)» AS m FROM flights GROUP BY window(t, '1 hour')": "mismatch",
    "SELECT max(delay) AS m FROM flights GROUP BY window(t, '1 hour') HAVING «max(delay)»":
    "boolean",
    "SELECT «nothing(max(delay))» AS m FROM flights GROUP BY window(t, '1 hour')": "nothing",
    "SELECT count(*) AS n, «sum(origin)» AS s FROM flights GROUP BY window(t, '1 hour')":
    "cast text to numbers first",
    "SELECT *, max(delay) OVER (ORDER BY t) AS m FROM «fligths»": "table fligths is not there",
}  # fmt: skip


@pytest.mark.parametrize("marked", REFUSED)
def test_what_spark_refuses_has_its_place(spark: Any, frame: Frame, marked: str) -> None:
    frame(flights(50)).createOrReplaceTempView("flights")
    text = marked.replace("«", "").replace("»", "")
    row, at = next((i, r) for i, r in enumerate(marked.split("\n"), 1) if "«" in r)
    with pytest.raises(sash.SqlError, match=REFUSED[marked]) as caught:
        sash.spark.sql(spark, text)
    said = str(caught.value)
    assert (caught.value.line, caught.value.column) == (row, at.index("«") + 1), said
    width = at.index("»") - at.index("«") - 1
    assert said.split("\n")[2].strip() == "^" * width, said
    assert not any(word in said for word in ("SQLSTATE", "JVM", "org.apache", "Project", "'Agg"))
    assert caught.value.__cause__ is None


def test_what_spark_refuses_of_a_frame_has_its_place(frame: Frame) -> None:
    events = frame(flights(50))
    text = "SELECT max({}) AS m FROM t WHERE {} > 0 GROUP BY window(t, '1 hour')"
    for given, at in (("dely + 1", "delay"), ("delay + 1", "dely")):
        with pytest.raises(sash.SqlError, match="column dely is not there; did you mean delay"):
            sash.spark.aggregate(events, sash.sql(text.format(given, at)))
