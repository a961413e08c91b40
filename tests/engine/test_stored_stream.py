"""Streams whose state is in a store: the rows of brute force over every store, with the stream
opened again between batches; what a restart goes on from; and what is refused."""

from __future__ import annotations

import copy
import random
from typing import Any

import pyarrow as pa
import pytest

import sash
from sash.engine.stored import open_stream
from sash.engine.stream import Stream
from sash.state import layout
from sash.state.keyed import KeyedTables
from sash.stores import Claimed, Damaged, Store, StoreError
from sash.stores.journal import Journal
from sash.testing.fuzz.streams import SELECTS
from sash.testing.queries import differences, replay, rows_of
from sash.testing.streams import WINDOWS, batches, stream
from sash.windows import Driven
from servers import Home

pytestmark = pytest.mark.plain  # about Python code; the kernels are those of other states

ALIGNED = [
    (window, mode, emit)
    for window, mode, emit in (
        (WINDOWS[1], "final", "all"),
        (WINDOWS[2], "live", "all"),
        (WINDOWS[3], "final", "changes"),
        (sash.tumbling("1 day", timezone="Europe/Berlin"), "final", "all"),
    )
]
EVENTS = [
    (sash.trailing("5 seconds"), "final", "all"),
    (sash.trailing("4 seconds", delay="2 seconds"), "live", "all"),
    (sash.lifetime(), "final", "all"),
    (sash.session("1 second"), "final", "all"),
    (sash.session("2 seconds", max_size="5 seconds"), "live", "all"),
    (sash.rows(4, every=2), "final", "all"),
    (sash.policies.at_most(3), "final", "all"),
    (sash.window(keep=sash.rows(3), every="2 seconds"), "final", "all"),
]


def query(window: Any, emit: Any = "all", select: str = "numbers") -> sash.Query:
    return sash.Query(time="t", by=["k"], window=window, select=SELECTS[select], emit=emit)


