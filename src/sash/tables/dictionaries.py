"""Dictionaries of a stream: labels, whole numbers that stand for values of any type in partials.

    batch ─→ numbers of its values ─→ labels, which partials hold ─→ values again, in answers

In a table, the number of a value is its row or its place in order (`tables.numbers`).  In a stream,
partials outlive their rows, so a dictionary keeps the values whose labels partials hold.  No label
is 0, which stands for no value.  The owner of a dictionary passes to `keep` a flag for each value:
True if partials still hold it.  The dictionary drops the others, and labels the rest anew.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import compress, repeat
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array

__all__ = ["Picked", "Ranked"]

_SMALL = 1 << 30  # most bytes of a joined array: the text of an Arrow array has up to 2^31
_TOP = 1 << 62  # labels are less than this
_BITS = 20  # least number of bits of a label for the number of its value
_STEP = 1 << 16  # distance of two ranks that are added at either end
_FEW = 64  # new values are few if there are more than so many times as many old ones


class _Values:
    """Values numbered from 0 in the order in which they come.  They are kept in a few arrays, each
    at least twice as long as the next, so that a value is copied a few times only.

    Threads may take values side by side: the list of arrays never changes, another one replaces it.
    """

    def __init__(self) -> None:
        self._parts: list[pa.Array] = []

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __deepcopy__(self, memo: Any) -> _Values:
        made = _Values()
        made._parts = list(self._parts)  # arrays never change
        return made

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._parts)

    def append(self, values: pa.Array) -> None:
        parts = [*self._parts, values]
        if not len(values):
            return
        while len(parts) > 1 and 2 * len(parts[-1]) > len(parts[-2]):
            joined = _joined(parts, 2)
            if joined is None:
                break
            parts = joined
        self._parts = parts

    def take(self, numbers: Array) -> pa.Array:
        """The values with these numbers; null for -1."""
        parts = self._parts
        if not parts:
            return pa.nulls(len(numbers))
        absent = numbers < 0
        if len(parts) > 1 and 4 * len(numbers) > len(self):
            # which takes about as long as to look them up one by one
            self._parts = parts = _joined(parts, len(parts)) or parts
        if len(parts) == 1:
            return parts[0].take(pa.array(numbers, mask=absent if absent.any() else None))
        starts = np.cumsum([0, *map(len, parts)])
        whose = np.searchsorted(starts, numbers, "right") - 1
        whose[absent] = len(parts)
        order = np.argsort(whose, kind="stable")
        ends = np.searchsorted(whose[order], np.arange(len(parts) + 2))
        found = [
            part.take(pa.array(numbers[order[ends[i] : ends[i + 1]]] - starts[i]))
            for i, part in enumerate(parts)
        ]
        found.append(pa.nulls(int(ends[-1] - ends[-2]), found[0].type))
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return pa.concat_arrays(found).take(pa.array(back))


def _joined(parts: list[pa.Array], count: int) -> list[pa.Array] | None:
    """Arrays of which the last are one; None if that would be too large."""
    last = parts[-count:]
    if sum(part.nbytes for part in last) > _SMALL:
        return None
    return [*parts[:-count], pa.concat_arrays(last)]


def _in_numpy(labels: pa.Array) -> Array:
    """Turn labels from an Arrow array into a numpy array, with 0 for null."""
    found: Array = (labels.fill_null(0) if labels.null_count else labels).to_numpy()
    return found


class Picked:
    """Labels of values that operators pick and never compare: each added value gets the next label,
    also if an equal value is there already.

    >>> d = Picked()
    >>> d.add(pa.array(["b", "a"])).tolist()
    [1, 2]
    >>> d.take(pa.array([2, None])).to_pylist()
    ['a', None]
    >>> d.keep(np.array([False, True])).tolist()  # only "a" is held, which is 1 from now on
    [0, 1]
    """

    def __init__(self) -> None:
        self._values = _Values()

    def __len__(self) -> int:
        """The number of values."""
        return len(self._values)

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes."""
        return self._values.nbytes

    def add(self, values: pa.Array) -> Array:
        """Add distinct values, and return their labels."""
        first = len(self) + 1
        self._values.append(values)
        return np.arange(first, first + len(values))

    def add_some(self, values: pa.Array, at: Array) -> Array:
        """Add the values at some places of an array, and return their labels."""
        return self.add(values.take(pa.array(at)))

    def take(self, labels: pa.Array) -> pa.Array:
        """The values with these labels; null for a number that is no label."""
        return self._values.take(self.places(_in_numpy(labels)))

    def places(self, labels: Array) -> Array:
        """The place of each label in the dictionary; -1 for a number that is no label."""
        return np.where((labels > 0) & (labels <= len(self)), labels - 1, -1)

    def keep(self, held: Array, more: pa.Array | None = None) -> Array:
        """Keep the values at the places where `held` is true, and drop the others.  Return the new
        label of each place, 0 for a dropped one.  `more` is ignored: there is always room for new
        values."""
        kept = self._values.take(np.flatnonzero(held))
        self._values = _Values()
        self._values.append(kept)
        return np.where(held, np.cumsum(held), 0)

    def by_place(self) -> pa.Array:
        """All values, in order of place."""
        return self._values.take(np.arange(len(self)))

    def dump(self) -> pa.Array:
        """All values, for `load`.  Call it right after `keep`: `load` gives them the labels that
        `keep` returned."""
        return self.by_place()

    def load(self, values: pa.Array) -> None:
        """Fill an empty dictionary with the values of `dump`."""
        self._values.append(values)


