"""Streams whose windows events make, against brute force and the run over a table: one suite for
trailing windows, windows that events drive, what is kept at ticks, and sessions."""

from __future__ import annotations

import copy
import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.engine.test_driven import PLAIN, POLICIES
from tests.engine.test_run import OWN

import sash
from sash.engine.failures import CombineFailed
from sash.testing.fuzz.streams import SELECTS
from sash.testing.queries import differences, replay, rows_of
from sash.testing.streams import DRIVEN, STREAMS, batches, stream
from thinning import FULL, STAGE, first_of

TRAILING = (
    sash.trailing("5 seconds"),
    sash.trailing("3 seconds", closed="left"),
    sash.trailing("2 seconds", closed="right"),
    sash.trailing("5 seconds", exclude="group"),
    sash.trailing("4 seconds", delay="2 seconds"),
    sash.trailing("1 day"),
    sash.trailing(1),
)
LIFETIMES = (
    sash.lifetime(),
    sash.lifetime(closed="left"),
    sash.lifetime(delay="3 seconds"),
)
EXCLUDING = (
    sash.trailing("5 seconds", exclude="row"),
    sash.trailing("5 seconds", exclude="ties", closed="right"),
    sash.lifetime(exclude="row"),
    sash.lifetime(exclude="ties"),
)
TICKS = (
    sash.window(keep=sash.rows(3), every="1.5 seconds"),
    sash.window(keep=sash.delta("i", 3), every="2 seconds"),
    sash.window(keep=sash.punctuated("b"), every="1 second"),
)
SESSIONS = (
    sash.session("1 second"),
    sash.session("2 seconds", max_size="5 seconds"),
    sash.session("1 day"),
    sash.session(1),
    sash.session("gap"),
    sash.session("gap", max_size="4 seconds"),
)
RULED = POLICIES if PLAIN else POLICIES[2:3]
#: One of each kind, for what does not go by the measure.
ONE_OF_EACH = (TRAILING[0], LIFETIMES[0], EXCLUDING[0], DRIVEN[0], DRIVEN[5], TICKS[2], SESSIONS[0])
WINDOWS = (*TRAILING, *LIFETIMES, *EXCLUDING, *DRIVEN, *RULED, *TICKS, *SESSIONS)
#: The same for each mode that it has.
MODES = [(window, "final") for window in ONE_OF_EACH]
MODES += [(window, "live") for window in (TRAILING[0], *SESSIONS[:2])]
LATENESS = ("0 seconds", "3 seconds", "1 day")

#: Compiled, and on objects; both with operators that do not commute.
SELECT = SELECTS["in order"] | SELECTS["objects"]


def query(**given: Any) -> sash.Query:
    return sash.Query(**{"time": "t", "by": ["k"], "select": SELECT} | given)


def events(kind: str, count: int = 50) -> pa.Table:
    """A stream with the columns that the windows measure."""
    made = stream(kind, count)
    small = [None if i % 11 == 5 else i * 7 % 5 for i in range(count)]
    gaps = [None if i % 7 == 0 else (i % 5 - 1) * 700_000 for i in range(count)]
    made = made.append_column("small", pa.array(small, pa.int64()))
    return made.append_column("gap", pa.array(gaps, pa.int64()))


def feed(s: Any, given: pa.Table, *, seed: int = 0, most: int = 17) -> list[Any]:
    """All rows that a stream emits."""
    made = []
    for batch in batches(given, seed=seed, most=most):
        made.append(s.push(batch))
        s._check()
    made.append(s.close())
    s._check()
    return [row for part in made if part.num_columns for row in rows_of(part)]


def name(q: sash.Query, row: Any) -> Any:
    """What a row is known by: its event, or its key and window; a session by its start."""
    if isinstance(q.window, sash.windows.Driven):
        return row["n"]
    end = None if isinstance(q.window, sash.windows.Session) else row["window_end"]
    return (*(repr(row[k]) for k in q.by), row["window_start"], end)


def last_ones(q: sash.Query, rows: list[Any], *, live: bool) -> list[Any]:
    """The rows that a stream ends with, in the order of their names."""
    last: dict[Any, Any] = {}
    for row in rows:
        before = last.get(name(q, row))
        assert row.get("revision", 0) == (before["revision"] + 1 if before else 0)
        assert live or before is None, "a row is emitted once"
        last[name(q, row)] = row
    return [last[key] for key in sorted(last) if not last[key].get("deleted")]


