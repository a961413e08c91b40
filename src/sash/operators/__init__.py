"""Operators, which say what to compute over a window: ready ones, and `operator` to write others.

    numeric      count, sum, mean, variance, regression, …
    exact        exact_sum, exact_mean
    moments      covariance, correlation, skewness, kurtosis
    logic        any, all, bit_or, bit_and, bit_xor
    order        min, max, arg_max, …
    position     first, last, change, first_n, m4, …
    runs         longest_run
    ordered      quantile, median, mode
    timely       ewm, rate
    collection   collect, count_distinct, concat, …
    sketches     bloom, count_min, hll, quantiles, top_k
    together     several operators as one

`max_by`, `min_by`, `avg` and `standard_deviation` are aliases for users of SQL and Spark.

>>> from sash import operators
>>> operators.avg is operators.mean
True
"""

from . import pickling  # noqa: F401  (which registers itself)
from .collection import collect, collect_distinct, concat, count_distinct
from .contract import Operator
from .exact import exact_mean, exact_sum
from .logic import all, any, bit_and, bit_or, bit_xor
from .moments import correlation, covariance, kurtosis, population_covariance, skewness
from .numeric import (
    count,
    geometric_mean,
    linear_regression,
    mean,
    population_stddev,
    population_variance,
    product,
    stddev,
    sum,
    sum_of_squares,
    variance,
)
from .order import arg_max, arg_min, max, max_count, min, min_count, span
from .ordered import median, mode, quantile
from .own import operator
from .position import change, first, first_n, last, last_n, m4, nth_youngest
from .runs import longest_run
from .sketches import bloom, count_min, estimate, hll, might_contain, quantiles, top_k
from .timely import ewm, rate
from .together import together

#: The same as `arg_max`, under Spark's name.
max_by = arg_max
#: The same as `arg_min`, under Spark's name.
min_by = arg_min
#: The same as `mean`, under its name in SQL.
avg = mean
#: The same as `stddev`, under its full name.
standard_deviation = stddev

__all__ = [
    "Operator",
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
    "estimate",
    "ewm",
    "exact_mean",
    "exact_sum",
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
    "might_contain",
    "min",
    "min_by",
    "min_count",
    "mode",
    "nth_youngest",
    "operator",
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
    "together",
    "top_k",
    "variance",
]
