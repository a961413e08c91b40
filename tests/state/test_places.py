"""Slices by place: the rows are those of the way that puts events in order."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import sash
from sash.engine import parts
from sash.query.plan import make_plan
from sash.state import places
from sash.state.answers import columns_of
from sash.state.places import slices_by_place
from sash.tables import threads
from sash.tables.rows import read_rows
from sash.testing.queries import answers, differences

WINDOWS = [
    sash.tumbling(10, offset=3),
    sash.sliding(20, 5),
    sash.sliding(7, 3, offset=-1),
    sash.cumulate(12, 4),
]
SELECT: dict[str, Any] = {
    "n": sash.count(),
    "known": sash.count("i"),
    "total": sash.sum("i"),
    "spread": sash.stddev("x"),
    "most": sash.max("x"),
    "least": sash.min("s"),
}


def events(count: int, span: int = 60, seed: int = 3) -> pa.Table:
    """Rows in random order, before and after 1970."""
    source = random.Random(seed)
    pick = source.choice
    return pa.table(
        {
            "t": pa.array([source.randint(-span, span) for _ in range(count)], pa.int64()),
            "k": pa.array([pick(["p", "q", None]) for _ in range(count)], pa.string()),
            "x": pa.array([pick([1.5, -2.0, 0.25, None]) for _ in range(count)], pa.float64()),
            "i": pa.array([pick([1, -7, 40, None]) for _ in range(count)], pa.int64()),
            "s": pa.array([pick(["b", "a", "", None]) for _ in range(count)], pa.string()),
        }
    )


def placed(q: sash.Query, table: pa.Table) -> bool:
    plan = make_plan(q, table.schema, whole=True)
    columns = [columns_of(group, table)[0] for group in plan.groups]
    return slices_by_place(plan, columns, read_rows(plan, table)) is not None


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("emit", ["all", "changes"])
def test_answers_are_those_of_brute_force(window: sash.Window, emit: Any) -> None:
    for by, count in (([], 1), (["k"], 90), (["k", "i"], 90)):
        table = events(count)
        q = sash.Query(time="t", by=by, window=window, select=SELECT, emit=emit)
        assert placed(q, table)
        assert not differences(q, answers(q, table), q.run(table))


def test_both_ways_have_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    table = events(500, span=10_000)
    q = sash.Query(time="t", by=["k"], window=sash.sliding(70, 20), select=SELECT)
    by_place = q.run(table)
    monkeypatch.setattr(parts, "slices_by_place", lambda *_, **__: None)
    in_order = q.run(table)
    exact = [name for name in by_place.column_names if name != "spread"]
    assert by_place.select(exact).equals(in_order.select(exact))


@pytest.mark.plain
@pytest.mark.parametrize("block", [1, 7, 64])
def test_runs_of_a_part_are_cut_into_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts have a run of rows from each piece; blocks end within runs and hold several."""
    monkeypatch.setattr(threads, "PIECE", 16)
    monkeypatch.setattr(places, "BLOCK", block)
    table = events(300, span=200)
    numbers = pa.array([i * 7 % 40 for i in range(300)])
    table = table.set_column(1, "k", numbers)
    seen = []
    real = places._blocks

    def noted(runs: Any) -> Any:
        made = list(real(runs))
        seen.append((tuple(runs), made))
        return made

    monkeypatch.setattr(places, "_blocks", noted)
    q = sash.Query(time="t", by=["k"], window=sash.tumbling(400, offset=200), select=SELECT)
    assert not differences(q, answers(q, table), q.run(table))
    assert any(len(runs) > 1 for runs, _ in seen)
    for runs, made in seen:
        assert [r for a, b in runs for r in range(a, b)] == [
            r for some in made for a, b in some for r in range(a, b)
        ]
        lengths = [sum(b - a for a, b in some) for some in made]
        assert all(n == block for n in lengths[:-1])
        assert 0 < lengths[-1] <= block


def test_order_and_room_decide() -> None:
    table = events(90)
    window = sash.sliding(20, 5)
    assert not placed(sash.Query(time="t", window=window, select={"a": sash.last("x")}), table)
    assert not placed(sash.Query(time="t", window=window, select={"a": sash.collect("x")}), table)
    many = table.set_column(0, "t", pa.array([i * 10**6 for i in range(90)]))
    assert not placed(sash.Query(time="t", window=window, select={"n": sash.count()}), many)
    empty = table.slice(0, 0)
    q = sash.Query(time="t", window=window, select=SELECT)
    assert not placed(q, empty)
    assert q.run(empty).num_rows == 0


def test_an_answer_that_does_not_exist_names_its_window_and_key() -> None:
    table = pa.table({"t": [31, 8, 30], "k": ["b", "a", "b"], "x": [2**62, 1, 2**62]})
    q = sash.Query(time="t", by=["k"], window=sash.tumbling(10), select={"total": sash.sum("x")})
    assert placed(q, table)
    with pytest.raises(OverflowError, match=r"leaves int64 in the window from .*30.* of k = b"):
        q.run(table)


def test_an_error_of_ones_own_operator_comes_out_as_it_is() -> None:
    def combine(a: int, b: int) -> int:
        if a + b > 100:
            raise ValueError("too much")
        return a + b

    own = sash.operator(identity=0, lift=lambda x: x, combine=combine, commutative=True)
    for times in ([5, 1, 2], [15, 5, 1]):  # within a slice, and of two slices
        table = pa.table({"t": times, "x": [60, 60, 60]})
        q = sash.Query(
            time="t", window=sash.sliding(20, 10), select={"a": sash.aggregate(own, "x")}
        )
        assert placed(q, table.slice(0, 1))
        with pytest.raises(ValueError, match="too much"):
            q.run(table)
