"""Writes functions and values as text that is the same in every process of the same program.

The text of a function covers its bytecode and all that the bytecode reaches: constants, defaults,
closure variables, the globals that it names, the functions that it calls, and all that these reach.

    numbers, strings, tuples, lists, dicts, sets    by content, dicts and sets in any order
    numpy arrays, and objects that convert to one   by content
    functions of Python, of sash and of the
    libraries in LIBRARIES, and their classes       by name; functions also by closure variables
    other classes                                   by name, methods and plain attributes
    modules                                         by name; of the user's own modules also the
                                                    attributes that the code names
    other objects                                   by the values from which pickle would rebuild
                                                    them
    objects that pickle refuses (locks, …)          by type

No text contains an address.  Bytecode differs between versions of Python, so two texts of functions
can be compared only if one version made both.
"""

from __future__ import annotations

import builtins
import copyreg
import dis
import hashlib
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

__all__ = ["LIBRARIES", "code_text", "digest", "global_names", "text_of"]

#: Packages, besides Python's own, whose functions and classes the text identifies by name.
LIBRARIES = frozenset(
    {
        "datasketches",
        "llvmlite",
        "numba",
        "numpy",
        "pandas",
        "polars",
        "pyarrow",
        "pyspark",
        "sash",
        "scipy",
    }
)

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))


def text_of(value: Any) -> tuple[str, bool]:
    """A value as text, and whether the text covers all of it: False if it has only the type of some
    part.

    >>> text_of((1, 2.5, "a"))
    ("(1, 2.5, 'a',)", True)
    """
    reader = _Reader()
    return reader.read(value), reader.whole


def digest(value: Any) -> str:
    """A short name for a value's text.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return _short(text_of(value)[0].encode())


def code_text(code: CodeType) -> str:
    """The text of a code object, without its place in a file and its docstring."""
    return _Reader()._code(code)


@lru_cache(maxsize=4096)
def global_names(code: CodeType) -> frozenset[str]:
    """The names that a code object, or one inside it, looks up as globals."""
    return frozenset(
        i.argval
        for each in _nested(code)
        for i in dis.get_instructions(each)
        if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    )


class _Reader:
    """Reads one value.

    Something with an identity (a function, an object, a list, …) gets a number where the reader
    first meets it.  The reader writes its content once, after the content that named it: so cycles
    end, and a shared object is read once.  A value without an identity is written in place, because
    equal constants may or may not be one object.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._met: list[Any] = []  # by number; as they live on, no other object gets their ids
        self.whole = True

    def read(self, value: Any) -> str:
        lines = [self._name(value)]
        for thing in self._met:  # the loop itself makes this list longer
            lines.append(self._content(thing))
        return "\n".join(lines)

    def _name(self, value: Any, attributes: frozenset[str] = frozenset()) -> str:
        """A value written in place, or its number.  `attributes` are all names that the code which
        uses the value contains."""
        kind = type(value)
        if kind in _PLAIN:
            return repr(value)
        if kind is tuple:
            return "(" + "".join(f"{self._name(x)}, " for x in value).rstrip() + ")"
        if kind is frozenset:
            return f"frozenset{self._unordered(value)}"
        if isinstance(value, np.generic) and not value.dtype.hasobject:
            return f"{value.dtype.str}:{value.tobytes().hex()}"
        if kind is CodeType:
            return self._code(value)
        if isinstance(value, ModuleType):
            return self._module(value, attributes)
        if isinstance(value, type) and _in_library(value):
            return f"class {_qualified(value)}"
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._met)
            self._met.append(value)
        return f"#{self._numbers[id(value)]}"

    def _content(self, value: Any) -> str:
        """The content of something that has a number."""
        kind = type(value)
        if hasattr(value, "py_func"):  # compiled by numba
            return self._name(value.py_func)
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, MethodType):
            return f"method {self._name(value.__func__)} of {self._name(value.__self__)}"
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, staticmethod | classmethod):
            return f"{kind.__name__} {self._name(value.__func__)}"
        if isinstance(value, property):
            return f"property {self._name((value.fget, value.fset, value.fdel))}"
        if "__wrapped__" in getattr(value, "__dict__", ()):
            return f"{_qualified(kind)} around {self._name(value.__wrapped__)}"
        if isinstance(value, list | tuple):
            return f"{_qualified(kind)} [{', '.join(map(self._name, value))}]"
        if isinstance(value, set | frozenset):
            return f"{_qualified(kind)} {self._unordered(value)}"
        if isinstance(value, dict):
            items = sorted(((_flat(k), x) for k, x in value.items()), key=lambda item: item[0])
            inside = ", ".join(f"{k}: {self._name(x)}" for k, x in items)
            return f"{_qualified(kind)} {{{inside}}}"
        if hasattr(kind, "__array__"):
            return self._array(value)
        return self._object(value)

    def _code(self, code: CodeType) -> str:
        said = [code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars]
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
        constants = list(code.co_consts)
        if constants and isinstance(constants[0], str) and not _loads_first(code):
            del constants[0]  # the docstring
        bytecode = code.co_code + getattr(code, "co_exceptiontable", b"")
        inside = "".join(f"{self._name(c)}, " for c in constants)
        return f"code {_short(bytecode)} {said} {counts} {code.co_flags} ({inside})"

    def _function(self, function: FunctionType) -> str:
        code = function.__code__
        closed = {}
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                closed[name] = cell.cell_contents
            except ValueError:  # not set yet
                closed[name] = ...
        closure = self._variables("closure", closed, code)
        if _in_library(function):
            return f"function {_qualified(function)} {closure}"
        around = function.__globals__
        used = {name: around[name] for name in global_names(code) if name in around}
        defaults = self._name((function.__defaults__, function.__kwdefaults__))
        read = self._variables("globals", used, code)
        return f"function {self._code(code)} {read} {closure} defaults {defaults}"

    def _variables(self, what: str, values: dict[str, Any], code: CodeType) -> str:
        names = _all_names(code)
        inside = (f"{n} = {self._name(values[n], names)}" for n in sorted(values))
        return f"{what} {{{', '.join(inside)}}}"

    def _module(self, module: ModuleType, attributes: frozenset[str]) -> str:
        """A module by its name; a user's own module also with those of its attributes that the code
        may use."""
        if _is_library(module.__name__):
            return f"module {module.__name__}"
        used = sorted(attributes & vars(module).keys())
        # attributes of attributes: packages and the modules in them
        inside = (f"{n} = {self._name(vars(module)[n], attributes - {n})}" for n in used)
        return f"module {module.__name__} {{{', '.join(inside)}}}"

    def _class(self, made: type) -> str:
        held = []
        for name, x in sorted(vars(made).items()):
            method = isinstance(x, FunctionType | staticmethod | classmethod | property)
            plain = type(x) in (*_PLAIN, tuple) and not name.startswith("__")
            if method or plain:
                held.append(f"{name} = {self._name(x)}")
        return f"class {_qualified(made)} {self._name(made.__bases__)} {{{', '.join(held)}}}"

    def _array(self, value: Any) -> str:
        try:
            array = np.asarray(value)
            plain = array.tolist() if array.dtype.hasobject else _short(array.tobytes())
        except Exception:  # whatever another library raises, the value cannot be read
            return self._by_type(value)
        return f"{_qualified(type(value))} {array.dtype} {array.shape} {self._name(plain)}"

    def _object(self, value: Any) -> str:
        """An object by the values that pickle would keep: how to rebuild it, and its state."""
        kind = type(value)
        try:
            reduce = copyreg.dispatch_table.get(kind)
            made: Any = reduce(value) if reduce else value.__reduce_ex__(4)
        except Exception:  # as above
            return self._by_type(value)
        if isinstance(made, str):
            return f"{_qualified(kind)} {getattr(value, '__module__', '')}.{made}"
        parts = [list(x) if isinstance(x, Iterator) else x for x in made]
        return f"{_qualified(kind)} by {', '.join(map(self._name, parts))}"

    def _by_type(self, value: Any) -> str:
        self.whole = False
        return f"some {_qualified(type(value))} {getattr(value, '__qualname__', '')}".rstrip()

    def _unordered(self, values: Iterable[Any]) -> str:
        return "{" + ", ".join(sorted(map(_flat, values))) + "}"


