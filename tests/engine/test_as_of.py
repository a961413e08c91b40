"""Answers as of a moment: against brute force, a join in DuckDB, and a replay that stops there."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.tables import threads
from sash.testing.queries import events_of, fold, key_of
from sash.testing.rows import equal, rows_of
from sash.testing.streams import stream

from .test_engines import flights

SELECT = {
    "rows": sash.count(),
    "total": sash.sum("i"),
    "top": sash.max("x"),
    "last": sash.last("n"),
    "some": sash.count(where=pc.field("s") == "x"),
}
OBJECTS = {"all": sash.collect("n"), "mode": sash.mode("s")}
#: Sizes that are shorter and longer than the query's own; some aggregates have all, some one.
SIZES = {
    "rows": sash.count(),
    "short": sash.count().over("1 second"),
    "long": sash.count().over("20 seconds"),
    "ever": sash.count().over(sash.lifetime()),
    "top": sash.max("x").over("20 seconds"),
    "last": sash.last("n").over("2 seconds"),
    "middle": sash.median("i").over("20 seconds"),
    "all": sash.collect("n"),
    "more": sash.collect("n").over(sash.lifetime()),
}
SELECTS = {"one size": SELECT | OBJECTS, "several sizes": SIZES}
WINDOWS = (
    sash.trailing("5 seconds"),
    sash.trailing("3 seconds", closed="left"),
    sash.trailing("4 seconds", closed="right", delay="2 seconds"),
    sash.trailing("3 seconds", exclude="group"),
    sash.lifetime(),
)


def events(count: int = 90, kind: str = "disorder") -> pa.Table:
    """Events with the time at which each became known: most of them late, some never."""
    source = random.Random(count)
    table = stream(kind, count)
    times = table["t"].cast(pa.int64()).to_pylist()
    late = [t + source.choice((0, 0, 500_000, 3_000_000, 20_000_000)) for t in times]
    known = [None if n % 17 == 0 else t for n, t in enumerate(late)]
    return table.append_column("seen", pa.array(known, pa.timestamp("us", "UTC")))


def questions(table: pa.Table, count: int = 70) -> pa.Table:
    """Keys that are there and one that is not, at times of events, beside them, and far away."""
    source = random.Random(count)
    times = table["t"].cast(pa.int64()).to_pylist()
    at = [source.choice(times) + source.choice((0, 0, 1, -1, 700_000)) for _ in range(count)]
    at[:2] = [min(times) - 5, max(times) + 10**9]
    keys = [source.choice([*table["k"].to_pylist(), "nobody"]) for _ in range(count)]
    asked = pa.array(at, pa.timestamp("us", "UTC"))
    return pa.table({"k": pa.array(keys, pa.string()), "asked": asked, "id": range(count)})


def brute(q: sash.Query, given: pa.Table, asked: pa.Table, known: bool) -> list[dict[str, Any]]:
    """Each question by itself: its events in order, folded."""
    window: Any = q.window
    everything = events_of(q, given if q.where is None else given.filter(q.where))
    without = window.closed in ("left", "none") or window.exclude == "group"
    found = []
    for row in rows_of(asked):
        at, key = row["asked"], key_of(q, row)[0]
        end = at - window.delay
        held = []
        for n, event in enumerate(everything):
            was = not known or (event["seen"] is not None and event["seen"] <= at)
            before = event["t"] < end or (event["t"] == end and not without)
            if was and before and key_of(q, event)[0] == key:
                held.append((event["t"], n, event))
        held.sort(key=lambda h: h[:2])
        values = {}
        for name, size in q.sizes.items():
            first = float("-inf") if size is None else end - size
            if window.closed in ("right", "none"):
                first += 1
            values[name] = fold(q.select[name], [e for t, _, e in held if first <= t])
        found.append(values)
    return found


def judge(q: sash.Query, given: pa.Table, asked: pa.Table, known: str | None = None) -> None:
    got = q.at(given, asked, time="asked", known=known)
    assert got.column_names == [*asked.column_names, *q.select]
    assert got.select(asked.column_names).equals(asked)
    right = brute(q, given, asked, bool(known))
    for i, (row, wanted) in enumerate(zip(rows_of(got), right, strict=True)):
        for name in q.select:
            assert equal(wanted[name], row[name], 1e-9), (i, name, row[name], wanted[name])


@pytest.mark.plain
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_answers_are_those_of_brute_force(window: Any) -> None:
    for select in (SELECT, OBJECTS, SIZES):
        q = sash.Query(time="t", by=["k"], window=window, select=select)
        given = events()
        judge(q, given, questions(given))
        judge(q, given, questions(given), "seen")


@pytest.mark.plain
def test_without_keys_with_a_condition_and_without_events() -> None:
    where = pc.field("n") > 20
    q = sash.Query(time="t", window=WINDOWS[0], select=SELECT, where=where)
    given = events(60, "ties")
    asked = questions(given, 30)
    judge(q, given, asked)
    judge(q, given, asked, "seen")
    q = sash.Query(time="t", by=["k"], window=WINDOWS[0], select=SELECT)
    for known in (None, "seen"):
        judge(q, given.slice(0, 0), asked, known)
        judge(q, given, asked.slice(0, 0), known)


@pytest.mark.plain
def test_parts_of_the_keys_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers are those of the whole table, and a sum that leaves int64 names its question."""
    monkeypatch.setattr("sash.tables.threads.PIECE", 64)
    source = random.Random(2)
    count = 900
    given = pa.table(
        {
            "t": [source.randrange(500) for _ in range(count)],
            "k": [source.choice([*"abcdefghij", None]) for _ in range(count)],
            "x": [source.choice([None, 1, 2**62]) for _ in range(count)],
            "n": range(count),
        }
    )
    keys = [source.choice([*"aacdefghij", None, "nobody"]) for _ in range(300)]
    asked = pa.table({"k": keys, "at": [source.randrange(-5, 510) for _ in keys]})
    select = {
        "many": sash.count(),
        "long": sash.count().over(60),
        "top": sash.max("x").over(60),
        "last": sash.last("n"),
    }
    q = sash.Query(time="t", by=["k"], window=sash.trailing(20), select=select)
    found = q.at(given, asked, time="at", threads=2)
    assert len(threads.cut_rows(count)) > 2
    for row in found.to_pylist():
        held = [
            (e["t"], e["n"], e["x"])
            for e in given.to_pylist()
            if e["k"] == row["k"] and row["at"] - 60 <= e["t"] <= row["at"]
        ]
        own = sorted(e for e in held if e[0] >= row["at"] - 20)
        values = [x for *_, x in held if x is not None]
        right = len(own), len(held), max(values, default=None), own[-1][1] if own else None
        assert tuple(row[name] for name in select) == right
    total = replace(q, select={"total": sash.sum("x")})
    with pytest.raises(OverflowError, match=r"total: the sum leaves int64 as of \d+, in row"):
        total.at(given, asked, time="at", threads=2)


