"""Numbers for the keys in a stream's state, in the order in which the keys come.

A key keeps its number for as long as the state holds the key.  The numbers of removed keys are
taken out all at once, when there are as many of them as of keys that are left; then the keys get
new numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..tables.arrow import one_array
from ..tables.intake import CANNOT_BE, one_of_type
from ..tables.keys import key_codes

__all__ = ["KeyNumbers"]

#: The types of keys whose Python values the dict has as they are.
_PLAIN = {pa.int64(): int, pa.string(): str, pa.large_string(): str, pa.bool_(): bool}

_NO_KEYS: tuple[list[pa.Array], Array] = [], np.zeros(0, dtype=np.int64)


class KeyNumbers:
    """Keys, their numbers, and their order."""

    def __init__(self, types: list[pa.DataType]) -> None:
        self._types = types
        # for each key column the value of each number, in pieces that `columns` concatenates
        self._parts: list[list[pa.Array]] = [[pa.array([], type=t)] for t in types]
        self._numbers: dict[Any, int] = {}
        self._plain = [_PLAIN.get(t) for t in types]  # Python types of such keys
        self._names: list[Any] = []  # for each number the key in the dict
        self._there = np.zeros(0, dtype=bool)
        self._order: Array | None = None
        # the keys that came last, with their numbers: batch after batch often has the same keys
        self._last = _NO_KEYS

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def columns(self) -> list[pa.Array]:
        """The keys, one entry for each number."""
        for parts in self._parts:
            if len(parts) > 1:
                parts[:] = [pa.concat_arrays(parts)]
        return [parts[0] for parts in self._parts]

    @columns.setter
    def columns(self, columns: list[pa.Array]) -> None:
        self._parts = [[column] for column in columns]

    @property
    def most(self) -> int:
        """A number above all numbers in use."""
        return len(self._names)

    def number(self, key: tuple[Any, ...]) -> int | None:
        """The number of a key, None if the state does not hold it."""
        if len(key) != len(self._types):
            raise TypeError(f"a key has {len(self._types)} value(s), not {len(key)}: {key!r}")
        if [type(value) for value in key] == self._plain:
            found = self._numbers.get(key if len(key) != 1 else key[0])
            if found is not None:
                return found
        given = []
        for value, kind in zip(key, self._types, strict=True):
            try:
                given.append(one_of_type(value, kind))
            except CANNOT_BE:
                raise TypeError(f"a key is of type {kind}, and {value!r} is not") from None
        _, columns = key_codes(given, 1)  # one NaN and one zero
        return self._numbers.get(_names(columns, 1)[0])

    def add(self, columns: list[pa.Array], count: int) -> Array:
        """The number of each of these distinct keys; new keys get new numbers."""
        last, known = self._last
        if len(known) == count and all(map(pa.Array.equals, columns, last)):
            return known  # to look up a thousand keys takes 0.1 ms
        names = _names(columns, count)
        numbers = self._numbers
        found = list(map(numbers.get, names))
        if None in found:
            new = [i for i, number in enumerate(found) if number is None]
            at = pa.array(new)
            for parts, column in zip(self._parts, columns, strict=True):
                parts.append(column.take(at))
                # each piece is longer than the next, so there are few, and each key moves seldom
                while len(parts) > 1 and len(parts[-2]) <= len(parts[-1]):
                    parts[-2:] = [pa.concat_arrays(parts[-2:])]
            for i in new:
                found[i] = numbers[names[i]] = len(self._names)
                self._names.append(names[i])
            self._there = np.append(self._there, np.ones(len(new), dtype=bool))
            self._order = None
        self._last = columns, np.array(found, dtype=np.int64)
        return self._last[1]

    def take(self, numbers: Array) -> list[pa.Array]:
        """The keys with these numbers, as columns."""
        made = []
        for parts in self._parts:
            if len(parts) == 1:
                made.append(parts[0].take(pa.array(numbers)))
                continue
            ends = np.cumsum([len(part) for part in parts])
            which = np.searchsorted(ends, numbers, side="right")
            order = np.argsort(which, kind="stable")
            found = [
                part.take(pa.array(numbers[which == i] - (ends[i] - len(part))))
                for i, part in enumerate(parts)
            ]
            made.append(pa.concat_arrays(found).take(pa.array(np.argsort(order))))
        return made

    def find(self, columns: list[pa.Array], count: int) -> Array:
        """The number of each of these keys, -1 for a key that the state does not hold."""
        numbers = self._numbers
        return np.array([numbers.get(name, -1) for name in _names(columns, count)], dtype=np.int64)

    def numbers(self) -> Array:
        """The numbers of all keys."""
        return np.flatnonzero(self._there)

    def there(self, numbers: Array) -> Array:
        """True for each number whose key the state holds."""
        return self._there[numbers]

    def in_order(self) -> Array:
        """The numbers of all keys, in the order of the keys."""
        if self._order is None:
            there = np.flatnonzero(self._there)
            at = pa.array(there)
            ranks, _ = key_codes([c.take(at) for c in self.columns], len(there))
            self._order = np.empty(len(there), dtype=np.int64)
            self._order[ranks] = there
        return self._order

    def places(self, numbers: Array) -> Array:
        """The places of these numbers in the order of the keys."""
        place = np.empty(self.most, dtype=np.int64)
        order = self.in_order()
        place[order] = np.arange(len(order))
        return place[numbers]

    def remove(self, numbers: Array) -> None:
        """Remove the keys with these numbers."""
        if not len(numbers):
            return
        self._last = _NO_KEYS
        for number in numbers.tolist():
            del self._numbers[self._names[number]]
            self._names[number] = None
        self._there[numbers] = False
        if self._order is not None:
            self._order = self._order[self._there[self._order]]

    def compact(self) -> Array | None:
        """Renumber the keys if half of the numbers are those of removed keys.  Return the old
        number of each new number, or None if the numbers stay."""
        if self.most < 16 or 2 * len(self) > self.most:
            return None
        self._last = _NO_KEYS
        kept = np.flatnonzero(self._there)
        at = pa.array(kept)
        self.columns = [c.take(at) for c in self.columns]
        self._names = [self._names[i] for i in kept.tolist()]
        self._numbers = {name: i for i, name in enumerate(self._names)}
        if self._order is not None:
            new = np.empty(len(self._there), dtype=np.int64)
            new[kept] = np.arange(len(kept))
            self._order = new[self._order]
        self._there = np.ones(len(kept), dtype=bool)
        return kept

    def table(self) -> pa.Table:
        """The key of each number, and whether the state holds it."""
        names = [str(i) for i in range(len(self.columns))]
        return pa.table([pa.array(self._there), *self.columns], names=["there", *names])

    def restore(self, table: pa.Table) -> None:
        """Restore the keys from what `table` returned."""
        self._last = _NO_KEYS
        self._there = np.array(table.column(0))
        self.columns = [one_array(table.column(i)) for i in range(1, table.num_columns)]
        self._names = _names(self.columns, len(self._there))
        self._numbers = {self._names[i]: i for i in np.flatnonzero(self._there).tolist()}
        self._order = None


def _names(columns: list[pa.Array], count: int) -> list[Any]:
    """Each key as a value that the dict can look up."""
    if not columns:
        return [()] * count
    if len(columns) == 1:
        return _items(columns[0])
    return list(zip(*map(_items, columns), strict=True))


def _items(column: pa.Array) -> list[Any]:
    """Python values that are equal if and only if the keys are, of the type that is fastest to
    make.
    """
    t = column.type
    if pa.types.is_integer(t) or pa.types.is_temporal(t):
        try:
            plain = column if pa.types.is_integer(t) else column.view(f"int{t.bit_width}")
        except ValueError:  # an interval
            return [repr(x) for x in column.to_pylist()]
        made: list[Any] = plain.to_pylist() if plain.null_count else plain.to_numpy().tolist()
        return made
    if pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_boolean(t):
        return column.to_numpy(zero_copy_only=False).tolist()  # type: ignore[no-any-return]
    if pa.types.is_floating(t):
        return ["NaN" if x != x else x for x in column.to_pylist()]
    return [repr(x) for x in column.to_pylist()]
