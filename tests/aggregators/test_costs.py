"""Costs that the papers promise, by counting calls of combine."""

from __future__ import annotations

import math
import random

import pytest

from sash import operators as ops
from sash.aggregators import (
    Amta,
    BInt,
    Daba,
    DabaLite,
    FlatFat,
    FlatFatFifo,
    FlatFit,
    InOrder,
    LogMta,
    Recalc,
    SubtractOnEvict,
    TwoStacks,
    TwoStacksLite,
)
from sash.aggregators.level_window import LevelWindow
from sash.policies import at_most, policy
from sash.testing import Counted, counting


def counted_sum() -> Counted:
    made = ops.operator(
        identity=0, lift=lambda x: x, combine=lambda a, b: a + b, inverse=lambda a, b: a - b
    )
    return counting(made)


def filled(aggregator: type[InOrder], n: int) -> tuple[InOrder, Counted]:
    counted = counted_sum()
    window = aggregator(counted.operator)
    for i in range(n):
        window.insert(i)
    counted.reset()
    return window, counted


def rounds(window: InOrder, n: int) -> None:
    for i in range(n):
        window.evict()
        window.insert(i)
        window.query()


@pytest.mark.parametrize("n", [2, 5, 64, 1000])
@pytest.mark.parametrize("aggregator", [TwoStacks, TwoStacksLite])
def test_two_stacks_take_at_most_3_a_round(aggregator: type[InOrder], n: int) -> None:
    window, counted = filled(aggregator, n)
    rounds(window, 10 * n)
    assert counted.combines <= 3 * 10 * n


def test_recalc_takes_n_minus_1_a_query() -> None:
    window, counted = filled(Recalc, 100)
    window.query()
    assert counted.combines == 99


def test_subtract_on_evict_takes_one_of_each() -> None:
    window, counted = filled(SubtractOnEvict, 50)
    rounds(window, 200)
    assert (counted.combines, counted.inverses) == (200, 200)


def worst(window: InOrder, counted: Counted, schedule: list[str]) -> dict[str, int]:
    """The most calls that any one operation of each kind made."""
    most = {"insert": 0, "evict": 0, "query": 0}
    for what in schedule:
        counted.reset()
        if what == "insert":
            window.insert(1)
        elif what == "evict" and len(window):
            window.evict()
        elif what == "query":
            window.query()
        most[what] = max(most[what], counted.combines)
    return most


def schedules_around(n: int) -> list[list[str]]:
    source = random.Random(n)
    return [
        ["evict", "insert", "query"] * (2 * n),
        ["insert"] * (2 * n) + ["query"] + ["evict"] * (2 * n),
        source.choices(["insert", "evict", "query"], k=4 * n),
    ]


@pytest.mark.parametrize(
    ("aggregator", "bounds"),
    [
        (Daba, {"insert": 4, "evict": 3, "query": 1}),
        (DabaLite, {"insert": 3, "evict": 2, "query": 1}),
    ],
)
def test_daba_is_constant_in_the_worst_case(
    aggregator: type[InOrder], bounds: dict[str, int]
) -> None:
    found = []
    for n in (2**8, 2**13):
        most = {"insert": 0, "evict": 0, "query": 0}
        for schedule in schedules_around(n):
            window, counted = filled(aggregator, n)
            for what, calls in worst(window, counted, schedule).items():
                most[what] = max(most[what], calls)
        found.append(most)
    assert found[0] == found[1] == bounds


@pytest.mark.parametrize("n", [5, 64, 1000])
def test_flat_fit_takes_3_a_slide_with_one_query(n: int) -> None:
    window, counted = filled(FlatFit, n)
    window.query()
    counted.reset()
    slides = 20 * (n + 1)
    rounds(window, slides)
    # its period of n + 1 slides takes 3(n - 1)
    assert counted.combines == slides // (n + 1) * 3 * (n - 1)
    assert counted.combines <= 3 * slides


@pytest.mark.parametrize("n", [2, 5, 32])
def test_flat_fit_takes_n_minus_1_for_all_sizes(n: int) -> None:
    counted = counted_sum()
    window = FlatFit(counted.operator)
    for i in range(n):
        window.insert(i)
    window.queries(range(1, n + 1))  # type: ignore[arg-type]
    for i in range(4 * n):
        window.evict()
        window.insert(i)
        counted.reset()
        window.queries(range(1, n + 1))  # type: ignore[arg-type]
        assert counted.combines == n - 1


