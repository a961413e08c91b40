"""`Query.run` in threads: the same results to the bit, the same errors, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.kernels import threads as kernel_threads
from sash.kernels.program import jit_enabled
from sash.kernels.spans import room
from sash.query.plan import make_plan
from sash.state.measures import frames_of
from sash.tables import counting_sort
from sash.tables import rows as tables_rows
from sash.tables import threads as threads_module
from sash.tables.counting_sort import counts_by_key, deal, put, repeat
from sash.tables.rows import rows_in_order
from sash.tables.threads import cut_groups, cut_rows, how_many, side_by_side
from sash.testing.fuzz.streams import SELECTS
from sash.testing.queries import answers, differences
from trouble import alarms, in_threads, interrupted

WINDOWS: dict[str, Any] = {
    "tumbling": sash.tumbling(10, offset=3),
    "sliding": sash.sliding(20, 5),
    "pairs": sash.sliding(7, 3),
    "trailing": sash.trailing(9),
    "trailing a little": sash.trailing(1),
    "trailing, delayed": sash.trailing(1, closed="left", delay=2),
    "trailing, without itself": sash.trailing(9, exclude="row"),
    "lifetime": sash.lifetime(),
    "lifetime, delayed": sash.lifetime(delay=3),
    "rows": sash.rows(3),
    "every second row": sash.rows(5, every=2),
    "session": sash.session(3),
}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Cut tables of some hundred rows as if they were large."""
    monkeypatch.setattr(threads_module, "PIECE", 8)
    before = threading.active_count()
    yield
    assert threading.active_count() == before, "a thread is left"


def table(kind: str, rows: int = 160, seed: int = 5) -> pa.Table:
    """Rows with ties and nulls: of few keys or many, of one that has most of them, in order of key
    and time, of time, or of nothing."""
    source = Random(f"{kind} {seed}")
    keys = {"many": 90, "one": 1}.get(kind, 5)
    codes = [source.randrange(keys) if source.random() < 0.95 else None for _ in range(rows)]
    if kind == "hot":
        codes = [1 if source.random() < 0.8 else source.randrange(keys) for _ in range(rows)]
    times = [source.randint(-60, 60) for _ in range(rows)]
    if kind == "sparse":
        times = [source.randint(-(10**6), 10**6) for _ in range(rows)]
    if kind == "in time":
        times.sort()
    if kind == "in order":
        pairs = sorted(zip(codes, times, strict=True), key=lambda p: (p[0] is not None, p))
        codes, times = [k for k, _ in pairs], [t for _, t in pairs]

    def some(values: list[Any]) -> list[Any]:
        return [source.choice(values) for _ in range(rows)]

    return pa.table(
        {
            "t": pa.array(times, pa.timestamp("us", "UTC")),
            "k": pa.array([None if c is None else f"k{c:02}" for c in codes], pa.string()),
            "c": pa.array(codes, pa.int64()),
            "n": pa.array(range(rows), pa.int64()),
            "x": pa.array(some([0.1, 0.7, -3.3, 1e9, -0.0, None]), pa.float64()),
            "i": pa.array(some([0, 1, -7, 40, None]), pa.int64()),
            "s": pa.array(some(["", "x", "yy", "é", None]), pa.string()),
        }
    )


KINDS = ["few", "many", "one", "hot", "sparse", "in time", "in order"]


def check(q: sash.Query, given: pa.Table) -> None:
    alone = q.run(given, threads=1)
    found = q.run(given, threads=3)
    assert same_bits(found, alone)
    assert not differences(q, answers(q, given), alone)


def same_bits(found: pa.Table, right: pa.Table) -> bool:
    """Whether two tables are the same to the bit: -0.0 is not 0.0."""

    def bits(column: pa.ChunkedArray) -> pa.Array:
        made = column.combine_chunks()
        return made.view(pa.int64()) if pa.types.is_floating(made.type) else made

    names = right.column_names
    return found.schema == right.schema and all(
        bits(found[n]).equals(bits(right[n])) for n in names
    )


