"""Bulk eviction by LogMta and Amta: against the oracle, in memory, and as bytes."""

from __future__ import annotations

import gc
import random
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash import operators as ops
from sash.aggregators import Amta, LogMta, Timed, level_window, timed_fifo
from sash.aggregators.level_window import LevelWindow
from sash.kernels.program import jit_enabled
from sash.testing import KINDS, agrees, schedule, windows
from thinning import FULL, examples

BOTH: list[type[LevelWindow]] = [LogMta, Amta]
SUM = ops.sum.of(int)
FIRST_AND_SUM = ops.together(ops.first, ops.sum).of(int)  # compiled, and does not commute
OPERATORS = [ops.collect, ops.concat, ops.longest_run, ops.stddev, ops.bloom(64), FIRST_AND_SUM]
if not jit_enabled():
    OPERATORS += [SUM, ops.max.of(float), ops.count_min(8, 2).of(float)]


def bulk_replay(window: LevelWindow, steps: list[tuple[object, ...]]) -> list[object]:
    """`replay`, but what leaves together leaves at once."""
    answers = []
    for what, *given_ in steps:
        if what == "insert":
            window.insert(given_[0])
        elif what == "evict":
            window.bulk_evict(given_[0])  # type: ignore[arg-type]
        else:
            answers.append(window.query())
        window._check()
    return answers


@pytest.mark.thin
@pytest.mark.parametrize("op", OPERATORS, ids=repr)
@pytest.mark.parametrize("kind", BOTH)
def test_bulk_evictions_in_every_schedule(kind: type[LevelWindow], op: sash.Operator) -> None:
    for seed, name in enumerate(KINDS):
        steps = schedule(name, op, size=10, seed=seed)
        for held, got in zip(windows(steps), bulk_replay(kind(op), steps), strict=True):
            assert agrees(op, held, got), f"{got!r} is not the answer over {held!r}"


@pytest.mark.parametrize("typed", [pytest.param(False, marks=pytest.mark.plain), True])
@pytest.mark.parametrize("kind", BOTH)
def test_every_number_leaves_windows_that_start_anywhere(
    kind: type[LevelWindow], typed: bool
) -> None:
    """Trees look different at each position in the stream."""
    op = FIRST_AND_SUM if typed else ops.collect
    sizes = (1, 3, 10) if typed else (1, 2, 7, 8, 9, 31)
    for start in range(9 if typed else 34 if FULL else 17):
        for size in sizes:
            for count in range(size + 1):
                window = kind(op)
                window.bulk_evict(0)
                for i in range(start + size):
                    window.insert(i)
                    if i < start:
                        window.evict()
                if (start + count) % 2:
                    window.query()
                window.bulk_evict(count)
                window._check()
                held = list(range(start + count, start + size))
                assert agrees(op, held, window.query())
                window.insert(99)
                window._check()
                assert agrees(op, [*held, 99], window.query())


Moves = list[tuple[str, int]]
MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.integers(1, 20)),
        st.tuples(st.just("evict"), st.integers(1, 6)),
        st.tuples(st.just("bulk"), st.integers(0, 60)),
        st.tuples(st.just("query"), st.just(0)),
    ),
    max_size=30,
)


@pytest.mark.thin
@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("op", [ops.collect, FIRST_AND_SUM], ids=repr)
@given(moves=MOVES)
@settings(max_examples=examples(60))
def test_any_moves(kind: type[LevelWindow], op: sash.Operator, moves: Moves) -> None:
    window, held, following = kind(op), [], 0
    for what, n in moves:
        if what == "insert":
            for _ in range(n):
                window.insert(following)
                held.append(following)
                following += 1
        elif what == "evict":
            for _ in range(min(n, len(held))):
                window.evict()
                held.pop(0)
        elif what == "bulk":
            window.bulk_evict(min(n, len(held)))
            del held[:n]
        else:
            assert agrees(op, held, window.query())
        window._check()
        assert len(window) == len(held)
    assert agrees(op, held, window.query())


@pytest.fixture
def much(monkeypatch: pytest.MonkeyPatch) -> int:
    """A number of values whose memory is much, so that it need not be a large one."""
    for module in (level_window, timed_fifo):
        monkeypatch.setattr(module, "MUCH", 1024)
    return 1000


@pytest.mark.parametrize("kind", BOTH)
def test_memory_is_given_back_after_a_bulk_eviction(kind: type[LevelWindow], much: int) -> None:
    little, values = 200, np.ones(much, dtype=np.int64)
    window = kind(SUM)
    window.slide(values[:little], little)
    window.bulk_evict(little - 5)
    assert window._core.get(0) == 16, "little memory is given back at once"
    for change in (lambda: window.insert(1), window.evict, lambda: window.slide([1], 20)):
        window.slide(values, much)
        window.bulk_evict(much - 10)
        window._check()
        assert window._core.get(0) == 1024, "much of it not while an eviction is waited for"
        again = kind.from_bytes(window.to_bytes(), SUM)
        change()
        window._check()
        assert window._core.get(0) <= 32
        again.insert(1)
        assert again._core.get(0) <= 32, "what is owed is known again from bytes"
    window.slide(values, much)
    window.bulk_evict(much - 10)
    window.bulk_evict(1)
    assert window._core.get(0) <= 32


