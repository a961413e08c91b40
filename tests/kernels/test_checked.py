"""Memory that checks its bounds, which kernels work on with the JIT off."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sash.kernels import checked

pytestmark = pytest.mark.plain


def test_an_address_outside_of_living_arrays_raises() -> None:
    whole = np.arange(8)
    part = checked.register(whole[2:4])
    at = part.ctypes.data
    assert (checked.load_i(at), checked.load_i(at + 8)) == (2, 3)
    for beyond in (at - 8, at - 1, at + 9, at + 16):
        with pytest.raises(IndexError, match="outside its memory"):
            checked.load_i(beyond)
        with pytest.raises(IndexError, match="outside its memory"):
            checked.store_i(beyond, 1)
    checked.register(whole)
    assert checked.load_i(at + 16) == 4, "an array around it has it"
    del part
    assert checked.load_i(at) == 2
    assert whole.tolist() == list(range(8))


def test_an_array_that_is_gone_cannot_be_touched() -> None:
    whole = np.arange(4)
    part = checked.register(whole[:])
    at = part.ctypes.data
    assert checked.load_i(at) == 0
    del part
    with pytest.raises(IndexError, match="outside its memory"):
        checked.load_i(at)


def test_many_arrays_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked, "_known", ([], []))  # other tests may have left many
    monkeypatch.setattr(checked, "_most", 16)
    alive = [checked.register(np.array([i])) for i in range(50)]
    for i in range(500):
        alive[i % 50] = checked.register(np.array([i]))
        assert checked.load_i(alive[(7 * i) % 50].ctypes.data) == alive[(7 * i) % 50][0]
    assert [checked.load_i(a.ctypes.data) for a in alive] == list(range(450, 500))
    assert len(checked._known[0]) < 200


def test_what_is_read_only_is_not_written() -> None:
    array = np.arange(3)
    array.flags.writeable = False
    checked.register(array)
    with pytest.raises(ValueError, match="read-only"):
        checked.store_i(array.ctypes.data, 1)


@pytest.mark.parametrize(
    ("name", "dtype", "values"),
    [
        ("i", np.int64, [0, -1, 2**63 - 1, -(2**63), np.int64(7), True, np.bool_(True)]),
        ("u", np.uint64, [np.uint64(2**64 - 1), np.uint64(0), 3]),
        ("f", np.float64, [1.5, -0.0, math.inf, math.nan, np.float64(2.5), 3]),
    ],
)
def test_a_value_comes_back(name: str, dtype: Any, values: list[Any]) -> None:
    array = checked.register(np.zeros(1, dtype))
    at = array.ctypes.data
    for value in values:
        getattr(checked, f"store_{name}")(at, value)
        found = getattr(checked, f"load_{name}")(at)
        assert type(found) in (int, float, np.uint64)
        assert repr(dtype(found)) == repr(dtype(value)) == repr(array[0])


def test_integers_beyond_a_word_are_refused() -> None:
    array = checked.register(np.zeros(1, np.int64))
    for value in (2**63, -(2**63) - 1):
        with pytest.raises(OverflowError):
            checked.store_i(array.ctypes.data, value)
    with pytest.raises(OverflowError):
        checked.output_byte(array.ctypes.data, 0, 256)
    half = checked.register(np.zeros(1, np.int32))
    for value in (2**31 - 1, -(2**31), np.int64(7)):
        checked.store_half(half.ctypes.data, value)
        assert half[0] == value
    with pytest.raises(OverflowError):
        checked.store_half(half.ctypes.data, 2**31)