def last_rows(q: sash.Query, mode: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that stand in the end."""
    if mode == "final":
        return rows
    if isinstance(q.window, Driven):
        return list({row["n"]: row for row in rows}.values())
    by = {(row["k"], row["window_start"]): row for row in rows}
    return [row for row in by.values() if not row.get("deleted")]


@pytest.mark.thin
@pytest.mark.parametrize(("window", "mode", "emit"), [*ALIGNED, *EVENTS], ids=repr)
def test_the_rows_of_brute_force_over_every_store(
    window: Any, mode: Any, emit: Any, home: Home
) -> None:
    """With the store closed and opened again after some of the batches, and a small buffer, so that
    changes are written before a sync."""
    kinds = ("disorder", "keys come and go", "ties", "before 1970")
    for seed, kind in enumerate(kinds if home.kind == "memory" else kinds[:2]):
        q = query(window, emit, ("numbers", "objects")[seed % 2])
        parts = list(batches(stream(kind, 60, seed=seed), seed=seed, most=17))
        lateness = (0, "3 seconds")[seed % 2]
        right, missed = replay(q, parts, lateness)
        settings = {"lateness": lateness, "mode": mode, "name": kind}
        store, rows = home.open(), []
        s = q.stream(store=store, **settings)
        for number, part in enumerate(parts):
            rows += rows_of(s.push(part))
            if number % 3 == seed % 3:
                s._check()
                s.sync()
                s.release()
                store.close()
                store = home.open()
                s = q.stream(store=store, **settings)
                assert s._journal is not None
                s._journal._buffer = 200
        rows += rows_of(s.close())
        s.sync()
        found = last_rows(q, mode, rows)
        by_event = isinstance(q.window, Driven)
        if by_event:
            right, found = (sorted(some, key=lambda r: r["n"]) for some in (right, found))
        assert not differences(q, right, found, ordered=by_event)
        assert s.late.num_rows == len(missed)
        assert s.counts["rows"] == s.counts["counted"] + s.counts["late"]
        s.release()
        with pytest.raises(ValueError, match="closed"):
            q.stream(store=store, **settings).push(parts[0])
        store.close()


@pytest.mark.parametrize(("window", "mode", "emit"), [ALIGNED[1], EVENTS[0], EVENTS[4]], ids=repr)
def test_a_restart_goes_on_from_the_last_sync(
    window: Any, mode: Any, emit: Any, home: Home
) -> None:
    """Whatever was pushed after it is gone: pushed again, it gives the same rows again."""
    q, source = query(window, emit), random.Random(3)
    parts = list(batches(stream("disorder", 80), seed=1, most=9))
    whole = q.stream(lateness="5 seconds", mode=mode)
    right = [rows_of(whole.push(part)) for part in parts]
    store, settings = home.open(), {"lateness": "5 seconds", "mode": mode, "name": "s"}
    s, at = q.stream(store=store, **settings), 0
    s.sync()
    number = 0
    for _ in range(30):
        for _ in range(source.randrange(4)):
            if number < len(parts):
                assert_same(q, right[number], s.push(parts[number]))
                number += 1
        if source.random() < 0.5:
            s.sync()
            at = number
        else:
            s.release()
            store.close()
            store = home.open()
            s, number = q.stream(store=store, **settings), at
            assert s._journal is not None
            s._journal._buffer = 500
    while number < len(parts):
        assert_same(q, right[number], s.push(parts[number]))
        number += 1
    assert s.counts == whole.counts
    assert_same(q, rows_of(whole.close()), s.close())


def assert_same(q: sash.Query, right: list[dict[str, Any]], found: pa.Table) -> None:
    """The same rows; floats are added in another order, so that their last digits, and the sign of
    zero, may differ."""

    def plain(row: dict[str, Any]) -> str:
        floats = {n: round(v, 6) + 0.0 for n, v in row.items() if isinstance(v, float)}
        return repr(row | floats)

    assert sorted(map(plain, right)) == sorted(map(plain, rows_of(found)))


def some() -> tuple[sash.Query, pa.Table]:
    return query(sash.tumbling("1 second")), stream("disorder", 40)


def test_streams_share_a_store(home: Home) -> None:
    store = home.open()
    q, table = some()
    for name in ("a", "b"):
        s = q.stream(store=store, name=name, lateness="1 day")
        s.push(table.slice(0, 20 if name == "a" else 40))
        s.sync()
        s.release()
    assert store.names() == ["a", "b"]
    store.drop("a")
    assert store.names() == ["b"]
    new = q.stream(store=store, name="a", lateness="1 day")
    assert new.counts["rows"] == 0
    assert q.stream(store=store, name="b", lateness="1 day").counts["rows"] == 40


def test_the_second_writer_is_refused(home: Home) -> None:
    store = home.open()
    q, table = some()
    s = q.stream(store=store, name="s")
    s.push(table)
    with pytest.raises(Claimed, match="one at a time"):
        q.stream(store=store, name="s")
    for copied in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied"):
            copied(s)
    s.sync()
    s.release()
    for call in (s.sync, lambda: s.push(table), s.close):
        with pytest.raises(RuntimeError, match="let go of"):
            call()
    s.release()
    assert q.stream(store=store, name="s").counts == s.counts


def test_snapshots_of_a_stored_stream(home: Home) -> None:
    for window, mode, _ in (ALIGNED[0], EVENTS[0], EVENTS[3]):
        q = query(window)
        first, second = stream("disorder", 60).slice(0, 30), stream("disorder", 60).slice(30)
        s = q.stream(store=home.open(), name=repr(window), lateness="1 minute", mode=mode)
        s.push(first)
        again = Stream.from_bytes(s.to_bytes(), q)
        for part in (second, second.slice(0, 0)):
            assert_same(q, rows_of(s.push(part)), again.push(part))
        assert_same(q, rows_of(s.close()), again.close())
        assert s.state_size() == again.state_size()
        s.release()
        assert s._journal is not None
        s._journal.space.store.close()


@pytest.mark.parametrize("select", ["numbers", "objects"])
def test_any_range_of_a_key(select: str, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in memory, of keys that are there and of one that is not, also over long keys, whose
    slices are in tiles on several levels."""
    monkeypatch.setattr(layout, "PAGE", 300)
    source, q = random.Random(6), query(sash.sliding("200 seconds", "1 second"), select=select)
    table = stream("disorder", 150 if home.kind == "memory" else 60)
    s = q.stream(store=home.open(), name="s", lateness="200 seconds")
    memory = q.stream(lateness="200 seconds")
    for part in batches(table, seed=2, most=80):
        for one in (s, memory):
            one.push(part)
        for key in (*set(table["k"].to_pylist()), "nobody"):
            edge = source.randrange(100) * 1_000_000
            for lo, hi in ((None, None), (None, edge), (edge, None), (edge, edge + 9_000_000)):
                try:
                    right = memory.query(key, lo, hi)
                except ValueError:  # it is evicted
                    continue
                assert_same_values(right, s.query(key, lo, hi))


def assert_same_values(right: dict[str, Any], found: dict[str, Any]) -> None:
    for name, value in right.items():
        if isinstance(value, float):
            assert found[name] == pytest.approx(value, nan_ok=True)
        else:
            assert found[name] == value


def test_what_is_refused() -> None:
    store, (q, table) = sash.stores.memory(), some()
    wrong: Any = "rocksdb"
    with pytest.raises(TypeError, match=r"sash\.stores\.rocksdb"):
        q.stream(store=wrong, name="s")
    with pytest.raises(TypeError, match="has a name"):
        q.stream(store=store)
    with pytest.raises(TypeError, match="store is where"):
        q.stream(name="s")
    with pytest.raises(ValueError, match="only a state in memory"):
        q.stream(store=store, name="s", mode="live", early=True)
    own = sash.operator(identity=(), lift=lambda x: (x,), combine=lambda a, b: a + b)
    listed = sash.Query(time="t", window=sash.tumbling(10), select={"x": sash.aggregate(own, "n")})
    with pytest.raises(TypeError, match="encode"):
        listed.stream(store=store, name="s").push(table)
    with pytest.raises(TypeError, match="no store to sync with"):
        q.stream().sync()
    s = q.stream(store=store, name="s")
    s.push(table)
    s.sync()
    s.release()
    with pytest.raises(ValueError, match="mode='final'"):
        q.stream(store=store, name="s", mode="live")
    with pytest.raises(ValueError, match="another query"):
        query(sash.tumbling("2 seconds")).stream(store=store, name="s")
    with pytest.raises(ValueError, match="other columns or types"):
        q.stream(store=store, name="s", schema=table.schema.set(0, pa.field("t", pa.int32())))
    assert q.stream(store=store, name="s").counts["rows"] == 40  # a refusal takes no claim


def test_damage_is_named_and_never_a_wrong_answer(home: Home) -> None:
    """A flipped bit in, or the loss of, each record of a stream."""
    for window in (WINDOWS[1], sash.session("5 seconds")):
        q, table = query(window), stream("disorder", 60)
        store = home.open()
        s = q.stream(store=store, name="s", lateness="1 day")
        s.push(table.slice(0, 50))
        s.sync()
        s.release()
        records = dict(store.scan())
        for key, data in records.items():
            at = len(data) // 2
            broken = data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]
            for change in ({key: broken}, {}):
                store.write(change, [] if change else [key])
                with pytest.raises(Damaged, match="damaged") as found:
                    _used(q, store, table)
                assert "'s' in the" in str(found.value), found.value
                store.put_many(records)
        _used(q, store, table)
        store.drop("s")
        store.close()


