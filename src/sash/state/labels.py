"""Labels in the partials of a group of aggregates: whole numbers that stand for text and the like.

A batch is cut with numbers of its own, which are the rows or the places of its values.  When its
partials are inserted, the values that they hold get labels of the stream's dictionaries.  So a
value that no partial picked is never in a dictionary, and an abandoned batch leaves nothing there.
When the dictionaries have doubled, a sweep goes through all partials and drops the values that none
of them holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Group
from ..tables.arrow import from_ipc, one_array, to_ipc
from ..tables.dictionaries import Picked, Ranked
from .numbered import Numbered, numbered_words

__all__ = ["Labels", "Values"]

#: Fewer values than this are not worth a sweep.
_FEW = 1 << 12
_NONE = np.zeros(0, dtype=np.int64)


#: Values by column.
Values = Mapping[int, pa.Array]


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

    def sweep(
        self, memory: Array, held: Array, derived: Array = _NONE, more: Values | None = None
    ) -> None:
        """Drop the values that no partial holds, and give new labels to the others and to `more`.

        Partials begin at the words `held` of `memory`.  Those at the words `derived` are combined
        from these, or out of date; they get new labels too, but keep no value.
        """
        for column, fields in self._items:
            source, offsets = self.sources[column], np.array(fields)
            at = (held[:, None] + offsets).reshape(-1)
            places = source.places(memory[at])
            also = (derived[:, None] + offsets).reshape(-1)
            also_places = source.places(memory[also])
            there = np.zeros(len(source) + 1, dtype=bool)
            there[places] = True  # the last place stands for no value
            new = None if more is None else more[column]
            made = np.append(source.keep(there[:-1], new), 0)
            memory[at], memory[also] = made[places], made[also_places]
        self._limit = 2 * len(self) + max(len(held), _FEW)

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


def _used(numbers: Array, values: int) -> Array:
    """The places of the values that these numbers stand for, out of `values` values.  Numbers begin
    with 1; 0 stands for no value."""
    there = np.zeros(values + 1, dtype=bool)
    there[numbers] = True
    return np.flatnonzero(there[1:])
