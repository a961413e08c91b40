"""Repeat loops of operations on an aggregator, to measure their cost.

A `Loop` names operations by kind and place, so that it can run on every window.  A `Subject` is an
aggregator with its possible operations; it creates windows to run loops on.  `sash.testing.worst`
searches for the loops that cost most.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from ..operators.contract import Operator
from ..operators.own import operator
from .counting import counting

__all__ = ["BUILDS", "Act", "Cost", "Loop", "Subject", "measure"]

_GAP = 1 << 40  # between neighbouring times, so that there is room for many more
_STRIDE = 32  # built windows are kept at multiples of this size

_ENDS = {"oldest": 0.0, "youngest": 1.0}

#: Ways to build the window that a loop starts from.  A thinned window loses every second time soon
#: after its insertion, so that its nodes are as empty as possible.
BUILDS = ("in order", "backwards", "thinned")


class Act(NamedTuple):
    """An operation, its place, and its number of repetitions or values.  The place is `off` places
    from the oldest value (`near` 0), from the youngest (`near` 1), or from one between them."""

    do: str
    near: float = 1.0
    off: int = 0
    many: int = 1


@dataclass(frozen=True)
class Loop:
    """Operations to repeat, and the number of values in the window at the start.

    >>> loop = Loop(100, (Act("insert", 0.5, -3, 2), Act("query"), Act("evict", 0.0, 0, 2)))
    >>> str(loop)
    '100 in order: insert 2 at 0.5-3, query, evict 2 at oldest'
    >>> Loop.of(str(loop)) == loop
    True
    """

    size: int
    acts: tuple[Act, ...]
    built: str = "in order"

    @classmethod
    def of(cls, text: str) -> Loop:
        """Parse a loop from text."""
        start, acts = text.split(": ")
        size, built = start.split(" ", 1)
        found = []
        for act in acts.split(", "):
            words, _, place = act.partition(" at ")
            do, _, many = words.partition(" ")
            end, _, off = place.replace("-", "+-").partition("+")
            near = float(_ENDS.get(end, end or 1.0))
            found.append(Act(do, near, int(off or 0), int(many or 1)))
        return cls(int(size), tuple(found), built)

    def __str__(self) -> str:
        ends = {near: end for end, near in _ENDS.items()}
        acts = []
        for do, near, off, many in self.acts:
            place = ends.get(near, f"{near:g}") + (f"{off:+d}" if off else "")
            acts.append(do + (f" {many}" if many > 1 else "") + f" at {place}" * (do != "query"))
        return f"{self.size} {self.built}: {', '.join(acts)}"


@dataclass(frozen=True)
class Cost:
    """The cost per operation: averages, and the most combines of a single operation.

    `combines` also counts calls of an inverse, `visits` the visited nodes, `steps` the nodes split,
    merged or balanced, and `moved` the slots copied when a memory changes its size.  `largest` is
    the largest number of values in the window.
    """

    operations: int
    combines: float
    visits: float
    steps: float
    moved: float
    most: float
    largest: int


class _InOrder:
    """An in-order window under test."""

    verbs: tuple[str, ...] = ("insert", "evict", "query")
    builds: tuple[str, ...] = BUILDS[:1]
    costs: tuple[str, ...] = ("combines", "most", "moved")

    def __init__(self, window: Any) -> None:
        self.window = window

    def __copy__(self) -> Self:
        made = object.__new__(type(self))
        made.__dict__ = {name: copy.copy(value) for name, value in vars(self).items()}
        return made

    def __len__(self) -> int:
        return len(self.window)

    def grow(self, built: str) -> None:
        """Add one value, as when the window is built."""
        self.window.insert(1)

    def apply(self, act: Act) -> int:
        """Do an operation once.  Returns the number of operations that it counts as; 0 if it was
        impossible."""
        if act.do == "insert":
            self.window.insert(1)
        elif act.do == "query":
            self.window.query()
        elif not len(self.window):
            return 0
        elif act.do == "evict":
            self.window.evict()
        else:
            self.window.bulk_evict(min(act.many, len(self.window)))
        return 1

    def capacity(self) -> int:
        """The number of slots of the memory; 0 if it never changes its size."""
        core = getattr(self.window, "_fifo", self.window)._core
        return int(core.header[0])

    def work(self) -> dict[str, int]:
        """The tree's own counts of work."""
        return {}


