"""Exact, incremental sliding-window aggregation.

    sash.operators      what is computed: sum, max, arg_max, quantiles, …
    sash.operator(…)    an operator of your own, from plain Python functions
    sash.Query(…)       aggregates over columns, for sliding windows and keys; q.run(table)
    sash.aggregators    data structures that keep a window and answer over it
    sash.policy(…)      what leaves a window, in terms of what is aggregated; sash.policies has
                        ready ones
    sash.testing        laws, an oracle and schedules, to test operators with

>>> import numpy as np
>>> import sash
>>> from sash.aggregators import TwoStacksLite
>>> TwoStacksLite(sash.operators.max).slide(np.array([3.0, 1.0, 2.0, 0.0]), 2)
array([3., 3., 2., 2.])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import operators, policies, query
from .operators import Operator, operator
from .policies import Policy, policy
from .query import Aggregate, Query, aggregate
from .windows import Cumulate, cumulate, sliding, tumbling

if TYPE_CHECKING:
    from . import aggregators, testing
    from .kernels.program import InterpretedWarning

__version__ = "0.1.0"

__all__ = [
    "Aggregate",
    "Cumulate",
    "InterpretedWarning",
    "Operator",
    "Policy",
    "Query",
    "__version__",
    "aggregate",
    "aggregators",
    "cumulate",
    "operator",
    "operators",
    "policies",
    "policy",
    "sliding",
    "testing",
    "tumbling",
]


def __getattr__(name: str) -> Any:
    """The functions that make aggregates, and the heavier parts when they are first asked for."""
    if name in query.NAMES:
        globals()[name] = made = query.named(name)
        return made
    if name in ("aggregators", "testing", "spark"):
        return import_module(f".{name}", __name__)
    if name == "InterpretedWarning":
        return import_module(".kernels.program", __name__).InterpretedWarning
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
