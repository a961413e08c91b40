"""Computes partials and answers by Spark's own aggregates.

Spark's generated code combines rows faster than Spark can send them to Python.  So Spark makes the
slices if its aggregates suffice: each word of a partial must be an aggregate of Spark, or follow
from some of them.  If each slice is a window, Spark computes the answers as well.

    operator                       Spark's aggregates
    count                          count
    sum, mean of whole numbers     count, and the sums of the upper and lower 32 bits, which cannot
                                   overflow, so that sums are exact
    sum, mean of floats            count, sum
    variance, stddev, …            count, avg, var_pop
    min, max, span                 min, max

If an aggregate has a condition, Spark's aggregates read null for each row that does not satisfy it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from ..kernels.columns import Array
from ..kernels.layout import leaf_operators, lowerings
from ..operators.contract import Operator
from ..operators.ranks import ABOVE, BELOW, signed_keys
from ..query.plan import Group, Plan
from .conditions import spark_condition
from .types import micros, quoted

__all__ = ["Native", "answers_of", "native_groups", "partials_of"]

_LOW = 2**32 - 1
_MOMENTS = ("variance", "population_variance", "stddev", "population_stddev")

#: Turns Arrow columns of aggregates into the words of partials: one array of int64 per word.
Words = Callable[[list[pa.Array]], list[Array]]
#: Computes the answer from the columns of the aggregates.
Answer = Callable[[list[Column]], Column]


@dataclass(frozen=True)
class Native:
    """One leaf of a group's operator: Spark's aggregates for it, and the functions that compute its
    partials and answers from them."""

    aggregates: tuple[Column, ...]
    words: Words  # reads the columns that Spark sends to Python
    answers: dict[str, Answer]  # by the names of the operators that the partial can answer
    lacking: dict[str, str] = field(default_factory=dict)  # why a null is no answer, of some names
    as_one: Answer | None = None  # the one column that Spark sends instead of all aggregates

    @property
    def width(self) -> int:
        """The number of columns that Spark sends to Python."""
        return 1 if self.as_one else len(self.aggregates)

    def sent(self, columns: list[Column]) -> list[Column]:
        """The columns that Spark sends to Python, computed from those of the aggregates."""
        return [self.as_one(columns)] if self.as_one else columns


def native_groups(plan: Plan, types: dict[str, DataType]) -> list[list[Native]] | None:
    """For each group of a plan, Spark's aggregates for its leaves; None if Spark lacks an
    operator or a condition."""
    made = []
    for group in plan.groups:
        leaves = [_native(group, *leaf, types) for leaf in leaf_operators(group.operator)]
        found = [leaf for leaf in leaves if leaf is not None]
        if len(found) < len(leaves):
            return None
        made.append(found)
    return made


def answers_of(
    group: Group, natives: list[Native], columns: list[list[Column]], *, lacking: bool = False
) -> list[Column]:
    """The answers of a group's aggregates, computed from the columns of each leaf.  An answer that
    does not exist is an error, or null if `lacking`."""
    made = []
    for shown, (operator, leaf) in zip(group.names, lowerings(group.operator), strict=True):
        native, name = natives[leaf], operator.name
        answer = native.answers[name](columns[leaf])
        if name in native.lacking and not lacking:
            error = F.raise_error(F.lit(f"{shown}: {native.lacking[name]}")).cast("long")
            answer = F.when(columns[leaf][0] > 0, F.coalesce(answer, error))
        made.append(answer)
    return made


def _native(
    group: Group,
    operator: Operator,
    columns: tuple[int, ...],
    where: int | None,
    types: dict[str, DataType],
) -> Native | None:
    """Spark's aggregates for a leaf, or None."""
    if operator.ready not in _MAKERS:
        return None
    name = group.columns[columns[0]]
    # Spark's aggregates skip nulls; an operator that does not skip them counts rows, as literals
    column = quoted(name) if any(operator.skips) else F.lit(1)
    if where is not None:
        holds = spark_condition(group.conditions[where - len(group.columns)], types)
        if holds is None:
            return None
        column = F.when(holds, column)
    return _MAKERS[operator.ready](operator, column, types[name])


