"""Schedules never take more than there is, and are what their names say."""

import math
import random
from collections import Counter

import pytest
from hypothesis import Phase, find, given, settings

from sash import operators
from sash.aggregators.two_stacks_lite import TwoStacksLite
from sash.operators.contract import Operator
from sash.testing import (
    KINDS,
    Step,
    agrees,
    draw_value,
    replay,
    schedule,
    schedules,
    values_of,
    windows,
)
from sash.testing.schedules import column_kinds


def sizes(steps: list[Step]) -> list[int]:
    """How many values the window holds after each step; fails if it is ever below none."""
    held, made = 0, []
    for step in steps:
        if step[0] == "insert":
            assert len(step) == 2
            held += 1
        elif step[0] == "evict":
            assert step[1] >= 1
            held -= step[1]
        else:
            assert step == ("query",)
        assert held >= 0
        made.append(held)
    return made


@pytest.mark.thin
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_every_kind_is_sound_and_repeatable(kind: str, size: int) -> None:
    steps = schedule(kind, size=size, seed=3)
    sizes(steps)
    assert steps == schedule(kind, size=size, seed=3)
    assert steps != schedule(kind, size=size, seed=4)
    assert ("query",) in steps


def test_each_kind_is_what_it_says() -> None:
    held = {kind: sizes(schedule(kind, size=10)) for kind in KINDS}
    steps = {kind: schedule(kind, size=10) for kind in KINDS}
    assert not any(step[0] == "evict" for step in steps["fill"])
    assert held["fill"][-1] == 30
    assert set(held["steady"][12:]) == {9, 10}
    assert sum(a < 4 <= b for a, b in zip(held["sawtooth"], held["sawtooth"][1:], strict=False)) > 2
    assert held["drain"][-1] == 0
    assert max(step[1] for step in steps["bulk"] if step[0] == "evict") > 5
    assert len({step[1] for step in steps["ties"] if step[0] == "insert"}) <= 2
    assert all(step[1] < 0 for step in steps["negatives"] if step[0] == "insert")
    assert Counter(held["empties"])[0] > 6
    assert held["empties"][-1] == 1


def test_what_is_no_kind_or_size_is_refused() -> None:
    with pytest.raises(ValueError, match="'tidal' is no kind of schedule; give one of fill, "):
        schedule("tidal")
    with pytest.raises(ValueError, match="size cannot be 0"):
        schedule("fill", size=0)


@pytest.mark.thin
@pytest.mark.parametrize("kind", KINDS)
def test_values_suit_the_operator(kind: str, ready: Operator) -> None:
    for window in windows(schedule(kind, ready, size=3)):
        ready.fold(window)


def test_drawn_values_have_nulls_ties_and_nan() -> None:
    source = random.Random(0)
    drawn = [draw_value(operators.max.of(float), source) for _ in range(200)]
    assert None in drawn
    assert math.inf in drawn
    assert any(x is not None and x != x for x in drawn)
    assert max(Counter(map(str, drawn)).values()) > 10
    pairs = [draw_value(operators.m4, source) for _ in range(50)]
    assert all(len(row) == 2 for row in pairs)
    assert column_kinds(operators.concat) == ("text",)
    assert column_kinds(operators.arg_max.of(bool, int)) == ("bool", "int64")
    assert column_kinds(operators.arg_max.of(str, int)) == ("number", "int64")


def test_a_drawing_function_is_taken() -> None:
    steps = schedule("fill", lambda source: "abc"[source.randrange(3)], size=5)
    assert {step[1] for step in steps if step[0] == "insert"} <= set("abc")


@given(schedules())
def test_generated_schedules_are_sound(steps: list[Step]) -> None:
    sizes(steps)
    assert steps[-1] == ("query",)


@given(schedules(values_of(operators.concat)))
def test_generated_schedules_take_a_strategy_of_values(steps: list[Step]) -> None:
    operators.concat.fold([step[1] for step in steps if step[0] == "insert"])


def test_generated_schedules_reach_every_shape() -> None:
    def shrinks_to_empty_and_refills(steps: list[Step]) -> bool:
        held = sizes(steps)
        return 0 in held[1:] and held[-1] > 0 and max(held) > 2

    quick = settings(phases=[Phase.generate])
    assert find(schedules(operators.max), shrinks_to_empty_and_refills, settings=quick)
    assert find(schedules(), lambda s: any(x[0] == "evict" and x[1] > 2 for x in s), settings=quick)


def test_windows_are_what_is_held_at_each_query() -> None:
    steps = [("query",), ("insert", 1), ("insert", 2), ("query",), ("evict", 2), ("query",)]
    assert windows(steps) == [[], [1, 2], []]
    with pytest.raises(ValueError, match="2 values cannot leave a window that holds 1"):
        windows([("insert", 1), ("evict", 2)])


@pytest.mark.thin
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["collect", "max", "mean"])
def test_replay_and_oracle_together_judge_an_aggregator(kind: str, name: str) -> None:
    op: Operator = getattr(operators, name)
    steps = schedule(kind, op, size=6)
    window = TwoStacksLite(op)
    answers = replay(window, steps, after=window._check)
    held = windows(steps)
    assert len(answers) == len(held)
    assert all(agrees(op, values, got) for values, got in zip(held, answers, strict=True))


def test_an_overflow_stands_for_the_answer() -> None:
    steps = [("insert", 2**62), ("insert", 2**62), ("query",), ("evict", 1), ("query",)]
    got = replay(TwoStacksLite(operators.sum), steps)
    assert isinstance(got[0], OverflowError)
    assert got[1] == 2**62
    held = windows(steps)
    assert all(agrees(operators.sum, v, g) for v, g in zip(held, got, strict=True))


def test_the_judge_sees_a_wrong_aggregator() -> None:
    """One that forgets to evict."""

    class Hoarder(TwoStacksLite):
        def evict(self) -> None:
            pass

    steps = schedule("steady", operators.collect, size=3)
    got = replay(Hoarder(operators.collect), steps)
    pairs = zip(windows(steps), got, strict=True)
    assert not all(agrees(operators.collect, v, g) for v, g in pairs)
