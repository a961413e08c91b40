"""Trailing windows of several sizes in one row, over tables and streams, against brute force."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.engine.test_event_streams import judge
from tests.engine.test_stored_events import judge as judge_stored

import sash
from sash.kernels.program import jit_enabled
from sash.tables import threads
from sash.testing.counting import counting
from sash.testing.queries import answers, differences, rows_of
from sash.testing.streams import STREAMS, batches, stream
from thinning import first_of

SECOND = 1_000_000
#: Sizes that are shorter and longer than the query's own, of aggregates that compile, that do not
#: commute, and on objects; some have all sizes, some one, one a size twice.
SELECT = {
    "rows": sash.count(),
    "short": sash.count().over("1 second"),
    "long": sash.count().over("20 seconds"),
    "ever": sash.count().over(sash.lifetime()),
    "ever again": sash.count().over(sash.lifetime()),
    "top": sash.max("x").over("20 seconds"),
    "newest": sash.last("i").over("2 seconds"),
    "oldest": sash.first("i").over(sash.lifetime()),
    "all": sash.collect("n"),
    "more": sash.collect("n").over("7 seconds"),
    "text": sash.max("s").over(sash.lifetime()),
}
LASTING = ("ever", "ever again", "oldest", "text")
#: The same without lifetimes.
FINITE = {name: chosen for name, chosen in SELECT.items() if name not in LASTING}

WINDOWS = (
    sash.trailing("5 seconds"),
    sash.trailing("5 seconds", closed="left"),
    sash.trailing("2 seconds", closed="right"),
    sash.trailing("2 seconds", closed="none", delay="1 second"),
    sash.trailing("3 seconds", exclude="group"),
    sash.trailing("5 seconds", exclude="row"),
    sash.trailing("5 seconds", exclude="ties", closed="right"),
    sash.lifetime(),
    sash.lifetime(exclude="row"),
    sash.lifetime(delay="3 seconds"),
)


def query(**given: Any) -> sash.Query:
    return sash.Query(**{"time": "t", "by": ["k"], "select": SELECT, "window": WINDOWS[0]} | given)


# Tables


@pytest.mark.parametrize(
    ("window", "kind"),
    [(window, kind) for i, window in enumerate(WINDOWS) for kind in list(STREAMS)[i % 3 :: 3]],
    ids=str,
)
@pytest.mark.plain
def test_a_table_is_answered_as_by_brute_force(window: sash.Trailing, kind: str) -> None:
    events = stream(kind, 60)
    q = query(window=window)
    assert not differences(q, answers(q, events), q.run(events))


@pytest.mark.parametrize("more", [{}, {"by": []}, {"by": ["k", "f"]}, {"tie": "i"}])
@pytest.mark.plain
def test_keys_and_ties(more: dict[str, Any]) -> None:
    events = stream("ties", 80, seed=3)
    q = query(where=pc.field("n") > 5, **more)
    assert not differences(q, answers(q, events), q.run(events))


def alone(q: sash.Query, events: Any) -> dict[str, Any]:
    """Each aggregate's column by a query of its own."""
    made = {}
    for name, chosen in q.select.items():
        window = q.window.of_length(q.sizes[name])  # type: ignore[attr-defined]
        one = {name: sash.Aggregate(chosen.operator, chosen.columns)}
        made[name] = replace(q, window=window, select=one).run(events)[name]
    return made


