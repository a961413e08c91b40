"""Conditions that rows must satisfy to count in an aggregate: SQL's FILTER.

A condition is an Arrow expression, such as `pyarrow.compute.field("country") == "FR"`. sash keeps
it as the bytes that Arrow serializes it to.  So it can compare conditions, evaluate equal ones
once, send them to other processes, and read from the bytes which columns a condition uses.
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

from .names import what_is

__all__ = ["Condition", "condition_text"]


#: For each live table, by its id: the rows that satisfy a condition, by the condition's bytes.
_found: dict[int, tuple[weakref.ref[Any], dict[bytes, Any]]] = {}


def condition_text(expression: Any) -> str:
    """The text of an expression, different for different expressions."""
    text = str(expression)
    if "..." in text:  # Arrow shows only the ends of a long list
        text += " " + hashlib.sha256(_data(expression)).hexdigest()[:16]
    return text


@dataclass(frozen=True, repr=False)
class Condition:
    """An Arrow expression that can be compared: two conditions with the same expression are equal.

    >>> import pyarrow.compute as pc
    >>> chosen = Condition.of((pc.field("country") == "FR") & (pc.field("x") > 0))
    >>> chosen.columns, chosen == Condition.of(chosen.expression)
    (('country', 'x'), True)
    """

    data: bytes

    @classmethod
    def of(cls, given: Any) -> Condition:
        """The condition for an Arrow expression."""
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
        """Raise TypeError unless `given` is an Arrow expression."""
        from pyarrow.compute import Expression  # imports pyarrow, which takes a while

        if not isinstance(given, Expression):
            raise TypeError(
                "where is an Arrow expression such as pyarrow.compute.field('x') > 0, not "
                f"{what_is(given)}"
            )

    @cached_property
    def expression(self) -> Any:
        """The expression itself."""
        import pyarrow as pa
        from pyarrow.compute import Expression

        return Expression._deserialize(pa.py_buffer(self.data))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that the condition reads; for a field of a struct, the struct's column."""
        found, inner = [], 0  # so many of the next names are fields of the struct before
        for word, said in self.words():
            if word == "nested_field_ref":
                inner = -int(said)
            elif word == "field_ref":
                if inner <= 0:
                    found.append(said)
                inner = abs(inner) - 1 if inner else 0
        return tuple(dict.fromkeys(found))

    def check(self, schema: Any) -> None:
        """Raise ValueError if the condition does not work on a schema."""
        self.holds(schema.empty_table())

    def holds(self, table: Any) -> Any:
        """For each row of a table, True if it satisfies the condition; null counts as False.  A
        second call with the same table returns the first result.

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
        """Evaluate the condition once for each entry of a dictionary column."""
        import pyarrow as pa

        whole = column.combine_chunks()
        entries = whole.dictionary
        if whole.null_count:
            entries = pa.concat_arrays([entries, pa.nulls(1, entries.type)])
        found = self._holds(pa.table({self.columns[0]: entries}))
        at = whole.indices
        if whole.null_count:
            at = at.cast(pa.int64()).fill_null(len(entries) - 1)  # the type may be full
        return _looked_up(found, at.to_numpy(zero_copy_only=False))

    def _holds(self, table: Any) -> Any:
        import pyarrow as pa
        from pyarrow.acero import Declaration, ProjectNodeOptions, TableSourceNodeOptions

        # Arrow does not count the rows of a table without columns
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
        """The parts of the serialized expression: calls, fields and literals, each with its name or
        value."""
        import pyarrow as pa

        schema = pa.ipc.open_file(pa.py_buffer(self.data)).schema
        # the same key comes several times here, and Python would keep only one: it makes a dict
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
    """The cached results of a table; they are dropped with the table."""
    at = id(table)
    known = _found.get(at)
    if known is None or known[0]() is not table:

        def forget(gone: weakref.ref[Any]) -> None:
            if at in _found and _found[at][0] is gone:
                del _found[at]

        known = _found[at] = weakref.ref(table, forget), {}
    return known[1]


def _looked_up(found: Any, at: Any) -> Any:
    """The result for each row, from the results of the dictionary's entries.  If one entry differs
    from all others, as in an equation, comparing the indices with it takes a tenth of the time of a
    look-up."""
    yes = int(found.sum())
    if yes == 1:
        return at == at.dtype.type(found.argmax())
    if yes == len(found) - 1:
        return at != at.dtype.type(found.argmin())
    return found.take(at)


def _data(expression: Any) -> bytes:
    """The bytes that Arrow serializes an expression to."""
    _, (buffer,) = expression.__reduce__()
    return buffer.to_pybytes()  # type: ignore[no-any-return]


def _number(at: int) -> tuple[int, int]:
    """A number in Arrow's C data interface, and the address behind it."""
    return struct.unpack("=i", ctypes.string_at(at, 4))[0], at + 4


def _text(at: int) -> tuple[str, int]:
    size, at = _number(at)
    return ctypes.string_at(at, size).decode(), at + size
