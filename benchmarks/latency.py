"""Single operations, called from Python as a service would: the worst of every class; and what
memory without pauses costs a round."""

from __future__ import annotations

import gc
import time
from array import array
from collections.abc import Callable
from functools import cache, partial
from itertools import repeat
from typing import Any

import numpy as np

from sash import aggregators, operators
from sash.aggregators import BTree, DabaLite, Fiba, Reactive, Recalc, Timed, TwoStacksLite
from sash.aggregators.in_order import InOrder

from .processes import setting
from .workload import Bound, Contender, Workload

__all__ = ["in_words", "latency"]

SLOWLY = 100_000  # rounds
MANY = 500_000
RUNS = 2
PAUSE = Bound(100e-6)  # seconds
#: These promise that no single operation waits for the memory of all others.
STEADY = {"Daba", "DabaLite", "SubtractOnEvict", "Fiba", "BTree", "Timed(DabaLite)"}
STDDEV, COUNT, SUM = operators.stddev.of(float), operators.count.of(float), operators.sum.of(float)


def in_words(size: int) -> str:
    return f"{size:,}" if size < 1 << 18 else f"2^{size.bit_length() - 1}"


def latency(n: int, rounds: Callable[..., Any]) -> list[Workload]:
    """Rounds on full windows of n, which `rounds` makes; windows that grow to n and shrink."""
    return [_rounds(n, rounds), _growing(n), _spans(n, rounds)]


def _rounds(n: int, rounds: Callable[..., Any]) -> Workload:
    """The time of each round, by the clock."""

    def run(make: Callable[[], Any], distance: int) -> list[float]:
        _one_by_one(rounds(make, 1 << 12, min(distance, 1 << 11)), 2000)
        nanoseconds = _one_by_one(rounds(make, n, distance), SLOWLY)
        return [*(np.percentile(nanoseconds, [50, 99.9]) / 1e9), nanoseconds.max() / 1e9]

    made = {
        "Fiba": (lambda: Fiba(SUM), (0, 1024, 1 << 16)),
        "BTree": (lambda: BTree(SUM), (0, 1024, 1 << 16)),
        "Timed(DabaLite)": (lambda: Timed(DabaLite(SUM)), (0,)),
        "Timed(TwoStacksLite)": (lambda: Timed(TwoStacksLite(SUM)), (0,)),
    }
    return Workload(
        name="latency",
        title=f"sum of float64 in a window of {in_words(n)}, {SLOWLY:,} single rounds from Python "
        "(evict the oldest, insert at a distance, query), from a window just filled",
        unit="round",
        columns=("median", "99.9th percentile", "max"),
        ours={
            f"{name}, distance {in_words(d)}": Contender(run=lambda make=make, d=d: run(make, d))
            for name, (make, distances) in made.items()
            for d in distances
        },
        peers={},
    )


def _one_by_one(rounds: Any, many: int) -> Any:
    """Nanoseconds of each of so many rounds."""
    window, took, clock = rounds.window, np.empty(many, dtype=np.int64), time.perf_counter_ns
    insert, evict, query = window.insert, window.evict, window.query
    for i, at in enumerate(rounds.next_times(many).tolist()):
        start = clock()
        evict(i)
        insert(at, 1.5)
        query()
        took[i] = clock() - start
    return took


def _growing(n: int) -> Workload:
    """The worst single insertion and eviction of every class.

    Times are of the processor.  What is sash's own doing comes at the same operation in each run,
    so each operation has its best time of all runs; classes without a bound have one run.
    """
    made: dict[str, Callable[[], Any]] = {
        kind.__name__: lambda kind=kind: kind(COUNT if kind.__name__ in ONE_COUNT else STDDEV)
        for kind in (getattr(aggregators, name) for name in aggregators.__all__)
        if isinstance(kind, type) and issubclass(kind, InOrder) and kind not in (InOrder, Recalc)
    }
    made |= {kind.__name__: lambda kind=kind: kind(STDDEV) for kind in (Fiba, BTree, Reactive)}
    made["Timed(DabaLite)"] = lambda: Timed(DabaLite(STDDEV))
    return Workload(
        name="latency-growing",
        title=f"stddev of float64 (SubtractOnEvict: count), a window that grows to {in_words(n)} "
        "by single insertions from Python and shrinks again: in processor time, each operation "
        f"the best of {RUNS} runs where there is a bound",
        unit="operation",
        columns=("worst insertion", "median insertion", "worst eviction", "median eviction"),
        ours={
            name: Contender(
                run=lambda make=make, runs=RUNS if name in STEADY else 1: _worst(make, n, runs),
                bounds=(PAUSE,) if name in STEADY else (),
            )
            for name, make in made.items()
        },
        peers={},
    )


