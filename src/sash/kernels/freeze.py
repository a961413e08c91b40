"""Writes Python functions as text, for generated files and for their names.

A user's function may be a lambda, or come from a notebook or a prompt, without a source file.  But
it always has bytecode, and from it the text rebuilds the function with the globals and closure
variables that it uses: math and numpy by import; numbers, strings, tuples and enumerations by
value; other functions in the same way.
"""

from __future__ import annotations

import builtins
import hashlib
import marshal
import sys
from collections.abc import Callable
from enum import Enum, EnumMeta, IntEnum
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .callables import plain
from .fingerprint import code_text, global_names

__all__ = ["Frozen", "thaw"]


#: Modules whose content never changes.  From any other module, compiled code would keep the values
#: that its names had at the time of compilation.
_CONSTANT = ("math", "cmath", "numpy", "numba", "operator", "_operator")


class Frozen:
    """Functions as lines of source, each with a name of its own.

    `add` returns the name by which the text defines a function.  The generated file must have the
    decorators `bounded`, which compiles with bounds checks, and `inner`, which compiles without.  A
    value without a text form, an array for instance, is in `held` by name; then only this process
    can use the text.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.held: dict[str, Any] = {}
        self._names: dict[tuple[int, bool], str] = {}
        self._plain: dict[tuple[int, int], Callable[..., Any]] = {}
        self._kept: list[Any] = []
        self._open: list[Any] = []
        self._digest = hashlib.sha256()

    def add(
        self,
        function: Callable[..., Any],
        role: str,
        *,
        arguments: int | None = None,
        bounds: bool = True,
    ) -> str:
        """Define `function` in the text, once, and return its name there.

        With `arguments`, `function` may be any callable; the text calls it with so many arguments.
        """
        if arguments is not None:
            key = id(function), arguments
            if key not in self._plain:
                self._kept.append(function)  # it lives on, so no other object gets its id
                self._plain[key] = plain(function, arguments)
            function = self._plain[key]
        return self._define(getattr(function, "py_func", function), role, bounds)

    def _define(self, function: Any, role: str, bounds: bool) -> str:
        key = id(function), bounds
        if key in self._names:
            return self._names[key]
        self._kept.append(function)
        self._open.append(function)
        code = function.__code__
        used: dict[str, str] = {}
        for name in sorted(global_names(code)):
            if name in function.__globals__:
                used[name] = self._value(function.__globals__[name], name, bounds)
        cells = []
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                cells.append(self._value(cell.cell_contents, name, bounds))
            except ValueError:  # it has no value yet
                cells.append(self._hold(cell, name))
        defaults = self._value(function.__defaults__, "defaults", bounds)
        given = (function.__kwdefaults__ or {}).items()
        keywords = "{" + ", ".join(f"{k!r}: {self._value(v, k, bounds)}" for k, v in given) + "}"
        made = f"f{len(self.lines) + 1}_{role}"
        content = (made, code_text(code), sorted(used.items()), cells, defaults, keywords, bounds)
        self._digest.update(repr(content).encode())
        globals_ = "{" + ", ".join(f"{k!r}: {v}" for k, v in sorted(used.items())) + "}"
        self.lines.append(
            f"{made} = {'bounded' if bounds else 'inner'}(thaw({marshal.dumps(code)!r}, "
            f"{globals_}, [{', '.join(cells)}], {defaults}, {keywords}))"
        )
        self._open.remove(function)
        self._names[key] = made
        return made

    def digest(self) -> str:
        """A digest of all lines, the same in every process of the same Python."""
        return self._digest.hexdigest()

    def _value(self, value: Any, name: str, bounds: bool) -> str:
        """An expression that evaluates to this value."""
        if value is None or type(value) in (bool, int, str, bytes):
            return repr(value)
        if isinstance(value, np.generic) and value.dtype.kind in "biuf":
            return f"np.dtype({value.dtype.str!r}).type({self._value(value.item(), name, bounds)})"
        if type(value) is float:
            return f"float.fromhex({value.hex()!r})" if value == value else "float('nan')"
        if type(value) is tuple:
            return "(" + "".join(self._value(v, name, bounds) + ", " for v in value) + ")"
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in _CONSTANT:
            return f"import_module({value.__name__!r})"
        if isinstance(value, FunctionType) or hasattr(value, "py_func"):
            if getattr(value, "py_func", value) in self._open:
                return self._hold(value, name)  # it calls itself
            return self.add(value, _identifier(name), bounds=bounds)
        if isinstance(value, EnumMeta | Enum):
            return self._enumeration(value, name, bounds)
        if isinstance(value, type | BuiltinFunctionType | np.ufunc):
            owner = getattr(value, "__module__", None) or "numpy"
            name_there = str(value.__name__)
            known = owner.partition(".")[0] in (*_CONSTANT, "builtins")
            if known and getattr(sys.modules.get(owner), name_there, None) is value:
                return f"import_module({owner!r}).{name_there}"
        return self._hold(value, name)

    def _enumeration(self, value: Any, name: str, bounds: bool) -> str:
        """An expression for an enumeration of integers, rebuilt from its members, or for one of its
        members."""
        if isinstance(value, Enum):
            made = self._enumeration(type(value), type(value).__name__, bounds)
            return self._hold(value, name) if made in self.held else f"{made}[{value.name!r}]"
        members = {key: member.value for key, member in value.__members__.items()}
        if value.__bases__ not in ((Enum,), (IntEnum,)) or {*map(type, members.values())} != {int}:
            return self._hold(value, name)
        if (id(value), False) not in self._names:
            self._kept.append(value)
            made = f"e{len(self.lines) + 1}_{_identifier(name)}"
            line = f"import_module('enum').{value.__bases__[0].__name__}({made!r}, {members!r})"
            self._digest.update(line.encode())
            self.lines.append(f"{made} = {line}")
            self._names[id(value), False] = made
        return self._names[id(value), False]

    def _hold(self, value: Any, name: str) -> str:
        """Hold a value that has no text form, and return its name."""
        self._kept.append(value)
        made = f"held{len(self.held)}_{_identifier(name)}"
        self.held[made] = value
        return made


def thaw(code: bytes, used: dict[str, Any], cells: list[Any], *more: Any) -> FunctionType:
    """Rebuild a function from the text of `Frozen.add`.  The same text returns the same function,
    so that kernels of one operator share the code that numba has compiled."""
    defaults, keywords = more
    try:
        values = [[(name, _name(x)) for name, x in sorted(d.items())] for d in (used, keywords)]
        key = (code, *map(tuple, values), tuple(map(_name, cells)), _name(defaults))
    except TypeError:
        return _thaw(code, used, cells, *more)
    function = _thawed.get(key)
    if function is None:
        function = _thawed[key] = _thaw(code, used, cells, *more)
        for old in list(_thawed)[:-_MOST]:
            _thawed.pop(old, None)
    return function


_thawed: dict[Any, FunctionType] = {}
_MOST = 512


def _name(value: Any) -> Any:
    """A key that only equal values share; raises a TypeError for a value that may change."""
    if value is None or type(value) in (bool, int, str, bytes):
        return type(value), value
    if type(value) is float:
        return float, value.hex()
    if type(value) is tuple:
        return tuple, *map(_name, value)
    constant = isinstance(value, ModuleType) and value.__name__.partition(".")[0] in _CONSTANT
    if constant or hasattr(value, "py_func"):
        return type(value), id(value), value
    raise TypeError(f"{value!r} has no name")


def _thaw(
    code: bytes,
    used: dict[str, Any],
    cells: list[Any],
    defaults: Any,
    keywords: dict[str, Any],
) -> FunctionType:
    made: CodeType = marshal.loads(code)
    function = FunctionType(
        made,
        {"__builtins__": builtins, "__name__": __name__, **used},
        made.co_name,
        defaults,
        tuple(c if isinstance(c, CellType) else CellType(c) for c in cells),
    )
    function.__kwdefaults__ = keywords or None
    return function


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)
