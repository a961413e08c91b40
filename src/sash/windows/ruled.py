"""A window slide policy as a query's window: at every event, the events that the policy keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .contract import Count, Driven, Rule

__all__ = ["Ruled"]


@dataclass(frozen=True, eq=False)
class Ruled(Driven):
    """At each event, the events of its key that a policy keeps.  A query makes a `Ruled` from
    `window=policy`; `columns` are the columns that the policy reads.

    >>> import sash
    >>> q = sash.Query(
    ...     time="t", window=sash.policies.at_most_sum(10), select={"all": sash.collect("x")}
    ... )
    >>> q.run({"t": [1, 2, 3, 4], "x": [2, 5, 4, 6]})["all"].to_pylist()
    [[2], [2, 5], [5, 4], [4, 6]]
    """

    policy: Any
    read: tuple[str, ...]

    @property
    def keeps(self) -> Rule:
        """The events that the policy keeps."""
        return Rule(self.policy)

    @property
    def fires(self) -> Count:
        """Every event."""
        return Count(1)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the policy reads."""
        return self.read

    def __repr__(self) -> str:
        return f"{self.policy.name} of {', '.join(self.read)}"
