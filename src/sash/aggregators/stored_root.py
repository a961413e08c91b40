"""The root of a stored window: its state at the last `sync`, without its pages.

| size | a description, as JSON | size | slots beside levels | size | a run of the tails | …
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..stores.contract import Space
from ..stores.sealed import Damaged

__all__ = ["Root", "framed", "read_root", "unframed"]

_VERSION = 4
_SIZE = struct.Struct("<I")


@dataclass(frozen=True)
class Root:
    """What a root says, and the slots that it has: those beside levels, then those of the tails."""

    said: dict[str, Any]
    slots: list[bytes]

    def to_bytes(self) -> bytes:
        """The root's record, in this release's version."""
        said = json.dumps({"version": _VERSION, **self.said}).encode()
        return framed([[said], *([data] for data in self.slots)])


def read_root(data: bytes, claimed: Space) -> Root:
    """The root of a record; an error if it is no window's, or one of another release."""
    made = list(unframed(data))
    if not made or not made[0].startswith(b"{"):
        raise Damaged(f"{claimed!r} is no window, but perhaps a stream: open it with its query")
    said = json.loads(made[0])
    if said["version"] != _VERSION:
        raise ValueError(
            f"{claimed!r} was written by another release of sash, in version {said['version']}, "
            f"and this one reads version {_VERSION}: go on with that release, or remove the window "
            "with store.drop(name) and begin anew"
        )
    return Root(said, made[1:])


def framed(blobs: Iterable[list[Any]]) -> bytes:
    """Several runs of bytes as one, each of them in pieces: bytes or arrays."""
    parts: list[Any] = []
    for pieces in blobs:
        parts += (_SIZE.pack(sum(memoryview(piece).nbytes for piece in pieces)), *pieces)
    return b"".join(parts)


def unframed(data: Any) -> Iterator[Any]:
    """The runs that `framed` joined, of bytes or a view of them."""
    at = 0
    while at < len(data):
        (size,) = _SIZE.unpack_from(data, at)
        at += _SIZE.size + size
        yield data[at - size : at]
