"""An aggregate: an operator, the columns that it reads, and the size of its windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ...operators.aggregator import from_aggregator, is_aggregator
from ...operators.contract import Operator
from ...windows import Sized, Window, duration, lifetime
from ...windows.durations import check_length, duration_text
from ..conditions import Condition
from ..names import what_is

if TYPE_CHECKING:
    from pyarrow.compute import Expression

__all__ = ["TIME", "Aggregate", "Size", "aggregate", "reading"]

#: The size of an aggregate's own windows: microseconds, or all time so far.
Size: TypeAlias = int | Literal["lifetime"]

#: Stands for the column of times of the query that selects the aggregate.
TIME = "\0time"


@dataclass(frozen=True)
class Aggregate:
    """An operator and the columns it reads, for a query's `select`.

    `returns` is the Arrow type of the answers.  Only Spark needs it, for an operator of your own
    with object partials, because Spark must know the type beforehand.  `where` is a condition: rows
    that do not satisfy it do not count in this aggregate, as with SQL's FILTER.

    `over` sets `size`; without it, the aggregate uses the query's own windows.

    >>> import sash
    >>> sash.max("delay")
    max('delay')
    """

    operator: Operator
    columns: tuple[str, ...]
    returns: Any = None
    size: Size | None = None
    where: Any = None  # an Arrow expression, which becomes a Condition

    def __post_init__(self) -> None:
        if self.where is not None:
            object.__setattr__(self, "where", Condition.of(self.where))
        if not isinstance(self.operator, Operator):
            raise TypeError(
                "an aggregate needs an operator, or an aggregator with zero, reduce, merge and "
                f"finish, not {self.operator!r}"
            )
        for column in self.columns:
            if not isinstance(column, str):
                raise TypeError(
                    f"{self.operator.name} reads columns by name, and was given {what_is(column)}"
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
        """Give the aggregate windows of another size than the query's: a duration, or
        `sash.lifetime()` for all time so far.  They end together with the query's windows, and the
        result has one row for each of the query's windows.

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
            raise ValueError(f"{self!r} has a size already; call over only once")
        if isinstance(size, Window):
            if size == lifetime():
                return replace(self, size="lifetime")
            instead = "sash.lifetime()" if _lasts(size) else "the size itself, such as '1 hour'"
            raise TypeError(
                f"over takes a size, and {size!r} is a window; an aggregate's windows end where "
                f"the query's windows end, so give {instead}"
            )
        return replace(self, size=duration(size, "the size of an aggregate's windows"))

    @property
    def reads(self) -> tuple[str, ...]:
        """All columns that the aggregate reads, including those of its condition.

        >>> import pyarrow.compute as pc, sash
        >>> sash.sum("amount", where=pc.field("country") == "FR").reads
        ('amount', 'country')
        """
        return (*self.columns, *(self.where.columns if self.where else ()))

    def _counts_rows(self) -> bool:
        from ..registry import counts_rows  # imports pyarrow, which takes a while

        return counts_rows(self.operator)

    def answer(self, table: Mapping[str, Sequence[Any]]) -> Any:
        """Try the aggregate out: compute its answer over all rows of a table, in their order, in
        plain Python.

        >>> import sash
        >>> table = {"carrier": ["UA", "AA", "B6"], "delay": [3, 9, None]}
        >>> sash.max("delay").answer(table), sash.arg_max("carrier", by="delay").answer(table)
        (9, 'AA')
        """
        if self.where:
            table = self._chosen(table)
        if TIME in self.columns:
            raise ValueError(f"{self} goes by the times of a query, which says their column")
        columns = [table[c] for c in self.columns or list(table)[:1]]
        values = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        found = self.operator.python_lower()(self.operator.fold(values))
        if not isinstance(found, tuple):
            return found
        fields = self.operator.fields
        return dict(zip(fields, found, strict=True)) if fields else list(found)

    def _chosen(self, table: Mapping[str, Sequence[Any]]) -> Mapping[str, Sequence[Any]]:
        """The rows that satisfy the condition."""
        import pyarrow as pa

        holds = self.where.holds(pa.table({c: pa.array(table[c]) for c in self.where.columns}))
        kept = holds.nonzero()[0].tolist()
        return {name: [column[i] for i in kept] for name, column in table.items()}

    def __repr__(self) -> str:
        said = [
            *(repr(c) for c in self.columns if c != TIME),
            *([f"where={self.where}"] if self.where else []),
        ]
        shown = f"{self.operator.name}({', '.join(said)})"
        if self.size is None:
            return shown
        size = "lifetime()" if self.size == "lifetime" else repr(duration_text(self.size))
        return f"{shown}.over({size})"


def _lasts(window: Window) -> bool:
    return isinstance(window, Sized) and window.length is None


def aggregate(
    operator: Operator | Any, *columns: str, returns: Any = None, where: Expression | None = None
) -> Aggregate:
    """Apply an operator, or an object with Spark's `Aggregator` methods, to columns.

    Such an object has `zero`, `reduce(buffer, x)`, `merge(a, b)` and `finish(buffer)`.  The methods
    may change their buffers, because sash passes copies.  If the buffers are not plain values and
    lists, the object needs `encode` and `decode`, to and from bytes, for stores, snapshots and
    Spark.  If the order of rows does not matter, it sets `commutative = True`.

    `returns` is the Arrow type of the answers, if Spark must know it beforehand.  Rows that do not
    satisfy `where` do not count.

    >>> import sash
    >>> xor = sash.operator(identity=0, lift=lambda x: x, combine=lambda a, b: a ^ b, name="xor")
    >>> sash.aggregate(xor, "flags")
    xor('flags')
    """
    if not isinstance(operator, Operator) and is_aggregator(operator):
        operator = from_aggregator(operator, len(columns))
    return Aggregate(operator, columns, returns, where=where)


def reading(
    operator: Operator, *columns: str, ignore_nulls: bool, where: Expression | None
) -> Aggregate:
    """An aggregate of an operator over columns; with `ignore_nulls` it skips rows where one of them
    is null."""
    chosen = operator.ignore_nulls() if ignore_nulls else operator
    return Aggregate(chosen, columns, where=where)
