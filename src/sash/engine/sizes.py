"""Aggregates over other lengths than their query's windows (`Aggregate.over`), for aligned windows.

All sizes end where the query's window ends, and that window alone decides which rows there are:

    sliding(4, 2)     0   2   4   6   8   10
                              [-------)            the query's own
                          [-----------)            over(6)
                                   [--)            over(1)
"""

from __future__ import annotations

from ..query.query import Query
from ..slicing.edges import Periodic, starts_of
from ..windows import Aligned, Sized

__all__ = ["further_cuts", "of_size", "reach_of", "sizes_of"]


def sizes_of(query: Query) -> dict[int | None, tuple[str, ...]]:
    """The columns over another size than the query's aligned windows, by size; None stands for a
    lifetime.

    >>> import sash
    >>> select = {"n": sash.count(), "day": sash.count().over("1 day")}
    >>> sizes_of(Query(time="t", window=sash.tumbling("1 hour"), select=select))
    {86400000000: ('day',)}
    """
    made: dict[int | None, tuple[str, ...]] = {}
    window = query.window
    if query.several and isinstance(window, Aligned) and isinstance(window, Sized):
        for column, size in query.sizes.items():
            if size != window.length:
                made[size] = (*made.get(size, ()), column)
    return made


def further_cuts(query: Query) -> list[Periodic]:
    """The edges at which the other sizes of a query's aggregates start."""
    return [starts_of(of_size(query.aligned, size)) for size in sizes_of(query) if size is not None]


def reach_of(query: Query) -> Aligned:
    """The windows that an event may change: the query's own windows, or those of its longest
    size."""
    window, sizes = query.aligned, sizes_of(query)
    longest = None if None in sizes else max((s for s in sizes if s is not None), default=0)
    if longest is not None and (not isinstance(window, Sized) or longest <= (window.length or 0)):
        return window
    return of_size(window, longest)


def of_size(window: Aligned, size: int | None) -> Aligned:
    """Windows of another size (None: a lifetime) that end where a query's own windows end, under
    the same numbers."""
    assert isinstance(window, Sized)
    made = window.of_length(size)
    assert isinstance(made, Aligned)
    return made
