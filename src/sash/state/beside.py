"""Partials of events beside a forest that lasts for a step, as columns with an item for each event.

A partial without values is its words, or an object.  One with values of its own is a place among
all that the step has, whose values have common numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernels.columns import Array
from .folds import Folds
from .numbered import Numbered, NumberedFolds

__all__ = ["Beside"]


class Beside:
    """The partials of each group of aggregates."""

    def __init__(self, folds: Sequence[Folds]) -> None:
        self._folds = folds
        self._all: list[Any] = [folds.join([]) for folds in folds]

    def none(self) -> list[Array]:
        """The columns of no events."""
        return self.enter([folds.join([]) for folds in self._folds])

    def enter(self, partials: Sequence[Any]) -> list[Array]:
        """Partials of further events as columns; none if there are no groups."""
        made: list[Any] = []
        for i, (folds, some) in enumerate(zip(self._folds, partials, strict=False)):
            if not isinstance(folds, NumberedFolds):
                made.append(folds.array(some))
                continue
            first = len(self._all[i])
            self._all[i] = folds.join([self._all[i], some]) if first else some
            made.append(np.arange(first, first + len(some)))
        return made

    def partials(self, columns: Sequence[Array]) -> list[Any]:
        """The partials again, from their columns."""
        made: list[Any] = []
        for folds, held, column in zip(self._folds, self._all, columns, strict=True):
            if isinstance(held, Numbered):
                made.append(held[column])
            else:
                made.append(column if folds.width else column.tolist())
        return made