@pytest.mark.thin(2)
@pytest.mark.plain
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("select", SELECTS)
@pytest.mark.parametrize("window", ["tumbling", "sliding"])
def test_any_number_of_threads_gives_the_same_bits(kind: str, select: str, window: str) -> None:
    q = sash.Query(time="t", by=["k"], window=WINDOWS[window], select=SELECTS[select])
    check(q, table(kind))


@pytest.mark.plain
@pytest.mark.parametrize("window", sorted(set(WINDOWS) - {"tumbling", "sliding"}))
def test_all_windows(window: str) -> None:
    select = SELECTS["numbers"] | {"first": sash.first("s")}
    select = {f"{name}_": chosen for name, chosen in select.items()}
    for kind in ("many", "hot", "in order", "in time"):
        for by in ["c"], []:
            q = sash.Query(time="t", by=by, window=WINDOWS[window], select=select)
            check(q, table(kind))


@pytest.mark.plain
@pytest.mark.parametrize("by", [[], ["c"]], ids=str)
def test_several_sizes(by: list[str]) -> None:
    sizes = (1, 2, 3)
    select = {f"mean {n}": sash.mean("x").over(n) for n in sizes}
    select |= {f"first {n}": sash.first("n").over(n) for n in sizes}
    q = sash.Query(time="t", by=by, window=sash.trailing(2), select=select)
    for kind in ("in time", "hot"):
        check(q, table(kind, 400))


@pytest.mark.plain
@pytest.mark.parametrize("window", ["trailing a little", "trailing, delayed", "rows"])
def test_one_key_is_cut_where_its_frames_hold_little(window: str) -> None:
    given = table("in time")
    plan = make_plan(
        sash.Query(time="t", window=WINDOWS[window], select={"n_": sash.count()}), given.schema
    )
    ordered = rows_in_order(plan, given)
    frames = frames_of(WINDOWS[window], ordered).frames
    first, last = frames.ranges()  # type: ignore[attr-defined]
    cuts = frames.pieces(((0, len(given)), (0, len(given))))
    assert len(cuts) > 4
    assert [a for (a, _), _ in cuts[1:]] == [b for (_, b), _ in cuts[:-1]]
    for (low, high), (begin, end) in cuts:
        assert begin <= min(first[low:high])
        assert max(last[low:high]) <= end
        assert len(frames.part((low, high), (begin, end))) == high - low


@pytest.mark.plain
@pytest.mark.parametrize("by", [[], ["c"], ["k", "i"]], ids=str)
def test_keys_of_any_kind(by: list[str]) -> None:
    for window in ("sliding", "trailing"):
        select = {"a": sash.mean("x"), "b": sash.last("n")}
        q = sash.Query(time="t", by=by, window=WINDOWS[window], select=select)
        check(q, table("few"))


@pytest.mark.plain
def test_ties_nanoseconds_changes_and_conditions() -> None:
    import pyarrow.compute as pc

    given = table("few")
    finer = pa.array([1000 * t.value + t.value % 7 for t in given["t"]], pa.timestamp("ns"))
    given = given.append_column("ns", finer)
    select = {"a": sash.sum("x"), "b": sash.last("n"), "c": sash.collect("s")}
    for time, tie in (("t", "i"), ("ns", None)):
        for emit in ("all", "changes"):
            q = sash.Query(
                time=time,
                by=["k"],
                tie=tie,
                window=sash.sliding(20, 5),
                select=select,
                emit=emit,  # type: ignore[arg-type]
                where=pc.field("i") != 40,
            )
            check(q, given)


@pytest.mark.plain
@pytest.mark.parametrize("day", ["2024-03-30", "2024-10-26"])
def test_days_of_a_clock_that_is_set(day: str) -> None:
    given = table("hot", 300)
    hours = given["t"].cast(pa.int64()).to_numpy() * 1_800_000_000
    times = hours + np.datetime64(day, "us").astype(np.int64)
    given = given.set_column(0, "t", pa.array(times).cast(pa.timestamp("us", "UTC")))
    for select in ({"a": sash.mean("x")}, {"a": sash.last("n")}):
        for empty in (None, "zero"):
            window = sash.tumbling("1 day", timezone="Europe/Berlin", empty=empty)  # type: ignore[call-overload]
            check(sash.Query(time="t", by=["k"], window=window, select=select), given)


