"""Run a statement over Arrow tables: compute the columns before its query, and the rows of its
result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array
from ..query.names import nearest
from ..windows import Merging
from .evaluate import Evaluator
from .nodes import Alias, At, Column, Node, Ref, Star
from .planned import Planned
from .values import Value, as_mask, plain, reasons

__all__ = ["Noted", "columns_read", "identity", "prepared", "projected"]


@dataclass(frozen=True)
class Noted:
    """A row for which an expression failed, with the expression and the reason."""

    row: int
    why: str
    at: At
    left_out: bool = False  # the expression is HAVING, which then drops the row


def columns_read(planned: Planned, names: Sequence[str]) -> dict[str, int]:
    """The positions of a statement's columns in a table, by the query's names for them.  Names
    match as on Spark: exactly, or else in any case."""
    found = {}
    for name, node in planned.read.items():
        at = [i for i, n in enumerate(names) if n == name]
        at = at or [i for i, n in enumerate(names) if n.lower() == name.lower()]
        if len(at) != 1:
            raise _no_column(planned, node, names, twice=bool(at))
        found[name] = at[0]
    for alias, place in planned.aliases:
        if any(n.lower() == alias.lower() for n in names):
            raise planned.source.error(
                f"{alias} is a column of the table and an alias of the SELECT list; give the alias "
                "another name",
                *place,
            )
    return found


def _no_column(planned: Planned, node: Column, names: Sequence[str], *, twice: bool) -> Exception:
    what = "is there more than once" if twice else "is not there"
    at = node.at
    if planned.source[at[0] : at[1]].strip("`").lower() != node.written.lower():
        what = f"{what}, which time= names"
    return planned.source.error(
        f"column {node.name} {what}",
        *at,
        names,
        None if twice else nearest(node.name, names),
    )


def prepared(
    planned: Planned, table: pa.Table, zone: str | None, *, whole: bool
) -> tuple[pa.Table, list[Noted]]:
    """The table for the query, and the rows for which an expression failed.  With `whole` it also
    has the other columns of the table, for late rows."""
    at = columns_read(planned, table.column_names)
    columns: dict[str, Any] = {}
    if planned.stars or whole:
        called = {i: name for name, i in at.items()}
        columns = {called.get(i, n): table.column(i) for i, n in enumerate(table.column_names)}
    columns |= {name: table.column(i) for name, i in at.items()}
    if not planned.before:
        return pa.table(columns), []
    for name in planned.before:
        if name in columns:
            raise planned.source.error(
                f"the table has a column called {name}, as is this expression; write it in another "
                "way",
                *planned.before[name].at,
            )
    home = _home(columns, (planned.query.time, *at), zone)
    spelt = {name.lower(): name for name in at}  # an expression may have a name in another case

    def column(name: str) -> Any:
        return columns[spelt.get(name.lower(), name)]

    evaluator = Evaluator(planned.source, table.num_rows, _Cached(column), zone, home)
    noted: list[Noted] = []
    chosen: Array = np.ones(table.num_rows, dtype=bool)
    names = sorted(planned.before, key=lambda n: n != planned.where)
    made: dict[str, Any] = {}
    for name in names:
        node = planned.before[name]
        value = evaluator.value(node)
        if name in planned.conditions:
            value = evaluator.condition(value, node)
        if name == planned.where:
            chosen = as_mask(value.data, table.num_rows)
            failed = reasons(value.failed)
        else:
            failed = reasons(value.within(chosen))
        noted += [Noted(row, why, node.at) for row, why in failed.items()]
        made[name] = value.array(table.num_rows)
    return pa.table(columns | made), noted


def _home(columns: Mapping[str, Any], names: Iterable[str], zone: str | None) -> str | None:
    """The zone of CAST(… AS timestamp): that of the statement, or else that of the first column
    with a zone; None if no column has one, so that times are clock times."""
    for name in names:
        kind = columns[name].type if name in columns else pa.null()
        if pa.types.is_timestamp(kind) and kind.tz:
            return zone or str(kind.tz)
    return None


class _Cached:
    """Columns in the types that expressions know, each converted once."""

    def __init__(self, column: Callable[[str], Any]) -> None:
        self._column = column
        self._made: dict[Any, Any] = {}

    def __call__(self, name: str, part: Literal["start", "end"] | None) -> Any:
        key = name, part
        if key not in self._made:
            self._made[key] = plain(self._column(name) if part is None else self._part(part))
        return self._made[key]

    def _part(self, part: str) -> Any:
        return self._column(f"window_{part}")


@dataclass(frozen=True)
class _Result:
    """The result of the query, for expressions."""

    planned: Planned
    table: pa.Table

    def column(self, name: str) -> Any:
        """A column; an aggregate's answers are converted as its `then` says."""
        if name == "window" and "window" not in self.table.column_names:
            ends = [plain(self.table.column(f"window_{end}")) for end in ("start", "end")]
            return pa.StructArray.from_arrays(ends, names=["start", "end"])
        found = self.table.column(name)
        then = self.planned.then.get(name, "")
        if then == "whole":
            return pc.round(found).cast(pa.int64())
        if then == "field":
            return pc.struct_field(found, 0)
        if then == "list":
            struct = plain(found)
            fields = [pc.struct_field(struct, i) for i in range(struct.type.num_fields)]
            rows = np.arange(len(struct) + 1) * len(fields)
            order = np.arange(len(struct) * len(fields)).reshape(len(fields), -1).T.ravel()
            values = pa.concat_arrays(fields).take(pa.array(order))
            nulls = np.append(np.asarray(struct.is_null()), False)
            return pa.ListArray.from_arrays(pa.array(rows, pa.int32(), mask=nulls), values)
        return found

    def output(self, node: Node, evaluator: Evaluator) -> Value:
        if isinstance(node, Alias):
            return self.output(node.of, evaluator)
        if isinstance(node, Ref):
            name = node.name if node.part is None else f"window_{node.part}"
            return Value(self.column(name))
        return evaluator.value(node)


