"""Every ready operator obeys the laws, and a wrong declaration is caught, by its name."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import strategies as st

import sash
from sash import operators
from sash.operators.codec import decode_value, encode_value
from sash.operators.contract import Operator
from sash.operators.decimals import decimal_operator
from sash.operators.together import together
from sash.testing import LawError, laws, values_of
from thinning import examples


def test_ready_operators_obey(form: Operator) -> None:
    laws(form, max_examples=examples(20))


def test_text_and_times_obey() -> None:
    text = st.none() | st.text(max_size=3)
    for op in (operators.max, operators.min_count, operators.collect_distinct, operators.first,
               operators.count_distinct, operators.bloom(64), operators.hll()):  # fmt: skip
        laws(op, text, max_examples=examples(30))
    times = st.none() | st.datetimes()
    for op in (operators.max, operators.span, operators.last, operators.collect,
               operators.count_distinct, operators.count_min(8, 2), operators.hll(4)):  # fmt: skip
        laws(op, times, max_examples=examples(30))
    laws(operators.arg_max, st.tuples(text, times), max_examples=examples(30))
    laws(operators.longest_run, st.tuples(st.datetimes(), st.floats()), max_examples=examples(30))


def test_decimals_obey() -> None:
    """Of few digits, as whole numbers in words, and of many, as Python's."""
    for name in ("sum", "mean"):
        small, large = decimal_operator(name, 18, 2), decimal_operator(name, 30, 4)
        laws(small.of("int64"), st.none() | st.integers(1 - 10**18, 10**18 - 1), max_examples=30)
        digits = st.decimals(-(10**25), 10**25, places=4)
        laws(large, st.none() | digits, max_examples=30)


def test_sketches_beyond_exactness_obey() -> None:
    """Lists long enough that the sketches really estimate."""
    many = st.lists(st.integers(0, 10**6), min_size=400, max_size=400)
    packed = many.map(tuple)

    def of_tuples(op: Operator) -> Operator:
        def lift(xs: tuple[int, ...]) -> object:
            return op.fold(xs)

        return dataclasses.replace(op, lift=lift, typed=None)

    for op in (operators.hll(6), operators.quantiles(20)):
        laws(of_tuples(op), packed, max_examples=examples(5))


def make(**given: object) -> Operator:
    basic: dict[str, object] = {"identity": 0, "lift": lambda x: x, "combine": lambda a, b: a + b}
    return sash.operator(**(basic | {"name": "mine"} | given))  # type: ignore[arg-type]


def broken(op: Operator, values: object = None) -> LawError:
    with pytest.raises(LawError) as caught:
        laws(op, values, max_examples=50)
    message = str(caught.value)
    assert repr(op) in message
    for law in caught.value.laws:
        assert f"{law}: " in message
    return caught.value


NUMBERS = st.integers(-9, 9)


def test_a_right_operator_of_a_users_passes() -> None:
    laws(make(inverse=lambda total, old: total - old, commutative=True), NUMBERS)
    laws(make(identity=(), lift=lambda x: (x,)))
    laws(make(identity="", lift=str))
    laws(make(identity="", combine=lambda a, b: a + b))  # strings are found by trial


def test_sums_of_products_pass_where_partials_are_floats() -> None:
    """The values are small enough for their products: rounding is no broken law."""
    weighted = sash.operator(
        identity=(0.0, 0.0),
        lift=lambda x, weight: (x * weight, weight),
        combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
        commutative=True,
    )
    squares = sash.operator(identity=0.0, lift=lambda x: x * x, combine=lambda a, b: a + b)
    for _ in range(5):
        laws(weighted)
        laws(squares)


def test_subtraction_is_not_associative() -> None:
    error = broken(make(combine=lambda a, b: a - b), NUMBERS)
    assert "associativity" in error.laws
    assert "combine(combine(a, b), c) == combine(a, combine(b, c))" in str(error)