@pytest.mark.plain
def test_each_size_alone_gives_the_same_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a table is worked on in pieces, by threads."""
    monkeypatch.setattr("sash.tables.threads.PIECE", 64)
    events = stream("disorder", 1000, plain=True)
    found = query().run(events, threads=2)
    for name, column in alone(query(), events).items():
        assert found[name].equals(column), name


#: Windows of none to several hundred rows: less and more than a chunk of the kernel.
MANY = {
    f"{chosen} {size}": chosen.over(size)
    for size in ("0.4 seconds", "3 seconds", "20 seconds", "50 seconds", sash.lifetime())
    for chosen in (sash.sum("n"), sash.collect("n"))
}


@pytest.mark.parametrize("window", [w for w in WINDOWS if not w.excludes_some], ids=repr)
@pytest.mark.plain
def test_frames_of_any_length(window: sash.Trailing) -> None:
    events = stream("ties" if window.delay else "disorder", 300, seed=1, plain=True)
    q = query(window=window, by=[], select=MANY)
    found = q.run(events)
    for name, column in alone(q, events).items():
        assert found[name].equals(column), name


@pytest.mark.plain
def test_frames_of_many_chunks() -> None:
    """Each size has two stacks of chunks, which turn, and whose slots are used again."""
    events = stream("disorder", 1500, seed=1, plain=True)
    select = {f"over {size}": sash.sum("n").over(f"{size} seconds") for size in (100, 130)}
    q = query(by=[], select=select)
    found = q.run(events)
    for name, column in alone(q, events).items():
        assert found[name].equals(column), name


def _add(out: Any, a: Any, b: Any) -> None:
    out[0], out[1] = a[0] + b[0], b[1] if b[0] else a[1]


def _one(out: Any, x: Any) -> None:
    out[0], out[1] = 1, x


#: The number of rows, and the value of the last one, as a vector.
NEWEST = sash.operator(identity=np.array([0, -1]), lift=_one, combine=_add)


@pytest.mark.parametrize(
    "chosen",
    [sash.sum("n"), sash.aggregate(NEWEST, "n"), sash.collect_distinct("block")],
    ids=["numbers", "vectors", "objects"],
)
@pytest.mark.plain
def test_frames_from_which_many_chunks_leave_at_once(chosen: sash.Aggregate) -> None:
    times = [*range(2500), *range(4900, 4930), *range(9000, 9200)]
    select = {f"over {size}": chosen.over(size) for size in (1, 10, 4_900, 4_902, 9_050)}
    q = query(by=[], window=sash.trailing(5), select=select)
    rows = range(len(times))  # to collect all of them would take long
    events = {"t": times, "n": list(rows), "block": [-(i // 200) for i in rows]}
    found = q.run(events)
    for name, column in alone(q, events).items():
        assert found[name].equals(column), name


@pytest.mark.plain
def test_frames_that_leave_out_more_rows_than_they_hold() -> None:
    times = [*range(1500), 101_400, 101_450]
    select = {f"over {size}": sash.sum("n").over(size) for size in (5, 90, 200)}
    q = query(by=[], window=sash.trailing(5, delay=100_000), select=select)
    events = {"t": times, "n": list(range(len(times)))}
    found = q.run(events)
    for name, column in alone(q, events).items():
        assert found[name].equals(column), name


@pytest.mark.once
@pytest.mark.parametrize("window", [WINDOWS[0], WINDOWS[3]], ids=repr)
def test_compiled_frames_of_any_length(window: sash.Trailing) -> None:
    events = stream("gaps", 5000, seed=1, plain=True)
    sums = {name: chosen for name, chosen in MANY.items() if name.startswith("sum")}
    q = query(window=window, by=["b"], select=sums)
    found = q.run(events)
    for name, column in alone(q, events).items():
        assert found[name].equals(column), name


@pytest.mark.plain
def test_rows_are_lifted_once_for_all_sizes_and_combined_twice_for_each() -> None:
    counted = counting(sash.operators.max)
    top = sash.aggregate(counted.operator, "x")
    sizes = (100, 200, 300, 400, 500)
    select = {f"top {size}": top.over(size * SECOND) for size in sizes}
    query(by=[], window=sash.trailing("1 second"), select=select).run(
        stream("in order", 2000, plain=True)
    )
    assert counted.lifts == 2000
    assert counted.combines <= 2000 * (2.2 * len(sizes) + 2)


def combines(window: sash.Trailing, sizes: list[int], gaps: list[int], keys: int) -> float:
    """The calls of combine for each row, without two for each size, where rows come after these
    gaps."""
    counted = counting(sash.operators.max)
    top = sash.aggregate(counted.operator, "x")
    select = {f"top {size}": top.over(size) for size in sizes}
    rows = len(gaps)
    table = {"t": np.cumsum(gaps), "k": np.arange(rows) % keys, "x": np.arange(rows) % 7}
    query(window=window, select=select).run(table)
    assert counted.lifts <= rows
    return counted.combines / rows - 2 * len(sizes)


@pytest.mark.parametrize("window", [WINDOWS[0], sash.trailing(9, closed="none", delay=90)], ids=str)
@pytest.mark.plain
def test_combines_are_bounded_for_rows_that_come_in_any_way(window: sash.Trailing) -> None:
    """Two for each row and size, however long its frames are, and at most eight for each row,
    whatever the number of sizes.  A search changes gaps between rows, sizes and keys as long as
    that takes more."""
    chance = random.Random(1)

    def gaps() -> list[int]:
        made: list[int] = []
        while len(made) < 300:
            made += [chance.choice((0, 1, 1, 2, 9, 200))] * chance.choice((1, 2, 8, 60, 130))
        return made[:300]

    def sizes() -> list[int]:
        return chance.sample((1, 2, 5, 20, 60, 120, 128, 200, 256, 300), chance.choice((2, 3, 9)))

    best = (sizes(), gaps(), 1)
    most = combines(window, *best)
    for _ in first_of(range(200), 15):
        cut = chance.randrange(300)
        new = (
            chance.choice((best[0], sizes())),
            chance.choice((best[1], best[1][:cut] + gaps()[cut:])),
            chance.choice((best[2], 1, 3, 50)),
        )
        cost = combines(window, *new)
        if cost >= most:
            best, most = new, cost
    assert 2 <= most <= 8 + 3 * 9 / 128, best


@pytest.mark.plain
def test_an_answer_that_does_not_exist_names_the_aggregate_of_its_size() -> None:
    most = 2**63 - 1
    select = {"short": sash.sum("x").over(1), "long": sash.sum("x"), "n": sash.count().over(90)}
    q = query(by=[], window=sash.trailing(9), select=select)
    assert q.run({"t": [1, 20], "x": [most, most]})["n"].to_pylist() == [1, 2]
    with pytest.raises(OverflowError, match=r"^long: .* in the window of the event at 5"):
        q.run({"t": [1, 5], "x": [most, most]})


@pytest.mark.skipif(not jit_enabled(), reason="answers have a type, and so columns, when compiled")
def test_sizes_of_many_keys_in_order_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces, and with chunks that begin and end in a frame: each size as it is alone."""
    monkeypatch.setattr(threads, "PIECE", 2**10)
    source = np.random.default_rng(4)
    rows, sizes = 12_000, (1, 3, 40, 100, 400, 1_500, 20_000)
    table = pa.table(
        {
            "t": np.sort(source.integers(0, 20_000, rows)),
            "k": source.integers(0, 6, rows) ** 2 // 6,
            "x": pa.array(source.integers(-99, 99, rows), mask=source.random(rows) < 0.3),
        }
    )
    for make in (sash.max, sash.first):
        select = {f"y{n}": make("x").over(n) for n in sizes}
        q = query(window=sash.trailing(7), select=select)
        found = q.run(table, threads=2)
        for n in sizes:
            alone = query(window=sash.trailing(n), select={"y": make("x")}).run(table)
            assert found[f"y{n}"].equals(alone["y"]), n
        assert found["x"].equals(table["x"])


