"""Sessions, and what is kept at ticks of the clock, over tables, against brute force."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.engine.test_run import OWN

import sash
from sash.testing.queries import answers, differences
from sash.testing.streams import STREAMS, stream

SELECT = {
    "rows": sash.count(),
    "top": sash.max("x"),
    "mean": sash.mean("x"),
    "newest": sash.last("i"),
    "all": sash.collect("n"),
}
SESSIONS = (
    sash.session("1 second"),
    sash.session("2 seconds"),
    sash.session("2 seconds", max_size="5 seconds"),
    sash.session("1 second", max_size="1 second"),
    sash.session("1 day"),
    sash.session(1),
    sash.window(keep=sash.rows(3), every="1.5 seconds"),
    sash.window(keep=sash.delta("i", 3), every="2 seconds"),
    sash.window(keep=sash.punctuated("b"), every="1 second"),
)


def check(events: Any, **given: Any) -> pa.Table:
    """Run a query over events, judge it, and return its result."""
    q = sash.Query(**{"time": "t", "select": SELECT, "by": ["k"]} | given)
    found = q.run(events)
    assert not differences(q, answers(q, events), found)
    return found


@pytest.mark.thin
@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("window", SESSIONS, ids=repr)
def test_on_every_stream(kind: str, window: Any) -> None:
    check(stream(kind, 60), window=window)


@pytest.mark.thin
@pytest.mark.parametrize("unit", ["us", "ns", "ms", "int"])
@pytest.mark.parametrize("longest", [None, "4 seconds"])
def test_gaps_in_a_column(unit: str, longest: Any) -> None:
    events = stream("disorder", 100)
    gaps = [None if i % 7 == 0 else (i % 5 - 1) * 700_000 for i in range(100)]
    column = pa.array(gaps, pa.int64())
    if unit != "int":
        column = column.cast(pa.duration("us")).cast(pa.duration(unit))
    events = events.append_column("gap", column)
    window = sash.session("gap", max_size=longest)
    found = check(events, window=window)
    assert sum(found["rows"].to_pylist()) < 100  # those without a gap are in no session
    check(events, window=window, tie="n", where=pc.field("i") > 0, by=[])


def test_keys_ties_conditions_and_empty_tables() -> None:
    events = stream("ties")
    check(events, window=SESSIONS[0], by=["f", "b"])
    check(events.take(list(range(119, -1, -1))), window=SESSIONS[2], tie="n")
    check(events, window=SESSIONS[1], where=pc.field("i") > 0)
    for window in SESSIONS:
        assert check(events.slice(0, 0), window=window).num_rows == 0
    assert check(events, window=SESSIONS[1], where=pc.field("i") > 2**50).num_rows == 0


def test_operators_of_the_users_own() -> None:
    select = {name: sash.aggregate(op, "i") for name, op in OWN.items()}
    check(stream("gaps", 60), select=select, window=SESSIONS[1])


@pytest.mark.plain
def test_the_oracle_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    events = stream("gaps", 60)
    q = sash.Query(time="t", by=["k"], window=SESSIONS[1], select=SELECT)
    found = q.run(events)
    monkeypatch.setenv("SASH_ORACLE", "1")
    again = q.run(events)
    assert again.schema == found.schema
    assert repr(again.drop(["mean"]).to_pylist()) == repr(found.drop(["mean"]).to_pylist())


@pytest.mark.plain
def test_an_answer_that_does_not_exist_names_its_window() -> None:
    events = {"t": [1, 2, 30], "k": ["b", "b", "a"], "x": [2**62, 2**62, 2**62]}
    q = sash.Query(time="t", by=["k"], window=sash.session(5), select={"all": sash.sum("x")})
    with pytest.raises(OverflowError, match=r"all: .* in the window from 1 to 7 of k = b"):
        q.run(events)


def test_what_is_not_supported_is_refused_when_it_is_set_up() -> None:
    changes = sash.Query(time="t", window=SESSIONS[0], select={"a": sash.count()}, emit="changes")
    with pytest.raises(ValueError, match="windows that are aligned to the clock have one"):
        changes.run({"t": [1]})


def test_the_longest_gaps_and_times() -> None:
    """Differences of times and gaps that are near the limit stay within int64."""
    far = 2**60 - 1
    q = sash.Query(time="t", window=sash.session(2**60), select={"n": sash.count()})
    table = pa.table({"t": [-far, 0, far]})
    assert not differences(q, answers(q, table), q.run(table))
    assert q.run(table)["n"].to_pylist() == [3]
    by_column = sash.Query(time="t", window=sash.session("g"), select={"n": sash.count()})
    gaps = pa.array([-9_223_372_036_855, 5, None], pa.duration("s"))
    assert by_column.run(pa.table({"t": [0, 1, 2], "g": gaps}))["n"].to_pylist() == [1]


def test_gaps_that_are_encoded() -> None:
    q = sash.Query(time="t", window=sash.session("g"), select={"n": sash.count()})
    gaps = pa.array([5, 5, 2]).dictionary_encode()
    assert q.run(pa.table({"t": [0, 4, 20], "g": gaps}))["n"].to_pylist() == [2, 1]
