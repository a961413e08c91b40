"""Writes docs/reference.md, every public name and its one-line description, and docs/supported.md,
what each way to run a query refuses.

    python tools/reference.py            write the pages
    python tools/reference.py --check    say whether the pages are up to date

A description is the first sentence of a docstring, or of the `#:` comment above a constant or a
ready operator, which has no docstring of its own.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, SUPPORTED = DOCS / "reference.md", DOCS / "supported.md"

#: The modules with public names, in the order of the page.
MODULES = (
    "sash",
    "sash.operators",
    "sash.windows",
    "sash.aggregators",
    "sash.policies",
    "sash.plot",
    "sash.stores",
    "sash.spark",
    "sash.testing",
)

_HEAD = """\
# Reference

Every public name, written by `python tools/reference.py` from the docstrings; `help(sash.max)`
has the rest, with an example.
"""

_SUPPORTED = """\
# What is supported where

The same query runs over a table and over a stream, in this process and on Spark. If one of these
ways cannot run a query, sash refuses the query when you set it up, with the reason below. `python
tools/reference.py` writes this page from `sash/engine/supported.py`, the one place that refuses.
"""


def page() -> str:
    """The whole page."""
    shown: set[type] = set()
    return "\n".join([_HEAD, *(_section(importlib.import_module(m), shown) for m in MODULES)])


def supported() -> str:
    """The page on what each way to run a query refuses."""
    from sash.engine.supported import table

    return f"{_SUPPORTED}\n{table()}\n"


def description(module: ModuleType, name: str) -> str:
    """One sentence on a public name; empty if there is none."""
    comment = _comments(module).get(name, "")
    found = getattr(module, name)
    own = inspect.isroutine(found) or isinstance(found, type | ModuleType)
    return comment or (first_sentence(inspect.getdoc(found) or "") if own else "")


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class that it does not have from a public one."""
    above = [base for base in cls.__mro__[1:] if _is_public(base)]
    for name in dir(cls):
        found = inspect.getattr_static(cls, name)
        what = inspect.isroutine(found) or isinstance(found, property)
        own = not any(inspect.getattr_static(base, name, None) is found for base in above)
        if what and own and not name.startswith("_"):
            yield name, found


def first_sentence(text: str) -> str:
    """The first sentence of a docstring, on one line.

    >>> first_sentence("The answer\\nover all.  It is null if there is none.")
    'The answer over all.'
    """
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=\.)\s", paragraph)[0]


def _is_public(cls: type) -> bool:
    if not cls.__module__.startswith("sash"):
        return True  # of Python
    return any(cls.__name__ in importlib.import_module(m).__all__ for m in MODULES)


def _section(module: ModuleType, shown: set[type]) -> str:
    """A module's names; those of a class's members where the class comes first."""
    lines = [f"## `{module.__name__}`", "", first_sentence(inspect.getdoc(module) or ""), ""]
    lines += ["| name | what it is |", "|---|---|"]
    for name in sorted(module.__all__, key=str.lower):
        found = getattr(module, name)
        if isinstance(found, ModuleType) and callable(found):
            found = getattr(found, name)  # a folder that is a function too
        elsewhere = isinstance(found, ModuleType)
        label = (
            f"[`{name}`](#{found.__name__.replace('.', '')})" if elsewhere else _code(name, found)
        )
        lines.append(_row(label, description(module, name)))
        if isinstance(found, type) and found not in shown and not issubclass(found, Exception):
            shown.add(found)
            for member, value in members(found):
                of = _code(f"{name}.{member}", getattr(found, member, value))
                lines.append(_row(of, first_sentence(inspect.getdoc(value) or "")))
    return "\n".join([*lines, ""])


def _row(label: str, text: str) -> str:
    return f"| {label} | {text.replace('|', chr(92) + '|')} |"


def _code(name: str, found: Any) -> str:
    """A name, of a function with its parameters."""
    if not inspect.isfunction(found) and not inspect.ismethod(found):
        return f"`{name}`"
    shown = []
    for p in inspect.signature(found).parameters.values():
        if p.name not in ("self", "cls"):
            shown.append(p.replace(annotation=p.empty))
    return f"`{name}{inspect.Signature(shown)}`".replace("|", "\\|")


def _comments(module: ModuleType) -> dict[str, str]:
    """The first sentences of `#:` comments above names, in all files of a module."""
    found: dict[str, str] = {}
    for file in sorted(Path(str(module.__file__)).parent.glob("*.py")):
        for comment, name in re.findall(r"((?:^#: .*\n)+)^(\w+)\b.* = ", file.read_text(), re.M):
            text = " ".join(line.removeprefix("#:").strip() for line in comment.splitlines())
            found[name] = first_sentence(text)
    return found


if __name__ == "__main__":
    pages = {PAGE: page(), SUPPORTED: supported()}
    if sys.argv[1:] == ["--check"]:
        stale = [p.name for p, text in pages.items() if not p.exists() or p.read_text() != text]
        for name in stale:
            print(f"{name} differs: run this script")
        sys.exit(bool(stale))
    for path, text in pages.items():
        path.write_text(text)