@pytest.mark.plain
def test_pieces_change_no_exact_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("many", "hot", "in order", "in time"):
        for window in WINDOWS.values():
            select = {"a": sash.count(), "b": sash.sum("i"), "d": sash.first("n")}
            q = sash.Query(time="t", by=["k"], window=window, select=select)
            cut = q.run(table(kind), threads=2)
            with monkeypatch.context() as whole:
                whole.setattr(threads_module, "PIECE", 2**16)
                assert cut.equals(q.run(table(kind), threads=1))


# Errors


def overflowing(kind: str) -> pa.Table:
    """A table with two sums that leave int64, of the key d and, later in the table, of b."""
    given = table(kind, 300).select(["t", "k", "i"])
    for key in ("d", "b"):
        far = pa.array([200, 201], pa.timestamp("us", "UTC"))
        more = pa.table({"t": far, "k": [key, key], "i": pa.array([2**62, 2**62])})
        given = pa.concat_tables([given, more])
    return given


@pytest.mark.plain
@pytest.mark.parametrize("kind", ["few", "many", "in order"])
@pytest.mark.parametrize("window", ["tumbling", "sliding", "trailing", "session"])
def test_an_overflow_names_the_first_key_and_window(kind: str, window: str) -> None:
    q = sash.Query(time="t", by=["k"], window=WINDOWS[window], select={"s": sash.sum("i")})
    said = set()
    for threads in (1, 2, 3):
        with pytest.raises(OverflowError, match=r"leaves int64 in the window .* of k = b") as e:
            q.run(overflowing(kind), threads=threads)
        said.add(str(e.value))
    assert len(said) == 1


@pytest.mark.plain
@pytest.mark.parametrize("window", ["tumbling", "sliding", "trailing"])
@pytest.mark.parametrize("commutes", [False, True])
def test_errors_of_ones_own_operators_come_out(window: str, commutes: bool) -> None:
    def combine(a: int, b: int) -> int:
        if a + b >= 10**6:
            raise ValueError("too much")
        return a + b

    own = sash.operator(identity=0, lift=lambda x: x, combine=combine, commutative=commutes)
    q = sash.Query(
        time="t", by=["k"], window=WINDOWS[window], select={"a": sash.aggregate(own, "i")}
    )
    q.run(table("few"), threads=3)
    with pytest.raises(ValueError, match="too much"):
        q.run(overflowing("few"), threads=3)


def test_the_first_error_is_raised_once_all_threads_have_ended() -> None:
    running = []

    def work(i: int) -> int:
        running.append(i)
        threading.Event().wait(0.02 if i < 3 else 0)
        running.remove(i)
        if i in (2, 3):
            raise ValueError(f"item {i}")
        return i

    for threads in (1, 2, 4):
        with pytest.raises(ValueError, match="item 2"):
            side_by_side(work, range(50), threads)
        assert not running
    assert side_by_side(work, [0, 1], 9) == [0, 1]


def test_an_error_that_is_no_exception_comes_first() -> None:
    def work(i: int) -> None:
        threading.Event().wait(0.02 if i == 0 else 0)
        raise ValueError if i == 0 else KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        side_by_side(work, range(2), 2)


@pytest.mark.plain
def test_an_interrupt_leaves_no_thread_behind() -> None:
    q = sash.Query(time="t", by=["k"], window=sash.sliding(20, 5), select={"a": sash.sum("i")})
    given = table("few", 60)
    right = q.run(given, threads=2)
    with interrupted(0, within="kernels/threads.py") as seen:
        q.run(given, threads=2)
    before, came = threading.active_count(), 0
    for at in range(1, seen[0] + 1, 3):
        try:
            with interrupted(at, within="kernels/threads.py"):  # others may do what was left to do
                q.run(given, threads=2)
        except KeyboardInterrupt:
            came += 1
        assert threading.active_count() == before
    assert came > seen[0] // 10
    assert q.run(given, threads=2).equals(right)


