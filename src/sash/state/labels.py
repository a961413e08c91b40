"""Labels in the partials of a group of aggregates: whole numbers that stand for text and the like.

A batch is cut with numbers of its own, which are the rows or the places of its values.  When its
partials are inserted, the values that they hold get labels of the stream's dictionaries.  So a
value that no partial picked is never in a dictionary, and an abandoned batch leaves nothing there.
When the dictionaries have doubled, a sweep goes through all partials and drops the values that none
of them holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Group
from ..tables.arrow import from_ipc, one_array, to_ipc
from ..tables.dictionaries import Picked, Ranked
from .answers import Source
from .numbered import Numbered, numbered_words

__all__ = ["Borrowed", "Labels", "Partials", "Values"]

#: Fewer values than this are not worth a sweep.
_FEW = 1 << 12


#: Values by column.
Values = Mapping[int, pa.Array]

#: A memory, the words at which the partials of entries begin, and the words at which others do that
#: are combined from them, or hold what is not looked at any more.
Partials = tuple[Array, Array, Array]


class Labels:
    """The dictionaries of a group of aggregates, by column, and for each column the words of a
    partial that hold its labels."""

    def __init__(self, group: Group) -> None:
        self._items = tuple(numbered_words(group).items())
        self.sources: dict[int, Picked | Ranked] = {
            column: Picked() if group.hows[column] == "rows" else Ranked()
            for column, _ in self._items
        }
        self._limit = 2 * _FEW

    def __len__(self) -> int:
        """The number of values in all dictionaries."""
        return sum(map(len, self.sources.values()))

    @property
    def nbytes(self) -> int:
        """The approximate number of bytes that the values take."""
        return sum(source.nbytes for source in self.sources.values())

    def insert(self, given: Numbered, sweep: Callable[[Values], None]) -> Array:
        """Replace the numbers in a batch's partials with labels, and return the words.  If there is
        no room between two labels, call `sweep` with the values that need labels."""
        words = given.words.copy()
        used = {column: _used(words[:, f], len(given.values[column])) for column, f in self._items}
        labels = {c: self.sources[c].add_some(given.values[c], at) for c, at in used.items()}
        if any(found is None for found in labels.values()):
            values = {c: given.values[c].take(pa.array(at)) for c, at in used.items()}
            sweep(values)
            labels = {column: self.sources[column].add(some) for column, some in values.items()}
        for column, fields in self._items:
            found = labels[column]
            assert found is not None, "a sweep makes room"
            made = np.zeros(len(given.values[column]) + 1, dtype=np.int64)
            made[used[column] + 1] = found
            words[:, fields] = made[words[:, fields]]
        return words

    def calm(self) -> dict[int, pa.Array]:
        """For each column whose values are compared and that has no new values, all its values in
        order."""
        ranked = {c: s.calm() for c, s in self.sources.items() if isinstance(s, Ranked)}
        return {column: values for column, values in ranked.items() if values is not None}

    def grown(self) -> bool:
        """True if there are enough values for a sweep to pay."""
        return len(self) > self._limit

    def sweep(self, memories: Sequence[Partials], more: Values | None = None) -> None:
        """Drop the values that no partial holds, and label the others anew, with `more` of them."""
        for column, fields in self._items:
            source, offsets = self.sources[column], np.array(fields)
            there = np.zeros(len(source) + 1, dtype=bool)
            found: list[tuple[Array, Array, Array]] = []  # the words of labels, and their places
            for memory, held, derived in memories:
                at = (held[:, None] + offsets).reshape(-1)
                places = source.places(memory[at])
                there[places] = True  # the last stands for no value
                also = (derived[:, None] + offsets).reshape(-1)
                found += [(memory, at, places), (memory, also, source.places(memory[also]))]
            new = None if more is None else more[column]
            made = np.append(source.keep(there[:-1], new), 0)
            for memory, at, places in found:
                memory[at] = made[places]
        self._limit = 2 * len(self) + max(sum(len(held) for _, held, _ in memories), _FEW)

    def numbered(self, words: Array) -> Numbered:
        """Partials with numbers in place of labels, and the values of these numbers."""
        words, values = words.copy(), {}
        for column, fields in self._items:
            source = self.sources[column]
            words[:, fields] = source.places(words[:, fields]) + 1
            values[column] = source.by_place()
        return Numbered(words, values)

    def dump(self) -> bytes:
        """All values as bytes; call `sweep` first."""
        columns = {}
        for column, source in self.sources.items():
            values = source.dump()
            columns[str(column)] = pa.LargeListArray.from_arrays([0, len(values)], values)
        return to_ipc(pa.table(columns))

    def load(self, data: bytes) -> None:
        """Restore what `dump` returned."""
        table = from_ipc(data)
        for column, source in self.sources.items():
            source.load(one_array(table.column(str(column))).flatten())
        self._limit = 2 * len(self) + _FEW


class Borrowed:
    """The values of partials that a forest holds for one step only: their numbers are its labels,
    as they are."""

    nbytes = 0

    def __init__(self, group: Group) -> None:
        self.sources: Mapping[int, Source] = {column: Picked() for column in numbered_words(group)}

    def insert(self, given: Numbered, sweep: Callable[[Values], None]) -> Array:
        """The partials, whose values are found by number from now on."""
        self.sources = given.sources
        return given.words

    def calm(self) -> dict[int, pa.Array]:
        """No values are known before a step."""
        return {}

    def grown(self) -> bool:
        """Nothing is let go of within a step."""
        return False


def _used(numbers: Array, values: int) -> Array:
    """The places of the values that these numbers stand for, out of `values` values.  Numbers begin
    with 1; 0 stands for no value."""
    there = np.zeros(values + 1, dtype=bool)
    there[numbers] = True
    return np.flatnonzero(there[1:])
