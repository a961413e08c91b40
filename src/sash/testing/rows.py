"""Turn tables of any kind into rows, and compare values.

A row is a dict.  All times are int64 microseconds, so that rows from tables of any kind can be
compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Row", "arrow_of", "equal", "order_of", "plain", "rows_of", "shown"]

Row = dict[str, Any]


def rows_of(table: Any) -> list[Row]:
    """The rows of a table of any kind (Arrow, pandas, Polars, a dict of columns, dicts), times as
    microseconds, and fractions of them; a struct `window` of start and end becomes two columns.

    >>> import pyarrow as pa
    >>> rows_of(pa.table({"t": pa.array([1_500, 2_000], pa.timestamp("ns"))}))
    [{'t': Fraction(3, 2)}, {'t': 2}]
    """
    if isinstance(table, list):
        return [dict(row) for row in table]
    given = arrow_of(table)
    columns = {}
    for name, column in zip(given.column_names, given.columns, strict=True):
        items = [x for chunk in column.chunks for x in _items(chunk)]
        if name == "window" and all(isinstance(x, dict) for x in items):
            for edge in ("start", "end"):
                columns[f"window_{edge}"] = [x[edge] for x in items]
        else:
            columns[name] = items
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def arrow_of(table: Any) -> pa.Table:
    import pyarrow as pa

    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if type(table).__module__.startswith("pandas"):
        return pa.Table.from_pandas(table, preserve_index=False)
    return pa.table(table)


def _items(array: pa.Array) -> list[Any]:
    """An array's values in Python, with times as microseconds."""
    import pyarrow as pa

    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return _items(array.storage)
    if pa.types.is_dictionary(kind):
        return _items(array.dictionary_decode())
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        many, of = {"s": (10**6, 1), "ms": (1000, 1), "us": (1, 1), "ns": (1, 1000)}[kind.unit]
        ticks = array.cast(pa.int64()).to_pylist()
        whole = of == 1 or pa.types.is_duration(kind)
        return [
            x if x is None else x * many // of if whole or x % of == 0 else Fraction(x, of)
            for x in ticks
        ]
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        rows = zip(*(_items(part) for part in array.flatten()), strict=True)
        there = array.is_valid().to_pylist()
        return [dict(zip(names, row, strict=True)) if ok else None for row, ok in zip(rows, there)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [_items(x.values) if x.is_valid else None for x in array]
    if pa.types.is_map(kind):
        return [_in_order(_items(x.values)) if x.is_valid else None for x in array]
    return array.to_pylist()  # type: ignore[no-any-return]


def _in_order(entries: list[Row]) -> list[tuple[Any, ...]]:
    """The entries of a map, by their keys: maps are equal whatever the order of their entries."""
    return sorted((tuple(entry.values()) for entry in entries), key=lambda pair: order_of(pair[0]))


def plain(value: Any, fields: Sequence[str] = ()) -> Any:
    """An answer as a table would return it: structs as dicts, arrays and tuples as lists."""
    if fields and isinstance(value, tuple):
        return {name: plain(x) for name, x in zip(fields, value, strict=True)}
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [plain(x) for x in value]
    return value


def shown(key: Any) -> Any:
    """A key as a result shows it: one zero, one NaN."""
    if isinstance(key, float):
        return math.nan if key != key else key + 0.0
    if isinstance(key, dict):
        return {name: shown(x) for name, x in key.items()}
    return type(key)(shown(x) for x in key) if isinstance(key, list | tuple) else key


def order_of(key: Any) -> Any:
    """The value to compare and sort keys by: null first, NaN last, structs field by field."""
    if key is None:
        return (0,)
    if isinstance(key, dict):
        return (1, tuple(order_of(x) for x in key.values()))
    if isinstance(key, list | tuple):
        return (1, tuple(order_of(x) for x in key))
    return (2,) if key != key else (1, key)


def equal(a: Any, b: Any, slack: float = 0.0) -> bool:
    """True if two values are the same, where NaN equals NaN; numbers may differ by the slack."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(equal(a[n], b[n], slack) for n in a)
    if isinstance(a, list) and isinstance(b, dict):
        b = list(b.values())  # a tuple, as a struct
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(equal(x, y, slack) for x, y in zip(a, b))
    if a is None or b is None:
        return a is b
    if a != a or b != b:
        return bool(a != a and b != b)
    if slack and isinstance(a, int | float) and isinstance(b, int | float):
        return a == b or math.isclose(a, b, rel_tol=slack, abs_tol=slack)
    return bool(a == b)
