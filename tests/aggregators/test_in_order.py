"""Every in-order aggregator against the oracle, with every operator.

In plain Python for all operators; compiled for one operator of each shape of partial.  With
SASH_JIT=0 the latter run as Python on checked memory.
"""

from __future__ import annotations

import itertools
import math
import random
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings

import sash
from sash import operators as ops
from sash.aggregators import (
    Amta,
    BInt,
    Daba,
    DabaLite,
    FlatFatFifo,
    FlatFit,
    InOrder,
    LogMta,
    Recalc,
    SubtractOnEvict,
    TwoStacks,
    TwoStacksLite,
    in_pieces,
)
from sash.aggregators.narrow import narrow
from sash.kernels.columns import read
from sash.kernels.program import jit_enabled
from sash.testing import KINDS, agrees, replay, schedule, schedules, windows
from thinning import FULL, examples
from trouble import interrupted, refusal

AGGREGATORS: list[type[InOrder]] = [
    Recalc,
    SubtractOnEvict,
    TwoStacks,
    TwoStacksLite,
    Daba,
    DabaLite,
    FlatFatFifo,
    BInt,
    FlatFit,
    LogMta,
    Amta,
]

ANY_VALUE = [
    ops.collect,
    ops.count,
    ops.count.ignore_nulls(),
    ops.sum,
    ops.sum_of_squares,
    ops.product,
    ops.min,
    ops.max,
    ops.span,
    ops.mean,
    ops.geometric_mean,
    ops.variance,
    ops.population_variance,
    ops.stddev,
    ops.population_stddev,
    ops.min_count,
    ops.max_count,
    ops.arg_min,
    ops.arg_max,
    ops.first,
    ops.last,
    ops.first.ignore_nulls(),
    ops.first_n(3),
    ops.last_n(3),
    ops.nth_youngest(2),
    ops.collect_distinct,
    ops.concat,
    ops.count_distinct,
    ops.m4,
    ops.longest_run,
    ops.bloom(256),
    ops.count_min(32, 3),
    ops.hll(8),
    ops.quantiles(),
    ops.top_k(3),
    ops.linear_regression,
    ops.together(ops.sum, ops.max, ops.first, ops.collect),
    ops.together(ops.count, ops.linear_regression, ops.arg_max, columns=[0, (0, 1), (1, 0)]),
]

SUM = ops.sum.of(int)

#: A tuple, and scalars, tuples and a vector together.
TYPED = [SUM, ops.together(ops.mean, ops.first, ops.bloom(64)).of(float)]
#: A scalar and a vector by themselves.  What a kernel does with a partial is generated text, which
#: depends on the operator alone: compiled, two kernels speak for all.
ALONE = [ops.max.of(float), ops.count_min(8, 2).of(float)]
SPEAKERS: list[type[InOrder]] = [TwoStacksLite, Amta]
#: Without a compiler's time to pay, many more for those two, and the others for all.
MORE: list[sash.Operator] = []
if not jit_enabled():
    TYPED, ALONE = TYPED + ALONE, []
    MORE = [
        ops.sum.of(float),
        ops.count.of(int),
        ops.min.of(bool),
        ops.max.of("timestamp"),
        ops.span.of(int),
        ops.variance.of(float),
        ops.max_count.of(float),
        ops.arg_max.of(int, float),
        ops.last.of(float),
        ops.m4.of("timestamp", int),
        ops.longest_run.of("timestamp", float),
        ops.bloom(128).of(int),
        ops.linear_regression.of(float, int),
    ]


def accepted(aggregator: type[InOrder], operators: list[sash.Operator]) -> list[sash.Operator]:
    if aggregator is SubtractOnEvict:
        return [op for op in operators if op.inverse is not None]
    return operators


def pairs(
    operators: list[sash.Operator], aggregators: list[type[InOrder]] = AGGREGATORS
) -> list[object]:
    return [
        pytest.param(aggregator, op, id=f"{aggregator.__name__}-{op!r}")
        for aggregator in aggregators
        for op in accepted(aggregator, operators)
    ]


def judge(aggregator: InOrder, op: sash.Operator, steps: list[tuple[object, ...]]) -> None:
    answers = replay(aggregator, steps, after=aggregator._check)
    for window, got in zip(windows(steps), answers, strict=True):
        assert agrees(op, window, got), f"{got!r} is not the answer over {window!r}"


def kinds_for(place: int, step: int) -> list[tuple[int, str]]:
    """Some kinds of schedules and their numbers: each `step`th, from a place on."""
    step = 1 if FULL else step
    return list(enumerate(KINDS))[place % step :: step]


