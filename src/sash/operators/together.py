"""Run several operators as one, over one window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .contract import Operator, Part, _join

__all__ = ["together"]


def together(
    *operators: Operator, columns: Sequence[int | Sequence[int]] | None = None
) -> Operator:
    """Join several operators into one: it stores each event once, and each answer is a tuple.

    Without `columns`, all operators read the same column(s).  `columns` has, for each operator, the
    index of the column, or the indices of the columns, that it reads.

    >>> from sash.operators import max, sum
    >>> both = together(sum, max)
    >>> both.lower(both.fold([3, 9, 4]))
    (16, 9)
    >>> two = together(sum, max, columns=[0, 1])
    >>> two.lower(two.fold([(3, 10), (4, 20)]))
    (7, 20)
    """
    if not operators:
        raise TypeError("together needs at least one operator")
    for op in operators:
        if not isinstance(op, Operator):
            raise TypeError(f"together takes operators, not {op!r}")
    if columns is None:
        widths = {len(op.skips) for op in operators}
        if len(widths) > 1:
            raise TypeError(
                "these operators read different numbers of columns "
                f"({', '.join(f'{op.name}: {len(op.skips)}' for op in operators)}); "
                "say which with columns=[…]"
            )
        columns = [tuple(range(widths.pop()))] * len(operators)
    if len(columns) != len(operators):
        raise TypeError(f"{len(operators)} operators need as many columns, not {len(columns)}")
    parts: list[Part] = []
    for op, given in zip(operators, columns, strict=True):
        reads = (given,) if isinstance(given, int) else tuple(given)
        if len(reads) != len(op.skips) or any(c < 0 for c in reads):
            raise TypeError(f"{op.name} reads {len(op.skips)} column(s), not {list(reads)}")
        parts.append(Part(op, reads))
    width = 1 + max_index(parts)
    return _join(tuple(parts), width, name=f"together({', '.join(o.name for o in operators)})")


def max_index(parts: Sequence[Part]) -> Any:
    """The largest column index that any part reads."""
    return max(c for p in parts for c in p.columns)
