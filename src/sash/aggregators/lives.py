"""In which of its lives a stored window wrote a page.

A window that is opened goes back to its last `sync`, and then writes other pages under the numbers
of those that it had written after it:

    first life      | page 0 | page 1 | sync | page 2 | page 3 |  killed
    second life                              | page 2 | page 3 | page 4 | …

The checksum of a page covers the life it was written in.  So a store that returns the page 2 of the
first life to the second is found out, as RocksDB is when a flipped bit hides the newer one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["Lives"]


class Lives:
    """The lives of a window: the name of each, and the first page that it writes of each level.

    >>> lives = Lives()
    >>> first = lives.of(0, 2)
    >>> lives.begin({0: 2})
    >>> lives.of(0, 1) == first, lives.of(0, 2) == first
    (True, False)
    """

    def __init__(self, kept: Iterable[Sequence[Any]] = ()) -> None:
        self._lives: list[tuple[str, dict[int, int]]] = [
            (name, {int(level): page for level, page in first.items()}) for name, first in kept
        ]
        if not self._lives:
            self.begin({})

    def begin(self, first: Mapping[int, int]) -> None:
        """Begin a life that writes pages from these on, of other levels from the first on."""
        self._lives.append((os.urandom(8).hex(), {at: page for at, page in first.items() if page}))

    def of(self, level: int, page: int) -> bytes:
        """The name of the life that wrote a page."""
        for name, first in reversed(self._lives):
            if page >= first.get(level, 0):
                return name.encode()
        raise AssertionError("the first life has every page")

    def kept(self, oldest: Sequence[int]) -> list[tuple[str, dict[int, int]]]:
        """The lives for a root, without those whose pages have all left: those before `oldest`, by
        level."""
        over = 0
        for _, first in self._lives[1:]:
            if any(page > oldest[level] for level, page in first.items()):
                break
            over += 1
        if over:
            self._lives = [(self._lives[over][0], {}), *self._lives[over + 1 :]]
        return self._lives
