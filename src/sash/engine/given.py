"""What a stream remembers of the rows that it gave, until it can forget their windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..tables.answers import common_type, differ_from_before

__all__ = ["Changes", "Revisions", "Rows"]

#: Marks of rows: given before, early.
AGAIN, EARLY = 1, 2


@dataclass
class Rows:
    """Windows that were given: the key's number and the start of each, its mark, and its answers
    by name."""

    keys: Array
    starts: Array
    marks: Array
    values: dict[str, pa.Array]


class Revisions:
    """The last revision of open windows, for those that were given more than once, or early."""

    def __init__(self) -> None:
        self.last: dict[int, dict[int, int]] = {}  # by window, then by key

    def of(self, keys: Array, starts: Array, marks: Array, *, early: bool) -> Array:
        """The revision of each row."""
        made = np.zeros(len(keys), dtype=np.int64)
        some = np.arange(len(keys)) if early else np.flatnonzero(marks)
        rows = zip(*(a[some].tolist() for a in (keys, starts, marks)), strict=True)
        for i, (key, start, mark) in zip(some.tolist(), rows, strict=True):
            window = self.last.setdefault(start, {}) if mark else self.last.get(start, {})
            last = window.get(key, 0 if mark == AGAIN else -1) + 1
            made[i] = last
            if last or mark:
                window[key] = last
        return made

    def close(self, opened: int) -> None:
        """Forget the windows before this one."""
        for start in [w for w in self.last if w < opened]:
            del self.last[start]

    def renumber(self, kept: Array) -> None:
        """Number the keys anew: old numbers by new ones."""
        new = {old: i for i, old in enumerate(kept.tolist())}
        self.last = {
            w: {new[k]: r for k, r in of.items() if k in new} for w, of in self.last.items()
        }


class Changes:
    """The last window of each key, with which the next one is compared."""

    def __init__(self) -> None:
        self.last: Rows | None = None

    def only(self, rows: Rows) -> Rows:
        """The rows whose values differ from those of the window before.  A row that is marked has
        none before it."""
        keys = rows.keys
        firsts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        lasts = np.append(firsts[1:], len(keys)) - 1
        old, last, both = self.last, take(rows, lasts), rows
        order = np.arange(len(keys))
        if old is not None:
            again = np.flatnonzero(np.isin(old.keys, keys))
            kept = take(old, np.flatnonzero(~np.isin(old.keys, keys)))
            last = joined(kept, last)
            # before the first row of a key goes the last one that it had
            place = dict(zip(keys[firsts].tolist(), firsts.tolist(), strict=True))
            before = [place[k] for k in old.keys[again].tolist()]
            order = np.insert(len(old.keys) + np.arange(len(keys)), before, again)
            both = take(joined(old, rows), order)
            order -= len(old.keys)  # rows before that have none
            keys = both.keys
        keep = both.marks.astype(bool)
        keep[0] = True
        keep[1:] |= keys[1:] != keys[:-1]
        for values in both.values.values():
            keep[1:] |= differ_from_before(values)
        self.last = last
        return take(rows, order[keep & (order >= 0)])

    def remove(self, keys: Array) -> None:
        """These keys left."""
        if self.last is not None:
            self.last = take(self.last, np.flatnonzero(~np.isin(self.last.keys, keys)))

    def renumber(self, kept: Array) -> None:
        """Number the keys anew: old numbers by new ones, all of which are here."""
        if self.last is not None:
            self.last.keys = np.searchsorted(kept, self.last.keys)


def joined(a: Rows, b: Rows) -> Rows:
    """One after the other."""
    return Rows(
        np.concatenate([a.keys, b.keys]),
        np.concatenate([a.starts, b.starts]),
        np.concatenate([a.marks, b.marks]),
        {n: _concat(a.values[n], b.values[n]) for n in b.values},
    )


def _concat(a: pa.Array, b: pa.Array) -> pa.Array:
    """Answers of two types are compared in a common one, or as text if there is none."""
    if a.type != b.type:
        kind = common_type(a.type, b.type)
        try:
            a, b = (_texts(a), _texts(b)) if kind is None else (a.cast(kind), b.cast(kind))
        except pa.ArrowInvalid:  # a large integer, say, that is no float
            a, b = _texts(a), _texts(b)
    return pa.concat_arrays([a, b])


def _texts(values: pa.Array) -> pa.Array:
    return pa.array([None if x is None else repr(x) for x in values.to_pylist()], pa.string())


def take(rows: Rows, some: Array) -> Rows:
    """Some of the rows."""
    at = pa.array(some)
    return Rows(
        rows.keys[some],
        rows.starts[some],
        rows.marks[some],
        {n: v.take(at) for n, v in rows.values.items()},
    )
