"""Several sizes in one row: find the aggregates of a query that differ only in the size of their
windows.

    select      n_1h = count().over("1 hour")    n_24h = count().over("24 hours")    max = max("x")
    aggregates  n_1h = count()                                                       max = max("x")
    sizes       24 hours, 1 hour

The engine lifts an event once for each aggregate, however many sizes the aggregate has; its windows
of different sizes end together and begin at different times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .aggregates import Aggregate
from .query import Query

__all__ = ["Over", "Represented", "represented"]

Named = tuple[str, Aggregate]


@dataclass(frozen=True)
class Over:
    """The sizes of a group's windows, which end together, and the columns of the result.

    `sizes` has the longest first, in microseconds; None stands for all time so far.  `picked` has,
    for each column of the result, its name, the index of its aggregate and the index of its size.
    """

    sizes: tuple[int | None, ...]
    picked: tuple[tuple[str, int, int], ...]

    def at(self, size: int) -> tuple[str, ...]:
        """The result's columns over windows of one size, given by its index, in order of
        aggregates.  Every aggregate must have that size."""
        found = sorted((part, name) for name, part, place in self.picked if place == size)
        return tuple(name for _, name in found)


@dataclass(frozen=True)
class Represented:
    """The distinct aggregates of a query, where a difference in size alone does not count.

    `aggregates` has each one under its first name; `names` has all names of each one, by size.
    """

    aggregates: dict[str, Aggregate]
    names: dict[str, dict[int | None, str]]

    def over(self, names: Sequence[str], *, every: bool) -> Over:
        """The sizes of the aggregates `names`, or with `every` the sizes of all aggregates of the
        query."""
        used = {size for name in (self.names if every else names) for size in self.names[name]}
        sizes = sorted(used, key=lambda size: (size is not None, -(size or 0)))
        picked = tuple(
            (chosen, part, sizes.index(size))
            for part, name in enumerate(names)
            for size, chosen in self.names[name].items()
        )
        return Over(tuple(sizes), picked)

    def by_sizes(
        self, chosen: Sequence[tuple[str, Aggregate]]
    ) -> list[list[tuple[str, Aggregate]]]:
        """Group aggregates that have the same set of sizes."""
        made: dict[frozenset[int | None], list[Named]] = {}
        for name, aggregate in chosen:
            made.setdefault(frozenset(self.names[name]), []).append((name, aggregate))
        return list(made.values())


def represented(query: Query) -> Represented:
    """Find the distinct aggregates of a query with windows of several sizes.

    >>> import sash
    >>> select = {"short": sash.count(), "long": sash.count().over(9), "most": sash.max("x")}
    >>> found = represented(sash.Query(time="t", window=sash.trailing(5), select=select))
    >>> found.names
    {'short': {5: 'short', 9: 'long'}, 'most': {5: 'most'}}
    """
    aggregates: dict[str, Aggregate] = {}
    names: dict[str, dict[int | None, str]] = {}
    alike: dict[Any, list[str]] = {}
    for name, size in query.sizes.items():
        chosen = query.select[name]
        same = alike.setdefault(_by_what_it_is(chosen), [])
        # a column that is there twice is answered twice
        known = next((other for other in same if size not in names[other]), None)
        if known is None:
            same.append(name)
            aggregates[name], names[name] = replace(chosen, size=None), {}
        names[known or name][size] = name
    return Represented(aggregates, names)


def _by_what_it_is(chosen: Aggregate) -> Any:
    op = chosen.operator
    made_by = (op.ready, repr(op.parameters), op.skips) if op.ready else id(op)
    return made_by, chosen.columns, chosen.where, str(chosen.returns)
