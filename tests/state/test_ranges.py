"""Aggregates that are rows of the table themselves, against brute force."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash.query.plan import make_plan
from sash.state import ranges
from sash.state.ranges import values_of_ranges, window_ranges
from sash.testing.queries import answers, differences

RANGED: dict[str, Any] = {
    "all": sash.collect("v"),
    "words": sash.collect("s"),
    "head": sash.first_n("v", 2),
    "tail": sash.last_n("s", 3),
    "before": sash.nth_youngest("v", 2),
}


def events(count: int, far: int = 1) -> pa.Table:
    source = random.Random(count)
    pick = source.choice
    return pa.table(
        {
            "t": pa.array([far * source.randint(-40, 40) for _ in range(count)], pa.int64()),
            "k": pa.array([pick(["p", "q", None]) for _ in range(count)], pa.string()),
            "v": pa.array([pick([1, 2, None]) for _ in range(count)], pa.int64()),
            "s": pa.array([pick(["b", "a", None]) for _ in range(count)], pa.string()),
        }
    )


@pytest.mark.parametrize("select", [RANGED, RANGED | {"n": sash.count(), "m": sash.last("v")}])
@pytest.mark.parametrize("emit", ["all", "changes"])
def test_answers_are_those_of_brute_force(select: dict[str, Any], emit: Any) -> None:
    for count in (0, 1, 60):
        table = events(count)
        for by, window in (([], sash.sliding(9, 4)), (["k"], sash.cumulate(12, 4))):
            q = sash.Query(time="t", by=by, window=window, select=select, emit=emit)
            got = q.run(table)
            assert not differences(q, answers(q, table), got)
            assert got.column_names == [*by, "window_start", "window_end", *select]
            plan = make_plan(q, table.schema, whole=True)
            assert {chosen.name for chosen in plan.ranged} == RANGED.keys()
            assert all(group.operator.shape != "object" for group in plan.groups)


def test_nanoseconds_are_kept() -> None:
    at = pa.array([1, 1001, 2001], pa.timestamp("ns"))
    table = pa.table({"t": at, "v": at})
    q = sash.Query(time="t", window=sash.tumbling(10), select={"all": sash.collect("v")})
    assert q.run(table)["all"].to_pylist()[0] == at.to_pylist()


COLUMNS = {
    "integers": pa.array([1, None, 3, 4, 5, 6], pa.int32()),
    "bools": pa.array([True, None, False, False, True, True]),
    "texts": pa.array(["a", None, "", "dd", "é", "f"]),
    "large texts": pa.array(["a", None, "", "dd", "é", "f"], pa.large_string()),
    "bytes": pa.array([b"a", None, b"", b"dd", b"e", b"f"]),
    "decimals": pa.array([1, None, 3, 4, 5, 6]).cast(pa.decimal128(21, 2)),
    "lists": pa.array([[1], None, [], [2, None], [3], [4]]),
    "structs": pa.array([{"x": 1}, None, {"x": None}, {"x": 2}, {"x": 3}, {"x": 4}]),
    "nothing": pa.nulls(6),
    "times": pa.array([1, None, 3, 4, 5, 6], pa.timestamp("ns", "UTC")),
}


@pytest.mark.plain
@pytest.mark.parametrize("values", COLUMNS.values(), ids=COLUMNS.keys())
def test_ranges_that_are_copied_whole(values: pa.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long ranges have the values, type and nulls that an index for each value gives."""
    first, lengths = np.array([2, 0, 1, 4, 1, 5]), np.array([3, 5, 0, 1, 4, 0])
    for column in (values, pa.concat_arrays([values, values]).slice(3, 6)):
        made = {}
        for long in (0, 1000):
            monkeypatch.setattr(ranges, "_LONG", long)
            monkeypatch.setattr(ranges, "_LONG_OTHERS", long)
            made[long] = values_of_ranges(column, first, lengths)
            made[long].validate(full=True)
        assert made[0].equals(made[1000])
        assert made[0].type == values.type
        assert len(made[0]) == lengths.sum()


def test_times_that_are_far_apart() -> None:
    """Places of all keys and times do not fit into one number."""
    table = events(60, far=2**52)
    q = sash.Query(time="t", by=["k", "v"], window=sash.tumbling(2**53), select=RANGED)
    assert not differences(q, answers(q, table), q.run(table))
    times, bounds = table["t"].to_numpy()[:1], np.array([0, 1])
    some = np.array([0]), times, times + 1
    assert [r.tolist() for r in window_ranges(times, bounds, *some)] == [[0], [1]]


def test_more_values_than_a_column_of_lists_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_MOST", 20)
    q = sash.Query(time="t", window=sash.sliding(20, 1), select={"all": sash.collect("v")})
    with pytest.raises(OverflowError, match=r"all: .* values in all lists .* fewer windows"):
        q.run(events(60))