@pytest.mark.plain
@pytest.mark.parametrize(("aggregator", "op"), pairs(ANY_VALUE))
def test_any_value(aggregator: type[InOrder], op: sash.Operator) -> None:
    # one kind for each pair, by turns: each operator and each aggregator meets them all
    place = AGGREGATORS.index(aggregator) + [id(o) for o in ANY_VALUE].index(id(op))
    for seed, kind in kinds_for(place, 8):
        judge(aggregator(op), op, schedule(kind, op, size=10, seed=seed))


@pytest.mark.parametrize(("aggregator", "op"), pairs(TYPED) + pairs(ALONE + MORE, SPEAKERS))
def test_typed(aggregator: type[InOrder], op: sash.Operator) -> None:
    # in Python, a quarter of the kinds for each pair
    place = AGGREGATORS.index(aggregator) + [id(o) for o in TYPED + ALONE + MORE].index(id(op))
    for seed, kind in kinds_for(place, 1 if jit_enabled() else 4):
        window = aggregator(op)
        judge(window, op, schedule(kind, op, size=10, seed=seed))
        assert window._core.program.mode != "objects"


@pytest.mark.plain
@pytest.mark.parametrize("aggregator", AGGREGATORS)
@given(steps=schedules())
@settings(max_examples=examples(60))
def test_any_schedule(aggregator: type[InOrder], steps: list[tuple[object, ...]]) -> None:
    judge(aggregator(ops.collect), ops.collect, steps)


@pytest.mark.parametrize("aggregator", AGGREGATORS)
@given(steps=schedules(SUM))
@settings(max_examples=examples(40))
def test_any_schedule_typed(aggregator: type[InOrder], steps: list[tuple[object, ...]]) -> None:
    judge(aggregator(SUM), SUM, steps)


@pytest.mark.parametrize("aggregator", AGGREGATORS)
@pytest.mark.parametrize("size", [1, 2, 3, 8, 13, 100])
def test_slide_is_evict_insert_query(aggregator: type[InOrder], size: int) -> None:
    for op, values in (
        (ops.collect, [3, None, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9]),
        (SUM, [3, None, 1, -4, 1, 5, -9, 2, 6, 5, 3, 5, -8, 9, 7, 9]),
    ):
        slid = aggregator(op)
        got = slid.slide(values[:5], size) + slid.slide(values[5:], size)
        slid._check()
        for i, answer in enumerate(got):
            assert agrees(op, values[max(0, i + 1 - size) : i + 1], answer)
        assert len(slid) == min(size, len(values))


@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_slide_over_a_window_that_is_too_full(aggregator: type[InOrder]) -> None:
    window = aggregator(ops.collect)
    for i in range(40):
        window.insert(i)
    assert window.slide([40, 41], 3) == [[38, 39, 40], [39, 40, 41]]
    window._check()


@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_bytes_round_trip(aggregator: type[InOrder]) -> None:
    for op in accepted(aggregator, [ops.collect, SUM, ops.count_min(8, 2)]):
        window = aggregator(op)
        for i in range(30):
            window.insert(i)
            if i % 3:
                window.evict()
        again = aggregator.from_bytes(window.to_bytes(), op)
        again._check()
        assert len(again) == len(window)
        for i in range(20):
            for one in (window, again):
                one.insert(100 - i)
                one.evict()
            np.testing.assert_equal(again.query(), window.query())


@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_memory_follows_the_window(aggregator: type[InOrder]) -> None:
    window = aggregator(SUM)
    capacities = []
    for n in (8, 1000, 3, 500):
        while len(window) < n:
            window.insert(1)
        while len(window) > n:
            window.evict()
        capacities.append(window._core.get(0))
        window._check()
        assert window.query() == n
    if aggregator is FlatFit:  # whose ring is no power of two
        assert all(n <= c <= 5 * n / 4 + 8 for n, c in zip((8, 1000, 3, 500), capacities))
    elif window._core.gradual:  # it grows from three quarters on
        assert capacities == [8, 2048, 8, 1024]
    else:
        assert capacities == [8, 1024, 8, 512]


def test_flat_fit_takes_any_whole_number_for_a_size() -> None:
    window = FlatFit(ops.max)
    for x in (9, 3, 5, 1):
        window.insert(x)
    assert [window.query(np.int64(3)), window.query(1)] == [5, 1]
    for bad in (True, 2.0, "3"):
        with pytest.raises(TypeError, match="size is a number of values"):
            window.query(bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="from 1 to the 4 values held, not 5"):
        window.query(5)


