"""Turn the rows of a statement into cells of the heat map: find the columns for the keys, the
window's start, and the value."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from .nodes import Ref
from .planned import Planned
from .values import plain

__all__ = ["Cells"]


@dataclass(frozen=True)
class Cells:
    """The columns of a statement's rows that the map shows."""

    keys: dict[str, str]  # columns of the rows, by the query's names for the keys
    start: str
    value: str
    withdraws: bool = False  # rows that HAVING rejects are marked deleted

    @classmethod
    def of(cls, planned: Planned, rows: pa.Schema) -> Cells | None:
        """Find the columns in the rows' schema; the value is the first number that is no key.  None
        if the SELECT list lacks a key, the window's start, or a number."""
        refs = {o.name: o.node for o in planned.outputs if isinstance(o.node, Ref)}
        named = {ref.name: name for name, ref in refs.items() if ref.part is None}
        starts = [n for n, r in refs.items() if r.name == "window" and r.part in ("start", None)]
        shown = {name for name, ref in refs.items() if ref.name == "window"}
        shown |= {named[key] for key in planned.query.by if key in named}
        values = [f.name for f in rows if f.name not in (*shown, "revision") and _is_number(f.type)]
        if planned.driven or not starts or not values:
            return None
        if any(key not in named for key in planned.query.by):
            return None
        keys = {key: named[key] for key in planned.query.by}
        return cls(keys, starts[0], values[0], planned.having is not None)

    def table(self, rows: pa.Table) -> pa.Table:
        """The rows as a stream of a query would emit them; deleted rows have no value."""
        made = {key: rows.column(name) for key, name in self.keys.items()}
        if self.start in rows.column_names:
            start = plain(rows.column(self.start))
            nested = pa.types.is_struct(start.type)
            made["window_start"] = pc.struct_field(start, "start") if nested else start
        else:  # written results have two columns for the window
            made["window_start"] = rows.column("window_start")
        value = rows.column(self.value)
        if "deleted" in rows.column_names and pa.types.is_boolean(
            rows.schema.field("deleted").type
        ):
            gone = pc.fill_null(rows.column("deleted"), False)
            value = pc.if_else(gone, pa.scalar(None, value.type), value)
        made[self.value] = value
        if "revision" in rows.column_names:
            made["revision"] = rows.column("revision")
        return pa.table(made)


def _is_number(kind: pa.DataType) -> bool:
    is_ = pa.types
    return bool(is_.is_integer(kind) or is_.is_floating(kind) or is_.is_decimal(kind))
