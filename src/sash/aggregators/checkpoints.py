"""How many checkpoints CBiX should have, by what they cost."""

from __future__ import annotations

import math

__all__ = ["average_combines", "best_checkpoints"]


def best_checkpoints(partitions: int, late_in_oldest: float) -> int:
    """How many checkpoints take the fewest combines, by `average_combines`.

    The paper's Theorem 4.1 differentiates its average, with a logarithm to base 10 where the tree
    is binary.  The true average has dents where n/k is a power of two, so here it is compared: for
    every k where they are few, else around the minimum of the smooth curve and at the dents.

    >>> best_checkpoints(9, 0), best_checkpoints(1024, 0), best_checkpoints(1024, 4)
    (3, 32, 64)
    """
    n = partitions
    if n <= 4096:
        tried = set(range(1, n + 1))
    else:
        smooth = math.sqrt(n * (late_in_oldest + 1) / (2 * math.log(2)))
        tried = {round(smooth * 2 ** (i / 32)) for i in range(-64, 65)}
        tried |= {-(-n >> j) for j in range(n.bit_length() + 1)}
    inside = sorted(k for k in tried if 1 <= k <= n)
    return min(inside, key=lambda k: average_combines(n, k, late_in_oldest, 0))


def average_combines(n: int, k: int, p1: float, p2: float) -> float:
    """The combines of a slide by one partition, on average.

    >>> average_combines(1024, 32, 0, 1)
    9.9375
    """
    leaves = -(-n // k)
    low = leaves.bit_length() - 1
    deep = 2 * leaves - (2 << low)  # leaves that have low + 1 nodes above them, not low
    above = low + deep / leaves
    return (p1 + 1) * above + p1 + (leaves + k - 2) * k / n + 3 * p2
