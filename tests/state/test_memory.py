"""A state in memory: what it keeps between steps, as bytes and under new numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash.query.plan import make_plan
from sash.state.contract import AGAIN, EARLY, NEW, Emitted, Step, StepFailed
from sash.state.memory import ForestState
from sash.windows import Aligned, cumulate, sliding

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.int64(), "x": pa.int64()})
SELECT: dict[str, Any] = {"n": sash.count(), "sum": sash.sum("x")}
OBJECTS: dict[str, Any] = SELECT | {"all": sash.collect("x")}


def state(window: Aligned, select: Any = SELECT, **more: Any) -> ForestState:
    q = sash.Query(time="t", by=["k"], window=window, select=select, **more)
    return ForestState(make_plan(q, SCHEMA))


def step(s: ForestState, rows: list[tuple[int, int, int]], *numbers: int, **how: Any) -> Emitted:
    """A step with rows of time, key and value."""
    slices = None
    if rows:
        columns = zip(*rows, strict=True)
        table = pa.table(dict(zip("tkx", map(pa.array, columns), strict=True)), SCHEMA)
        slices = s.cut(table, np.array([t for t, _, _ in rows]))
    made = s.step(slices, Step(*numbers, **how))
    s.commit()
    s._check()
    return made


def told(e: Emitted) -> list[tuple[Any, ...]]:
    """Rows of key, window, reason and values."""
    keys = e.keys[0].take(pa.array(e.codes)).to_pylist()
    values = [v.to_pylist() for v in e.values.values()]
    return list(zip(keys, e.windows.tolist(), e.reasons.tolist(), *values, strict=True))


LOW = -(2**40)


def test_why_windows_are_emitted() -> None:
    #   cumulate(6, 2)   window 0 ends at 2, 1 at 4, 2 at 6, 3 at 8
    s = state(cumulate(6, 2))
    first = step(s, [(1, 7, 10), (3, 5, 20)], LOW, LOW, 1, LOW, again=True, early=True)
    assert told(first) == [(5, 1, EARLY, 1, 20), (7, 0, NEW, 1, 10), (7, 1, EARLY, 1, 10)]
    # stream time passes 4; a row into window 0 of a key that had nothing there
    more = step(s, [(0, 5, 1), (1, 7, 2)], LOW, 1, 2, LOW, again=True)
    assert told(more) == [
        (5, 0, NEW, 1, 1),
        (5, 1, NEW, 2, 21),
        (7, 0, AGAIN, 2, 12),
        (7, 1, NEW, 2, 12),
    ]
    assert s.size()["slices"] == 3
    # windows 0 and 1 close, and keep their slices for window 2
    assert told(step(s, [], LOW, 2, 2, 2, again=True)) == []
    assert s.size()["slices"] == 3
    closed = step(s, [], 2, 2, 9, 9)
    assert told(closed) == [(5, 2, NEW, 2, 21), (7, 2, NEW, 2, 12)]
    assert s.size() == {"keys": 0, "slices": 0, "bytes": s.size()["bytes"]}


def test_covered_windows_are_not_emitted_again() -> None:
    s = state(sliding(10, 2), emit="changes")
    made = step(s, [(1, 7, 1)], LOW, LOW, -2, -2, changes=True)
    assert (made.windows.tolist(), list(made.covered)) == ([-4], [0])  # type: ignore[arg-type]
    assert told(step(s, [], -2, -2, 0, 0, changes=True)) == []
    # a row comes into window 0, of which window -1 is like the one before
    made = step(s, [(9, 7, 1)], 0, 0, 1, 1, changes=True)
    assert (made.windows.tolist(), list(made.covered)) == ([0], [0])  # type: ignore[arg-type]
    assert len(s._grove.keys) == 1


def test_remembered_values_leave_with_the_window_that_follows() -> None:
    s = state(sliding(10, 2), emit="changes")
    made = step(s, [(1, 7, 1), (1, 9, 3)], LOW, LOW, -2, -2, changes=True)
    codes = np.unique(made.codes)
    assert not s.recall(made, codes).there.any()
    covered = np.array([-1, 0])
    values = {"n": pa.array([1, 1]), "sum": pa.array([1, 3])}
    s.remember(made, codes, covered, values)
    found = s.recall(made, codes[::-1])
    assert (found.there.tolist(), found.covered.tolist()) == ([True, True], [0, -1])
    assert found.values["sum"].to_pylist() == [3, 1]
    s.remember(made, codes[1:], covered[1:], {n: v[:1] for n, v in values.items()})
    assert s.recall(made, codes).values["sum"].to_pylist() == [1, 1]
    step(s, [], -2, -2, 1, 1, changes=True)
    made = step(s, [], 1, 1, 1, 1, changes=True)
    found = s.recall(made, codes)
    assert (found.there.tolist(), found.covered[1]) == ([False, True], 0)
    assert found.values["sum"].to_pylist() == [1]


def test_revisions_count_on_until_the_window_closes() -> None:
    s = state(sliding(4, 2))
    made = step(s, [(0, 1, 1), (0, 2, 2)], LOW, LOW, 1, LOW, again=True)
    assert told(made) == [(k, n, NEW, 1, k) for k in (1, 2) for n in (-1, 0)]
    rows = np.array([0, 3])
    assert s.revise(made, rows, np.array([-1, 0])).tolist() == [0, 1]
    assert s.revise(made, rows, np.array([-1, 0])).tolist() == [1, 2]
    step(s, [], LOW, 1, 1, 0, again=True)  # window -1 closes
    made = step(s, [(0, 1, 1), (0, 2, 2)], 0, 1, 1, 0, again=True)
    assert told(made) == [(1, 0, AGAIN, 2, 2), (2, 0, AGAIN, 2, 4)]
    assert s.revise(made, np.arange(2), np.zeros(2, dtype=np.int64)).tolist() == [1, 3]


@pytest.mark.parametrize("select", [SELECT, OBJECTS], ids=["typed", "objects"])
def test_numbers_are_given_anew_when_keys_leave(select: Any) -> None:
    s = state(sliding(4, 2), select, emit="changes")
    for at in range(40):
        t, low = 4 * at, 2 * at - 3
        rows = [(t, 100 + at, 1), (t + 1, 5, at)]
        made = step(s, rows, low, low, low + 2, low + 2, changes=True)
        codes, first = np.unique(made.codes, return_index=True)
        old = s.recall(made, codes)
        names = made.keys[0].take(pa.array(codes)).to_pylist()
        values = {n: v.take(pa.array(first)) for n, v in made.values.items()}
        if at > 1:
            assert dict(zip(names, old.there.tolist(), strict=True))[5]
            assert made.covered is not None
        s.remember(made, codes, made.covered[first], values)  # type: ignore[index]
        assert s._grove.keys.most < 40
    assert s.size()["keys"] <= 5
    assert s.ask((5,), 4 * 39, 4 * 40)["n"] == 1
    assert s.ask((5,), 4 * 39 + 2, 4 * 40)["n"] == s.ask((6,), 0, 200)["n"] == 0


@pytest.mark.parametrize("select", [SELECT, OBJECTS], ids=["typed", "objects"])
@pytest.mark.parametrize("mode", ["final", "live", "changes"])
def test_a_state_goes_on_from_its_bytes(select: Any, mode: str) -> None:
    window = cumulate(12, 3, offset=-2)
    emit = "changes" if mode == "changes" else "all"
    source = np.random.default_rng(3)
    one = other = state(window, select, emit=emit)
    low = keep = LOW
    for at in range(0, 120, 5):
        rows = [(int(at + d), int(k), at) for d, k in source.integers(-6, 6, (4, 2))]
        due, closed = window.first(at), window.first(at - 9)
        numbers = (keep, low, due, closed) if mode == "live" else (keep, keep, closed, closed)
        how = {"again": mode == "live", "changes": mode == "changes"}
        fresh = state(window, select, emit=emit)
        fresh.load(other.dump())
        fresh._check()
        assert fresh.size()["slices"] == one.size()["slices"]
        one_made, made = step(one, rows, *numbers, **how), step(fresh, rows, *numbers, **how)
        assert told(made) == told(one_made)
        for s, e in ((one, one_made), (fresh, made)):
            codes, first = np.unique(e.codes, return_index=True)
            if mode == "changes":
                assert e.covered is not None
                values = {n: v.take(pa.array(first)) for n, v in e.values.items()}
                s.remember(e, codes, e.covered[first], values)
            else:
                s.revise(e, np.arange(len(e.codes)), np.full(len(e.codes), -1))
        assert fresh._before._revisions == one._before._revisions
        assert fresh._before._last.values == one._before._last.values
        low, keep, other = due, closed, fresh
    with pytest.raises(ValueError, match="these bytes hold partials of"):
        state(window, {"n": sash.max("x")}).load(other.dump())


def _combine(a: int, b: int) -> int:
    if a + b > 100:
        raise ValueError("too much")
    return a + b


@pytest.mark.parametrize("compiled", [True, False])
def test_a_combine_that_raises_is_named_and_ends_the_state(compiled: bool) -> None:
    few = sash.operator(
        identity=0, lift=lambda x: x, combine=_combine, commutative=True, compile=compiled
    )
    select = {"few": sash.aggregate(few, "x", returns=pa.int64())}
    s = state(sliding(4, 2), select)
    step(s, [(0, 1, 60), (0, 2, 60)], LOW, LOW, -5, -5)
    with pytest.raises(StepFailed, match="combine of few raised ValueError: too much") as raised:
        step(s, [(0, 1, 1), (1, 2, 60)], -5, -5, -5, -5)
    failed = raised.value
    assert (failed.keys[0][failed.code].as_py(), failed.window, failed.names) == (2, -1, ("few",))
    s.abandon()
    with pytest.raises(RuntimeError, match="not sound any more"):
        step(s, [(0, 1, 1)], -5, -5, -5, -5)
    # all three together can be combined, and the two youngest not
    for again in (False, True):
        s = state(sliding(4, 2), select)
        step(s, [(-2, 1, -60), (0, 1, 60), (2, 1, 60)], LOW, LOW, -5, LOW)
        with pytest.raises(StepFailed, match="too much") as raised:
            step(s, [], LOW, -5, 5, LOW if again else 5, again=again)
        assert raised.value.window == 0


def test_a_batch_that_was_not_begun_can_be_abandoned() -> None:
    s = state(sliding(4, 2))
    step(s, [(0, 1, 60)], LOW, LOW, -5, -5)
    s.abandon()
    assert told(step(s, [], -5, -5, 0, 0)) == [(1, -1, NEW, 1, 60)]
