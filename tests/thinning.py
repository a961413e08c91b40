"""Parts of large products of parameters, so that the tests take minutes.

A test marked `thin` runs with each value of each parameter, and one marked `thin(2)` with each pair
of values of two parameters, instead of the whole product.  The compiled stage and the one with the
JIT off choose differently, so both together run more of the product.  `SASH_FULL=1` (`make
test-full`) runs everything: whole products, and more examples that hypothesis draws.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import Any, TypeVar

T = TypeVar("T")

#: Everything runs.
FULL = os.environ.get("SASH_FULL") == "1"
#: Which stage this is: compiled, or with the JIT off.
STAGE = 1 if os.environ.get("SASH_JIT") == "0" else 0


def examples(most: int) -> int:
    """How many examples hypothesis draws where the whole would be `most`."""
    return most if FULL else max(10, most // 3)


def first_of(values: Iterable[T], many: int) -> list[T]:
    """The first values of many alike, such as seeds; with SASH_FULL all."""
    return list(values) if FULL else list(values)[:many]


def crossed(*values: Iterable[Any], turn: int = 0) -> list[tuple[Any, ...]]:
    """The product of some values, or as many tuples of it as have each value once.  Which values
    meet depends on `turn` and on the stage.

    >>> crossed("abc", [1, 2])
    [('a', 1), ('b', 2), ('c', 1)]
    """
    lists = [list(each) for each in values]
    if FULL:
        return list(product(*lists))
    turn += STAGE
    return [
        tuple(each[(i + j * turn) % len(each)] for j, each in enumerate(lists))
        for i in range(max(map(len, lists)))
    ]


def cover(cases: Sequence[Sequence[str]], strength: int, begin: int) -> set[int]:
    """The numbers of cases that have among them each combination of `strength` values that some
    case has; the search goes round from case `begin`.

    >>> grid = ["ax", "ay", "bx", "by", "cx", "cy"]
    >>> sorted(cover(grid, 1, 0))
    [0, 3, 4]
    """
    wanted = [set(combinations(enumerate(case), min(strength, len(case)))) for case in cases]
    order = [(begin + i) % len(cases) for i in range(len(cases))]
    missing = set().union(*wanted)
    kept: set[int] = set()
    used: Counter[tuple[int, str]] = Counter()

    def gain(i: int) -> tuple[int, int]:
        """What a case adds; of cases that add as much, the one whose values are rarer so far."""
        return len(wanted[i] & missing), -sum(used[each] for each in enumerate(cases[i]))

    while missing:
        best = max(order, key=gain)
        kept.add(best)
        missing -= wanted[best]
        used.update(enumerate(cases[best]))
    return kept
