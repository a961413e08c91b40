"""Exact, incremental sliding-window aggregation.

    sash.Query(…)       aggregates over columns, for windows and keys: q.run(table), q.stream()
    sash.share({…})     several queries that share slices over one table or stream
    sash.max("delay")   aggregates: count, sum, mean, arg_max, quantiles, …
    sash.sliding(…)     windows
    sash.operator(…)    an operator of your own, from plain Python functions, for
                        sash.aggregate(operator, "delay")
    sash.operators      ready operators: sum, max, arg_max, quantiles, …
    sash.aggregators    data structures that keep a window and answer over it
    sash.policy(…)      a rule that decides which values leave a window; sash.policies has ready
                        ones
    sash.lateness(…)    what an allowed lateness would cost a stream
    sash.plot           pictures of results and of lateness
    sash.sql(text)      a query from SQL, as Spark, Flink, the standard or CQL write it
    sash.stores         stores for windows and streams larger than memory, or that outlive a process
    sash.spark          the same queries on Spark
    sash.testing        laws, an oracle and schedules, to test operators with

>>> import numpy as np
>>> import sash
>>> from sash.aggregators import TwoStacksLite
>>> TwoStacksLite(sash.operators.max).slide(np.array([3.0, 1.0, 2.0, 0.0]), 2)
array([3., 3., 2., 2.])
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from . import operators, policies, windows
from .operators import Operator, operator
from .policies import Policy, policy
from .query import Query, Shared, share
from .query.aggregates import (
    Aggregate,
    aggregate,
    all,
    any,
    arg_max,
    arg_min,
    avg,
    bit_and,
    bit_or,
    bit_xor,
    bloom,
    change,
    collect,
    collect_distinct,
    concat,
    correlation,
    count,
    count_distinct,
    count_min,
    covariance,
    ewm,
    first,
    first_n,
    geometric_mean,
    hll,
    kurtosis,
    last,
    last_n,
    linear_regression,
    longest_run,
    m4,
    max,
    max_by,
    max_count,
    mean,
    median,
    min,
    min_by,
    min_count,
    mode,
    nth_youngest,
    population_covariance,
    population_stddev,
    population_variance,
    product,
    quantile,
    quantiles,
    rate,
    skewness,
    span,
    standard_deviation,
    stddev,
    sum,
    sum_of_squares,
    top_k,
    variance,
)
from .windows import (
    Calendar,
    Cumulate,
    Delta,
    Kept,
    KeptByClock,
    Punctuated,
    Rows,
    Session,
    Sliding,
    Trailing,
    cumulate,
    delta,
    lifetime,
    punctuated,
    rows,
    session,
    sliding,
    trailing,
    tumbling,
    window,
)

if TYPE_CHECKING:
    from . import aggregators, plot, stores, testing
    from . import spark as spark
    from .aggregators.guard import InUse
    from .engine.lateness import lateness
    from .engine.shared_stream import SharedStream
    from .engine.stream import Stream
    from .explain import Explanation, SharedExplanation
    from .kernels.program import InterpretedWarning
    from .sql import sql as sql
    from .sql.errors import SqlError
    from .sql.shared_stream import SharedSqlStream
    from .sql.statement import Statement
    from .sql.stream import SqlStream

#: The version of sash.
__version__ = "0.1.0"

__all__ = [
    "Aggregate",
    "Calendar",
    "Cumulate",
    "Delta",
    "Explanation",
    "InUse",
    "InterpretedWarning",
    "Kept",
    "KeptByClock",
    "Operator",
    "Policy",
    "Punctuated",
    "Query",
    "Rows",
    "Session",
    "Shared",
    "SharedExplanation",
    "SharedSqlStream",
    "SharedStream",
    "Sliding",
    "SqlError",
    "SqlStream",
    "Statement",
    "Stream",
    "Trailing",
    "__version__",
    "aggregate",
    "aggregators",
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
    "cumulate",
    "delta",
    "ewm",
    "first",
    "first_n",
    "geometric_mean",
    "hll",
    "kurtosis",
    "last",
    "last_n",
    "lateness",
    "lifetime",
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
    "operator",
    "operators",
    "plot",
    "policies",
    "policy",
    "population_covariance",
    "population_stddev",
    "population_variance",
    "product",
    "punctuated",
    "quantile",
    "quantiles",
    "rate",
    "rows",
    "session",
    "share",
    "skewness",
    "sliding",
    "span",
    "sql",
    "standard_deviation",
    "stddev",
    "stores",
    "sum",
    "sum_of_squares",
    "testing",
    "top_k",
    "trailing",
    "tumbling",
    "variance",
    "window",
    "windows",
]

#: Names whose modules take a while to load, and their modules.
_LAZY = {
    "Explanation": ".explain",
    "SharedExplanation": ".explain",
    "InUse": ".aggregators.guard",
    "InterpretedWarning": ".kernels.program",
    "SharedStream": ".engine.shared_stream",
    "SqlError": ".sql.errors",
    "SharedSqlStream": ".sql.shared_stream",
    "SqlStream": ".sql.stream",
    "Statement": ".sql.statement",
    "Stream": ".engine.stream",
    "lateness": ".engine.lateness",
}


if not TYPE_CHECKING:  # for type checkers, a module with __getattr__ has every name

    def __getattr__(name: str) -> Any:
        """Load a heavier module on first use of its name."""
        if name in ("aggregators", "plot", "spark", "sql", "stores", "testing"):
            return import_module(f".{name}", __name__)
        if name in _LAZY:
            return getattr(import_module(_LAZY[name], __name__), name)
        from .query.elsewhere import ELSEWHERE
        from .query.names import did_you_mean

        meant = did_you_mean(name, __all__)
        instead = f"; use {ELSEWHERE[name]}" if name in ELSEWHERE else meant
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{instead}")


def __dir__() -> list[str]:
    # `help` loads each name, and sash.spark does not load without its packages
    return [*__all__, "spark"] if find_spec("pyspark") else __all__
