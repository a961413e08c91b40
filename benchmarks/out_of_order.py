"""Workloads out of order: the finger B-tree and what it is compared with."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import bottleneck
import numpy as np

from sash import operators
from sash.aggregators import (
    BTree,
    Cbix,
    Fiba,
    Reactive,
)
from sash.aggregators.nodes import TOP
from sash.kernels.slots import CAPACITY

from .baselines import FlatFatInPlace, TwoStacksRecomputed
from .latency import in_words, latency
from .processes import first_timed_slide
from .workload import Bound, Contender, Workload

__all__ = ["out_of_order"]

FULL, QUICK = 1 << 22, 1 << 18
#: How far behind the youngest a round inserts, and how many times bottleneck's rolling maximum it
#: may take.
BOUNDS = {0: 4.0, 16: 5.5, 1024: 10.0, 1 << 16: 14.0, 1 << 20: 13.0}
YARDSTICK = "bottleneck"
ROUNDS = 500_000
HIGH = 1 << 50  # times of the younger block; no other comes near them
BATCH, BATCHES = 1000, 100
FAR = 1 << 16
MANY = 1 << 40  # a count that evicts nothing
OPERATORS = {"sum": operators.sum.of(float), "max": operators.max.of(float)}


def out_of_order(x: Any, *, quick: bool) -> list[Workload]:
    """All of them.  `x` is what the yardstick takes."""
    n = QUICK if quick else FULL
    return [
        *(_distances(which, n, x) for which in OPERATORS),
        _arities(n),
        _bloom(1 << 10 if quick else 1 << 14),
        _against_b_tree(n),
        _bulk_evict(n),
        _bulk_insert(n),
        *latency(n, Rounds),
        _memory(n),
        _first_use(),
        *(_late(size) for size in (1 << 10, 1 << 14)),
        _retract(1 << 14),
    ]


class Rounds:
    """A full window whose youngest `distance` times lie far ahead of the others, and rounds on it:
    insert the next time behind that block, evict the oldest, query."""

    def __init__(self, make: Callable[[], Any], n: int, distance: int) -> None:
        self._make, self._n, self._low = make, n, n - distance
        self._window: Any = None

    @property
    def window(self) -> Any:
        """The window, filled when it is first asked for."""
        if self._window is None:
            self._window, self._next = self._make(), self._low
            times = np.arange(self._n)
            times[self._low :] += HIGH
            self._window.bulk_insert(times, values(self._n))
        return self._window

    def next_times(self, rounds: int) -> Any:
        """So many times that come next."""
        self._next += rounds
        return np.arange(self._next - rounds, self._next)

    def run(self, rounds: int, count: int | None = None) -> Any:
        """The answers of so many rounds."""
        window = self.window
        return window.slide(self.next_times(rounds), values(rounds), count=count or self._n)

    def first_run(self, rounds: int, fold: Callable[[Any], Any]) -> float:
        """What the last of the first so many rounds must answer."""
        low = np.concatenate([values(self._n)[: self._low], values(rounds)])[-self._low :]
        return float(fold(np.concatenate([low, values(self._n)[self._low :]])))

    def release(self) -> None:
        self._window = None


@cache
def values(n: int) -> Any:
    return np.random.default_rng(n).uniform(0.5, 1.5, n)


def _contender(
    rounds: Rounds, which: str, many: int, bounds: tuple[Bound, ...] = (), peer: str | None = None
) -> Contender:
    """Rounds as a contender; its answer is told as what it is to the right one: 1."""
    fold = np.sum if which == "sum" else np.max
    return Contender(
        run=lambda: rounds.run(many),
        answer=lambda found: [found[-1] / rounds.first_run(many, fold)],
        bounds=bounds,
        peer=peer,
    )


def _release(held: dict[str, Rounds]) -> Callable[[], None]:
    def release() -> None:
        for rounds in held.values():
            rounds.release()

    return release


def _distances(which: str, n: int, x: Any) -> Workload:
    """Rounds of Fiba at each distance against the yardstick."""
    operator = OPERATORS[which]
    held = {
        f"Fiba, distance {in_words(d)}": Rounds(lambda: Fiba(operator), n, d)
        for d in BOUNDS
        if d < n
    }
    limits = dict(zip(held, BOUNDS.values()))
    return Workload(
        name=f"fiba-{which}",
        title=f"{which} of float64 in a window of {in_words(n)}, a round at a distance "
        "(insert, evict the oldest, query), against bottleneck's move_max over 1,024",
        unit="round",
        units=ROUNDS,
        ours={
            name: _contender(
                rounds, which, ROUNDS, (Bound(limits[name], YARDSTICK, or_equal=True),)
            )
            for name, rounds in held.items()
        },
        peers={
            # Per row.
            YARDSTICK: Contender(
                run=lambda: bottleneck.move_max(x, 1024, min_count=1), units=len(x)
            ),
        },
        release=_release(held),
    )


def _arities(n: int) -> Workload:
    """For information: rounds at each distance with nodes of other sizes."""

    def at_each(arity: int) -> list[float]:
        return [
            _best_round(Rounds(lambda: Fiba(OPERATORS["sum"], min_arity=arity), n, d), ROUNDS // 2)
            for d in BOUNDS
            if d < n
        ]

    default = Fiba(OPERATORS["sum"]).min_arity
    return Workload(
        name="fiba-arity",
        title=f"sum of float64 in a window of {in_words(n)}, a round by min_arity and distance",
        unit="round",
        columns=tuple(f"distance {in_words(d)}" for d in BOUNDS if d < n),
        ours={
            f"min_arity {arity}{', the default' if arity == default else ''}": Contender(
                run=lambda arity=arity: at_each(arity)
            )
            for arity in (2, 4, 8, 16)
        },
        peers={},
    )


def _best_round(rounds: Rounds, many: int) -> float:
    """Seconds a round, best of four calls after the first."""
    best = np.inf
    rounds.run(many)
    for _ in range(4):
        start = time.perf_counter()
        rounds.run(many)
        best = min(best, (time.perf_counter() - start) / many)
    rounds.release()
    return best


def _bloom(n: int) -> Workload:
    """An operator whose partials are large: a Bloom filter of 2 KB."""
    operator, many = operators.bloom(1 << 14).of(float), 2000
    distances = (0, 16, 1024 if n > 1024 else 512)

    def at_each(arity: int) -> list[float]:
        return [
            _best_round(Rounds(lambda: Fiba(operator, min_arity=arity), n, d), many)
            for d in distances
        ]

    default = Fiba(operator).min_arity
    return Workload(
        name="fiba-bloom",
        title=f"bloom(2^14) in a window of {in_words(n)}, a round by min_arity and distance",
        unit="round",
        columns=tuple(f"distance {in_words(d)}" for d in distances),
        ours={
            f"min_arity {arity}{', the default' if arity == default else ''}": Contender(
                run=lambda arity=arity: at_each(arity)
            )
            for arity in (2, 4, 8)
        },
        peers={},
    )


def _against_b_tree(n: int) -> Workload:
    """Fiba against the classic B-tree."""
    operator = OPERATORS["sum"]
    distances = (0, 1024, FAR)
    ours = {
        f"Fiba, distance {in_words(d)}": Rounds(lambda: Fiba(operator), n, d) for d in distances
    }
    theirs = {
        f"BTree, distance {in_words(d)}": Rounds(lambda: BTree(operator), n, d) for d in distances
    }
    many = ROUNDS // 2
    return Workload(
        name="fiba-btree",
        title=f"sum of float64 in a window of {in_words(n)}, a round of Fiba against one of BTree",
        unit="round",
        units=many,
        ours={
            name: _contender(
                rounds,
                "sum",
                many,
                (Bound(1 / 3, peer, or_equal=True),) if d == 0 else (),
                peer=peer,
            )
            for d, (name, rounds), peer in zip(distances, ours.items(), theirs)
        },
        peers={name: _contender(rounds, "sum", many) for name, rounds in theirs.items()},
        release=_release({**ours, **theirs}),
    )


def _bulk_evict(n: int) -> Workload:
    """Half of a window dropped at once.  Nodes are taken back by and by after it, and all of them
    when the window is counted."""

    def drop(*, count: bool) -> float:
        rounds = Rounds(lambda: Fiba(OPERATORS["sum"]), n, 0)
        window = rounds.window
        wanted = float(np.sum(values(n)[n // 2 :]))
        start = time.perf_counter()
        window.bulk_evict(n // 2 - 1)
        if count:
            len(window)
        seconds = time.perf_counter() - start
        assert len(window) == n // 2
        assert np.isclose(window.query(), wanted)
        return seconds

    return Workload(
        name="bulk-evict",
        title=f"half of a window of {in_words(n)} float64 sums evicted at once by Fiba",
        unit="call",
        told=True,
        ours={
            "bulk_evict": Contender(run=lambda: drop(count=False), bounds=(Bound(1e-3),)),
            "bulk_evict and len": Contender(run=lambda: drop(count=True)),
        },
        peers={},
    )


def _bulk_insert(n: int) -> Workload:
    """Sorted batches against single inserts in a compiled loop (`slide` with a count that evicts
    nothing, so insert and query) and against single inserts from Python."""
    operator, many = OPERATORS["sum"], BATCH * BATCHES
    held = {
        name: Rounds(lambda: Fiba(operator), n, FAR)
        for name in (f"batches of {BATCH:,}", "single, compiled", "single, from Python")
    }
    batches, single, slow = held.values()
    of = values(many)

    def in_batches() -> Any:
        window, times = batches.window, batches.next_times(many)
        for i in range(0, many, BATCH):
            window.bulk_insert(times[i : i + BATCH], of[i : i + BATCH])
        return window.query()

    def from_python() -> Any:
        window, times = slow.window, slow.next_times(many)
        for at, value in zip(times.tolist(), of.tolist()):
            window.insert(at, value)
        return window.query()

    runs = (in_batches, lambda: single.run(many, MANY)[-1], from_python)
    (name, run), *others = zip(held, runs)
    return Workload(
        name="bulk-insert",
        title=f"inserts into a window of {in_words(n)} float64 sums at distance {in_words(FAR)}: "
        "sorted batches against single inserts",
        unit="event",
        units=many,
        ours={
            name: Contender(
                run=run,
                answer=lambda found: [found],
                bounds=(Bound(1 / 5, "single, compiled", or_equal=True),),
            )
        },
        peers={peer: Contender(run=alone, answer=lambda found: [found]) for peer, alone in others},
        release=_release(held),
    )


def _memory(n: int) -> Workload:
    """Words in use, free nodes among them, over the number of events."""

    def in_order() -> Any:
        return Rounds(lambda: Fiba(OPERATORS["sum"]), n, 0).window

    def after_rounds() -> Any:
        rounds = Rounds(lambda: Fiba(OPERATORS["sum"]), n, 1024)
        rounds.run(n)
        return rounds.window

    def one_by_one() -> Any:
        window = Fiba(OPERATORS["sum"])
        times = np.random.default_rng(0).permutation(n)
        window.slide(times, values(n), count=MANY)
        return window

    def used(window: Any, field: int = TOP) -> list[float]:
        return [window._core.get(field) * 8 / len(window)]

    under = (Bound(48.0),)
    return Workload(
        name="memory",
        title=f"memory of Fiba for each of {in_words(n)} float64 sums",
        unit="event",
        measure="bytes",
        columns=("per event",),
        ours={
            "filled in order": Contender(run=lambda: used(in_order()), bounds=under),
            "after as many rounds at distance 1,024": Contender(
                run=lambda: used(after_rounds()), bounds=under
            ),
            "filled in random order": Contender(run=lambda: used(one_by_one()), bounds=under),
            "filled in order, as allocated": Contender(run=lambda: used(in_order(), CAPACITY)),
        },
        peers={},
    )


def _first_use() -> Workload:
    return Workload(
        name="first-use",
        title="the first slide by Fiba of a sum that the user wrote, in a new process",
        unit="process",
        told=True,
        once=True,
        ours={
            "compiled": Contender(run=lambda: first_timed_slide()[0], bounds=(Bound(6.0),)),
            "from the cache": Contender(run=lambda: first_timed_slide()[1], bounds=(Bound(0.6),)),
        },
        peers={},
    )


def _late(size: int) -> Workload:
    """A stream with a time for each event, every tenth of which comes late, by up to a window."""
    rows = 200_000
    random = np.random.default_rng(0)
    delays = np.where(random.random(rows) < 0.1, random.integers(1, size - 1, rows), 0)
    times = np.argsort(np.arange(rows) + delays, kind="stable")
    of, operator = values(rows), OPERATORS["sum"]

    def by_span(make: Callable[[], Any]) -> Contender:
        return Contender(
            run=lambda: make().slide(times, of, span=size - 1),
            first=lambda: make().slide(times[:4], of[:4], span=size - 1),
            kernel=f"{type(make()).__name__} of sum, slide by span",
            answer=np.asarray,
        )

    return Workload(
        name=f"late-{size}",
        title=f"sum of {rows:,} float64 over {size:,} units of time, 10 % late by up to as much",
        unit="event",
        units=rows,
        ours={
            "Fiba": by_span(lambda: Fiba(operator)),
            "BTree": by_span(lambda: BTree(operator)),
            "Cbix": Contender(run=lambda: Cbix(operator, size).slide(times, of), answer=np.asarray),
        },
        peers={
            "two stacks recomputed": by_span(lambda: TwoStacksRecomputed("sum", size)),
            "FlatFat in place": by_span(lambda: FlatFatInPlace("sum", size)),
        },
    )


def _retract(n: int) -> Workload:
    """In-order inserts, and evictions of which every tenth is from within the window."""
    rounds, operator = 20_000, OPERATORS["sum"]
    of = values(n + rounds).tolist()
    start, then = np.arange(n), list(range(n, n + rounds))
    leave = _leaving(n, rounds)

    def by_round(make: Callable[[], Any]) -> Contender:
        def run() -> Any:
            window, answers = make(), []
            window.bulk_insert(start, values(n + rounds)[:n])
            insert, evict, query = window.insert, window.evict, window.query
            for at, value, old in zip(then, of[n:], leave):
                insert(at, value)
                evict(old)
                answers.append(query())
            return answers

        return Contender(run=run, answer=np.asarray)

    return Workload(
        name="retract",
        title=f"sum of float64 in a window of {n:,}, a round from Python: insert in order, evict "
        "(10 % from within the window), query",
        unit="round",
        units=rounds,
        ours={
            "Reactive": by_round(lambda: Reactive(operator)),
            "Fiba": by_round(lambda: Fiba(operator)),
            "BTree": by_round(lambda: BTree(operator)),
        },
        peers={
            "two stacks recomputed": by_round(lambda: TwoStacksRecomputed("sum", 2 * n)),
            "FlatFat in place": by_round(lambda: FlatFatInPlace("sum", 2 * n)),
        },
    )


def _leaving(n: int, rounds: int) -> list[int]:
    """The time that leaves in each round."""
    random, gone, oldest, leave = np.random.default_rng(1), set(), 0, []
    for youngest in range(n, n + rounds):
        at = int(random.integers(oldest, youngest)) if random.random() < 0.1 else oldest
        while at in gone:
            at += 1
        gone.add(at)
        leave.append(at)
        while oldest in gone:
            oldest += 1
    return leave