@pytest.mark.plain
def test_an_interrupt_of_the_wait_ends_when_all_threads_have() -> None:
    here, done = threading.get_ident(), []

    def work(item: int) -> None:
        if threading.get_ident() != here:
            alarm.ring(0.05)
            sleep(0.3)
            done.append(item)
        else:
            while not alarm.armed:
                sleep(0.001)

    with alarms(KeyboardInterrupt) as alarm:
        with pytest.raises(KeyboardInterrupt):
            side_by_side(work, [0, 1], 2)
        assert len(done) == 1


def test_a_system_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert side_by_side(abs, [-1, -2, -3], 3) == [1, 2, 3]


# Who else has threads


@pytest.mark.plain
def test_runs_within_threads_and_tasks() -> None:
    q = sash.Query(time="t", by=["k"], window=sash.sliding(20, 5), select={"a": sash.mean("x")})
    given = table("few")
    right, found = q.run(given, threads=1), {}

    def work(i: int) -> None:
        found[i] = q.run(given, threads=3)

    in_threads(3, work)
    assert all(found[i].equals(right) for i in range(3))

    async def both() -> list[pa.Table]:
        run = asyncio.to_thread
        return await asyncio.gather(*(run(q.run, given, threads=2) for _ in range(3)))

    assert all(one.equals(right) for one in asyncio.run(both()))


@pytest.mark.plain
def test_runs_within_runs() -> None:
    """An operator's function that runs a query itself."""
    inner = sash.Query(time="t", by=["k"], window=sash.tumbling(50), select={"n": sash.count()})
    given = table("few", 100)
    rows = inner.run(given, threads=1).num_rows

    def lift(x: int) -> int:
        return int(inner.run(given, threads=2).num_rows)

    own = sash.operator(identity=0, lift=lift, combine=lambda a, b: max(a, b), compile=False)
    q = sash.Query(time="t", window=sash.tumbling(1000), select={"a": sash.aggregate(own, "i")})
    few = given.slice(0, 20).filter(pa.array(given["i"].slice(0, 20).is_valid()))
    assert set(q.run(few, threads=2)["a"].to_pylist()) == {rows}


@pytest.mark.plain
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_after_threads() -> None:
    q = sash.Query(time="t", by=["k"], window=sash.sliding(20, 5), select={"a": sash.sum("i")})
    given = table("few")
    right = q.run(given, threads=2)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if q.run(given, threads=2).equals(right) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# How many


def test_how_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SASH_THREADS", raising=False)
    if hasattr(os, "sched_getaffinity"):
        assert how_many() == len(os.sched_getaffinity(0))
    monkeypatch.setenv("SASH_THREADS", " 3 ")
    assert how_many() == 3
    assert how_many(2) == 2
    assert how_many(np.int64(5)) == 5
    for wrong in ("0", "-1", "two", "1.5", "²"):
        monkeypatch.setenv("SASH_THREADS", wrong)
        with pytest.raises(ValueError, match=f"SASH_THREADS is {wrong!r}; set it to a whole"):
            how_many()
    monkeypatch.setenv("SASH_THREADS", "")
    assert how_many() >= 1


@pytest.mark.parametrize("wrong", [0, -1, "2", True, 2.0, np.bool_(True)])
def test_what_cannot_be_a_number_of_threads(wrong: Any) -> None:
    q = sash.Query(time="t", window=sash.tumbling(5), select={"n": sash.count()})
    with pytest.raises((TypeError, ValueError), match="give a whole number from 1 on, or None"):
        q.run({"t": [1]}, threads=wrong)


def test_a_worker_of_spark_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class TaskContext:
        task: Any = object()

        @classmethod
        def get(cls) -> Any:
            return cls.task

    class Pyspark:
        pass

    fake: Any = Pyspark()
    fake.TaskContext = TaskContext
    monkeypatch.delenv("SASH_THREADS", raising=False)
    monkeypatch.setattr(kernel_threads, "_cores", lambda: 7)
    monkeypatch.setitem(sys.modules, "pyspark", fake)
    assert how_many() == 1
    TaskContext.task = None  # on the driver
    assert how_many() == 7


def in_a_new_process(code: str, *, jit: bool) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env=os.environ | {"SASH_JIT": str(int(jit))},
        check=False,
    )


