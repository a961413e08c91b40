"""The loads and stores of `native` in plain Python, with bounds checks.

Kernels use them when the JIT is off.  They are slower, a debugger can step through them, and an
access outside all known arrays raises instead of reading whatever lies there.
"""

from __future__ import annotations

import ctypes
import math
import os
import weakref
from bisect import bisect_right
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np

__all__ = [
    "as_int",
    "at_f",
    "at_i",
    "at_u",
    "below",
    "column_byte",
    "column_f",
    "column_i",
    "header_word",
    "inline",
    "inner",
    "lanes_apart",
    "lanes_at",
    "linked",
    "load_f",
    "load_i",
    "load_table",
    "load_u",
    "max_of",
    "min_of",
    "move_bytes",
    "output_byte",
    "output_f",
    "output_i",
    "register",
    "root_of",
    "set_header_word",
    "set_lanes_apart",
    "set_lanes_at",
    "set_ranks",
    "set_word",
    "short",
    "some",
    "store_f",
    "store_half",
    "store_i",
    "store_u",
    "view_f",
    "view_i",
    "view_u",
    "word",
    "zeros",
]

#: An array that kernels may touch: the address of its first byte, the address after its last byte,
#: a weak reference to it, and whether it is writable.
_Known = tuple[int, int, weakref.ref[np.ndarray[Any, Any]], bool]

#: The first bytes of all known arrays, in order, and the arrays in the same order.  Some may be
#: views of one array.  Threads replace the pair as a whole, as other threads read it meanwhile.
_known: tuple[list[int], list[_Known]] = ([], [])
#: When there are so many known arrays, `register` drops the dead ones.
_most = 16
#: The array that a kernel touched last: it is likely to be the next, too.
_last: _Known = (0, 0, weakref.ref(np.empty(0)), False)
_registering = Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_registering.acquire,
        after_in_parent=_registering.release,
        after_in_child=_registering.release,
    )


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """Stands for the decorators that compile: leaves the function as it is."""
    return function


inline = linked = inner
as_int, min_of, max_of = int, min, max


def short(i: int) -> int:
    """A loop's index."""
    return i


def some(value: Any) -> Any:
    """A value that is known not to be None."""
    return value