class _Levels(_InOrder):
    """A window with bulk eviction."""

    verbs = (*_InOrder.verbs, "bulk_evict")


class _InTime(_InOrder):
    """A window of times; values come in order of time, and the oldest leave."""

    verbs = (*_Levels.verbs, "bulk_insert")
    anywhere: tuple[str, ...] = ()  # operations at any place

    def __init__(self, window: Any) -> None:
        super().__init__(window)
        self.times: list[int] = []

    def __len__(self) -> int:
        return len(self.times)

    def grow(self, built: str) -> None:
        self._insert(0 if built == "backwards" else len(self.times), 1)
        if built == "thinned" and len(self.times) > 40 and self.times[-1] // _GAP % 2:
            self._evict(len(self.times) - 40)
            self.grow(built)

    def apply(self, act: Act) -> int:
        if act.do == "query":
            self.window.query()
        elif act.do in ("insert", "bulk_insert"):
            many = act.many if act.do == "bulk_insert" else 1
            self._insert(self._place(act, len(self.times) + 1), many)
            return many
        elif not self.times:
            return 0
        elif act.do == "evict":
            self._evict(self._place(act, len(self.times)))
        elif act.do == "bulk_evict":
            last = min(act.many, len(self.times))
            self.window.bulk_evict(self.times[last - 1])
            del self.times[:last]
        else:
            first = self._place(act, len(self.times))
            last = min(first + act.many, len(self.times)) - 1
            self.window.query(self.times[first], self.times[last])
        return 1

    def _place(self, act: Act, places: int) -> int:
        """The place of an operation in the window."""
        if act.do != "range" and act.do.removeprefix("bulk_") not in self.anywhere:
            return places - 1 if act.do.endswith("insert") else 0
        return max(0, min(int(act.near * (places - 1)) + act.off, places - 1))

    def _insert(self, place: int, many: int) -> None:
        times = self.times
        outwards = 1 if 2 * place > len(times) else -1
        while 0 < place < len(times) and times[place] - times[place - 1] <= many:
            place += outwards  # there is no room between these two any more
        if place == len(times):
            start, step = (times[-1] if times else 0) + _GAP, _GAP
        elif place == 0:
            start, step = times[0] - _GAP * many, _GAP
        else:
            step = (times[place] - times[place - 1]) // (many + 1)
            start = times[place - 1] + step
        new = [start + step * i for i in range(many)]
        times[place:place] = new
        if many == 1:
            self.window.insert(new[0], 1)
        else:
            self.window.bulk_insert(new, [1] * many)

    def _evict(self, place: int) -> None:
        self.window.evict(self.times.pop(place))


class _EvictAnywhere(_InTime):
    """A window of times that come in order and leave in any order."""

    verbs = (*_InTime.verbs, "range")
    anywhere: tuple[str, ...] = ("evict",)


class _Tree(_EvictAnywhere):
    """A window of times in any order, in a B-tree."""

    anywhere: tuple[str, ...] = ("insert", "evict")
    builds: tuple[str, ...] = BUILDS
    costs = ("combines", "visits", "steps")

    def capacity(self) -> int:
        return 0

    def work(self) -> dict[str, int]:
        return self.window.work()  # type: ignore[no-any-return]


class _Slices(_Tree):
    """A B-tree of times that come in any order; the oldest leaves."""

    verbs = _InOrder.verbs
    anywhere = ("insert",)
    builds = BUILDS[:2]


class _Partitions(_InOrder):
    """A window of partitions; it moves on, and values come late."""

    verbs = ("insert", "query", "advance")

    def grow(self, built: str) -> None:
        self.window.insert((self.window.youngest() or 0) + 1, 1)

    def apply(self, act: Act) -> int:
        if act.do == "query":
            self.window.query()
            return 1
        last = self.window.youngest() or 0
        if act.do == "advance":
            self.window.insert(last + act.many, 1)
            return act.many
        behind = int((1 - act.near) * (self.window.partitions - 1)) + abs(act.off)
        self.window.insert(last - max(min(behind, len(self.window) - 1), 0), 1)
        return 1

    def capacity(self) -> int:
        return 0


