"""The pages of a stored window on their way: late, on time, and with Ctrl-C in between."""

from __future__ import annotations

import gc
import itertools
import threading
import time
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from sash.aggregators import Amta
from sash.aggregators.pages import Pages
from sash.aggregators.worker import Worker
from sash.stores import MemoryStore, StoreError
from stored_windows import SMALL, SUM
from trouble import interrupted


class Gated(MemoryStore):
    """A store that writes when its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()

    def put_many(self, records: Any) -> None:
        assert self.gate.wait(60)
        super().put_many(records)


@pytest.mark.plain
def test_pages_that_have_left_while_they_waited_are_not_written() -> None:
    store = Gated()
    pages = Pages(store.claim("w"))
    store.gate.clear()
    for page in range(6):
        pages.save((0, page), b"data")
    pages.save((5, 0), b"data")
    pages.first[0] = 4
    store.gate.set()
    pages.flush()
    assert pages.there([(0, 1), (5, 0)]) == [(0, 4), (0, 5), (5, 0)]  # the first was on its way
    pages.close()


@pytest.mark.plain
def test_pages_are_fetched_while_others_are_being_written() -> None:
    store = Gated()
    pages = Pages(store.claim("w"))
    pages.save((0, 0), b"data")
    pages.flush()
    store.gate.clear()
    pages.save((0, 9), b"more")
    calls = pages.calls
    pages.fetch([(0, 0)])
    pages._fetcher.drain()
    assert pages._written, "nothing was written meanwhile"
    done = pages.calls
    assert [bytes(data) for data in pages.load([(0, 0), (0, 9)])] == [b"data", b"more"]
    assert pages.calls == done <= calls + 2
    store.gate.set()
    pages.close()


class Late(MemoryStore):
    """A store that answers threads in the background when its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.asked = threading.Event(), threading.Event()

    def get_many(self, keys: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            self.asked.set()
            assert self.gate.wait(60)
        return super().get_many(keys)


@pytest.mark.plain
def test_pages_that_are_fetched_too_late_are_not_kept() -> None:
    store = Late()
    pages = Pages(store.claim("w"))
    for page in range(3):
        pages.save((0, page), b"data")
    pages.flush()
    pages.fetch([(0, 0), (0, 1)])
    assert store.asked.wait(60)
    pages.load([(0, 0)])  # which cannot wait
    store.gate.set()
    pages.drain()
    assert list(pages._fetched) == [(0, 1)]
    store.asked.clear()
    store.gate.clear()
    pages.fetch([(0, 2)])
    assert store.asked.wait(60)
    pages.forget_fetched()
    store.gate.set()
    pages.drain()
    assert not pages._fetched
    pages.close()


# Ctrl-C


@pytest.mark.plain
def test_a_deletion_that_is_interrupted_is_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C may come while the thread's queue is full, before it has what is to be deleted."""
    store = MemoryStore()
    window = Amta(SUM, store=store, name="w", **SMALL)
    window.slide(range(2000), 100)
    window.sync()
    window.slide(range(2000), 100)
    do, calls = Worker.do, 0

    def interrupted(worker: Worker, work: Any) -> None:
        nonlocal calls
        calls += 1
        raise KeyboardInterrupt

    window._pages.flush()  # type: ignore[attr-defined]
    monkeypatch.setattr(Worker, "do", interrupted)
    with pytest.raises(KeyboardInterrupt):
        window.sync()
    assert calls == 1
    monkeypatch.setattr(Worker, "do", do)
    window.sync()
    window._pages.drain()  # type: ignore[attr-defined]
    assert len(list(store.scan(b"q"))) <= 2 * 100 // 8 + 20
    assert window.query() == sum(range(1900, 2000))


@pytest.mark.plain
def test_pages_whose_writing_is_interrupted_are_in_the_next_sync(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C may come before the thread has been asked to write."""
    do, left = Worker.do, 0

    def interrupted(worker: Worker, work: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt
        do(worker, work)

    monkeypatch.setattr(Worker, "do", interrupted)
    for at in range(1, 8):
        store, left = MemoryStore(), at
        window = Amta(SUM, store=store, name="w", **SMALL)
        for _ in range(120):
            with suppress(KeyboardInterrupt):
                window.insert(len(window))
        assert left < 0
        total = sum(range(len(window)))
        window.sync()
        window.release()
        window = Amta.open(store, "w")  # type: ignore[assignment]
        window._check()
        assert window.query() == total


@pytest.mark.plain
@pytest.mark.parametrize("within", ["aggregators/pages", "aggregators/worker"])
def test_a_release_that_is_interrupted_can_be_called_again(within: str) -> None:
    store, wanted = MemoryStore(), 0
    for at in itertools.count(1):
        window = Amta(SUM, store=store, name=f"w{at}", **SMALL)
        for i in range(60):
            window.insert(i)
        try:
            with interrupted(at, within):
                window.release()
        except KeyboardInterrupt:
            with pytest.raises((StoreError, RuntimeError), match="let go of"):
                window.insert(3)
            window.release()
            wanted += 1
        else:
            break
        finally:
            assert len(Amta(SUM, store=store, name=f"w{at}")) == 0
    assert wanted > 3


@pytest.mark.plain
def test_a_worker_that_is_interrupted_does_all_else_in_order() -> None:
    """Ctrl-C at any line: what is asked for is done or not, and what comes after it is done."""
    for at in itertools.count(1):
        worker, done = Worker(2), list[int]()
        last = 0
        try:
            with interrupted(at, "aggregators/worker"):
                for last in range(6):
                    worker.do(partial(done.append, last))
                worker.drain()
        except KeyboardInterrupt:
            pass
        else:
            break
        for number in range(10, 15):
            worker.do(partial(done.append, number))
        worker.drain()
        first = [number for number in done if number < 10]
        assert first in ([*range(last)], [*range(last + 1)])
        assert done == [*first, *range(10, 15)]
    assert at > 20


class Owner:
    """A window that is collected as its own thread finishes something for it."""

    def __init__(self) -> None:
        self.worker, self.me = Worker(2), self
        self.worker.do(partial(time.sleep, 0.01))


@pytest.mark.plain
@pytest.mark.usefixtures("only_new")
def test_a_thread_ends_when_its_window_is_collected() -> None:
    before = threading.active_count()
    for _ in range(20):
        Owner()
    for _ in range(200):
        gc.collect()
        if threading.active_count() <= before:
            break
        time.sleep(0.01)
    assert threading.active_count() <= before
    worker = Worker(2)
    worker.do(partial(time.sleep, 0))
    tasks = worker._tasks
    assert tasks is not None
    with tasks.changed:  # as the window's own thread may have it when the window goes
        del worker
        assert tasks.ended
