"""The primitives of `slots` on Python lists, for partials that are Python objects.

As a function, each primitive would cost a Python call, and a round of insert, evict and query uses
15 and more.  So `rewritten` replaces each primitive in a kernel by a Python expression or
assignment, once for all operators:

    get(m, END)            m.header[END]
    combine(m, d, a, b)    m.slots[d] = combine(m.slots[a], m.slots[b])

It also inlines functions that are one expression.  The first step halves the time of a round, and
the second shortens a Fiba's by another fifth.  Two more steps saved at most 5 % each and are left
out: to inline a function that its caller calls last, and to look up `m.slots` once in a function.
"""

from __future__ import annotations

import ast
import linecache
from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from types import CodeType
from typing import Any

from ..operators.contract import Operator
from .rewrite import Expressions, Primitives, syntax_of
from .slots import HEADER

__all__ = ["ObjectMemory", "bind"]

Functions = tuple[Callable[..., Any], ...]


class ObjectMemory:
    """A kernel's memory as Python lists: header, partials, links."""

    __slots__ = ("header", "links", "slots")

    def __init__(self, slots: int, identity: Any, *, link: bool) -> None:
        self.header = [0] * HEADER
        self.slots = [identity] * slots
        self.links = [0] * slots if link else []

    def lists(self) -> tuple[list[Any], ...]:
        """All lists of the memory."""
        return self.header, self.slots, self.links


#: The text that replaces each primitive.  In it, `combine`, `inverse`, `lift` and `lower` are the
#: operator's functions, and `_identity` is its identity.
_PRIMITIVES = {
    "get": "{0}.header[{1}]",
    "put": "{0}.header[{1}] = {2}",
    "combine": "{0}.slots[{1}] = combine({0}.slots[{2}], {0}.slots[{3}])",
    "partial": "{0}.slots[{1}]",
    "gathered": "{0}.slots[{1}]",
    "set_partial": "{0}.slots[{1}] = {2}",
    "lowered": "{2}[{3}] = lower({1})",
    "combined": "combine({0}, {1})",
    "short": "{0}",
    "inverse": "{0}.slots[{1}] = inverse({0}.slots[{2}], {0}.slots[{3}])",
    "copy": "{0}.slots[{1}] = {0}.slots[{2}]",
    "alike": "{0}.slots[{1}] is {0}.slots[{2}]",
    "clear": "{0}.slots[{1}] = _identity",
    "drop": "{0}.slots[{1}] = _identity",
    "lift": "{0}.slots[{1}] = lift({2}, {3})",
    "fold_rows": "{0}.slots[{1}] = _fold_rows({3}, {4}, {5})",
    "lower": "{2}[{3}] = lower({0}.slots[{1}])",
    "load": "{0}.slots[{1}] = {2}[{3}]",
    "store": "{2}[{3}] = {0}.slots[{1}]",
    "holds": "_holds({0}.slots[{1}], {0}.slots[{2}])",
    "link": "{0}.links[{1}]",
    "set_link": "{0}.links[{1}] = {2}",
    "word": "{0}.slots[{1}]",
    "set_word": "{0}.slots[{1}] = {2}",
    "move_words": "{0}.slots[{1}:{1} + {3}] = {0}.slots[{2}:{2} + {3}]",
    "item": "{0}[{1}]",
    "set_item": "{0}[{1}] = {2}",
    "zeros": "(({0}) & -({0})).bit_length() - 1",
    "below": "sum([x < {2} for x in {0}[{1} : {1} + 8]])",
    "set_ranks": "{0}[{1} : {1} + 8] = _ranks({2}, {3}, {4}, {5})",
}

#: `lift` for an operator of one column that skips nulls; it tests for null without a call.
_LIFT_ONE = "{0}.slots[{1}] = _identity if {2}[0][{3}] is None else lift({2}[0][{3}])"


def bind(
    name: str, functions: Functions, constants: dict[str, int], operator: Operator
) -> dict[str, Any]:
    """Bind a kernel's functions to an operator; return them by name."""
    one = operator.shape != "vector" and tuple(operator.skips) == (True,)
    names: dict[str, Any] = {
        "combine": operator.python_combine(),
        "_identity": operator.identity,
        "_ranks": _ranks,
        "_fold_rows": _fold_rows(operator.python_combine(), _lift(operator)),
        "lift": operator.lift if one else _lift(operator),
        "lower": operator.python_lower(),
    }
    if operator.invertible:
        names["inverse"] = operator.python_inverse()
    if operator.rule:
        names["_holds"] = _holds(operator)
    names |= constants
    for function in functions:
        for key, value in function.__globals__.items():
            if isinstance(value, int):
                names.setdefault(key, value)
    exec(_code(name, functions, one), names)
    return names


def _fold_rows(
    combine: Callable[[Any, Any], Any], lift: Callable[[Any, int], Any]
) -> Callable[[Any, int, int], Any]:
    """Make the primitive that lifts and combines many rows."""

    def fold_rows(columns: Any, first: int, last: int) -> Any:
        found = lift(columns, first)
        for i in range(first + 1, last):
            found = combine(found, lift(columns, i))
        return found

    return fold_rows


def _ranks(values: list[int], i: int, less: int, low: int) -> list[int]:
    """The numbers that the primitive `set_ranks` sets."""
    return [bisect_left(values, x - less, low, i + 8) for x in values[i : i + 8]]


def _lift(operator: Operator) -> Callable[[Any, int], Any]:
    """Make a function that lifts one row of the columns."""
    lift = operator.python_lift()
    if len(operator.skips) == 1:
        return lambda columns, row: lift(columns[0][row])
    return lambda columns, row: lift(tuple(c[row] for c in columns))


def _holds(operator: Operator) -> Callable[[Any, Any], bool]:
    """Make a function that applies the operator's rule to two partials."""
    rule, lower = operator.rule, operator.parts[-1].operator.python_lower()
    assert rule is not None
    return lambda total, old: bool(rule(lower(total[-1]), lower(old[-1])))


@cache
def _code(name: str, functions: Functions, one: bool) -> CodeType:
    """Compile the rewritten kernel.  `one` means that the operator reads one column and skips its
    nulls."""
    text = rewritten(functions, one)
    filename = f"<sash {name} on objects{', one column' if one else ''}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    return compile(text, filename, "exec", dont_inherit=True)


def rewritten(functions: Functions, one: bool) -> str:
    """The source of a kernel for Python lists."""
    trees = {f.__name__: syntax_of(f) for f in functions}
    for tree in trees.values():
        Expressions(tree, trees).visit(tree)
    known = _PRIMITIVES | ({"lift": _LIFT_ONE} if one else {})
    for tree in trees.values():
        Primitives({p: text for p, text in known.items() if p not in trees}).visit(tree)
        _Narrow().visit(tree)
    return "\n\n".join(ast.unparse(tree) for tree in trees.values()) + "\n"


class _Narrow(ast.NodeTransformer):
    """Leaves out multiplications by WIDTH, which is 1 in a list."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        by_width = isinstance(node.left, ast.Name) and node.left.id == "WIDTH"
        return node.right if by_width and isinstance(node.op, ast.Mult) else node
