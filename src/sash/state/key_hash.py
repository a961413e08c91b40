"""A hash of keys that is the same in every process, in every version and on every machine.

A key's hash determines the part of a state that holds the key, so the hash must never change.
Equal keys have equal hashes: there is one NaN and one zero, the order of a map's entries does not
matter, and null is a value of its own.

A value becomes one or more 64-bit words; `_mix` mixes each word into the hashes of all rows.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..operators.codec import encode_value
from ..tables.keys import maps_in_order, one_zero_in

__all__ = ["hash_keys", "prefixes_of"]

#: Texts of more bytes than this are hashed one by one.
_LONG = 256

# An odd multiplier and shifts that spread every bit of a word over the whole hash: the
# finalisation of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE, _TWO = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_NULL = np.uint64(0x6E756C6C)
_THERE = np.uint64(1)


def hash_keys(columns: list[pa.Array], rows: int) -> Array:
    """The hash of each row's key, as uint64.

    >>> [hex(h) for h in hash_keys([pa.array(["a", None])], 2)]
    ['0x1f821389ef49f878', '0x3d7d80026f4fa78f']
    """
    made = np.zeros(rows, dtype=np.uint64)
    for column in columns:
        made = _column(made, column)
    return made


def prefixes_of(hashes: Array, bits: Array | int) -> Array:
    """The hashes with all bits after the first `bits` set to 0; `bits` is at least 1."""
    shift = np.asarray(64 - bits).astype(np.uint64)
    made: Array = hashes >> shift << shift
    return made


def _mix(made: Array, words: Array | np.uint64) -> Array:
    """Mix one more word into each hash."""
    x = (made ^ words) + _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _ONE
    x = (x ^ (x >> np.uint64(27))) * _TWO
    mixed: Array = x ^ (x >> np.uint64(31))
    return mixed


def _column(made: Array, column: pa.Array) -> Array:
    """Mix a column into the hashes."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if isinstance(kind, pa.BaseExtensionType):
        return _column(made, column.storage)
    null = np.asarray(column.is_null())
    made = _mix(made, np.where(null, _NULL, _THERE))
    if pa.types.is_struct(kind):
        for field in column.flatten():
            made = _column(made, field)
        return made
    if pa.types.is_null(kind):
        return made
    if pa.types.is_floating(kind):
        plain = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        plain[np.isnan(plain)] = np.nan
        return _mix(made, plain.view(np.uint64))
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return _mix(made, _integers(column))
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return _mix(made, _integers(column.view(f"int{kind.bit_width}")))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _text(made, column.cast(pa.large_binary()))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _text(made, column.cast(pa.large_binary()))
    items = (maps_in_order(x, kind) for x in column.to_pylist())
    digests = [_digest(encode_value(one_zero_in(x))) for x in items]
    return _mix(made, np.array(digests, dtype=np.uint64))


def _integers(column: pa.Array) -> Array:
    """Whole numbers as words."""
    wanted = pa.uint64() if pa.types.is_uint64(column.type) else pa.int64()
    plain: Array = column.cast(wanted).fill_null(0).to_numpy(zero_copy_only=False)
    return plain.view(np.uint64)


def _text(made: Array, column: pa.Array) -> Array:
    """Mix the bytes of each row into the hashes, eight at a time, then the number of bytes."""
    column = column.fill_null(b"")
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    start, sizes = bounds[:-1], np.diff(bounds)
    # a row's last word may reach beyond the data
    end = int(bounds[-1]) if len(bounds) else 0
    padded = np.zeros(end + 8, dtype=np.uint8)
    if data is not None:
        padded[:end] = np.frombuffer(data, dtype=np.uint8, count=end)
    words = np.ndarray((end + 1,), dtype="<u8", buffer=padded.data, strides=(1,))
    for row in np.flatnonzero(sizes > _LONG).tolist():
        digest = _digest(padded[start[row] : start[row] + sizes[row]].tobytes())
        made[row] = _mix(made[row : row + 1], np.uint64(digest))[0]
    rows = np.flatnonzero((sizes > 0) & (sizes <= _LONG))
    at = 0
    while len(rows):
        left = np.minimum(sizes[rows] - at, 8).astype(np.uint64)
        taken = words[start[rows] + at].astype(np.uint64)
        beyond = np.uint64(8) * (np.uint64(8) - left)
        made[rows] = _mix(made[rows], (taken << beyond) >> beyond)
        at += 8
        rows = rows[sizes[rows] > at]
    return _mix(made, sizes.astype(np.uint64))


def _digest(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")
