"""Several queries, and several sizes in a row, with their state in a store: the rows of a stream in
memory and of brute force, over restarts, whatever the size of pages."""

from __future__ import annotations

from typing import Any

import pytest

import sash
from sash.slicing.edges import Union
from sash.state import layout
from sash.stores import Damaged
from sash.testing.fuzz.streams import SELECTS
from sash.testing.queries import rows_of
from sash.testing.streams import batches, stream
from shared_sets import drawn

from .test_sized import LIFETIME, SIZES, OracleStream, query, same, sized

FEW = dict([*SELECTS["numbers"].items()][:3])
COUNT = {"count": sash.count()}
QUERIES = {
    "sizes": query(sash.sliding("5 seconds", "2 seconds"), sized(FEW, **SIZES)),
    "days": query(sash.tumbling("7 seconds"), FEW),
    "fast": query(sash.sliding("9 seconds", "1 second"), COUNT, emit="all"),
    "gaps": query(sash.session("1 second"), COUNT),
    "each": query(sash.trailing("3 seconds"), COUNT),
    "all": query(sash.tumbling("3 seconds"), COUNT, by=[]),
}


def rows(table: Any) -> list[str]:
    return sorted(map(str, rows_of(table)))


@pytest.mark.plain
@pytest.mark.parametrize("mode", ["final", "live"])
def test_queries_over_restarts(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the queries are named in another order, and if records hold little."""
    monkeypatch.setattr(layout, "PAGE", 400)
    store = sash.stores.memory()
    given: dict[str, Any] = {"lateness": "2 seconds", "mode": mode}

    def opened(queries: dict[str, sash.Query]) -> Any:
        return sash.share(queries).stream(store=store, name="all", **given)

    stored, held = opened(QUERIES), sash.share(QUERIES).stream(**given)
    assert [len(member.names) for member in stored._members] == [3, 1, 1, 1]
    for i, part in enumerate(batches(stream("disorder", 100), most=15)):
        made, right = stored.push(part), held.push(part)
        for name in QUERIES:
            assert rows(made[name]) == rows(right[name]), name
        stored._check()
        if i % 4 == 3:
            stored.sync()
            stored.release()
            stored = opened(dict(reversed(QUERIES.items())))
    assert rows(stored.late) == rows(held.late)
    assert stored.counts == held.counts
    key = part["k"][-1].as_py()
    assert repr(stored.query("days", key)) == repr(held.query("days", key))
    made, right = stored.close(), held.close()
    for name in QUERIES:
        assert rows(made[name]) == rows(right[name]), name


@pytest.mark.plain
@pytest.mark.parametrize("mode", ["final", "live"])
def test_times_are_found_once_for_all_queries(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of edges that are too many to list: a step looks for times as often for many queries as for
    few."""
    asked: list[int] = []
    time = Union.time
    monkeypatch.setattr(Union, "time", lambda self, at: asked.append(1) or time(self, at))
    often = []
    for count in (3, 12):
        queries = {
            f"q{n}": query(sash.sliding(f"{2_000_003 + n} us", f"{1_000_003 + 7 * n} us"), COUNT)
            for n in range(count)
        }
        shared, given = sash.share(queries), {"lateness": "2 seconds", "mode": mode}
        stored = shared.stream(store=sash.stores.memory(), name="all", **given)
        held = shared.stream(**given)
        asked.clear()
        for part in batches(stream("disorder", 60), most=20):
            made, right = stored.push(part), held.push(part)
            for name in queries:
                assert rows(made[name]) == rows(right[name]), name
        often.append(len(asked))
        stored._check()
        made, right = stored.close(), held.close()
        for name in queries:
            assert rows(made[name]) == rows(right[name]), name
    assert often[0] == often[1] > 0


@pytest.mark.plain
@pytest.mark.parametrize("seed", range(3))
def test_generated_sets(seed: int) -> None:
    queries, store = drawn(seed), sash.stores.memory()

    def opened() -> Any:
        return sash.share(queries).stream(store=store, name="set", lateness="2 seconds")

    stored, held = opened(), sash.share(queries).stream(lateness="2 seconds")
    for i, part in enumerate(batches(stream("ties", 60, seed=seed), seed=seed, most=20)):
        made, right = stored.push(part), held.push(part)
        assert {n: rows(t) for n, t in made.items()} == {n: rows(t) for n, t in right.items()}
        if i % 3 == 1:
            stored.sync()
            stored.release()
            stored = opened()
    made, right = stored.close(), held.close()
    assert {n: rows(t) for n, t in made.items()} == {n: rows(t) for n, t in right.items()}


@pytest.mark.plain
@pytest.mark.parametrize("mode", ["final", "live", "changes"])
@pytest.mark.parametrize("select", ["numbers", "in order", "objects"])
def test_sizes(select: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "PAGE", 300)
    settings: dict[str, Any] = {"mode": "live" if mode == "live" else "final"}
    settings["lateness"] = "2 seconds"
    q = query(
        sash.sliding("5 seconds", "2 seconds"),
        sized(
            dict([*SELECTS[select].items()][:3]),
            **SIZES,
            **({"ever": LIFETIME} if select == "numbers" else {}),
        ),
        emit="changes" if mode == "changes" else "all",
    )
    for kind in ("disorder", "gaps"):
        stored = q.stream(store=sash.stores.memory(), name="sizes", **settings)
        by_force = OracleStream._for(q)(q, **settings)
        for part in batches(stream(kind, 50), most=12):
            same(q, stored.push(part), by_force.push(part))
            stored._check()
        assert repr(rows_of(stored.late)) == repr(rows_of(by_force.late))
        same(q, stored.close(), by_force.close())


@pytest.mark.plain
def test_a_record_that_vanishes_is_an_error_and_never_a_wrong_answer() -> None:
    """Also of the records by which a query finds all others of its own: without them its state
    would seem to be empty."""
    harmless = []
    parts = [*batches(stream("disorder", 60), most=20)]
    for number in range(100):
        store = sash.stores.memory()
        stored = sash.share(QUERIES).stream(store=store, name="all", lateness="2 seconds")
        for part in parts[:-1]:
            stored.push(part)
        stored.sync()
        records = [key for key, _ in store.scan(b"r")]
        if number == len(records):
            break
        store.delete_many([records[number]])
        try:
            stored.push(parts[-1])
            stored.close()
        except Damaged as error:
            assert "'all' in the store in memory" in str(error)  # noqa: PT017 -- or no error
        else:
            harmless.append(records[number])
    assert number >= 8
    assert harmless == []


@pytest.mark.once
def test_compiled_over_a_restart() -> None:
    """Slices are kept once for all sizes and queries, and no longer than the longest."""
    select = {"n": sash.count(), "long": sash.count().over(100)}
    queries = {
        "one": query(sash.sliding(20, 10), select),
        "two": query(sash.tumbling(30), {"n": sash.count()}),
    }
    store = sash.stores.memory()
    s = sash.share(queries).stream(store=store, name="s")
    found: dict[str, list[Any]] = {"one": [], "two": []}
    for t in range(0, 1000, 5):
        for name, table in s.push({"t": t, "k": "a"}).items():
            found[name] += table.to_pylist()
        if t == 500:
            s.sync()
            s.release()
            s = sash.share(queries).stream(store=store, name="s")
    assert s.state_size()["slices"] <= 2 * (100 // 10 + 3)
    right = sash.share(queries).stream()
    alone = right.push([{"t": t, "k": "a"} for t in range(0, 1000, 5)])
    assert {name: table.to_pylist() for name, table in alone.items()} == found


@pytest.mark.plain
def test_what_is_refused() -> None:
    q = query(sash.tumbling(10), COUNT)
    store = sash.stores.memory()
    s = sash.share({"q": q, "r": q}).stream(store=store, name="s")
    s.push([{"t": 3, "k": "a"}])
    for call, why in (
        (lambda: s.add("x", q), "cannot be given further queries"),
        (lambda: s.remove("q"), "cannot be deprived of a query"),
        (s.to_bytes, "cannot be written as bytes; it is durable by sync"),
    ):
        with pytest.raises(ValueError, match=why):
            call()
    s.sync()
    s.release()
    with pytest.raises(ValueError, match=r"is of other queries \(r is not there any more; z is"):
        sash.share({"q": q, "z": q}).stream(store=store, name="s")
    with pytest.raises(ValueError, match="mode='final', and cannot go on with mode='live'"):
        sash.share({"q": q, "r": q}).stream(store=store, name="s", mode="live")
    with pytest.raises(ValueError, match="early=True emits a window of every key"):
        sash.share({"q": q}).stream(store=store, name="t", mode="live", early=True)
    with pytest.raises(TypeError, match="a stream in a store has a name"):
        sash.share({"q": q}).stream(store=store)
    with pytest.raises(TypeError, match="no store to sync with"):
        sash.share({"q": q}).stream().sync()


def test_what_is_noted_is_synced() -> None:
    """Events by which nothing falls due are noted, and written when the stream is synced."""
    store = sash.stores.memory()
    window, select = sash.tumbling(10), {"n": sash.count()}
    q = sash.Query(time="t", by=["k"], window=window, select=select)

    def opened() -> Any:
        return sash.share({"q": q}).stream(store=store, name="x")

    s = opened()
    for t in (1, 2, 3):
        s.push([{"t": t, "k": "a"}])
    s.sync()
    s.release()
    s = opened()
    assert s.counts["q"]["rows"] == 3
    assert s.close()["q"]["n"].to_pylist() == [3]
