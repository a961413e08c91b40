"""Facts about each ready operator, one row each: how to build it, its other names, the type of its
answers, which is Spark's, and whether an answer can be null.

`Operator.ready` is the key of a row, so a user's operator has no row, whatever its name is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from .. import operators as ops
from ..operators.contract import Operator
from ..operators.decimals import Name, decimal_operator, decimal_type
from .types import How, column_type, has_order, has_places, value_type

if TYPE_CHECKING:
    from .aggregates import Aggregate

__all__ = [
    "REGISTRY",
    "SQL_NAMES",
    "Facts",
    "Which",
    "check_columns",
    "counts_rows",
    "for_decimals",
    "is_nullable",
    "numbered_fields",
    "picks_values",
    "read_numbered",
    "reads_floats",
    "result_type",
    "value_of",
    "which_of_range",
]

#: Returns the type of the answers, from the operator and the types of its columns; None if only
#: the answers show it.
Rule = Callable[[Operator, Sequence[pa.DataType]], pa.DataType | None]


#: Which rows of a range form the answer: all, the first few, the last few, the n-th from the end,
#: or a quantile of their values.
Which = Literal["all", "first", "last", "nth", "quantile"]


@dataclass(frozen=True)
class Kind:
    """A kind of column types, and its name in messages."""

    words: str
    tests: tuple[Callable[[pa.DataType], bool], ...]

    def __contains__(self, given: pa.DataType) -> bool:
        return pa.types.is_null(given) or any(is_a(given) for is_a in self.tests)


_is = pa.types
_NUMBERS = (_is.is_integer, _is.is_floating, _is.is_boolean)
_TEXT = (_is.is_string, _is.is_large_string)
NUMBERS = Kind("numbers", _NUMBERS)
RANKED = Kind("numbers and decimals", (*_NUMBERS, _is.is_decimal))
WHOLE = Kind("whole numbers", (_is.is_integer,))
BOOLS = Kind("bools", (_is.is_boolean,))
MOMENTS = Kind("times", (_is.is_integer, _is.is_timestamp))
SPANNED = Kind(
    "numbers, decimals, times, dates and lengths of time",
    (*_NUMBERS, _is.is_decimal, _is.is_timestamp, _is.is_date, _is.is_duration),
)
TEXT = Kind("text", _TEXT)
JOINED = Kind(
    "text, bytes and lists",
    (
        *_TEXT,
        _is.is_binary,
        _is.is_large_binary,
        _is.is_fixed_size_binary,
        _is.is_list,
        _is.is_large_list,
        _is.is_fixed_size_list,
    ),
)


@dataclass(frozen=True)
class Facts:
    """One row: a ready operator, or the factory that builds it from parameters, and its facts."""

    make: Operator | Callable[..., Operator]
    type: Rule
    aliases: tuple[str, ...] = ()
    nullable: bool = True  # False if it has an answer over no values
    counts_rows: bool = False  # it may read no column
    picks: bool = False  # it only picks or compares values, and so keeps their nanoseconds
    #: Set if the operator can read numbers in place of values of any type: for each column, the
    #: field of a partial that holds the number.
    numbered: tuple[int, ...] = ()
    value_of: int | None = None  # the column from which an answer takes a value, if it does
    ranged: Which | None = None  # which rows of a range form the answer
    orders: tuple[int, ...] = ()  # the columns whose values it compares
    takes: tuple[Kind | None, ...] = ()  # the kinds of its columns, None for any kind
    floats: bool = False  # it reads decimals as floats, as Spark does


def result_type(chosen: Aggregate, given: Sequence[pa.DataType]) -> pa.DataType | None:
    """The Arrow type of an aggregate's answers over columns of these types, or None if only the
    answers show it.

    >>> import sash
    >>> result_type(sash.max("x"), [pa.int32()]), result_type(sash.sum("x"), [pa.int32()])
    (DataType(int32), DataType(int64))
    """
    if chosen.returns is not None:
        return chosen.returns
    facts = REGISTRY.get(chosen.operator.ready)
    return facts.type(chosen.operator, [value_type(t) for t in given]) if facts else None


def is_nullable(operator: Operator) -> bool:
    """True if an answer of the operator can be null.

    >>> is_nullable(ops.count), is_nullable(ops.max)
    (False, True)
    """
    facts = REGISTRY.get(operator.ready)
    return facts is None or facts.nullable


def counts_rows(operator: Operator) -> bool:
    """True if the operator counts rows, so that it need not read a column.

    >>> counts_rows(ops.count), counts_rows(ops.count.ignore_nulls())
    (True, False)
    """
    facts = REGISTRY.get(operator.ready)
    return facts is not None and facts.counts_rows and not any(operator.skips)


def picks_values(operator: Operator) -> bool:
    """True if the operator only picks or compares values.

    >>> picks_values(ops.max), picks_values(ops.span)
    (True, False)
    """
    facts = REGISTRY.get(operator.ready)
    return facts is not None and facts.picks


def read_numbered(operator: Operator, kinds: Sequence[pa.DataType]) -> tuple[How, ...] | None:
    """How the operator can read columns of these types and still run compiled, if some of them hold
    neither numbers nor times: it reads row numbers if it only picks a value, and ranks if it
    compares values.  None if it cannot, or if it need not.

    >>> read_numbered(ops.arg_max, [pa.string(), pa.float64()])
    ('rows', 'values')
    """
    facts = REGISTRY.get(operator.ready)
    others = [column_type(kind) == "object" for kind in kinds]
    if facts is None or not facts.numbered or not any(others):
        return None
    compared = [kinds[i] for i in facts.orders if others[i]]
    if not all(map(has_places, compared)):
        return None
    by_number: tuple[How, How] = ("rows", "places")
    return tuple(
        by_number[i in facts.orders] if other else "values" for i, other in enumerate(others)
    )


def numbered_fields(operator: Operator) -> tuple[int, ...]:
    """For each column of an operator that reads numbers in place of values, the field of a partial
    that holds the number.

    >>> numbered_fields(ops.arg_max), numbered_fields(ops.sum)
    ((3, 1), ())
    """
    facts = REGISTRY.get(operator.ready)
    return () if facts is None else facts.numbered


def reads_floats(operator: Operator) -> bool:
    """True if the operator reads decimals as floats.

    >>> reads_floats(ops.stddev), reads_floats(ops.sum)
    (True, False)
    """
    facts = REGISTRY.get(operator.ready)
    return facts is not None and facts.floats


def which_of_range(operator: Operator) -> Which | None:
    """Which rows of a range form the answer, if the answer consists of rows: all, the first or last
    few, or the n-th from the end.

    >>> which_of_range(ops.last_n(3)), which_of_range(ops.max)
    ('last', None)
    """
    facts = REGISTRY.get(operator.ready)
    return None if facts is None else facts.ranged


def value_of(operator: Operator) -> int | None:
    """The column from which the answer takes a value; None if the answer is not such a value.

    >>> value_of(ops.max), value_of(ops.max_count)
    (0, None)
    """
    facts = REGISTRY.get(operator.ready)
    return None if facts is None else facts.value_of


def check_columns(operator: Operator, given: Sequence[pa.DataType]) -> None:
    """Raise TypeError if the operator cannot use columns of these types."""
    facts = REGISTRY.get(operator.ready)
    if facts is None:
        return
    for kind, wanted in zip(given, facts.takes, strict=False):
        if wanted is not None and kind not in wanted:
            raise TypeError(f"{operator.ready} takes {wanted.words}")
    for i in facts.orders:
        if not has_order(given[i]):
            raise TypeError("maps have no order; use a column of their keys or values")


# Rules


def _same(_: Operator, kinds: Sequence[pa.DataType]) -> pa.DataType:
    return kinds[0]


def _list(_: Operator, kinds: Sequence[pa.DataType]) -> pa.DataType:
    return pa.list_(kinds[0])


def _whole(_: Operator, kinds: Sequence[pa.DataType]) -> pa.DataType:
    return pa.int64()


def _float(_: Operator, kinds: Sequence[pa.DataType]) -> pa.DataType:
    return pa.float64()


def _floats(operator: Operator, kinds: Sequence[pa.DataType]) -> pa.DataType:
    return pa.struct([(field, pa.float64()) for field in operator.fields])


def _unknown(_: Operator, kinds: Sequence[pa.DataType]) -> None:
    return None


def _number(_: Operator, kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """The type of a sum, or of another number in the domain of the values."""
    kind = column_type(kinds[0])
    if kind == "timestamp":
        return pa.int64()  # microseconds
    return {"float64": pa.float64(), "int64": pa.int64(), "bool": pa.int64()}.get(kind)


def _summed(operator: Operator, kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """The type of a sum; for decimals, with ten more digits, as on Spark."""
    return _decimal("sum", kinds[0]) or _number(operator, kinds)


def _averaged(operator: Operator, kinds: Sequence[pa.DataType]) -> pa.DataType:
    """The type of a mean; for decimals, with four more digits after the point, as on Spark."""
    return _decimal("mean", kinds[0]) or pa.float64()


def _decimal(name: Name, kind: pa.DataType) -> pa.DataType | None:
    if not pa.types.is_decimal(kind):
        return None
    return pa.decimal128(*decimal_type(name, kind.precision, kind.scale))


def for_decimals(operator: Operator, kinds: Sequence[pa.DataType]) -> Operator | None:
    """The operator that sums or averages decimals of a type, None for other operators and types.

    >>> for_decimals(ops.sum, [pa.decimal128(5, 2)])
    <operator sum>
    """
    names: dict[str, Name] = {"sum": "sum", "mean": "mean"}
    name = names.get(operator.ready.removeprefix("exact_"))
    if name is None or not pa.types.is_decimal(kinds[0]):
        return None
    return decimal_operator(name, kinds[0].precision, kinds[0].scale)


def _joined(_: Operator, kinds: Sequence[pa.DataType]) -> pa.DataType:
    return pa.binary() if pa.types.is_fixed_size_binary(kinds[0]) else kinds[0]


def _m4(_: Operator, kinds: Sequence[pa.DataType]) -> pa.DataType:
    fields = []
    for name in ("first", "last", "min", "max"):
        fields += [(f"{name}_time", kinds[0]), (name, kinds[1])]
    return pa.struct(fields)


def _longest_run(operator: Operator, kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    interval = _number(operator, kinds)
    if interval is None:
        return None
    ends = [("start", kinds[0]), ("end", kinds[0])]
    return pa.struct([*ends, ("interval", interval), ("length", pa.int64())])


def _top_k(_: Operator, kinds: Sequence[pa.DataType]) -> pa.DataType:
    return pa.list_(pa.struct([("item", kinds[0]), ("count", pa.int64())]))


#: The facts, by the operator's name in `sash.operators`.
REGISTRY: dict[str, Facts] = {
    "count": Facts(ops.count, _whole, nullable=False, counts_rows=True),
    "sum": Facts(ops.sum, _summed, takes=(RANKED,)),
    "sum_of_squares": Facts(ops.sum_of_squares, _number, takes=(NUMBERS,)),
    "product": Facts(ops.product, _float, takes=(RANKED,), floats=True),
    "mean": Facts(ops.mean, _averaged, aliases=("avg",), takes=(RANKED,)),
    "geometric_mean": Facts(ops.geometric_mean, _float, takes=(RANKED,), floats=True),
    "variance": Facts(ops.variance, _float, takes=(RANKED,), floats=True),
    "population_variance": Facts(ops.population_variance, _float, takes=(RANKED,), floats=True),
    "stddev": Facts(
        ops.stddev, _float, aliases=("standard_deviation",), takes=(RANKED,), floats=True
    ),
    "population_stddev": Facts(ops.population_stddev, _float, takes=(RANKED,), floats=True),
    "linear_regression": Facts(ops.linear_regression, _floats, takes=(RANKED, RANKED), floats=True),
    "exact_sum": Facts(ops.exact_sum, _summed, takes=(RANKED,)),
    "exact_mean": Facts(ops.exact_mean, _averaged, takes=(RANKED,)),
    "covariance": Facts(ops.covariance, _float, takes=(RANKED, RANKED), floats=True),
    "population_covariance": Facts(
        ops.population_covariance, _float, takes=(RANKED, RANKED), floats=True
    ),
    "correlation": Facts(ops.correlation, _float, takes=(RANKED, RANKED), floats=True),
    "skewness": Facts(ops.skewness, _float, takes=(RANKED,), floats=True),
    "kurtosis": Facts(ops.kurtosis, _float, takes=(RANKED,), floats=True),
    "ewm": Facts(ops.ewm, _float, takes=(RANKED, MOMENTS), floats=True),
    "rate": Facts(ops.rate, _float, takes=(None,), floats=True),
    "any": Facts(ops.any, _same, takes=(BOOLS,)),
    "all": Facts(ops.all, _same, takes=(BOOLS,)),
    "bit_or": Facts(ops.bit_or, _same, takes=(WHOLE,)),
    "bit_and": Facts(ops.bit_and, _same, takes=(WHOLE,)),
    "bit_xor": Facts(ops.bit_xor, _same, takes=(WHOLE,)),
    "max": Facts(ops.max, _same, picks=True, numbered=(1,), value_of=0, orders=(0,)),
    "min": Facts(ops.min, _same, picks=True, numbered=(1,), value_of=0, orders=(0,)),
    "span": Facts(ops.span, _number, takes=(SPANNED,)),
    "max_count": Facts(
        ops.max_count, _whole, nullable=False, picks=True, numbered=(1,), orders=(0,)
    ),
    "min_count": Facts(
        ops.min_count, _whole, nullable=False, picks=True, numbered=(1,), orders=(0,)
    ),
    "arg_max": Facts(
        ops.arg_max,
        _same,
        aliases=("max_by",),
        picks=True,
        numbered=(3, 1),
        value_of=0,
        orders=(1,),
    ),
    "arg_min": Facts(
        ops.arg_min,
        _same,
        aliases=("min_by",),
        picks=True,
        numbered=(3, 1),
        value_of=0,
        orders=(1,),
    ),
    "first": Facts(ops.first, _same, picks=True, numbered=(2,), value_of=0),
    "last": Facts(ops.last, _same, picks=True, numbered=(2,), value_of=0),
    "change": Facts(ops.change, _number, takes=(SPANNED,)),
    "first_n": Facts(ops.first_n, _list, nullable=False, picks=True, ranged="first"),
    "last_n": Facts(ops.last_n, _list, nullable=False, picks=True, ranged="last"),
    "nth_youngest": Facts(ops.nth_youngest, _same, picks=True, ranged="nth"),
    "m4": Facts(ops.m4, _m4, picks=True, orders=(1,)),
    "longest_run": Facts(ops.longest_run, _longest_run, orders=(1,), takes=(SPANNED, None)),
    "collect": Facts(ops.collect, _list, nullable=False, picks=True, ranged="all"),
    "collect_distinct": Facts(ops.collect_distinct, _list, nullable=False, picks=True),
    "count_distinct": Facts(ops.count_distinct, _whole, nullable=False, picks=True),
    "quantile": Facts(ops.quantile, _float, ranged="quantile", takes=(RANKED,), floats=True),
    "median": Facts(ops.median, _float, ranged="quantile", takes=(RANKED,), floats=True),
    "mode": Facts(ops.mode, _same, picks=True, orders=(0,)),
    "concat": Facts(ops.concat, _joined, takes=(JOINED,)),
    "bloom": Facts(ops.bloom, _unknown, nullable=False),
    "count_min": Facts(ops.count_min, _unknown, nullable=False),
    "hll": Facts(ops.hll, _float, nullable=False),
    "quantiles": Facts(ops.quantiles, _floats, takes=(RANKED,)),
    "top_k": Facts(ops.top_k, _top_k, nullable=False, takes=(TEXT,)),
}

#: More names in SQL, by the operator's name in `sash.operators`.
SQL_NAMES: dict[str, tuple[str, ...]] = {
    "variance": ("var_samp",),
    "population_variance": ("var_pop",),
    "stddev": ("stddev_samp", "std"),
    "population_stddev": ("stddev_pop",),
    "covariance": ("covar_samp",),
    "population_covariance": ("covar_pop",),
    "correlation": ("corr",),
    "any": ("bool_or", "some"),
    "all": ("bool_and", "every"),
    "quantile": ("percentile", "percentile_cont"),
    "max_count": ("maxcount",),
    "min_count": ("mincount",),
    "arg_max": ("argmax",),
    "arg_min": ("argmin",),
    "first": ("first_value", "any_value"),
    "last": ("last_value",),
    "collect": ("collect_list", "array_agg"),
    "collect_distinct": ("collect_set",),
    "hll": ("approx_count_distinct", "approx_distinct"),
    "quantiles": ("percentile_approx", "approx_percentile"),
}
