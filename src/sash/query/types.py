"""Types of columns as operators know them, and the types of answers, as Spark has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from .aggregates import Aggregate

__all__ = ["column_type", "result_type", "value_type"]


def column_type(given: pa.DataType) -> str:
    """What operators call the type of an Arrow column."""
    if pa.types.is_boolean(given):
        return "bool"
    if pa.types.is_integer(given):
        return "int64"
    if pa.types.is_floating(given):
        return "float64"
    if pa.types.is_timestamp(given):
        return "timestamp"
    return "object"


def value_type(given: pa.DataType) -> pa.DataType:
    """The type of a column's values, however they are encoded."""
    return given.value_type if pa.types.is_dictionary(given) else given


def result_type(chosen: Aggregate, given: Sequence[pa.DataType]) -> pa.DataType | None:
    """The Arrow type of an aggregate's answers over columns of these types, or None if only the
    answers tell.

    >>> import sash
    >>> result_type(sash.max("x"), [pa.int32()]), result_type(sash.sum("x"), [pa.int32()])
    (DataType(int32), DataType(int64))
    """
    operator = chosen.operator
    if chosen.returns is not None:
        return chosen.returns
    if not operator.combine.__module__.startswith("sash.operators"):
        return None  # a user's own, whatever its name
    name = operator.name.partition("(")[0]
    kinds = [value_type(t) for t in given]
    if name in _RULES:
        return _RULES[name](kinds)
    if name in ("linear_regression", "quantiles"):
        return pa.struct([(field, pa.float64()) for field in operator.fields])
    return None


def _number(kinds: list[pa.DataType]) -> pa.DataType | None:
    """A sum, or another number in the domain of the values."""
    kind = column_type(kinds[0])
    if kind == "timestamp":
        return pa.int64()  # microseconds
    return {"float64": pa.float64(), "int64": pa.int64(), "bool": pa.int64()}.get(kind)


def _joined(kinds: list[pa.DataType]) -> pa.DataType:
    return pa.binary() if pa.types.is_fixed_size_binary(kinds[0]) else kinds[0]


def _m4(kinds: list[pa.DataType]) -> pa.DataType:
    fields = []
    for name in ("first", "last", "min", "max"):
        fields += [(f"{name}_time", kinds[0]), (name, kinds[1])]
    return pa.struct(fields)


def _longest_run(kinds: list[pa.DataType]) -> pa.DataType | None:
    interval = _number(kinds)
    if interval is None:
        return None
    ends = [("start", kinds[0]), ("end", kinds[0])]
    return pa.struct([*ends, ("interval", interval), ("length", pa.int64())])


def _top_k(kinds: list[pa.DataType]) -> pa.DataType:
    return pa.list_(pa.struct([("item", kinds[0]), ("count", pa.int64())]))


_RULES: dict[str, Callable[[list[pa.DataType]], pa.DataType | None]] = {
    **dict.fromkeys(("max", "min", "first", "last", "nth_youngest"), lambda kinds: kinds[0]),
    **dict.fromkeys(("arg_max", "arg_min"), lambda kinds: kinds[0]),
    **dict.fromkeys(
        ("collect", "collect_distinct", "first_n", "last_n"), lambda kinds: pa.list_(kinds[0])
    ),
    **dict.fromkeys(
        ("count", "count_distinct", "max_count", "min_count"), lambda kinds: pa.int64()
    ),
    **dict.fromkeys(("sum", "sum_of_squares", "span"), _number),
    **dict.fromkeys(("mean", "geometric_mean", "product", "hll"), lambda kinds: pa.float64()),
    **dict.fromkeys(("stddev", "variance"), lambda kinds: pa.float64()),
    **dict.fromkeys(("population_stddev", "population_variance"), lambda kinds: pa.float64()),
    "concat": _joined,
    "m4": _m4,
    "longest_run": _longest_run,
    "top_k": _top_k,
}
