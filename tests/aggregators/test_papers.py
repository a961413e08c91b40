"""Worked examples from the papers, step by step."""

from __future__ import annotations

import math

import pytest

from sash import operators as ops
from sash.aggregators import Amta, FlatFatFifo, FlatFit, LogMta, Recalc, TwoStacks
from sash.aggregators.flat_fat import TREE
from sash.aggregators.level_window import LevelWindow
from sash.policies import at_most_sum, policy
from sash.testing import counting

# FlatFIT, Figure 7: MAX over the last 5 (Q1) and the last 2 (Q2) of this stream, in a window
# that starts filled with -∞.  Per step: Pointers and Partials (index 0 to 4), answers.
STREAM = [2, 4, 0, 3, 7, 6, 1, 8, 9, 5]
NONE = -math.inf
FIGURE_7 = [
    ([1, 0, 0, 0, 0], [NONE, 2, 2, 2, 2], 2, 2),
    ([1, 0, 0, 0, 0], [4, 2, 2, 2, 2], 4, 4),
    ([2, 2, 0, 0, 0], [4, 0, 2, 2, 2], 4, 4),
    ([3, 2, 3, 0, 0], [4, 0, 3, 2, 2], 4, 3),
    ([4, 2, 3, 4, 0], [7, 0, 3, 7, 2], 7, 7),
    ([4, 2, 3, 4, 0], [7, 0, 3, 7, 6], 7, 7),
    ([1, 2, 1, 1, 1], [1, 0, 7, 7, 6], 7, 6),
    ([1, 2, 1, 1, 1], [1, 8, 7, 7, 6], 8, 8),
    ([1, 3, 3, 1, 1], [1, 9, 9, 7, 6], 9, 9),
    ([1, 4, 3, 4, 1], [1, 9, 9, 5, 6], 9, 9),
]
Q1_COMPARISONS = [4, 1, 2, 2, 2, 1, 4, 1, 2, 2]
Q2_COMPARISONS = [0, 1, 0, 1, 1, 1, 0, 1, 0, 1]


def plain_max() -> ops.Operator:
    return ops.operator(identity=NONE, lift=lambda x: x, combine=max)


def flat_fit_window(op: ops.Operator) -> FlatFit:
    """A window of 5 that is full but for the first arrival, at index 4 of the figure."""
    window = FlatFit(op)
    for _ in range(4):
        window.insert(NONE)
    return window


@pytest.mark.parametrize("both", [False, True], ids=["Q1", "Q1 and Q2"])
def test_flat_fit_figure_7(both: bool) -> None:
    counted = counting(plain_max())
    window = flat_fit_window(counted.operator)
    oldest = 0  # position of the oldest value; the figure's index is the position modulo 5
    spent = {5: [], 2: []}
    for value, (pointers, partials, q1, q2) in zip(STREAM, FIGURE_7, strict=True):
        if len(window) == 5:
            window.evict()
            oldest += 1
        window.insert(value)
        for size, expected in ((5, q1), (2, q2))[: 1 + both]:
            counted.reset()
            assert window.query(size) == expected
            spent[size].append(counted.combines)
        window._check()
        jumps = window.jumps()
        at = [(oldest + i) % 5 for i in range(5)]
        assert {i: (oldest + k + jump) % 5 for k, (i, (jump, _)) in enumerate(zip(at, jumps))} == (
            dict(enumerate(pointers))
        )
        assert {i: partial for i, (_, partial) in zip(at, jumps)} == dict(enumerate(partials))
    assert spent[5] == Q1_COMPARISONS
    assert sum(spent[5]) == 21
    if both:
        assert spent[2] == Q2_COMPARISONS
        assert sum(spent[2]) == 6


def test_flat_fit_figure_7_naive_needs_40_and_10() -> None:
    for size, comparisons in ((5, 40), (2, 10)):
        counted = counting(plain_max())
        window = Recalc(counted.operator)
        for _ in range(size):
            window.insert(NONE)
        for value in STREAM:
            window.evict()
            window.insert(value)
            window.query()
        assert counted.combines == comparisons


def test_two_stacks_of_cbix_figure_3() -> None:
    """Sums of two seconds each, nine of them in a window of 18 seconds."""
    window = TwoStacks(ops.operator(identity=0, lift=lambda x: x, combine=lambda a, b: a + b))
    sums = [t + t + 1 for t in range(5, 22, 2)]
    for value in sums:
        window.insert(value)
    # (a) all in the back stack, aggregates from the bottom to the top
    running = [11, 26, 45, 68, 95, 126, 161, 200, 243]
    assert window.stacks() == ([], list(zip(sums, running, strict=True)))
    assert window.query() == 243
    # (b) and (c) turned over into the front stack, the oldest leaves, records 23 and 24 arrive
    window.evict()
    window.insert(47)
    front, back = window.stacks()
    turned = [43, 82, 117, 148, 175, 198, 217, 232]
    assert front == list(zip(reversed(sums[1:]), turned, strict=True))
    assert back == [(47, 47)]
    assert window.query() == 232 + 47 == 279
    # (d) records 25 and 26 arrive
    window.evict()
    window.insert(51)
    front, back = window.stacks()
    assert front[-1] == (19, 217)
    assert back == [(47, 47), (51, 98)]
    assert window.query() == 315
    window._check()


