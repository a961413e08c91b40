"""Streams of sessions, against brute force and the run over a table."""

from __future__ import annotations

import copy
import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.engine.test_run import OWN

import sash
from sash.testing.queries import differences, replay, rows_of
from sash.testing.streams import STREAMS, batches, stream

SELECT = {
    "rows": sash.count(),
    "top": sash.max("x"),
    "newest": sash.last("i"),
    "all": sash.collect("n"),
}
SESSIONS = (
    sash.session("1 second"),
    sash.session("2 seconds", max_size="5 seconds"),
    sash.session("1 day"),
    sash.session(1),
    sash.session("gap"),
)
LATENESS = ("0 seconds", "3 seconds", "1 day")


def query(**given: Any) -> sash.Query:
    return sash.Query(**{"time": "t", "by": ["k"], "window": SESSIONS[0], "select": SELECT} | given)


def with_gaps(events: pa.Table) -> pa.Table:
    gaps = [None if i % 7 == 0 else (i % 5 - 1) * 700_000 for i in range(events.num_rows)]
    return events.append_column("gap", pa.array(gaps, pa.int64()))


def feed(s: Any, events: pa.Table, *, seed: int = 0, most: int = 17) -> list[Any]:
    """All rows that a stream emits."""
    made = [s.push(batch) for batch in batches(events, seed=seed, most=most)]
    return [row for part in [*made, s.close()] if part.num_columns for row in rows_of(part)]


def judge(q: sash.Query, events: pa.Table, lateness: Any, seed: int) -> None:
    """Feed a stream in batches: its rows are those of the judge, and so are its late rows."""
    s = q.stream(lateness=lateness)
    rows = feed(s, events, seed=seed)
    expected, late = replay(q, batches(events, seed=seed, most=17), lateness)
    assert not differences(q, expected, rows, ordered=False)
    missed = [row["n"] for row in s.late.to_pylist()]
    assert sorted(missed) == sorted(row["n"] for row, _ in late)
    assert (s.counts["late"], s.counts["emitted"]) == (len(late), len(rows))
    assert s.state_size()["slices"] == 0


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("window", SESSIONS, ids=repr)
def test_on_every_stream(kind: str, window: Any) -> None:
    seed = list(STREAMS).index(kind) + SESSIONS.index(window)
    judge(query(window=window), with_gaps(stream(kind, 50)), LATENESS[seed % 3], seed)


@pytest.mark.parametrize("by", [[], ["f"], ["k", "b"]], ids=repr)
def test_keys_and_conditions(by: list[str]) -> None:
    events = stream("disorder")
    judge(query(by=by), events, "4 seconds", 1)
    judge(query(by=by, where=pc.field("i") > 0), events, "4 seconds", 2)


def test_every_cutting_into_batches_gives_the_rows_of_the_table() -> None:
    events = with_gaps(stream("disorder", 80))
    for window in SESSIONS:
        q = query(window=window)
        whole = rows_of(q.run(events))
        for seed in range(3):
            most = random.Random(seed).randrange(1, 60)
            found = feed(q.stream(lateness="1 day"), events, seed=seed, most=most)
            assert not differences(q, whole, found, ordered=False)


def test_a_session_is_emitted_when_it_has_ended_before_the_watermark() -> None:
    q = query(by=[], window=sash.session(5), select={"rows": sash.count()})
    s = q.stream(lateness=2)
    assert s.push({"t": [1, 4]}).num_rows == 0
    assert s.push({"t": [11]}).num_rows == 0  # the watermark is 9: an event could join them there
    assert s.push({"t": [12]}).to_pylist() == [{"window_start": 1, "window_end": 9, "rows": 2}]
    s.push({"t": [9]})
    assert s.late.to_pylist()[0]["missed_start"] == 9
    assert s.close().to_pylist() == [{"window_start": 11, "window_end": 17, "rows": 2}]


