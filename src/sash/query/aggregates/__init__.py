"""Aggregates: operators over columns, with their names in SQL.

sash.max("delay")                      one column
sash.arg_max("carrier", by="delay")    the returned column, and the compared column
sash.count()                           all rows; count("x") counts rows where x is not null
sash.first_n("x", 3)                   a parameter of the operator
sash.aggregate(mine, "x")              an operator of your own

contract     Aggregate, and aggregate for any operator
numeric      count, sum, mean, variance, regression, …
order        min, max, arg_max, …
position     first, last, first_n, m4, longest_run, …
collection   collect, count_distinct, concat, quantile, …
logic        any, all, bit_or, …
timely       ewm, rate
sketches     bloom, count_min, hll, quantiles, top_k
"""

from .collection import collect, collect_distinct, concat, count_distinct, median, mode, quantile
from .contract import Aggregate, aggregate
from .logic import all, any, bit_and, bit_or, bit_xor
from .numeric import (
    avg,
    correlation,
    count,
    covariance,
    geometric_mean,
    kurtosis,
    linear_regression,
    mean,
    population_covariance,
    population_stddev,
    population_variance,
    product,
    skewness,
    standard_deviation,
    stddev,
    sum,
    sum_of_squares,
    variance,
)
from .order import arg_max, arg_min, max, max_by, max_count, min, min_by, min_count, span
from .position import change, first, first_n, last, last_n, longest_run, m4, nth_youngest
from .sketches import bloom, count_min, hll, quantiles, top_k
from .timely import ewm, rate

__all__ = [
    "Aggregate",
    "aggregate",
    "all",
    "any",
    "arg_max",
    "arg_min",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bloom",
    "change",
    "collect",
    "collect_distinct",
    "concat",
    "correlation",
    "count",
    "count_distinct",
    "count_min",
    "covariance",
    "ewm",
    "first",
    "first_n",
    "geometric_mean",
    "hll",
    "kurtosis",
    "last",
    "last_n",
    "linear_regression",
    "longest_run",
    "m4",
    "max",
    "max_by",
    "max_count",
    "mean",
    "median",
    "min",
    "min_by",
    "min_count",
    "mode",
    "nth_youngest",
    "population_covariance",
    "population_stddev",
    "population_variance",
    "product",
    "quantile",
    "quantiles",
    "rate",
    "skewness",
    "span",
    "standard_deviation",
    "stddev",
    "sum",
    "sum_of_squares",
    "top_k",
    "variance",
]