# Streams


def has_live(window: sash.Trailing) -> bool:
    return window.size is not None and not window.excludes_some


#: Windows of streams, the modes that they have, and a few kinds of streams for each.
CASES = [
    (window, mode, kind)
    for i, window in enumerate(WINDOWS)
    for mode in (("final", "live") if has_live(window) else ("final",))
    for kind in [*STREAMS, *STREAMS][i : i + 2]
]


@pytest.mark.parametrize(("window", "mode", "kind"), CASES, ids=str)
@pytest.mark.plain
def test_a_stream_is_answered_as_by_brute_force(window: Any, mode: Any, kind: str) -> None:
    schedules = list(enumerate(("0 seconds", "3 seconds", "1 day")))
    turn = CASES.index((window, mode, kind)) % 3
    for seed, lateness in first_of(schedules[turn:] + schedules[:turn], 1):
        q = query(window=window, select=(SELECT, FINITE)[seed % 2])
        judge(q, stream(kind, 40, seed=seed), lateness, seed, mode)


@pytest.mark.once
@pytest.mark.parametrize("mode", ["final", "live"])
def test_a_compiled_stream(mode: Any) -> None:
    judge(query(), stream("disorder", 60), "3 seconds", 1, mode)


@pytest.mark.parametrize(("window", "mode", "kind"), CASES[::2], ids=str)
@pytest.mark.plain
def test_a_stream_with_a_store_is_answered_as_by_brute_force(
    window: Any, mode: Any, kind: str
) -> None:
    turn = CASES.index((window, mode, kind)) // 2 % 2
    for seed, select in first_of(list(enumerate((SELECT, FINITE)))[:: 1 - 2 * turn], 1):
        cut = list(batches(stream(kind, 40, seed=seed), seed=seed, most=17))
        judge_stored(query(window=window, select=select), mode, cut, 2 * seed * SECOND)