@pytest.mark.parametrize("oracle", ["", "1"])
def test_an_event_joins_a_session_that_is_open(
    oracle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SASH_ORACLE", oracle)
    select = {"rows": sash.count(), "all": sash.collect("x")}
    s = query(window=sash.session(30), select=select).stream()
    s.push([{"t": 0, "k": "a", "x": 0}, {"t": 20, "k": "a", "x": 20}])
    s.push({"t": 19, "k": "a", "x": 19})  # [0, 50) is open
    assert s.late.num_rows == 0
    assert s.push({"t": 81, "k": "b", "x": 81})["all"].to_pylist() == [[0, 19, 20]]
    s.push([{"t": t, "k": "a", "x": t} for t in (50, 51)])  # alone, they end at 80 and 81
    assert s.take_late()["reason"].to_pylist() == ["its time and gap end before the watermark"]
    assert s.push({"t": 82, "k": "b", "x": 82})["all"].to_pylist() == [[51]]
    s.push([{"t": 52, "k": "a", "x": 52}, {"t": 52, "k": "b", "x": 52}])
    assert s.take_late()["reason"].to_pylist() == ["the session that it would be in is emitted"]
    assert s.close()["all"].to_pylist() == [[52, 81, 82]]


@pytest.mark.parametrize("kind", STREAMS)
def test_where_all_operators_commute(kind: str) -> None:
    seed = list(STREAMS).index(kind)
    select = {"rows": sash.count(), "sum": sash.sum("i")}
    for window in SESSIONS[:2]:
        judge(query(window=window, select=select), stream(kind, 50), LATENESS[seed % 2], seed)


def test_an_event_that_would_join_an_emitted_session_is_late() -> None:
    s = query(by=[], window=sash.session(30), select={"rows": sash.count()}).stream()
    s.push({"t": [0, 31]})
    s.push({"t": [30, 10, 1]})
    assert set(s.take_late()["reason"].to_pylist()) == {
        "the session that it would be in is emitted"
    }
    assert s.close()["rows"].to_pylist() == [1]


def test_what_is_kept_is_a_partial_a_session_and_what_is_within_the_lateness() -> None:
    s = query(window=sash.session(100), select={"rows": sash.count()}).stream(lateness=10)
    for i in range(40):
        s.push({"t": range(50 * i, 50 * i + 50), "k": [str(j % 3) for j in range(50)]})
        assert s.state_size()["slices"] <= 3 + 11
    assert s.close()["rows"].to_pylist() == [680, 680, 640]


def test_a_snapshot_in_the_middle() -> None:
    events = stream("gaps", 90)
    typed = {name: SELECT[name] for name in ("rows", "top", "newest")}
    own = {"rows": sash.count(), "text": sash.aggregate(CODED, "i")}
    for select in (typed, own):
        q = query(window=SESSIONS[int(select is own)], select=select)
        late = "0 seconds" if select is typed else "6 seconds"
        s, t = q.stream(lateness=late), q.stream(lateness=late)
        for batch in batches(events, seed=3, most=9):
            wanted = s.push(batch)
            t = sash.Stream.from_bytes(t.to_bytes(), q)
            copied = copy.deepcopy(t)
            assert repr(t.push(batch).to_pylist()) == repr(wanted.to_pylist())
            assert repr(copied.push(batch).to_pylist()) == repr(wanted.to_pylist())
        assert repr(t.close().to_pylist()) == repr(s.close().to_pylist())


#: Partials that are Python objects, and can leave the process.
CODED = sash.operator(
    identity="",
    lift=lambda x: f"{x},",
    combine=lambda a, b: a + b,
    encode=lambda a: a.encode(),
    decode=lambda b: b.decode(),
    name="coded",
)


def test_operators_of_the_users_own() -> None:
    select = {name: sash.aggregate(op, "i") for name, op in OWN.items()}
    judge(query(select=select), stream("gaps", 60), "3 seconds", 0)


@pytest.mark.parametrize("oracle", ["", "1"])
@pytest.mark.parametrize("how", ["push", "advance", "close"])
def test_an_answer_that_does_not_exist_is_null_with_a_warning(
    oracle: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    q = query(by=[], window=sash.session(5), select={"sum": sash.sum("x"), "rows": sash.count()})
    monkeypatch.setenv("SASH_ORACLE", oracle)
    s = q.stream()
    s.push({"t": [1, 2], "x": [2**62, 2**62]})
    given = {"push": [{"t": [30], "x": [0]}], "advance": [30], "close": []}
    with pytest.warns(RuntimeWarning, match="1 window") as warned:
        found = getattr(s, how)(*given[how])
    assert (found["sum"].to_pylist(), found["rows"].to_pylist()) == ([None], [2])
    assert [w.filename for w in warned] == [__file__]


@pytest.mark.parametrize(
    ("window", "given", "message"),
    [
        (SESSIONS[0], {"mode": "live"}, "sessions that merge would have to be withdrawn"),
        (sash.session("gap", max_size=9), {}, "a session that may end between them would take"),
    ],
    ids=repr,
)
def test_what_is_not_supported_is_refused_when_it_is_set_up(
    window: Any, given: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        query(window=window).stream(**given)


def test_the_oracle_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    events = stream("gaps", 60)
    select = {name: SELECT[name] for name in ("rows", "newest", "all")}
    s = query(select=select).stream(lateness="2 seconds")
    monkeypatch.setenv("SASH_ORACLE", "1")
    oracle = query(select=select).stream(lateness="2 seconds")
    monkeypatch.delenv("SASH_ORACLE")
    with pytest.raises(ValueError, match="under SASH_ORACLE=1 has no bytes"):
        oracle.to_bytes()
    for batch in batches(events, most=17):
        one, other = s.push(batch), oracle.push(batch)
        assert one == other
    assert s.close() == oracle.close()