def test_few_rows_start_no_thread() -> None:
    code = """
        import threading, sash
        started = []
        plain = threading.Thread.start
        threading.Thread.start = lambda self: (started.append(self), plain(self))
        q = sash.Query(time="t", by=["k"], window=sash.tumbling(5), select={"n": sash.count()})
        q.run({"t": list(range(1000)), "k": [i % 7 for i in range(1000)]}, threads=8)
        print(len(started))
    """
    got = in_a_new_process(code, jit=False)
    assert got.stdout.strip() == "0", got.stderr


@pytest.mark.once
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system shows no peaks")
def test_a_run_takes_little_more_memory_than_its_result() -> None:
    """Pieces that are joined are freed on the way, to the system, and so are the windows' numbers
    when their starts and ends are known: they took 0.45 of the result more."""
    code = """
        import re, numpy as np, pyarrow as pa, sash
        def held(what):
            return 1024 * int(re.search(what + r":\\s+(\\d+)", open("/proc/self/status").read())[1])
        def table(rows, keys):
            source = np.random.default_rng(0)
            t = np.sort(source.integers(0, rows // keys * 10**6, rows)).view("M8[us]")
            k = source.integers(0, keys, rows)
            return pa.table({"t": t, "k": k, "x": source.standard_normal(rows)})
        select = {"a": sash.max("x"), "b": sash.mean("x")}
        window = sash.sliding("1 hour", "1 second")
        q = sash.Query(time="t", by=["k"], window=window, select=select)
        q.run(table(100, 2))
        given = table(10**6, 1000)
        before = held("VmRSS")
        found = q.run(given, threads=2)
        print((held("VmHWM") - before) / found.nbytes)
    """
    least, said = float("inf"), ""
    for _ in range(3):  # the peak depends on which pieces are answered side by side
        got = in_a_new_process(code, jit=True)
        least, said = min(least, float(got.stdout or "inf")), got.stderr
        if least < 1.33:
            break
    assert least < 1.33, said


# Where tables are cut


def test_cuts_cover_all_rows_and_groups() -> None:
    source = Random(1)
    for _ in range(200):
        rows = source.choice([0, 1, 15, 16, 31, 32, 33, 1000, 10**6])
        pieces = cut_rows(rows, least=source.choice([0, 40]), most=source.choice([1, 2, 32]))
        ends = [0, *(b for _, b in pieces)]
        assert [a for a, _ in pieces] == ends[:-1]
        assert ends[-1] == rows
        assert len(pieces) == 1 or min(b - a for a, b in pieces) >= 8
        counts = [source.choice([0, 1, 5, 200]) for _ in range(source.randint(1, 60))]
        bounds = np.cumsum([source.choice([0, 9]), *counts])
        ranges = cut_groups(bounds)
        ends = [0, *(b for _, b in ranges)]
        assert [a for a, _ in ranges] == ends[:-1]
        assert ends[-1] == len(counts)
        assert all(a < b for a, b in ranges)


@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_rows_that_are_dealt_to_parts_keep_their_order(width: Any) -> None:
    """Codes and numbers of rows have 32 bits, unless a table is too large for these."""
    source = np.random.default_rng(3)
    codes, part_of = source.integers(0, 40, 300), np.array([0, 0, 1, 1, 1, 3, 3, 4, 4, 4])
    part = part_of[codes >> 2]
    counts = np.bincount(part, minlength=6)
    own, numbers = np.zeros(300, dtype=width), np.zeros(300, dtype=width)
    places = deal(codes, 2, part_of, counts, 1000, own, numbers)
    order = np.argsort(part, kind="stable")
    assert (numbers - 1000).tolist() == order.tolist()
    assert own.tolist() == codes[order].tolist()
    assert places[order].tolist() == list(range(300))
    assert counts_by_key(codes, 10, 2).tolist() == np.bincount(codes >> 2, minlength=10).tolist()
    again = np.zeros(50, dtype=np.int64)
    repeat(codes[:4], np.array([5, 25, 25, 50, 55]), again)
    assert again.tolist() == np.repeat(codes[:4], [20, 0, 25, 5]).tolist()
    for items in (codes, codes / 4, codes.astype(np.uint8)):
        made = np.zeros_like(items)
        put(items, places, made)
        assert made.tolist() == items[order].tolist()


