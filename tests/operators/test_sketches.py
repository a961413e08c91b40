"""bloom and count_min exactly, hll, quantiles and top_k within their bounds."""

import math
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.aggregators import TwoStacksLite
from sash.operators import (
    bloom,
    count_min,
    estimate,
    hll,
    might_contain,
    quantiles,
    sketches,
    top_k,
)
from sash.operators.contract import same
from sash.operators.together import together

NAN, INF = math.nan, math.inf
INTS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
VALUES = {
    "int64": INTS,
    "float64": st.floats() | st.sampled_from([NAN, INF, -INF, -0.0, 0.0]),
    "bool": st.booleans(),
    "timestamp": st.integers(-(10**15), 10**15),
}
PLAIN = st.one_of(INTS, VALUES["float64"], st.text(), st.binary(), st.integers(), st.booleans())
# Made anew for each test: a sketch that outlives the interpreter's last moments makes its
# library complain of leaks.
MAKERS = {
    "bloom": lambda: bloom(256, 3),
    "count_min": lambda: count_min(16, 3),
    "hll": lambda: hll(8),
    "quantiles": lambda: quantiles(16),
    "top_k": lambda: top_k(3),
}
ALL, VECTORS, LIBRARY = list(MAKERS), list(MAKERS)[:2], list(MAKERS)[2:]


@pytest.fixture
def op(request):
    return MAKERS[request.param]()


def bracketed(op, values, random):
    if len(values) <= 1 and random.random() < 0.8:
        return op.python_lift()(values[0]) if values else op.identity
    cut = random.randint(0, len(values))
    left, right = bracketed(op, values[:cut], random), bracketed(op, values[cut:], random)
    return op.python_combine()(left, right)


# hashing


def splitmix64(v):
    """The published finaliser, on unsigned integers."""
    mask = 2**64 - 1
    v = ((v ^ (v >> 30)) * 0xBF58476D1CE4E5B9) & mask
    v = ((v ^ (v >> 27)) * 0x94D049BB133111EB) & mask
    return v ^ (v >> 31)


@given(INTS)
def test_mixing_is_splitmix64_s(v):
    assert sketches._mix(v) % 2**64 == splitmix64(v % 2**64)
    assert -(2**63) <= sketches._mix(v) < 2**63


@given(st.integers())
def test_wrapping_keeps_the_low_64_bits(v):
    assert sketches._wrap(v) % 2**64 == v % 2**64
    assert -(2**63) <= sketches._wrap(v) < 2**63


def test_mixing_is_the_same_compiled():
    from numba import njit

    wrap = njit(sketches._wrap)
    inner = {**sketches._mix.__globals__, "_wrap": wrap}
    mix = njit(type(sketches._mix)(sketches._mix.__code__, inner))
    inner["_mix"] = mix
    place = njit(type(sketches._place)(sketches._place.__code__, inner))
    values = [0, 1, -1, 2**63 - 1, -(2**63), 123456789, -987654321987654321]
    random = np.random.default_rng(0)
    values += random.integers(-(2**63), 2**63 - 1, 500).tolist()
    for v in values:
        assert mix(v) == sketches._mix(v)
        for i in (0, 1, 63):
            assert place(v, i, 1000) == sketches._place(v, i, 1000)


