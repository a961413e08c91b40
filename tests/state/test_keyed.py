"""Rows by key in a store, against a plain list of rows, and the records that they are in."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sash.state import keyed
from sash.state.keyed import Keyed, KeyedTables
from sash.state.part_index import NEVER
from sash.stores.sealed import Damaged
from sash.testing.stored import CountingStore

pytestmark = pytest.mark.plain

Row = tuple[Any, int, int, int]  # key, number, due, until
NAMES = ("key", "n", "due", "until")
SCHEMA = pa.schema([("key", pa.string()), *((name, pa.int64()) for name in NAMES[1:])])


def table_of(rows: list[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[]] * 4
    return pa.table(dict(zip(NAMES, map(list, columns), strict=True)), schema=SCHEMA)


def keyed_rows(rows: list[Row]) -> Keyed:
    table = table_of(rows)
    due, until = (table.column(name).to_numpy() for name in NAMES[2:])
    return Keyed(table, [table.column("key").combine_chunks()], due, until, np.ones(len(rows)))


def rows_in(table: pa.Table) -> list[Row]:
    return [tuple(row.values()) for row in table.to_pylist()]  # type: ignore[misc]


def by_key(rows: list[Row]) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    return found


@pytest.mark.parametrize("page", [300, 3000, 10**6])
def test_rows_come_back_with_their_keys_and_when_they_are_due(
    page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tables; a visit returns all rows of its keys, in order, and of those that are due."""
    monkeypatch.setattr(keyed, "PAGE", page)
    source, store, n = random.Random(page), CountingStore(), 0
    kept: list[list[Row]] = [[], []]
    for watermark in range(60):
        keys = [source.choice(["a", "é", None, *map(str, range(40))]) for _ in range(3)]
        state = KeyedTables([SCHEMA, SCHEMA], store, b"x")  # nothing is carried over
        found = [rows_in(t) for t in state.visit([pa.array(keys, pa.string())], 3, watermark)]
        wanted = {*keys, *(row[0] for rows in kept for row in rows if row[2] <= watermark)}
        for rows, right in zip(found, kept, strict=True):
            got, all_rows = by_key(rows), by_key(right)
            assert {key: got.get(key) for key in wanted} == {k: all_rows.get(k) for k in wanted}
            assert all(got[key] == all_rows[key] for key in got)
        if source.random() < 0.2:
            state.abandon()
            continue
        read = {row[0] for rows in found for row in rows} | wanted
        left = []
        for rows in found:
            rows = [row for row in rows if row[2] > watermark and row[3] > watermark]
            for key in keys:
                due = source.choice((NEVER, watermark + source.randint(1, 9)))
                rows.append((key, n, due, watermark + source.randint(1, 30)))
                n += 1
            left.append(rows)
        state.replace([keyed_rows(rows) for rows in left])
        state.commit()
        kept = [
            [row for row in old if row[0] not in read] + new
            for old, new in zip(kept, left, strict=True)
        ]
        times = [t for rows in kept for row in rows for t in row[2:3]]
        first = state.next_visit()
        assert first is not None
        assert first <= min(times)
        size = state.size()
        assert size == KeyedTables([SCHEMA, SCHEMA], store, b"x").size()
        for _, data in store.scan(b"xp"):
            assert len(data) <= page + 100 or len(_keys(data)) == 1
    state = KeyedTables([SCHEMA, SCHEMA], store, b"x")
    state.visit([], 0, NEVER)
    state.replace([keyed_rows([]), keyed_rows([])])
    state.commit()
    assert not len(store)
    assert state.next_visit() is None


def _keys(data: bytes) -> set[Any]:
    blobs = keyed._blobs(memoryview(data)[9:])
    return {key for blob in blobs for key in keyed._read(SCHEMA, [blob])["key"].to_pylist()}


def test_a_record_that_is_not_as_it_was_written_is_refused() -> None:
    store = CountingStore()
    state = KeyedTables([SCHEMA], store)
    state.visit([pa.array(["a"])], 1, None)
    state.replace([keyed_rows([("a", 1, 2, 3)])])
    state.commit()
    ((name, data),) = store.scan(b"p")
    store.put_many({name: data[:-1] + b"?"})
    with pytest.raises(Damaged, match="the state is damaged"):
        state.visit([], 0, 5)
    store.delete_many([name])
    with pytest.raises(Damaged, match="is missing"):
        state.visit([], 0, 5)
