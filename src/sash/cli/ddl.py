"""Read Spark's list of columns as an Arrow schema: `origin string, delay double`.

When a job runs on Spark, Spark itself reads the text.  This module reads, without Java, the part of
the syntax that a job file may use.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

from ..query.names import did_you_mean
from ..tables.type_names import PLAIN

__all__ = ["DdlError", "read_ddl"]

#: Spark's type names; a timestamp is an instant, and timestamp_ntz has no zone.
TYPES: dict[str, pa.DataType] = {
    **PLAIN,
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_NESTED = ("array", "map", "struct")
_DECIMAL = ("decimal", "dec", "numeric")
_TEXT = ("varchar", "char")
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\w+|[<>(),:])")


class DdlError(ValueError):
    """Raised for a text that does not list columns and their types."""


def read_ddl(text: str) -> pa.Schema:
    """Read the columns that a text lists.

    >>> read_ddl("origin string, delay double").names
    ['origin', 'delay']
    """
    reader = _Reader(text)
    fields = reader.fields(None)
    if reader.next is not None:
        raise DdlError(f"{reader.next!r} is unexpected {reader.where}")
    names = [f.name.lower() for f in fields]
    for name in names:
        if names.count(name) > 1:
            raise DdlError(f"column {name!r} is there twice")
    return pa.schema(fields)


class _Reader:
    """Reads the words of a text one after another."""

    def __init__(self, text: str) -> None:
        self._words: list[str] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise DdlError(f"cannot read {text[at:].strip()[:20]!r}")
            self._words.append(found[1])
            at = found.end()
        self._at = 0

    @property
    def next(self) -> str | None:
        return self._words[self._at] if self._at < len(self._words) else None

    @property
    def where(self) -> str:
        before = " ".join(self._words[max(self._at - 3, 0) : self._at])
        return f"after {before!r}" if before else "at the start"

    def take(self, *wanted: str) -> bool:
        """Skip the next word if it is one of these; returns True if it was."""
        if self.next is None or self.next.lower() not in wanted:
            return False
        self._at += 1
        return True

    def need(self, wanted: str) -> None:
        if not self.take(wanted):
            raise DdlError(f"{wanted!r} is missing {self.where}")

    def word(self, what: str) -> str:
        word = self.next
        if word is None or not (word[0] == "`" or word[0].isalnum() or word[0] == "_"):
            raise DdlError(f"{what} is missing {self.where}")
        self._at += 1
        return word[1:-1].replace("``", "`") if word[0] == "`" else word

    def fields(self, end: str | None) -> list[pa.Field]:
        """Read names and types, separated by commas."""
        made: list[pa.Field] = []
        while self.next is not None or end or made:
            name = self.word("the name of a column")
            self.take(":")
            type_ = self.type(name)
            nullable = True
            if self.take("not"):
                self.need("null")
                nullable = False
            if self.take("comment"):
                self._at += 1
            made.append(pa.field(name, type_, nullable))
            if not self.take(","):
                break
        if not made:
            raise DdlError("no column is there; write columns as in 'origin string, delay double'")
        if end:
            self.need(end)
        return made

    def type(self, name: str) -> pa.DataType:
        word = self.word(f"the type of column {name!r}").lower()
        if word in TYPES:
            return TYPES[word]
        if word in _DECIMAL:
            return self._decimal(name)
        if word in _TEXT:
            self._numbers(name)
            return pa.string()
        if word in _NESTED:
            self.need("<")
            return _MAKE[word](self, name)
        meant = did_you_mean(word, [*TYPES, *_NESTED, "decimal"])
        hint = meant or f"; types are {', '.join(TYPES)}, …"
        raise DdlError(f"column {name!r} has type {word!r}, which is unknown{hint}")

    def _numbers(self, name: str) -> list[int]:
        self.need("(")
        made = []
        while not self.take(")"):
            word = self.word(f"a number in the type of column {name!r}")
            if not word.isdigit():
                raise DdlError(f"the type of column {name!r} has {word!r} for a number")
            made.append(int(word))
            self.take(",")
        return made

    def _decimal(self, name: str) -> pa.DataType:
        given = self._numbers(name) if self.next == "(" else []
        precision, scale, *more = [*given, *(10, 0)[len(given) :]]
        if more or not 0 < precision <= 38 or scale > precision:
            raise DdlError(f"column {name!r} is a decimal of at most 38 digits: decimal(10, 2)")
        return pa.decimal128(precision, scale)

    def array(self, name: str) -> pa.DataType:
        made = pa.list_(self.type(name))
        self.need(">")
        return made

    def map(self, name: str) -> pa.DataType:
        key = self.type(name)
        self.need(",")
        made = pa.map_(key, self.type(name))
        self.need(">")
        return made


_MAKE: dict[str, Callable[[_Reader, str], pa.DataType]] = {
    "array": _Reader.array,
    "map": _Reader.map,
    "struct": lambda reader, _: pa.struct(reader.fields(">")),
}
