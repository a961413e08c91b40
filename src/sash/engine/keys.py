"""Key columns as small integers, in the order of the keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array

__all__ = ["by_group", "key_codes"]


def key_codes(columns: list[pa.Array], rows: int) -> tuple[Array, list[pa.Array]]:
    """For each row the number of its key, and the keys in order: one array a column.

    Null is a key, and so is NaN; 0.0 and -0.0 are the same one.
    """
    if not columns:
        return np.zeros(rows, dtype=np.int64), []
    codes, parts = _codes(columns[0])
    many = [parts]
    for column in columns[1:]:
        more, values = _codes(column)
        # pairs that occur, numbered in order
        pairs, codes = np.unique(codes * len(values) + more, return_inverse=True)
        old, new = np.divmod(pairs, len(values)) if len(pairs) else (pairs, pairs)
        many = [m.take(pa.array(old)) for m in many] + [values.take(pa.array(new))]
    return codes, many


def _codes(column: pa.Array) -> tuple[Array, pa.Array]:
    """One column's codes and its distinct values, in order, null first."""
    values = column
    if pa.types.is_floating(values.type):
        # one NaN and one zero
        plain = values.to_numpy(zero_copy_only=False) + 0.0
        plain = np.where(np.isnan(plain), np.nan, plain).astype(plain.dtype)
        valid = values.is_valid()
        values = pa.array(plain, mask=np.asarray(pc.invert(valid))).cast(column.type)
    try:
        encoded = values.dictionary_encode(null_encoding="encode")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return _codes_of_objects(values)
    found = encoded.dictionary
    order = np.asarray(pc.array_sort_indices(found), dtype=np.int64)
    # Arrow has nulls last, after NaN
    null = np.asarray(found.is_null())[order]
    order = np.concatenate([order[null], order[~null]])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[np.asarray(encoded.indices)], found.take(pa.array(order))


def _codes_of_objects(values: pa.Array) -> tuple[Array, pa.Array]:
    """For types Arrow does not put in a dictionary: structs, lists."""
    items = values.to_pylist()
    seen: dict[str, int] = {}
    kept: list[Any] = []
    for x in items:
        if repr(x) not in seen:
            seen[repr(x)] = len(kept)
            kept.append(x)
    order = sorted(range(len(kept)), key=lambda i: (kept[i] is not None, repr(kept[i])))
    rank = {repr(kept[i]): at for at, i in enumerate(order)}
    codes = np.array([rank[repr(x)] for x in items], dtype=np.int64)
    return codes, pa.array([kept[i] for i in order], type=values.type)


def by_group(codes: Array, groups: int, order: Array | None) -> tuple[Array, Array]:
    """Rows in the order of their groups, within one as they were (or as `order` has them): where
    each row is, and where each group starts, with the end of the last."""
    bounds = np.zeros(groups + 1, dtype=np.int64)
    np.cumsum(np.bincount(codes, minlength=groups), out=bounds[1:])
    if order is not None:
        codes = codes[order]
    if (codes[1:] >= codes[:-1]).all():
        sorted_ = np.arange(len(codes), dtype=np.int64)
    elif groups <= 2**16:
        sorted_ = np.argsort(codes.astype(np.uint16), kind="stable")  # a radix sort
    else:
        sorted_ = np.argsort((codes & 0xFFFF).astype(np.uint16), kind="stable")
        high = codes >> 16
        for shift in range(0, int(groups - 1 >> 16).bit_length(), 16):
            part = ((high >> shift) & 0xFFFF).astype(np.uint16)
            sorted_ = sorted_[np.argsort(part[sorted_], kind="stable")]
    return (sorted_ if order is None else order[sorted_]), bounds
