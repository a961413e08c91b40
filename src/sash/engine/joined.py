"""Join the windows that the portions of a batch emit, in order of key and window."""

from __future__ import annotations

import ctypes
from contextlib import suppress

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..state.contract import Emitted
from ..tables.answers import concat_all
from ..tables.keys import key_codes

__all__ = ["Finished", "joined", "slim"]

#: Windows, and in live mode the revision of each.
Finished = tuple[Emitted, Array | None]


def joined(finished: list[Finished]) -> Finished:
    """Join the windows of portions, which have no key in common.  There may be many rows, so this
    frees the arrays of the portions one by one."""
    if len(finished) == 1:
        return finished[0]
    some = [portion for portion in finished if len(portion[0].codes)]
    if len(some) < 2:
        return some[0] if some else finished[0]
    finished.clear()
    parts, revisions = [e for e, _ in some], [r for _, r in some if r is not None]
    failed = _failed(parts)
    codes, keys = _codes(parts)
    _give_back()
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    at = pa.array(order)
    values, given = {}, [dict(vars(e).pop("values")) for e in parts]
    for name in list(given[0]):
        values[name] = concat_all([columns.pop(name) for columns in given]).take(at)
        _give_back()
    if failed:
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        failed = {int(place[row]): why for row, why in failed.items()}
    made = Emitted(
        keys,
        codes,
        np.concatenate([vars(e).pop("windows") for e in parts])[order],
        np.concatenate([vars(e).pop("reasons") for e in parts])[order],
        values,
        failed,
    )
    return made, np.concatenate(revisions)[order] if revisions else None


def _give_back() -> None:
    """Give free memory back to the system, if the C library can: the arrays of many portions leave
    holes into which a large array does not fit."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _codes(parts: list[Emitted]) -> tuple[Array, list[pa.Array]]:
    """The number of each window's key among the keys of all portions, and these keys in order."""
    counts = [len(e.keys[0]) for e in parts]
    columns = [pa.concat_arrays(list(column)) for column in zip(*(e.keys for e in parts))]
    for e in parts:
        e.keys = []
    numbers, keys = _numbered(columns, sum(counts))
    del columns
    made = np.empty(sum(len(e.codes) for e in parts), dtype=np.int32)
    first = at = 0
    for e, count in zip(parts, counts, strict=True):
        codes = vars(e).pop("codes")
        made[at : at + len(codes)] = numbers[first + codes.astype(np.int64)]
        first, at = first + count, at + len(codes)
    return made, keys


def _numbered(columns: list[pa.Array], rows: int) -> tuple[Array, list[pa.Array]]:
    """The number of each key in order, and the keys in order; no key is there twice."""
    (first, *more) = columns
    if more or not pa.types.is_integer(first.type) or first.null_count:
        return key_codes(columns, rows)
    # sorting takes a quarter of the memory of a hash table
    order = np.argsort(first.to_numpy())
    numbers = np.empty(rows, dtype=np.int32)
    numbers[order] = np.arange(rows, dtype=np.int32)
    return numbers, [first.take(pa.array(order))]


def _failed(parts: list[Emitted]) -> dict[int, str]:
    """The rows without answers, by their places among the rows of all portions."""
    made, first = {}, 0
    for e in parts:
        made.update({first + row: why for row, why in e.failed.items()})
        first += len(e.codes)
    return made


def slim(emitted: Emitted) -> Emitted:
    """A copy with only the keys that have windows, and with its own dictionary of values."""
    used, codes = np.unique(emitted.codes, return_inverse=True)
    taken = pa.array(used)
    return Emitted(
        [column.take(taken) for column in emitted.keys],
        codes.astype(np.int32),
        emitted.windows,
        emitted.reasons.astype(np.int8),
        dict(emitted.values),
        emitted.failed,
    )
