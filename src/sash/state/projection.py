"""The words that a query reads of partials that it shares with other queries."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from .answers import Sources
from .contract import Slices
from .numbered import Numbered

__all__ = ["Projection"]


@dataclass(frozen=True)
class Projection:
    """Which of a bundle's partials a query reads.  For each group of aggregates of the query's
    plan: the group of the bundle's plan; the words, or the items of a tuple, that the query reads
    there; and its columns, in the order of the query's group."""

    groups: tuple[int, ...]
    items: tuple[tuple[int, ...] | None, ...]  # None: all of them, in their order
    columns: tuple[tuple[int, ...], ...]

    def slices(self, slices: Slices) -> Slices:
        """The slices with the partials that the query reads."""
        return dataclasses.replace(slices, partials=self.partials(slices.partials))

    def partials(self, partials: list[Any]) -> list[Any]:
        """The partials that the query reads, from those of all groups."""
        made = []
        for group, items, columns in zip(self.groups, self.items, self.columns, strict=True):
            held = partials[group]
            if isinstance(held, Numbered):
                words = held.words if items is None else held.words[:, list(items)]
                values = {n: held.values[c] for n, c in enumerate(columns) if c in held.values}
                held = Numbered(words, values)
            elif items is not None and isinstance(held, list):
                held = [tuple(partial[i] for i in items) for partial in held]
            elif items is not None:
                held = held[:, list(items)]
            made.append(held)
        return made

    def sources(self, sources: list[Sources]) -> list[Sources]:
        """The values of the columns that the query's groups read as numbers."""
        return [
            {new: sources[g][old] for new, old in enumerate(columns) if old in sources[g]}
            for g, columns in zip(self.groups, self.columns, strict=True)
        ]