def judge(q: sash.Query, given: pa.Table, lateness: Any, seed: int, mode: Any = "final") -> None:
    """Feed a stream in batches; its last rows are those of the judge, and so are its late rows."""
    s = q.stream(lateness=lateness, mode=mode)
    rows = feed(s, given, seed=seed)
    expected, late = replay(q, batches(given, seed=seed, most=17), lateness)
    expected.sort(key=lambda row: name(q, row))
    assert not differences(q, expected, last_ones(q, rows, live=mode == "live"))
    assert [row["n"] for row in s.late.to_pylist()] == [row["n"] for row, _ in late]
    assert s.late["reason"].null_count == 0
    counts = s.counts
    assert (counts["late"], counts["emitted"]) == (len(late), len(rows))
    assert counts["rows"] == counts["late"] + counts["counted"] == given.num_rows


def schedules(window: Any) -> list[tuple[int, str, str]]:
    """A seed, a kind of stream and a lateness: others for each window and stage."""
    i = WINDOWS.index(window)
    seeds = [5 * i + 4 * j for j in range(len(LATENESS))]
    made = [(seed, list(STREAMS)[seed % len(STREAMS)], LATENESS[seed % 3]) for seed in seeds]
    return made if FULL else [made[(i + STAGE) % 3]]


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_final(window: Any) -> None:
    for seed, kind, lateness in schedules(window):
        judge(query(window=window), events(kind, 40), lateness, seed)


@pytest.mark.parametrize("window", [*TRAILING, *SESSIONS[:-1]], ids=repr)
def test_live(window: Any) -> None:
    for seed, kind, lateness in schedules(window):
        judge(query(window=window), events(kind, 40), lateness, seed, "live")


@pytest.mark.plain
@pytest.mark.parametrize("window", ONE_OF_EACH, ids=repr)
def test_on_every_stream(window: Any) -> None:
    for seed, kind in enumerate(STREAMS):
        judge(query(window=window), events(kind, 30), LATENESS[seed % 3], seed)


@pytest.mark.plain
@pytest.mark.parametrize("by", [[], ["f"], ["k", "b"]], ids=repr)
@pytest.mark.parametrize("window", ONE_OF_EACH, ids=repr)
def test_keys_and_conditions(by: list[str], window: Any) -> None:
    given = events("disorder", 50).filter(pc.field("i") > 0)
    judge(query(by=by, window=window), given, "4 seconds", 1)
    q = query(by=by, window=window, where=pc.field("i") > 0)
    found = feed(q.stream(lateness="4 seconds"), events("disorder", 50))
    expected, _ = replay(q, batches(events("disorder", 50), most=17), "4 seconds")
    expected.sort(key=lambda row: name(q, row))
    assert not differences(q, expected, last_ones(q, found, live=False))


@pytest.mark.plain
@pytest.mark.parametrize("tie", ["n", "s"])
@pytest.mark.parametrize("window", [*ONE_OF_EACH[:6], EXCLUDING[1], POLICIES[4]], ids=repr)
def test_a_tie_puts_events_in_order_behind_the_watermark(tie: str, window: Any) -> None:
    given = events("ties")
    judge(query(tie=tie, window=window), given.take(list(range(49, -1, -1))), "3 seconds", 1)


@pytest.mark.plain
@pytest.mark.parametrize("window", [*ONE_OF_EACH, TICKS[0], *SESSIONS[1:]], ids=repr)
def test_every_cutting_into_batches_gives_the_rows_of_the_table(window: Any) -> None:
    given = events("disorder", 30)
    q = query(window=window)
    whole = sorted(rows_of(q.run(given)), key=lambda row: name(q, row))
    for seed in first_of(range(2), 1):
        most = random.Random(seed).randrange(1, 60)
        found = feed(q.stream(lateness="1 day"), given, seed=seed, most=most)
        assert not differences(q, whole, last_ones(q, found, live=False))
    row_by_row = feed(q.stream(), given.sort_by("t"), most=1)
    assert not differences(q, whole, last_ones(q, row_by_row, live=False))


