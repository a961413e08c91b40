"""Search for the loops of operations that cost an aggregator most.

An amortised bound is a claim about every sequence of operations, and a random schedule hardly ever
comes near one that breaks it.  `search` changes loops and the sizes of their windows by hill
climbing, as long as the cost rises.  It counts costs instead of timing them, so the same seed finds
the same loops.

    python -m sash.testing.worst --tries 2000 Fiba BTree

searches for longer than the tests do, and prints the worst loop for each kind of cost.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ..aggregators import (
    Amta,
    BInt,
    BTree,
    Cbix,
    Daba,
    DabaLite,
    Fiba,
    FlatFatFifo,
    FlatFit,
    LogMta,
    Reactive,
    SubtractOnEvict,
    Timed,
    TwoStacks,
    TwoStacksLite,
)
from .loops import Act, Cost, Loop, Subject, measure

__all__ = ["ARITIES", "SUBJECTS", "search", "tree"]

_KEPT = 4  # the number of loops to keep and change
_FEW = (1, 1, 1, 2, 3, 8)

#: The minimum arities of the trees in the search.
ARITIES = (2, 3, 4, 8)


class _Worst:
    """The few loops with the highest cost of one kind, each with the size at which it costs
    most."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.kept: dict[tuple[Act, ...], tuple[float, Loop]] = {}

    def loops(self) -> list[Loop]:
        """The kept loops, the worst first."""
        return [loop for _, loop in sorted(self.kept.values(), key=lambda one: -one[0])]

    def least(self) -> tuple[Act, ...]:
        """The operations of the loop that costs least."""
        return min(self.kept, key=lambda acts: self.kept[acts][0])

    def exceeded(self, loop: Loop, cost: Cost) -> bool:
        """True if `offer` would keep the loop."""
        acts = loop.acts
        if acts not in self.kept:
            if len(self.kept) < _KEPT:
                return True
            acts = self.least()
        return bool(getattr(cost, self.kind) > self.kept[acts][0])

    def offer(self, loop: Loop, cost: Cost) -> None:
        """Keep the loop if it costs enough."""
        if self.exceeded(loop, cost):
            if loop.acts not in self.kept and len(self.kept) == _KEPT:
                del self.kept[self.least()]
            self.kept[loop.acts] = getattr(cost, self.kind), loop


def search(
    subject: Subject, *, tries: int = 40, seed: int = 0, most: int = 1200, longest: int = 6
) -> dict[str, tuple[Loop, Cost]]:
    """Find the loop with the highest cost of each kind, and measure it over many operations.

    A bit more than half of the tries are random loops, at a few sizes each; the others change one
    of the worst loops so far.  Finally, the search changes the size of the worst loop digit by
    digit.  `most` bounds the size that a loop starts from, and `longest` its number of operations.

    >>> subject = Subject("TwoStacks", TwoStacks, "in order")
    >>> loop, cost = search(subject, tries=10)["combines"]
    >>> cost.combines <= 2
    True
    """
    source = random.Random(f"{subject.name} {seed}")
    worst = [_Worst(kind) for kind in subject.costs]

    def attempt(loop: Loop) -> None:
        soon = measure(subject, loop, 12, warm=8)
        if any(w.exceeded(loop, soon) for w in worst):
            cost = measure(subject, loop, 120, warm=60)
            for w in worst:
                w.offer(loop, cost)

    for i in range(tries):
        if 2 * i < tries or i % 8 == 0:
            loop = _draw(source, subject, most, longest)
            for size in range(loop.size, loop.size + subject.base):
                attempt(replace(loop, size=size))
        else:
            for w in worst:
                attempt(_changed(source, source.choice(w.loops()), subject, most, longest))
    for w in worst:
        step = 1
        while step < most:
            loop = w.loops()[0]
            for digit in range(1 - subject.base, subject.base):
                attempt(replace(loop, size=max(0, min(loop.size + digit * step, most))))
            step *= subject.base
    found = {}
    for w in worst:
        long = [
            (loop, measure(subject, loop, 1000 + loop.size, warm=loop.size))
            for loop in w.loops()[:2]
        ]
        found[w.kind] = max(long, key=lambda one: getattr(one[1], w.kind))
    return found


def _draw(source: random.Random, subject: Subject, most: int, longest: int) -> Loop:
    """Draw a random loop, on a window of any order of magnitude."""
    size = int(2 ** source.uniform(0, most.bit_length())) % most
    acts = [_act(source, subject) for _ in range(1 + int(longest * source.random() ** 3))]
    return Loop(size, _balanced(source, subject, acts), source.choice(subject.builds))


