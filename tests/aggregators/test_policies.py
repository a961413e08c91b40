"""Window slide policies, against a linear scan that drops one value at a time."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash import operators as ops
from sash.aggregators import Amta, DabaLite, Fiba, LogMta
from sash.aggregators.level_window import LevelWindow
from sash.kernels.program import InterpretedWarning, jit_enabled
from sash.policies import (
    Policy,
    any_of,
    at_most,
    at_most_span,
    at_most_sum,
    limited_by,
    since_longest_run,
    since_maximum,
)
from sash.testing import agrees
from thinning import examples

BOTH: list[type[LevelWindow]] = [LogMta, Amta]
FIRST_AND_SUM = ops.together(ops.first, ops.sum).of(int)
Rows = list[Any]


def drop_count(n: int) -> Callable[[Rows], bool]:
    return lambda held: len(held) > n


def drop_sum(limit: int) -> Callable[[Rows], bool]:
    return lambda held: sum(x for x in held if x is not None) > limit


def drop_before_maximum(held: Rows) -> bool:
    known = [x for x in held if x is not None]
    return bool(known) and (held[0] is None or held[0] < max(known))


def drop_before_run(held: Rows) -> bool:
    """Whether the oldest value is before the first of the longest runs, found by trying all."""
    known = [x for x in held if x is not None]
    if len(known) < len(held) and held[0] is None:
        return True
    best, first = 0, 0
    for i in range(len(known)):
        j = i + 1
        while j < len(known) and known[j - 1] < known[j]:
            j += 1
        if j - i > best:
            best, first = j - i, i
    return first > 0


#: Each with what a scan asks before it drops the oldest value.
POLICIES: dict[str, tuple[Policy, Callable[[Rows], bool]]] = {
    "at_most 5": (at_most(5), drop_count(5)),
    "at_most 0": (at_most(0), drop_count(0)),
    "at_most_sum": (at_most_sum(40), drop_sum(40)),
    "since_maximum": (since_maximum(), drop_before_maximum),
    "since_longest_run": (since_longest_run(), drop_before_run),
    "several": (
        any_of(at_most(30), at_most_sum(90), since_maximum()),
        lambda held: len(held) > 30 or drop_sum(90)(held) or drop_before_maximum(held),
    ),
}


def scan(held: Rows, drops: Callable[[Rows], bool]) -> Rows:
    while held and drops(held):
        held = held[1:]
    return held


def feed(
    window: LevelWindow,
    op: sash.Operator,
    drops: Callable[[Rows], bool],
    batches: list[Rows],
) -> None:
    held: Rows = []
    for batch in batches:
        for value in batch:
            window.insert(value)
            held.append(value)
        window.enforce()
        window._check()
        held = scan(held, drops)
        assert len(window) == len(held)
        assert agrees(op, held, window.query())
        window.enforce()
        assert len(window) == len(held), "once enforced, a policy wants nothing more"


def some_batches(seed: int, most: int = 40) -> list[Rows]:
    """Mostly one value at a time, now and then many, so that many leave at once."""
    source = random.Random(seed)
    pool = [*range(10), 30, None]
    sizes = source.choices([1, 1, 1, 2, most], k=60)
    return [[source.choice(pool) for _ in range(n)] for n in sizes]


@pytest.mark.thin
@pytest.mark.plain
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("kind", BOTH)
def test_policies_drop_what_a_scan_drops(kind: type[LevelWindow], name: str) -> None:
    policy, drops = POLICIES[name]
    for seed in range(2):
        feed(kind(ops.collect, policy=policy), ops.collect, drops, some_batches(seed))


#: Kernels take seconds to build: compiled, some speak for all.
TYPED = [(kind, name) for kind in BOTH for name in POLICIES]
if jit_enabled():
    TYPED = [(LogMta, "at_most_sum"), (Amta, "several")]
COMPILED = [Amta] if jit_enabled() else BOTH


@pytest.mark.parametrize(("kind", "name"), TYPED)
def test_typed_policies(kind: type[LevelWindow], name: str) -> None:
    op = FIRST_AND_SUM
    policy, drops = POLICIES[name]
    window = kind(op, policy=policy)
    feed(window, op, drops, some_batches(4, 60)[:30])
    assert window._core.program.mode != "objects"
    assert window.operator is op


@pytest.mark.plain
@pytest.mark.parametrize("name", POLICIES)
@given(
    batches=st.lists(
        st.lists(st.none() | st.integers(0, 30), min_size=1, max_size=40), min_size=1, max_size=4
    )
)
@settings(max_examples=examples(15))
def test_any_batches(name: str, batches: list[Rows]) -> None:
    policy, drops = POLICIES[name]
    for kind in BOTH:
        feed(kind(ops.collect, policy=policy), ops.collect, drops, batches)


@pytest.mark.parametrize("kind", COMPILED)
def test_slide_inserts_enforces_and_answers(kind: type[LevelWindow]) -> None:
    listed = [x for batch in some_batches(7) for x in batch]
    policy, drops = POLICIES["at_most_sum"]
    for op in (ops.collect, FIRST_AND_SUM):
        window = kind(op, policy=policy)
        got = [*window.slide(listed[:50]), *window.slide(listed[50:])]
        window._check()
        capped = kind(op, policy=policy).slide(listed, 6)
        held: Rows = []
        few: Rows = []
        for i, value in enumerate(listed):
            held, few = scan([*held, value], drops), scan([*few, value][-6:], drops)
            assert agrees(op, held, got[i])
            assert agrees(op, few, capped[i])


@pytest.mark.parametrize("kind", COMPILED)
def test_a_span_of_time_and_a_limit_in_the_stream(kind: type[LevelWindow]) -> None:
    source = random.Random(2)
    times = np.cumsum([source.choice([0, 1, 1, 30]) for _ in range(200)])
    limits = np.array([source.choice([3, 8, 8, 20]) for _ in times])
    rows = list(zip(range(len(times)), times.tolist(), limits.tolist()))
    policy = any_of(at_most_span(25, column=1), limited_by(2))
    window = kind(ops.together(ops.first, ops.last), policy=policy)
    assert len(window._given.skips) == 3
    got = window.slide((np.arange(len(times)), times, limits))
    one_by_one = kind(ops.together(ops.first, ops.last).of(int), policy=policy)
    assert one_by_one.operator.types == ("int64",)
    held: Rows = []
    for i, row in enumerate(rows):
        held = [r for r in [*held, row] if row[1] - r[1] <= 25][-row[2] :]
        assert (got[0][i], got[1][i]) == (held[0][0], i)
        one_by_one.insert(row)
        one_by_one.enforce()
        assert one_by_one.query() == (held[0][0], i)
    assert one_by_one._core.program.mode != "objects"


def test_times_can_be_datetimes() -> None:
    window = Amta(ops.concat, policy=at_most_span(timedelta(minutes=5), column=1))
    start = datetime(2024, 1, 1)
    for letter, minute in zip("abcd", (0, 3, 5, 9)):
        window.insert((letter, start + timedelta(minutes=minute)))
        window.enforce()
    assert window.query() == "cd"


@pytest.mark.parametrize("kind", BOTH)
def test_a_rule_sees_the_whole_window_and_what_is_to_go(kind: type[LevelWindow]) -> None:
    """Never a total that is not there any more, never an empty part, and not often."""
    seen: list[tuple[str, str]] = []

    def rule(total: str, old: str) -> bool:
        seen.append((total, old))
        return len(total) - len(old) >= 9

    letters = "abcdefghijklmnopqrst"
    window = kind(ops.concat, policy=sash.policy(rule, over=ops.concat))
    for letter in letters:
        window.insert(letter)
    window.enforce()
    assert window.query() == "lmnopqrst"
    assert seen[0] == (letters, "a")
    assert seen[-1] == ("lmnopqrst", "l"), "and then it wants nothing more"
    assert all(letters.endswith(total) and total.startswith(old) and old for total, old in seen)
    assert len(seen) <= 3 * (20).bit_length() + 2


def test_an_empty_window_takes_a_policy_and_a_full_one_does_not() -> None:
    window, three = Amta(ops.concat), at_most(3)
    window.enforce(three)
    for letter in "abcde":
        window.insert(letter)
    window.enforce(three)
    assert window.policy is three
    assert window.query() == "cde"
    with pytest.raises(ValueError, match=r"were not kept; make it with Amta\(concat, policy=…\)"):
        window.enforce(at_most(2))
    with pytest.raises(TypeError, match="has no policy to enforce"):
        Amta(ops.concat).enforce()
    with pytest.raises(TypeError, match=r"made by sash\.policy"):
        Amta(ops.concat, policy=lambda total, old: True)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="say which ones the policy reads"):
        Amta(ops.arg_max, policy=at_most_sum(3))
    with pytest.raises(ValueError, match="not -1"):
        at_most(-1)
    for limit in ("9", None, float("nan")):
        with pytest.raises(ValueError, match="limit is a number that a sum may reach"):
            at_most_sum(limit)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", BOTH)
def test_bytes_with_a_policy(kind: type[LevelWindow]) -> None:
    policy, _ = POLICIES["at_most_sum"]
    for op in (ops.collect, FIRST_AND_SUM):
        window = kind(op, policy=policy)
        for x in (19, 1, 14, 18, 3):
            window.insert(x)
        again = kind.from_bytes(window.to_bytes(), op, policy)
        again._check()
        assert again.query() == window.query()
        again.enforce()
        assert agrees(op, [1, 14, 18, 3], again.query())


@pytest.mark.skipif(not jit_enabled(), reason="about compiled code: SASH_JIT=0")
def test_a_rule_that_numba_refuses_runs_in_plain_python() -> None:
    odd = sash.policy(
        lambda total, old: eval("total - old >= 3"), over=ops.count, name="refused by numba"
    )
    with pytest.warns(InterpretedWarning, match="numba refused its rule of"):
        window = Amta(ops.sum.of(int), policy=odd)
    assert window._core.program.mode == "objects"
    assert window.slide([1, 2, 3, 4]) == [1, 3, 6, 9]


def test_a_rule_that_raises_leaves_the_window_sound() -> None:
    def rule(total: int, old: int) -> bool:
        if old > 3:
            raise KeyError("no more")
        return True

    window = Amta(ops.collect, policy=sash.policy(rule, over=ops.count))
    for x in range(30):
        window.insert(x)
    with pytest.raises(KeyError):
        window.enforce()
    window._check()
    assert len(window) < 30
    assert window.query() == list(range(30 - len(window), 30))


@pytest.mark.parametrize("aggregator", [DabaLite, Fiba])
def test_a_window_without_policies_names_those_that_have_them(aggregator: Any) -> None:
    with pytest.raises(TypeError, match=r"has no policies.*Amta\(operator, policy=…\)"):
        aggregator(ops.sum, policy=at_most_sum(3))