#: Partials that are Python objects, and can leave the process.
CODED = sash.operator(
    identity="",
    lift=lambda x: f"{x},",
    combine=lambda a, b: a + b,
    encode=lambda a: a.encode(),
    decode=lambda b: b.decode(),
    name="coded",
)


@pytest.mark.parametrize(
    ("window", "mode"), [*MODES, (DRIVEN[16], "final"), (RULED[0], "final")], ids=repr
)
def test_a_snapshot_and_a_copy_in_the_middle(window: Any, mode: Any) -> None:
    given = events("gaps" if window in SESSIONS else "disorder", 40)
    for select in (SELECTS["in order"], {"text": sash.aggregate(CODED, "i")}):
        q = query(window=window, select=select)
        s, t = (q.stream(lateness="2 seconds", mode=mode) for _ in range(2))
        for batch in batches(given, seed=3, most=9):
            wanted = s.push(batch)
            t = sash.Stream.from_bytes(t.to_bytes(), q)
            t._check()
            copied = copy.deepcopy(t)
            assert repr(t.push(batch).to_pylist()) == repr(wanted.to_pylist())
            assert repr(copied.push(batch).to_pylist()) == repr(wanted.to_pylist())
        assert repr(t.close().to_pylist()) == repr(s.close().to_pylist())


@pytest.mark.parametrize("window", ONE_OF_EACH if PLAIN else (TRAILING[0], SESSIONS[0]), ids=repr)
def test_operators_of_the_users_own(window: Any) -> None:
    select = {name: sash.aggregate(op, "i") for name, op in OWN.items()}
    judge(query(select=select, window=window), events("gaps", 60), "3 seconds", 0)


