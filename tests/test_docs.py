"""The pages in docs: their code runs, what they show is what comes out, and their links lead
somewhere.

Blocks marked `python` and `pycon` run, in order, in one namespace for each page; those that need
Spark run with Spark's tests (`tests/spark/test_docs.py`), and those marked `text` are not run.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
RUN = {"aggregates", "windows", "late", "coming-from", "operators", "tutorial", "extending", "sql"}
RUN.add("stores")

pytestmark = pytest.mark.plain


def blocks(page: Path) -> list[tuple[str, str, int]]:
    """The blocks of code: what they are marked as, their text, and the line they begin at."""
    text = page.read_text()
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.S | re.M)
    return [(m[1], m[2], text[: m.start()].count("\n") + 2) for m in found]


def needs_spark(code: str) -> bool:
    return "sash.spark" in code or "spark." in code


def run(page: Path, names: dict[str, Any], *, spark: bool = False) -> None:
    """Run the blocks of a page; with Spark also those that need it."""
    for kind, code, line in blocks(page):
        if kind == "python" and (spark or not needs_spark(code)):
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)
        elif kind == "pycon":
            test = doctest.DocTestParser().get_doctest(code, {}, page.name, str(page), line - 1)
            test.globs = names  # a doctest would copy them, and the next block knows nothing
            said: list[str] = []
            runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
            runner.run(test, out=said.append, clear_globs=False)
            assert not said, "".join(said)


@pytest.mark.parametrize("name", sorted(RUN))
def test_what_a_page_shows_is_what_comes_out(name: str) -> None:
    run(ROOT / "docs" / f"{name}.md", {"__name__": "__main__"})


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in target:
            continue
        file, _, place = target.partition("#")
        there = page.parent / file if file else page
        assert there.exists(), f"{page.name} links to {target}"
        if place and there.suffix == ".md":
            assert place in headings(there), f"{page.name} links to {target}"


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.S)


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    lines = re.findall(r"^#+ (.*)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def test_every_block_says_what_it_is() -> None:
    for page in PAGES:
        if page.stem in RUN:
            assert {kind for kind, _, _ in blocks(page)} <= {"python", "pycon", "text"}
