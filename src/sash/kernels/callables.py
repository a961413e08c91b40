"""Turns any callable into a plain Python function with positional arguments, for numba to compile.

    max, operator.add, np.maximum, float    lambda a, b: max(a, b)
    partial(scale, by=2.0)                  lambda a: scale(a, by=2.0)
    point.distance, a bound method          lambda a: Point.distance(point, a)
    an object with __call__                 lambda a: Kind.__call__(object, a)
    a function with defaults                lambda a: function(a)

numba then compiles or refuses the function, as the callable inside and its arguments allow.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

__all__ = ["plain"]

_MORE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def plain(function: Callable[..., Any], arguments: int) -> Callable[..., Any]:
    """Return a Python function that takes so many positional arguments and calls `function`.  If
    `function` already is one, return it unchanged."""
    function = getattr(function, "py_func", function)
    if isinstance(function, FunctionType):
        code = function.__code__
        if (code.co_argcount, code.co_kwonlyargcount, code.co_flags & _MORE) == (arguments, 0, 0):
            return function
    called, before, keywords = _called(function)
    names = [_Argument(f"a{i}") for i in range(arguments)]
    given = [*before, *names]
    if isinstance(called, FunctionType):
        with suppress(TypeError):  # it takes other arguments, and the first call will say so
            called, given, keywords = _by_position(called, given, keywords)
    bound = {f"b{i}": x for i, x in enumerate(given) if not isinstance(x, _Argument)}
    passed = [x if isinstance(x, _Argument) else f"b{i}" for i, x in enumerate(given)]
    passed += [f"{key}=k_{key}" for key in keywords]
    bound |= {f"k_{key}": x for key, x in keywords.items()}
    text = (
        f"def make({', '.join(['f', *bound])}):\n"
        f"    def call({', '.join(names)}):\n"
        f"        return f({', '.join(passed)})\n"
        "    return call"
    )
    scope: dict[str, Any] = {"__name__": __name__}
    exec(text, scope)
    made: Callable[..., Any] = scope["make"](called, *bound.values())
    return made


class _Argument(str):
    """The name of an argument, and not a bound value."""

    __slots__ = ()


def _by_position(
    function: FunctionType, given: list[Any], keywords: dict[str, Any]
) -> tuple[FunctionType, list[Any], dict[str, Any]]:
    """Turn a call into one that passes all parameters by position, also keyword-only ones and
    defaults: numba knows no keyword-only parameters.  Return the function, the positional
    arguments, and the keyword arguments that `**` collects."""
    bound = inspect.signature(function).bind(*given, **keywords)
    bound.apply_defaults()
    more: dict[str, Any] = {}
    passed: list[Any] = []
    star: tuple[Any, ...] = ()
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            star = bound.arguments[name]
        elif parameter.kind is parameter.VAR_KEYWORD:
            more = bound.arguments[name]
        else:
            passed.append(bound.arguments[name])
    code = function.__code__
    if code.co_kwonlyargcount:  # among a function's variables, they come right after the others
        code = code.replace(
            co_argcount=code.co_argcount + code.co_kwonlyargcount, co_kwonlyargcount=0
        )
        closure = function.__closure__
        function = FunctionType(code, function.__globals__, function.__name__, None, closure)
    return function, [*passed, *star], more


def _called(function: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Unwrap partials, bound methods and objects with `__call__`: return the innermost callable,
    its first arguments, and its keyword arguments."""
    before: tuple[Any, ...] = ()
    keywords: dict[str, Any] = {}
    while True:
        if isinstance(function, functools.partial):
            before = function.args + before
            keywords = {**function.keywords, **keywords}
            function = function.func
        elif isinstance(function, MethodType):
            before = (function.__self__, *before)
            function = function.__func__
        elif isinstance(function, FunctionType | BuiltinFunctionType | type | np.ufunc):
            return function, before, keywords
        else:
            method = inspect.getattr_static(type(function), "__call__", None)
            if not isinstance(method, FunctionType):
                return function, before, keywords
            before = (function, *before)
            function = method
