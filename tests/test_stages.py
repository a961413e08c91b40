"""`make test` has stages, and what one of them leaves out another one runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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


def marked(name: str) -> set[str]:
    return {str(p) for p in TESTS.glob("**/test_*.py") if f"mark.{name}\n" in p.read_text()}


def test_what_one_stage_leaves_out_another_one_runs() -> None:
    plain, jit_only, plain_only = map(listed, ("PLAIN_TESTS", "JIT_ONLY", "PLAIN_ONLY"))
    assert jit_only
    assert jit_only <= plain
    assert plain_only <= plain - jit_only
    assert marked("plain") <= plain - jit_only
    assert not marked("once") & plain_only


@pytest.mark.parametrize("name", ["PLAIN_TESTS", "JIT_ONLY", "PLAIN_ONLY", "CHECK_TESTS"])
def test_what_the_makefile_names_is_there(name: str) -> None:
    assert named(name)
    assert not [path for path in named(name) if not path.exists()]
