"""FlatFIT's second experiment: at each slide all sizes from 1 to the window's own, of max.

The paper's Figures 14 and 15 have FlatFIT at 10 times FlatFAT's throughput on average, and 17 times
at most, for windows up to 2^27, in the authors' code.  Here each algorithm is a kernel of ours over
the same primitives, so the ratios are of the algorithms.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from sash import aggregators, operators

from .workload import Bound, Contender, Workload

__all__ = ["many_sizes"]

SIZES, QUICK_SIZES = (8, 32, 128, 1 << 10, 1 << 14, 1 << 18), (8, 128)
ANSWERS = 1 << 21  # of one call
PEERS = ("FlatFatFifo", "BInt", "Recalc")
NAIVE = 1 << 10  # the longest window for recalculation, which takes n²/2 combines a slide


def many_sizes(*, quick: bool) -> list[Workload]:
    """All of them."""
    sizes = QUICK_SIZES if quick else SIZES
    return [*(_all_ranges(size) for size in sizes), _average(sizes)]


class Full:
    """A window that is filled when it is first asked for, and slides on from there."""

    def __init__(self, name: str, size: int, slides: int) -> None:
        self._make, self._size = getattr(aggregators, name), size
        self._sizes = np.arange(1, size + 1)
        self._values = np.random.default_rng(0).standard_normal(slides)
        self._window: Any = None

    def run(self) -> Any:
        if self._window is None:
            self._window = self._make(operators.max.of(float))
            self._window.slide(np.random.default_rng(1).standard_normal(self._size), self._size)
            self.run()
        return self._window.slide(self._values, self._sizes)

    def release(self) -> None:
        self._window = None


def _limit(size: int) -> float:
    """FlatFIT's time over FlatFAT's: the mean of the paper's Figure 15 is a tenth, over windows up
    to 2^27; it falls with the logarithm of the window."""
    return 0.125 if size >= 1 << 10 else 0.2 if size >= 128 else 0.8


def _average(sizes: tuple[int, ...]) -> Workload:
    """The paper's average: how many times FlatFAT's throughput FlatFIT has, over all windows."""

    def best(name: str, size: int) -> float:
        window, took = Full(name, size, ANSWERS // size), []
        window.run()
        for _ in range(3):
            start = time.perf_counter()
            window.run()
            took.append(time.perf_counter() - start)
        return min(took)

    def share() -> float:
        times = [best("FlatFatFifo", size) / best("FlatFit", size) for size in sizes]
        return 1 / float(np.mean(times))

    return Workload(
        name="all-ranges-average",
        title="all ranges: FlatFit's time over FlatFatFifo's, by the mean of its throughput over "
        f"windows of {sizes[0]} to 2^{sizes[-1].bit_length() - 1}",
        unit="slide",
        told=True,
        once=True,
        measure="number",
        ours={"FlatFit": Contender(run=share, bounds=(Bound(1 / 10, or_equal=True),))},
        peers={},
    )


def _all_ranges(size: int) -> Workload:
    slides = ANSWERS // size
    peers = [name for name in PEERS if name != "Recalc" or size <= NAIVE]
    windows = {name: Full(name, size, slides) for name in ("FlatFit", *peers)}

    def release() -> None:
        for window in windows.values():
            window.release()

    def contender(name: str, bounds: tuple[Bound, ...] = ()) -> Contender:
        few = np.arange(1, 3)
        make = getattr(aggregators, name)
        return Contender(
            run=windows[name].run,
            first=lambda: make(operators.max.of(float)).slide(np.arange(4.0), few),
            kernel=f"{name} of max over many sizes",
            bounds=bounds,
            slow=name in ("BInt", "Recalc"),  # for information
        )

    return Workload(
        name=f"all-ranges-{size}",
        title=f"max over all ranges 1 … {size:,} at each of {slides:,} slides of a full window",
        unit="slide",
        units=slides,
        ours={"FlatFit": contender("FlatFit", (Bound(_limit(size), "FlatFatFifo"),))},
        peers={name: contender(name) for name in peers},
        release=release,
    )
