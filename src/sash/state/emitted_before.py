"""What a state in memory remembers of emitted windows, by the numbers of keys: how often each
window was revised, and the last values of each key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..tables.answers import concat_answers
from ..tables.arrow import from_ipc, one_array, to_ipc
from .contract import Emitted, Recalled

__all__ = ["EmittedBefore"]

_NONE = np.zeros(0, dtype=np.int64)


@dataclass
class _Values:
    """The last emitted values of some keys, in order of the keys' numbers, and for each row the
    last window that has these values."""

    keys: Array
    covered: Array
    values: dict[str, pa.Array]

    def take(self, rows: Array) -> _Values:
        """Some of the rows."""
        at = pa.array(rows)
        values = {name: column.take(at) for name, column in self.values.items()}
        return _Values(self.keys[rows], self.covered[rows], values)

    def join(self, more: _Values) -> _Values:
        """These rows and rows of other keys."""
        both = _Values(
            np.concatenate([self.keys, more.keys]),
            np.concatenate([self.covered, more.covered]),
            {
                name: concat_answers(column, more.values[name])
                for name, column in self.values.items()
            },
        )
        return both.take(np.argsort(both.keys))


class EmittedBefore:
    """The revisions and last values of one query's emitted windows."""

    def __init__(self, no_values: dict[str, pa.Array]) -> None:
        """Remember nothing yet; `no_values` has the columns of values, without rows."""
        self._revisions: dict[int, dict[int, int]] = {}  # by window, then by key
        self._last = _Values(_NONE, _NONE, no_values)

    def revise(self, emitted: Emitted, rows: Array, last: Array) -> Array:
        """Count one more revision of the windows in these rows, and return the new revisions."""
        made = []
        by_window = self._revisions
        given = (emitted.windows[rows], emitted.codes[rows], last)
        for window, key, before in zip(*(a.tolist() for a in given), strict=True):
            of = by_window.get(window)
            if of is None:
                of = by_window[window] = {}
            of[key] = revision = of.get(key, before) + 1
            made.append(revision)
        return np.array(made, dtype=np.int64)

    def recall(self, codes: Array) -> Recalled:
        """The remembered values of some keys; `covered` is 0 for keys without any."""
        last = self._last
        place = np.searchsorted(last.keys, codes)
        place[place == len(last.keys)] = 0
        there = last.keys[place] == codes if len(last.keys) else np.zeros(len(codes), dtype=bool)
        rows = place[there]
        covered = np.zeros(len(codes), dtype=np.int64)
        covered[there] = last.covered[rows]
        return Recalled(there, covered, last.take(rows).values)

    def remember(self, codes: Array, covered: Array, values: dict[str, pa.Array]) -> None:
        """Remember the last emitted values of some keys, in place of those remembered so far."""
        old = self._last
        others = np.flatnonzero(~np.isin(old.keys, codes))
        self._last = old.take(others).join(_Values(codes, covered, values))

    def remembered(self, keep: int) -> Array:
        """The keys whose values are still needed if the windows from `keep` on are open."""
        return self._last.keys[self._last.covered + 1 >= keep]

    def forget(self, keep: int, there: Any) -> None:
        """Forget the revisions of windows before `keep`, which are closed; the values that no open
        window is compared with; and the values of removed keys.  `there` is True for the numbers of
        keys that the state holds."""
        last = self._last
        for window in [w for w in self._revisions if w < keep]:
            del self._revisions[window]
        if len(last.keys):
            alive = (last.covered + 1 >= keep) & there(last.keys)
            if not alive.all():
                self._last = last.take(np.flatnonzero(alive))

    def renumber(self, kept: Array) -> None:
        """Renumber the keys; `kept` has the old number of each new number."""
        self._last.keys = np.searchsorted(kept, self._last.keys)
        new = {old: i for i, old in enumerate(kept.tolist())}
        self._revisions = {
            window: {new[k]: revision for k, revision in of.items() if k in new}
            for window, of in self._revisions.items()
        }

    def dump(self) -> tuple[list[list[int]], bytes]:
        """The revisions as lists for JSON, and the values as bytes."""
        revisions = [[w, k, r] for w, of in self._revisions.items() for k, r in of.items()]
        last = {"key": self._last.keys, "covered": self._last.covered}
        last |= {f"value {name}": column for name, column in self._last.values.items()}
        return revisions, to_ipc(pa.table(last))

    def load(self, revisions: list[list[int]], last: bytes) -> None:
        """Restore what `dump` returned."""
        for window, key, revision in revisions:
            self._revisions.setdefault(window, {})[key] = revision
        numbers, covered, *values = from_ipc(last).columns
        names = [name.removeprefix("value ") for name in from_ipc(last).column_names[2:]]
        self._last = _Values(
            np.array(numbers),
            np.array(covered),
            dict(zip(names, map(one_array, values), strict=True)),
        )

    def _check(self) -> None:
        """Raise AssertionError if a key has two rows of values."""
        assert (np.diff(self._last.keys) > 0).all(), "a key has two last values"