@pytest.mark.parametrize("mode", ["final", "live"])
@pytest.mark.plain
def test_a_stream_goes_on_from_its_bytes(mode: Any) -> None:
    q = query()
    cut = list(batches(stream("disorder", 80, seed=2, plain=True), seed=1, most=15))
    whole, parted = (q.stream(lateness="3 seconds", mode=mode) for _ in range(2))
    for batch in cut:
        expected = whole.push(batch)
        parted = sash.Stream.from_bytes(parted.to_bytes(), q)
        assert rows_of(parted.push(batch)) == rows_of(expected)
    other = query(select=SELECT | {"short": sash.count().over("2 seconds")})
    with pytest.raises(ValueError, match="short: size was 1 second and is 2 seconds"):
        sash.Stream.from_bytes(parted.to_bytes(), other)


@pytest.mark.plain
def test_a_late_event_revises_the_rows_of_every_size_that_it_reaches() -> None:
    select = {"n": sash.count(), "long": sash.count().over(50), "ever": sash.count().over(200)}
    s = query(by=[], window=sash.trailing(5), select=select).stream(lateness=1000, mode="live")
    s.push({"t": [10, 100, 300]})
    found = s.push({"t": [60]}).to_pylist()
    assert [[row[c] for c in ("t", "n", "long", "ever", "revision")] for row in found] == [
        [100, 1, 2, 3, 1],
        [60, 1, 2, 2, 0],
    ]


# Costs


@pytest.mark.parametrize("mode", ["final", "live"])
@pytest.mark.plain
def test_an_event_is_inserted_once_and_kept_for_the_longest_size(mode: Any) -> None:
    def fed(*sizes: int) -> tuple[int, list[int]]:
        """How often events are lifted, and how many entries are kept after each batch."""
        counted = counting(sash.operators.max)
        top = sash.aggregate(counted.operator, "x")
        select = {f"top {size}": top.over(size * SECOND) for size in sizes}
        s = query(window=sash.trailing("1 second"), select=select).stream("2 seconds", mode=mode)
        kept = []
        for batch in batches(stream("disorder", 120, plain=True), seed=1):
            s.push(batch)
            kept.append(s.state_size()["slices"])
        return counted.lifts, kept

    assert fed(2, 3, 5, 7, 11) == fed(11)
    assert fed(11)[1] != fed(5)[1]


@pytest.mark.plain
def test_a_lifetime_adds_one_entry_for_each_key() -> None:
    sizes = {"own": sash.count(), "more": sash.count().over("5 seconds")}
    ever = {"ever": sash.count().over(sash.lifetime())}
    one, both = (query(select=select).stream("2 seconds") for select in (sizes, sizes | ever))
    for batch in batches(stream("in order", 200, plain=True), seed=1):
        one.push(batch)
        both.push(batch)
    size = both.state_size()
    assert size["slices"] <= one.state_size()["slices"] + size["keys"]