def register(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Allow access to an array's memory for as long as the array lives."""
    global _known, _most
    at = array.ctypes.data
    with _registering:
        starts, arrays = list(_known[0]), list(_known[1])
        if len(starts) >= _most:
            arrays = [known for known in arrays if known[2]() is not None]
            starts = [known[0] for known in arrays]
            _most = 16 + 2 * len(starts)
        i = bisect_right(starts, at)
        starts.insert(i, at)
        arrays.insert(i, (at, at + array.nbytes, weakref.ref(array), array.flags.writeable))
        _known = starts, arrays
    return array


def _find(address: int, length: int) -> _Known:
    """Find a living array that contains all these bytes; raise if there is none."""
    global _last
    starts, arrays = _known
    for i in range(bisect_right(starts, address) - 1, -1, -1):
        if address + length <= arrays[i][1] and arrays[i][2]() is not None:
            _last = arrays[i]
            return _last
    raise IndexError(f"a kernel touched {length} bytes at {address}, outside its memory")


def _bytes(address: int, length: int) -> np.ndarray[Any, Any]:
    """A view of the bytes at an address; raises if they do not all lie inside one array."""
    start, _, ref, _ = _find(address, length)
    array = some(ref())
    return array.view(np.uint8)[address - start : address - start + length]  # type: ignore[no-any-return]


def _access(
    dtype: Any, cell: Any, plain: Any, least: float = -math.inf, most: float = math.inf
) -> tuple[Any, Any]:
    """Make a load and a store of one type, which `dtype` names for numpy, `cell` for ctypes and
    `plain` for Python.  They use ctypes, which is faster than numpy.  numpy converts or refuses a
    value of another type, or one that is not between `least` and `most`."""
    size = np.dtype(dtype).itemsize
    at = cell.from_address

    def load(address: int) -> Any:
        start, end, ref, _ = _last
        if address < start or address + size > end or ref() is None:
            _find(address, size)
        return plain(at(address).value)

    def store(address: int, value: Any) -> None:
        start, end, ref, writable = _last
        if address < start or address + size > end or ref() is None:
            writable = _find(address, size)[3]
        if writable and type(value) is plain and (least <= value <= most or value != value):
            at(address).value = value
        else:
            _bytes(address, size).view(dtype)[0] = value

    return load, store


load_i, store_i = _access(np.int64, ctypes.c_int64, int, -(2**63), 2**63 - 1)
load_u, store_u = _access(np.uint64, ctypes.c_uint64, np.uint64)
_, store_half = _access(np.int32, ctypes.c_int32, int, -(2**31), 2**31 - 1)
load_f, store_f = _access(np.float64, ctypes.c_double, float)
load_table = load_i
column_i, column_f = load_i, load_f
column_byte, _store_byte = _access(np.uint8, ctypes.c_uint8, int, 0, 255)


def output_i(start: int, i: int, value: int) -> None:
    """Store the integer with number `i` after an address."""
    store_i(start + 8 * i, value)


def output_f(start: int, i: int, value: float) -> None:
    """Store the float with number `i` after an address."""
    store_f(start + 8 * i, value)


def output_byte(start: int, i: int, value: int) -> None:
    """Store the byte with number `i` after an address."""
    _store_byte(start + i, value)


def at_i(start: int, i: int) -> Any:
    """Load the integer with number `i` after an address."""
    return load_i(start + 8 * i)


def at_u(start: int, i: int) -> Any:
    """Load the unsigned integer with number `i` after an address."""
    return load_u(start + 8 * i)


def at_f(start: int, i: int) -> Any:
    """Load the float with number `i` after an address."""
    return load_f(start + 8 * i)


def set_word(start: int, i: int, value: int) -> None:
    """Store the word with number `i` after an address."""
    store_i(start + 8 * i, value)


word = header_word = at_i
set_header_word = set_word


def below(start: int, i: int, bound: int) -> int:
    """How many of eight neighbouring words are less than a bound."""
    return sum(word(start, i + j) < bound for j in range(8))


def set_ranks(into: int, at: int, words: int, i: int, less: int, low: int) -> None:
    """For each of eight neighbouring words w from number `i` on: count on from `low` to the first
    of the words, which are in order, that is at least w - less."""
    for j in range(8):
        bound = word(words, i + j) - less
        while word(words, low) < bound:
            low += 1
        set_word(into, at + j, low)
    word(words, i + 22)  # compiled kernels may read so far


def zeros(i: int) -> int:
    """How many zero bits are below the lowest bit that is one."""
    assert i, "no bit of 0 is one"
    return (i & -i).bit_length() - 1


def lanes_apart(address: int, stride: int) -> Any:
    """Load eight floats that lie `stride` floats apart, as an array."""
    return np.array([load_f(address + 8 * stride * lane) for lane in range(8)])


def set_lanes_apart(address: int, stride: int, values: Any) -> None:
    """Store eight floats `stride` floats apart."""
    for lane, value in enumerate(values.tolist()):
        store_f(address + 8 * stride * lane, value)


def lanes_at(address: int) -> Any:
    """Load eight floats that lie side by side."""
    return lanes_apart(address, 1)


def set_lanes_at(address: int, values: Any) -> None:
    """Store eight floats side by side."""
    set_lanes_apart(address, 1, values)


def root_of(value: Any) -> Any:
    """The square root of a float, or of each of eight."""
    return np.sqrt(value)


def move_bytes(to: int, start: int, count: int) -> None:
    """Move a run of bytes; the old and the new place may overlap."""
    if count:
        _bytes(to, count)[:] = _bytes(start, count).copy()


def _view(dtype: Any) -> Callable[[int, int], Any]:
    def view(address: int, length: int) -> Any:
        return _bytes(address, 8 * length).view(dtype)

    return view


view_i, view_u, view_f = _view(np.int64), _view(np.uint64), _view(np.float64)
