"""The last closed window, as it was when it was closed: what the next one is compared with where
only changes are given.

It can be computed again from the state, as long as nothing was added to its slices.  A row that
comes too late for it, but not for the next one, is added all the same; so before the first such
row, the window's values are put aside.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..state.scan import Windows
from ..state.tile import ASIDE, open_sealed, seal
from ..tables.answers import differ_from_before
from ..tables.keys import key_codes

__all__ = ["drop_closed", "keep_closed", "same_as_closed"]

_AT = (ASIDE, 0)


def keep_closed(store: Any, keys: list[pa.Array], windows: Windows) -> None:
    """Put the values of one window aside, for the keys that have it."""
    at = pa.array(windows.groups)
    columns = {f"key {i}": key.take(at) for i, key in enumerate(keys)}
    table = pa.table({**columns, **windows.values, "there": pa.nulls(len(at))})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    store.put(*_AT, seal(sink.getvalue().to_pybytes()))


def drop_closed(store: Any) -> None:
    """It is not the last any more."""
    store.drop(*_AT)


def same_as_closed(store: Any, keys: list[pa.Array], windows: Windows, rows: Array) -> Array:
    """Which rows of windows have the values that their key has in the window put aside."""
    with pa.ipc.open_stream(pa.py_buffer(open_sealed(store.get(*_AT)))) as reader:
        old = reader.read_all().combine_chunks()
    groups = windows.groups[rows]
    if keys:
        all_keys = [
            pa.concat_arrays([k, *old.column(f"key {i}").chunks]) for i, k in enumerate(keys)
        ]
        codes, _ = key_codes(all_keys, len(all_keys[0]))
        known, groups = codes[len(keys[0]) :], codes[: len(keys[0])][groups]
    else:
        known = np.zeros(old.num_rows, dtype=np.int64)
    same = np.isin(groups, known)
    order = np.argsort(known)
    found = order[np.searchsorted(known[order], groups[same])]
    pairs = np.arange(2 * len(found)).reshape(2, -1).T.reshape(-1)  # an old one, a new one, ...
    equal = np.ones(len(found), dtype=bool)
    for name, values in windows.values.items():
        new = values.take(pa.array(rows[same]))
        both = pa.concat_arrays([*old.column(name).take(pa.array(found)).chunks, new])
        equal &= ~differ_from_before(both.take(pa.array(pairs)))[::2]
    same[same] = equal
    return same