def _used(q: sash.Query, store: Store, table: pa.Table) -> None:
    """Open a stream and use all of its state; a stream that is gone is not another one."""
    s = q.stream(store=store, name="s", lateness="1 day")
    try:
        if s.counts["rows"] != 50:
            raise Damaged("'s' in the store is damaged: its root is gone, and it is new")
        s.push(table.slice(50))
        s.close()
    finally:
        s.release()


class Away(Journal):
    """Records that cannot be reached for a while."""

    away = False

    def get_many(self, keys: Any) -> Any:
        if self.away:
            raise StoreError("it does not answer")
        return super().get_many(keys)


@pytest.mark.parametrize("window", [WINDOWS[1], sash.session("1 second"), sash.rows(3)], ids=repr)
def test_a_store_that_is_away_loses_nothing(window: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("sash.engine.stored.Journal", Away)
    q = query(window)
    parts = list(batches(stream("disorder", 60), seed=5, most=9))
    whole = q.stream(lateness="3 seconds")
    s = open_stream(Stream, q, sash.stores.memory(), "s", lateness="3 seconds")
    for number, part in enumerate(parts):
        if number % 2:
            s._settle()
            vars(s._journal)["away"] = True
            with pytest.raises(StoreError, match="does not answer"):
                s.push(part) and s._settle()
            vars(s._journal)["away"] = False
            if s.counts["rows"] == whole.counts["rows"] + part.num_rows:  # noted, and still there
                assert_same(q, rows_of(whole.push(part)), s.push(part.slice(0, 0)))
                continue
        assert_same(q, rows_of(whole.push(part)), s.push(part))
        assert s.counts == whole.counts
    assert_same(q, rows_of(whole.close()), s.close())


@pytest.mark.plain
def test_a_batch_that_is_not_written_leaves_no_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of rows nor of how late they came."""
    s = query(sash.rows(3)).stream(store=sash.stores.memory(), name="s", lateness="3 seconds")
    first, second = list(batches(stream("disorder", 60), seed=5, most=9))[:2]
    s.push(first)
    before = s.counts, s.delays

    def refuse(*given: Any) -> None:
        raise StoreError("it is full")

    with monkeypatch.context() as patch:
        patch.setattr(KeyedTables, "replace", refuse)
        with pytest.raises(StoreError, match="it is full"):
            s.push(second)
    assert (s.counts, s.delays) == before
    s.push(second)
    assert sum(s.delays) == first.num_rows + second.num_rows


@pytest.mark.parametrize(("window", "mode", "emit"), EVENTS, ids=lambda x: str(x)[:30])
def test_rows_come_in_the_order_of_a_stream_in_memory(window: Any, mode: Any, emit: Any) -> None:
    q, store = query(window), sash.stores.memory()
    memory = q.stream(lateness="2 seconds", mode=mode)
    stored = q.stream(lateness="2 seconds", mode=mode, store=store, name="s")
    for number, batch in enumerate(batches(stream("disorder", 120), most=30)):
        assert repr(rows_of(stored.push(batch))) == repr(rows_of(memory.push(batch)))
        if number % 3 == 1:
            stored.sync()
            stored.release()
            stored = q.stream(lateness="2 seconds", mode=mode, store=store, name="s")
    assert repr(rows_of(stored.close())) == repr(rows_of(memory.close()))
