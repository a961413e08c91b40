"""The slices of all keys in a store, against brute force."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from model import ModelState, name_of

import sash
from sash.kernels.program import jit_enabled
from sash.query.plan import make_plan
from sash.state import checking, emission, layout, part_index, saving, tile, visit
from sash.state.contract import AGAIN, Emitted, Step
from sash.state.tiles import TileState
from sash.stores import MemoryStore
from sash.testing.rows import equal, rows_of
from thinning import FULL

WINDOWS = {
    "tumbling": sash.tumbling(5),
    "panes": sash.sliding(12, 3),
    "pairs": sash.sliding(7, 3, offset=-1),
    "long": sash.sliding(400, 1),
    "cumulate": sash.cumulate(60, 3),
}
SELECTS: dict[str, dict[str, Any]] = {
    "commutative": {"n": sash.count(), "top": sash.max("x"), "sum": sash.sum("i")},
    "ordered": {"n": sash.count(), "last": sash.last("x"), "all": sash.collect("s")},
}


#: The size of a page, the bits that a node of the index looks at, and those of a tile's units: so
#: small that parts split, and get tiles, all the time; and real ones.
SIZES = ((150, 2, 2), (150, 3, 6), (500, 4, 1), (layout.PAGE, part_index.NODE_BITS, tile.BITS))


def set_sizes(monkeypatch: pytest.MonkeyPatch, page: int, node_bits: int, tile_bits: int) -> None:
    monkeypatch.setattr(layout, "PAGE", page)
    monkeypatch.setattr(part_index, "NODE_BITS", node_bits)
    for module in (checking, emission, layout, saving, visit):
        monkeypatch.setattr(module, "BITS", tile_bits)


@dataclass
class Batch:
    """Rows, and what a lifecycle would ask for."""

    table: pa.Table
    step: Step


def batches(window: Any, source: random.Random, *, live: bool, changes: bool) -> Iterator[Batch]:
    """A stream of batches out of order, with ties, negative times, keys that come and go, and
    a watermark that stands still and jumps."""
    clock, watermark, seen = source.choice([-200, 0, 1000]), -(2**40), -(2**40)
    opened = due = window.first(watermark)
    held = window.last(0) - window.first(0) + 1  # the windows that an event is in
    many = 300 if held < 10 else 20
    every = [None, "", "é", *(f"key {i}" for i in range(source.choice([3, many])))]
    disorder = source.choice([0, 3, 30, 200])
    turns = 25 if held < 100 else 17
    for turn in range(turns):
        keys = source.sample(every, min(len(every), source.choice([1, 4, 50, 300])))
        rows = []
        for _ in range(source.choice([0, 1, 10, 100 if held < 100 else 10])):
            clock += source.choice([0, 0, 0, 1, 1, 2])
            at = clock - source.randint(0, disorder)
            if window.last(at) >= opened:
                tie = source.choice([None, 0, 1, 1, 2])
                x = source.choice([None, -1.5, 0.0, 2.5, 7.0])
                i, s = source.choice([None, -7, 0, 3, 2**40]), source.choice(["", "a", "bc"])
                rows.append((at, source.choice(keys), tie, x, i, s))
        if turn % 8 == 7:
            clock += source.choice([0, 50, 1000])
        seen = max([seen, *(row[0] for row in rows)])
        watermark = max(watermark, seen - source.choice([0, 5, 40, 150, 150]))
        if turn == turns - 1:
            watermark = clock + 10_000
        closed = max(opened, window.first(watermark))
        until = max(due, closed, window.first(seen) if live else closed)
        schema = {"t": pa.int64(), "k": pa.string(), "o": pa.int64(), "x": pa.float64()}
        schema |= {"i": pa.int64(), "s": pa.string()}
        columns = list(zip(*rows)) or [()] * 6
        table = pa.table({n: pa.array(c, t) for (n, t), c in zip(schema.items(), columns)})
        yield Batch(table, Step(opened, due, until, closed, again=live, changes=changes))
        opened, due = closed, until


def rows_in(emitted: Emitted) -> list[tuple[Any, ...]]:
    """What was emitted: key, window, reason, values."""
    values = rows_of(pa.table({**emitted.values, "there": pa.nulls(len(emitted.codes))}))
    return [
        (name_of(emitted.keys, code), window, reason, {n: v[n] for n in emitted.values})
        for code, window, reason, v in zip(
            emitted.codes.tolist(),
            emitted.windows.tolist(),
            emitted.reasons.tolist(),
            values,
            strict=True,
        )
    ]


def spread(emitted: Emitted) -> list[tuple[Any, ...]]:
    """The rows that were emitted where only changes are, and those that they cover."""
    assert emitted.covered is not None
    made = []
    for (key, window, reason, values), last in zip(rows_in(emitted), emitted.covered, strict=True):
        assert last >= window
        made += [(key, n, reason, values) for n in range(window, int(last) + 1)]
    return made


def assert_same(got: list[tuple[Any, ...]], right: list[tuple[Any, ...]]) -> None:
    assert [row[:3] for row in got] == [row[:3] for row in right]
    for mine, other in zip(got, right, strict=True):
        assert equal(mine[3], other[3], 1e-9), (mine, other)


MODES = ("final", "changes", "live")
#: Each with one of the sizes, by turns, so that each size meets every window, select and mode.
#: Sizes mean nothing to the kernels: compiled, the real ones do, over each pair of window, select
#: and mode.
CASES = [
    (window, select, mode, seed)
    for i, window in enumerate(WINDOWS)
    for j, select in enumerate(SELECTS)
    for k, mode in enumerate(MODES)
    for seed in ([3] if jit_enabled() else range(4))
    if FULL or (i + j + k + seed) % (2 if jit_enabled() else 4) == 1
]


@pytest.mark.parametrize(("window", "select", "mode", "seed"), CASES)
def test_like_brute_force(
    window: str, select: str, mode: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_sizes(monkeypatch, *SIZES[seed])
    source = random.Random(f"{window} {select} {mode} {seed}")
    query = sash.Query(
        time="t",
        by=["k"],
        window=WINDOWS[window],
        select=SELECTS[select],
        tie="o" if select == "ordered" and seed else None,
        emit="changes" if mode == "changes" else "all",
    )
    store = MemoryStore()
    state: TileState | None = None
    for batch in batches(query.window, source, live=mode == "live", changes=mode == "changes"):
        if state is None:
            plan = make_plan(query, batch.table.schema)
            state, model = TileState(plan, store), ModelState(plan)
        times = batch.table["t"].to_numpy()
        cut = [s.cut(batch.table, times) if len(times) else None for s in (state, model)]
        got, right = state.step(cut[0], batch.step), model.step(cut[1], batch.step)
        assert_same(spread(got) if mode == "changes" else rows_in(got), rows_in(right))
        if mode == "live":
            again = np.flatnonzero(got.reasons == AGAIN)
            last = np.array([source.choice([0, 0, 3]) for _ in again], dtype=np.int64)
            assert (
                state.revise(got, again, last).tolist() == model.revise(right, again, last).tolist()
            )
        if mode == "changes":
            check_memory(source, state, got, model, right)
        state.commit()
        state._check()
    assert state is not None
    assert not list(store.scan())


def check_memory(
    source: random.Random, state: TileState, got: Emitted, model: ModelState, right: Emitted
) -> None:
    """Recall what is remembered of some keys, and remember their last windows."""
    last: dict[int, int] = {int(code): row for row, code in enumerate(right.codes)}
    chosen = [code for code in last if source.random() < 0.7]
    names = [name_of(right.keys, code) for code in chosen]
    mine = {name_of(got.keys, i): i for i in set(got.codes.tolist())}
    codes = np.array([mine[name] for name in names], dtype=np.int64)
    a, b = state.recall(got, codes), model.recall(right, np.array(chosen, dtype=np.int64))
    assert a.there.tolist() == b.there.tolist()
    assert a.covered[a.there].tolist() == b.covered[b.there].tolist()
    for name in b.values:
        assert a.values[name].to_pylist() == b.values[name].to_pylist()
    rows = [last[code] for code in chosen]
    covered = right.windows[rows]
    values = {n: v.take(pa.array(rows, pa.int64())) for n, v in right.values.items()}
    state.remember(got, codes, covered, values)
    model.remember(right, np.array(chosen, dtype=np.int64), covered, values)