@pytest.mark.plain
def test_what_was_known_is_what_a_replay_had_that_stopped_there() -> None:
    """A table of the events that were known by a question's time, and behind them one of that time,
    whose window is asked for."""
    window = sash.trailing("5 seconds", closed="left")
    select = {"many": sash.count(), "all": sash.collect("n")}
    q = sash.Query(time="t", by=["k"], window=window, select=select)
    given = events(60)
    for row in q.at(given, questions(given, 25), time="asked", known="seen").to_pylist():
        then = given.filter(pc.field("seen") <= row["asked"]).select(["t", "k", "n"])
        last = pa.table([[row["asked"]], [row["k"]], [-1]], schema=then.schema)
        replayed = q.run(pa.concat_tables([then, last])).to_pylist()[-1]
        assert [row[name] for name in select] == [replayed[name] for name in select]


@pytest.mark.plain
@pytest.mark.parametrize("state", ["memory", "store", "brute force"])
@pytest.mark.parametrize(
    ("window", "mode", "chosen"),
    [
        (WINDOWS[0], "final", "one size"),
        (WINDOWS[2], "live", "one size"),
        (WINDOWS[4], "final", "one size"),
        (WINDOWS[0], "final", "several sizes"),
        (WINDOWS[2], "live", "several sizes"),
    ],
    ids=str,
)
def test_a_stream_is_asked_as_of_a_time(
    monkeypatch: pytest.MonkeyPatch, window: Any, mode: Any, chosen: str, state: str
) -> None:
    """From the watermark on it has the answers of a table of all events so far."""
    monkeypatch.setenv("SASH_ORACLE", "1" if state == "brute force" else "0")
    q = sash.Query(time="t", by=["k"], window=window, select=SELECTS[chosen])
    table = stream("disorder", 80)
    kept: Any = {"store": sash.stores.memory(), "name": "s"} if state == "store" else {}
    s = q.stream(lateness="400 days" if mode == "live" else "3 seconds", mode=mode, **kept)
    accepted = table.schema.empty_table()
    for start in range(0, 80, 20):
        batch = table.slice(start, 20)
        s.push(batch)
        late = [row["n"] for row in s.take_late().to_pylist()]
        counted = [n for n in batch["n"].to_pylist() if n not in late]
        accepted = pa.concat_tables([accepted, batch.filter(pc.field("n").isin(counted))])
        newest = pc.max(accepted["t"]).cast(pa.int64()).as_py()
        for at in (newest - 3_000_000, newest - 1, newest, newest + 4_000_000):
            keys = ["a", "b", None, "nobody"]
            asked = pa.table({"k": keys, "asked": pa.array([at] * 4, pa.timestamp("us", "UTC"))})
            right = q.at(accepted, asked, time="asked").select(list(q.select)).to_pylist()
            found = [s.query(key, at=at) for key in keys]
            assert str(found) == str(right)


