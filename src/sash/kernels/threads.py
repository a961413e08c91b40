"""Runs work in several threads.

Threads live no longer than a call of `side_by_side`, and the calling thread is one of them.  There
is no pool: so no call waits for a pool that other calls have filled, a forked process inherits no
pool without its threads, and no thread is left when a call raises.  To start a thread takes 0.1 ms.
Compiled kernels, numpy and Arrow release the interpreter's lock while they run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from threading import Thread, get_ident
from time import sleep
from typing import Any, TypeVar

import numpy as np

__all__ = ["caller", "how_many", "side_by_side"]

I = TypeVar("I")  # noqa: E741
R = TypeVar("R")

_CALLER: ContextVar[int] = ContextVar("caller")  # set in threads that `side_by_side` starts


def caller() -> int:
    """The thread on whose behalf this thread runs: in a thread that `side_by_side` started, the
    thread that called it; else this thread itself.

    >>> len({caller(), *side_by_side(lambda _: caller(), range(4), threads=2)})
    1
    """
    return _CALLER.get(None) or get_ident()


def how_many(threads: Any = None) -> int:
    """How many threads to use: as many as the caller says, or else the environment variable
    SASH_THREADS, or else one for each core that this process may use.  A Python worker of Spark
    gets one, because Spark starts a task for each core.

    >>> how_many(3)
    3
    >>> how_many(0)
    Traceback (most recent call last):
    ...
    ValueError: threads is 0; give a whole number from 1 on, or None for all cores
    """
    if threads is not None:
        if isinstance(threads, bool) or not isinstance(threads, int | np.integer):
            raise TypeError(
                f"threads is {threads!r}; give a whole number from 1 on, or None for all cores"
            )
        if threads < 1:
            raise ValueError(
                f"threads is {threads}; give a whole number from 1 on, or None for all cores"
            )
        return int(threads)
    said = os.environ.get("SASH_THREADS", "").strip()
    if said:
        if not said.isascii() or not said.isdigit() or int(said) < 1:
            raise ValueError(
                f"the environment variable SASH_THREADS is {said!r}; set it to a whole number from "
                "1 on, or leave it out to use all cores"
            )
        return int(said)
    return 1 if _in_spark_task() else _cores()


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _in_spark_task() -> bool:
    """True in a Python worker of Spark that runs a task."""
    context = getattr(sys.modules.get("pyspark"), "TaskContext", None)
    return context is not None and context.get() is not None


def side_by_side(work: Callable[[I], R], items: Sequence[I], threads: int) -> list[R]:
    """Call `work` on each item, in so many threads, and return the results in the order of items.

    If `work` raises, the other threads finish the items on which they work, and then the call
    raises the error of the first item that has one, as a loop would.

    >>> side_by_side(abs, [-3, 5, -1], threads=2)
    [3, 5, 1]
    """
    helpers = min(threads, len(items)) - 1
    if helpers < 1:
        return [work(item) for item in items]
    found: list[Any] = [None] * len(items)
    failed: dict[int, BaseException] = {}
    stop: list[bool] = []
    serving: set[int] = set()  # the threads that may be at work
    numbers = iter(range(len(items)))  # each number goes to one thread

    def serve() -> None:
        while not (failed or stop):
            # threads take items in order and finish them: so every item before a failed one is done
            i = next(numbers, None)
            if i is None:
                return
            try:
                found[i] = work(items[i])
            except BaseException as error:
                failed[i] = error

    whom = caller()

    def help_out() -> None:
        _CALLER.set(whom)
        serving.add(get_ident())
        try:
            serve()
        finally:
            serving.discard(get_ident())

    made = [Thread(target=copy_context().run, args=(help_out,)) for _ in range(helpers)]
    try:
        for thread in made:
            try:
                thread.start()
            except RuntimeError:  # the system gives no more threads
                break
        serve()
        _join(made, serving)
    except BaseException:  # Ctrl-C can come at any step, also of the wait
        stop.append(True)
        _join(made, serving)
        raise
    for error in failed.values():
        if not isinstance(error, Exception):  # Ctrl-C, say
            raise error
    if failed:
        raise failed[min(failed)]
    return found


def _join(threads: list[Thread], serving: set[int]) -> None:
    """Wait for all threads.  If a signal's handler raises meanwhile, raise its error afterwards."""
    late: BaseException | None = None
    for thread in threads:
        while thread.ident is not None and thread.is_alive():
            try:
                thread.join()
            except BaseException as error:
                late = error
    # before Python 3.13, a `join` that is interrupted takes the thread for ended
    while serving and not serving.isdisjoint(sys._current_frames()):
        try:
            sleep(0.001)
        except BaseException as error:
            late = error
    if late is not None:
        raise late
