"""Factor windows: extra windows that no query asks for, from which the queries' are computed.

Wu, Bernstein, Raizman and Pavlopoulou, "Factor windows: cost-based query rewriting for optimizing
correlated window aggregates" (arXiv 2008.12379).

A window can be computed from the results of other windows, its parents, if these are disjoint and
fill it: if the parents tumble, and their size divides the window's size, its slide, and the
distance between the two offsets.  Then any associative operator works, because the results are
combined in order of time.

    tumbling(20)  tumbling(30)  tumbling(40)         each reads events: 360 an hour twice
         ↑             ↑            ↑
         |             |       from tumbling(20)     246
         +----- events +
                                                     150 with a factor window:
    events → tumbling(10) → tumbling(20) → tumbling(40)
                          ↘ tumbling(30)

Counting the reads says whether a factor window pays.  `how` says how a window reads:

    fold    each window reads all of its parent's results that it holds, as in the paper
    queue   each window keeps a queue, as the engine does (two stacks): it reads each of its
            parent's results once, and combines it at most twice, and once for a row

For queues a factor window pays only if several windows read many fine slices: the saving grows with
the number of windows, not with the number of slices in a window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import gcd
from typing import Literal

import numpy as np

from ..windows import Sliding, Window

__all__ = ["FactorPlan", "Factored", "can_be_from", "factor_windows", "factors_of"]

How = Literal["fold", "queue"]
_FEW = 10  # up to this many candidates, try all sets of them
_MANY = 256  # look for no more candidates than this


@dataclass(frozen=True)
class Factored:
    """A window of a plan.  `asked` says whether a query asks for it.  `parent` is the place of the
    window from which it is computed, or None for events."""

    window: Sliding
    asked: bool
    parent: int | None


@dataclass(frozen=True)
class FactorPlan:
    """Windows, the parent of each, and the cost in a unit of time: with factor windows (`cost`),
    without them (`shared`), and with each window computed by itself (`apart`).

    >>> from sash.windows import tumbling
    >>> plan = factor_windows([tumbling(20), tumbling(30), tumbling(40)])
    >>> [int(cost * 120) for cost in (plan.apart, plan.shared, plan.cost)]
    [360, 246, 150]
    >>> print(plan)
    tumbling('10 microseconds') is added, from events
      tumbling('20 microseconds')
        tumbling('40 microseconds')
      tumbling('30 microseconds')
    """

    windows: tuple[Factored, ...]
    cost: Fraction
    shared: Fraction
    apart: Fraction

    @property
    def added(self) -> tuple[Sliding, ...]:
        """The factor windows."""
        return tuple(one.window for one in self.windows if not one.asked)

    def __str__(self) -> str:
        return "\n".join(self._lines(None, 0))

    def _lines(self, parent: int | None, depth: int) -> Iterator[str]:
        for i, one in enumerate(self.windows):
            if one.parent == parent:
                added = "" if one.asked else " is added"
                source = ", from events" if parent is None else ""
                yield f"{'  ' * depth}{one.window!r}{added}{source}"
                yield from self._lines(i, depth + 1)


def can_be_from(window: Sliding, parent: Sliding) -> bool:
    """True if each window is a run of disjoint windows of the parent.

    >>> from sash.windows import sliding, tumbling
    >>> can_be_from(sliding(60, 20), tumbling(10)), can_be_from(sliding(60, 15), tumbling(10))
    (True, False)
    """
    step = parent.every
    tumbles = parent.size == step
    apart = (window.size, window.every, window.offset - parent.offset)
    return tumbles and window != parent and not any(n % step for n in apart)


def factor_windows(
    windows: Sequence[Sliding], *, rate: Fraction | float = 1, how: How = "fold"
) -> FactorPlan:
    """Add factor windows to the windows of queries, where they pay.  `rate` is the number of events
    of one key in a microsecond.

    A candidate is the longest window from which some of the queries' windows can be computed;
    shorter ones are read more often and save nothing.  With few candidates, the function tries all
    sets of them; with many, it adds the best one as long as that pays.
    """
    for window in windows:
        if not isinstance(window, Sliding):
            raise TypeError(
                f"factor windows are for sliding and tumbling windows, not {window!r}, which are "
                "not all of one length"
            )
    if how not in ("fold", "queue"):
        raise ValueError(f"how is 'fold' or 'queue', not {how!r}")
    asked = tuple(dict.fromkeys(windows))
    counts = _Counts(Fraction(rate), how)
    readers = 2 if how == "queue" else 1  # for one reader, a new queue replaces an old one: no gain
    candidates = [
        one
        for one in _candidates(asked)
        if counts.rate * one.every > 1
        and sum(can_be_from(window, one) for window in asked) >= readers
    ]
    chosen = _best(asked, tuple(candidates), counts)
    plan = counts.plan(asked, chosen)
    return FactorPlan(
        plan,
        counts.cost(plan),
        counts.cost(counts.plan(asked, ())),
        sum((counts.of(window, None) for window in asked), Fraction(0)),
    )


@lru_cache(maxsize=64)
def factors_of(windows: tuple[Window, ...], rate: Fraction) -> FactorPlan | None:
    """The cheapest plan for windows, if a key has `rate` slices in a microsecond; None if it
    computes every window from the slices."""
    asked = [one for one in windows if isinstance(one, Sliding)]
    found = factor_windows(asked, rate=rate, how="queue") if len(asked) > 1 else None
    return found if found is not None and found.cost < found.apart else None


@dataclass(frozen=True)
class _Counts:
    """The number of reads in a unit of time."""

    rate: Fraction
    how: How

    def of(self, window: Sliding, parent: Sliding | None) -> Fraction:
        """The reads of one window from its parent, or from events."""
        given = self.rate if parent is None else Fraction(1, parent.every)
        if self.how == "queue":
            return 2 * given + Fraction(1, window.every)
        return Fraction(window.size, window.every) * given

    def plan(self, asked: tuple[Sliding, ...], added: tuple[Sliding, ...]) -> tuple[Factored, ...]:
        """All of the windows, each with the parent that needs the fewest reads: the longest one
        that is sparser than the events."""
        every = (*asked, *added)
        longest = sorted(range(len(every)), key=lambda i: -every[i].every)
        useful = [i for i in longest if self.rate * every[i].every > 1]
        made = []
        for window in every:
            best = next((i for i in useful if can_be_from(window, every[i])), None)
            made.append(Factored(window, window in asked, best))
        return tuple(made)

    def cost(self, plan: tuple[Factored, ...]) -> Fraction:
        """The reads of all windows of a plan."""
        parents = [None if one.parent is None else plan[one.parent].window for one in plan]
        costs = [self.of(one.window, p) for one, p in zip(plan, parents, strict=True)]
        return sum(costs, Fraction(0))


def _best(
    asked: tuple[Sliding, ...], candidates: tuple[Sliding, ...], counts: _Counts
) -> tuple[Sliding, ...]:
    """The set of candidates with the cheapest plan; of equally cheap sets, the smallest."""
    if not candidates:
        return ()
    costs = _Costs(asked, candidates, counts)
    numbers = range(len(candidates))
    if len(candidates) <= _FEW and len(asked) <= _FEW:
        sets = [some for n in range(len(candidates) + 1) for some in combinations(numbers, n)]
        found = costs.cheapest(sets)
    else:
        found = ()
        while True:
            more = costs.cheapest([found, *((*found, i) for i in numbers if i not in found)])
            if more == found:
                break
            found = more
    return tuple(candidates[i] for i in found)


class _Costs:
    """The costs of plans with any candidates added, in floats.  It finds out once, for all plans,
    which window can be computed from which."""

    def __init__(
        self, asked: tuple[Sliding, ...], candidates: tuple[Sliding, ...], counts: _Counts
    ) -> None:
        every = (*asked, *candidates)
        sizes, slides, offsets = (
            np.array([getattr(w, name) for w in every]) for name in ("size", "every", "offset")
        )
        common = np.gcd(sizes, slides)
        fits = (common[:, None] % slides == 0) & ((offsets[:, None] - offsets) % slides == 0)
        np.fill_diagonal(fits, val=False)
        self._asked = len(asked)
        #: The reads of each window in a unit of time, if it is computed from each other window.
        self._read = np.where(fits & (sizes == slides), 1 / slides, float(counts.rate))
        self._folds = sizes / slides if counts.how == "fold" else np.full(len(every), 2.0)
        self._rows = np.zeros(len(every)) if counts.how == "fold" else 1 / slides

    def cheapest(self, sets: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The first set of candidates whose cost is the least, up to rounding."""
        costs = np.array([self._cost(some) for some in sets])
        return sets[int(np.argmax(costs <= costs.min() * (1 + 1e-12)))]

    def _cost(self, added: tuple[int, ...]) -> float:
        there = [*range(self._asked), *(self._asked + i for i in added)]
        read = self._read[np.ix_(there, there)].min(axis=1)
        cost = read * self._folds[there] + self._rows[there]
        return float(cost.sum())


def _candidates(asked: tuple[Sliding, ...]) -> tuple[Sliding, ...]:
    """For each set of windows, the longest tumbling window from which all of them can be computed;
    if there are very many sets, only for some of them."""
    found: set[tuple[int, int]] = set()
    for window in asked:
        own = gcd(window.size, window.every)
        new = {(own, window.offset % own)}
        for length, offset in found:
            both = gcd(own, length, window.offset - offset)
            new.add((both, offset % both))
        found |= new
        if len(found) > _MANY:
            break
    made = [Sliding(length, length, offset) for length, offset in sorted(found)]
    return tuple(window for window in made if window not in asked)
