"""Check that a window slide policy is monotone, by hypothesis."""

from __future__ import annotations

from typing import Any

from ..policies import Policy
from .laws import LawError, need_hypothesis, values_of

__all__ = ["monotone"]

_LONGEST = 12  # values in a window: enough for a rule to change its mind


def monotone(policy: Policy, values: Any = None, *, max_examples: int = 200) -> None:
    """Check that a policy is monotone: if it holds for some number of the oldest values, it holds
    for any smaller number.  Raises `LawError` if not: the evictions of such a policy depend on the
    order in which the window asks it.

    `values` is a hypothesis strategy of the values that the policy's operator reads; without it,
    the check draws suitable values, with negative ones and nulls.

    >>> import sash
    >>> monotone(sash.policies.at_most(3))
    >>> even = sash.policy(lambda total, old: old % 2 == 0, over=sash.operators.count, name="even")
    >>> monotone(even)
    Traceback (most recent call last):
        ...
    sash.testing.laws.LawError: <even over count> is not monotone: in the window [0, 0] it holds for
    the oldest 2, and not for the oldest 1
    """
    if not isinstance(policy, Policy):
        raise TypeError(f"monotone is for policies, not {policy!r}")
    hypothesis = need_hypothesis()
    st = hypothesis.strategies
    items = values_of(policy.over) if values is None else values
    quiet = hypothesis.settings(
        max_examples=max_examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    try:
        window = hypothesis.find(
            st.lists(items, min_size=1, max_size=_LONGEST),
            lambda window: _breaks(policy, window) is not None,
            settings=quiet,
        )
    except hypothesis.errors.NoSuchExample:
        return
    less, more = _breaks(policy, window) or (0, 0)
    raise LawError(
        f"{policy!r} is not monotone: in the window {window!r} it holds for the oldest {more}, and "
        f"not for the oldest {less}",
        ("monotone",),
    )


def _breaks(policy: Policy, window: list[Any]) -> tuple[int, int] | None:
    """Two numbers of oldest values: one for which the policy does not hold, and a larger one for
    which it does; None if there are none."""
    over, less = policy.over, None
    lift, combine, lower = over.python_lift(), over.python_combine(), over.python_lower()
    total, old = lower(over.fold(window)), over.identity
    for n, value in enumerate(window, 1):
        old = combine(old, lift(value))
        if policy.rule(total, lower(old)):
            if less is not None:
                return less, n
        elif less is None:
            less = n
    return None
