"""Operators over columns, by the names SQL has for them.

sash.max("delay")                       one column
sash.arg_max("carrier", by="delay")     what is picked, and by what
sash.count()                            all rows; count("x") the rows where x is not null
sash.first_n("x", n=3)                  an operator's own parameters by name
sash.aggregate(mine, "x")               an operator of your own
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import operators
from ..operators.contract import Operator

__all__ = ["NAMES", "Aggregate", "aggregate", "named"]


@dataclass(frozen=True)
class Aggregate:
    """An operator and the columns it reads; `returns` is the Arrow type of its answers, needed
    only where it cannot be told: for an operator of your own with object partials, on Spark.

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
        if len(self.columns) != wanted and (self.columns or not self.counts_rows):
            raise TypeError(
                f"{self.operator.name} reads {wanted} column{'s' if wanted != 1 else ''}, and was "
                f"given {', '.join(self.columns) or 'none'}"
            )

    @property
    def counts_rows(self) -> bool:
        """Whether this counts rows, whatever is in them."""
        from .registry import counts_rows  # which imports pyarrow

        return counts_rows(self.operator)

    def __repr__(self) -> str:
        return f"{self.operator.name}({', '.join(map(repr, self.columns))})"


def aggregate(operator: Operator, *columns: str, returns: Any = None) -> Aggregate:
    """Any operator over columns.

    >>> import sash
    >>> xor = sash.operator(identity=0, lift=lambda x: x, combine=lambda a, b: a ^ b, name="xor")
    >>> sash.aggregate(xor, "flags")
    xor('flags')
    """
    return Aggregate(operator, columns, returns)


_READY = [
    "avg",
    "collect",
    "collect_distinct",
    "concat",
    "count_distinct",
    "first",
    "geometric_mean",
    "last",
    "linear_regression",
    "longest_run",
    "m4",
    "max",
    "max_count",
    "mean",
    "min",
    "min_count",
    "population_stddev",
    "population_variance",
    "product",
    "span",
    "standard_deviation",
    "stddev",
    "sum",
    "sum_of_squares",
    "variance",
]
_MADE = ["bloom", "count_min", "first_n", "hll", "last_n", "nth_youngest", "quantiles", "top_k"]

#: The functions that `sash` has for ready operators.
NAMES = ("count", "arg_max", "arg_min", "max_by", "min_by", *_READY, *_MADE)


def named(name: str) -> Callable[..., Aggregate]:
    """The function that makes an aggregate from columns, for one of NAMES."""
    if name == "count":
        return _count
    if name in _PICKED:
        return _PICKED[name]
    if name in _MADE:
        factory = getattr(operators, name)

        def made(*columns: str, **parameters: Any) -> Aggregate:
            return Aggregate(factory(**parameters), columns)

        function: Callable[..., Aggregate] = made
        what = f"`sash.operators.{name}` over a column, with the operator's parameters by name."
    else:
        operator: Operator = getattr(operators, name)

        def ready(*columns: str, ignore_nulls: bool = False) -> Aggregate:
            return Aggregate(operator.ignore_nulls() if ignore_nulls else operator, columns)

        function = ready
        what = f"`sash.operators.{name}` over columns, for a query."
    function.__name__ = function.__qualname__ = name
    function.__doc__ = what
    return function


_non_null = operators.count.ignore_nulls()


def _count(*columns: str) -> Aggregate:
    """How many rows there are, or with a column, how many where it is not null."""
    return Aggregate(_non_null if columns else operators.count, columns)


def arg_max(value: str, by: str) -> Aggregate:
    """The value of the row whose `by` is greatest, the first of equals."""
    return Aggregate(operators.arg_max, (value, by))


def arg_min(value: str, by: str) -> Aggregate:
    """The value of the row whose `by` is least, the first of equals."""
    return Aggregate(operators.arg_min, (value, by))


_PICKED = {"arg_max": arg_max, "max_by": arg_max, "arg_min": arg_min, "min_by": arg_min}

_count.__name__ = _count.__qualname__ = "count"
