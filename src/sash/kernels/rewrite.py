"""Rewrites a kernel's syntax tree before it becomes text.

Expressions   inlines functions that are one expression into their callers
Buffers       removes what only Python objects need
Plain         keeps numba from specialising a function to a constant argument
Primitives    replaces each primitive by its load, store or call
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

__all__ = ["Buffers", "Expressions", "Plain", "Primitives", "syntax_of"]

T = TypeVar("T")


def syntax_of(function: Callable[..., Any]) -> ast.FunctionDef:
    """Parse a function, and leave out its annotations, docstring and decorators."""
    return _copied(_syntax_of(function))


@cache
def _syntax_of(function: Callable[..., Any]) -> ast.FunctionDef:
    tree = ast.parse(inspect.getsource(function)).body[0]
    assert isinstance(tree, ast.FunctionDef)
    tree.decorator_list, tree.returns = [], None
    for argument in tree.args.args:
        argument.annotation = None
    if ast.get_docstring(tree) is not None and len(tree.body) > 1:
        del tree.body[0]
    return tree


def _copied(tree: T) -> T:
    """Copy a tree without its positions in the file: deepcopy takes ten times as long."""
    if isinstance(tree, list):
        return [_copied(each) for each in tree]  # type: ignore[return-value]
    if not isinstance(tree, ast.AST):
        return tree
    made = type(tree)(**{name: _copied(value) for name, value in ast.iter_fields(tree)})
    if isinstance(made, ast.stmt):
        made.lineno = 0  # unparse asks for it
    return made


def _all_names(tree: ast.AST) -> list[ast.Name]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.Name)]


def _names_in(tree: ast.AST) -> set[str]:
    return {n.id for n in _all_names(tree)}


def _locals_of(tree: ast.FunctionDef) -> set[str]:
    """A function's parameters and local variables."""
    stored = {n.id for n in _all_names(tree) if not isinstance(n.ctx, ast.Load)}
    return stored | {a.arg for a in tree.args.args}


def _called(node: ast.AST, trees: dict[str, ast.FunctionDef]) -> ast.FunctionDef | None:
    """The kernel's function that a node calls, or None."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    function = trees.get(node.func.id)
    plain = function and not node.keywords and len(node.args) == len(function.args.args)
    return function if plain else None


class _Put(ast.NodeTransformer):
    """Replaces names by expressions."""

    def __init__(self, given: dict[str, ast.expr]) -> None:
        self._given = given

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return _copied(self._given[node.id]) if node.id in self._given else node


class Expressions(ast.NodeTransformer):
    """Inlines each call of a function that is one expression."""

    def __init__(self, caller: ast.FunctionDef, trees: dict[str, ast.FunctionDef]) -> None:
        self._trees = {name: f for name, f in trees.items() if f is not caller}
        self._locals = _locals_of(caller)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = _called(node, self._trees)
        if function is None or not isinstance(function.body[0], ast.Return):
            return node
        answer = function.body[0].value
        given = dict(zip((a.arg for a in function.args.args), node.args, strict=True))
        if answer is None or (_names_in(answer) - given.keys()) & self._locals:
            return node
        used = [n.id for n in _all_names(answer)]
        for name, argument in given.items():
            if not isinstance(argument, ast.Name | ast.Constant) and used.count(name) != 1:
                return node  # the caller would compute the argument more than once, or not at all
        return self.visit(_Put(given).visit(_copied(answer)))  # type: ignore[no-any-return]


class Plain(ast.NodeTransformer):
    """Wraps constant arguments of a kernel's functions in `as_int(…)`: numba would compile a
    function anew for every constant that it is called with."""

    def __init__(self, functions: set[str]) -> None:
        self._functions = functions

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in self._functions:
            node.args = [self._plain(a) for a in node.args]
        return node

    def _plain(self, argument: ast.expr) -> ast.expr:
        if not all(name.isupper() for name in _names_in(argument)):
            return argument
        return ast.Call(ast.Name("as_int", ast.Load()), [argument], [])


class Buffers(ast.NodeTransformer):
    """Removes what kernels do only for Python objects: `if OBJECTS:`, and loops that only `drop`.
    The compiler would remove it too, but numba would spend its time on it first."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if isinstance(node.test, ast.Name) and node.test.id == "OBJECTS":
            return node.orelse or ast.Pass()
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        return ast.Pass() if all(_is_drop(each) for each in node.body) else node


def _is_drop(node: ast.stmt) -> bool:
    """True for a statement that only drops a slot, in which a buffer keeps what it has."""
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "drop"


class Primitives(ast.NodeTransformer):
    """Rewrites each kernel primitive into its load, store or call.

    `templates` has one template for each primitive; `{0}`, `{1}`, … stand for its arguments.
    """

    def __init__(self, templates: dict[str, str]) -> None:
        self._templates = templates

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Rewrite a primitive used as a statement."""
        made = self._rewritten(node.value)
        return made if made else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Rewrite a primitive used as an expression."""
        made = self._rewritten(node)
        if isinstance(made, ast.Expr):
            return made.value
        if made:
            raise SyntaxError(f"in a kernel, {ast.unparse(node)} is a statement and has no value")
        return self.generic_visit(node)

    def _rewritten(self, node: ast.AST) -> ast.stmt | None:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            return None
        if node.func.id not in self._templates:
            return None
        given = {f"_{i}": self.visit(argument) for i, argument in enumerate(node.args)}
        text = self._templates[node.func.id].format(*given)
        return _Put(given).visit(ast.parse(text).body[0])  # type: ignore[no-any-return]
