"""What a stream remembers of the rows that it gave, until it can forget their windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from .batch import differ_from_before

__all__ = ["Changes", "Revisions", "Rows"]

#: Marks of rows: given before, early; and, here only, the row before a key's first one.
AGAIN, EARLY, BEFORE = 1, 2, 3


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
        old, self.last = self.last, take(rows, lasts)
        if old is not None:
            again = np.flatnonzero(np.isin(old.keys, keys))
            kept = take(old, np.flatnonzero(~np.isin(old.keys, keys)))
            self.last = joined(kept, self.last)
            # before the first row of a key goes the last one that it had
            place = dict(zip(keys[firsts].tolist(), firsts.tolist(), strict=True))
            before = [place[k] for k in old.keys[again].tolist()]
            order = np.insert(len(old.keys) + np.arange(len(keys)), before, again)
            old.marks = np.full(len(old.keys), BEFORE)
            rows = take(joined(old, rows), order)
            keys = rows.keys
        keep = rows.marks.astype(bool)
        keep[0] = True
        keep[1:] |= keys[1:] != keys[:-1]
        for values in rows.values.values():
            keep[1:] |= differ_from_before(values)
        return take(rows, np.flatnonzero(keep & (rows.marks != BEFORE)))

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
    if a.type != b.type:  # of one that has only nulls, the type may not be known
        a, b = (a.cast(b.type), b) if pa.types.is_null(a.type) else (a, b.cast(a.type))
    return pa.concat_arrays([a, b])


def take(rows: Rows, some: Array) -> Rows:
    """Some of the rows."""
    at = pa.array(some)
    return Rows(
        rows.keys[some],
        rows.starts[some],
        rows.marks[some],
        {n: v.take(at) for n, v in rows.values.items()},
    )