def test_averages_of_averages_are_not_associative() -> None:
    def average(a: object, b: object) -> object:
        if a is EMPTY or b is EMPTY:
            return b if a is EMPTY else a
        return (a[0] + b[0]) / 2, 1  # type: ignore[index]

    EMPTY = (0.0, 0)
    op = make(identity=EMPTY, lift=lambda x: (float(x), 1), combine=average)
    error = broken(op, st.integers(0, 9))
    assert error.laws == ("associativity", "fold")


def test_zero_is_no_identity_of_max() -> None:
    error = broken(make(combine=max), NUMBERS)
    assert error.laws[0] == "identity"
    assert "a = -1 (of values [-1])" in str(error)
    laws(make(combine=max), st.integers(0, 9))


def test_an_identity_must_be_neutral_on_both_sides() -> None:
    left = make(identity="", lift=str, combine=lambda a, b: b)
    assert "combine(a, identity) == a" in str(broken(left, NUMBERS))
    right = make(identity="", lift=str, combine=lambda a, b: a)
    assert "combine(identity, a) == a" in str(broken(right, NUMBERS))


def test_concatenation_is_not_commutative() -> None:
    error = broken(make(identity="", lift=str, commutative=True), NUMBERS)
    assert error.laws == ("commutativity",)
    lying = dataclasses.replace(operators.collect, commutative=True)
    assert broken(lying).laws == ("commutativity",)


def test_max_has_no_inverse() -> None:
    lying = dataclasses.replace(operators.max.of(int), inverse=lambda total, old: total)
    error = broken(lying)
    assert error.laws == ("inverse",)
    assert "inverse(combine(a, b), a) == b" in str(error)


def test_an_inverse_takes_out_the_oldest_part_not_the_youngest() -> None:
    lying = make(identity="", lift=str, inverse=lambda total, old: total[: len(total) - len(old)])
    assert broken(lying, NUMBERS).laws == ("inverse",)
    laws(make(identity="", lift=str, inverse=lambda total, old: total[len(old) :]), NUMBERS)


def test_float_sums_have_no_exact_inverse() -> None:
    lying = make(identity=0.0, lift=float, inverse=lambda total, old: total - old)
    assert "inverse" in broken(lying, st.sampled_from([0.1, 0.2, 0.7, 1e9])).laws


def grow(a: list[object], b: list[object]) -> list[object]:
    a.extend(b)
    return a


def test_combine_must_not_mutate() -> None:
    error = broken(make(identity=[], lift=lambda x: [x], combine=grow), NUMBERS)
    assert error.laws == ("no mutation",)
    assert "combine changes its argument a" in str(error)
    assert "[0]" in str(error)
    laws(make(identity=[], lift=lambda x: [x]), NUMBERS)


def test_a_mutating_combine_spoils_neither_operator_nor_next_check() -> None:
    op = make(identity=[], lift=lambda x: [x], combine=grow)
    first = broken(op, NUMBERS)
    assert op.identity == []
    assert str(broken(op, NUMBERS)) == str(first)


def test_lower_must_not_mutate() -> None:
    def lower(a: list[int]) -> int | None:
        return a.pop() if a else None

    error = broken(make(identity=[], lift=lambda x: [x], lower=lower), NUMBERS)
    assert error.laws == ("no mutation",)
    assert "lower changes its argument a" in str(error)


