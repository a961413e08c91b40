"""When each key has something to do next, though nothing comes for it.

A heap has one note for each key, at the time that the key said first, or earlier.  A key that is
touched again is due later as a rule, and its note stays where it is: when the note comes up, the
key is looked at, and noted anew.  So a key costs one note each time that it comes up, however often
it is touched between.
"""

from __future__ import annotations

import heapq

import numpy as np

from ..kernels.columns import Array

__all__ = ["Due"]

#: A time at which nothing is ever due.
NEVER = 2**62


class Due:
    """The keys, by their numbers, and when each is due.

    >>> due = Due()
    >>> due.note(np.array([0, 1, 2]), np.array([5, 9, NEVER]))
    >>> due.take(6), due.take(6)
    (array([0]), array([], dtype=int64))
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._noted: Array = np.zeros(0, dtype=np.int64)  # by number: when, NEVER for no note

    def __len__(self) -> int:
        return len(self._heap)

    def note(self, numbers: Array, times: Array) -> None:
        """Note when keys are due, unless they have an earlier note."""
        if not len(numbers):
            return
        most = int(numbers.max()) + 1
        if most > len(self._noted):
            more = np.full(max(most, 2 * len(self._noted)) - len(self._noted), NEVER)
            self._noted = np.append(self._noted, more)
        new = times < self._noted[numbers]
        if not new.any():
            return
        numbers, times = numbers[new], times[new]
        self._noted[numbers] = times
        notes = zip(times.tolist(), numbers.tolist(), strict=True)
        if 8 * len(numbers) < len(self._heap):
            for note in notes:
                heapq.heappush(self._heap, note)
        else:
            self._heap.extend(notes)
            heapq.heapify(self._heap)
        if len(self._heap) > 2 * len(self._noted):  # notes that earlier ones have replaced
            there = np.flatnonzero(self._noted < NEVER)
            self._heap = sorted(zip(self._noted[there].tolist(), there.tolist(), strict=True))

    def take(self, before: int) -> Array:
        """The keys whose notes are before a time; these notes are gone."""
        found = []
        while self._heap and self._heap[0][0] < before:
            time, number = heapq.heappop(self._heap)
            if self._noted[number] == time:  # else it had an earlier note, which came up
                self._noted[number] = NEVER
                found.append(number)
        return np.array(found, dtype=np.int64)

    def noted(self, numbers: Array) -> Array:
        """When each of these keys is noted."""
        times = np.full(len(numbers), NEVER)
        there = numbers < len(self._noted)
        times[there] = self._noted[numbers[there]]
        return times

    def renumber(self, kept: Array) -> None:
        """The keys have new numbers: the old ones by the new ones."""
        times = self.noted(kept)
        self._heap, self._noted = [], np.zeros(0, dtype=np.int64)
        self.note(np.arange(len(kept)), times)
