"""Streams in anyone's hands: threads, functions that call back, forks, errors at any point."""

from __future__ import annotations

import asyncio
import copy
import os
import random
import signal
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import sash
from sash.engine.failures import CombineFailed
from sash.testing.stored import open_stream
from trouble import Trap, alarms, in_threads, interrupted, refusal

STATES = ("memory", "tiles")
COUNT = {"n": sash.count()}


def query(trap: Trap, **more: Any) -> sash.Query:
    """The values of a window as a list: what is lost, doubled or out of order shows."""

    def lift(x: int) -> tuple[int, ...]:
        trap()
        return (x,)

    def combine(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
        trap()
        return tuple(sorted(a + b))

    def lower(a: tuple[int, ...]) -> list[int]:
        trap()
        return list(a)

    listing = sash.operator(
        identity=(),
        lift=lift,
        combine=combine,
        lower=lower,
        commutative=True,
        compile=False,
        name="listing",
        encode=lambda a: repr(a).encode(),
        decode=lambda b: tuple(eval(b)),
    )
    values = sash.aggregate(listing, "v", returns=pa.list_(pa.int64()))
    return sash.Query(
        time="t", by=["k"], window=sash.sliding(30, 10), select={"v": values, **COUNT}, **more
    )


def batches() -> list[pa.Table]:
    """Five, of which the third closes windows, is late in part, and brings a new key."""
    times = [[1, 12, 14], [22, 25, 31], [33, 3, 61, 47, 15], [64, 66], [91, 95]]
    keys = ["aba", "aba", "abcca", "ab", "ca"]
    source = iter(range(100))
    return [
        pa.table({"t": t, "k": list(k), "v": [next(source) for _ in t]})
        for t, k in zip(times, keys, strict=True)
    ]


def opened(state: str, trap: Trap, mode: str, emit: str) -> Any:
    return open_stream(state, query(trap, emit=emit), lateness=15, mode=mode)


def outputs(state: str, mode: str, emit: str, *, without: bool) -> list[Any]:
    """What the batches after the third give, and the close, with the third or without it."""
    s = opened(state, Trap(), mode, emit)
    first, second, third, *rest = batches()
    for batch in [first, second] + ([] if without else [third]):
        s.push(batch)
    return [*(s.push(batch) for batch in rest), s.close()]


def pushed(s: Any, batch: pa.Table) -> tuple[list[Any], str]:
    """What a batch gives, or why it is refused."""
    found: list[Any] = []
    return found, refusal(lambda: found.append(s.push(batch)))


def judge(s: Any, before: dict[str, int], reference: list[Any]) -> bool:
    """Whether the third batch is wholly out, and all goes on; else the stream refuses all calls."""
    assert s.counts == before
    *_, fourth, fifth = batches()
    found, why = pushed(s, fourth)
    if why:
        uses = (s.close, s.to_bytes, lambda: s.push(fifth), lambda: s.query("a"))
        assert {why, *map(refusal, uses)} == {"not sound"}
        assert s.counts == before
        return False
    s._check()
    assert [*found, s.push(fifth), s.close()] == reference
    return True


CASES = [(s, m, "all") for s in STATES for m in ("final", "live")] + [
    ("memory", "final", "changes")
]


@pytest.mark.parametrize(("state", "mode", "emit"), CASES)
def test_an_operator_that_raises_at_any_call(state: str, mode: str, emit: str) -> None:
    reference = outputs(state, mode, emit, without=True)
    trap = Trap()
    s = opened(state, trap, mode, emit)
    first, second, third, *_ = batches()
    s.push(first), s.push(second)
    trap.calls = 0
    s.push(third)
    calls, found = trap.calls, set()
    for n in range(calls):
        for error in (ValueError, KeyboardInterrupt):
            s = opened(state, trap, mode, emit)
            s.push(first), s.push(second)
            before, late = s.counts, len(s.late)
            trap.after, trap.error = n, error
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    s.push(third)
            except error:
                found.add(judge(s, before, reference))
            except CombineFailed as failed:
                said = ["cannot be used any more", "was not inserted"]
                found.add(sound := judge(s, before, reference))
                if [text in str(failed) for text in said] != [not sound, sound]:
                    raise
            else:  # a row whose value `lift` refuses is late; an answer that raises is null
                assert error is ValueError
                assert s.counts["rows"] == before["rows"] + third.num_rows
                assert s.counts["late"] <= len(s.late) <= late + third.num_rows
            trap.after = None
    assert found == ({True, False} if state == "memory" else {True})


@pytest.mark.parametrize(("state", "mode", "emit"), CASES)
def test_an_interrupt_at_any_line(state: str, mode: str, emit: str) -> None:
    """Also where the batch is committed, and where its result is made."""
    reference, source = outputs(state, mode, emit, without=True), random.Random(state + mode)
    first, second, third, *_ = batches()

    def fed() -> Any:
        s = opened(state, Trap(), mode, emit)
        s.push(first), s.push(second)
        return s

    for _ in range(2):  # the second time nothing is made for the first time
        s = fed()
        with interrupted(0) as lines:
            s.push(third)
    total = lines[0]
    points = {*source.sample(range(1, total), 40), *range(max(1, total - 80), total - 3, 2)}
    found = set()
    for n in sorted(points):
        s = fed()
        before = s.counts
        with pytest.raises(KeyboardInterrupt), interrupted(n):
            s.push(third)
        found.add(judge(s, before, reference) if s.counts == before else late_in_push(s))
    assert found == {True, False}


def late_in_push(s: Any) -> bool:
    """The batch was written, and its result was lost: the stream refuses further use."""
    assert s.counts["rows"] == 11
    with pytest.raises(RuntimeError, match="not sound any more"):
        s.push(batches()[3])
    return False


def test_signals_at_random() -> None:
    """On a compiled stream; counts say what is in, or the stream refuses further use."""
    q = sash.Query(
        time="t", by=["k"], window=sash.sliding(30, 10), select={"s": sash.sum("v"), **COUNT}
    )
    made = [
        pa.table({"t": [10 * i, 10 * i + 3, 10 * i - 7], "k": [1, 2, 1], "v": [i, 2, 3]})
        for i in range(41)
    ]

    reference = [q.stream(lateness=20)]
    results = [reference[0].push(b) for b in made]
    hits, source = 0, random.Random(9)
    with alarms(KeyboardInterrupt) as alarm:
        for _ in range(60):
            s, i = q.stream(lateness=20), 0
            s.push(made[0])  # which loads kernels: numba's lock does not survive an interrupt
            try:
                alarm.ring(source.uniform(1e-4, 2e-2))
                for i in range(1, len(made) - 1):
                    s.push(made[i])
                alarm.rest()
                continue
            except KeyboardInterrupt:
                alarm.rest()
                hits += 1
            there = s.counts["rows"]
            assert there % 3 == 0
            assert there in (3 * i, 3 * i + 3)
            again, why = pushed(s, made[there // 3])
            if why:
                assert why == "not sound"
                continue
            assert again == [results[there // 3]]
            s._check()
    assert hits > 5


@pytest.mark.parametrize("state", STATES)
def test_threads_share_a_stream(state: str) -> None:
    q = sash.Query(time="t", window=sash.tumbling(10), select={"s": sash.sum("v"), **COUNT})
    s = open_stream(state, q, lateness=10**6)
    errors: list[BaseException] = []

    def work(me: int) -> None:
        try:
            for i in range(15):
                s.push(pa.table({"t": [i, 10 + me, 20 + i], "v": [1, me, i]}))
                counts = s.counts
                assert counts["rows"] == counts["counted"]
                s.state_size(), s.late, s.watermark
        except BaseException as error:
            errors.append(error)

    in_threads(4, work)
    assert not errors
    assert s.counts["rows"] == 4 * 15 * 3
    found = s.close()
    assert pa.compute.sum(found["n"]).as_py() == 180
    assert pa.compute.sum(found["s"]).as_py() == 60 + 15 * (0 + 1 + 2 + 3) + 4 * sum(range(15))


def test_asyncio_threads_share_a_stream() -> None:
    s = sash.Query(time="t", window=sash.tumbling(10), select=COUNT).stream(lateness=100)

    async def all_of_them() -> None:
        await asyncio.gather(*(asyncio.to_thread(s.push, {"t": i}) for i in range(20)))

    asyncio.run(all_of_them())
    assert (s.counts["rows"], s.close()["n"].to_pylist()) == (20, [10, 10])


@pytest.mark.parametrize("state", STATES)
def test_a_function_that_calls_back_is_refused(state: str) -> None:
    """It would wait for itself; a reader of counts need not wait."""
    trap, refused = Trap(), []
    s = opened(state, trap, "final", "all")
    s.push(batches()[0])
    for use in (
        lambda: s.push(batches()[1]),
        s.close,
        s.to_bytes,
        s.take_late,
        lambda: s.query("a"),
    ):

        def back(use: Callable[[], Any] = use) -> None:
            try:
                assert s.counts["rows"] >= 3
                use()
            except sash.InUse as error:
                refused.append(str(error))

        trap.act = back
        s.push(pa.table({"t": [14], "k": ["a"], "v": [7]}))
    assert len(refused) == 5
    assert "in the middle of a call" in refused[0]
    assert s.counts["rows"] == 8


def test_a_child_process_uses_its_copy() -> None:
    """One that was idle at the fork works; one that another thread was using is refused, and its
    lock does not stop the child."""
    there, go, trap = threading.Event(), threading.Event(), Trap()
    idle = sash.Query(time="t", window=sash.tumbling(10), select=COUNT).stream()
    idle.push({"t": 3})
    busy = opened("memory", trap, "final", "all")

    def wait() -> None:
        there.set()
        assert go.wait(20)

    trap.act = wait
    thread = threading.Thread(target=busy.push, args=(batches()[0],))
    thread.start()
    assert there.wait(20)
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.alarm(20)
            try:
                busy.push(batches()[1])
            except RuntimeError as error:
                good = "fork" in str(error) and idle.push({"t": 15}).num_rows == 1
                code = 0 if good else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    go.set()
    thread.join(20)
    assert os.waitstatus_to_exitcode(status) == 0
    assert busy.counts["rows"] == 3


def test_a_warning_that_is_an_error_leaves_the_batch_in() -> None:
    q = sash.Query(time="t", window=sash.tumbling(10), select={"s": sash.sum("v"), **COUNT})
    s = q.stream()
    s.push({"t": [1, 2], "v": [2**63 - 1, 1]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="no answer"):
            s.push({"t": [11], "v": [1]})
    assert s.counts["rows"] == 3
    assert s.close()["s"].to_pylist() == [1]


def test_a_store_that_fails_halfway_ends_the_stream() -> None:
    s = open_stream("tiles", query(Trap()), lateness=15)
    s.push(batches()[0])
    put = s.store.put_many

    def half(records: Any) -> None:
        put(dict(list(records.items())[:1]))
        raise OSError("no connection")

    s.store.put_many = half
    with pytest.raises(OSError, match="no connection"):
        s.push(batches()[1])
    s.store.put_many = put
    with pytest.raises(RuntimeError, match=r"OSError stopped this stream.*not sound any more"):
        s.push(batches()[1])


def test_turns_of_a_copy_are_its_own() -> None:
    s = sash.Query(time="t", window=sash.tumbling(10), select=COUNT).stream()
    other = copy.deepcopy(s)
    s._turns.changing = True
    with s._turns.lock:
        assert other.push({"t": 3}).num_rows == 0
    assert s.counts["rows"] == 0
