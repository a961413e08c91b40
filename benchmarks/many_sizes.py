"""FlatFIT's second experiment: at each slide all sizes from 1 to the window's own, of max.

The paper's Figures 14 and 15 have FlatFIT at 10 times FlatFAT's throughput on average, and 17 times
at most, for windows up to 2^27, in the authors' code.  Here each algorithm is a kernel of ours over
the same primitives, so the ratios are of the algorithms.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from sash import aggregators, operators

from .workload import Bound, Contender, Workload

__all__ = ["many_sizes"]

SIZES, QUICK_SIZES = (2, 8, 32, 128, 512, 1024), (8, 128)
ANSWERS = 2_000_000  # of one call; the slides that give them
PEERS = ("FlatFatFifo", "BInt", "Recalc")
NAIVE = 128  # the longest window for recalculation, which takes n²/2 combines a slide


def many_sizes(*, quick: bool) -> list[Workload]:
    """All of them."""
    return [_all_ranges(size) for size in (QUICK_SIZES if quick else SIZES)]


@cache
def _values(rows: int) -> Any:
    return np.random.default_rng(0).standard_normal(rows)


def _all_ranges(size: int) -> Workload:
    slides = max(ANSWERS // size, 16)
    # the mean of the paper's ratios is over all windows from 2 on; a promise is for larger ones
    bounds = (Bound(1.0, "FlatFatFifo"),) if size >= 8 else ()
    peers = [name for name in PEERS if name != "Recalc" or size <= NAIVE]
    return Workload(
        name=f"all-ranges-{size}",
        title=f"max over all ranges 1 … {size:,} at each of {slides:,} slides",
        unit="slide",
        units=slides,
        ours={"FlatFit": _slide("FlatFit", size, slides, bounds)},
        peers={name: _slide(name, size, slides) for name in peers},
    )


def _slide(name: str, size: int, slides: int, bounds: tuple[Bound, ...] = ()) -> Contender:
    make = getattr(aggregators, name)
    sizes = range(1, size + 1)
    return Contender(
        run=lambda: make(operators.max).slide(_values(slides), sizes),
        first=lambda: make(operators.max).slide(_values(16), [1, 2]),
        kernel=f"{name} of max over many sizes",
        answer=lambda found: np.stack(found),
        bounds=bounds,
    )