def _count(operator: Operator, column: Column, given: DataType) -> Native:
    counted = F.count(column)
    return Native((counted,), lambda c: [_whole(c[0])], {"count": lambda c: c[0]})


def _sum(operator: Operator, column: Column, given: DataType) -> Native | None:
    kind = operator.types[0]
    if kind == "float64":
        return _float_sum(operator, column)
    if kind not in ("int64", "bool"):
        return None
    return _small_sum(column) if given.typeName() in _SMALL else _long_sum(column)


_SMALL = ("byte", "short", "integer", "boolean")


def _small_sum(column: Column) -> Native:
    """The sum of numbers of 32 bits: no sum of fewer than 2^31 of them overflows."""
    value = column.cast("int").cast("long")

    def words(c: list[pa.Array]) -> list[Array]:
        total = _whole(c[1])
        return [_whole(c[0]), total >> 62, total & (2**62 - 1)]

    return Native(
        (F.count(column), F.sum(value)),
        words,
        {
            "count": lambda c: c[0],
            "sum": lambda c: c[1],
            "mean": lambda c: c[1].cast("double") / c[0],
        },
    )


def _long_sum(column: Column) -> Native:
    value = column.cast("long")

    def words(c: list[pa.Array]) -> list[Array]:
        high, low = _whole(c[1]), _whole(c[2])
        high = high + (low >> 32)
        return [_whole(c[0]), high >> 30, ((high & (2**30 - 1)) << 32) | (low & _LOW)]

    def parts(c: list[Column]) -> tuple[Column, Column, Column]:
        high = c[1] + F.shiftright(c[2], 32)
        fits = (high >= F.lit(-(2**31))) & (high < F.lit(2**31))
        return fits, high, c[2].bitwiseAND(F.lit(_LOW))

    def total(c: list[Column]) -> Column:
        fits, high, low = parts(c)
        return F.when(fits, F.shiftleft(high, 32) + low)

    def mean(c: list[Column]) -> Column:
        _, high, low = parts(c)
        wide = high.cast("double") * F.lit(2.0**32) + low.cast("double")
        return F.coalesce(total(c).cast("double"), wide) / c[0]

    return Native(
        (
            F.count(column),
            F.sum(F.shiftright(value, 32)),
            F.sum(value.bitwiseAND(F.lit(_LOW))),
        ),
        words,
        {
            "count": lambda c: c[0],
            "sum": lambda c: F.when(c[0] > 0, total(c)),
            "mean": lambda c: F.when(c[0] > 0, mean(c)),
        },
        {"sum": "the sum leaves int64"},
    )


def _float_sum(operator: Operator, column: Column) -> Native:
    value = column.cast("double")
    if operator.ready == "sum":
        # -0.0 stands for no value, and `+ 0.0` turns every sum of -0.0 into 0.0
        return Native(
            (F.sum(value) + F.lit(0.0),),
            lambda c: [_float_words(c[0], -0.0)],
            {"sum": lambda c: c[0]},
        )
    return Native(
        (F.count(column), F.sum(value) + F.lit(0.0)),
        lambda c: [_whole(c[0]), _float_words(c[1], 0.0)],
        {
            "count": lambda c: c[0],
            "sum": lambda c: c[1],
            "mean": lambda c: c[1] / c[0],
        },
    )


def _moments(operator: Operator, column: Column, given: DataType) -> Native | None:
    if operator.types[0] not in ("float64", "int64", "bool"):
        return None
    whole = operator.types[0] == "bool"
    value = (column.cast("int") if whole else column).cast("double")

    def words(c: list[pa.Array]) -> list[Array]:
        count = _whole(c[0])
        spread = _floats(c[2], 0.0) * count
        mean = np.where(np.isnan(spread), np.nan, _floats(c[1], 0.0))
        return [count, mean.view(np.int64), spread.view(np.int64)]

    def sample(c: list[Column]) -> Column:
        return F.when(c[0] > 1, c[2] * c[0] / (c[0] - 1))

    return Native(
        (F.count(column), F.avg(value), F.var_pop(value)),
        words,
        {
            "count": lambda c: c[0],
            "variance": sample,
            "stddev": lambda c: F.sqrt(sample(c)),
            "population_variance": lambda c: c[2],
            "population_stddev": lambda c: F.sqrt(c[2]),
        },
    )


