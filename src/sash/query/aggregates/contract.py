"""What an aggregate is: an operator, the columns it reads, and over how long a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from ...operators.contract import Operator
from ...windows import Trailing, Window, duration, lifetime
from ...windows.durations import check_length, duration_text

__all__ = ["Aggregate", "Size", "aggregate", "reading"]

#: The size of an aggregate's own windows, in microseconds, or all since the beginning.
Size: TypeAlias = int | Literal["lifetime"]


@dataclass(frozen=True)
class Aggregate:
    """An operator and the columns it reads, for a query's `select`.

    `returns` is the Arrow type of the answers.  It is only needed for an operator of your own with
    object partials, on Spark, which must know the type beforehand.

    `size` is set by `over`; without it, the aggregate is over the query's own windows.

    >>> import sash
    >>> sash.max("delay")
    max('delay')
    """

    operator: Operator
    columns: tuple[str, ...]
    returns: Any = None
    size: Size | None = None

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
        if self.size is not None and self.size != "lifetime":
            check_length(self.size, "size")

    def over(self, size: Any) -> Aggregate:
        """Give the aggregate windows of another size than the query's own: a duration, or
        `sash.lifetime()` for all since the beginning.  They end together with the query's windows,
        and the rows of the result are those of the query's windows.

        >>> import sash
        >>> q = sash.Query(
        ...     time="t",
        ...     window=sash.trailing(5),
        ...     select={"n": sash.count(), "n_9": sash.count().over(9)},
        ... )
        >>> q.select["n_9"]
        count().over('9 microseconds')
        """
        if self.size is not None:
            raise ValueError(f"{self!r} has a size already; give it one size")
        if isinstance(size, Window):
            if size == lifetime():
                return replace(self, size="lifetime")
            instead = "sash.lifetime()" if _lasts(size) else "the size itself, such as '1 hour'"
            raise TypeError(
                f"over({size!r}) is a window, and an aggregate takes the place of its windows from "
                f"the query's; give {instead}"
            )
        return replace(self, size=duration(size, "the size of an aggregate's windows"))

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
        shown = f"{self.operator.name}({', '.join(map(repr, self.columns))})"
        if self.size is None:
            return shown
        size = "lifetime()" if self.size == "lifetime" else repr(duration_text(self.size))
        return f"{shown}.over({size})"


def _lasts(window: Window) -> bool:
    return isinstance(window, Trailing) and window.size is None


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