def test_equal_values_have_equal_codes():
    other_nan = np.array([0xFFF8000000000001], dtype=np.uint64).view(np.float64)[0]
    early = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    for a, b in [
        (-0.0, 0.0),
        (NAN, other_nan),
        (np.int64(5), 5),
        (True, 1),
        ((1, -0.0), (1, 0.0)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (Decimal("1.50"), Decimal("1.5")),
        (datetime(2024, 1, 1), np.datetime64("2024-01-01", "D")),
        (early, np.datetime64(-1, "us")),
        (early, np.datetime64(-1, "ns")),
        (-1, np.datetime64(-1, "us")),
    ]:
        assert sketches._code(a) == sketches._code(b), (a, b)
    different = ["", "a", b"a", ("a",), "é", 2**64, 2**64 + 1, 0.5, -0.5, ("a", "b"), ("ab", "")]
    assert len({sketches._code(x) for x in different}) == len(different)


def test_codes_are_the_same_in_every_process():
    code = "from sash.operators.sketches import _code; print(_code(frozenset('abc')), _code('é'))"
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1


# bloom and count_min


@given(st.lists(PLAIN | st.none()), st.randoms())
def test_bloom_holds_what_went_in(values, random):
    op = bloom(500, 4)
    held = bracketed(op, values, random)
    assert same(held, op.fold(values))
    assert all(might_contain(held, v) for v in values if v is not None)
    assert held.dtype == np.uint64


def test_bloom_is_wrong_about_as_often_as_it_says():
    held = bloom(10_000).fold(range(1000))
    wrong = sum(might_contain(held, v) for v in range(1000, 11_000))
    assert wrong < 200
    text = bloom(10_000).fold([f"k{i}" for i in range(1000)])
    assert sum(might_contain(text, f"n{i}") for i in range(10_000)) < 200


def test_an_empty_bloom_filter_holds_nothing():
    assert not might_contain(bloom(64).fold([]), 0)
    assert not might_contain(bloom(64).fold([None]), 0)


@given(st.lists(PLAIN | st.none()), st.randoms(), st.data())
def test_count_min_never_counts_too_few(values, random, data):
    op = count_min(20, 3)
    there = [v for v in values if v is not None]
    counts = bracketed(op, values, random)
    assert same(counts, op.fold(values))
    for v in there:
        assert sum(same(v, x) and type(v) is type(x) for x in there) <= estimate(counts, v, 20, 3)
        assert estimate(counts, v, 20, 3) <= len(there)
    cut = data.draw(st.integers(0, len(values)))
    left = op.python_inverse()(counts, op.fold(values[:cut]))
    assert same(left, op.fold(values[cut:]))


def test_count_min_is_as_close_as_it_says():
    width, depth = 256, 4
    values = [min(int(x), 999) for x in np.random.default_rng(1).zipf(1.3, 5000)]
    counts, truth = count_min(width, depth).fold(values), Counter(values)
    over = [estimate(counts, v, width, depth) - n for v, n in truth.items()]
    assert min(over) >= 0
    far = sum(x > math.e * len(values) / width for x in over)
    assert far <= max(1, 2 * math.exp(-depth) * len(over))


def test_estimate_refuses_another_shape():
    with pytest.raises(ValueError, match="width 16 times depth 4"):
        estimate(count_min(16, 3).fold([1]), 1, 16, 4)


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("type_", VALUES)
@given(data=st.data())
def test_typed_and_generic_vectors_are_identical(name, type_, data):
    op = MAKERS[name]()
    values = data.draw(st.lists(VALUES[type_] | st.none(), max_size=6))
    tied = op.of(type_)
    assert tied.shape == "vector"
    assert tied.compile
    assert same(tied.fold(values), op.fold(values))


@pytest.mark.parametrize(
    "column",
    [
        np.array([1.5, -0.0, 0.0, NAN, -INF, INF, 1e300, NAN]),
        np.array([0, 1, -1, 2**63 - 1, -(2**63), 77, 77]),
        np.array([True, False, True]),
        np.array(["1969-12-31T23:59:59.999999", "2024-01-01", "2024-01-02"], dtype="M8[us]"),
    ],
    ids=["float64", "int64", "bool", "timestamp"],
)
def test_compiled_and_generic_vectors_are_identical(column):
    values = list(column) if column.dtype.kind == "M" else column.tolist()
    ops = [MAKERS[name]() for name in VECTORS]
    window = TwoStacksLite(together(*ops))  # in one kernel
    for op, got in zip(ops, window.slide(column, 3), strict=True):
        assert window.operator.types
        assert same(got, np.stack(TwoStacksLite(op).slide(values, 3)))
        if "bloom" in op.name:
            assert all(might_contain(row, v) for row, v in zip(got, values, strict=True))


def test_strings_run_in_plain_python():
    words = ["a", "b", None, "a"]
    for op in (bloom(300, 5), count_min(32, 3)):
        got = TwoStacksLite(op).slide(words, 2)
        want = [op.fold(words[max(0, i - 1) : i + 1]) for i in range(4)]
        assert same(np.stack(got), np.stack(want))
        assert same(op.of(str).fold(words), op.fold(words))


# all of them


@pytest.mark.parametrize("op", ALL, indirect=True)
def test_combine_changes_neither_argument(op):
    values = [str(i % 40) for i in range(400)] if "top" in op.name else list(range(400))
    lower, encode = op.python_lower(), op.encode or (lambda p: p.tobytes())
    a, b = op.fold(values[:250]), op.fold(values[250:])
    before = encode(a), encode(b), encode(op.identity)
    both = op.python_combine()(a, b)
    op.python_combine()(op.identity, both)
    op.python_combine()(both, op.identity)
    lower(both)
    assert (encode(a), encode(b), encode(op.identity)) == before


@pytest.mark.parametrize("op", LIBRARY, indirect=True)
def test_sketches_leave_and_come_back(op):
    values = [str(i % 40) for i in range(400)] if "top" in op.name else list(range(400))
    for partial in (op.identity, op.fold(values[:3]), op.fold(values)):
        again = op.decode(op.encode(partial))
        assert op.equal(again, partial)
        assert op.lower(again) == op.lower(partial)
        assert op.equal(op.combine(again, op.fold(values)), op.combine(partial, op.fold(values)))


@pytest.mark.parametrize("op", ALL, indirect=True)
def test_declared_abilities(op):
    assert op.commutative
    assert op.invertible == op.name.startswith("count_min")


@given(st.lists(st.integers(0, 60), max_size=80), st.randoms())
def test_bracketing_changes_a_sketch_only_within_its_bound(values, random):
    for op in (hll(7), quantiles(8), top_k(3)):
        rows = [str(v) for v in values] if "top" in op.name else values
        assert op.equal(bracketed(op, rows, random), op.fold(rows))


@pytest.mark.parametrize("op", LIBRARY, indirect=True)
def test_equal_tells_different_streams_apart(op):
    a, b = [str(i % 7) for i in range(300)], [str(i) for i in range(500)]
    if "top" not in op.name:
        a, b = [float(x) for x in a], [float(x) for x in b]
    assert op.equal(op.identity, op.fold([]))
    assert not op.equal(op.fold(a), op.fold(b))
    assert not op.equal(op.identity, op.fold(b))


# hll


def test_hll_counts_distinct_values():
    op = hll()
    assert op.lower(op.identity) == 0.0
    for n in (10, 1000, 50_000):
        partial = op.combine(op.fold(range(n // 2)), op.fold(range(n // 4, n)))
        assert abs(op.lower(partial) - n) <= 0.05 * n
    mixed = ["", "a", b"a", 1, 2**64, 2**64 + 1, ("a",), np.datetime64(7, "us"), None, Decimal(1)]
    assert round(op.lower(op.fold(mixed + mixed))) == 9
    assert round(op.lower(op.fold([-0.0, 0.0, NAN, np.float64("nan"), INF]))) == 3


def test_hll_merges_with_the_library_s_own_sketches():
    import datasketches

    theirs = datasketches.hll_sketch(12)
    for v in ["a", "b", 5, 2.5]:
        theirs.update(v)
    both = hll().combine(theirs, hll().fold(["b", "a", 5, 2.5]))
    assert round(hll().lower(both)) == 4


# quantiles


@given(st.lists(st.floats(allow_nan=False) | st.integers(-5, 5) | st.none(), max_size=100))
def test_few_values_have_exact_quantiles(values):
    ranks = (0.0, 0.25, 0.5, 1.0)
    there = sorted(float(v) for v in values if v is not None)
    want = None
    if there:
        want = tuple(there[max(0, math.ceil(p * len(there)) - 1)] for p in ranks)
    op = quantiles(at=ranks)
    assert same(op.lower(op.fold(values)), want)


def test_many_values_have_quantiles_within_the_bound():
    op = quantiles(k=200, at=(0.1, 0.5, 0.99))
    values = np.random.default_rng(2).permutation(20_000)
    partial = op.combine(op.fold(values[:9000].tolist()), op.fold(values[9000:].tolist()))
    for p, x in zip((0.1, 0.5, 0.99), op.lower(partial), strict=True):
        assert abs(x / 20_000 - p) <= 3 * 0.0133


def test_quantiles_leave_nan_out_and_refuse_text():
    op = quantiles()
    assert op.lower(op.fold([NAN])) is None
    assert op.lower(op.fold([NAN, 3, INF, True])) == (3.0,)
    with pytest.raises(TypeError, match="no number"):
        op.lift("3")
    assert quantiles(at=(0.5, 0.99)).fields == ("q0.5", "q0.99")


# top_k


@given(st.lists(st.sampled_from(["", "a", "b", "é", "long " * 9]) | st.none(), max_size=60))
def test_few_strings_are_counted_exactly(words):
    there = Counter(w for w in words if w is not None)
    want = sorted(there.items(), key=lambda item: (-item[1], item[0]))[:3]
    op = top_k(3)
    assert op.lower(op.fold(words)) == want


def test_many_strings_are_counted_within_the_bound():
    words = [str(min(int(x), 10**6)) for x in np.random.default_rng(3).zipf(1.2, 20_000)]
    op, truth = top_k(5), Counter(words)
    got = op.lower(op.combine(op.fold(words[:7000]), op.fold(words[7000:])))
    assert [w for w, _ in got][:3] == [w for w, _ in truth.most_common(3)]
    for word, count in got:
        assert abs(count - truth[word]) <= 3.5 / 1024 * len(words)


def test_top_k_counts_strings_only():
    with pytest.raises(TypeError, match="strings, not 5"):
        top_k(2).lift(5)


# parameters


@pytest.mark.parametrize(
    "make",
    [
        lambda: bloom(0),
        lambda: bloom(64, 0),
        lambda: count_min(0, 1),
        lambda: count_min(1, 0),
        lambda: hll(3),
        lambda: hll(22),
        lambda: quantiles(7),
        lambda: quantiles(at=()),
        lambda: quantiles(at=(1.5,)),
        lambda: quantiles(at=(NAN,)),
        lambda: quantiles(at=(0.5, 0.5)),
        lambda: top_k(0),
    ],
)
def test_parameters_out_of_range_are_refused(make):
    with pytest.raises(ValueError, match="must be"):
        make()


@pytest.mark.parametrize("make", [bloom, lambda n: count_min(n, 2), hll, quantiles, top_k])
def test_parameters_must_be_whole_numbers(make):
    for wrong in (2.0, "8", True):
        with pytest.raises(TypeError, match="whole number"):
            make(wrong)


@pytest.mark.parametrize("make", [hll, quantiles, lambda: top_k(3)])
def test_without_the_library_the_error_says_what_to_install(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(ImportError, match=r"pip install 'sash\[sketches\]'"):
        make()


def test_the_library_is_imported_when_it_is_used():
    code = "import sys, sash.operators; assert 'datasketches' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
