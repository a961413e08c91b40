"""What is kept by key beside a forest, against plain Python: lanes of rows, notes of what is due,
keys by number; and the rows that wait."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sash.engine.waiting import Waiting
from sash.state.answers import by_key_and_time
from sash.state.due import NEVER, Due
from sash.state.key_numbers import KeyNumbers
from sash.state.lanes import Lanes, objects

pytestmark = pytest.mark.plain


def some(source: random.Random, most: int) -> Any:
    return np.array(sorted(source.sample(range(most), source.randrange(most))), dtype=np.int64)


@pytest.mark.parametrize("seed", range(5))
def test_lanes(seed: int) -> None:
    source = random.Random(seed)
    lanes = Lanes([np.zeros(0, np.int64), np.zeros((0, 2)), np.zeros(0, object)])
    model: dict[int, list[int]] = {}
    for _ in range(60):
        numbers = some(source, 12)
        source.shuffle(shuffled := numbers.tolist())
        numbers = np.array(shuffled, dtype=np.int64)
        counts = np.array([source.choice((0, 0, 1, 5)) for _ in shuffled], dtype=np.int64)
        items = [source.randrange(100) for _ in range(counts.sum())]
        pairs = np.array([[x, -x] for x in items], dtype=float).reshape(-1, 2)
        lanes.put(
            numbers, counts, [np.array(items, np.int64), pairs, objects([(x,) for x in items])]
        )
        rest = iter(items)
        for number, count in zip(shuffled, counts.tolist(), strict=True):
            model[number] = [next(rest) for _ in range(count)]
        if source.random() < 0.1:
            kept = some(source, 12)
            model = {new: model.get(old, []) for new, old in enumerate(kept.tolist())}
            lanes.renumber(kept)
        before, lanes = lanes, copy.deepcopy(lanes)
        before.put(
            np.arange(12), np.ones(12, np.int64), [np.ones(12), np.ones((12, 2)), np.ones(12)]
        )
        asked = some(source, 14)
        counts, (one, two, three) = lanes.get(asked)
        right = [model.get(n, []) for n in asked.tolist()]
        assert counts.tolist() == [len(r) for r in right]
        flat = [x for r in right for x in r]
        assert one.tolist() == two[:, 0].tolist() == [x for (x,) in three] == flat
        assert len(lanes) == sum(map(len, model.values()))
        assert len(lanes._columns[0]) <= 16 + 4 * 60, "dead rows are gone"


@pytest.mark.parametrize("seed", range(5))
def test_due(seed: int) -> None:
    """A key is taken not later than it is due; how many notes there are goes by the keys."""
    source = random.Random(seed)
    due, model, now = Due(), dict[int, int](), 0
    for _ in range(300):
        numbers = some(source, 20)
        times = np.array([source.choice((now + source.randrange(30), NEVER)) for _ in numbers])
        due.note(numbers, times.astype(np.int64))
        for number, time in zip(numbers.tolist(), times.tolist(), strict=True):
            model[number] = min(time, model.get(number, NEVER))
        now += source.randrange(10)
        right = {number for number, time in model.items() if time < now}
        assert due.take(now).tolist() == sorted(right)
        model = {number: time for number, time in model.items() if number not in right}
        assert len(due) <= 3 * 32
        if source.random() < 0.1:
            kept = some(source, 20)
            model = {i: model.get(old, NEVER) for i, old in enumerate(kept.tolist())}
            due.renumber(kept)


def test_keys_by_number() -> None:
    source, keys = random.Random(1), KeyNumbers([pa.string(), pa.int64()])
    model: dict[int, tuple[str | None, int]] = {}
    for _ in range(60):
        names = [source.choice((None, "a", "b")) for _ in range(3)]
        pairs = list({(name, source.randrange(40)) for name in names})
        columns = [pa.array([a for a, _ in pairs], pa.string()), pa.array([b for _, b in pairs])]
        found = keys.find(columns, len(pairs))
        numbers = keys.add(columns, len(pairs))
        assert all(old in (-1, new) for old, new in zip(found, numbers, strict=True))
        model |= dict(zip(numbers.tolist(), pairs, strict=True))
        asked = np.array(source.choices(list(model), k=5))
        taken = list(zip(*(column.to_pylist() for column in keys.take(asked)), strict=True))
        assert taken == [model[n] for n in asked.tolist()]
        gone = source.choice(list(model))
        keys.remove(np.array([gone]))
        del model[gone]
        kept = keys.compact()
        if kept is not None:
            model = {new: model[old] for new, old in enumerate(kept.tolist())}


@pytest.mark.parametrize("seed", range(5))
def test_rows_that_wait(seed: int) -> None:
    source = random.Random(seed)
    waiting = Waiting(pa.schema({"t": pa.int64(), "n": pa.int64()}), "t")
    model: list[tuple[int, int]] = []
    arrived = now = 0
    for _ in range(80):
        times = [now + source.randrange(20) for _ in range(source.choice((0, 1, 5)))]
        numbers = list(range(arrived, arrived + len(times)))
        arrived += len(times)
        model += zip(times, numbers, strict=True)
        now += source.choice((0, 1, 1, 30))
        given = pa.table({"t": pa.array(times, pa.int64()), "n": pa.array(numbers, pa.int64())})
        mark = None if source.random() < 0.1 else now
        rows, order = waiting.pass_by(given, np.array(times, np.int64), mark)
        right = [(t, n) for t, n in model if mark is not None and t < mark]
        model = [pair for pair in model if pair not in right]
        assert list(zip(rows["t"].to_pylist(), rows["n"].to_pylist(), strict=True)) == right
        assert order.tolist() == [n for _, n in right]
        assert len(waiting) == len(model)
        low, high = now + source.randrange(-5, 15), now + source.randrange(-5, 25)
        held = [(t, n) for t, n in model if low <= t <= high]
        assert waiting.between(low, high)[1].tolist() == [n for _, n in held]
        assert len(waiting._parts) <= 8
        if source.random() < 0.3:
            again = Waiting(pa.schema({"t": pa.int64(), "n": pa.int64()}), "t")
            again.load(copy.deepcopy(waiting).dump())
            waiting = again


def test_rows_in_order_of_key_and_time_keep_what_they_lack() -> None:
    keys, times = [pa.array(["b", "a", "b", "a"])], np.array([1, 4, 0, 3])
    values = {"x": pa.array([10, 20, 30, 40])}
    order, ordered, made, failed = by_key_and_time(keys, times, values, {0: "why"})
    place = made["x"].to_pylist().index(10)
    assert failed == {place: "why"}
    assert place != 0
    assert ordered[0].to_pylist() == ["a", "a", "b", "b"]  # keys in order of their codes
    assert times[order].tolist() == [3, 4, 0, 1]