def _extreme(operator: Operator, column: Column, given: DataType) -> Native | None:
    kind, greatest = operator.types[0], operator.ready == "max"
    if kind == "object":
        return None
    pick = F.max if greatest else F.min
    if kind == "float64":
        return _float_extreme(operator.ready, pick, column.cast("double"))
    value = _as_long(column, kind, given)
    words: Words = lambda c: [_there(c[0]), _whole(c[0])]  # noqa: E731
    picked: Answer = lambda c: c[0]  # noqa: E731
    return Native((pick(value),), words, {operator.ready: picked})


def _float_extreme(name: str, pick: Callable[[Column], Column], value: Column) -> Native:
    """The least or greatest float.  To Spark, -0.0 and 0.0 are equal, and it keeps the one that it
    meets first.  So another aggregate finds the right zero: the least or greatest of 1 for -0.0 and
    2 for 0.0.  In Spark, only their text tells them apart; only zeros are turned into text."""
    sign = F.when(value == 0.0, F.when(value.cast("string") == "-0.0", 1).otherwise(2))
    # Spark's optimizer would merge two literals 0.0 and -0.0 into one
    signed: Answer = lambda c: F.when(c[1] == 1, -F.abs(c[0])).otherwise(F.abs(c[0]))  # noqa: E731
    picked: Answer = lambda c: F.when(c[0] == 0.0, signed(c)).otherwise(c[0])  # noqa: E731
    empty = BELOW if name == "max" else ABOVE

    return Native(
        (pick(value), pick(sign)),
        lambda c: [_keys(c[0], _floats(c[0], 0.0), empty)],
        {name: picked},
        as_one=picked,
    )


def _span(operator: Operator, column: Column, given: DataType) -> Native | None:
    if operator.types[0] != "float64":
        return None
    value = column.cast("double") + F.lit(0.0)
    return Native(
        (F.min(value), F.max(value)),
        lambda c: [_there(c[0]), *(_keys(x, _floats(x, 0.0), 0) for x in c)],
        {"span": lambda c: c[1] - c[0]},
    )


_MAKERS: dict[str, Callable[[Operator, Column, DataType], Native | None]] = {
    "count": _count,
    "sum": _sum,
    "mean": _sum,
    **dict.fromkeys(_MOMENTS, _moments),
    "min": _extreme,
    "max": _extreme,
    "span": _span,
}


def _as_long(column: Column, kind: str, given: DataType) -> Column:
    """Cast a whole number, bool or time to Spark's long."""
    if kind == "timestamp":
        return micros(column, given)
    return (column.cast("int") if kind == "bool" else column).cast("long")


# words from Arrow columns


def _whole(column: pa.Array) -> Array:
    filled = column.fill_null(0) if column.null_count else column
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.int64)


def _there(column: pa.Array) -> Array:
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.int64)


def _floats(column: pa.Array, empty: float) -> Array:
    filled = column.fill_null(empty) if column.null_count else column
    return np.array(filled.to_numpy(zero_copy_only=False), dtype=np.float64)


def _float_words(column: pa.Array, empty: float) -> Array:
    words: Array = _floats(column, empty).view(np.int64)
    return words


def _keys(column: pa.Array, values: Array, empty: int) -> Array:
    """Turn floats into integers in the same order, NaN last; `empty` where the column is null."""
    keys: Array = signed_keys(values)
    if column.null_count:
        keys[~np.asarray(column.is_valid().to_numpy(zero_copy_only=False))] = empty
    return keys


def partials_of(leaves: Sequence[tuple[int, Words]], columns: list[pa.Array]) -> Any:
    """The partials of a group, as rows of words, from the columns that Spark sent.  Each leaf has
    the number of its columns, and the function that turns them into words."""
    words, at = [], 0
    for count, made in leaves:
        words += made(columns[at : at + count])
        at += count
    return np.ascontiguousarray(np.stack(words, axis=1))
