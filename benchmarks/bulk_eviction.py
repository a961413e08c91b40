"""Workloads of the Monoid Tree Aggregator: steady windows, bulk eviction, policies, dimensions."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from sash import operators
from sash.aggregators import Amta, DabaLite, Fiba, LogMta, Recalc, Timed
from sash.policies import Policy, any_of, at_most, since_longest_run, since_maximum

from .workload import Bound, Contender, Workload

__all__ = ["bulk_eviction"]

FULL, QUICK = 1 << 22, 1 << 18
CAP, QUICK_CAP = 1 << 20, 1 << 16
NAIVE_ROWS = 50
ROUNDS = 500_000
DIMENSIONS = (1, 2, 5, 10, 20, 50)
MAX = operators.max.of(float)


def bulk_eviction(rows: int, *, quick: bool) -> list[Workload]:
    """All of them, the paper's Table 2 over this many readings."""
    n = QUICK if quick else FULL
    sizes = (1 << 10, 1 << 14) if quick else (1 << 10, 1 << 13, 1 << 16, 1 << 19, 1 << 22)
    return [
        *(_steady(which, sizes) for which in ("count", "max")),
        *(_flat(which, sizes) for which in ("count", "max")),
        _bulk_evict(n),
        _table_2(rows, QUICK_CAP if quick else CAP),
        _dimensions(),
    ]


def _in_words(size: int) -> str:
    return f"{size:,}" if size < 1 << 18 else f"2^{size.bit_length() - 1}"


class Full:
    """A full window, filled when it is first asked for, and rounds on it."""

    def __init__(self, kind: type, which: str, size: int) -> None:
        self._make: Callable[[], Any] = lambda: kind(getattr(operators, which))
        self._size = size
        self._window: Any = None

    def run(self, rounds: int) -> Any:
        if self._window is None:
            self._window = self._make()
            self._window.slide(values(16), 4)
            for _ in range(0, self._size, 1 << 20):
                self._window.slide(values(min(self._size, 1 << 20)), self._size)
        return self._window.slide(values(rounds), self._size)

    def release(self) -> None:
        self._window = None

    def contender(self, **told: Any) -> Contender:
        return Contender(run=lambda: self.run(ROUNDS), **told)


def _steady(which: str, sizes: tuple[int, ...]) -> Workload:
    """Windows of constant size: Amta against DabaLite, and LogMta for information."""
    kinds = (Amta, LogMta, DabaLite)
    held = {(kind, size): Full(kind, which, size) for size in sizes for kind in kinds}

    def told(kind: type, size: int) -> str:
        return f"{kind.__name__}, {_in_words(size)}"

    ours = {}
    for (kind, size), full in held.items():
        peer = told(DabaLite, size)
        bounds = (Bound(2.5, peer, or_equal=True),) if kind is Amta else ()
        if kind is not DabaLite:
            ours[told(kind, size)] = full.contender(bounds=bounds, peer=peer)
    return Workload(
        name=f"amta-{which}",
        title=f"{which} of float64, a round on full windows",
        unit="round",
        units=ROUNDS,
        ours=ours,
        peers={told(DabaLite, size): held[DabaLite, size].contender() for size in sizes},
        release=_release(*held.values()),
    )


def _flat(which: str, sizes: tuple[int, ...]) -> Workload:
    """The largest window against the smallest."""
    small, large = sizes[0], sizes[-1]
    held = {
        (kind, size): Full(kind, which, size) for size in (small, large) for kind in (Amta, LogMta)
    }
    peers = {kind: f"{kind.__name__}, {_in_words(small)}" for kind in (Amta, LogMta)}
    bounds = {Amta: (Bound(1.3, peers[Amta], or_equal=True),)}
    return Workload(
        name=f"amta-flat-{which}",
        title=f"{which} of float64, a round on a window of {_in_words(large)} against one of "
        f"{_in_words(small)}",
        unit="round",
        units=ROUNDS,
        ours={
            kind.__name__: held[kind, large].contender(bounds=bounds.get(kind, ()), peer=peer)
            for kind, peer in peers.items()
        },
        peers={peer: held[kind, small].contender() for kind, peer in peers.items()},
        release=_release(*held.values()),
    )