def test_flat_fit_needs_no_stack() -> None:
    """n partials and n links, besides two scratch slots: the way back is kept in the links."""
    window = FlatFit(counted_sum().operator)
    window.slide(list(range(3000)), 1000)
    assert len(window._core.m.slots) == 1000 + 2
    assert len(window._core.m.links) == 1000 + 2


@pytest.mark.parametrize("n", [1, 2, 8, 64, 1024])
def test_flat_fat_theorem_4_2(n: int) -> None:
    counted = counted_sum()
    tree = FlatFat(counted.operator, list(range(n)))
    assert counted.combines == n - 1
    counted.reset()
    tree.aggregate()
    assert counted.combines == 0
    log = int(math.log2(n))
    source = random.Random(n)
    for _ in range(30):
        m = source.randint(1, n)
        where = source.sample(range(n), m)
        counted.reset()
        tree.update(where, [7] * m)
        assert counted.combines <= m * (1 + math.ceil(math.log2(n / m)))
        for ask, bound in (
            (lambda: tree.prefix(source.randrange(n)), log),
            (lambda: tree.suffix(source.randrange(n)), log),
            (lambda: tree.range(*sorted((source.randrange(n), source.randrange(n)))), 2 * log),
        ):
            counted.reset()
            ask()
            assert counted.combines <= bound
    tree._check()


def test_flat_fat_one_location_takes_log_n() -> None:
    counted = counted_sum()
    tree = FlatFat(counted.operator, [0] * 256)
    counted.reset()
    tree.update([77], [1])
    assert counted.combines == 8


@pytest.mark.parametrize("log", [3, 6, 10])
def test_flat_fat_fifo_is_logarithmic(log: int) -> None:
    n = 2**log
    window, counted = filled(FlatFatFifo, n)
    most = worst(window, counted, ["evict", "insert", "query"] * (2 * n))
    assert most["insert"] == most["evict"] == log
    assert most["query"] <= 2 * log


