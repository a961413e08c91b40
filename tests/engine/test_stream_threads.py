"""Pushes into a stream in threads: the same rows, bits, errors and snapshots as in one thread."""

from __future__ import annotations

import copy
import gc
import threading
import warnings
import weakref
from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import sash
from sash.aggregators.forest import RECORD
from sash.engine.stream import Stream
from sash.kernels.program import jit_enabled
from sash.state import labels, parted_forest, shared
from sash.state.forest_fields import PART
from sash.state.shared_fields import ACTIVE
from sash.tables import dictionaries
from sash.tables import threads as threads_module
from sash.testing.fuzz.streams import SELECTS
from sash.testing.queries import differences
from trouble import interrupted

WINDOWS: dict[str, Any] = {
    "tumbling": sash.tumbling(10, offset=3),
    "pairs": sash.sliding(7, 3),
    "sliding": sash.sliding(20, 5),
    "cumulating": sash.cumulate(20, 5),
    "filled": sash.sliding(20, 5, empty="zero", idle=40),
    "a calendar's": sash.sliding("2 days", "1 day", timezone="Europe/Berlin"),
}
NUMBERS = {
    "n": sash.count(),
    "most": sash.max("x"),
    "mean": sash.mean("x"),
    "sum": sash.sum("i"),
}
if not jit_enabled():  # compiled, their kernels are there
    NUMBERS["spread"] = sash.stddev("x")


