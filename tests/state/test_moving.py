"""Variances over the last rows: a kernel of their own has the general answers to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash.kernels.columns import Table, read
from sash.kernels.program import jit_enabled
from sash.state import frame_answers, moving
from sash.state.frames import LastRows
from sash.tables import threads

SELECT = {
    "stddev": sash.stddev("x"),
    "variance": sash.variance("x"),
    "population_stddev": sash.population_stddev("x"),
    "population_variance": sash.population_variance("x"),
}
ROWS = 3_000
#: Sizes, at which blocks begin and end in different places, up to one that no frame has.
SIZES = [8, 9, 100, 1_000, 2_999, 3_000, 3_001]


def values(kind: str) -> pa.Array:
    source = np.random.default_rng(7)
    made = source.standard_normal(ROWS) * 10.0 ** source.integers(-3, 4, ROWS)
    if kind == "far":
        return pa.array(made + 1e9)
    if kind == "huge":  # squares that overflow
        made[::200] = 1e200
    if kind == "strange":
        made[100], made[500], made[1500], made[2500] = -0.0, np.nan, np.inf, -np.inf
    if kind == "whole":
        return pa.array(source.integers(-(2**62), 2**62, ROWS))
    if kind == "alike":
        made[:] = 0.1
    return pa.array(made)


def run(kind: str, size: int, keys: int) -> pa.Table:
    table = pa.table(
        {
            "t": pa.array(np.arange(ROWS)).cast(pa.timestamp("us")),
            "k": numbers(keys),
            "x": values(kind),
        }
    )
    by = ["k"] if keys > 1 else []
    return sash.Query(time="t", by=by, window=sash.rows(size), select=SELECT).run(table)


def numbers(keys: int) -> Any:
    """A key for each row, some of which have many."""
    return np.random.default_rng(3).integers(0, keys, ROWS) ** 2 // keys


def by_general_kernel(monkeypatch: pytest.MonkeyPatch, *given: Any) -> list[Any]:
    with monkeypatch.context() as patch:
        patch.setattr(frame_answers, "moving_of", lambda *given: None)
        return bits(run(*given))


def bits(table: pa.Table) -> list[Any]:
    """Answers as bits, and where there are any."""
    made = []
    for name in SELECT:
        column = table[name].combine_chunks()
        made.append(np.asarray(column.is_valid()).tolist())
        plain = np.asarray(column.fill_null(0.0))
        made.append(np.where(np.isnan(plain), np.nan, plain).view(np.int64).tolist())
    return made


@pytest.mark.thin(2)
@pytest.mark.parametrize("keys", [1, 40])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["plain", "far", "huge", "strange", "whole", "alike"])
def test_the_same_bits(monkeypatch: pytest.MonkeyPatch, kind: str, size: int, keys: int) -> None:
    found = [(np.empty(ROWS), np.ones(ROWS, np.uint8)) for _ in SELECT]
    codes = numbers(keys)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(keys + 1))
    given: Table = read(values(kind).take(pa.array(order)), 1)
    moving.Moving(LastRows(bounds, size), tuple(SELECT)).answer(given, found, 0)
    back = np.argsort(order)
    made = [pa.array(data[back], mask=valid[back] == 0) for data, valid in found]
    assert bits(pa.table(made, list(SELECT))) == by_general_kernel(monkeypatch, kind, size, keys)


@pytest.mark.skipif(not jit_enabled(), reason="outputs have no types before functions are compiled")
@pytest.mark.parametrize("keys", [1, 40])
@pytest.mark.parametrize("size", SIZES)
def test_queries_in_pieces(monkeypatch: pytest.MonkeyPatch, size: int, keys: int) -> None:
    monkeypatch.setattr(threads, "PIECE", 2**8)
    used = []
    plain = moving.Moving.answer

    def noted(self: Any, *given: Any) -> None:
        used.append(len(self.frames))
        plain(self, *given)

    monkeypatch.setattr(moving.Moving, "answer", noted)
    found = bits(run("plain", size, keys))
    assert sum(used) == ROWS
    assert len(used) > 1 or (keys == 1 and size > 100)
    assert found == by_general_kernel(monkeypatch, "plain", size, keys)
    assert sum(used) == ROWS


@pytest.mark.skipif(not jit_enabled(), reason="outputs have no types before functions are compiled")
def test_what_it_leaves_to_the_general_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames of few rows, nulls, conditions, other aggregates beside them, and other windows."""
    import pyarrow.compute as pc

    times = pa.array(np.arange(100)).cast(pa.timestamp("us"))
    table = pa.table({"t": times, "x": np.arange(100.0), "n": [None, *range(99)]})
    spread = sash.stddev("x")
    cases: list[tuple[Any, Any]] = [
        (sash.rows(moving.LEAST - 1), {"y": spread}),
        (sash.rows(moving.MOST + 1), {"y": spread}),
        (sash.rows(10), {"y": sash.stddev("n")}),
        (sash.rows(10), {"y": sash.stddev("x", where=pc.field("x") > 3)}),
        (sash.rows(10), {"y": spread, "z": sash.max("x")}),
        (sash.rows(10, every=2), {"y": spread}),
        (sash.trailing("10 microseconds"), {"y": spread}),
    ]
    found: list[Any] = []

    def noted(*given: Any) -> Any:
        found.append(moving.moving_of(*given))
        return found[-1]

    monkeypatch.setattr(frame_answers, "moving_of", noted)
    for window, select in cases:
        sash.Query(time="t", window=window, select=select).run(table)
    assert found == [None] * len(cases)
    sash.Query(time="t", window=sash.rows(10), select={"y": spread}).run(table)
    assert found[-1] is not None
