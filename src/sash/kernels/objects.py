"""The words of `slots` on Python lists, for partials that are any object.

A word as a function would cost a Python call, and a round of insert, evict and query says 15 words
and more.  So a kernel is rewritten, once for all operators, to what its words stand for:

    get(m, END)            m.header[END]
    combine(m, d, a, b)    m.slots[d] = combine(m.slots[a], m.slots[b])

and functions that are one expression, or are called last of all, become part of their callers.
Words alone halve the time of a round; the rest takes another 6 to 25 % off.
"""

from __future__ import annotations

import ast
import linecache
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from types import CodeType
from typing import Any

from ..operators.contract import Operator
from .rewrite import Expressions, Words, all_names, called, locals_of, names_in, syntax_of
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


#: What each word becomes; `combine`, `inverse`, `lift` and `lower` are then the operator's, and
#: `_identity` is its identity.
_WORDS = {
    "get": "{0}.header[{1}]",
    "put": "{0}.header[{1}] = {2}",
    "combine": "{0}.slots[{1}] = combine({0}.slots[{2}], {0}.slots[{3}])",
    "fold": "{0}.slots[{1}] = _fold({0}.slots, {2}, {3})",
    "weave": "{0}.slots[{1}] = _weave({0}.slots, {2}, {3}, {4})",
    "accumulate": "_accumulate({0}.slots, {1}, {2}, {3}, {4})",
    "inverse": "{0}.slots[{1}] = inverse({0}.slots[{2}], {0}.slots[{3}])",
    "copy": "{0}.slots[{1}] = {0}.slots[{2}]",
    "clear": "{0}.slots[{1}] = _identity",
    "drop": "{0}.slots[{1}] = _identity",
    "lift": "{0}.slots[{1}] = lift({2}, {3})",
    "fold_rows": "{0}.slots[{1}] = _fold_rows({3}, {4}, {5})",
    "lower": "{2}[{3}] = lower({0}.slots[{1}])",
    "load": "{0}.slots[{1}] = {2}[{3}]",
    "store": "{2}[{3}] = {0}.slots[{1}]",
    "link": "{0}.links[{1}]",
    "set_link": "{0}.links[{1}] = {2}",
    "word": "{0}.slots[{1}]",
    "set_word": "{0}.slots[{1}] = {2}",
    "move_words": "{0}.slots[{1}:{1} + {3}] = {0}.slots[{2}:{2} + {3}]",
    "item": "{0}[{1}]",
    "set_item": "{0}[{1}] = {2}",
}

#: The usual operator's lift, without a call to see whether there is a value.
_LIFT_ONE = "{0}.slots[{1}] = _identity if {2}[0][{3}] is None else lift({2}[0][{3}])"


def bind(
    name: str, functions: Functions, constants: dict[str, int], operator: Operator
) -> dict[str, Any]:
    """A kernel's functions for an operator, by name."""
    one = operator.shape != "vector" and tuple(operator.skips) == (True,)
    names: dict[str, Any] = {
        "combine": operator.python_combine(),
        "_identity": operator.identity,
        **_folds(operator.python_combine(), _lift(operator)),
        "lift": operator.lift if one else _lift(operator),
        "lower": operator.python_lower(),
    }
    if operator.invertible:
        names["inverse"] = operator.python_inverse()
    names |= constants
    for function in functions:
        for key, value in function.__globals__.items():
            if isinstance(value, int):
                names.setdefault(key, value)
    exec(_code(name, functions, one), names)
    return names


def _folds(
    combine: Callable[[Any, Any], Any], lift: Callable[[Any, int], Any]
) -> dict[str, Callable[..., Any]]:
    """The words that combine many slots or rows."""

    def fold(slots: list[Any], first: int, count: int) -> Any:
        found = slots[first]
        for i in range(first + 1, first + count):
            found = combine(found, slots[i])
        return found

    def weave(slots: list[Any], between: int, first: int, count: int) -> Any:
        found = slots[first]
        for i in range(1, count):
            found = combine(combine(found, slots[between + i]), slots[first + i])
        return found

    def accumulate(slots: list[Any], ring: int, mask: int, first: int, last: int) -> None:
        found = slots[ring + (last & mask)]
        for p in range(last - 1, first - 1, -1):
            at = ring + (p & mask)
            found = slots[at] = combine(slots[at], found)

    def fold_rows(columns: Any, first: int, last: int) -> Any:
        found = lift(columns, first)
        for i in range(first + 1, last):
            found = combine(found, lift(columns, i))
        return found

    return {"_fold": fold, "_weave": weave, "_accumulate": accumulate, "_fold_rows": fold_rows}


