"""Window slide policies: rules, on aggregates, that decide which values leave a window.

The aggregators with bulk eviction, `LogMta` and `Amta`, take a policy and enforce it.
"""

from .contract import Policy, any_of, policy
from .ready import (
    at_most,
    at_most_span,
    at_most_sum,
    limited_by,
    since_longest_run,
    since_maximum,
)

__all__ = [
    "Policy",
    "any_of",
    "at_most",
    "at_most_span",
    "at_most_sum",
    "limited_by",
    "policy",
    "since_longest_run",
    "since_maximum",
]