def test_a_vector_combine_writes_only_into_out() -> None:
    def add(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        a += b
        out[:] = a

    def lift(out: np.ndarray, x: int) -> None:
        out[0] = x

    zeros = np.zeros(2, dtype=np.int64)
    error = broken(make(identity=zeros, lift=lift, combine=add), NUMBERS)
    assert error.laws == ("no mutation",)
    good = make(identity=zeros, lift=lift, combine=lambda out, a, b: np.add(a, b, out))
    laws(good, NUMBERS)
    unset = make(identity=zeros, lift=lift, combine=lambda out, a, b: np.maximum(a, b, out=out))
    assert "identity" in broken(unset, NUMBERS).laws


def test_decode_must_give_back_what_encode_was_given() -> None:
    def decode(data: bytes) -> object:
        return decode_value(data)[:2]

    error = broken(dataclasses.replace(operators.collect, decode=decode))
    assert error.laws == ("codec",)
    assert "decode(encode(a)) == a" in str(error)
    raising = dataclasses.replace(operators.collect, decode=lambda data: decode_value(data[1:]))
    assert "raises ValueError" in str(broken(raising))
    text = dataclasses.replace(operators.collect, encode=repr)  # type: ignore[arg-type]
    assert "no bytes" in str(broken(text))


def test_the_codec_of_each_part_is_checked() -> None:
    bad = dataclasses.replace(operators.collect, decode=lambda data: ())
    assert broken(together(operators.sum, bad)).laws == ("codec",)


def test_equal_is_what_compares() -> None:
    near = make(
        identity=0.0, lift=float, commutative=True, equal=lambda a, b: abs(a - b) <= 1e-6,
        inverse=lambda total, old: total - old,
    )  # fmt: skip
    laws(near, st.floats(-100, 100))
    laws(make(identity=frozenset(), lift=lambda x: frozenset([x]), combine=lambda a, b: a | b))
    never = make(equal=lambda a, b: False)
    assert "identity" in broken(never, NUMBERS).laws


def test_a_null_answer_is_not_equal_to_a_value() -> None:
    """-0.0 equals 0.0, but the one lowers to null and the other to a value."""
    none_of = make(
        identity=-0.0, lift=float, combine=lambda a, b: a + b + 0.0, encode=encode_value,
        decode=decode_value, lower=lambda a: None if str(a) == "-0.0" else a,
    )  # fmt: skip
    assert "identity" in broken(none_of, NUMBERS).laws


def test_values_that_an_operator_does_not_take_say_what_to_do() -> None:
    picky = make(lift=lambda x: x.imaginary)
    with pytest.raises(AttributeError) as caught:
        laws(picky)
    assert any("hypothesis strategy" in note for note in caught.value.__notes__)
    with pytest.raises(TypeError, match="laws are for operators"):
        laws(max)  # type: ignore[arg-type]


def test_the_smallest_example_is_shown() -> None:
    capped = make(combine=lambda a, b: a + b if a + b < 10 else 0)
    error = broken(capped, st.integers(0, 6))
    assert error.laws == ("associativity", "fold")
    parts = [line for line in str(error).splitlines() if " = " in line and "of values" in line]
    assert len(parts) == 3
    assert sum(len(line.split("values [")[1].split(",")) for line in parts) <= 5


def test_made_up_values_suit_the_types() -> None:
    from hypothesis import find

    for type_, wanted in {"int64": int, "float64": float, "bool": bool, "timestamp": int}.items():
        found = find(values_of(operators.max.of(type_)), lambda x: x is not None)
        assert type(found) is wanted
        assert find(values_of(operators.max.of(type_)), lambda x: x is None) is None
    assert find(values_of(operators.max.of(float)), lambda x: x is not None and x != x)
    assert isinstance(find(values_of(operators.concat), lambda x: x), str)


def test_importing_needs_neither_hypothesis_nor_numba() -> None:
    code = (
        "import sys, sash.testing\n"
        "assert 'hypothesis' not in sys.modules, 'hypothesis'\n"
        "assert 'numba' not in sys.modules, 'numba'\n"
        "sys.modules['hypothesis'] = None\n"
        "try:\n"
        "    sash.testing.laws(sash.operators.max)\n"
        "except ImportError as error:\n"
        "    assert 'sash[test]' in str(error), error\n"
        "else:\n"
        "    raise SystemExit('no error without hypothesis')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_numbers_are_tried_beyond_what_is_usual() -> None:
    """An operator that only breaks a law for large numbers is caught, tied to types or not."""
    narrow = make(combine=lambda a, b: a + b if abs(a + b) < 100_000 else a)
    assert "associativity" in broken(narrow).laws


def test_the_example_of_an_operator_obeys() -> None:
    laws(
        sash.operator(
            identity=0,
            lift=lambda x: min(max(x, 0), 100),
            combine=lambda a, b: min(a + b, 100),
            commutative=True,
        ),
        st.integers() | st.none(),
    )
