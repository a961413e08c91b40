"""Lets kernels share the functions in which they are equal.

Each generated module defines all primitives and all functions of its kernel, and numba takes
milliseconds for each of them.  Many do not depend on the operator, or not on the kernel: the ends
of windows, the places of slots, the stores of a partial.  Before numba compiles an entry of a
module, the module takes over equal functions from other modules of the process: after a run of one
aggregate, the first run of another takes 1.0 s of processor time instead of 1.6.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

from .fingerprint import code_text, global_names

__all__ = ["share"]

_known: WeakValueDictionary[Any, Any] = WeakValueDictionary()


def share(names: dict[str, Any]) -> None:
    """Replace those functions of a generated module (its globals) that only compiled functions call
    by equal functions of earlier modules.  Functions are equal if they have the same code and
    options, and if all names in their code mean the same."""
    settled: dict[str, Any] = {}

    def meaning(name: str) -> Any:
        """What a name in the module means, as a value that only equal meanings equal."""
        if name in settled:
            return settled[name]
        value: Any = names.get(name)
        if type(value) in (bool, int, float, str):
            return repr(value)  # as 0.0 equals -0.0
        if not _inner(value, names):
            return _Itself(value)
        settled[name] = _Itself(value)  # what calls itself, by whatever way, stays as it is
        code = value.py_func.__code__
        used = [(each, meaning(each)) for each in sorted(global_names(code)) if each in names]
        key = (code_text(code), repr(sorted(value.targetoptions.items())), *used)
        names[name] = _known.setdefault(key, value)
        settled[name] = _Itself(names[name])
        return settled[name]

    for name in list(names):
        meaning(name)


def _inner(value: Any, names: dict[str, Any]) -> bool:
    """True for a function of this module that numba compiles without a wrapper for Python."""
    function = getattr(value, "py_func", None)
    if function is None or function.__globals__ is not names:
        return False
    if function.__defaults__ or function.__kwdefaults__ or function.__closure__:
        return False  # these are not in its code
    return bool(value.targetoptions.get("no_cpython_wrapper"))


class _Itself:
    """A value that equals nothing but itself: tuples and numbers of numpy equal others that
    compiled code tells apart."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)