def _act(source: random.Random, subject: Subject) -> Act:
    """Draw a random operation."""
    do = source.choice(subject.verbs)
    if do == "query":
        return Act(do)
    single = do in ("insert", "evict")
    many = source.choice(_FEW) if single else int(2 ** source.uniform(0, 7))
    off = source.randint(-2, 2)
    if subject.ends:
        return Act(do, float(source.randint(0, 1)), off, many)
    near = source.choice((0.0, 1.0, 0.5, round(source.random(), 2)))
    return Act(do, near, off * int(2 ** source.uniform(0, 6)), many)


def _balanced(source: random.Random, subject: Subject, acts: list[Act]) -> tuple[Act, ...]:
    """The operations, plus one if the window would otherwise grow or shrink for ever."""
    more = 0
    for act in acts:
        if act.do.endswith("insert"):
            more += act.many
        elif act.do.endswith("evict"):
            more -= act.many
    if more and "evict" in subject.verbs:
        # mostly at the place of another operation: one splits a node, the other merges it again
        like = source.choice(acts) if source.random() < 0.75 else _act(source, subject)
        acts = [*acts, Act("evict" if more > 0 else "insert", like.near, like.off, abs(more))]
    return tuple(acts)


def _changed(source: random.Random, loop: Loop, subject: Subject, most: int, longest: int) -> Loop:
    """Change one or a few things in a loop."""
    size, acts, built = loop.size, list(loop.acts), loop.built
    for _ in range(source.choice((1, 1, 2, 3))):
        what = source.random()
        at = source.randrange(len(acts))
        if what < 0.4:
            # the digits of the size determine which nodes are full
            step = subject.base ** int(source.uniform(0, math.log(most, subject.base)))
            size = max(0, min(size + step * source.randint(-subject.base, subject.base), most))
        elif what < 0.5 and len(acts) < longest:
            acts.insert(at, _act(source, subject))
        elif what < 0.7 and len(acts) > 1:
            del acts[at]
        elif what < 0.95:
            old, new = acts[at], _act(source, subject)
            one = source.choice(({"near": new.near}, {"off": new.off}, {"many": new.many}, None))
            acts[at] = new if one is None else old._replace(**one)
        else:
            built = source.choice(subject.builds)
    return Loop(size, _balanced(source, subject, acts), built)


def tree(made: Callable[..., Any], arity: int, *, ends: bool, bulk: bool = True) -> Subject:
    """A B-tree of times under test; without `bulk`, it evicts one time after another."""
    single = ("insert", "evict", "query")
    verbs = single if ends else () if bulk else (*single, "bulk_insert", "range")
    name = f"{made.__name__}({arity})" + (" at its ends" if ends else "")
    return Subject(
        name, lambda op: made(op, min_arity=arity), "tree", verbs, base=arity + 1, ends=ends
    )


def _timed(made: Any, *verbs: str) -> Subject:
    return Subject(f"Timed({made.__name__})", lambda op: Timed(made(op)), "in time", verbs)


#: All aggregators except `Recalc`, whose cost is its window, and `FlatFat`, whose size is fixed.
SUBJECTS: dict[str, Callable[[], Subject]] = {
    made.__name__: partial(Subject, made.__name__, made, "in order")
    for made in (SubtractOnEvict, TwoStacks, TwoStacksLite, Daba, DabaLite)
}
SUBJECTS |= {
    made.__name__: partial(Subject, made.__name__, made, "in order")
    for made in (FlatFatFifo, BInt, FlatFit, LogMta, Amta)
}
SUBJECTS |= {
    f"{made.__name__} in bulk": partial(Subject, f"{made.__name__} in bulk", made, "levels")
    for made in (LogMta, Amta)
}
SUBJECTS |= {
    "Timed(DabaLite)": partial(_timed, DabaLite, "insert", "evict", "query", "bulk_insert"),
    "Timed(Amta)": partial(_timed, Amta),
    "Reactive": partial(Subject, "Reactive", Reactive, "evict anywhere"),
    "Cbix(400)": partial(Subject, "Cbix(400)", lambda op: Cbix(op, 400), "partitions"),
}
SUBJECTS |= {
    f"{made.__name__}({arity}){where}": partial(
        tree, made, arity, ends=bool(where), bulk=made is Fiba
    )
    for made in (Fiba, BTree)
    for arity in ARITIES
    for where in (" at its ends", "")
}


def main(arguments: list[str] | None = None) -> None:
    """Search, and print the findings."""
    parser = argparse.ArgumentParser(prog="python -m sash.testing.worst")
    parser.add_argument("names", nargs="*", help="how the names of the subjects begin; all if none")
    parser.add_argument("--tries", type=int, default=400, help="how many loops to try")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=1200, help="the largest size to start from")
    given = parser.parse_args(arguments)
    for name, made in SUBJECTS.items():
        if not given.names or name.startswith(tuple(given.names)):
            found = search(made(), tries=given.tries, seed=given.seed, most=given.most)
            for kind, (loop, cost) in found.items():
                print(f"{name:22} {getattr(cost, kind):8.2f} {kind:8} {loop}", flush=True)


if __name__ == "__main__":
    main()
