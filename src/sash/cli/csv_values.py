"""Cast the text of a CSV file to numbers and booleans: the values that Spark reads, or an error.

Arrow's CSV reader accepts more than Spark does: blanks around whole numbers, 0x1F, inf, and 1 for
true.  Spark reads these as null.  So sash reads such columns as text, and casts them here.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["is_cast", "with_values"]

#: Spark's spelling of the numbers that are not finite, in exactly this case.
_NOT_FINITE = pa.array(["NaN", "Inf", "-Inf", "Infinity", "+Infinity", "-Infinity"])


def is_cast(kind: pa.DataType) -> bool:
    """True for the column types that `with_values` casts from text."""
    is_ = pa.types
    return any(of(kind) for of in (is_.is_integer, is_.is_floating, is_.is_decimal, is_.is_boolean))


def with_values(table: pa.Table, schema: pa.Schema, *, hexadecimal: bool) -> pa.Table:
    """Cast the table's text to numbers and booleans.  Without `hexadecimal`, no field contains 0x,
    and the cast does not look for it."""
    for i, field in enumerate(schema):
        if not is_cast(field.type):
            continue
        text = table.column(i)
        try:
            if pa.types.is_boolean(field.type):
                made = _booleans(text)
            elif pa.types.is_floating(field.type):
                made = _floats(text, field.type)
            else:
                if hexadecimal:
                    _refuse(text, pc.match_substring_regex(text, "[xX]"), field.type)
                made = text.cast(field.type)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(f"column {field.name!r}: {error}") from None
        table = table.set_column(i, field, made)
    return table


def _booleans(text: Any) -> Any:
    lower = pc.utf8_lower(text)
    made = pc.equal(lower, "true")
    _refuse(text, pc.invert(pc.or_(made, pc.equal(lower, "false"))), pa.bool_())
    return made


def _floats(text: Any, kind: pa.DataType) -> Any:
    """Cast to floats, around which Spark allows blanks."""
    made = pc.ascii_trim_whitespace(text).cast(kind)
    finite = pc.is_finite(made)
    if pc.all(finite).as_py() is False:
        known = pc.is_in(text, value_set=_NOT_FINITE)
        _refuse(text, pc.invert(pc.or_(finite, known)), kind)
    return made


def _refuse(text: Any, bad: Any, kind: pa.DataType) -> None:
    """Raise an error that names the first bad text, if there is one."""
    at = pc.index(bad, True).as_py()
    if at >= 0:
        raise pa.ArrowInvalid(f"{text[at].as_py()!r} is no {kind}")