_KINDS: dict[str, type[_InOrder]] = {
    "in order": _InOrder,
    "levels": _Levels,
    "in time": _InTime,
    "evict anywhere": _EvictAnywhere,
    "tree": _Tree,
    "slices": _Slices,
    "partitions": _Partitions,
}


class Subject:
    """An aggregator under test: the function that creates its window, the window's kind, and its
    operations (`verbs`; by default all operations of the kind).

    `base` is the number of entries that a node of a tree adds when it splits off, in order.  With
    `ends`, operations stay near the ends of the window.

    >>> from sash.aggregators import Fiba
    >>> subject = Subject("Fiba", lambda op: Fiba(op, min_arity=2), "tree")
    >>> measure(subject, Loop(100, (Act("insert"), Act("evict"))), 1000).steps
    0.0
    """

    def __init__(
        self,
        name: str,
        make: Callable[[Operator], Any],
        kind: str,
        verbs: tuple[str, ...] = (),
        *,
        base: int = 2,
        ends: bool = False,
    ) -> None:
        self.name, self.base, self.ends = name, base, ends
        counted = counting(
            operator(
                identity=0,
                lift=lambda x: x,
                combine=lambda a, b: a + b,
                inverse=lambda a, b: a - b,
                commutative=True,
            )
        )
        self._calls = counted.calls
        self._empty = _KINDS[kind](make(counted.operator))
        self._kept: dict[str, list[_InOrder]] = {}
        self.verbs = verbs or self._empty.verbs
        self.builds, self.costs = self._empty.builds, self._empty.costs

    @property
    def combines(self) -> int:
        """The number of combines and inverses so far."""
        return self._calls["combine"] + self._calls["inverse"]

    def start(self, loop: Loop) -> _InOrder:
        """A window of the loop's size."""
        kept = self._kept.setdefault(loop.built, [self._empty])
        while len(kept) <= loop.size // _STRIDE:
            more = copy.copy(kept[-1])
            for _ in range(_STRIDE):
                more.grow(loop.built)
            kept.append(more)
        made = copy.copy(kept[loop.size // _STRIDE])
        for _ in range(loop.size % _STRIDE):
            made.grow(loop.built)
        return made


def measure(subject: Subject, loop: Loop, operations: int, *, warm: int = 0) -> Cost:
    """The cost of a loop over a number of operations, after `warm` others.

    >>> from sash.aggregators import TwoStacks
    >>> subject = Subject("TwoStacks", TwoStacks, "in order")
    >>> measure(subject, Loop(10, (Act("insert"), Act("evict"))), 5000).combines < 1.5
    True
    """
    driver = subject.start(loop)
    largest = len(driver)
    begun = warm == 0
    done = moved = 0
    most = 0.0
    before, combines, capacity = driver.work(), subject.combines, driver.capacity()
    for _ in range(operations + warm):  # also if no operation is possible
        for act in loop.acts:
            for _ in range(act.many if act.do in ("insert", "evict") else 1):
                start = subject.combines
                counts = driver.apply(act)
                done += counts
                most = max(most, (subject.combines - start) / max(counts, 1))
                now = driver.capacity()
                if now != capacity:
                    moved += max(now, capacity)
                    capacity = now
            largest = max(largest, len(driver))
        if not begun and done >= warm:
            begun, done, most, moved = True, 0, 0.0, 0
            before, combines = driver.work(), subject.combines
        elif begun and done >= operations:
            break
    each = max(done, 1)
    work = {name: count - before[name] for name, count in driver.work().items()}
    steps = sum(work.get(name, 0) for name in ("splits", "merges", "moves"))
    return Cost(
        done,
        (subject.combines - combines) / each,
        work.get("visits", 0) / each,
        steps / each,
        moved / each,
        most,
        largest,
    )
