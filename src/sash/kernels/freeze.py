"""Python functions as text, so that a generated file can hold them and be told apart.

A user's function may be a lambda, or typed into a notebook or a prompt, with no source
file to copy from.  Its bytecode is always there: the text rebuilds the function from it,
with the globals and closure variables it uses: math and numpy by import, numbers, strings and
tuples by value, other functions in the same way.
"""

from __future__ import annotations

import builtins
import hashlib
import marshal
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .fingerprint import code_text, global_names

__all__ = ["CannotFreeze", "Frozen", "thaw"]


#: Modules whose content does not change: of others, compiled code would hold on to what a name in
#: them meant when it was compiled.
_CONSTANT = ("math", "cmath", "numpy", "numba", "operator")


class CannotFreeze(ValueError):
    """A function depends on something that cannot be written into a file."""


class Frozen:
    """A set of functions as lines of source, each under a name of its own.

    `add` gives the name under which the text defines a function, compiled by the `inner`
    of the file it stands in.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []
        self._open: list[Any] = []
        self._digest = hashlib.sha256()

    def add(self, function: Callable[..., Any], role: str) -> str:
        """Define `function` in the text, once, and return its name there."""
        function = getattr(function, "py_func", function)
        if id(function) in self._names:
            if function in self._open:
                raise CannotFreeze(f"{role} calls itself")
            return self._names[id(function)]
        if not isinstance(function, FunctionType):
            raise CannotFreeze(f"{role} is {function!r}, not a Python function")
        self._kept.append(function)
        name = f"f{len(self._kept)}_{role}"
        self._names[id(function)] = name
        self._open.append(function)
        code = function.__code__
        used: dict[str, str] = {}
        for key in sorted(global_names(code)):
            if key in function.__globals__:
                used[key] = self._value(function.__globals__[key], key)
            elif not hasattr(builtins, key):
                raise CannotFreeze(f"{role} uses {key}, which is not defined")
        cells = []
        for key, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                cells.append(self._value(cell.cell_contents, key))
            except ValueError as error:
                raise CannotFreeze(f"{role} uses {key}, which has no value yet") from error
        defaults = self._value(function.__defaults__, "defaults")
        content = (name, code_text(code), sorted(used.items()), cells, defaults)
        self._digest.update(repr(content).encode())
        globals_ = "{" + ", ".join(f"{k!r}: {v}" for k, v in sorted(used.items())) + "}"
        self.lines.append(
            f"{name} = inner(thaw({marshal.dumps(code)!r}, {globals_}, "
            f"[{', '.join(cells)}], {defaults}))"
        )
        self._open.remove(function)
        return name

    def digest(self) -> str:
        """A name for the content, the same in every process of the same Python."""
        return self._digest.hexdigest()

    def _value(self, value: Any, name: str) -> str:
        """An expression that gives a value again."""
        if value is None or isinstance(value, bool | int | str | bytes):
            return repr(value)
        if isinstance(value, float):
            return f"float.fromhex({value.hex()!r})" if value == value else "float('nan')"
        if isinstance(value, np.generic) and value.dtype.kind in "biuf":
            return f"np.dtype({value.dtype.str!r}).type({self._value(value.item(), name)})"
        if isinstance(value, tuple):
            return "(" + "".join(self._value(v, name) + ", " for v in value) + ")"
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in _CONSTANT:
            return f"import_module({value.__name__!r})"
        if isinstance(value, FunctionType) or hasattr(value, "py_func"):
            return self.add(value, _identifier(name))
        if isinstance(value, type | BuiltinFunctionType | np.ufunc):
            owner = getattr(value, "__module__", None) or "numpy"
            name_there = str(value.__name__)
            known = owner.partition(".")[0] in (*_CONSTANT, "builtins")
            if known and getattr(sys.modules.get(owner), name_there, None) is value:
                return f"import_module({owner!r}).{name_there}"
        raise CannotFreeze(f"it uses {name}, a {type(value).__name__}, which has no text form")


def thaw(code: bytes, used: dict[str, Any], cells: list[Any], defaults: Any) -> FunctionType:
    """A function again, from what `Frozen.add` wrote of it."""
    made: CodeType = marshal.loads(code)
    return FunctionType(
        made,
        {"__builtins__": builtins, "__name__": __name__, **used},
        made.co_name,
        defaults,
        tuple(_cell(c) for c in cells),
    )


def _cell(value: Any) -> Any:
    return (lambda: value).__closure__[0]  # type: ignore[index]


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)
