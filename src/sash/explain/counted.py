"""A plan whose combines are counted.

The first leaf of each group's operator counts its calls; each combine of the group's partials is
one of that leaf's.  Kernels run as checked Python text, so they take the steps that compiled ones
take.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ..kernels.program import interpret
from ..operators.contract import Operator, Part, _join, ready
from ..query.plan import Group, Plan

__all__ = ["Counter", "counted"]


class Counter:
    """How often the partials of each group of aggregates were combined."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []

    @property
    def combines(self) -> int:
        """The combines of the group that has most."""
        return max((calls[0] for calls in self.groups), default=0)


def counted(plan: Plan, counter: Counter) -> Plan:
    """A plan that does the same, and counts."""
    return dataclasses.replace(plan, groups=tuple(_group(g, counter) for g in plan.groups))


def _group(group: Group, counter: Counter) -> Group:
    calls = [0]
    counter.groups.append(calls)
    made = dataclasses.replace(group, operator=interpret(_counting(group.operator, calls)))
    calls[0] = 0  # what it took to try the functions
    return made


def _counting(operator: Operator, calls: list[int]) -> Operator:
    """The operator, the first leaf of which counts."""
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