def _in_library(thing: Any) -> bool:
    """True if a function or class belongs to a library.  Functions that `exec` made also have
    `builtins` as their module, so those count only if `builtins` really has them."""
    if thing.__module__ == "builtins":
        return getattr(builtins, thing.__name__, None) is thing
    return _is_library(thing.__module__)


def _is_library(module: str | None) -> bool:
    top = str(module).partition(".")[0]
    return top in LIBRARIES or top in sys.stdlib_module_names


def _flat(value: Any) -> str:
    """An element of a set or a key of a dict as text.  It contains no numbers, since the order in
    which the reader meets the elements differs between processes."""
    if isinstance(value, tuple | frozenset):
        inside = [_flat(x) for x in value]
        if isinstance(value, frozenset):
            inside.sort()
        return f"{type(value).__name__}({', '.join(inside)})"
    if type(value) in _PLAIN:
        return repr(value)
    if isinstance(value, np.generic) and not value.dtype.hasobject:
        return f"{value.dtype.str}:{value.tobytes().hex()}"
    return _qualified(value if hasattr(value, "__qualname__") else type(value))


def _short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _qualified(thing: Any) -> str:
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", "")
    return f"{getattr(thing, '__module__', '')}.{name}"


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _nested(const)


def _all_names(code: CodeType) -> frozenset[str]:
    """The names of globals and attributes that a code object uses."""
    return frozenset(name for each in _nested(code) for name in each.co_names)


def _loads_first(code: CodeType) -> bool:
    """True if an instruction may load the first constant.  No instruction loads a docstring."""
    pairs = zip(code.co_code[::2], code.co_code[1::2], strict=True)
    return any(op in dis.hasconst and not argument for op, argument in pairs)