def _release(*held: Full) -> Callable[[], None]:
    def release() -> None:
        for full in held:
            full.release()

    return release


@cache
def values(n: int) -> Any:
    return np.random.default_rng(n).standard_normal(n)


def _bulk_evict(n: int) -> Workload:
    """Bulk evictions of many sizes from a full window, each with the answer after it.  A window is
    taken from its bytes again for each.  The worst of three counts, and the worst of the sizes."""
    counts = [1, 1 << 5, 1 << 10, n >> 4, n >> 2, (n >> 1) - 1, 3 * n // 4 + 1, n - 1000, n - 1]

    def filled(kind: type) -> bytes:
        window: Any = kind(MAX)
        window.slide(values(n), n)
        return bytes(window.to_bytes())

    def in_order(kind: type) -> tuple[Callable[[], Any], Callable[[Any, int], None]]:
        data = filled(kind)
        return lambda: kind.from_bytes(data, MAX), lambda window, m: window.bulk_evict(m)

    def timed(kind: type) -> tuple[Callable[[], Any], Callable[[Any, int], None]]:
        window = Timed(kind(MAX))
        window.bulk_insert(np.arange(n), values(n))
        data = window.to_bytes()
        return (
            lambda: Timed.from_bytes(data, kind(MAX)),
            lambda window, m: window.bulk_evict(m - 1),
        )

    def tree() -> tuple[Callable[[], Any], Callable[[Any, int], None]]:
        window = Fiba(MAX)
        window.bulk_insert(np.arange(n), values(n))
        data = window.to_bytes()
        return lambda: Fiba.from_bytes(data, MAX), lambda window, m: window.bulk_evict(m - 1)

    def measured(how: Callable[[], tuple[Any, Any]]) -> list[float]:
        again, evict = how()
        window = again()
        evict(window, 10)  # compiles it
        window.query()
        seconds = []
        for count in counts:
            took = []
            for _ in range(3):
                window = again()
                start = time.perf_counter()
                evict(window, count)
                found = window.query()
                took.append(time.perf_counter() - start)
                assert found == values(n)[count:].max()
            seconds.append(max(took))
        return [max(seconds), *seconds]

    under = (Bound(0.5e-3),)
    return Workload(
        name="amta-bulk-evict",
        title=f"max of float64, so many evicted at once from a window of {_in_words(n)}, and the "
        "answer; the worst of three",
        unit="call",
        columns=("at worst", *(f"{m:,}" for m in counts)),
        ours={
            "Amta": Contender(run=lambda: measured(lambda: in_order(Amta)), bounds=under),
            "LogMta": Contender(run=lambda: measured(lambda: in_order(LogMta)), bounds=under),
            "Timed(Amta)": Contender(run=lambda: measured(lambda: timed(Amta)), bounds=under),
            "Fiba": Contender(run=lambda: measured(tree)),
            "Timed(DabaLite)": Contender(run=lambda: measured(lambda: timed(DabaLite))),
        },
        peers={},
    )


@cache
def memory_usage(rows: int) -> Any:
    """A made-up series of readings of used memory, one a second, in MiB: days, processes that come
    and go, leaks that end in a restart, and noise."""
    source = np.random.default_rng(62_208_000)
    seconds = np.arange(rows)
    day = 1500.0 * np.sin(2 * np.pi * seconds / 86_400)
    steps = np.cumsum(np.where(source.random(rows) < 1 / 600, source.normal(0.0, 60.0, rows), 0.0))
    steps -= np.linspace(0.0, steps[-1], rows)
    leak = (seconds % 200_000) * 0.01
    noise = source.normal(0.0, 3.0, rows)
    used = 16_000.0 + day + np.clip(steps, -6000.0, 6000.0) + leak + noise
    return np.maximum(np.round(used, 1), 1.0)


def _table_2(rows: int, cap: int) -> Workload:
    """The paper's Table 2.  Under the policies of max and longest run, what is older than the
    answer leaves; the answers are those of a window of the same cap, as DabaLite and naive have."""
    times = np.arange(rows)
    size = at_most(cap)
    cases: dict[str, tuple[Any, Policy, bool]] = {
        "sum": (operators.sum, size, False),
        "mean": (operators.mean, size, False),
        "geometric mean": (operators.geometric_mean, size, False),
        "standard deviation": (operators.stddev, size, False),
        "max": (operators.max, any_of(size, since_maximum()), False),
        "longest run": (
            operators.longest_run,
            any_of(size, since_longest_run(column=1)),
            True,
        ),
    }

    def given(timed: bool, n: int) -> Any:
        readings = memory_usage(rows)[:n]
        return (times[:n], readings) if timed else readings

    def last(found: Any) -> Any:
        return [float(each[-1]) for each in (found if isinstance(found, tuple) else (found,))]

    answers: dict[str, Any] = {}

    def each(make: Callable[[Any, Policy], Callable[[Any], Any]]) -> list[float]:
        seconds = []
        for name, (operator, rules, timed) in cases.items():
            make(operator, rules)(given(timed, 64))
            best = np.inf
            for _ in range(2):
                slide = make(operator, rules)
                start = time.perf_counter()
                found = slide(given(timed, rows))
                best = min(best, (time.perf_counter() - start) / rows)
            assert np.allclose(answers.setdefault(name, last(found)), last(found), rtol=1e-6)
            seconds.append(best)
        return seconds

    def naive() -> list[float]:
        seconds = []
        for operator, _, timed in cases.values():
            types = ("int64", "float64") if timed else ("float64",)
            window = Recalc(operator.of(*types))
            readings = memory_usage(rows)[:cap].tolist()
            for i, reading in enumerate(readings):
                window.insert((i, reading) if timed else reading)
            few = given(timed, NAIVE_ROWS)
            Recalc(window.operator).slide(few, 4)  # compiles it
            start = time.perf_counter()
            window.slide(few, cap)
            seconds.append((time.perf_counter() - start) / NAIVE_ROWS)
        return seconds

    def under(kind: Any) -> Callable[[], list[float]]:
        return lambda: each(lambda operator, rules: kind(operator, policy=rules).slide)

    def capped(operator: Any, rules: Policy) -> Callable[[Any], Any]:
        return lambda given: DabaLite(operator).slide(given, cap)

    return Workload(
        name="amta-table-2",
        title=f"{rows:,} readings of used memory, windows of at most {_in_words(cap)} under "
        "policies, as in the paper's Table 2",
        unit="reading",
        columns=tuple(cases),
        ours={
            "Amta": Contender(run=under(Amta)),
            "DabaLite, the cap only": Contender(run=lambda: each(capped)),
            f"naive, the cap only, {NAIVE_ROWS} readings": Contender(run=naive),
        },
        peers={},
    )


def _dimensions() -> Workload:
    """Many counts in one window, as in the paper's Figure 9: the time for each.  Few rows at once,
    or it would be new pages for the answers that are measured."""
    size, rows = 1 << 15, 1 << 11
    x = np.ones(size)

    def at_each(kind: type) -> list[float]:
        seconds = []
        for k in DIMENSIONS:
            operator = operators.together(*[operators.count] * k)
            window = kind(operator)
            for _ in range(2):
                window.slide(x, size)
            best = np.inf
            for _ in range(200):
                start = time.perf_counter()
                window.slide(x[:rows], size)
                best = min(best, (time.perf_counter() - start) / rows / k)
            seconds.append(best)
        return seconds

    return Workload(
        name="amta-dimensions",
        title="so many counts in one window of 32,768",
        unit="row and count",
        columns=tuple(str(k) for k in DIMENSIONS),
        ours={
            kind.__name__: Contender(run=lambda kind=kind: at_each(kind))
            for kind in (Amta, DabaLite)
        },
        peers={},
    )