compiled_only = pytest.mark.skipif(not jit_enabled(), reason="about compiled code: SASH_JIT=0")


@compiled_only
@pytest.mark.parametrize(("kind", "new"), [("in time", 0), ("few", 1), ("in order", 1)])
def test_columns_move_into_arrays_that_the_run_needs_no_longer(
    monkeypatch: pytest.MonkeyPatch, kind: str, new: int
) -> None:
    """The columns and times that were put in order of the keys take the answers and the starts: new
    arrays have pages that the system must clear first."""
    made = []

    def noted(count: int, kind: Any) -> Any:
        made.append((count, np.dtype(kind).itemsize))
        return room(count, kind)

    for module in ("engine.driven", "state.frame_answers"):
        monkeypatch.setattr(f"sash.{module}.room", noted)
    select = {"top": sash.max("x"), "mean": sash.mean("x"), "n_": sash.count()}
    q = sash.Query(time="t", by=["c"], window=sash.trailing(9), select=select)
    given = table(kind)
    before = given.to_pylist()
    found = q.run(given, threads=2)
    assert made.count((given.num_rows, 8)) == new
    rows = found.to_pylist()
    q.run(given, threads=2)
    assert given.to_pylist() == before
    assert found.to_pylist() == rows


def test_a_column_that_several_aggregates_read_moves_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting reads the times, which were moved before."""
    made, plain = [], counting_sort.moved

    def noted(items: Any, *rest: Any) -> Any:
        made.append(items.dtype)
        return plain(items, *rest)

    monkeypatch.setattr(counting_sort, "moved", noted)
    monkeypatch.setattr(tables_rows, "moved", noted)
    select = {"top": sash.max("x"), "mean": sash.mean("x"), "n_": sash.count()}
    q = sash.Query(time="t", by=["c"], window=sash.trailing(9), select=select)
    given = table("in time").drop_columns(["x"]).append_column("x", pa.array(np.arange(160) / 4))
    found = q.run(given, threads=2)
    assert made == [np.int64, np.float64]
    check(q, given)
    assert found.column("t") == given.column("t")


#: Rows for all events and for some, with times that are read again after the answers and without.
MOVED = ("trailing", "trailing, delayed", "lifetime, delayed", "rows", "every second row")


@compiled_only
@pytest.mark.parametrize("window", MOVED)
def test_compiled_kernels_of_rows_that_move(window: str) -> None:
    """Answers and starts go into arrays of the rows that were put in order of the keys."""
    some = pc.field("i") >= 0
    select = {"sum": sash.sum("i"), "top": sash.max("x", where=some), "who": sash.first("s")}
    q = sash.Query(time="t", by=["c"], window=WINDOWS[window], select=select)
    for kind in ("in time", "few"):
        check(q, table(kind))


@compiled_only
@pytest.mark.parametrize("window", ["tumbling", "trailing"])
def test_compiled_kernels_in_threads(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits, and both threads are in kernels: no thread is made to release the lock."""
    select = {f"{name}_": chosen for name, chosen in SELECTS["numbers"].items()}
    q = sash.Query(time="t", by=["c"], window=WINDOWS[window], select=select)
    given = {kind: pa.concat_tables([table(kind, 4000)] * 8) for kind in KINDS}
    monkeypatch.setattr(threads_module, "PIECE", 2**10)
    alone = {kind: q.run(given[kind], threads=1) for kind in KINDS}
    seen, plain = set(), threads_module.side_by_side

    def noted(work: Any, items: Any, threads: int) -> list[Any]:
        def one(item: Any) -> Any:
            seen.add(threading.get_ident())
            return work(item)

        return plain(one, items, threads)

    for module in ("engine.parts", "state.places", "state.frame_answers"):
        monkeypatch.setattr(f"sash.{module}.side_by_side", noted)
    before = sys.getswitchinterval()
    sys.setswitchinterval(100)
    try:
        for kind in KINDS:
            assert same_bits(q.run(given[kind], threads=2), alone[kind])
    finally:
        sys.setswitchinterval(before)
    assert len(seen) >= 2
