"""`explain` of a stream in a store says what it says of one in memory, and refuses what only that
place refuses."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import sash

pytestmark = pytest.mark.plain

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.string(), "x": pa.int64(), "o": pa.int64()})


def made(window: Any, **more: Any) -> sash.Query:
    select = more.pop("select", {"n": sash.count(), "last": sash.last("x")})
    return sash.Query(time="t", by=["k"], window=window, select=select, **more)


@pytest.mark.parametrize("window", [sash.sliding(60, 10), sash.trailing(30), sash.session(5)])
def test_the_state_is_records(window: Any) -> None:
    stream = made(window).stream(5, store=sash.stores.memory(), name="s", schema=SCHEMA)
    found = stream.explain()
    assert found.place.startswith("Query.stream, in a store, batch by batch, mode='final'")
    assert "records in the store" in found.steps[1].what
    assert "sync" in found.steps[-1].what
    assert found.kept.bytes is None
    there = made(window).stream(5, schema=SCHEMA).explain()
    assert found.kept.entries == there.kept.entries
    assert found.windows == there.windows
    assert found.warnings == there.warnings


def test_a_tie_is_taken_where_a_stream_in_memory_refuses_it() -> None:
    query = made(sash.sliding(60, 10), tie="o", select={"last": sash.last("x")})
    stream = query.stream(store=sash.stores.memory(), name="s", schema=SCHEMA)
    assert "folded by time" in stream.explain().steps[0].what
    sample = {"t": [1, 2], "k": ["a", "b"], "x": [1, 2], "o": [1, 2]}
    assert stream.explain(data=sample).measured is not None
    with pytest.raises(ValueError, match="tie"):
        query.stream(schema=SCHEMA)


def test_what_cannot_leave_the_process_is_refused() -> None:
    own = sash.operator(
        identity=frozenset(), lift=lambda x: frozenset([x]), combine=frozenset.union
    )
    query = made(sash.tumbling(10), select={"all": sash.aggregate(own, "x")})
    stream = query.stream(store=sash.stores.memory(), name="s")
    with pytest.raises(TypeError, match="encode"):
        stream.explain(SCHEMA)
    assert query.stream().explain(SCHEMA).kept.entry == "time"
