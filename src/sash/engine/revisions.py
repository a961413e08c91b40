"""Which revision of a window is given: how often late events have changed it.

Kept for windows that were changed only, in tiles of their own beside the tree's: 64 windows each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..state.scan import Windows
from ..state.tile import BITS, REVISIONS, Tile
from ..tables.keys import key_codes

__all__ = ["Revisions"]


class Revisions:
    """The numbers of revisions, for one query."""

    def __init__(self, plan: Plan) -> None:
        self._window = plan.query.window

    def number(
        self, mark: Any, visit: Any, store: Any, reach: Any, windows: Windows, fixes: Any
    ) -> tuple[Windows, Array]:
        """Of windows that were due before, those that are changed, and the revision of each: 0 for
        a window that had nothing then, and so was not given."""
        windows = windows.where(self._changed(windows, visit.code_of(fixes.codes), fixes))
        revisions = np.zeros(len(windows.starts), dtype=np.int64)
        groups, starts = windows.groups, windows.starts
        again = np.flatnonzero(visit.had(reach, groups, starts))
        revisions[again] = self._count(mark, visit.keys, store, groups[again], starts[again])
        return windows, revisions

    def _changed(self, windows: Windows, codes: Array, fixes: Any) -> Array:
        """Which windows are in one of their key's ranges."""
        order = np.lexsort((fixes.firsts, codes))
        codes, firsts, lasts = codes[order], fixes.firsts[order], fixes.lasts[order]
        starts = np.unique(np.concatenate([firsts, lasts, windows.starts]))

        def place(keys: Array, at: Array) -> Array:
            """Pairs of a key and a window as numbers in the same order."""
            made: Array = keys.astype(np.int64) * len(starts) + np.searchsorted(starts, at)
            return made

        wanted = place(windows.groups, windows.starts)
        # how far the ranges that begin up to here reach; one of another key reaches no window
        reach = np.maximum.accumulate(place(codes, lasts))
        found = np.searchsorted(place(codes, firsts), wanted, side="right") - 1
        changed: Array = (found >= 0) & (reach[found] >= wanted)
        return changed

    def _count(
        self, mark: Any, keys: list[pa.Array], store: Any, groups: Array, starts: Array
    ) -> Array:
        """Count one more revision of each of these windows."""
        numbers = (starts - self._window.offset) // self._window.every
        made = np.ones(len(groups), dtype=np.int64)
        for tile in np.unique(numbers >> BITS).tolist():
            here = np.flatnonzero(numbers >> BITS == tile)
            made[here] = self._count_in(keys, store, tile, groups[here], numbers[here])
            if tile not in mark.revised:
                mark.revised.append(tile)
        return made

    def _count_in(
        self, keys: list[pa.Array], store: Any, number: int, groups: Array, windows: Array
    ) -> Array:
        tile = store.get(REVISIONS, number)
        ones = np.ones(len(groups), dtype=np.int64)
        places = windows & ((1 << BITS) - 1)
        if tile is None:
            self._put(store, number, keys, groups, places, ones)
            return ones
        old = len(tile.counts)
        if keys:
            both = [pa.concat_arrays([a, b]) for a, b in zip(tile.keys, keys, strict=True)]
            codes, all_keys = key_codes(both, len(both[0]))
        else:
            codes, all_keys = np.zeros(old + 1, dtype=np.int64), []
        pairs = np.concatenate([np.repeat(codes[:old], tile.counts), codes[old:][groups]])
        pairs = (pairs << BITS) + np.concatenate([tile.at, places])
        counts = np.concatenate([tile.partials[0][:, 0], ones])
        found, at = np.unique(pairs, return_inverse=True)
        total = np.zeros(len(found), dtype=np.int64)
        np.add.at(total, at, counts)
        self._put(store, number, all_keys, found >> BITS, found & ((1 << BITS) - 1), total)
        return total[at[len(pairs) - len(groups) :]]

    def _put(
        self,
        store: Any,
        number: int,
        keys: list[pa.Array],
        groups: Array,
        places: Array,
        counts: Array,
    ) -> None:
        order = np.lexsort((places, groups))
        found, first = np.unique(groups[order], return_index=True)
        sizes = np.diff(np.append(first, len(order)))
        kept = [k.take(pa.array(found)) for k in keys]
        tile = Tile(kept, sizes, places[order], [counts[order].reshape(-1, 1)])
        store.put(REVISIONS, number, tile)

    def forget(self, mark: Any, store: Any, following: int) -> None:
        """Windows before one are closed."""
        alive = (following - self._window.offset) // self._window.every >> BITS
        for number in [n for n in mark.revised if n < alive]:
            store.put(REVISIONS, number, None)
            mark.revised.remove(number)