def projected(
    planned: Planned,
    table: pa.Table,
    zone: str | None,
    *,
    live: bool = False,
    hidden: Collection[str] = (),
) -> tuple[pa.Table, list[Noted]]:
    """Compute the SELECT list over the query's result, for the rows that HAVING keeps, in order.
    Also returns the rows for which HAVING fails, and the kept rows for which the SELECT list fails.

    In live mode, a revision that HAVING rejects comes marked `deleted`, because the stream may have
    emitted an earlier one; the first revision of a window is left out. * leaves out the `hidden`
    columns."""
    result = _Result(planned, table)
    rows = table.num_rows
    columns = dict(zip(table.column_names, table.columns, strict=True))
    home = _home(columns, ("window_start", planned.query.time, *columns), zone)
    evaluator = Evaluator(planned.source, rows, _Cached(result.column), zone, home)
    noted: list[Noted] = []
    kept: Array | None = None
    if planned.having is not None:
        having = evaluator.condition(evaluator.value(planned.having), planned.having)
        failed = reasons(having.failed)
        noted += [Noted(row, why, planned.having.at, True) for row, why in failed.items()]
        kept = as_mask(having.data, rows)
    own = [n for n in ("revision", "deleted") if n in table.column_names]
    own = [n for n in own if not (planned.driven and n == "deleted")]
    planned.check_own([*own, "deleted"] if live and kept is not None else own)
    columns = {}
    for output in planned.outputs:
        if isinstance(output.node, Star):
            inner = {*planned.query.select, *planned.before, "window_start", "window_end", *hidden}
            for name in table.column_names:
                if name not in inner and name != "revision":
                    _add(columns, name, table.column(name), planned, output.at)
            continue
        value = result.output(output.node, evaluator)
        failed = reasons(value.failed if kept is None else value.within(kept))
        noted += [Noted(row, why, output.node.at) for row, why in failed.items()]
        data = value.array(rows) if isinstance(value.data, pa.Scalar) else value.data
        _add(columns, output.name, data, planned, output.at)
    for name in own:
        columns[name] = table.column(name)
    made = pa.table(columns)
    if live and kept is not None:
        made, kept = _marked(made, table, kept)
    keys = [(o, result.output(o.by, evaluator).array(rows)) for o in planned.order]
    if kept is not None and not kept.all():
        at = np.flatnonzero(kept)
        made = made.take(pa.array(at))
        keys = [(o, plain(k).take(pa.array(at))) for o, k in keys]
    if keys:
        made = made.take(_order(keys))
    if planned.select.limit is not None:
        made = made.slice(0, planned.select.limit)
    return made, noted


