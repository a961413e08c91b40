"""Shrink a failing list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["smallest"]

T = TypeVar("T")


def smallest(items: Sequence[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """Shrink a failing list until no single item can be dropped without the failure going away.

    It first tries to drop runs of half the list, then of a quarter, and so on down to single items
    (Zeller's delta debugging, without its complements), until a round of single items drops none.

    >>> smallest(list(range(100)), lambda xs: 7 in xs and 93 in xs)
    [7, 93]
    """
    kept = list(items)
    size = max(len(kept) // 2, 1)
    while True:
        dropped = False
        at = 0
        while at < len(kept):
            less = kept[:at] + kept[at + size :]
            if fails(less):
                kept, dropped = less, True
            else:
                at += size
        if size > 1:
            size //= 2
        elif not dropped:
            return kept
