"""Operators of users, built from Python functions: `sash.operator`."""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .contract import Operator, itself

__all__ = ["operator"]


def operator(
    *,
    identity: Any,
    combine: Callable[..., Any],
    lift: Callable[..., Any] | None = None,
    lower: Callable[[Any], Any] | None = None,
    inverse: Callable[..., Any] | None = None,
    commutative: bool = False,
    encode: Callable[[Any], bytes] | None = None,
    decode: Callable[[bytes], Any] | None = None,
    equal: Callable[[Any, Any], bool] | None = None,
    name: str | None = None,
    fields: Sequence[str] = (),
    compile: bool = True,
    unchecked: bool = False,
) -> Operator:
    """Build an operator from Python functions or other callables.

    `lift(x)`, or `lift(x, y, …)` for several columns, returns the partial of one event; without
    `lift` the value itself is the partial.  A parameter with a default is no column.  `combine(a,
    b)` joins two neighbouring partials, the older one first.  It must be associative, with
    `identity` as its neutral element, and must not raise.  `lower(a)` returns the answer, None for
    null.  `inverse(total, old)` returns `total` without its oldest part `old`.

    If `identity` is a numpy array, `lift(out, x)`, `combine(out, a, b)` and `inverse(out, total,
    old)` write their result into `out`, which is never one of the other arguments.  `combine` may
    also be a numpy ufunc.

    numba compiles the functions.  If it refuses one, a warning names that function, and the
    operator runs in plain Python, as it does with `compile=False`.  Compiled integers have 64 bits
    and wrap around.  `int(x)` of a NaN, an infinity or a float beyond 64 bits raises in plain
    Python.  Compiled, it returns some integer, on most machines the lowest one: test `x == x`
    first.  An index beyond an array raises IndexError.  `unchecked=True` leaves this check out of
    compiled functions: a wrong index then reads or overwrites other memory.

    >>> import sash
    >>> clamped = sash.operator(
    ...     identity=0,
    ...     lift=lambda x: min(max(x, 0), 100),
    ...     combine=lambda a, b: min(a + b, 100),
    ...     commutative=True,
    ...     name="clamped",
    ... )
    >>> clamped.fold([30, 50, 40])
    100
    >>> sash.operator(identity=0, combine=max).fold([3, 9, 4])
    9
    """
    vector = isinstance(identity, np.ndarray)
    if lift is None and vector:
        raise TypeError(
            "lift may be left out where the value itself is the partial, but identity is an array: "
            "give a lift(out, x) that writes the partial of a value into out"
        )
    functions: dict[str, Any] = {"lift": lift, "combine": combine, "lower": lower}
    functions |= {"inverse": inverse, "encode": encode, "decode": decode, "equal": equal}
    for role, function in functions.items():
        if not callable(function) and (function is not None or role == "combine"):
            raise TypeError(f"{role} must be a function, not {function!r}")
    if identity is None:
        raise TypeError(
            "identity must be a partial that combine accepts (emptiness is a value of its "
            "own, such as 0, (0, 0.0) or an empty tuple), not None"
        )
    if (encode is None) != (decode is None):
        raise TypeError("encode and decode go together: give both or neither")
    if vector and identity.ndim != 1:
        raise TypeError(
            f"a vector partial has one dimension, but identity has shape {identity.shape}; "
            "flatten it and index it inside combine"
        )
    out = ("out",) if vector else ()
    _check_takes("combine", combine, (*out, "a", "b"))
    _check_takes("inverse", inverse, (*out, "total", "old"))
    _check_takes("lower", lower, ("a",))
    made = Operator(
        name=name or "operator",
        identity=identity,
        lift=itself if lift is None else lift,
        combine=_into_out(combine) if vector else combine,
        lower=lower,
        inverse=_into_out(inverse) if vector else inverse,
        commutative=bool(commutative),
        encode=encode,
        decode=decode,
        equal=equal,
        fields=tuple(fields),
        compile=compile,
        unchecked=bool(unchecked),
    )
    columns = _positional(made.lift) - vector
    if columns < 1:
        raise TypeError(
            "identity is an array, so lift takes (out, x), and writes the partial of the value x "
            "into out; it takes one argument"
            if vector
            else "lift must take the value of at least one column"
        )
    _check_returns(combine, identity)
    return dataclasses.replace(made, skips=(True,) * columns)


def _check_returns(combine: Any, identity: Any) -> None:
    """Try `combine` on two identities, and raise if the result would be lost: one that changes `a`,
    or has no `return`, returns None, which would be taken for the answer null."""
    vector = isinstance(identity, np.ndarray)
    if vector and isinstance(combine, np.ufunc):
        return
    out: Any = np.ones_like(identity) if vector else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = combine(*([out] if vector else []), identity, identity)
    except Exception:
        return  # a mistake that tests and laws find; it may lie in these arguments alone
    if found is None and not vector:
        raise TypeError(
            "combine must return a partial, and of two identities it returns None; let it return a "
            "new partial, and change neither argument"
        )
    if vector and isinstance(found, np.ndarray) and found is not out and np.all(out == 1):
        raise TypeError(
            "combine must write its result into out, because identity is an array, and it returns "
            "a new array instead; write out[:] = …"
        )


def _check_takes(role: str, function: Any, names: tuple[str, ...]) -> None:
    """Raise if a function cannot be called with so many arguments; what has no signature passes."""
    if function is None or isinstance(function, np.ufunc):
        return
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*names)
    except TypeError as error:
        why = ", because identity is an array" if "out" in names else ""
        raise TypeError(
            f"{role} takes ({', '.join(names)}){why}, and this one takes {signature} ({error})"
        ) from None


def _positional(function: Callable[..., Any]) -> int:
    """The number of positional arguments that a function needs (1 if it is unknown)."""
    if isinstance(function, np.ufunc):
        return function.nin
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = [p for p in parameters if p.kind in kinds]
    needed = sum(p.default is p.empty for p in named)
    return needed or int(bool(named) or any(p.kind == p.VAR_POSITIONAL for p in parameters))


def _into_out(function: Any) -> Any:
    """A function that writes its result from two vectors into its first argument, also for a
    ufunc."""
    if not isinstance(function, np.ufunc):
        return function

    def write(out: Any, a: Any, b: Any) -> None:
        out[:] = function(a, b)

    return write