def _spans(n: int, rounds: Callable[..., Any]) -> Workload:
    """Rounds on memory that grows where it is, beside memory that is copied when it grows."""
    made: dict[str, Callable[[], Any]] = {
        "DabaLite": lambda: _Full(lambda: DabaLite(STDDEV), n),
        "Daba": lambda: _Full(lambda: aggregators.Daba(STDDEV), n),
        "Fiba": lambda: rounds(lambda: Fiba(STDDEV), n, 0),
    }
    held = {(name, spans): make() for name, make in made.items() for spans in (1, 0)}

    def run(name: str, spans: int) -> Any:
        with setting("SASH_SPANS", spans):
            return held[name, spans].run(MANY)

    def release() -> None:
        for each in held.values():
            each.release()

    peers = {name: f"{name}, copied" for name in made}
    return Workload(
        name="latency-spans",
        title=f"stddev of float64, a round on a window of {in_words(n)} in memory that grows where "
        "it is (SASH_SPANS=1), beside memory that is copied (0)",
        unit="round",
        units=MANY,
        ours={
            name: Contender(
                run=partial(run, name, 1),
                bounds=(Bound(1.05, peer, or_equal=True),),
                peer=peer,
            )
            for name, peer in peers.items()
        },
        peers={peer: Contender(run=partial(run, name, 0)) for name, peer in peers.items()},
        release=release,
    )


class _Full:
    """A full window in order, filled when it is first needed, and rounds on it."""

    def __init__(self, make: Callable[[], Any], n: int) -> None:
        self._make, self._n = make, n
        self._window: Any = None

    def run(self, rounds: int) -> Any:
        x = _values(rounds)
        if self._window is None:
            self._window = self._make()
            for _ in range(-(-self._n // rounds)):
                self._window.slide(x, self._n)
        return self._window.slide(x, self._n)

    def release(self) -> None:
        self._window = None


@cache
def _values(n: int) -> Any:
    return np.random.default_rng(0).standard_normal(n)


ONE_COUNT = ("SubtractOnEvict",)  # needs an inverse, which a stddev has not


def _worst(make: Callable[[], Any], n: int, runs: int) -> list[float]:
    """Worst and median insertion, worst and median eviction, in seconds."""
    _grow_and_shrink(make(), 100)
    best = _grow_and_shrink(make(), n)
    for _ in range(runs - 1):
        best = np.minimum(best, _grow_and_shrink(make(), n))
    return [float(f(row)) / 1e9 for row in best for f in (np.max, np.median)]


def _grow_and_shrink(window: Any, n: int) -> Any:
    """Nanoseconds of n insertions and of as many evictions."""
    took = array("q"), array("q")  # in which no int is kept, so Python gets no memory meanwhile
    clock = time.thread_time_ns
    insert, evict, timed = window.insert, window.evict, not isinstance(window, InOrder)
    if not timed:  # so that the window does not start where its memory does
        for _ in range(1000):
            insert(1.5)
        for _ in range(1000):
            evict()
    collects = gc.isenabled()
    gc.disable()
    try:
        for add, operation, given in (
            (took[0].append, insert, (1.5,)),
            (took[1].append, evict, ()),
        ):
            for arguments in ((i, *given) for i in range(n)) if timed else repeat(given, n):
                start = clock()
                operation(*arguments)
                add(clock() - start)
    finally:
        if collects:
            gc.enable()
    return np.array(took)
