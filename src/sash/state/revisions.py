"""The revisions of emitted windows in a store: a count for each key and window, kept until the
window is closed.

A late event usually changes many neighbouring windows, so the counts are kept as runs: the first
window, the number of windows, and the revision of all of them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from .notes import REVISIONS, Noted
from .ragged import Places, ragged, run_starts
from .visit import Visit

__all__ = ["revise"]


def revise(visit: Visit, query: int, codes: Array, windows: Array, last: Array) -> Array:
    """Count one more revision of these windows, which are in order of key and window, and return
    the new revisions.  If there is no count for a window, its last revision was `last`.  `query` is
    the query's place among the visit's asks."""
    noted = Noted(visit, query, REVISIONS, codes)
    keys, numbers, counts = _counted(noted)
    at = Places(keys, numbers).find(noted.codes, windows)
    known = at < len(keys)
    known[known] = (keys[at[known]] == noted.codes[known]) & (numbers[at[known]] == windows[known])
    made: Array = last.astype(np.int64)
    made[known] = counts[at[known]]
    made += 1
    kept = np.ones(len(keys), dtype=bool)
    kept[at[known]] = False
    keys = np.concatenate([keys[kept], noted.codes])
    numbers = np.concatenate([numbers[kept], windows])
    counts = np.concatenate([counts[kept], made])
    needed = numbers >= visit.asks[query].step.keep
    _keep(noted, keys[needed], numbers[needed], counts[needed])
    return made


def _counted(noted: Noted) -> tuple[Array, Array, Array]:
    """The counts so far: key, window and revision, in order of key and window."""
    if not noted.tables:
        none = np.empty(0, dtype=np.int64)
        return none, none, none
    table = pa.concat_tables(noted.tables)
    first, many, counts = (table.column(name).to_numpy() for name in ("first", "many", "count"))
    order = np.lexsort((first, noted.rows))
    first, many = first[order], many[order]
    return (
        np.repeat(noted.rows[order], many),
        ragged(first, many),
        np.repeat(counts[order], many),
    )


def _keep(noted: Noted, keys: Array, numbers: Array, counts: Array) -> None:
    """Keep counts as runs."""
    order = np.lexsort((numbers, keys))
    keys, numbers, counts = keys[order], numbers[order], counts[order]
    # within a run the distance to the first row is the distance to the first window
    at = run_starts(keys, counts, numbers - np.arange(len(numbers)))
    many = np.diff(np.append(at, len(keys)))
    columns = {"first": numbers[at], "many": many, "count": counts[at]}
    arrays = {name: pa.array(column, pa.int64()) for name, column in columns.items()}
    noted.replace(keys[at], arrays, numbers[at] + many - 1)