@pytest.mark.plain
def test_what_a_stream_cannot_be_asked() -> None:
    q = sash.Query(time="t", window=sash.trailing(5), select={"many": sash.count()})
    s = q.stream()
    with pytest.raises(ValueError, match="nothing was pushed"):
        s.query(at=5)
    s.push({"t": 9})
    with pytest.raises(ValueError, match="before the watermark"):
        s.query(at=5)
    with pytest.raises(ValueError, match="give at="):
        s.query(lo=3, hi=5)
    aligned = sash.Query(time="t", window=sash.tumbling(5), select={"many": sash.count()})
    with pytest.raises(ValueError, match="at=… asks for the time up to a moment"):
        aligned.stream().query(at=5)


@pytest.mark.once
def test_against_a_join_in_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    given = flights(6000)
    source = random.Random(3)
    times = given["t"].cast(pa.int64()).to_pylist()
    asked = pa.table(
        {
            "origin": [source.choice(["JFK", "LGA", "EWR", "XXX"]) for _ in range(800)],
            "asked": pa.array([source.choice(times) for _ in range(800)], pa.timestamp("us")),
            "id": range(800),
        }
    )
    q = sash.Query(
        time="t",
        by=["origin"],
        window=sash.trailing("3 hours"),
        select={"many": sash.count(), "sum": sash.sum("delay"), "worst": sash.max("delay")},
    )
    ours = q.at(given, asked, time="asked")
    theirs = duckdb.sql(
        """SELECT id, count(t) AS many, sum(delay) AS "sum", max(delay) AS worst
           FROM asked LEFT JOIN given ON given.origin = asked.origin
             AND t BETWEEN asked - INTERVAL 3 HOURS AND asked
           GROUP BY id ORDER BY id"""
    ).fetchall()
    right = [(i, n, None if total is None else int(total), top) for i, n, total, top in theirs]
    rows = ours.select(["id", "many", "sum", "worst"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == right


def test_other_windows_and_names_are_refused() -> None:
    given = pa.table({"t": [1], "k": ["a"], "x": [1]})
    asked = pa.table({"k": ["a"], "at": [1]})
    for window in (sash.tumbling(5), sash.rows(3), sash.trailing(5, exclude="row")):
        q = sash.Query(time="t", window=window, select={"n": sash.count()})
        with pytest.raises(ValueError, match="a question is about the time up to a moment"):
            q.at(given, asked, time="at")
    q = sash.Query(time="t", by=["k"], window=sash.trailing(5), select={"n": sash.count()})
    with pytest.raises(KeyError, match="no column 'when'"):
        q.at(given, asked, time="when")
    with pytest.raises(KeyError, match="column 'k', which is not there"):
        q.at(given, asked.drop(["k"]), time="at")
    with pytest.raises(KeyError, match="no column 'seen'"):
        q.at(given, asked, time="at", known="seen")
    with pytest.raises(ValueError, match="a column 'n' of their own"):
        q.at(given, asked.append_column("n", pa.array([1])), time="at")
    with pytest.raises(TypeError, match="the key 'k' of questions is no string"):
        q.at(given, pa.table({"k": [[1]], "at": [1]}), time="at")
    with pytest.raises(ValueError, match="is null"):
        q.at(given, pa.table({"k": ["a"], "at": pa.array([None], pa.int64())}), time="at")


def test_a_key_of_a_question_that_does_not_fit_is_no_events() -> None:
    q = sash.Query(time="t", by=["k"], window=sash.trailing(5), select={"n": sash.count()})
    for keys, asked, right in (
        (pa.array([1, 2], pa.int8()), pa.array([1, 300]), [1, 0]),
        (pa.array([1, 2]), pa.array([2.5, 2.0]), [0, 1]),
        (pa.nulls(2), pa.array(["a", None]), [0, 2]),
    ):
        events, questions = pa.table({"t": [1, 2], "k": keys}), pa.table({"k": asked, "a": [2, 2]})
        assert q.at(events, questions, time="a")["n"].to_pylist() == right
    text = pa.table({"k": ["x"], "a": [2]})
    with pytest.raises(TypeError, match="the key 'k' of questions is no int64"):
        q.at(pa.table({"t": [1], "k": [1]}), text, time="a")
