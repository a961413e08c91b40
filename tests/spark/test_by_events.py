"""Windows that events make, over a bounded DataFrame: brute force, and Spark's own frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.engine.test_engines import flights

import sash
from sash.testing.queries import answers, differences, rows_of
from sash.testing.streams import stream

pytest.importorskip("pyspark")
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

import sash.spark
from sash.query.plan import make_plan
from sash.spark import by_events, portions, split_sessions
from sash.spark.results import result_fields

Frame = Callable[[Any], Any]

SELECT = {
    "rows": sash.count(),
    "top": sash.max("x"),
    "newest": sash.last("i"),
    "all": sash.collect("n"),
}


#: Several sizes in one row.
OVER = SELECT | {
    "more": sash.count().over("9 seconds"),
    "few": sash.collect("n").over("1 second"),
}
EVER = OVER | {"ever": sash.count().over(sash.lifetime())}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks hold few rows, write the others to files, and work on few keys at a time."""
    monkeypatch.setattr(portions, "_WINDOWS", 40)
    monkeypatch.setattr(portions, "_BYTES", 2000)


def query(window: Any, **given: Any) -> sash.Query:
    return sash.Query(
        **{"time": "t", "by": ["k"], "tie": "n", "window": window, "select": SELECT} | given
    )


def in_order(rows: list[Any], *names: str) -> list[Any]:
    return sorted(rows, key=lambda row: [(row[n] is not None, row[n]) for n in names])


