"""Streams of sessions; `test_event_streams` judges their rows."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.test_event_streams import LATENESS, SESSIONS, events, judge

import sash
from sash.testing.fuzz.streams import SELECTS
from sash.testing.stored import STATES, open_stream
from sash.testing.streams import STREAMS


def query(**given: Any) -> sash.Query:
    return sash.Query(**{"time": "t", "by": ["k"]} | given)


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


@pytest.mark.plain
@pytest.mark.parametrize("window", SESSIONS[:2], ids=repr)
def test_where_all_operators_commute(window: Any) -> None:
    for seed, kind in enumerate(STREAMS):
        q = query(window=window, select=SELECTS["numbers"])
        judge(q, events(kind, 30), LATENESS[seed % 2], seed)


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


@pytest.mark.plain
def test_a_session_may_end_between_events_of_one_time() -> None:
    """Two sessions have the same start, and may have the same end."""
    q = query(by=[], window=sash.session("gap", max_size=3), select={"all": sash.collect("n")})
    given = {"t": [1, 1, 1, 2], "gap": [1, 9, 9, 1], "n": [0, 1, 2, 3]}
    right = q.run(given).to_pylist()
    assert [row["all"] for row in right] == [[0], [1], [2], [3]]
    s = q.stream()
    s.push({name: column[:2] for name, column in given.items()})
    s.push({name: column[2:] for name, column in given.items()})
    assert s.close().to_pylist() == right


@pytest.mark.plain
@pytest.mark.parametrize("state", STATES)
def test_a_session_is_emitted_before_an_earlier_one_that_ends_later(state: str) -> None:
    """The first event reaches farther than the greatest size, and so is alone."""
    q = query(window=sash.session("gap", max_size=10), select={"all": sash.collect("n")})
    s = open_stream(state, q)
    given = {"t": [1, 3, 5], "k": ["a"] * 3, "gap": [90, 4, 4], "n": [0, 1, 2]}
    assert s.push(given).num_rows == 0
    found = s.push({"t": [20], "k": ["b"], "gap": [5], "n": [3]})  # of another key
    s._check()
    assert found["all"].to_pylist() == [[1, 2]]
    assert s.close()["all"].to_pylist() == [[0], [3]]


@pytest.mark.plain
def test_a_live_session_grows_and_is_withdrawn() -> None:
    q = query(window=sash.session(5), select={"all": sash.collect("x")})

    def push(*events: tuple[int, str]) -> list[Any]:
        found = s.push([{"t": t, "k": "a", "x": x} for t, x in events]).to_pylist()
        names = ("window_start", "window_end", "all", "revision", "deleted")
        return [tuple(row[name] for name in names) for row in found]

    s = q.stream(lateness=20, mode="live")
    assert push((10, "a"), (30, "b")) == [(10, 15, ["a"], 0, False), (30, 35, ["b"], 0, False)]
    assert push((14, "c")) == [(10, 19, ["a", "c"], 1, False)]
    # an event before it: its start is another
    assert push((27, "d")) == [(27, 35, ["d", "b"], 0, False), (30, 35, None, 1, True)]
    assert push((22, "e")) == [(22, 35, ["e", "d", "b"], 0, False), (27, 35, None, 1, True)]
    # the gap between two is closed
    assert push((18, "f")) == [
        (10, 35, ["a", "c", "f", "e", "d", "b"], 2, False),
        (22, 35, None, 1, True),
    ]
    assert push() == []
    assert push((70, "g")) == [(70, 75, ["g"], 0, False)]
    assert push((34, "h")) == []
    assert s.take_late()["reason"].to_pylist() == ["its time and gap end before the watermark"]
    assert s.close().num_rows == 0
