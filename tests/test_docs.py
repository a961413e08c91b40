"""The pages in docs: their code runs, what they show is what comes out, and their links lead
somewhere.

Blocks marked `python` and `pycon` run, in order, in one namespace for each page; those that need
Spark run with Spark's tests (`tests/spark/test_docs.py`), and those marked `text` are not run.
"""

from __future__ import annotations

import doctest
import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
RUN = {"aggregates", "windows", "late", "coming-from", "operators", "tutorial", "extending", "sql"}
RUN |= {"cluster", "semantics", "stores"}

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


PERFORMANCE: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "performance.py"))


def test_the_page_of_figures_is_up_to_date() -> None:
    same = PERFORMANCE["PAGE"].read_text() == PERFORMANCE["page"]()
    assert same, "docs/performance.md differs from the figures: run python tools/performance.py"


def test_the_page_of_figures_lists_what_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workload of no section, and a part on Spark, each with a bound that holds and one not."""
    bounds = [
        {"contender": "ours", "peer": "Polars", "sign": "≤", "limit": 0.5, "value": 0.6},
        {"contender": "ours", "peer": None, "sign": "<", "limit": 3e-9, "value": 2e-9},
    ]
    for bound, holds in zip(bounds, (False, True), strict=True):
        bound["holds"] = holds
    figure = {"name": "new", "title": "a new workload", "unit": "row", "measure": "seconds"}
    figure |= {"ours": {"ours": None}, "peers": ["Polars"], "missing": [], "columns": {}}
    figure |= {"best": {"ours": 2e-9, "Polars": 3.3e-9}, "first_call": {}, "bounds": bounds}
    figure |= {"commit": "1234567", "load_average": [1.0, 1.5], "machine": 0}
    lines = [
        {"name": "sash over native", "value": 1.2, "unit": "×", "most": 1.0},
        {"name": "a micro-batch", "value": 0.5, "unit": "s", "most": 1.0},
    ]
    part = {"commit": "7654321", "load": 2.0, "machine": {"cores": "4"}, "title": "Of both."}
    files = {
        "tables-and-windows": {"machines": [{"cores": "2"}], "figures": {"new": figure}},
        "spark": {"parts": {"batch": part | {"quick": False, "lines": lines}}},
    }
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    monkeypatch.setattr(PERFORMANCE["kept"], "FOLDER", tmp_path)
    page = PERFORMANCE["page"]()
    assert "2 of 4 bounds hold. Missed:" in page
    assert "- `new`: ours takes 0.600 of Polars, wanted ≤ 0.5\n" in page
    assert "- Spark: sash over native: 1.20 ×, wanted ≤ 1\n" in page
    assert "| ours | 2.0 ns | 0.61 (≤ 0.5 MISS) | (< 3.0 ns PASS) |" in page
    assert "| a micro-batch | 0.50 s | ≤ 1 PASS |" in page
    assert (
        "cores 2: tables, streams and windows at commit 1234567, load average 1.0 to 1.5." in page
    )
    assert "cores 4: Spark at commit 7654321, load average 2.0 to 2.0." in page
