"""Turns partials into bytes, which leave the process, and into the 8-byte words of a slot."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ..operators.codec import decode_value, encode_value
from ..operators.contract import Operator
from .columns import Array

__all__ = ["VECTORS", "decoder", "encoder", "nested", "pack", "unpack"]

#: The dtype of a vector's elements, by the letter for their kind.
VECTORS: dict[str, Any] = {"i": np.int64, "u": np.uint64, "f": np.float64}


def encoder(operator: Operator) -> Any:
    """Make the function that turns a partial into bytes.  Raises for Python objects without an
    `encode`."""
    if operator.parts:
        encoders = [encoder(p.operator) for p in operator.parts if p.shares is None]

        def encode_parts(value: Any) -> bytes:
            parts = [f(x) for f, x in zip(encoders, value, strict=True)]
            return b"".join(struct.pack("<Q", len(p)) + p for p in parts)

        return encode_parts
    if operator.encode is not None:
        return operator.encode
    if operator.shape == "vector":
        return lambda value: value.tobytes()
    if operator.shape in ("scalar", "tuple"):
        return encode_value
    raise TypeError(
        f"{operator!r} has partials that are Python objects, and they cannot leave the process "
        "without encode and decode; give both to sash.operator(…), or tie a ready operator to "
        "its types with .of(…)"
    )


def decoder(operator: Operator) -> Any:
    """Make the function that turns bytes into a partial."""
    if operator.parts:
        decoders = [decoder(p.operator) for p in operator.parts if p.shares is None]

        def decode_parts(data: bytes) -> Any:
            at, parts = 0, []
            for f in decoders:
                (size,) = struct.unpack_from("<Q", data, at)
                parts.append(f(data[at + 8 : at + 8 + size]))
                at += 8 + size
            return tuple(parts)

        return decode_parts
    if operator.decode is not None:
        return operator.decode
    if operator.shape in ("scalar", "tuple"):
        return decode_value
    dtype = operator.identity.dtype
    return lambda data: np.frombuffer(data, dtype=dtype).copy()


def pack(value: Any, kinds: str) -> list[int]:
    """Turn a scalar or tuple partial into 8-byte words."""
    fields = value if isinstance(value, tuple) else (value,)
    formats = {"i": "q", "b": "q", "u": "Q", "f": "d"}
    raw = b"".join(
        struct.pack("<" + formats[k], float(x) if k == "f" else int(x))
        for k, x in zip(kinds, fields, strict=True)
    )
    words: list[int] = np.frombuffer(raw, dtype=np.int64).tolist()
    return words


def unpack(words: Array, kinds: str) -> tuple[Any, ...]:
    made: list[Any] = []
    for k, word in zip(kinds, words, strict=True):
        if k == "f":
            made.append(float(word.view(np.float64)))
        elif k == "u":
            made.append(int(word.view(np.uint64)))
        else:
            made.append(bool(word) if k == "b" else int(word))
    return tuple(made)


def nested(operator: Operator, parts: list[Any]) -> Any:
    if not operator.parts:
        return parts.pop(0)
    return tuple(nested(p.operator, parts) for p in operator.parts if p.shares is None)
