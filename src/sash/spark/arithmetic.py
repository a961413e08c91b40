"""The arithmetic of windows and edges on Spark's columns, for whole numbers of any sign."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from ..windows.contract import UTC, Arithmetic, Clock

__all__ = ["SPARK", "in_range"]


def _div(a: Column, b: int) -> Column:
    """Floor division.  Spark's `div` truncates towards zero, so the remainder is subtracted first;
    Spark's `/` divides doubles, which is not exact."""
    by = F.lit(b)
    return F.call_function("div", a - F.pmod(a, by), by)


#: For columns of type long.
SPARK = Arithmetic(
    div=_div,
    most=lambda a, b: F.greatest(a, F.lit(b)),
    at_least=lambda a, b: (a >= F.lit(b)).cast("long"),
)


def in_range(time: Column, clock: Clock = UTC) -> Column:
    """True for a time in the range of the windows' clock; null for a null time."""
    low, high = clock.limits
    return (time > F.lit(low)) & (time < F.lit(high))
