"""A plan that counts its combines.

The first leaf of each group's operator counts its calls; each combine of the group's partials calls
that leaf once.  Kernels run as checked Python text, so they take the same steps as compiled
kernels.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ..kernels.program import interpret
from ..operators.contract import Operator, Part, _join, ready
from ..query.plan import Group, Plan

__all__ = ["Counter", "counted"]


class Counter:
    """Counts how often the partials of each group of aggregates are combined."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []

    @property
    def combines(self) -> int:
        """The combines of the group with the most combines."""
        return max((calls[0] for calls in self.groups), default=0)


def counted(plan: Plan, counter: Counter) -> Plan:
    """The same plan, with each combine counted."""
    return dataclasses.replace(plan, groups=tuple(_group(g, counter) for g in plan.groups))


def _group(group: Group, counter: Counter) -> Group:
    calls = [0]
    counter.groups.append(calls)
    made = dataclasses.replace(group, operator=interpret(_counting(group.operator, calls)))
    calls[0] = 0  # forget the calls that tried the functions
    return made


def _counting(operator: Operator, calls: list[int]) -> Operator:
    """The operator, with a first leaf that counts its calls."""
    if operator.parts:
        owner = next(i for i, part in enumerate(operator.parts) if part.shares is None)
        parts = list(operator.parts)
        inner = _counting(parts[owner].operator, calls)
        parts[owner] = Part(inner, parts[owner].columns)
        return _join(
            tuple(parts),
            len(operator.skips),
            name=operator.name,
            types=operator.types,
            rule=operator.rule,
        )
    combine = operator.combine

    def count(*partials: Any) -> Any:
        calls[0] += 1
        return combine(*partials)

    made = dataclasses.replace(operator, combine=count)
    return ready(made, operator.ready, operator.parameters)