def _lift(operator: Operator) -> Callable[[Any, int], Any]:
    """The partial of one row of columns."""
    lift = operator.python_lift()
    if len(operator.skips) == 1:
        return lambda columns, row: lift(columns[0][row])
    return lambda columns, row: lift(tuple(c[row] for c in columns))


@cache
def _code(name: str, functions: Functions, one: bool) -> CodeType:
    """A kernel rewritten; `one` is for operators of one column whose nulls are skipped."""
    text = rewritten(functions, one)
    filename = f"<sash {name} on objects{', one column' if one else ''}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    return compile(text, filename, "exec", dont_inherit=True)


def rewritten(functions: Functions, one: bool) -> str:
    """The source of a kernel for Python lists."""
    trees = {f.__name__: syntax_of(f) for f in functions}
    for tree in trees.values():
        Expressions(tree, trees).visit(tree)
    for tree in trees.values():
        _join_last(tree, trees)
    words = _WORDS | ({"lift": _LIFT_ONE} if one else {})
    for tree in trees.values():
        Words({w: text for w, text in words.items() if w not in trees}).visit(tree)
        _keep_lists(tree)
    return "\n\n".join(ast.unparse(tree) for tree in trees.values()) + "\n"


def _join_last(caller: ast.FunctionDef, trees: dict[str, ast.FunctionDef]) -> None:
    """Make a function that the last statement calls part of its caller, if that is simple.

    The statement itself goes to where the function returns, with what is returned in the
    place of the call: `lower(m, query(m), outputs, row)` answers in each branch of `query`.
    """
    last = caller.body[-1]
    outer = last.value if isinstance(last, ast.Expr | ast.Return) else None
    if not isinstance(outer, ast.Call):
        return
    # The other arguments are names, which mean the same after the function as before it.
    parts = [outer] if called(outer, trees) else outer.args
    call, *more = [n for n in parts if not isinstance(n, ast.Name | ast.Constant)] or [outer]
    function = called(call, trees)
    if more or function is None or function is caller or not isinstance(call, ast.Call):
        return
    alone = isinstance(last, ast.Expr) and call is outer
    if not alone and not isinstance(function.body[-1], ast.Return):
        return
    if (names_in(function) - locals_of(function)) & locals_of(caller):
        return
    function = deepcopy(function)
    stored = {n.id for n in all_names(function) if not isinstance(n.ctx, ast.Load)}
    given = dict(zip((a.arg for a in function.args.args), call.args, strict=True))
    new = {n: f"{function.name}_{n}" for n in stored | given.keys()}
    for name, x in given.items():
        if isinstance(x, ast.Name) and name not in stored:
            new[name] = x.id
    for node in all_names(function):
        node.id = new.get(node.id, node.id)
    body: list[ast.stmt] = [
        ast.Assign([ast.Name(new[name], ast.Store())], x, lineno=0)
        for name, x in given.items()
        if not (isinstance(x, ast.Name) and new[name] == x.id)
    ]
    for statement in function.body:
        made = _Returns(None if alone else last, call).visit(statement)
        body += made if isinstance(made, list) else [made]
    if isinstance(body[-1], ast.Return) and body[-1].value is None:
        body.pop()
    caller.body[-1:] = body


class _Returns(ast.NodeTransformer):
    """Puts a statement before each return, with what is returned in the place of a call."""

    def __init__(self, statement: ast.stmt | None, call: ast.Call) -> None:
        self._statement = statement
        self._call = call

    def visit_Return(self, node: ast.Return) -> Any:
        if self._statement is None:
            return node
        assert node.value is not None
        # deepcopy takes what it is told for a copy, here the value for the call's
        made = deepcopy(self._statement, {id(self._call): node.value})
        return made if isinstance(made, ast.Return) else [made, ast.Return()]


def _keep_lists(function: ast.FunctionDef) -> None:
    """Look up a list of the memory once, where a function uses it several times."""
    memory = function.args.args[0].arg if function.args.args else ""
    uses = Counter(
        ast.unparse(n)
        for n in ast.walk(function)
        if isinstance(n, ast.Attribute) and ast.unparse(n.value) == memory
    )
    several = {use: use.replace(".", "_") for use, n in uses.items() if n > 1}

    class Keep(ast.NodeTransformer):
        def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
            name = several.get(ast.unparse(node))
            return ast.Name(name, node.ctx) if name else self.generic_visit(node)

    Keep().visit(function)
    function.body[:0] = ast.parse("\n".join(f"{k} = {use}" for use, k in several.items())).body
