"""What a query is, as text: state of another query is refused, with the difference named.

Of an operator of one's own its functions are told by their bytecode, which changes with Python's
version: then they are not compared.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Callable
from typing import Any

from ..kernels.freeze import feed
from ..query.query import Query

__all__ = ["differences", "told"]

_FUNCTIONS = "functions"


def told(query: Query) -> dict[str, str]:
    """What a query is."""
    return {
        "time": query.time,
        "keys": ", ".join(query.by),
        "window": repr(query.window),
        "select": ", ".join(f"{name} = {chosen!r}" for name, chosen in query.select.items()),
        "nulls counted by": ", ".join(
            name for name, chosen in query.select.items() if not all(chosen.operator.skips)
        ),
        "where": _condition(query.where),
        "tie": str(query.tie),
        "emit": query.emit,
        _FUNCTIONS: _functions(query),
    }


def differences(old: dict[str, str], new: dict[str, str]) -> list[tuple[str, str, str]]:
    """What differs: its name, as it was, and as it is."""
    found = []
    for name in {**old, **new}:
        was, is_ = old.get(name, "nothing"), new.get(name, "nothing")
        if name == _FUNCTIONS and was.split(":")[0] != is_.split(":")[0]:
            continue  # of another Python
        if was != is_:
            found.append((name, was, is_))
    return found


def _condition(where: Any) -> str:
    text = str(where)
    if "..." in text:  # of a long list Arrow shows the ends only
        text += " " + hashlib.sha256(pickle.dumps(where)).hexdigest()[:16]
    return text


def _functions(query: Query) -> str:
    digest = hashlib.sha256()
    for name, chosen in query.select.items():
        operator = chosen.operator
        for function in (operator.lift, operator.combine, operator.lower):
            if function is not None and not _ours(function):
                digest.update(name.encode())
                _feed(digest, function)
    return f"Python {sys.version_info[0]}.{sys.version_info[1]}: {digest.hexdigest()[:16]}"


def _ours(function: Callable[..., Any]) -> bool:
    return str(getattr(function, "__module__", "")).partition(".")[0] == "sash"


def _feed(digest: Any, function: Any, within: tuple[Any, ...] = ()) -> None:
    """A function's code, and the plain values and functions that it has from around it."""
    function = getattr(function, "py_func", function)
    code = getattr(function, "__code__", None)
    if code is None or function in within:
        digest.update(repr(getattr(function, "__qualname__", type(function))).encode())
        return
    feed(digest, code)
    for cell in function.__closure__ or ():
        value = cell.cell_contents
        if callable(value) and not _ours(value):
            _feed(digest, value, (*within, function))
        elif isinstance(value, int | float | str | bytes | tuple | None):
            digest.update(repr(value).encode())
