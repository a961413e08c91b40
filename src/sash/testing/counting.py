"""Count an operator's calls: a measure of cost that a noisy machine cannot disturb."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ..operators.contract import Operator, ready

__all__ = ["Counted", "counting"]

_ROLES = ("lift", "combine", "lower", "inverse")


class Counted:
    """A copy of an operator that counts the calls of its functions.

    Pass `operator`, the copy, to an aggregator; `lifts`, `combines`, `lowers` and `inverses` are
    the counts.

    >>> from sash.operators import max
    >>> counted = counting(max.of(int))
    >>> counted.operator.fold([3, 9, 4])
    (True, 9)
    >>> counted.combines, counted.lifts
    (3, 3)
    """

    def __init__(self, operator: Operator) -> None:
        self.calls = dict.fromkeys(_ROLES, 0)
        self.operator: Operator = _wrap(operator, self)

    @property
    def lifts(self) -> int:
        """The number of calls of `lift`; skipped nulls do not count."""
        return self.calls["lift"]

    @property
    def combines(self) -> int:
        """The number of calls of `combine`, including calls with the identity."""
        return self.calls["combine"]

    @property
    def lowers(self) -> int:
        """The number of calls of `lower`; 0 for an operator without `lower`."""
        return self.calls["lower"]

    @property
    def inverses(self) -> int:
        """The number of calls of `inverse`."""
        return self.calls["inverse"]

    def reset(self) -> None:
        """Start again from zero.

        >>> from sash.operators import max
        >>> counted = counting(max)
        >>> _ = counted.operator.fold([3, 9, 4])
        >>> counted.reset()
        >>> counted.combines
        0
        """
        self.calls.update(dict.fromkeys(_ROLES, 0))

    def __repr__(self) -> str:
        calls = ", ".join(f"{n} × {role}" for role, n in self.calls.items())
        return f"<counted {self.operator.name}: {calls}>"


def counting(operator: Operator) -> Counted:
    """A copy of an operator that counts its calls, in plain Python.

    Operators that run `together` count as one: one combine for each joined combine.  The copy also
    counts after `of` has tied it to types.

    >>> from sash.aggregators.two_stacks_lite import TwoStacksLite
    >>> from sash.operators import max
    >>> counted = counting(max)
    >>> window = TwoStacksLite(counted.operator)
    >>> for x in [3, 9, 4]:
    ...     window.insert(x)
    >>> counted.combines
    3
    """
    return Counted(operator)


class _CountedOperator(Operator):
    """An operator that still counts after `of` has tied it to types."""

    def of(self, *types: Any) -> Operator:
        counts: Counted = self.combine.counts  # type: ignore[attr-defined]
        return _wrap(super().of(*types), counts)


def _wrap(operator: Operator, counts: Counted) -> Operator:
    fields = {f.name: getattr(operator, f.name) for f in dataclasses.fields(operator) if f.init}
    for role in _ROLES:
        if fields[role] is not None:
            fields[role] = _counter(fields[role], role, counts)
    fields["compile"] = False  # compiled code cannot count
    return ready(_CountedOperator(**fields), operator.ready)


def _counter(function: Callable[..., Any], role: str, counts: Counted) -> Callable[..., Any]:
    inner: Callable[..., Any] = getattr(function, "counted_function", function)
    calls = counts.calls

    def call(*arguments: Any) -> Any:
        calls[role] += 1
        return inner(*arguments)

    call.counted_function = inner  # type: ignore[attr-defined]
    call.counts = counts  # type: ignore[attr-defined]
    return call
