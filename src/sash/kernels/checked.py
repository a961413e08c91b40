"""The same loads and stores as `native`, in plain Python, on memory that checks its bounds.

Kernels run on this with the JIT off: slower, steppable in a debugger, and an address that
lies in no known buffer raises instead of reading what happens to be there.
"""

from __future__ import annotations

import os
import weakref
from bisect import bisect_right
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np

__all__ = [
    "as_int",
    "column_byte",
    "column_f",
    "column_i",
    "header_word",
    "inline",
    "inner",
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
    "set_header_word",
    "set_word",
    "short",
    "some",
    "store_f",
    "store_i",
    "store_u",
    "view_f",
    "view_i",
    "view_u",
    "word",
]

_Ref = weakref.ref[np.ndarray[Any, Any]]

#: The arrays that kernels may touch, by where they start; several may be parts of one.
_arrays: dict[int, list[_Ref]] = {}
#: The starts in order, and the arrays of each: replaced as a whole, as other threads read it.
_known: tuple[list[int], list[list[_Ref]]] = ([], [])
_registering = Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_registering.acquire,
        after_in_parent=_registering.release,
        after_in_child=_registering.release,
    )


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a compiled kernel would be compiled by."""
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
    global _known
    at, made = array.ctypes.data, weakref.ref(array)
    with _registering:
        for start in [s for s, refs in _arrays.items() if any(ref() is None for ref in refs)]:
            alive = [ref for ref in _arrays.pop(start) if ref() is not None]
            if alive:
                _arrays[start] = alive
        _arrays[at] = [*_arrays.get(at, []), made]
        starts = sorted(_arrays)
        _known = starts, [_arrays[start] for start in starts]
    return array


def _bytes(address: int, length: int) -> np.ndarray[Any, Any]:
    """The bytes at an address, or an error if they are not wholly inside one array."""
    starts, arrays = _known
    for i in range(bisect_right(starts, address) - 1, -1, -1):
        offset = address - starts[i]
        for ref in arrays[i]:
            array = ref()
            if array is not None and offset + length <= array.nbytes:
                return array.view(np.uint8)[offset : offset + length]
    raise IndexError(f"a kernel touched {length} bytes at {address}, outside its memory")


def _access(dtype: Any, plain: Callable[[Any], Any]) -> tuple[Any, Any]:
    size = np.dtype(dtype).itemsize

    def load(address: int) -> Any:
        return plain(_bytes(address, size).view(dtype)[0])

    def store(address: int, value: Any) -> None:
        _bytes(address, size).view(dtype)[0] = value

    return load, store


load_i, store_i = _access(np.int64, int)
load_u, store_u = _access(np.uint64, np.uint64)
load_f, store_f = _access(np.float64, float)
load_table = load_i
column_i, output_i = load_i, store_i
column_f, output_f = load_f, store_f
column_byte, output_byte = _access(np.uint8, int)


def word(start: int, i: int) -> Any:
    """A word of several."""
    return load_i(start + 8 * i)


def set_word(start: int, i: int, value: int) -> None:
    """Set a word of several."""
    store_i(start + 8 * i, value)


header_word, set_header_word = word, set_word


def move_bytes(to: int, start: int, count: int) -> None:
    """Move a run of bytes; where they were and are may overlap."""
    if count:
        _bytes(to, count)[:] = _bytes(start, count).copy()


def _view(dtype: Any) -> Callable[[int, int], Any]:
    def view(address: int, length: int) -> Any:
        return _bytes(address, 8 * length).view(dtype)

    return view


view_i, view_u, view_f = _view(np.int64), _view(np.uint64), _view(np.float64)
