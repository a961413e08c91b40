"""Conditions that rows must satisfy to count in an aggregate: SQL's FILTER.

A condition is an Arrow expression, such as `pyarrow.compute.field("country") == "FR"`, kept as the
bytes that Arrow makes of it: so equal ones are equal, and are evaluated once, and they can be sent
to other processes.  The bytes tell which columns it reads, too.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

__all__ = ["Condition", "condition_text"]


#: For tables that are there, by their ids: which rows satisfy conditions, by the bytes of these.
_found: dict[int, tuple[weakref.ref[Any], dict[bytes, Any]]] = {}


def condition_text(expression: Any) -> str:
    """An expression as text that differs from that of any other one."""
    text = str(expression)
    if "..." in text:  # of a long list Arrow shows the ends only
        text += " " + hashlib.sha256(_data(expression)).hexdigest()[:16]
    return text


@dataclass(frozen=True, repr=False)
class Condition:
    """An Arrow expression as a value: two that say the same are equal.

    >>> import pyarrow.compute as pc
    >>> chosen = Condition.of((pc.field("country") == "FR") & (pc.field("x") > 0))
    >>> chosen.columns, chosen == Condition.of(chosen.expression)
    (('country', 'x'), True)
    """

    data: bytes

    @classmethod
    def of(cls, given: Any) -> Condition:
        """The condition that an expression states."""
        if isinstance(given, Condition):
            return given
        cls.check_expression(given)
        import pyarrow as pa

        try:
            return cls(_data(given))
        except pa.ArrowNotImplementedError:
            raise TypeError(
                f"where, {given}, names columns by their number; name them as in "
                "pyarrow.compute.field('x') > 0"
            ) from None

    @staticmethod
    def check_expression(given: Any) -> None:
        """Refuse what is no Arrow expression."""
        from pyarrow.compute import Expression  # imports pyarrow, which takes a while

        if not isinstance(given, Expression):
            raise TypeError(
                "where is an Arrow expression such as pyarrow.compute.field('x') > 0, not "
                f"{given!r}"
            )

    @cached_property
    def expression(self) -> Any:
        """The expression itself."""
        import pyarrow as pa
        from pyarrow.compute import Expression

        return Expression._deserialize(pa.py_buffer(self.data))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads; of a part of a struct, the struct."""
        found, inner = [], 0  # so many names are of parts of the one before
        for word, said in self.words():
            if word == "nested_field_ref":
                inner = -int(said)
            elif word == "field_ref":
                if inner <= 0:
                    found.append(said)
                inner = abs(inner) - 1 if inner else 0
        return tuple(dict.fromkeys(found))

    def check(self, schema: Any) -> None:
        """Refuse a schema that the condition cannot be used on."""
        self.holds(schema.empty_table())

    def holds(self, table: Any) -> Any:
        """For each row of a table whether it satisfies the condition; where that is null, it does
        not.  Of one table it is evaluated once, whoever asks.

        >>> import pyarrow as pa, pyarrow.compute as pc
        >>> Condition.of(pc.field("x") > 1).holds(pa.table({"x": [1, None, 2]}))
        array([False, False,  True])
        """
        import pyarrow as pa

        known = _found_for(table)
        if self.data not in known:
            column = table.column(self.columns[0]) if len(self.columns) == 1 else None
            if column is not None and pa.types.is_dictionary(column.type) and len(column):
                known[self.data] = self._by_entry(column)
            else:
                known[self.data] = self._holds(table)
        return known[self.data]

    def _by_entry(self, column: Any) -> Any:
        """The same for a column that is a dictionary, whose entries are few."""
        import pyarrow as pa

        whole = column.combine_chunks()
        entries = whole.dictionary
        if whole.null_count:
            entries = pa.concat_arrays([entries, pa.nulls(1, entries.type)])
        found = self._holds(pa.table({self.columns[0]: entries}))
        at = whole.indices
        if whole.null_count:
            at = at.cast(pa.int64()).fill_null(len(entries) - 1)  # there may be no index to spare
        return _looked_up(found, at.to_numpy(zero_copy_only=False))

    def _holds(self, table: Any) -> Any:
        import pyarrow as pa
        from pyarrow.acero import Declaration, ProjectNodeOptions, TableSourceNodeOptions

        # of a table without columns Arrow would forget how many rows there are
        read = table.select(list(self.columns) or table.column_names[:1])
        steps = [
            Declaration("table_source", TableSourceNodeOptions(read)),
            Declaration("project", ProjectNodeOptions([self.expression], ["holds"])),
        ]
        try:
            made = Declaration.from_sequence(steps).to_table(use_threads=False).column(0)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise ValueError(f"where, {self}, cannot be used on this table: {error}") from None
        if not pa.types.is_boolean(made.type):
            raise ValueError(
                f"where, {self}, is no condition, but {made.type}; compare it with something, as "
                "in pyarrow.compute.field('x') > 0"
            )
        return (made.fill_null(False) if made.null_count else made).to_numpy()

    def words(self) -> Iterator[tuple[str, str]]:
        """The expression as Arrow writes it down: calls, fields and literals, each with what it is
        called."""
        import pyarrow as pa

        schema = pa.ipc.open_file(pa.py_buffer(self.data)).schema
        # a schema's metadata is a dict in Python, and here the same word comes several times
        capsule = schema.__arrow_c_schema__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        fields = ctypes.cast(pointer(capsule, b"arrow_schema"), ctypes.POINTER(ctypes.c_void_p))
        at = fields[2]  # behind format and name
        if not at:
            return
        count, at = _number(at)
        for _ in range(count):
            word, at = _text(at)
            said, at = _text(at)
            yield word, said

    def __repr__(self) -> str:
        return str(self.expression)


def _found_for(table: Any) -> dict[bytes, Any]:
    """What was found for a table; it is forgotten with the table."""
    at = id(table)
    known = _found.get(at)
    if known is None or known[0]() is not table:

        def forget(gone: weakref.ref[Any]) -> None:
            if at in _found and _found[at][0] is gone:
                del _found[at]

        known = _found[at] = weakref.ref(table, forget), {}
    return known[1]


def _looked_up(found: Any, at: Any) -> Any:
    """What was found for each entry, by the numbers of entries.  To compare them with the one entry
    that differs from the others, as in an equation, takes a tenth of the time of looking it up."""
    yes = int(found.sum())
    if yes == 1:
        return at == at.dtype.type(found.argmax())
    if yes == len(found) - 1:
        return at != at.dtype.type(found.argmin())
    return found.take(at)


def _data(expression: Any) -> bytes:
    """The bytes that Arrow makes of an expression."""
    _, (buffer,) = expression.__reduce__()
    return buffer.to_pybytes()  # type: ignore[no-any-return]


def _number(at: int) -> tuple[int, int]:
    """A number in Arrow's C data interface, and where it ends."""
    return struct.unpack("=i", ctypes.string_at(at, 4))[0], at + 4


def _text(at: int) -> tuple[str, int]:
    size, at = _number(at)
    return ctypes.string_at(at, size).decode(), at + size