@pytest.mark.once
def test_flat_fit_takes_less_memory_than_flat_fat_as_its_paper_says() -> None:
    """1.4 times less on average over sizes of windows, up to 1.9 times: experiment 3."""
    values = np.arange(2300.0)
    shares = []
    for n in range(1025, 2048, 60):
        bytes_ = []
        for aggregator in (FlatFatFifo, FlatFit):
            window = aggregator(ops.max.of(float))
            window.slide(values, n)
            bytes_.append(window._core.buffer.nbytes)  # type: ignore[union-attr]
        shares.append(bytes_[0] / bytes_[1])
    assert sum(shares) / len(shares) > 1.35
    assert max(shares) > 1.85


@pytest.mark.usefixtures("only_new")
@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_evicted_objects_are_let_go(aggregator: type[InOrder]) -> None:
    import gc
    import weakref

    class Thing:
        pass

    window = aggregator(ops.collect)
    seen = []
    for _ in range(64):
        thing = Thing()
        seen.append(weakref.ref(thing))
        window.insert(thing)
        del thing
    while len(window):
        window.evict()
    window.query()
    gc.collect()
    alive = sum(ref() is not None for ref in seen)
    assert alive <= 16, f"{alive} of 64 evicted values are still held"


@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_bad_use_is_a_clear_error(aggregator: type[InOrder]) -> None:
    window = aggregator(ops.collect)
    with pytest.raises(IndexError, match="evict from an empty window"):
        window.evict()
    with pytest.raises(ValueError, match="size cannot be 0"):
        window.slide([1, 2], 0)
    with pytest.raises(TypeError, match=r"size is a number of values, not 2\.5"):
        window.slide([1, 2], 2.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not 'nothing'"):
        aggregator("nothing")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"convert it, or make the window with operator\.of"):
        aggregator(SUM).insert("seven")
    with pytest.raises(TypeError, match="a column of float64 was given"):
        aggregator(SUM).slide(np.array([1.5]), 2)
    with pytest.raises(TypeError, match=r"\.to_numpy\(\)"):
        window.slide({1, 2}, 2)
    with pytest.raises(TypeError, match=r"give them as integers of a unit"):
        window.slide(np.array([1, 2], dtype="m8[s]"), 2)
    assert len(window) == 0


def test_a_value_that_is_refused_leaves_the_window_as_it_was() -> None:
    window = TwoStacksLite(SUM)
    window.insert(5)
    with pytest.raises(OverflowError, match="does not fit int64"):
        window.insert(2**63)
    assert (len(window), window.query()) == (1, 5)


def test_overflow_names_the_row_and_keeps_the_window() -> None:
    window = TwoStacksLite(ops.sum)
    values = np.array([1, 2**62, 2**62, -5, 7])
    with pytest.raises(OverflowError, match="row 2: the sum leaves int64"):
        window.slide(values, 2)
    assert len(window) == 2
    assert window.slide(values[3:], 2).tolist() == [2**62 - 5, 2]


#: Where an error passes a kernel is the same in compiled code, so some speak for all there.
RAISING = [(aggregator, False) for aggregator in AGGREGATORS]
RAISING += [(a, True) for a in ([SubtractOnEvict, *SPEAKERS] if jit_enabled() else AGGREGATORS)]


@pytest.mark.parametrize(("aggregator", "typed"), RAISING)
def test_a_combine_that_raises_never_makes_answers_wrong(
    aggregator: type[InOrder], typed: bool
) -> None:
    """An error in the middle of a change ends a window's use, and no other error does."""
    op = sash.operator(
        identity=0, lift=lambda x: x, combine=_add_up_to_50, inverse=lambda a, b: a - b, name="few"
    )
    source, ended = random.Random(8), []
    for _ in range(20):
        window = aggregator(op.of(int) if typed else op)
        held: list[int] = []
        for _ in range(60):
            try:
                if held and source.random() < 0.45:
                    window.evict()
                    held.pop(0)
                else:
                    value = source.randint(0, 15)
                    window.insert(value)
                    held.append(value)
                assert window.query() == sum(held)
            except ValueError:
                if window._broken:  # then it refuses every call, and this one again
                    continue
                if len(window) != len(held):
                    held = held[1:] if len(window) < len(held) else [*held, value]
            except RuntimeError as error:
                ended.append(str(error))
                break
    assert all("not sound any more" in message for message in ended)


