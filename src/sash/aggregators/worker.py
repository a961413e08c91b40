"""A background thread of a stored window, which runs tasks in order.

There is no thread until it is needed, and it ends when its `Worker` is collected.  `queue.Queue`
would do most of this, but has two ways to hang: its counts are wrong for good if Ctrl-C comes
between two of them, and its lock cannot be taken again by a thread that has it, as happens when a
window is collected while its own thread is at the queue.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable

__all__ = ["Worker"]

Work = Callable[[], None]


class Worker:
    """Does things in order, in the background; at most `most` wait to be done."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._tasks: _Tasks | None = None

    @property
    def full(self) -> bool:
        """True if as many things wait as may."""
        return self._tasks is not None and len(self._tasks.waiting) >= self._most

    def do(self, work: Work) -> None:
        """Have something done; wait if too much is to be done before it."""
        if self._tasks is None:
            tasks = _Tasks()
            weakref.finalize(self, _end, tasks).atexit = False
            threading.Thread(target=_work, args=(tasks,), daemon=True).start()
            self._tasks = tasks  # last: if that is interrupted, the thread waits for its end
        tasks = self._tasks
        with tasks.changed:
            while len(tasks.waiting) >= self._most:
                tasks.changed.wait()
            tasks.waiting.append(work)
            tasks.changed.notify_all()

    def drain(self) -> None:
        """Wait until there is nothing to do."""
        tasks = self._tasks
        if tasks is not None:
            with tasks.changed:
                while tasks.waiting or tasks.working:
                    tasks.changed.wait()


class _Tasks:
    """What a thread is to do; it outlives the `Worker`, which the thread must not keep."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.waiting: deque[Work] = deque()
        self.working = self.ended = False


def _work(tasks: _Tasks) -> None:
    """Do what there is to do, until its end."""
    while True:
        with tasks.changed:
            while not tasks.waiting:
                if tasks.ended:
                    return
                tasks.changed.wait()
            tasks.working = True  # first, so that `drain` never sees neither
            work = tasks.waiting.popleft()
            tasks.changed.notify_all()
        try:
            work()
        finally:
            del work  # which may be the last to hold the window
            with tasks.changed:
                tasks.working = False
                tasks.changed.notify_all()


def _end(tasks: _Tasks) -> None:
    with tasks.changed:
        tasks.ended = True
        tasks.changed.notify_all()
