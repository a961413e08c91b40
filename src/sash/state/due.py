"""When a step must visit each key next, even if no event comes for it: then the key is due.

A note has a key and a time at which the key is due, or an earlier time.  If a step touches the key
again, the key is usually due later, but its note stays: when the note comes up, the step looks at
the key and notes the new time.  So a key costs one note each time that a note comes up, however
often steps touch it in between.  Notes lie in runs in order of time, each longer than the next, so
there are few runs, and a note seldom moves to another run.
"""

from __future__ import annotations

import numpy as np

from ..kernels.columns import Array

__all__ = ["Due"]

#: A time at which nothing is ever due.
NEVER = 2**62


class Due:
    """Notes of when keys, by their numbers, are due.

    >>> due = Due()
    >>> due.note(np.array([0, 1, 2]), np.array([5, 9, NEVER]))
    >>> due.take(6), due.take(6)
    (array([0]), array([], dtype=int64))
    """

    def __init__(self) -> None:
        self._runs: list[tuple[Array, Array]] = []  # rising times, and the numbers of keys
        self._noted: Array = np.zeros(0, dtype=np.int64)  # by number: the time, NEVER for no note

    def __len__(self) -> int:
        """The number of notes, including those that were replaced by earlier ones."""
        return sum(len(times) for times, _ in self._runs)

    def note(self, numbers: Array, times: Array) -> None:
        """Note when keys are due, unless they have an earlier note."""
        most = int(numbers.max(initial=-1)) + 1
        if most > len(self._noted):
            more = np.full(max(most, 2 * len(self._noted)) - len(self._noted), NEVER)
            self._noted = np.append(self._noted, more)
        new = times < self._noted[numbers]
        if not new.any():
            return
        numbers, times = numbers[new], times[new]
        self._noted[numbers] = times
        self._runs.append((times, numbers))
        if len(self) > 2 * len(self._noted):
            there = np.flatnonzero(self._noted < NEVER)
            self._runs = [(self._noted[there], there)]
        many = 1
        while many < len(self._runs) and len(self._runs[-many - 1][0]) <= 2 * sum(
            len(run[0]) for run in self._runs[-many:]
        ):
            many += 1
        whole = [np.concatenate(part) for part in zip(*self._runs[-many:], strict=True)]
        order = np.argsort(whole[0])
        self._runs[-many:] = [(whole[0][order], whole[1][order])]

    def any(self, before: int) -> bool:
        """True if there is a note before a time."""
        return any(times[0] < before for times, _ in self._runs)

    def take(self, before: int) -> Array:
        """Remove the notes before a time, and return their keys."""
        if not self.any(before):
            return np.zeros(0, dtype=np.int64)
        found = [np.zeros(0, dtype=np.int64)]
        left = []
        for times, numbers in self._runs:
            end = int(np.searchsorted(times, before))
            # skip notes that were replaced by an earlier one, which has come up
            found.append(numbers[:end][self._noted[numbers[:end]] == times[:end]])
            if end < len(times):
                left.append((times[end:], numbers[end:]))
        self._runs = left
        made = np.unique(np.concatenate(found))
        self._noted[made] = NEVER
        return made

    def noted(self, numbers: Array) -> Array:
        """The time of the note of each key, NEVER if it has none."""
        times = np.full(len(numbers), NEVER)
        there = numbers < len(self._noted)
        times[there] = self._noted[numbers[there]]
        return times

    def renumber(self, kept: Array) -> None:
        """Renumber the keys; `kept` has the old number of each new number."""
        times = self.noted(kept)
        self._runs, self._noted = [], np.zeros(0, dtype=np.int64)
        self.note(np.arange(len(kept)), times)
