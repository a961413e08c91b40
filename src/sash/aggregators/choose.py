"""Which aggregator suits a window, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..operators.contract import Operator
from .amta import Amta
from .daba_lite import DabaLite
from .fiba import Fiba
from .subtract_on_evict import SubtractOnEvict
from .timed_fifo import Timed
from .two_stacks_lite import TwoStacksLite

__all__ = ["Choice", "choose"]


@dataclass(frozen=True)
class Choice:
    """An aggregator, whether it gets times by `Timed`, and the reason in words.

    >>> from sash.operators import max
    >>> choice = choose(max, timed=True, bulk=True)
    >>> choice.make(max)
    <Timed <Amta of <operator max>, 0 values>>
    >>> print(choice.reason)
    Amta: many values can leave at once, in O(log n)
    """

    aggregator: type
    timed: bool
    reason: str

    def make(self, operator: Operator) -> Any:
        """An empty window."""
        made = self.aggregator(operator)
        return Timed(made) if self.timed else made


def choose(
    operator: Operator,
    *,
    in_order: bool = True,
    timed: bool = False,
    bulk: bool = False,
    policy: bool = False,
    no_pauses: bool = False,
) -> Choice:
    """The aggregator for a window over an operator.

    `in_order` says whether values come in order, `timed` whether they have times, `bulk` whether
    many can leave at once (a window by time over a stream of uneven pace), `policy` whether a
    window slide policy says what leaves (times are then a column like others), and `no_pauses`
    whether no single call may take long.

    >>> from sash.operators import count, max
    >>> choose(max).aggregator.__name__, choose(max, policy=True).aggregator.__name__
    ('TwoStacksLite', 'Amta')
    >>> print(choose(max, in_order=False).reason)
    Fiba: values come out of order
    >>> print(choose(count, no_pauses=True).reason)
    SubtractOnEvict: count has an exact inverse, so each value is taken out again in one step
    """
    if not isinstance(operator, Operator):
        raise TypeError(
            f"an aggregator needs an operator (one of sash.operators, or made by sash.operator), "
            f"not {operator!r}"
        )
    if not in_order and policy:
        raise TypeError("a window slide policy needs values in order: sort them, or wait for them")
    if not in_order:
        return Choice(Fiba, False, "Fiba: values come out of order")
    if policy:
        return Choice(Amta, False, "Amta: it finds what a policy wants to go in O(log n)")
    if bulk:
        return Choice(Amta, timed, "Amta: many values can leave at once, in O(log n)")
    if operator.invertible:
        reason = (
            f"{operator.name} has an exact inverse, so each value is taken out again in one step"
        )
        return Choice(SubtractOnEvict, timed, f"SubtractOnEvict: {reason}")
    if no_pauses:
        return Choice(DabaLite, timed, "DabaLite: no call takes more than a few combines")
    return Choice(TwoStacksLite, timed, "TwoStacksLite: the fewest combines on average")
