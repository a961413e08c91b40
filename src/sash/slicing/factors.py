"""Factor windows: a window that no one asked for, from which others are computed.

Wu, Bernstein, Raizman and Pavlopoulou, "Factor windows: cost-based query rewriting for optimizing
correlated window aggregates" (arXiv 2008.12379).

A window can be computed from the results of another one if these are disjoint and fill it: if the
other one tumbles, and its size divides the window's size, its slide, and the distance between their
offsets.  Then any associative operator will do, because the results are combined in order of time.

    tumbling(20)  tumbling(30)  tumbling(40)         each reads events: 360 an hour twice
         ↑             ↑            ↑
         |             |       from tumbling(20)     246
         +----- events +
                                                     150 with a factor window:
    events → tumbling(10) → tumbling(20) → tumbling(40)
                          ↘ tumbling(30)

Whether a factor window pays is a matter of counting what is read.  `how` says who reads:

    fold    each window reads all of its parent's results that it holds, as in the paper
    queue   each window keeps a queue, as the engine does (two stacks): it reads each of its
            parent's results once, and combines it at most twice, and once for a row

For queues a factor window pays only where several windows read many fine slices: what it saves is
per window, and not by how many slices a window holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import gcd
from typing import Literal

from ..windows import Sliding, Window

__all__ = ["FactorPlan", "Factored", "can_be_from", "factor_windows", "factors_of"]

How = Literal["fold", "queue"]
_FEW = 10  # candidates, all sets of which are tried


@dataclass(frozen=True)
class Factored:
    """A window of a plan: whether it was asked for, and the place of the window that it is computed
    from, None for events."""

    window: Sliding
    asked: bool
    parent: int | None


@dataclass(frozen=True)
class FactorPlan:
    """Windows and what each is computed from, and what that costs in a unit of time: with factor
    windows, without them, and with each window computed by itself.

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
    """True if each of the windows is a run of disjoint ones of the parent.

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
    """Add windows to some that are asked for, where counting says that it pays.  `rate` is how many
    events there are in a microsecond, of one key.

    A candidate is the longest window that some of those asked for can be computed from; shorter
    ones are read more often and save nothing.  Of few candidates all sets are tried, of many the
    best one is added as long as it pays.
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
    chosen = _best(asked, _candidates(asked), counts)
    plan = counts.plan(asked, chosen)
    return FactorPlan(
        plan,
        counts.cost(plan),
        counts.cost(counts.plan(asked, ())),
        sum((counts.of(window, None) for window in asked), Fraction(0)),
    )


def factors_of(windows: Iterable[Window], rate: Fraction) -> FactorPlan | None:
    """What windows are best computed from, if a key has so many slices in a microsecond; None where
    that is the slices for all."""
    asked = [one for one in windows if isinstance(one, Sliding)]
    found = factor_windows(asked, rate=rate, how="queue") if len(asked) > 1 else None
    return found if found is not None and found.cost < found.apart else None


@dataclass(frozen=True)
class _Counts:
    """What windows read in a unit of time."""

    rate: Fraction
    how: How

    def of(self, window: Sliding, parent: Sliding | None) -> Fraction:
        """What one window reads from its parent, or from events."""
        given = self.rate if parent is None else Fraction(1, parent.every)
        if self.how == "queue":
            return 2 * given + Fraction(1, window.every)
        return Fraction(window.size, window.every) * given

    def plan(self, asked: tuple[Sliding, ...], added: tuple[Sliding, ...]) -> tuple[Factored, ...]:
        """All of the windows, each from the one that it reads least of."""
        every = (*asked, *added)
        made = []
        for window in every:
            possible = [i for i, other in enumerate(every) if can_be_from(window, other)]
            best = min(possible, key=lambda i: self.of(window, every[i]), default=None)
            if best is not None and self.of(window, every[best]) >= self.of(window, None):
                best = None
            made.append(Factored(window, window in asked, best))
        return tuple(made)

    def cost(self, plan: tuple[Factored, ...]) -> Fraction:
        """What all windows of a plan read."""
        parents = [None if one.parent is None else plan[one.parent].window for one in plan]
        costs = [self.of(one.window, p) for one, p in zip(plan, parents, strict=True)]
        return sum(costs, Fraction(0))


def _best(
    asked: tuple[Sliding, ...], candidates: tuple[Sliding, ...], counts: _Counts
) -> tuple[Sliding, ...]:
    """The candidates that make a plan cheapest; of as cheap ones, the fewest."""

    def cost(added: tuple[Sliding, ...]) -> Fraction:
        return counts.cost(counts.plan(asked, added))

    if len(candidates) <= _FEW:
        sets = [some for n in range(len(candidates) + 1) for some in combinations(candidates, n)]
        return min(sets, key=cost)
    return _greedy(asked, candidates, counts)


def _greedy(
    asked: tuple[Sliding, ...], candidates: tuple[Sliding, ...], counts: _Counts
) -> tuple[Sliding, ...]:
    """The best candidate, as long as one pays, again and again.

    What windows read at the moment is kept, so a candidate is judged by the windows that can be
    computed from it alone: with a hundred windows, whole plans for each took a minute.
    """

    def least(window: Sliding, parents: Iterable[Sliding]) -> Fraction:
        possible = [counts.of(window, one) for one in parents if can_be_from(window, one)]
        return min([counts.of(window, None), *possible])

    every = (*asked, *candidates)
    children = {
        one: [(window, counts.of(window, one)) for window in every if can_be_from(window, one)]
        for one in candidates
    }
    reads = {window: least(window, asked) for window in every}
    used = dict.fromkeys(asked)

    def saves(one: Sliding) -> Fraction:
        less = (reads[w] - n for w, n in children[one] if w in used and n < reads[w])
        return sum(less, -reads[one])

    while True:
        rest = [one for one in candidates if one not in used]
        best = max(rest, key=saves, default=None)
        if best is None or saves(best) <= 0:
            return tuple(used)[len(asked) :]
        used[best] = None
        for window, n in children[best]:
            reads[window] = min(reads[window], n)


def _candidates(asked: tuple[Sliding, ...]) -> tuple[Sliding, ...]:
    """For each set of windows the longest tumbling one that all can be computed from."""
    found: set[tuple[int, int]] = set()
    for window in asked:
        own = gcd(window.size, window.every)
        new = {(own, window.offset % own)}
        for length, offset in found:
            both = gcd(own, length, window.offset - offset)
            new.add((both, offset % both))
        found |= new
    made = [Sliding(length, length, offset) for length, offset in sorted(found)]
    return tuple(window for window in made if window not in asked)