EVENTS: dict[str, Any] = {
    "trailing": sash.trailing(20),
    "the time before": sash.trailing(20, exclude="ties"),
    "lifetime": sash.lifetime(),
    "rows": sash.rows(5, every=2),
    "the others": sash.trailing(20, exclude="row"),
    "delta": sash.delta("i", 30, 2),
    "a policy": sash.policies.at_most_sum(60, "n"),
    "ticks": sash.window(keep=sash.rows(6), every=5),
    "session": sash.session(3),
}
TEXTS = {
    "first": sash.first("s"),
    "least": sash.min("s"),
    "most": sash.max("d"),
    "who": sash.arg_max("s", by="x"),
    "n": sash.count(),
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take pushes of some rows for large ones, and few keys for many."""
    monkeypatch.setattr(parted_forest, "MANY", 8)
    monkeypatch.setattr(threads_module, "PIECE", 8)
    monkeypatch.setattr(parted_forest, "STRIPE", 2)
    before = threading.active_count()
    yield
    assert threading.active_count() == before, "a thread is left"


def batches(count: int = 6, rows: int = 40, seed: int = 1, keys: int = 9) -> list[pa.Table]:
    """Batches with late events, ties and nulls, whose keys come and go."""
    source = Random(f"{count} {rows} {seed}")
    made = []
    for batch in range(count):
        times = [batch * 12 + source.randint(-15, 15) for _ in range(rows)]
        codes = [source.randrange(keys) + keys * (batch // 3) for _ in range(rows)]

        def some(values: list[Any]) -> list[Any]:
            return [source.choice(values) for _ in range(rows)]

        made.append(
            pa.table(
                {
                    "t": pa.array(times, pa.int64()),
                    "k": pa.array([None if c % 7 == 5 else f"k{c:02}" for c in codes]),
                    "c": pa.array(codes, pa.int64()),
                    "n": pa.array(range(rows), pa.int64()),
                    "x": pa.array(some([0.1, 0.7, -3.3, 1e9, -0.0, None]), pa.float64()),
                    "i": pa.array(some([0, 1, -7, 40, None]), pa.int64()),
                    "s": pa.array(some(["", "x", "yy", f"é{batch}", None]), pa.string()),
                    "d": pa.array(some([batch, 7 - batch, 30, None]), pa.int32()).cast(pa.date32()),
                }
            )
        )
    return made


def pushed(
    q: sash.Query, given: list[pa.Table], threads: int, monkeypatch: pytest.MonkeyPatch, **how: Any
) -> tuple[list[Any], Any]:
    """What each push and the end emit, bit by bit, and the stream."""
    monkeypatch.setenv("SASH_THREADS", str(threads))
    s = q.stream(lateness=10, **how)
    made = []
    for i, batch in enumerate(given):
        made.append(s.push(batch))
        s._check()
        if i == 2:
            s = Stream.from_bytes(s.to_bytes(), q)
        elif i == 4:
            s = copy.copy(s)
    made += [s.late, s.close()]
    return [bits(table) for table in made], s


def bits(table: pa.Table) -> Any:
    """A table's values, of floats the bits."""
    columns = [column.combine_chunks() for column in table.columns]
    return table.schema, [
        (c.view(pa.int64()) if pa.types.is_floating(c.type) else c).to_pylist() for c in columns
    ]


def same(
    q: sash.Query, given: list[pa.Table], monkeypatch: pytest.MonkeyPatch, **how: Any
) -> list[Any]:
    alone, _ = pushed(q, given, 1, monkeypatch, **how)
    together, _ = pushed(q, given, 3, monkeypatch, **how)
    assert together == alone
    return alone


@pytest.mark.parametrize("mode", ["final", "live"])
@pytest.mark.parametrize("window", WINDOWS)
def test_any_number_of_threads_gives_the_same_bits(
    window: str, mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if window == "filled" and mode == "live":
        pytest.skip("a live stream has no empty windows")
    q = sash.Query(time="t", by=["k"], window=WINDOWS[window], select=NUMBERS)
    found = same(q, batches(), monkeypatch, mode=mode)
    assert sum(len(columns[0]) for _, columns in found if columns) > 20


@pytest.mark.plain
@pytest.mark.parametrize("select", SELECTS)
def test_all_aggregates(select: str, monkeypatch: pytest.MonkeyPatch) -> None:
    q = sash.Query(time="t", by=["k", "c"], window=WINDOWS["sliding"], select=SELECTS[select])
    same(q, batches(), monkeypatch)


@pytest.mark.plain
@pytest.mark.parametrize("window", EVENTS)
def test_windows_that_events_make(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    select = {f"a {name}": a for name, a in (NUMBERS | TEXTS).items()}
    q = sash.Query(time="t", by=["k"], window=EVENTS[window], select=select)
    same(q, batches(), monkeypatch)
    if window in ("trailing", "session"):
        same(q, batches(), monkeypatch, mode="live")
    select = {f"a {name}": a for name, a in (TEXTS | SELECTS["in order"]).items()}
    q = sash.Query(time="t", by=[], window=EVENTS[window], select=select)
    same(q, batches(), monkeypatch)


def shared_pushes(
    queries: dict[str, sash.Query], threads: int, monkeypatch: pytest.MonkeyPatch, mode: Any
) -> list[Any]:
    """What each push and the end emit of each query, bit by bit."""
    monkeypatch.setenv("SASH_THREADS", str(threads))
    s = sash.share(queries).stream(lateness=10, mode=mode)
    made = []
    for i, batch in enumerate(batches()):
        made.append(s.push(batch))
        s._check()
        if i == 2:
            s = type(s).from_bytes(s.to_bytes(), sash.share(queries))
        elif i == 4:
            s = copy.copy(s)
    made += [{"late": s.late}, s.close()]
    return [{name: bits(table) for name, table in one.items()} for one in made]


@pytest.mark.plain
@pytest.mark.parametrize(
    ("mode", "by_pyramids"), [("final", False), ("live", False), ("final", True)]
)
def test_shared_streams(mode: Any, by_pyramids: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries that share slices, one with several sizes, over trees and over pyramids."""
    if by_pyramids:
        monkeypatch.setattr(shared, "pays", lambda asks, *more: asks.call[ACTIVE] > 0)
    select = NUMBERS | TEXTS
    two = {"one": sash.sum("i"), "two": sash.min("s").over(30), "ever": sash.count().over(40)}
    queries = {
        "a": sash.Query(time="t", by=["k"], window=sash.sliding(20, 5), select=select),
        "b": sash.Query(time="t", by=["k"], window=sash.sliding(7, 3), select=TEXTS),
        "c": sash.Query(time="t", by=["k"], window=sash.tumbling(10), select=two),
    }
    if by_pyramids:
        del queries["c"]
    alone = shared_pushes(queries, 1, monkeypatch, mode)
    assert shared_pushes(queries, 3, monkeypatch, mode) == alone
    assert sum(len(columns[0]) for one in alone for _, columns in one.values() if columns) > 50
    s = sash.share(queries).stream(lateness=60)
    monkeypatch.setenv("SASH_THREADS", "3")
    made = [s.push(batch) for batch in batches()]
    forest = s._members[0].stream._shared._grove.forests[0]
    assert len(forest._parts) == parted_forest.PARTS
    made.append(s.close())
    for name, q in queries.items():
        whole = pa.concat_tables([one[name] for one in made])
        right = q.run(pa.concat_tables(batches())).to_pylist()
        assert not differences(q, right, whole, ordered=False), name


@pytest.mark.plain
@pytest.mark.parametrize("mode", ["final", "live"])
def test_text_has_labels(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while values are let go of at every step, which goes through all memories."""
    monkeypatch.setattr(labels.Labels, "grown", lambda self: True)
    q = sash.Query(time="t", by=["k"], window=sash.sliding(20, 5), select=TEXTS)
    _, s = pushed(q, batches(), 3, monkeypatch, mode=mode)
    assert len(s._state._grove.forests[0]._parts) == parted_forest.PARTS
    assert len(s._state._grove.forests[0]._labels) == 0  # all windows are closed
    same(q, batches(), monkeypatch, mode=mode)
    if mode == "final":
        s = q.stream(lateness=60)
        made = pa.concat_tables([*map(s.push, batches()), s.close()])
        by = [("k", "ascending"), ("window_start", "ascending")]
        assert made.sort_by(by).equals(q.run(pa.concat_tables(batches())).sort_by(by))


@pytest.mark.plain
def test_labels_that_are_used_up_are_given_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionaries, "_TOP", 1 << 15)
    monkeypatch.setattr(dictionaries, "_BITS", 4)
    q = sash.Query(time="t", by=["c"], window=sash.sliding(200, 50), select=TEXTS)
    given = batches()
    for i, batch in enumerate(given):
        texts = [f"{(40 * i + j) * 7919 % 997:03}" for j in range(batch.num_rows)]
        given[i] = batch.set_column(batch.schema.get_field_index("s"), "s", pa.array(texts))
    same(q, given, monkeypatch)


@pytest.mark.plain
def test_changes_early_windows_and_nanoseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    q = sash.Query(time="t", by=["k"], window=sash.sliding(20, 5), select=NUMBERS)
    same(q, batches(), monkeypatch, mode="live", early=True)
    changes = sash.Query(
        time="t", by=["k"], window=sash.sliding(20, 5), select=NUMBERS, emit="changes"
    )
    same(changes, batches(), monkeypatch)
    nanos = [b.set_column(0, "t", b["t"].cast(pa.timestamp("ns"))) for b in batches()]
    firsts = sash.Query(
        time="t", by=["k"], window=sash.tumbling(1), select={"first": sash.first("n")}
    )
    same(firsts, nanos, monkeypatch)


@pytest.mark.plain
def test_nanoseconds_do_not_change_the_order_of_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """One key's rows are in order of microseconds, those of all keys are not."""
    nanos = [5, 4, 3, 2, 1, 5, 4, 3, 2, 1]
    given = pa.table(
        {
            "t": pa.array([1_000 + n for n in nanos[:5]] + nanos[5:], pa.timestamp("ns")),
            "c": [2] * 5 + [1] * 5,
            "x": [0.1, 0.7, 1e9, -3.3, 0.3] * 2,
        }
    )
    q = sash.Query(time="t", by=["c"], window=sash.tumbling(10), select={"sum": sash.sum("x")})
    same(q, [given], monkeypatch)


def test_threads_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both cutting and stepping run in threads, over all memories."""
    started = []
    start = threading.Thread.start
    monkeypatch.setattr(
        threading.Thread, "start", lambda self: (started.append(self), start(self))[1]
    )
    q = sash.Query(time="t", by=["k"], window=sash.sliding(20, 5), select=NUMBERS)
    _, s = pushed(q, batches(), 1, monkeypatch)
    assert not started
    _, s = pushed(q, batches(), 3, monkeypatch)
    assert started
    assert len(s._state._grove.forests[0]._parts) == parted_forest.PARTS
    monkeypatch.setattr(parted_forest, "MANY", 1_000)
    started.clear()
    pushed(q, batches(), 3, monkeypatch)
    assert not started


@pytest.mark.plain
def test_a_batch_of_fewer_rows_than_there_are_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first piece has no keys, and a slice has several rows."""
    monkeypatch.setattr(parted_forest, "MANY", 1)
    monkeypatch.setenv("SASH_THREADS", "3")
    select = {"sum": sash.sum("i"), "least": sash.min("s")}
    q = sash.Query(time="t", by=["c"], window=sash.sliding(20, 10), select=select)
    given = pa.table({"t": [1, 2, 3], "c": [0, 0, 1], "i": [1, 2, 4], "s": ["b", "a", "c"]})
    right = q.run(given).to_pylist()
    for s in (sash.share({"q": q, "r": q}).stream(), sash.share({"q": q}).stream(), q.stream()):
        made = [s.push(given), s.close()]
        tables = made if isinstance(s, Stream) else [one["q"] for one in made]
        assert not differences(q, right, pa.concat_tables(tables), ordered=False)


def test_few_keys_have_one_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parted_forest, "STRIPE", 16)
    q = sash.Query(time="t", by=["k"], window=sash.sliding(20, 5), select=NUMBERS)
    _, s = pushed(q, batches(2), 1, monkeypatch)
    assert len(s._state._grove.forests[0]._parts) == 1


@pytest.mark.plain
@pytest.mark.parametrize("hot", [0, 39])
def test_many_keys_that_come_at_once_are_dealt_out_by_their_slices(hot: int) -> None:
    """Each memory has a range of the keys in their order, with about a quarter of the slices."""
    q = sash.Query(time="t", by=["c"], window=sash.sliding(2_000, 10), select={"n": sash.count()})
    times, keys = [10 * i for i in range(40)], list(range(40))
    s = q.stream(lateness=1_000)
    s.push(pa.table({"t": [*times, *times], "c": [*keys, *[hot] * 40]}))
    s._settle()
    forest = s._state._grove.forests[0]
    slices = [int(count) for count in forest._records[3 : RECORD * 40 : RECORD]]
    parts = [int(part) for part in forest._records[PART : RECORD * 40 : RECORD]]
    assert parts == sorted(parts)
    held = [sum(n for n, part in zip(slices, parts, strict=True) if part == i) for i in range(4)]
    assert sum(held) == 79
    assert max(held) <= 40 + 79 // 4
    assert sorted(held)[-2] <= 79 // 4 + 1
    s.push(pa.table({"t": [50], "c": [100]}))  # one alone goes on as if dealt out two at a time
    s._settle()
    assert forest._records[RECORD * 40 + PART] == 40 // 2 % 4
    s._check()


@pytest.mark.plain
def test_keys_that_hold_nothing_stay_where_they_are() -> None:
    """They are remembered, also by a snapshot, and come before others that are dealt out."""
    window = sash.sliding(20, 10, empty="zero", idle=1_000)
    q = sash.Query(time="t", by=["c"], window=window, select={"n": sash.count()})
    made = []
    for saved in (False, True):
        s = q.stream()
        s.push(pa.table({"t": [1] * 6, "c": list(range(6))}))
        s.push(pa.table({"t": [100], "c": [-1]}))
        s.push(pa.table({"t": [200], "c": [0]}))
        if saved:
            s = Stream.from_bytes(s.to_bytes(), q)
        found = [s.push(pa.table({"t": [210] * 20, "c": list(range(2, 22))}))]
        s._settle()
        s._check()
        parts = s._state._grove.forests[0]._records[PART::RECORD]
        assert min(parts) >= 0
        made.append([bits(table) for table in [*found, s.close()]])
    assert made[0] == made[1]


@pytest.mark.plain
def test_memories_are_let_go_of_with_their_stream() -> None:
    """At once: the garbage collector does not see how large they are."""
    q = sash.Query(time="t", by=["c"], window=sash.tumbling(10), select={"n": sash.count()})
    s = q.stream()
    s.push(pa.table({"t": [1] * 40, "c": list(range(40))}))
    s._settle()
    again = copy.copy(s)
    held = [weakref.ref(one._state._grove.forests[0]) for one in (s, again)]
    assert len(held[1]()._parts) == parted_forest.PARTS  # type: ignore[union-attr]
    gc.disable()
    try:
        del s, again
        assert [forest() for forest in held] == [None, None]
    finally:
        gc.enable()


@pytest.mark.plain
def test_a_question_finds_its_key_in_any_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SASH_THREADS", "2")
    q = sash.Query(time="t", by=["c"], window=sash.tumbling(1_000), select={"n": sash.sum("i")})
    s = q.stream()
    given = pa.table({"t": [1] * 40, "c": list(range(20)) * 2, "i": list(range(40))})
    s.push(given)
    assert [s.query(key)["n"] for key in range(20)] == [2 * key + 20 for key in range(20)]
    size = s.state_size()
    assert size["slices"] == 20
    assert Stream.from_bytes(s.to_bytes(), q).state_size() == size


@pytest.mark.plain
def test_answers_that_do_not_exist_are_in_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    q = sash.Query(
        time="t",
        by=["c"],
        window=sash.tumbling(10),
        select={"sum": sash.sum("i"), "n": sash.count()},
    )
    big = [2**62 if i % 20 in (3, 11, 12) else i for i in range(60)]
    given = pa.table({"t": [1] * 60, "c": list(range(20)) * 3, "i": big})
    found = []
    for threads in (1, 3):
        monkeypatch.setenv("SASH_THREADS", str(threads))
        s = q.stream()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            s.push(given)
            found.append((bits(s.close()), [str(w.message) for w in said]))
    assert found[0] == found[1]
    assert [i for i, x in enumerate(found[0][0][1][3]) if x is None] == [3, 11, 12]


@pytest.mark.plain
@pytest.mark.parametrize("kind", ["sliding", "shared", "trailing", "rows", "session"])
def test_an_error_names_the_first_key(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def combine(a: int, b: int) -> int:
        if a + b >= 100:
            raise ValueError("too much")
        return a + b

    own = sash.operator(identity=0, lift=lambda x: x, combine=combine, commutative=True)
    window = EVENTS.get(kind, sash.sliding(20, 10))
    q = sash.Query(time="t", by=["c"], window=window, select={"a": sash.aggregate(own, "i")})
    other = sash.Query(time="t", by=["c"], window=sash.tumbling(10), select={"n": sash.count()})
    said = []
    for threads in (1, 3):
        monkeypatch.setenv("SASH_THREADS", str(threads))
        s: Any = q.stream(lateness=5)
        if kind == "shared":
            s = sash.share({"own": q, "other": other}).stream(lateness=5)
        keys = list(range(20)) * 2
        s.push(pa.table({"t": [1] * 20 + [11] * 20, "c": keys, "i": [1] * 40}))
        more = [99 if key in (7, 12, 13) else 1 for key in keys]
        with pytest.raises(Exception, match="too much") as error:
            s.push(pa.table({"t": [12] * 20 + [40] * 20, "c": keys, "i": more}))
        said.append(str(error.value))
        with pytest.raises(RuntimeError):
            s.push({"t": 50, "c": 1, "i": 1})
    assert said[0] == said[1]
    assert "7" in said[0]


@pytest.mark.plain
def test_a_memory_without_answers_says_no_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the JIT, values alone say the type of an operator of yours."""
    own = sash.operator(identity=0, lift=lambda x: x, combine=lambda a, b: a + b)
    q = sash.Query(
        time="t", by=["c"], window=sash.tumbling(10), select={"a": sash.aggregate(own, "i")}
    )
    given = [
        pa.table({"t": [1] * 20, "c": list(range(20)), "i": [1] * 20}),
        pa.table({"t": [101] * 20, "c": [3] * 20, "i": [1] * 20}),
        pa.table({"t": list(range(110, 310, 10)), "c": [3] * 20, "i": [1] * 20}),
    ]
    found = same(q, given, monkeypatch)
    assert [len(columns[0]) for _, columns in found] == [0, 20, 19, 0, 2]


@pytest.mark.plain
def test_rows_that_lift_refuses_are_late(monkeypatch: pytest.MonkeyPatch) -> None:
    def lift(x: int) -> int:
        if x == 13:
            raise ValueError("unlucky")
        return x

    own = sash.operator(identity=0, lift=lift, combine=lambda a, b: a + b, commutative=True)
    q = sash.Query(
        time="t", by=["c"], window=sash.tumbling(10), select={"a": sash.aggregate(own, "n")}
    )
    found = same(q, batches(rows=40), monkeypatch)
    assert len(found[-2][1][0]) >= len(batches())


@pytest.mark.plain
@pytest.mark.parametrize("kind", ["sliding", "text", "trailing", "session"])
def test_an_interrupt_leaves_a_sound_stream_or_none(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C between any two steps: the stream goes on as if nothing was pushed, or all of it was
    when what it emitted was on its way to the caller, or refuses."""
    monkeypatch.setenv("SASH_THREADS", "2")
    window = EVENTS.get(kind, sash.sliding(20, 5))
    picks = {"least": sash.min("s"), "last": sash.last("s")} if kind == "text" else {}
    q = sash.Query(time="t", by=["c"], window=window, select=picks | {"sum": sash.sum("i")})
    first, second = batches(2)
    whole = q.stream(lateness=10)
    whole.push(first)
    right = bits(whole.push(second))
    again = q.stream(lateness=10)
    again.push(first)
    with interrupted(0) as lines:
        again.push(second)
    stopped = refused = 0
    step = 41 if kind == "sliding" else 97
    # a busy machine moves work between threads, so one pass may meet no line in the middle of a
    # change: then another pass takes the lines between
    for n in (n for start in (1, 24, 11) for n in range(start, lines[0], step)):
        if n in (24, 11) and stopped > refused > 0:
            break
        s = q.stream(lateness=10)
        s.push(first)
        try:
            with interrupted(n):
                s.push(second)
            continue  # this thread had fewer lines to run, as the others had more
        except KeyboardInterrupt:
            stopped += 1
        if s._turns.broken or (kind in ("sliding", "text") and s._state.broken):
            refused += 1
            with pytest.raises(RuntimeError, match="not sound any more"):
                s.push(second)
        elif s.counts["rows"] == first.num_rows:
            assert bits(s.push(second)) == right
        else:
            assert s.counts == whole.counts
    assert stopped > refused > 0


@pytest.mark.plain
@pytest.mark.skipif(jit_enabled(), reason="compiled functions call no stream: SASH_JIT=0")
def test_a_function_that_calls_back_is_refused_in_any_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SASH_THREADS", "3")
    here, other, alone = threading.get_ident(), threading.Event(), threading.active_count()
    rows: list[int] = []

    def combine(a: int, b: int) -> int:
        if threading.get_ident() == here:
            if threading.active_count() > alone:  # and not where the operator is tried
                other.wait(30)
        elif not other.is_set():
            other.set()
            rows.append(s.counts["rows"])
            s.push({"t": 1, "c": 1, "n": 1})
        return a + b

    own = sash.operator(identity=0, lift=lambda x: x, combine=combine, commutative=True)
    q = sash.Query(
        time="t", by=["c"], window=sash.tumbling(10), select={"a": sash.aggregate(own, "n")}
    )
    s = q.stream(lateness=10)
    with pytest.raises(sash.InUse):
        s.push(batches(1, rows=160)[0])
    assert rows == [0]
