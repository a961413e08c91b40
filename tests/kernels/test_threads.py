"""Compiled kernels release the interpreter's lock: other threads go on meanwhile."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sash
from sash import operators as ops
from sash.aggregators import Fiba, TwoStacksLite
from sash.kernels.core import make_core
from sash.kernels.program import jit_enabled
from sash.state.forest_kernel import forest_kernel
from trouble import in_threads

compiled_only = pytest.mark.skipif(not jit_enabled(), reason="about compiled code: SASH_JIT=0")

VALUES = np.random.default_rng(0).integers(-9, 9, 3_000_000)
VALUES[0] = 2**62  # so that sums take all their words


def total() -> TwoStacksLite:
    return TwoStacksLite(ops.sum.of(int))


def around(window: Any, entry: str, act: Callable[[Callable[[], Any]], Any]) -> None:
    """Have each call of a kernel's entry done by `act`."""
    run = window._core.run
    plain = getattr(run, entry)
    changed = SimpleNamespace(**{n: getattr(run, n) for n in window._core.kernel.entries})
    setattr(changed, entry, lambda *given: act(lambda: plain(*given)))
    window._core.run = changed


@contextmanager
def a_counting_thread() -> Iterator[list[int]]:
    """A thread that counts whenever the lock is free.  No thread is made to release it: it counts
    only while others do so of themselves."""
    turns, done = [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            turns[0] += 1
            time.sleep(1e-4)

    before = sys.getswitchinterval()
    sys.setswitchinterval(100)
    thread = threading.Thread(target=count)
    thread.start()
    try:
        yield turns
    finally:
        done.set()
        sys.setswitchinterval(before)
        thread.join(20)


@compiled_only
def test_python_code_runs_while_a_kernel_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SASH_THREADS", "1")  # one call for all rows
    window, counted = total(), []
    window.slide(VALUES[:10], 7)  # compiles

    with a_counting_thread() as turns:

        def act(call: Callable[[], Any]) -> Any:
            before = turns[0]
            found = call()
            counted.append(turns[0] - before)
            return found

        around(window, "slide", act)
        window.slide(VALUES, 7)
    assert max(counted) > 3, counted


@compiled_only
def test_single_operations_keep_the_lock() -> None:
    """To release it costs as much as some of them take."""
    run = total()._core.run
    kept = {name for name in ("insert", "evict", "ask", "slide") if not _releases(run, name)}
    assert kept == {"insert", "evict", "ask"}
    assert _releases(Fiba(ops.sum.of(int))._core.run, "bulk_insert")
    forest = make_core(forest_kernel(4), ops.sum.of(int), 64)
    assert _releases(forest.run, "step")


def _releases(run: Any, name: str) -> bool:
    return bool(getattr(run, name).targetoptions.get("nogil"))


@compiled_only
def test_operators_held_in_memory_release_it_too() -> None:
    table = np.arange(8)
    op = sash.operator(identity=0, lift=lambda x: table[x & 7], combine=lambda a, b: a + b)
    run = TwoStacksLite(op.of(int))._core.run
    assert _releases(run, "slide")
    assert not _releases(run, "insert")


def test_different_windows_run_side_by_side() -> None:
    rows = len(VALUES) if jit_enabled() else 300
    found: dict[int, Any] = {}

    def work(i: int) -> None:
        found[i] = total().slide(VALUES[: rows - i], 100 + i)

    in_threads(4, work)
    for i in range(4):
        sums = np.concatenate([[0], np.cumsum(VALUES[: rows - i])])
        starts = np.maximum(np.arange(rows - i) - (99 + i), 0)
        assert (found[i] == sums[1:] - sums[starts]).all()


@compiled_only
def test_a_window_in_a_kernel_refuses_other_threads() -> None:
    window, refused = total(), []
    window.slide(VALUES[:10], 7)
    inside, looked = threading.Event(), threading.Event()

    def act(call: Callable[[], Any]) -> Any:
        inside.set()
        looked.wait(20)
        return call()

    around(window, "slide", act)

    def intrude() -> None:
        inside.wait(20)
        for use in (window.query, window.evict, lambda: window.insert(1), lambda: len(window)):
            with pytest.raises(sash.InUse):
                use()
            refused.append(use)
        looked.set()

    thread = threading.Thread(target=intrude)
    thread.start()
    window.slide(VALUES, 7)
    thread.join(20)
    assert len(refused) == 4
    assert window.query() == VALUES[-7:].sum()


def test_errors_come_out_of_kernels_in_threads() -> None:
    """Plain errors, errors with values in them, errors of sums: each in its own thread."""

    def picky(x: int) -> int:
        if x > 90:
            raise ValueError(f"{x} is too much")
        return x

    op = sash.operator(identity=0, lift=picky, combine=lambda a, b: a + b, name="picky")
    values, most = np.arange(200), np.full(40, 2**62)
    said: dict[int, list[str]] = {i: [] for i in range(4)}

    def work(i: int) -> None:
        for _ in range(20 if jit_enabled() else 1):
            try:
                if i % 2:
                    TwoStacksLite(op.of(int)).slide(values, 5)
                else:
                    total().slide(most, 3)
            except (ValueError, OverflowError) as error:
                said[i].append(str(error))

    in_threads(4, work)
    for i in range(4):
        assert len(said[i]) == (20 if jit_enabled() else 1)
        assert len(set(said[i])) == 1
        assert ("91 is too much" if i % 2 else "row 1:") in said[i][0]


@compiled_only
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_while_a_kernel_runs() -> None:
    """The child has a window that is half changed, which it refuses, and can use all others."""
    busy, idle = total(), total()
    idle.slide(VALUES[:10], 7)
    inside, codes = threading.Event(), []

    def act(call: Callable[[], Any]) -> Any:
        inside.set()
        return call()

    busy.slide(VALUES[:10], 7)
    around(busy, "slide", act)
    thread = threading.Thread(target=lambda: [busy.slide(VALUES, 7) for _ in range(20)])
    thread.start()
    inside.wait(20)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            right = idle.query() == VALUES[3:10].sum()
            try:
                busy.query()
            except sash.InUse:
                code = 0 if right else 2
        finally:
            os._exit(code)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    thread.join(60)
    assert codes == [0]