class Thing:
    """What a weak reference can tell the end of."""


@pytest.mark.usefixtures("only_new")
@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("singly", [False, True])
def test_what_has_left_is_let_go_of(kind: type[LevelWindow], singly: bool) -> None:
    window, seen = kind(ops.collect), []

    def put(n: int) -> None:
        for _ in range(n):
            thing = Thing()
            seen.append(weakref.ref(thing))
            window.insert(thing)

    def alive() -> int:
        gc.collect()
        return sum(ref() is not None for ref in seen)

    put(64)
    if singly:
        for _ in range(40):
            window.evict()
            window.query()
    else:
        window.bulk_evict(40)
        window.query()
        put(20)  # each insertion lets go of two
        window.bulk_evict(20)
        window.query()
        put(20)
        window.query()
    assert alive() == len(window)


@pytest.mark.parametrize("kind", BOTH)
def test_bytes_round_trip_between_bulk_evictions(kind: type[LevelWindow]) -> None:
    for op in (ops.collect, FIRST_AND_SUM):
        window, held = kind(op), []
        source = random.Random(3)
        for i in range(60):
            for _ in range(source.randint(0, 9)):
                window.insert(i)
                held.append(i)
            n = source.randint(0, len(held)) if i % 4 == 3 else 0
            window.bulk_evict(n)
            del held[:n]
            window = kind.from_bytes(window.to_bytes(), op)
            window._check()
            assert agrees(op, held, window.query())


@pytest.mark.parametrize("kind", BOTH)
def test_bad_use_is_a_clear_error(kind: type[LevelWindow]) -> None:
    window = kind(ops.collect)
    window.insert(1)
    with pytest.raises(IndexError, match="2 values cannot leave a window that holds 1"):
        window.bulk_evict(2)
    with pytest.raises(IndexError, match="-1 values cannot leave"):
        window.bulk_evict(-1)
    with pytest.raises(TypeError, match="a number of values, not 'all'"):
        window.bulk_evict("all")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="slide needs a size"):
        window.slide([1])
    assert window.query() == [1]


@pytest.mark.parametrize("kind", BOTH)
def test_a_combine_that_raises_never_makes_answers_wrong(kind: type[LevelWindow]) -> None:
    """With bulk evictions, which put work off until an answer is asked for."""
    op = sash.operator(identity=0, lift=lambda x: x, combine=_add_up_to_60, name="few")
    source, raised, ended = random.Random(5), 0, []
    for _ in range(40):
        window, held = kind(op), []
        for _ in range(80):
            try:
                move = source.random()
                if move < 0.1 and held:
                    n = source.randint(0, len(held))
                    window.bulk_evict(n)
                elif move < 0.4 and held:
                    window.evict()
                elif move < 0.9:
                    value = source.randint(0, 15)
                    held.append(value)
                    window.insert(value)
                held = held[len(held) - len(window) :] if len(window) else []
                assert window.query() == sum(held)
            except ValueError:
                raised += 1
                if window._broken:  # then it refuses every call, and this one again
                    continue
                if len(window) < len(held) and move >= 0.4:
                    held.pop()
                held = held[len(held) - len(window) :] if len(window) else []
            except RuntimeError as error:
                ended.append(str(error))
                break
    assert raised > 20
    assert all("not sound any more" in message for message in ended)


def _add_up_to_60(a: int, b: int) -> int:
    if a + b > 60:
        raise ValueError("more than 60")
    return a + b


@pytest.mark.parametrize("kind", BOTH)
def test_timed_evicts_in_bulk(kind: type[LevelWindow], much: int) -> None:
    window = Timed(kind(SUM))
    times = np.arange(much) // 3
    window.bulk_insert(times, np.ones(much, dtype=np.int64))
    window.bulk_evict(much // 6)
    window._check()
    left = int((times > much // 6).sum())
    assert (len(window), window.query(), window.oldest()) == (left, left, much // 6 + 1)
    window.bulk_evict(much // 3 - 2)
    window._check()
    assert len(window._queue._array) >= much, "much memory not while an eviction is waited for"
    window.insert(much, 7)
    window._check()
    assert len(window._queue._array) < 64, "but when a time is added"
    assert window.query() == int((times > much // 3 - 2).sum()) + 7
    window.bulk_evict(much)
    window._check()
    assert (len(window), window.query()) == (0, None)


def test_timed_and_a_policy_do_not_mix() -> None:
    with pytest.raises(ValueError, match="would both say what leaves"):
        Timed(Amta(SUM, policy=sash.policies.at_most(3)))