def _add_up_to_50(a: int, b: int) -> int:
    if a + b > 50:
        raise ValueError("more than 50")
    return a + b


def test_subtract_on_evict_refuses_what_has_no_inverse() -> None:
    for op in (ops.max, ops.max.of(float), ops.sum.of(float), ops.variance):
        with pytest.raises(TypeError, match="needs an operator with an inverse"):
            SubtractOnEvict(op)
    with pytest.raises(TypeError, match=r"try sum\.of\(int\)"):
        SubtractOnEvict(ops.sum)


def test_untied_operators_take_their_types_from_arrays() -> None:
    window = TwoStacksLite(ops.sum)
    assert window.slide(np.array([1.5, 2.0]), 5).tolist() == [1.5, 3.5]
    assert window.operator.types == ("float64",)
    window.insert(3)
    assert window.query() == 6.5
    held = TwoStacksLite(ops.sum)
    held.insert(10**30)
    held.insert(-(10**30) + 1)
    assert held.slide(np.array([1, 2]), 4).tolist() == [2, 4]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.array([1.0, math.nan, -2.0]), np.ndarray),
        (np.array([1, 5, -2], dtype=np.int32), np.ndarray),
        (np.array([True, False, True]), np.ndarray),
        (np.array(["2024-01-01", "1969-12-31", "NaT"], dtype="M8[ns]"), np.ndarray),
        (np.array(["b", "a", "c"], dtype=object), np.ndarray),
        (["b", None, "c"], list),
    ],
)
def test_slide_gives_the_kind_it_was_given(values: object, kind: type) -> None:
    got = TwoStacksLite(ops.max).slide(values, 2)
    assert isinstance(got, kind)
    as_list = values.tolist() if isinstance(values, np.ndarray) else values
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        assert got.tolist() == values[[0, 0, 1]].astype("M8[us]").tolist()
        return
    for i, answer in enumerate(got.tolist() if isinstance(got, np.ndarray) else got):
        assert agrees(ops.max, as_list[max(0, i - 1) : i + 1], answer)


def test_slide_over_arrow_and_masked_arrays() -> None:
    import pyarrow as pa

    given = pa.array([None, 3, None, None, 2], type=pa.int32())
    got = DabaLite(ops.max).slide(given, 2)
    assert isinstance(got, pa.Array)
    assert got.to_pylist() == [None, 3, 3, None, 2]
    masked = np.ma.MaskedArray([9, 3, 9, 9, 2], mask=[1, 0, 1, 1, 0])
    answer = DabaLite(ops.max).slide(masked, 2)
    assert isinstance(answer, np.ma.MaskedArray)
    assert answer.tolist() == [None, 3, 3, None, 2]
    line = DabaLite(ops.linear_regression).slide((pa.array([1.0, 2.0]), pa.array([1, 3])), 2)
    assert line.to_pylist()[1] == {"slope": 2.0, "intercept": -1.0, "r2": 1.0}
    stamps = pa.array([5, 1, None], type=pa.timestamp("ms"))
    assert TwoStacks(ops.min).slide(stamps, 2).type == pa.timestamp("us")


@pytest.mark.once
def test_a_slide_in_pieces_is_the_same_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_pieces, "PIECE", 50)
    source = random.Random(3)
    values = np.random.default_rng(3).normal(size=1500) * 1e6
    pieces = 0
    for _ in range(40):
        size, before, evicted = (source.randrange(n) for n in (120, 200, 60))
        found = []
        for threads in "123":
            monkeypatch.setenv("SASH_THREADS", threads)
            window = TwoStacksLite(ops.stddev.of(float))
            window.slide(values[:before], size + 30)
            for _ in range(min(evicted, len(window))):
                window.evict()
            pieces += len(window._pieces(len(values) - before, size + 1)) > 1
            answers = window.slide(values[before:], size + 1)
            window._check()
            found.append((answers.tobytes(), window.to_bytes()))
        assert found[0] == found[1] == found[2]
    assert pieces > 60


