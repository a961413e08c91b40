"""Batches that a store's state takes in portions: the rows of a stream in memory, in the same
order, and a batch that fails in the middle is taken back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash.state import portions
from sash.state.tiles import TileState
from sash.stores import MemoryStore, StoreError

pytestmark = pytest.mark.plain


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portions, "MOST", 20)


def query(emit: Literal["all", "changes"] = "all", window: Any = None) -> sash.Query:
    select = {"n": sash.count(), "most": sash.max("x"), "first": sash.first("x")}
    window = window or sash.sliding(60, 10)
    return sash.Query(time="t", by=["k"], window=window, select=select, emit=emit)


def batches(seed: int, count: int, keys: int = 60) -> Iterator[pa.Table]:
    source = np.random.default_rng(seed)
    for i in range(count):
        yield pa.table(
            {
                "t": i * 7 + source.integers(0, 20, 50),
                "k": source.integers(0, keys, 50),
                "x": source.random(50),
            }
        )


CASES = [
    ("final", "all", sash.sliding(60, 10)),
    ("final", "changes", sash.sliding(60, 10)),
    ("live", "all", sash.sliding(60, 10)),
    ("final", "all", sash.tumbling(20, empty="zero", idle=60)),
]


@pytest.mark.parametrize(("mode", "emit", "window"), CASES)
@pytest.mark.parametrize("buffer", [0, 3000])
def test_the_rows_of_a_stream_in_memory(mode: Any, emit: Any, window: Any, buffer: int) -> None:
    q, store, steps = query(emit, window), MemoryStore(), 0
    memory = q.stream(lateness=5, mode=mode)
    stored = q.stream(lateness=5, mode=mode, store=store, name="s")
    for i, batch in enumerate(batches(3, 10)):
        assert stored._journal is not None
        stored._journal._buffer = buffer
        assert stored.push(batch).equals(memory.push(batch))
        assert isinstance(stored._state, TileState)
        steps += any(ask.step.among is not None for ask in stored._state._asks)
        stored._state._check()
        if i % 3 == 0:
            stored.sync()
        if i % 6 == 3:
            stored.release()
            stored = q.stream(lateness=5, mode=mode, store=store, name="s")
    assert stored.close().equals(memory.close())
    assert steps > 6


class Unsteady(MemoryStore):
    """A store that fails at some of its calls."""

    left = -1  # calls until it fails; it stays away for `away` calls
    away = 0

    def _call(self) -> None:
        self.left -= 1
        if -1 > self.left >= -1 - self.away:
            raise StoreError("it does not answer")

    def get_many(self, keys: Any) -> Any:
        self._call()
        return super().get_many(keys)

    def write(self, *given: Any, **named: Any) -> None:
        self._call()
        super().write(*given, **named)


@pytest.mark.parametrize("away", [1, 5])
@pytest.mark.parametrize("synced", [True, False])
def test_a_batch_that_fails_is_taken_back(away: int, synced: bool) -> None:
    """It can be pushed again, or the stream opened again, as of its last sync."""
    q, failures = query("changes"), 0
    for call in range(1, 40, 9):
        store = Unsteady()
        memory, stored = q.stream(lateness=5), q.stream(lateness=5, store=store, name="s")
        assert stored._journal is not None
        stored._journal._buffer = 500
        made = list(batches(4, 5))
        for batch in made[:3]:
            assert stored.push(batch).equals(memory.push(batch))
            if synced or batch is made[1]:
                stored.sync()
        before = dict(store.scan())
        store.left, store.away = call, away
        for _ in range(away + 2):
            try:
                rows = stored.push(made[3])
                break
            except StoreError:
                failures += 1
        store.left = -(10**9)
        assert rows.equals(memory.push(made[3]))
        assert isinstance(stored._state, TileState)
        stored._state._check()
        if call % 4 == 2:
            assert stored.push(made[4]).equals(memory.push(made[4]))
        stored.release()
        again = q.stream(lateness=5, store=store, name="s")
        kept = {key: data for key, data in store.scan() if key[:3] != b"rsu"}
        if synced:
            assert kept == before
        assert again.counts["rows"] == (150 if synced else 100)
    assert failures > 1