def test_reactive_aggregator_figure_5_with_an_inverted_buffer() -> None:
    """The window 4, 7, 3, 2 loses 4 and gets 9, which lies before 7 in the array; the answer of a
    non-commutative operator is still in window order.  Our least capacity is 8, so the window
    moves on to where the figure's capacity of 4 wraps."""
    op = ops.operator(identity="", lift=str, combine=lambda a, b: a + b)
    window = FlatFatFifo(op)
    for x in (0, 0, 0, 0):
        window.insert(x)
    for x in (4, 7, 3, 2):
        window.insert(x)
        window.evict()
    assert window.query() == "4732"
    window.evict()
    assert window.query() == "732"
    window.insert(9)
    leaves = [window._core.peek(TREE + 8 + i) for i in range(8)]
    assert leaves == ["9", "", "", "", "", "7", "3", "2"]
    assert window._core.peek(TREE + 1) == "9732", "the root has the array's order"
    assert window.query() == "7329"
    window._check()


# The Monoid Tree Aggregator.  The text of its figures is lost but for what the prose says of them.


def plain_sum() -> ops.Operator:
    return ops.operator(identity=0, lift=lambda x: x, combine=lambda a, b: a + b)


def test_log_mta_figure_1() -> None:
    """The sum of 1, 2, 1, 2, 1, 2 as a list of queues, leaves first."""
    window = LogMta(plain_sum())
    for x in (1, 2, 1, 2, 1, 2):
        window.insert(x)
    assert window.levels() == [[1, 2, 1, 2, 1, 2], [3, 3, 3], [6, 3]]
    assert window.query() == 9
    window.evict()  # the first element of a level may be gone
    assert window.levels() == [[2, 1, 2, 1, 2], [2, 3, 3], [5, 3]]
    assert window.query() == 8


def test_log_mta_figure_2() -> None:
    """Times, of which the window may span less than 4.  When 8 comes, the first valid element of
    each of three levels is found to be out, and only the newest is left."""
    asked: list[int] = []

    def rule(total: int, old: int) -> bool:
        asked.append(old)
        return total - old >= 4

    times = ops.operator(identity=-1, lift=lambda t: t, combine=max)
    window = LogMta(times, policy=policy(rule, over=times))
    for t in (1, 1, 2, 3, 3, 4, 4):
        window.insert(t)
        window.enforce()
    assert len(window) == 7
    assert [node[0] for node in window.levels()[-1]] == [3, 4]
    window.insert(8)
    assert [[node[0] for node in level] for level in window.levels()[1:]] == [[1, 3, 4, 8], [3, 8]]
    asked.clear()
    window.enforce()
    assert (window.levels(), window.query()) == ([[(8, 8)]], 8)
    assert [old for old in asked if 8 - old >= 4][-1] == 4


def test_amta_figure_4() -> None:
    """The sum of 1, 2, 1, 2, 1, 2: the last pair has no parent yet."""
    window = Amta(plain_sum())
    for x in (1, 2, 1, 2, 1, 2):
        window.insert(x)
    assert window.results() == (6, 3)
    assert window.stack() == [5, 3]
    assert window.query() == 9
    window.insert(1)
    assert window.results() == (6, 4)
    window = Amta(plain_sum())
    for x in (1, 2, 1, 2, 1, 2):
        window.insert(x)
    window.evict()  # the stack's top is popped onto the front
    assert window.results() == (5, 3)
    assert window.stack() == [3]


def test_amta_figure_5() -> None:
    """1, 3, 2, 1, 2, 1, 1, 0, 3, 1: evicting four empties the first tree."""
    window = Amta(plain_sum())
    for x in (1, 3, 2, 1, 2, 1, 1, 0, 3, 1):
        window.insert(x)
    seen = [(window.query(), window.results(), window.stack())]
    for _ in range(4):
        window.evict()
        window._check()
        seen.append((window.query(), window.results(), window.stack()))
    assert [answer for answer, _, _ in seen] == [15, 14, 11, 9, 8]
    assert seen[0] == (15, (7, 8), [6, 3])
    assert seen[1] == (14, (6, 8), [3])
    assert seen[2] == (11, (3, 8), [1])  # ⟨2, 1⟩ is the new head, and 1 what is left without its 2
    assert seen[3] == (9, (1, 8), [])
    assert seen[4] == (8, (4, 4), [2, 1])  # the second tree is the first now: both are computed


@pytest.mark.parametrize("kind", [LogMta, Amta])
def test_mta_section_3_2(kind: type[LevelWindow]) -> None:
    """The maximum of the youngest values that add up to at most 10."""
    window = kind(ops.together(ops.max, ops.collect), policy=at_most_sum(10))
    for x in (2, 2, 3, 3):
        window.insert(x)
        window.enforce()
    assert window.query() == (3, [2, 2, 3, 3])
    window.insert(4)
    window.enforce()
    assert window.query() == (4, [3, 3, 4])
    window._check()


def test_mta_listings_2_and_3() -> None:
    """The experiments' monoid and policy, with the window's size in the stream."""
    counts = ops.operator(
        identity=(0, 0),
        lift=lambda size: (1, size),
        combine=lambda a, b: (a[0] + b[0], b[1] if b[0] else a[1]),
    )
    listing_3 = policy(lambda total, old: total[0] - old[0] >= total[1], over=counts)
    window = Amta(counts, policy=listing_3)
    for size, held in ((3, 1), (3, 2), (3, 3), (3, 3), (5, 4), (5, 5), (1, 1), (2, 2)):
        window.insert(size)
        window.enforce()
        window._check()
        assert window.query() == (held, size)
