"""The one format of records: a version, a checksum, and a body.

The checksum covers the record's place too, so that a record that a store returns for another key is
found out.
"""

from __future__ import annotations

import struct
import zlib

__all__ = ["Damaged", "seal", "unseal"]

_VERSION = 3
_HEAD = struct.Struct("<4sBI")  # magic, version, checksum
_MAGIC = b"sash"


class Damaged(ValueError):
    """A record is not as it was written, or is not there.

    >>> unseal(b"sash")
    Traceback (most recent call last):
    ...
    sash.stores.sealed.Damaged: a record is damaged: it has 4 bytes
    """


def seal(body: bytes, place: bytes = b"") -> bytes:
    """A record with this body, for this place.

    >>> bytes(unseal(seal(b"body", b"here"), b"here"))
    b'body'
    """
    return _HEAD.pack(_MAGIC, _VERSION, zlib.crc32(body, zlib.crc32(place))) + body


def unseal(data: bytes, place: bytes = b"") -> memoryview:
    """The body of a record; an error if the record is not as it was written."""
    if len(data) < _HEAD.size:
        raise Damaged(f"a record is damaged: it has {len(data)} bytes")
    magic, version, checksum = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise Damaged(f"these bytes are no record of sash: they begin {bytes(data[:4])!r}")
    if version != _VERSION:
        raise ValueError(
            f"this state was written in version {version} of the format, and this release of sash "
            f"reads version {_VERSION}; start anew, or use the release that wrote it"
        )
    body = memoryview(data)[_HEAD.size :]
    if zlib.crc32(body, zlib.crc32(place)) != checksum:
        raise Damaged("a record is damaged: its checksum is not right")
    return body