def identity(planned: Planned, table: pa.Table) -> list[pa.Array]:
    """The columns of a statement's result that identify a window in live mode: keys and bounds (for
    a session, whose end moves, only the start), or the columns of the event."""
    if planned.driven:
        computed = {o.name for o in planned.outputs if not _is_kept(planned, o.node)}
        own = (*computed, "revision", "deleted")
        return [plain(table.column(n)) for n in table.column_names if n not in own]
    found = []
    ends = ("start",) if isinstance(planned.query.window, Merging) else ("start", "end")
    for output in planned.outputs:
        node = output.node
        if not isinstance(node, Ref) or node.name in planned.query.select:
            continue
        column = plain(table.column(output.name))
        if node.name != "window":
            found.append(column)
        elif node.part is None:
            found += [pc.struct_field(column, end) for end in ends]
        elif node.part in ends:
            found.append(column)
    return found


def _is_kept(planned: Planned, node: Node) -> bool:
    """True for a column of the table that the row keeps."""
    return isinstance(node, Star) or (isinstance(node, Ref) and node.name in planned.read)


def _add(columns: dict[str, Any], name: str, data: Any, planned: Planned, at: At) -> None:
    if name in columns:
        raise planned.source.error(
            f"two columns are called {name}; give one another name with AS", *at
        )
    columns[name] = data


def _marked(made: pa.Table, table: pa.Table, kept: Array) -> tuple[pa.Table, Array]:
    """Mark the rows that HAVING rejects as deleted; returns the rows to emit."""
    gone = ~kept
    again = np.asarray(table.column("revision")) > 0
    if "deleted" in made.column_names:
        gone |= np.asarray(made.column("deleted"))
        made = made.drop_columns(["deleted"])
    return made.append_column("deleted", pa.array(gone)), kept | again


def _order(keys: Sequence[tuple[Any, Any]]) -> pa.Array:
    """The order of rows, as on Spark: nulls first, or last with DESC; NaN above all numbers."""
    columns: dict[str, Any] = {}
    wanted: list[tuple[str, str]] = []
    for order, data in keys:
        column = plain(data)
        way = "descending" if order.descending else "ascending"
        nulls_last = order.nulls == "last" if order.nulls else order.descending
        n = str(len(columns))
        columns[f"null {n}"] = pc.is_null(column).cast(pa.int8())
        wanted.append((f"null {n}", "ascending" if nulls_last else "descending"))
        if pa.types.is_floating(column.type):
            odd = pc.is_nan(column)
            columns[f"nan {n}"] = odd.cast(pa.int8())
            wanted.append((f"nan {n}", way))
            column = pc.if_else(odd, pa.scalar(0.0, column.type), column)
        columns[f"key {n}"] = column
        wanted.append((f"key {n}", way))
    # Arrow's sort is not always stable over several keys
    columns["row"] = pa.array(np.arange(len(next(iter(columns.values())))))
    wanted.append(("row", "ascending"))
    return pc.sort_indices(pa.table(columns), sort_keys=wanted)