@pytest.mark.plain
@pytest.mark.parametrize(("window", "mode"), [*MODES, (TICKS[0], "final")], ids=repr)
def test_the_oracle_switch(window: Any, mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    q = query(window=window, select=SELECT | {"most": sash.max("x"), "least": sash.min("x")})
    s = q.stream(lateness="2 seconds", mode=mode)
    monkeypatch.setenv("SASH_ORACLE", "1")
    oracle = q.stream(lateness="2 seconds", mode=mode)
    monkeypatch.delenv("SASH_ORACLE")
    with pytest.raises(ValueError, match="under SASH_ORACLE=1 has no bytes"):
        oracle.to_bytes()
    for batch in batches(events("disorder", 60), most=17):
        one, other = s.push(batch), oracle.push(batch)
        assert one.schema == other.schema
        assert repr(one.to_pylist()) == repr(other.to_pylist())
    assert repr(s.close().to_pylist()) == repr(oracle.close().to_pylist())
    assert s.counts == oracle.counts


@pytest.mark.plain
@pytest.mark.parametrize("oracle", ["", "1"])
@pytest.mark.parametrize("how", ["push", "advance", "close"])
@pytest.mark.parametrize("window", [sash.trailing(5), sash.rows(2), TICKS[0], sash.session(5)])
def test_an_answer_that_does_not_exist_is_null_with_a_warning(
    oracle: str, how: str, window: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    select = {"sum": sash.sum("x"), "rows": sash.count()}
    monkeypatch.setenv("SASH_ORACLE", oracle)
    s = query(by=[], window=window, select=select).stream()
    second = 0 if window == TICKS[0] else 1
    s.push({"t": [1, 1 + second], "x": [2**62, 2**62]})
    later = 3_000_000
    given = {"push": [{"t": [later], "x": [0]}], "advance": [later], "close": []}
    with pytest.warns(RuntimeWarning, match="1 window") as warned:
        found = getattr(s, how)(*given[how])
    assert (found["sum"].to_pylist()[-1], found["rows"].to_pylist()[-1]) == (None, 2)
    assert [w.filename for w in warned] == [__file__]


LEVEL = {
    sash.trailing(100): 3 * 111,
    sash.trailing(100, exclude="row"): 3 * 111,
    sash.lifetime(): 3,
    sash.lifetime(delay=20): 3 + 31,
    sash.lifetime(exclude="ties"): 3,
    sash.rows(7): 3 * 7,
    sash.delta("n", 9): 30,
    sash.punctuated("b"): 3 * 10,
    sash.window(keep=100, every=sash.rows(7)): 3 * 111,
    sash.window(keep=sash.rows(7), every=100): 3 * 7,
    sash.policies.at_most(7): 3 * 7,
    sash.session(100): 3 + 111,
}


def tick(i: int, keys: list[str]) -> dict[str, Any]:
    """A batch of 50 microseconds."""
    many = len(keys)
    numbers = range(50 * i, 50 * i + many)
    marks = [n % 11 == 0 for n in numbers]
    return {"t": numbers, "n": numbers, "k": keys, "x": [1.0] * many, "b": marks}


#: In live mode, what a late event may change stays as well.
LIVE = {sash.trailing(100): 111, sash.session(100): 3 + 111, sash.session(3): 20}


@pytest.mark.plain
@pytest.mark.parametrize("mode", ["final", "live"])
@pytest.mark.parametrize("window", LEVEL | LIVE, ids=repr)
def test_state_levels_off(window: Any, mode: Any) -> None:
    level = (LIVE if mode == "live" else LEVEL | {sash.session(3): 20}).get(window)
    if level is None:
        with pytest.raises(ValueError, match="mode='final'"):
            query(window=window).stream(mode="live")
        return
    s = query(window=window, select=SELECTS["in order"]).stream(lateness=10, mode=mode)
    sizes = []
    for i in range(14):
        s.push(tick(i, [str(j % 3) for j in range(50)]))
        sizes.append(s.state_size())
    s._check()
    assert max(size["slices"] for size in sizes) <= level
    assert sizes[-1]["bytes"] <= 2 * sizes[5]["bytes"]


@pytest.mark.plain
@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize(
    "window",
    [
        sash.trailing(100),
        sash.trailing(100, exclude="row"),
        sash.window(keep=100, every=sash.punctuated("b")),
        sash.window(keep=100, every=sash.rows(1)),
        sash.session(100),
    ],
    ids=repr,
)
def test_keys_leave(window: Any, coded: bool) -> None:
    """Also keys of a dictionary that has others."""
    s = query(window=window, select=SELECTS["in order"]).stream()
    every = pa.array([f"key {i}" for i in range(40)])
    for i in range(40):
        given = pa.table(tick(20 * i, [f"key {i}"]))
        if coded:
            keys = pa.DictionaryArray.from_arrays(pa.array([i]), every)
            given = given.set_column(2, "k", keys)
        s.push(given)
        s._check()
        assert s.state_size()["keys"] <= 2


@pytest.mark.plain
@pytest.mark.parametrize(
    ("window", "given", "message"),
    [
        (EXCLUDING[0], {"mode": "live"}, "exclude='row' or 'ties' would take it apart; use mode="),
        (sash.lifetime(), {"mode": "live"}, "use mode='final', or sash.trailing"),
        (
            DRIVEN[0],
            {"mode": "live"},
            "so a late one would change all later rows; use mode='final'",
        ),
        (TICKS[0], {"mode": "live"}, "so a late one would change all later rows; use mode='final'"),
        (SESSIONS[-1], {"mode": "live"}, "two sessions of a key may start at one time"),
        (TRAILING[0], {"mode": "live", "early": True}, "early=True is for windows that end by"),
    ],
    ids=repr,
)
def test_what_is_not_supported_is_refused_when_it_is_set_up(
    window: Any, given: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        query(window=window).stream(**given)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("window", "mode"),
    [(TRAILING[0], "live"), (SESSIONS[0], "final"), (sash.tumbling(5), "final")],
    ids=repr,
)
def test_a_tie_that_streams_cannot_honour_is_refused(window: Any, mode: Any) -> None:
    """Before types are known: whether the order of events matters, the aggregates say."""
    with pytest.raises(ValueError, match="unless events drive the window in final mode"):
        query(tie="n", window=window).stream(mode=mode)
    without = query(tie="n", window=window, select={"most": sash.max("x")})
    assert without.stream(mode=mode).push(events("ties")).num_columns


@pytest.mark.plain
@pytest.mark.parametrize("window", ONE_OF_EACH, ids=repr)
def test_there_is_no_range_to_ask_for(window: Any) -> None:
    with pytest.raises(ValueError, match=r"answers (for its events|as of a time)"):
        query(window=window).stream().query("a")
    if not isinstance(window, sash.windows.Trailing) or window.excludes_some:
        with pytest.raises(ValueError, match=r"must be sash\.trailing\(…\) or .* without exclude"):
            query(window=window).stream().query("a", at=3)


def visited(s: Any) -> int:
    """How many keys the steps of a stream have looked at."""
    kinds = ("_trails", "_kept", "_sessions")
    return int(next(getattr(s, kind) for kind in kinds if hasattr(s, kind)).visited)


@pytest.mark.plain
@pytest.mark.parametrize("window", [*LEVEL, SESSIONS[-1]], ids=repr)
def test_a_step_goes_by_the_keys_that_it_touches(window: Any) -> None:
    """A thousand keys are there, or come and go, and ten are touched."""
    s = query(window=window, select={"most": sash.max("n")}).stream()

    def push(at: int, keys: range) -> None:
        numbers = range(at, at + len(keys))
        marks, gaps = [False] * len(keys), [10**9] * len(keys)
        given = {"t": [at] * len(keys), "n": numbers, "k": [str(k) for k in keys]}
        s.push({**given, "x": numbers, "b": marks, "gap": gaps})

    push(0, range(1000))
    push(1, range(10))
    before = visited(s)
    for i in range(5):
        push(2 + i, range(100 * i, 100 * i + 10))
    assert visited(s) - before <= 60
    push(1000, range(10))  # whatever is due of the others is done once
    push(1001, range(10))
    assert visited(s) - before <= 3000
    before = visited(s)
    push(1002, range(10))
    assert visited(s) - before <= 20


def _joined(a: str, b: str) -> str:
    if "7" in a + b and a and b:
        raise ValueError("no sevens")
    return a + b


@pytest.mark.plain
@pytest.mark.parametrize(("window", "mode"), [*MODES, (TICKS[0], "final")], ids=repr)
def test_errors_of_an_operator(window: Any, mode: Any) -> None:
    """A row that `lift` refuses is late; a `combine` that raises stops the stream."""
    odd = sash.operator(identity="", lift=lambda x: f"{10 // x}{x}", combine=_joined, name="odd")
    q = query(by=[], window=window, select={"text": sash.aggregate(odd, "v")})
    s = q.stream(lateness=5, mode=mode)
    marks = {"b": [False, False], "i": [1, 1]}
    s.push({"t": [1, 2], "v": [0, 2], **marks})
    assert "zero" in s.take_late()["reason"][0].as_py()
    batches = [{"t": [at, at + 1], "v": [7, 2], **marks} for at in (3, 9_000_000)]
    with pytest.raises(
        CombineFailed,
        match=r"combine of text raised.*no sevens.*make a new one, or restore one from",
    ):
        [s.push(batch) for batch in batches]
    with pytest.raises(RuntimeError, match="CombineFailed stopped this stream"):
        s.push({"t": [1], "v": [1], "b": [True], "i": [1]})


@pytest.mark.plain
@pytest.mark.parametrize(
    ("odd", "kind"),
    [(2**62, pa.timestamp("s")), (2**61, pa.timestamp("ms")), (2**30, pa.date32())],
    ids=str,
)
@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "in a store"])
@pytest.mark.parametrize("window", [TRAILING[0], sash.rows(3), TICKS[0], SESSIONS[0]], ids=repr)
def test_a_value_that_cannot_be_read_is_late(
    window: Any, stored: bool, odd: int, kind: pa.DataType
) -> None:
    """A time or a date beyond all others is refused when it comes, and the stream goes on."""
    own = {"store": sash.stores.memory(), "name": "s"} if stored else {}
    q = query(window=window, select={"m": sash.collect("v")})
    s = q.stream(lateness=10, **own)

    def batch(times: list[int], values: list[int]) -> pa.Table:
        held = pa.array(values, pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)
        return pa.table({"t": times, "k": [1] * len(times), "v": held})

    s.push(batch([1, 2], [1, odd]))
    for at in (50, 51, 9_000_000):
        s.push(batch([at], [2]))
    assert s.counts["counted"] == 4
    assert s.late["t"].to_pylist() == [2]
    emitted = s.counts["emitted"] + s.close().num_rows
    assert emitted > 0
