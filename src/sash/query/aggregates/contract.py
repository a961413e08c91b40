"""What an aggregate is: an operator and the columns it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...operators.contract import Operator

__all__ = ["Aggregate", "aggregate", "reading"]


@dataclass(frozen=True)
class Aggregate:
    """An operator and the columns it reads, for a query's `select`.

    `returns` is the Arrow type of the answers.  It is only needed for an operator of your own with
    object partials, on Spark, which must know the type beforehand.

    >>> import sash
    >>> sash.max("delay")
    max('delay')
    """

    operator: Operator
    columns: tuple[str, ...]
    returns: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.operator, Operator):
            raise TypeError(f"an aggregate needs an operator, not {self.operator!r}")
        for column in self.columns:
            if not isinstance(column, str):
                raise TypeError(
                    f"{self.operator.name} reads columns by name, and was given {column!r}"
                )
        wanted = len(self.operator.skips)
        if len(self.columns) != wanted and (self.columns or not self._counts_rows()):
            raise TypeError(
                f"{self.operator.name} reads {wanted} column{'s' if wanted != 1 else ''}, and was "
                f"given {', '.join(self.columns) or 'none'}"
            )

    def _counts_rows(self) -> bool:
        from ..registry import counts_rows  # imports pyarrow, which takes a while

        return counts_rows(self.operator)

    def answer(self, table: Mapping[str, Sequence[Any]]) -> Any:
        """Return the answer over all rows of a table, in their order, by plain Python: to try an
        aggregate out.

        >>> import sash
        >>> table = {"carrier": ["UA", "AA", "B6"], "delay": [3, 9, None]}
        >>> sash.max("delay").answer(table), sash.arg_max("carrier", by="delay").answer(table)
        (9, 'AA')
        """
        columns = [table[c] for c in self.columns or list(table)[:1]]
        values = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        found = self.operator.python_lower()(self.operator.fold(values))
        if not isinstance(found, tuple):
            return found
        fields = self.operator.fields
        return dict(zip(fields, found, strict=True)) if fields else list(found)

    def __repr__(self) -> str:
        return f"{self.operator.name}({', '.join(map(repr, self.columns))})"


def aggregate(operator: Operator, *columns: str, returns: Any = None) -> Aggregate:
    """Apply any operator to columns.

    `returns` is the Arrow type of the answers, where Spark must know it beforehand.

    >>> import sash
    >>> xor = sash.operator(identity=0, lift=lambda x: x, combine=lambda a, b: a ^ b, name="xor")
    >>> sash.aggregate(xor, "flags")
    xor('flags')
    """
    return Aggregate(operator, columns, returns)


def reading(operator: Operator, *columns: str, ignore_nulls: bool) -> Aggregate:
    """An operator over columns, without the rows in which one of them is null if so asked."""
    return Aggregate(operator.ignore_nulls() if ignore_nulls else operator, columns)
