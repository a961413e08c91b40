"""Windows that hold nothing, between those of a key that do: over tables and streams."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import sash
from sash.engine.stream import Stream
from sash.testing.fuzz.streams import SELECTS
from sash.testing.queries import answers, differences, replay, rows_of
from sash.testing.stored import STATES, open_stream
from sash.testing.streams import WINDOWS, batches, stream
from sash.windows import Aligned
from thinning import first_of

from .test_calendars import events
from .test_run import NUMBERS, OBJECTS, OTHERS
from .test_stream import check_late, feed, joined, starts_in_order

#: Windows with gaps among their events; idle for longer, and for less, than some gaps take.
FILLED: list[tuple[Aligned, str]] = [
    (sash.tumbling("5 seconds", empty="zero", idle="1 day"), "gaps"),
    (sash.tumbling("5 seconds", empty="zero", idle="9 seconds"), "gaps"),
    (sash.sliding("7 seconds", "3 seconds", empty="zero", idle="12 seconds"), "gaps"),
    (sash.sliding("10 seconds", "2 seconds", empty="zero", idle="1 day"), "keys come and go"),
    (sash.cumulate("6 seconds", "2 seconds", empty="zero", idle="20 seconds"), "gaps"),
    (sash.tumbling("2 seconds", empty="zero", idle="1 day"), "before 1970"),
]


@pytest.mark.parametrize(("window", "kind"), FILLED, ids=str)
def test_tables(window: Aligned, kind: str) -> None:
    table = stream(kind, 60)
    for select in SELECTS.values():
        for w in (window, replace(window, idle=None)):  # type: ignore[type-var]
            q = sash.Query(time="t", by=["k"], window=w, select=select)
            right = answers(q, table)
            assert not differences(q, right, q.run(table))


@pytest.mark.plain
@pytest.mark.parametrize("select", [NUMBERS, OTHERS, OBJECTS], ids=["numbers", "others", "objects"])
def test_every_operator_answers_for_no_rows(select: Any) -> None:
    window = sash.tumbling("5 seconds", empty="zero")
    table = stream("gaps", 40, plain=True)
    q = sash.Query(time="t", by=["k"], window=window, select=select)
    found = q.run(table)
    assert not differences(q, answers(q, table), found)
    without = sash.Query(time="t", by=["k"], window=sash.tumbling("5 seconds"), select=select)
    assert found.schema == without.run(table).schema
    assert found.num_rows > without.run(table).num_rows
    s = replace(q, window=replace(window, idle=10**12)).stream(lateness="1 day")
    given = [s.push(part) for part in batches(table, seed=1, most=9)]
    assert not differences(q, rows_of(found), joined([*given, s.close()]), ordered=False)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("window", "kind"), FILLED, ids=str)
def test_streams(window: Aligned, kind: str, state: str) -> None:
    for i, select in enumerate(SELECTS.values()):
        q = sash.Query(time="t", by=["k"], window=window, select=select)
        parts = list(batches(stream(kind, 60, seed=i), seed=i, most=20))
        lateness = ("0 seconds", "4 seconds", "1 day")[i]
        rows, late = replay(q, parts, lateness)
        s = open_stream(state, q, lateness=lateness)
        given = feed(s, parts)
        assert not differences(q, rows, joined(given), ordered=False)
        assert all(starts_in_order(q, table) for table in given)
        check_late(q, s, late)


@pytest.mark.plain
@pytest.mark.parametrize("state", STATES)
def test_any_cutting_ends_with_what_one_run_gives(state: str) -> None:
    table = stream("gaps", 40, seed=4)
    for window, _ in first_of(FILLED[1:5], 2):
        q = sash.Query(time="t", by=["k"], window=window, select=SELECTS["numbers"])
        run = rows_of(q.run(table))
        for most in (1, 7, 40):
            s = open_stream(state, q, lateness="10 seconds")
            given = feed(s, batches(table, seed=most, least=1, most=most), check=False)
            assert s.late.num_rows == 0
            assert not differences(q, run, joined(given), ordered=False)


def test_calendars_and_days_without_length() -> None:
    """Samoa had no 30 December 2011, so no window of that day is empty."""
    window = sash.tumbling("1 day", timezone="Pacific/Apia", empty="zero", idle="30 days")
    table = events("gaps", 30, "2011-12-25", 2)
    q = sash.Query(time="t", window=window, select=SELECTS["numbers"])
    found = q.run(table)
    assert not differences(q, answers(q, table), found)
    assert 0 in found["many"].to_pylist()
    assert all(row["window_start"] < row["window_end"] for row in rows_of(found))
    two = {"t": [1_325_030_400_000_000, 1_325_548_800_000_000], "i": [1, 2], "x": [1.0, 2.0]}
    assert q.run(two)["many"].to_pylist() == [1, 0, 0, 0, 0, 0, 1], "from the 27th to the 3rd"
    parts = list(batches(table, seed=3, most=9))
    for state in STATES:
        s = open_stream(state, q, lateness="400 days")
        assert not differences(q, rows_of(found), joined(feed(s, parts)), ordered=False)


@pytest.mark.plain
def test_a_gap_is_given_when_the_next_event_closes_it() -> None:
    window = sash.tumbling(10, empty="zero", idle=30)
    q = sash.Query(time="t", by=["k"], window=window, select={"n": sash.count()})
    s = q.stream()

    def pushed(**row: Any) -> list[tuple[str, int, int]]:
        found = s.push(row).to_pylist()
        return [(r["k"], r["window_start"], r["n"]) for r in found]

    assert pushed(t=5, k="a") == []
    assert pushed(t=25, k="b") == [("a", 0, 1)]
    assert s.state_size()["keys"] == 2, "a is remembered"
    assert pushed(t=35, k="a") == [("b", 20, 1)], "its window is still open"
    assert pushed(t=45, k="b") == [("a", 10, 0), ("a", 20, 0), ("a", 30, 1)]
    # 30 behind the end of its last window a is forgotten, and starts anew
    assert pushed(t=85, k="c") == [("b", 30, 0), ("b", 40, 1)]
    assert s.state_size()["keys"] == 2
    assert pushed(t=95, k="a") == [("c", 80, 1)]
    assert [tuple(r.values()) for r in s.close().to_pylist()] == [("a", 90, 100, 1)]
    assert s.state_size()["keys"] == 0


@pytest.mark.plain
def test_snapshots_remember_keys_that_hold_nothing() -> None:
    window = sash.tumbling(10, empty="zero", idle=50)
    q = sash.Query(time="t", by=["k"], window=window, select={"n": sash.count()})
    s = q.stream()
    s.push({"t": [5, 25], "k": ["a", "b"]})
    s = Stream.from_bytes(s.to_bytes(), q)
    s._check()
    s.push({"t": 36, "k": "a"})
    assert s.close()["n"].to_pylist() == [0, 0, 1]
    s = Stream.from_bytes(
        q.stream(schema=pa.schema({"t": pa.int64(), "k": pa.string()})).to_bytes(), q
    )
    s.push({"t": [5, 25], "k": ["a", "b"]})
    s.push({"t": 500, "k": "b"})
    assert s.state_size()["keys"] == 1, "a is forgotten"
    other = replace(q, window=sash.tumbling(10, empty="zero", idle=60))
    with pytest.raises(ValueError, match=r"window was .* idle='50 .* and is .* idle='60 "):
        Stream.from_bytes(s.to_bytes(), other)


@pytest.mark.plain
@pytest.mark.parametrize("state", STATES)
def test_the_state_levels_off(state: str) -> None:
    """Keys that come once are forgotten."""
    window = sash.tumbling("1 second", empty="zero", idle="10 seconds")
    q = sash.Query(time="t", by=["k"], window=window, select={"n": sash.count()})
    s = open_stream(state, q)
    sizes = []
    for i in range(40):
        at = [i * 1_000_000 + j * 1000 for j in range(20)]
        s.push({"t": at, "k": [i * 20 + j for j in range(20)]})
        s._check()
        sizes.append(s.state_size()["bytes"])
    assert max(sizes[30:]) < 1.5 * max(sizes[15:30])
    if state == "memory":
        assert s.state_size()["keys"] < 300


@pytest.mark.plain
def test_an_operator_that_has_no_answer_for_nothing() -> None:
    half = sash.operator(
        identity=0,
        lift=lambda x: x,
        combine=lambda a, b: a + b,
        lower=lambda a: 1.0 / a,
        name="half",
    )
    window = sash.tumbling(10, empty="zero", idle=100)
    q = sash.Query(time="t", window=window, select={"x": sash.aggregate(half, "x")})
    table = {"t": [5, 25], "x": [2, 4]}
    assert q.run(table)["x"].to_pylist() == [0.5, None, 0.25]


@pytest.mark.plain
def test_refusals() -> None:
    select = {"n": sash.count()}
    q = sash.Query(time="t", window=sash.tumbling(10, empty="zero"), select=select)
    with pytest.raises(ValueError, match="give idle='30 days', say"):
        q.stream()
    q = sash.Query(time="t", window=sash.tumbling(10, empty="zero", idle=20), select=select)
    with pytest.raises(ValueError, match="empty='zero' needs mode='final'"):
        q.stream(mode="live")
    with pytest.raises(ValueError, match="give one of them"):
        replace(q, emit="changes").run({"t": [1]})
    with pytest.raises(ValueError, match="empty is 'zero', for windows that hold nothing"):
        sash.tumbling(10, empty="null")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="give empty='zero' as well"):
        sash.tumbling(10, idle=20)
    with pytest.raises(ValueError, match="a window's idle must be more than 0 seconds"):
        sash.sliding(10, 5, empty="zero", idle=0)
    shown = "cumulate('1 day', '1 hour', empty='zero', idle='30 days')"
    assert repr(sash.cumulate("1 day", "1 hour", empty="zero", idle="30 days")) == shown


@pytest.mark.plain
def test_brute_force_knows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    window, kind = FILLED[2]
    q = sash.Query(time="t", by=["k"], window=window, select=SELECTS["numbers"])
    parts = list(batches(stream(kind, 40), seed=3, most=9))
    ours = q.stream(lateness="4 seconds")
    right = [*(ours.push(part) for part in parts), ours.close()]
    monkeypatch.setenv("SASH_ORACLE", "1")
    other = q.stream(lateness="4 seconds")
    found = [*(other.push(part) for part in parts), other.close()]
    for mine, theirs in zip(right, found, strict=True):
        assert not differences(q, rows_of(theirs), mine)


def test_windows_that_are_not_asked_for_do_not_come() -> None:
    assert all(window.empty is None for window in WINDOWS)
