"""Encode plain Python values as bytes and back, so that partials leave the process without
pickle."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

__all__ = ["decode_value", "encode_value"]

_EPOCH = datetime(1970, 1, 1)


def encode_value(value: Any) -> bytes:
    """Encode None, a bool, number, string, bytes, date, datetime, time, timedelta, UUID, or a
    tuple, list, frozenset or dict of them; a named tuple becomes a plain tuple.

    >>> decode_value(encode_value((1, "a", None, 2.5)))
    (1, 'a', None, 2.5)
    """
    out = bytearray()
    _write(out, value)
    return bytes(out)


def decode_value(data: bytes) -> Any:
    """Decode the bytes of `encode_value`."""
    value, at = _read(data, 0)
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes too many after a value")
    return value


def _write(out: bytearray, value: Any) -> None:
    if value is None:
        out += b"N"
    elif isinstance(value, bool | np.bool_):
        out += b"T" if value else b"F"
    elif isinstance(value, int | np.integer):
        raw = int(value).to_bytes((int(value).bit_length() + 8) // 8, "little", signed=True)
        out += b"i" + struct.pack("<I", len(raw)) + raw
    elif isinstance(value, float | np.floating):
        out += b"f" + struct.pack("<d", float(value))
    elif isinstance(value, str):
        _write_bytes(out, b"s", value.encode("utf-8", "surrogatepass"))
    elif isinstance(value, bytes):
        _write_bytes(out, b"b", value)
    elif isinstance(value, Decimal):
        _write_bytes(out, b"D", str(value).encode())
    elif isinstance(value, datetime) and not getattr(value, "nanosecond", 0):  # as pandas has
        plain = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        micros = (plain - _EPOCH) // timedelta(microseconds=1)
        out += (b"z" if value.tzinfo else b"t") + struct.pack("<q", micros)
    elif isinstance(value, date) and not isinstance(value, datetime):
        out += b"d" + struct.pack("<q", value.toordinal())
    elif isinstance(value, time) and value.tzinfo is None:
        _write_bytes(out, b"c", value.isoformat().encode())
    elif isinstance(value, timedelta) and not getattr(value, "nanoseconds", 0):  # as pandas has
        raw = struct.pack("<iii", value.days, value.seconds, value.microseconds)
        _write_bytes(out, b"l", raw)
    elif isinstance(value, UUID):
        _write_bytes(out, b"U", value.bytes)
    elif isinstance(value, np.datetime64):
        micros = value.astype("M8[us]")
        if micros == value or np.isnat(value):
            out += b"M" + struct.pack("<q", int(micros.view(np.int64)))
        else:
            out += b"n" + struct.pack("<q", int(value.astype("M8[ns]").view(np.int64)))
    elif isinstance(value, tuple | list | frozenset):
        out += b"(" if isinstance(value, tuple) else b"[" if isinstance(value, list) else b"{"
        out += struct.pack("<I", len(value))
        for item in value:
            _write(out, item)
    elif isinstance(value, dict):
        out += b":" + struct.pack("<I", len(value))
        for key, item in value.items():
            _write(out, key)
            _write(out, item)
    else:
        raise TypeError(
            f"{value!r} ({type(value).__name__}) has no bytes form; give the operator encode and "
            "decode functions of its own"
        )


def _write_bytes(out: bytearray, mark: bytes, raw: bytes) -> None:
    out += mark + struct.pack("<I", len(raw)) + raw


def _read(data: bytes, at: int) -> tuple[Any, int]:
    mark = data[at : at + 1]
    at += 1
    if mark in b"NTF" and mark:
        return {b"N": None, b"T": True, b"F": False}[mark], at
    if mark == b"f":
        return struct.unpack_from("<d", data, at)[0], at + 8
    if mark in b"ztdMn" and mark:
        (n,) = struct.unpack_from("<q", data, at)
        at += 8
        if mark == b"d":
            return date.fromordinal(n), at
        if mark in b"Mn":
            return np.datetime64(n, "us" if mark == b"M" else "ns"), at
        plain = _EPOCH + timedelta(microseconds=n)
        return (plain.replace(tzinfo=UTC) if mark == b"z" else plain), at
    if not mark or mark not in b"isbDclU([{:":
        raise ValueError(f"no value starts with {mark!r}")
    (n,) = struct.unpack_from("<I", data, at)
    at += 4
    if mark in b"isbDclU":
        raw = data[at : at + n]
        if len(raw) != n:
            raise ValueError("the bytes end inside a value")
        at += n
        return _FROM_BYTES[mark](raw), at
    items = []
    for _ in range(n * 2 if mark == b":" else n):
        item, at = _read(data, at)
        items.append(item)
    if mark == b":":
        return dict(zip(items[::2], items[1::2], strict=True)), at
    return {b"(": tuple, b"[": list, b"{": frozenset}[mark](items), at


_FROM_BYTES: dict[bytes, Callable[[bytes], Any]] = {
    b"i": lambda raw: int.from_bytes(raw, "little", signed=True),
    b"s": lambda raw: raw.decode("utf-8", "surrogatepass"),
    b"b": lambda raw: raw,
    b"D": lambda raw: Decimal(raw.decode()),
    b"c": lambda raw: time.fromisoformat(raw.decode()),
    b"l": lambda raw: timedelta(*struct.unpack("<iii", raw)),
    b"U": lambda raw: UUID(bytes=raw),
}
