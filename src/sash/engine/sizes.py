"""Aggregates over other sizes than their query's windows (`Aggregate.over`), for sliding windows.

All end with the query's window, which alone decides which rows there are:

    sliding(4, 2)     0   2   4   6   8   10
                              [-------)            the query's own
                          [-----------)            over(6)
                                   [--)            over(1)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..query.query import Query
from ..slicing.edges import Periodic
from ..windows import Aligned, Sliding
from ..windows.contract import Cycle

__all__ = ["EVER", "further_cuts", "of_size", "reach_of", "sizes_of"]

#: As far back as a lifetime reaches: before all times, from any.
EVER = 2**61


def sizes_of(query: Query) -> dict[int | None, tuple[str, ...]]:
    """The columns that are over another size than the query's aligned windows, by size; None stands
    for all since the beginning.

    >>> import sash
    >>> select = {"n": sash.count(), "day": sash.count().over("1 day")}
    >>> sizes_of(Query(time="t", window=sash.tumbling("1 hour"), select=select))
    {86400000000: ('day',)}
    """
    made: dict[int | None, tuple[str, ...]] = {}
    if query.several and isinstance(query.window, Sliding):
        for column, size in query.sizes.items():
            if size != query.window.size:
                made[size] = (*made.get(size, ()), column)
    return made


def further_cuts(query: Query) -> list[Periodic]:
    """The edges at which the further sizes of a query's aggregates start."""
    if not isinstance(query.window, Sliding):
        return []
    window = query.window
    end = window.offset + window.size
    return [
        Periodic(window.every, (0,), (end - size) % window.every)
        for size in sizes_of(query)
        if size is not None
    ]


@dataclass(frozen=True)
class _Reach(Aligned):
    """A query's windows in the size of one of its aggregates, under the same numbers."""

    window: Sliding
    size: int

    @cached_property
    def cycle(self) -> Cycle:
        """One window for each slide; all end as the query's own."""
        own = self.window
        return Cycle(
            length=own.every,
            shortest=self.size,
            longest=self.size,
            offset=own.offset + own.size - self.size,
        )


def reach_of(query: Query) -> Aligned:
    """The windows that an event changes: the query's own, or those of its longest size."""
    window = query.aligned
    longest = max((EVER if size is None else size for size in sizes_of(query)), default=0)
    if not isinstance(window, Sliding) or longest <= window.size:
        return window
    return of_size(window, longest)


def of_size(window: Aligned, size: int | None) -> Aligned:
    """Windows of another size, None for all since the beginning, that end as a query's own windows,
    under the same numbers."""
    assert isinstance(window, Sliding)
    return _Reach(window, EVER if size is None else size)
