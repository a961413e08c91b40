"""Copies of windows, and windows as bytes: their content, a version, a checksum, and no pickles."""

from __future__ import annotations

import copy
import struct
import zlib
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NoReturn, Self

from ..kernels.core import BufferCore, ObjectCore
from ..operators.contract import Operator
from .guard import Guarded, alone

__all__ = ["Copyable", "Snapshots", "as_told", "check_told", "describe", "open_bytes", "seal"]

_MAGIC = b"sash"
_VERSION = 1


class Copyable(Guarded):
    """A window that can be copied.  The copy has a memory of its own; partials, which are never
    changed, and the operator are the same."""

    @alone
    def __copy__(self) -> Self:
        made = Guarded.__new__(type(self))
        for name, value in vars(self).items():
            vars(made)[name] = value if isinstance(value, Operator) else copy.copy(value)
        return made

    def __deepcopy__(self, memo: Any) -> Self:
        return self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} cannot be pickled; save it with to_bytes(), and restore it "
            f"with {type(self).__name__}.from_bytes(…)"
        )


class Snapshots(Copyable):
    """A window that an operator alone can make, as bytes and from bytes."""

    _given: Operator
    _core: BufferCore | ObjectCore

    @abstractmethod
    def __init__(self, operator: Operator, *, capacity: int | None = None) -> None: ...

    @abstractmethod
    def _shrink(self) -> None:
        """Give back memory that is no longer needed."""

    @property
    def operator(self) -> Operator:
        """The operator, tied to types if it is."""
        return self._core.operator

    @alone
    def to_bytes(self) -> bytes:
        """The whole window as bytes, with a version and a checksum."""
        return seal(describe(self, self._core), self._core.dump())

    @classmethod
    def from_bytes(cls, data: bytes, operator: Operator) -> Self:
        """The window again, from what `to_bytes` gave and the same operator."""
        said, body = open_bytes(data)
        made = cls(as_told(said, operator))
        made._given = operator
        check_told(said, describe(made, made._core))
        made._core.restore(body)
        made._shrink()  # it may have had a capacity
        return made

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.operator!r}{self._said_length('values')}>"


def describe(window: Any, core: BufferCore | ObjectCore) -> tuple[str, str, str, str]:
    """Which algorithm, operator, types and layout of partials a memory belongs to."""
    op, layout = core.operator, core.program.layout
    if layout is None:
        return type(window).__name__, op.name, "", "objects"
    return type(window).__name__, op.name, ",".join(op.types), layout.kinds


def open_bytes(data: bytes) -> tuple[list[str], bytes]:
    """What a window's bytes say of themselves, and the rest; damaged ones are refused."""
    if data[:4] != _MAGIC or len(data) < 12:
        raise ValueError("these bytes are no window of sash, and no stream")
    version, crc = struct.unpack_from("<HI", data, 4)
    if version != _VERSION:
        raise ValueError(f"these bytes have version {version}; this sash reads {_VERSION}")
    body = data[10:]
    if zlib.crc32(body) != crc:
        raise ValueError("these bytes are damaged: their checksum is wrong")
    size = 2 + struct.unpack_from("<H", body)[0]
    return body[2:size].decode().split("\n"), body[size:]


def as_told(said: Sequence[str], operator: Operator) -> Operator:
    """The operator, tied to types if it was when the bytes were made."""
    types = said[2].split(",") if said[2] else []
    if types and not operator.types and len(types) == len(operator.skips):
        return operator.of(*types)
    return operator


def check_told(said: Sequence[str], mine: Sequence[str]) -> None:
    """Refuse bytes of something else."""
    if tuple(said) != tuple(mine):
        raise ValueError(
            f"these bytes hold a {said[0]} of {said[1]}({said[2]}) with partials {said[3]}; "
            f"they cannot become a {mine[0]} of {mine[1]}({mine[2]}) with partials {mine[3]}"
        )


def seal(said: Sequence[str], body: bytes) -> bytes:
    """Bytes with what they hold, a version and a checksum."""
    text = "\n".join(said).encode()
    body = struct.pack("<H", len(text)) + text + body
    return _MAGIC + struct.pack("<HI", _VERSION, zlib.crc32(body)) + body
