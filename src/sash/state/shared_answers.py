"""What a shared forest answers for several queries in a step, and what several memories do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..tables.answers import concat_all

__all__ = ["AnsweredAll", "joined_all"]


@dataclass
class AnsweredAll:
    """Windows that a step answered, of all queries: the key, the query, the window, by number, why
    it is emitted, and the last window that has the same slices (where only changes are wanted);
    the answers by name, and why some do not exist, by row and name; the numbers of keys that hold
    nothing any more."""

    keys: Array
    owners: Array
    windows: Array
    reasons: Array
    covered: Array
    values: dict[str, pa.Array]
    failed: dict[int, dict[str, str]]
    gone: Array


def joined_all(parts: Sequence[AnsweredAll], place: Array, queries: int) -> AnsweredAll:
    """What several memories answered so many queries, in the order of their keys' places."""
    before = np.cumsum([0, *(len(part.keys) for part in parts)]).tolist()
    keys = np.concatenate([part.keys for part in parts])
    owners = np.concatenate([part.owners for part in parts])
    order = np.argsort(place[keys], kind="stable")  # merges what is in order already
    new = np.empty(len(order), dtype=np.int64)
    new[order] = np.arange(len(order))
    windows = np.concatenate([part.windows for part in parts])
    # a further size has the row of its window
    sized = np.flatnonzero(owners >= queries)
    own = windows[sized] + np.asarray(before)[np.searchsorted(before, sized, "right") - 1]
    windows[sized] = new[own]
    at = pa.array(order)
    covered = np.concatenate([part.covered for part in parts])
    return AnsweredAll(
        keys[order],
        owners[order],
        windows[order],
        np.concatenate([part.reasons for part in parts])[order],
        covered[order] if len(covered) else covered,
        {n: concat_all([part.values[n] for part in parts]).take(at) for n in parts[0].values},
        {
            int(new[first + row]): reasons
            for first, part in zip(before, parts, strict=False)
            for row, reasons in part.failed.items()
        },
        np.concatenate([part.gone for part in parts]),
    )