@pytest.mark.parametrize("log", [3, 6, 10])
def test_b_int_is_within_2_log_n_a_look_up(log: int) -> None:
    n = 2**log
    for size in (n, n - 1, n // 2 + 1):
        window, counted = filled(BInt, size)
        most = worst(window, counted, ["evict", "insert", "query"] * (2 * n))
        assert most["insert"] <= log
        assert most["evict"] == 0
        assert most["query"] <= 2 * log
        counted.reset()
        for i in range(4 * n):
            window.evict()
            window.insert(i)
        assert counted.combines <= 4 * n, "an insert takes one combine on average"


@pytest.mark.parametrize("n", [5, 64, 1000, 2**14])
def test_amta_is_constant_on_average(n: int) -> None:
    """Steady, growing and shrinking: the result pair and the stack are computed anew so rarely that
    it does not show."""
    window, counted = filled(Amta, n)
    window.query()
    counted.reset()
    rounds(window, 4 * n)
    few = 3 * math.log2(n) / n * 8  # for computing the pair anew, some times in n rounds
    assert counted.combines <= (4 + few) * 4 * n
    for step, bound in ((window.insert, 3), (lambda _: window.evict(), 2)):
        counted.reset()
        for i in range(n):
            step(i)
            window.query()
        assert counted.combines <= (bound + few) * n
    window, counted = filled(Amta, 0)
    for i in range(n):
        window.insert(i)
    assert counted.combines <= 2 * n, "without a question, nothing is computed for one"


@pytest.mark.parametrize("log", [3, 6, 10, 13])
def test_amta_is_logarithmic_in_the_worst_case(log: int) -> None:
    n = 2**log
    most = {"insert": 0, "evict": 0, "query": 0}
    for schedule in schedules_around(n):
        window, counted = filled(Amta, n)
        for what, calls in worst(window, counted, schedule).items():
            most[what] = max(most[what], calls)
    # the window grows to 3 n
    assert most["insert"] <= log + 3
    assert most["evict"] <= log + 2
    assert most["query"] <= 3 * (log + 2)


def test_amta_keeps_an_answer_and_computes_once_for_an_insertion_and_an_eviction() -> None:
    for n in (10, 23, 100):
        window, counted = filled(Amta, n)
        for i in range(4 * n):
            window.query()
            counted.reset()
            window.query()
            assert counted.combines == 0
            window.insert(i)
            window.evict()
            counted.reset()
            window.query()
            # at most one computation of the pair and the stack, and the answer
            assert counted.combines <= 3 * math.log2(n) + 4


@pytest.mark.parametrize("log", [2, 5, 9, 13])
@pytest.mark.parametrize("aggregator", [LogMta, Amta])
def test_bulk_eviction_is_logarithmic_for_every_number(
    aggregator: type[LevelWindow], log: int
) -> None:
    n = 2**log
    if log <= 10:
        counts = list(range(1, n))
    else:
        near = {c + d for k in range(log) for c in (1 << k, n - (1 << k)) for d in (-1, 0, 1)}
        counts = sorted(c for c in near | set(random.Random(log).sample(range(n), 20)) if 0 < c < n)
    counted = counted_sum()
    window = aggregator(counted.operator)
    for start in (0, 1, n // 2 - 1):  # trees look different from there
        while len(window):
            window.bulk_evict(len(window))
        for _ in range(start):
            window.insert(0)
            window.evict()
        for i in range(n):
            window.insert(i)
        for before in (True, False):
            for count in counts if log < 13 else counts[:: 1 + (start > 0) * 3]:
                slots, header = list(window._core.m.slots), list(window._core.m.header)
                if before:
                    window.query()
                counted.reset()
                window.bulk_evict(count)
                window.query()
                assert counted.combines <= 3 * log + 4, f"{count} of {n}"
                if len(window._core.m.slots) == len(slots):
                    window._core.m.slots[:], window._core.m.header[:] = slots, header
                else:  # it was made smaller
                    window._core.resize(2**log, [])
                    window._core.m.slots[:], window._core.m.header[:] = slots, header


@pytest.mark.parametrize("log", [3, 6, 10])
def test_log_mta_is_within_log_n(log: int) -> None:
    n = 2**log
    for size in (n, n - 1, n // 2 + 1):
        window, counted = filled(LogMta, size)
        most = worst(window, counted, ["evict", "insert", "query"] * (2 * n))
        assert most["insert"] <= log + 3
        assert most["evict"] <= log + 1
        assert most["query"] <= 1


@pytest.mark.parametrize("n", [64, 1024, 2**12])
def test_a_policy_finds_what_must_go_in_log_n(n: int) -> None:
    """What leaves is found by looking at few nodes, however many leave."""
    for left in (1, 2, n // 3, n // 2, n - 20, n - 2):
        seen: list[int] = []

        def rule(total: int, old: int, left: int = left, seen: list[int] = seen) -> bool:
            seen.append(old)
            return total - old >= left

        counted = counted_sum()
        for aggregator in (LogMta, Amta):
            window = aggregator(counted.operator, policy=policy(rule, over=ops.count))
            for i in range(n):
                window.insert(i)
            seen.clear()
            counted.reset()
            window.enforce()
            window.query()
            assert len(window) == left
            log = math.log2(n)
            assert len(seen) <= 4 * log + 4
            assert counted.combines <= 12 * log + 12


def test_a_policy_that_lets_one_go_a_round_takes_constant_time() -> None:
    counted = counted_sum()
    window = Amta(counted.operator, policy=at_most(1000))
    window.slide(list(range(2000)))
    counted.reset()
    window.slide(list(range(10_000)))
    assert counted.combines <= 7 * 10_000


@pytest.mark.parametrize(
    ("aggregator", "each", "scratch"),
    [
        (Recalc, 1, 1),
        (SubtractOnEvict, 1, 1),
        (TwoStacks, 2, 2),
        (TwoStacksLite, 1, 2),
        (Daba, 2, 2),
        (DabaLite, 1, 3),
        (FlatFatFifo, 2, 2),
        (BInt, 2, 1),
        (LogMta, 2, 4 + 12),
        (Amta, 2, 4 + 12),
    ],
)
def test_space(aggregator: type[InOrder], each: int, scratch: int) -> None:
    window, _ = filled(aggregator, 1024)
    assert len(window._core.m.slots) == each * 1024 + scratch
