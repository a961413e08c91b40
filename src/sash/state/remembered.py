"""The last emitted values of keys, in a store.  The lifecycle compares new values with them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from .contract import Emitted, Recalled
from .notes import REMEMBERED, Noted
from .visit import Visit

__all__ = ["recall", "remember"]


def recall(visit: Visit, query: int, emitted: Emitted, codes: Array) -> Recalled:
    """The remembered values of the keys with these codes.  `query` is the query's place among the
    visit's asks."""
    noted = Noted(visit, query, REMEMBERED, codes)
    types = {name: column.type for name, column in emitted.values.items()}
    table, rows = _joined(noted, types)
    useful = table.column("covered").to_numpy() + 1 >= visit.asks[query].step.opened
    table, rows = table.filter(pa.array(useful)), rows[useful]
    order = np.argsort(rows)
    at = np.searchsorted(rows[order], noted.codes)
    there = at < len(rows)
    there[there] = rows[order][at[there]] == noted.codes[there]
    found = order[at[there]]
    covered = np.zeros(len(codes), dtype=np.int64)
    covered[there] = table.column("covered").to_numpy()[found]
    taken = table.take(pa.array(found))
    values = {
        name: pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        for name, column in ((name, taken.column(f"v {name}")) for name in types)
    }
    return Recalled(there, covered, values)


def remember(
    visit: Visit, query: int, codes: Array, covered: Array, values: dict[str, pa.Array]
) -> None:
    """Remember the values of the keys with these codes, for a query."""
    noted = Noted(visit, query, REMEMBERED, codes)
    types = {name: column.type for name, column in values.items()}
    table, rows = _joined(noted, types)
    others = ~np.isin(rows, noted.codes)
    others &= table.column("covered").to_numpy() + 1 >= visit.asks[query].step.keep
    new = pa.table({"covered": pa.array(covered), **{f"v {n}": v for n, v in values.items()}})
    both = pa.concat_tables([table.filter(pa.array(others)), new], promote_options="permissive")
    until = both.column("covered").to_numpy() + 1
    columns = {
        name: pa.concat_arrays(column.chunks)
        for name, column in zip(both.column_names, both.columns, strict=True)
    }
    noted.replace(np.concatenate([rows[others], noted.codes]), columns, until)


def _joined(noted: Noted, types: dict[str, pa.DataType]) -> tuple[pa.Table, Array]:
    """All remembered values in the parts of some keys, without the key columns, and the number of
    each row's key.

    Answers without a declared type may be remembered with a type that cannot be joined with the
    present one.  Such values differ from all new values, so they can be left out.
    """
    fields = [("covered", pa.int64()), *((f"v {name}", kind) for name, kind in types.items())]
    joined = pa.schema(fields).empty_table()
    kept = []
    end = 0
    for table in noted.tables:
        start, end = end, end + table.num_rows
        try:
            joined = pa.concat_tables(
                [joined, table.select(joined.column_names)], promote_options="permissive"
            )
        except pa.ArrowException:
            continue
        kept.append(noted.rows[start:end])
    return joined, np.concatenate([np.empty(0, dtype=np.int64), *kept])