class Ranked:
    """Labels in the order of their values, so that operators compare labels instead of values.

        values     a           b     bb    c
        ranks      │···········│·····│·····│·······   a new value gets a rank between its neighbours

    The upper bits of a label are a rank; the lower bits are the number of the value, by which the
    dictionary finds it.  New values between two others spread over half of the ranks between them,
    so that more values fit on both sides: some twenty times, however many come at a time.  When
    there is no room left, `keep` labels all values anew.

    >>> d = Ranked()
    >>> b, c = d.add(pa.array(["b", "c"]))
    >>> a, again, bb = d.add(pa.array(["a", "b", "bb"]))
    >>> bool(again == b), bool(a < b < bb < c)
    (True, True)
    >>> d.take(pa.array([c, None, a])).to_pylist()
    ['c', None, 'a']
    """

    _values: _Values  # by number
    _order: list[Any]  # all values in order, as Python has them
    _bits: int  # the bits of a label that hold the number
    _ranks: Array  # in order
    _labels: Array  # by number
    _known: dict[Any, int]  # labels by value
    _sorted: pa.Array | None  # all values in order, once `calm` has computed them
    _asked: int  # the number of values at the last call of `calm`

    def __init__(self) -> None:
        self._fill(pa.nulls(0), [])

    def __len__(self) -> int:
        """The number of values."""
        return len(self._order)

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes: it holds each value twice, and in a dict."""
        return 2 * self._values.nbytes + 128 * len(self)

    def add(self, values: pa.Array) -> Array | None:
        """Add distinct values that are in order, and return their labels.  Return None if there is
        no room for new values; `keep` makes room for them."""
        items = _items(values)
        known = self._known
        labels = np.fromiter(map(known.get, items, repeat(0)), np.int64, len(items))
        new = np.flatnonzero(labels == 0)
        if len(new):
            added = [items[i] for i in new.tolist()]
            before = np.fromiter((bisect_left(self._order, x) for x in added), np.int64, len(added))
            ranks = self._between(before)
            if ranks is None or len(self) + len(new) > 1 << self._bits:
                return None
            made = (ranks << self._bits) + np.arange(len(self), len(self) + len(new))
            self._values.append(values.take(pa.array(new)))
            self._labels = np.append(self._labels, made)
            self._ranks = np.insert(self._ranks, before, ranks)
            if _FEW * len(added) < len(self._order):
                for at, item in zip(before[::-1].tolist(), reversed(added), strict=True):
                    self._order.insert(at, item)
            else:
                self._order = sorted(self._order + added)  # Python merges two sorted runs fast
            known.update(zip(added, made.tolist(), strict=True))
            self._sorted = None
            labels[new] = made
        return labels

    def add_some(self, values: pa.Array, at: Array) -> Array | None:
        """Add the values at some places of an array, and return their labels.  If `values` is the
        array that `calm` returned, no value is looked up."""
        if values is self._sorted:
            found: Array = np.sort(self._labels)[at]
            return found
        return self.add(values.take(pa.array(at)))

    def _between(self, before: Array) -> Array | None:
        """Ranks for new values that are in order; each comes before the value at its place
        `before`.  None if there are not enough ranks."""
        bounds = np.concatenate([[0], self._ranks, [_TOP >> self._bits]])
        places, first, counts = np.unique(before, return_index=True, return_counts=True)
        low, high = bounds[places], bounds[places + 1]
        steps = (high - low) // (2 * (counts + 1))
        lowest, highest = (places == 0) & (len(self) > 0), (places == len(self)) & (len(self) > 0)
        steps = np.where(lowest | highest, np.minimum(steps, _STEP), steps)
        if not steps.all():
            return None
        starts = low + (high - low - (counts - 1) * steps) // 2
        starts = np.where(lowest, high - counts * steps, starts)
        starts = np.where(highest, low + steps, starts)
        within = np.arange(len(before)) - np.repeat(first, counts)
        made: Array = np.repeat(starts, counts) + within * np.repeat(steps, counts)
        return made

    def calm(self) -> pa.Array | None:
        """All values in order, if no value came since the last call; else None."""
        calm, self._asked = 0 < len(self) == self._asked, len(self)
        if calm and self._sorted is None:
            self._sorted = self.dump()
        return self._sorted if calm else None

    def take(self, labels: pa.Array) -> pa.Array:
        """The values with these labels; null for a number that is no label."""
        return self._values.take(self.places(_in_numpy(labels)))

    def places(self, labels: Array) -> Array:
        """The place of each label in the dictionary; -1 for a number that is no label."""
        if not len(self):
            return np.full(labels.shape, -1)
        found = np.minimum(labels & ((1 << self._bits) - 1), len(self) - 1)
        return np.where(self._labels[found] == labels, found, -1)

    def keep(self, held: Array, more: pa.Array | None = None) -> Array:
        """Keep the values at the places where `held` is true, drop the others, and add the values
        `more`, which are distinct and in order.  Return the new label of each old place, 0 for a
        dropped one."""
        in_order = np.argsort(self._labels)
        kept = in_order[held[in_order]]
        values, order = self._values.take(kept), list(compress(self._order, held[in_order]))
        at = np.arange(len(kept))
        if more is not None:
            there, items = set(order), _items(more)
            new = [i for i, item in enumerate(items) if item not in there]
            added = [items[i] for i in new]
            before = [bisect_left(order, item) for item in added]
            both = [values, more.take(pa.array(new, pa.int64()))]
            merged = np.insert(at, before, len(at) + np.arange(len(new)))
            values = pa.concat_arrays(both if len(kept) else both[1:]).take(pa.array(merged))
            at, order = np.flatnonzero(merged < len(at)), sorted(order + added)
        self._fill(values, order)
        made = np.zeros(len(held), dtype=np.int64)
        made[kept] = self._labels[at]
        return made

    def _fill(self, values: pa.Array, order: list[Any]) -> None:
        """Fill the dictionary with these values, which are in order, and give them ranks far
        apart."""
        self._values = _Values()
        self._values.append(values)
        count = len(values)
        self._order = order
        self._bits = max(_BITS, count.bit_length() + 2)
        most = _TOP >> self._bits
        self._ranks = most // 4 + (most // 2) // (count + 1) * np.arange(1, count + 1)
        self._labels = (self._ranks << self._bits) + np.arange(count)
        self._known = dict(zip(order, self._labels.tolist(), strict=True))
        self._sorted, self._asked = None, -1

    def by_place(self) -> pa.Array:
        """All values, in order of place."""
        return self._values.take(np.arange(len(self)))

    def dump(self) -> pa.Array:
        """All values in order, for `load`.  Call it right after `keep`: `load` gives them the
        labels that `keep` returned."""
        return self._values.take(np.argsort(self._labels))

    def load(self, values: pa.Array) -> None:
        """Fill the dictionary with the values of `dump`."""
        self._fill(values, _items(values))


def _items(values: pa.Array) -> list[Any]:
    """Values as Python objects, which Python orders as Arrow orders the values."""
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        found: list[Any] = values.to_numpy(zero_copy_only=False).tolist()
        return found
    if pa.types.is_temporal(values.type):  # integers have the same order, and no range to leave
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return values.to_pylist()  # type: ignore[no-any-return]