@pytest.mark.once
@pytest.mark.parametrize("kind", [TwoStacksLite, Daba, DabaLite])
def test_operators_of_one_word_have_the_same_answers(
    kind: type[in_pieces.InPieces], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a long slide, whatever the window holds before; and the window is the same
    afterwards."""
    monkeypatch.setattr(in_pieces, "PIECE", 50)
    source, used, pieced = random.Random(4), 0, 0
    for op, most in ((ops.sum, 2**40), (ops.sum, 2**62), (ops.max, 2**63)):
        values = np.random.default_rng(4).integers(-most, most, 1500)
        values[::7] = -most
        for turn in range(16):
            size, before = source.randrange(1, 120), source.randrange(200)
            found = []
            for threads, chosen in (("1", narrow), ("2", narrow), ("1", lambda *_: None)):
                monkeypatch.setenv("SASH_THREADS", threads)
                monkeypatch.setattr(in_pieces, "narrow", chosen)
                window = kind(op.of(int))
                window.slide(np.arange(before), 150)
                while turn % 2 and len(window) > size:
                    window.evict()
                pieces = window._pieces(len(values) - before, size, ends=True)
                answers = b""
                with suppress(OverflowError):
                    answers = window.slide(values[before:], size).tobytes()
                window._check()
                found.append((answers, window.to_bytes()))
            assert found[0] == found[1] == found[2]
            fits = narrow(op.of(int), read(values, 1), size) is not None
            used, pieced = used + fits, pieced + (fits and len(pieces) > 2)
    assert used > 10
    assert pieced > 10
    rows = pytest.importorskip("pyarrow").array([None, *range(400)])
    assert narrow(ops.sum.of(int), read(rows, 1), 5) is None
    most = read(np.array([2**62, 1]), 1)
    assert narrow(ops.sum.of(int), most, 1) is not None
    assert narrow(ops.sum.of(int), most, 2) is None


@pytest.mark.once
def test_an_answer_that_does_not_exist_ends_a_slide_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where it is that of a piece's first or last row."""
    monkeypatch.setattr(in_pieces, "PIECE", 50)
    pieces = TwoStacksLite(ops.sum.of(int))._pieces(1000, 20)
    assert len(pieces) > 4
    rows = {701, *(row for first, last in pieces for row in (first, last - 1))} - {0}
    for row, threads in itertools.product(sorted(rows), "12"):
        monkeypatch.setenv("SASH_THREADS", threads)
        values = np.zeros(1000, dtype=np.int64)
        values[row - 1 : row + 1] = 2**62
        window = TwoStacksLite(ops.sum.of(int))
        with pytest.raises(OverflowError, match=f"row {row}: the sum leaves int64"):
            window.slide(values, 20)
        window._check()
        assert len(window) == 20
        for _ in range(19):
            window.evict()
        assert window.query() == 2**62


@pytest.mark.once
@pytest.mark.parametrize("kind", [TwoStacksLite, DabaLite])
def test_an_interrupt_of_a_slide_in_pieces_loses_nothing(
    kind: type[in_pieces.InPieces], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window holds the values up to one of them, or refuses further use."""
    monkeypatch.setattr(in_pieces, "PIECE", 50)
    monkeypatch.setenv("SASH_THREADS", "1")  # so that each of its lines has a number
    values = np.arange(400)
    slid = kind(ops.sum.of(int))
    assert len(slid._pieces(400, 20, ends=True)) > 2
    slid.slide(values, 20)
    with interrupted(0) as lines:
        slid.slide(values, 20)
    refused = 0
    for n in range(1, lines[0] + 1):
        window = kind(ops.sum.of(int))
        window.slide(np.arange(-20, 0), 20)
        with suppress(KeyboardInterrupt), interrupted(n):
            window.slide(values, 20)
        if refusal(window.query) == "":
            window._check()
            assert len(window) == 20
            assert window.query() % 20 == 10  # of 20 neighbours
        else:
            refused += 1
    assert refused < lines[0] // 4


def test_from_bytes_refuses_what_does_not_fit() -> None:
    data = TwoStacksLite(SUM).to_bytes()
    with pytest.raises(ValueError, match="no window of sash"):
        TwoStacksLite.from_bytes(b"something else", SUM)
    with pytest.raises(ValueError, match="checksum"):
        TwoStacksLite.from_bytes(data[:-1] + b"\x01", SUM)
    with pytest.raises(ValueError, match="version 9"):
        TwoStacksLite.from_bytes(data[:4] + b"\x09\x00" + data[6:], SUM)
    with pytest.raises(ValueError, match="hold a TwoStacksLite of sum"):
        DabaLite.from_bytes(data, SUM)
    with pytest.raises(ValueError, match="cannot become a TwoStacksLite of max"):
        TwoStacksLite.from_bytes(data, ops.max.of(int))
    nameless = sash.operator(identity={}, lift=lambda x: {x: 1}, combine=lambda a, b: {**a, **b})
    with pytest.raises(TypeError, match="without encode and decode"):
        TwoStacksLite(nameless).to_bytes()
