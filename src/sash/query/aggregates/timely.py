"""Aggregates that depend on time: a mean that weights by age, and a rate per second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import operators
from ...windows import duration, duration_text
from .contract import TIME, Aggregate

if TYPE_CHECKING:
    from pyarrow.compute import Expression

__all__ = ["ewm", "rate"]


def ewm(
    column: str, half_life: Any, *, time: str = TIME, where: Expression | None = None
) -> Aggregate:
    """The mean weighted by age: a value counts half as much for each `half_life` that it is older
    than the youngest; null if there are no values.

    It uses the query's times, unless you name another column of times.  It equals pandas'
    `ewm(halflife=…, times=…).mean()` over the window.

    >>> import sash
    >>> table = {"x": [1.0, 4.0], "t": [0, 10]}
    >>> sash.ewm("x", half_life=10, time="t").answer(table)
    3.0
    """
    micros = duration(half_life, "a half-life")
    if micros <= 0:
        raise ValueError(f"a half-life is a length of time, not {duration_text(micros)}")
    return Aggregate(operators.ewm(micros), (column, time), where=where)


def rate(column: str | None = None, *, where: Expression | None = None) -> Aggregate:
    """The sum of the values per second of the window, or without a column the number of rows per
    second; null if there are no values.

    It needs windows of one length: `sliding`, `tumbling`, `trailing`.

    >>> import sash
    >>> q = sash.Query(
    ...     time="t", window=sash.tumbling("10 s"), select={"a_second": sash.rate("bytes")}
    ... )
    >>> q.run({"t": [1, 2], "bytes": [30, 50]})["a_second"].to_pylist()
    [8.0]
    """
    if column is None:
        return Aggregate(operators.rate(rows=True), (TIME,), where=where)
    return Aggregate(operators.rate(), (column,), where=where)
