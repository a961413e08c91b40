"""Operators as users write them."""

from __future__ import annotations

import numpy as np

import sash

__all__ = ["CEILING", "own_max", "own_sum", "saturating_max", "saturating_max_by_hand"]

CEILING = 3.0

#: The greatest value up to a ceiling, and how many values reached it.
saturating_max = sash.operator(
    identity=(-np.inf, 0),
    lift=lambda x: (min(x, CEILING), 1 if x >= CEILING else 0),
    combine=lambda a, b: (max(a[0], b[0]), a[1] + b[1]),
    lower=lambda a: a[0],
    name="saturating_max",
)

#: The same, compared by hand: other code for the compiler, the same promise.
saturating_max_by_hand = sash.operator(
    identity=(-np.inf, 0),
    lift=lambda x: (x, 0) if x < CEILING else (CEILING, 1),
    combine=lambda a, b: (a[0] if a[0] >= b[0] else b[0], a[1] + b[1]),
    lower=lambda a: a[0],
    name="saturating_max_by_hand",
)

#: What ready operators are set against: the same of integers, without nulls, emptiness or overflow.
own_sum = sash.operator(
    identity=0, lift=lambda x: x, combine=lambda a, b: a + b, commutative=True, name="own_sum"
)
own_max = sash.operator(
    identity=-(2**63),
    lift=lambda x: x,
    combine=lambda a, b: a if a > b else b,
    commutative=True,
    name="own_max",
)