@pytest.mark.parametrize(
    ("window", "select"),
    [
        (sash.trailing("5 seconds"), SELECT),
        (sash.trailing("5 seconds"), OVER),
        (sash.trailing("3 seconds", exclude="row"), SELECT),
        (sash.trailing("3 seconds", exclude="row"), EVER),
        (sash.trailing("4 seconds", delay="2 seconds", closed="right"), SELECT),
        (sash.lifetime(closed="left"), SELECT),
        (sash.rows(4, every=2), SELECT),
        (sash.window(keep="5 seconds", every=sash.punctuated("b")), SELECT),
        (sash.delta("i", 3, every=2), SELECT),
        (sash.policies.at_most(3), SELECT),
    ],
    ids=repr,
)
def test_a_row_for_each_event(
    frame: Frame, monkeypatch: pytest.MonkeyPatch, window: Any, select: Any
) -> None:
    monkeypatch.setattr(by_events, "_LEAST", 1)
    monkeypatch.setattr(by_events, "_TIMES", 1)
    events = stream("disorder", 80)
    q = query(window, select=select)
    length = by_events.Stretches.of(q).length
    if length is not None:
        times = np.unique(events["t"].cast("int64").to_numpy() // length)
        assert len(times) > 3, "rows are in several stretches"
    made = sash.spark.aggregate(frame(events), q)
    assert made.columns == [*events.column_names, "window", *select]
    rows = in_order(rows_of(made.toArrow()), "n")
    assert not differences(q, in_order(answers(q, events), "n"), rows)


@pytest.mark.parametrize(
    "window",
    [
        sash.session("1 second"),
        sash.session("i"),
        sash.window(keep=sash.rows(3), every="2 seconds"),
    ],
    ids=repr,
)
def test_sessions_and_ticks(frame: Frame, window: Any) -> None:
    events = stream("gaps", 80)
    q = query(window)
    made = sash.spark.aggregate(frame(events), q)
    assert made.columns == ["k", "window", *SELECT]
    assert not differences(q, answers(q, events), made.toArrow(), ordered=False)


@pytest.mark.parametrize("given", [{}, {"by": []}, {"where": pc.field("n") > 20}], ids=repr)
def test_sessions_of_a_hot_key_are_cut_at_gaps(
    frame: Frame, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    """Stretches of 2 seconds hold some sessions as a whole, and others reach over several."""
    monkeypatch.setattr(split_sessions, "_LEAST", 1)
    monkeypatch.setattr(split_sessions, "_GAPS", 2)
    monkeypatch.setattr(by_events, "has_hot_key", lambda *_: True)
    events = stream("gaps", 120)
    q = query(sash.session("1 second"), **given)
    made = sash.spark.aggregate(frame(events), q)
    assert made.columns == [*q.by, "window", *SELECT]
    right = answers(q, events)
    spans = [(row["window_start"], row["window_end"]) for row in right]
    over = [end // 2_000_000 - start // 2_000_000 for start, end in spans]
    assert {0, 1} <= set(over)
    assert not differences(q, right, made.toArrow(), ordered=False)


@pytest.mark.parametrize("size", [2000, 10**6])
def test_a_task_works_on_some_of_its_keys_at_a_time(
    size: int, monkeypatch: pytest.MonkeyPatch, files: list[Any]
) -> None:
    """Whether its rows are in files or held."""
    monkeypatch.setattr(portions, "_BYTES", size)
    monkeypatch.setattr(portions, "_CHUNK", 500)
    events = stream("disorder", 200, plain=True)
    names = [*events.column_names, "__sash_stretch"]
    rows = pa.table([*events.columns, pa.array([0] * 200)], names=names)
    q = query(sash.rows(3), select={"rows": sash.count(), "newest": sash.last("i")})
    plan = make_plan(q, events.schema)
    result = result_fields(plan, from_arrow_schema(events.schema))
    task = by_events.task_of(q, events.column_names, by_events.Stretches.of(q), result)
    had: list[list[Any]] = []
    work = task.work

    def counted(table: pa.Table) -> pa.Table:
        had.append(table.column(events.column_names.index("k")).unique().to_pylist())
        return work(table)

    made = pa.Table.from_batches(replace(task, work=counted)(rows.to_batches(max_chunksize=30)))
    right = by_events._Work(q, names, by_events.Stretches.of(q), result)(rows)
    assert in_order(made.to_pylist(), "n") == in_order(right.to_pylist(), "n")
    keys = [key for some in had for key in some]
    assert len(had) > 2
    assert len(keys) == len(set(keys))
    assert bool(files) == (size == 2000)
    assert all(file.closed for file in files)


def test_a_key_is_hot_if_it_has_more_than_its_share(frame: Frame) -> None:
    df = frame(stream("gaps", 80, plain=True))
    q = query(sash.session("1 second"), tie=None)
    even = df.withColumn("k", F.col("n") % 8)
    one = df.withColumn("k", F.when(F.col("n") % 8 > 0, 1))
    assert [split_sessions.has_hot_key(d, q, 2) for d in (even, one)] == [False, True]
    assert not split_sessions.has_hot_key(one, q, 1)
    assert [split_sessions.splits(query(w)) for w in (sash.session("1 s"), sash.session("i"))] == [
        True,
        False,
    ]
    assert not split_sessions.splits(query(sash.session("1 s", max_size="5 s")))


def departures() -> pa.Table:
    """The real flights of January 2013, in the columns of generated events."""
    given = flights()
    times = given["t"].cast(pa.timestamp("us", "UTC"))
    return pa.table({"t": times, "k": given["origin"], "n": given["row"], "x": given["delay"]})


@pytest.mark.parametrize("real", [False, True])
def test_trailing_is_sparks_range(frame: Frame, real: bool) -> None:
    df = frame(departures() if real else stream("ties", 200, plain=True))
    df = df.withColumn("s", F.unix_micros("t"))
    seconds = 3 * 3600 if real else 5
    over = Window.partitionBy("k").orderBy("s").rangeBetween(-seconds * 1_000_000, 0)
    right = df.select(
        "n", F.count("*").over(over).alias("rows"), F.max("x").over(over).alias("top")
    )
    select = {name: SELECT[name] for name in ("rows", "top")}
    q = query(sash.trailing(f"{seconds} seconds"), select=select, tie=None)
    made = sash.spark.aggregate(df, q)
    found = in_order(rows_of(made.select("n", "rows", "top").toArrow()), "n")
    assert found == in_order(rows_of(right.toArrow()), "n")


@pytest.mark.parametrize("real", [False, True])
def test_sessions_are_sparks_session_window(frame: Frame, real: bool) -> None:
    df = frame(departures() if real else stream("gaps", 200, plain=True))
    gap = "6 minutes" if real else "2 seconds"
    native = df.groupBy("k", F.session_window("t", gap).alias("window")).agg(
        F.count("*").alias("rows"), F.max("x").alias("top")
    )
    select = {name: SELECT[name] for name in ("rows", "top")}
    q = query(sash.session(gap), select=select, tie=None)
    made = sash.spark.aggregate(df, q)
    assert made.schema["window"].dataType == native.schema["window"].dataType
    right = rows_of(native.toArrow())
    assert len(right) > 3
    assert not differences(q, right, made.toArrow(), ordered=False)


def test_a_frame_of_another_kind_is_refused(frame: Frame) -> None:
    events = stream("ties", 20)
    df, q = frame(events), query(sash.trailing("5 seconds"))
    shared = sash.share({"q": q, "one": query(sash.trailing("9 seconds"))})
    for refuses in (q.run, q.stream().push, shared.run, shared.stream().push):
        with pytest.raises(TypeError, match=r"DataFrame of Spark; give it to sash\.spark\.agg"):
            refuses(df)
    for refuses in (sash.spark.aggregate, lambda given, q: sash.spark.at(given, df, q, time="t")):
        with pytest.raises(TypeError, match=r"not pandas\.core\.frame\.DataFrame"):
            refuses(events.to_pandas(), q)


def test_what_is_refused(frame: Frame) -> None:
    df = frame(stream("ties", 20))
    q = query(sash.trailing("5 seconds"))
    assert str(sash.spark.way(df, q)) == "rows: events make the windows"
    with pytest.raises(ValueError, match="slices='python' cannot be had for trailing"):
        sash.spark.aggregate(df, q, slices="python")
    with pytest.raises(ValueError, match="mode='live' is for streams"):
        sash.spark.aggregate(df, q, mode="live")
    with pytest.raises(ValueError, match="so the result would have 'top' twice"):
        sash.spark.aggregate(df.withColumn("top", F.lit(1)), q)
    with pytest.raises(ValueError, match="so the result would have 'window' twice"):
        sash.spark.aggregate(df.withColumn("window", F.lit(1)), q)
