"""`make test` has stages, and what one of them leaves out another one runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from thinning import FULL, cover

TESTS = Path(__file__).parent
MAKEFILE = TESTS.parent / "Makefile"


def named(name: str) -> list[Path]:
    """The files and folders that a variable of the Makefile lists."""
    text = MAKEFILE.read_text().replace("\\\n", " ")
    found = re.search(rf"^{name} = (.*)$", text, re.MULTILINE)
    assert found, name
    words = re.sub(r"\$\((addprefix tests/,|wildcard)|\)", " ", found[1]).split()
    return [TESTS / word.removeprefix("tests/") for word in words]


def listed(name: str) -> set[str]:
    """The test files among them, and in the folders."""
    files = {str(p) for path in named(name) for p in path.glob("**/test_*.py")}
    return files | {str(path) for path in named(name) if path.is_file()}


def marks(source: str) -> Iterator[set[str]]:
    """The marks of each test that a file has, its classes' and its own among them."""
    tree = ast.parse(source)
    whole = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and "pytestmark" in map(ast.unparse, node.targets)
    ]
    yield from _marks_below(tree, _names(whole))


def _marks_below(parent: ast.Module | ast.ClassDef, above: set[str]) -> Iterator[set[str]]:
    for node in parent.body:
        if isinstance(node, ast.ClassDef):
            yield from _marks_below(node, above | _names(node.decorator_list))
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            yield above | _names(node.decorator_list)


def _names(expressions: list[ast.expr]) -> set[str]:
    """What comes after `mark.` in them, also among the marks of a parameter."""
    return {
        node.attr
        for expression in expressions
        for node in ast.walk(expression)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Attribute | ast.Name)
        and ast.unparse(node.value).split(".")[-1] == "mark"
    }


def marked(name: str) -> set[str]:
    files = TESTS.glob("**/test_*.py")
    return {str(p) for p in files if any(name in found for found in marks(p.read_text()))}


def test_marks_are_found_wherever_they_are() -> None:
    source = """
pytestmark = [pytest.mark.slow]

@pytest.mark.once  # why
def test_a(): ...

@mark.parametrize("x", [pytest.param(1, marks=pytest.mark.plain)])
def test_b(x): ...

@pytest.mark.once()
class TestC:
    @pytest.mark.plain
    def test_d(self): ...
"""
    assert list(marks(source)) == [
        {"slow", "once"},
        {"slow", "parametrize", "plain"},
        {"slow", "once", "plain"},
    ]


def test_no_test_is_left_out_of_both_stages() -> None:
    for path in TESTS.glob("**/test_*.py"):
        assert not any({"once", "plain"} <= found for found in marks(path.read_text())), path


def test_what_one_stage_leaves_out_another_one_runs() -> None:
    plain, jit_only, plain_only = map(listed, ("PLAIN_TESTS", "JIT_ONLY", "PLAIN_ONLY"))
    assert jit_only
    assert jit_only <= plain
    assert plain_only <= plain - jit_only
    assert marked("plain") <= plain - jit_only
    assert not marked("once") & plain_only


@pytest.mark.thin
@pytest.mark.parametrize("a", range(6))
@pytest.mark.parametrize("b", range(6))
def test_a_product_is_thinned(a: int, b: int, request: pytest.FixtureRequest) -> None:
    mine = [item for item in request.session.items if item.name.startswith("test_a_product_is_t")]
    assert FULL or len(mine) <= 6


@pytest.mark.parametrize("begin", [0, 13])
def test_a_thinned_product_has_every_value_or_every_pair(begin: int) -> None:
    cases = [(a, b, c) for a in "abcd" for b in "efg" for c in "hi"]
    ones = [cases[i] for i in cover(cases, 1, begin)]
    assert len(ones) == 4
    assert {x for case in ones for x in case} == set("abcdefghi")
    twos = [cases[i] for i in cover(cases, 2, begin)]
    assert len(twos) == 12
    assert {(x, y) for case in twos for x in case for y in case} == {
        (x, y) for case in cases for x in case for y in case
    }


@pytest.mark.parametrize(
    "name",
    ["PLAIN_TESTS", "JIT_ONLY", "PLAIN_ONLY", "CHECK_TESTS", "SPARK_TESTS", "FAULT_TESTS"],
)
def test_what_the_makefile_names_is_there(name: str) -> None:
    assert named(name)
    assert not [path for path in named(name) if not path.exists()]
