"""What a stream remembers of the rows that it gave, until it can forget their windows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from .batch import only_changes
from .passes import Windows

__all__ = ["Changes", "Revisions"]

#: Marks of rows: given before, early; and, here only, the row before a key's first one.
AGAIN, EARLY, BEFORE = 1, 2, 3


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
        self.last: Windows | None = None

    def only(self, windows: Windows) -> Windows:
        """The windows whose values differ from those of the window before."""
        groups = windows.groups
        firsts = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
        lasts = np.append(firsts[1:], len(groups)) - 1
        old, self.last = self.last, take(windows, lasts)
        if old is None:
            return only_changes(windows)
        again = np.isin(old.groups, groups)
        self.last = joined(take(old, np.flatnonzero(~again)), self.last)
        # before the first row of a key goes the last one that it had
        place = dict(zip(groups[firsts].tolist(), firsts.tolist(), strict=True))
        rows = np.flatnonzero(again)
        before = [place[k] for k in old.groups[rows].tolist()]
        order = np.insert(len(old.groups) + np.arange(len(groups)), before, rows)
        old.fresh = np.full(len(old.groups), BEFORE)
        both = only_changes(take(joined(old, windows), order))
        return take(both, np.flatnonzero(both.fresh != BEFORE))

    def remove(self, keys: Array) -> None:
        """These keys left."""
        if self.last is not None:
            self.last = take(self.last, np.flatnonzero(~np.isin(self.last.groups, keys)))

    def renumber(self, kept: Array) -> None:
        """Number the keys anew: old numbers by new ones, all of which are here."""
        if self.last is not None:
            new = np.searchsorted(kept, self.last.groups)
            self.last.groups = new


def joined(a: Windows, b: Windows) -> Windows:
    """One after the other."""
    return Windows(
        np.concatenate([a.groups, b.groups]),
        np.concatenate([a.starts, b.starts]),
        np.concatenate([a.fresh, b.fresh]),
        {n: _concat(a.values[n], b.values[n]) for n in b.values},
    )


def _concat(a: pa.Array, b: pa.Array) -> pa.Array:
    if a.type != b.type:  # of one that has only nulls, the type may not be known
        a, b = (a.cast(b.type), b) if pa.types.is_null(a.type) else (a, b.cast(a.type))
    return pa.concat_arrays([a, b])


def take(windows: Windows, rows: Array) -> Windows:
    """Some of the rows."""
    at = pa.array(rows)
    return Windows(
        windows.groups[rows],
        windows.starts[rows],
        windows.fresh[rows],
        {n: v.take(at) for n, v in windows.values.items()},
    )
