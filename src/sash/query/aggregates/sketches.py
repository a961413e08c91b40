"""Aggregates that estimate in fixed space, each with a stated bound on its error.

`hll`, `quantiles` and `top_k` need `pip install 'sash[sketches]'`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ... import operators
from .contract import Aggregate

if TYPE_CHECKING:
    from pyarrow.compute import Expression

__all__ = ["bloom", "count_min", "hll", "quantiles", "top_k"]


def bloom(column: str, bits: int, hashes: int = 7, *, where: Expression | None = None) -> Aggregate:
    """A Bloom filter of the values, for `sash.operators.might_contain`.

    With 10 bits per distinct value and 7 hashes, the filter wrongly reports 1% of other values as
    held.

    >>> import sash
    >>> held = sash.bloom("x", bits=1024).answer({"x": ["a", "b"]})
    >>> [sash.operators.might_contain(held, x) for x in ("a", "c")]
    [True, False]
    """
    return Aggregate(operators.bloom(bits, hashes), (column,), where=where)


def count_min(column: str, width: int, depth: int, *, where: Expression | None = None) -> Aggregate:
    """A count-min sketch of how often each value occurs, for `sash.operators.estimate`.

    For n values, an estimate is never too low, and at most e·n/width too high with a probability of
    at least 1 - e^-depth.

    >>> import sash
    >>> counts = sash.count_min("x", width=256, depth=4).answer({"x": ["a", "b", "a"]})
    >>> sash.operators.estimate(counts, "a", width=256, depth=4)
    2
    """
    return Aggregate(operators.count_min(width, depth), (column,), where=where)


def hll(column: str, lg_k: int = 12, *, where: Expression | None = None) -> Aggregate:
    """Estimate the number of distinct values, by HyperLogLog with 2^lg_k registers.

    The error is within 5% in 997 of 1000 cases for an `lg_k` of 12, and 1.2% for 16.

    >>> import sash
    >>> round(sash.hll("x").answer({"x": ["a", "b", "a", None]}))
    2
    """
    return Aggregate(operators.hll(lg_k), (column,), where=where)


def quantiles(
    column: str,
    at: float | Sequence[float] = (0.5,),
    *,
    k: int = 200,
    where: Expression | None = None,
) -> Aggregate:
    """Estimate the quantiles at the ranks `at`, or at one rank, as a struct, by a KLL sketch; null
    if there are no values.

    A quantile's rank is off by at most 1.33% with 99% probability for a `k` of 200.

    >>> import sash
    >>> sash.quantiles("x", at=(0.5, 1.0)).answer({"x": [3, 1, 2]})
    {'q0.5': 2.0, 'q1': 3.0}
    >>> sash.quantiles("x", 0.5).answer({"x": [3, 1, 2]})
    {'q0.5': 2.0}
    """
    return Aggregate(operators.quantiles(k, at), (column,), where=where)


def top_k(column: str, k: int, *, where: Expression | None = None) -> Aggregate:
    """The `k` most frequent strings with estimated counts, as a list, most frequent first.

    Counts are exact for up to 768 distinct strings, and more for a `k` above 64.

    >>> import sash
    >>> sash.top_k("x", k=2).answer({"x": ["b", "a", "c", "a", "b", "a"]})
    [('a', 3), ('b', 2)]
    """
    return Aggregate(operators.top_k(k), (column,), where=where)
