"""What the portions of a batch emit, as one: in order of key and window."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..state.contract import Emitted
from ..tables.answers import concat_answers
from ..tables.keys import key_codes

__all__ = ["Finished", "joined", "slim"]

#: Windows, and in live mode the revision of each.
Finished = tuple[Emitted, Array | None]


def joined(finished: list[Finished]) -> Finished:
    """The windows of portions, which have no key in common."""
    if len(finished) == 1:
        return finished[0]
    some = [portion for portion in finished if len(portion[0].codes)]
    if len(some) < 2:
        return some[0] if some else finished[0]
    parts = [emitted for emitted, _ in some]
    columns = [pa.concat_arrays(list(column)) for column in zip(*(e.keys for e in parts))]
    numbers, keys = key_codes(columns, sum(len(e.keys[0]) for e in parts))
    firsts = np.cumsum([0, *(len(e.keys[0]) for e in parts)]).tolist()
    codes = np.concatenate([numbers[e.codes + at] for e, at in zip(parts, firsts)])
    order = np.argsort(codes, kind="stable")
    at = pa.array(order)
    values = {}
    for name in list(parts[0].values):
        values[name] = _concat([e.values.pop(name) for e in parts]).take(at)
    rows = np.cumsum([0, *(len(e.codes) for e in parts)]).tolist()
    failed = {row + first: why for e, first in zip(parts, rows) for row, why in e.failed.items()}
    if failed:
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        failed = {int(place[row]): why for row, why in failed.items()}
    revisions = [r for _, r in some if r is not None]
    return (
        Emitted(
            keys,
            codes[order],
            np.concatenate([e.windows for e in parts])[order],
            np.concatenate([e.reasons for e in parts])[order],
            values,
            failed,
        ),
        np.concatenate(revisions)[order] if revisions else None,
    )


def _concat(columns: list[pa.Array]) -> pa.Array:
    """Columns as one; their types differ at most where values alone say what they are."""
    if len({column.type for column in columns}) == 1:
        return pa.concat_arrays(columns)
    return reduce(concat_answers, columns)


def slim(emitted: Emitted) -> Emitted:
    """The same with the keys alone that have windows, and an own dictionary of values."""
    used, codes = np.unique(emitted.codes, return_inverse=True)
    taken = pa.array(used)
    return Emitted(
        [column.take(taken) for column in emitted.keys],
        codes,
        emitted.windows,
        emitted.reasons,
        dict(emitted.values),
        emitted.failed,
    )
