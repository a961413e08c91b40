"""The README's examples of streams and windows: what they show is what comes out."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

README = Path(__file__).resolve().parent.parent / "README.md"


#: Rows in the README, and how many are enough here.
FEWER = {"10_000_000": "20_000", "1_000_000": "1_000"}


def test_all_of_it_runs_in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One block after the other; `front/test_as_printed.py` runs those on Spark, too."""
    monkeypatch.chdir(tmp_path)
    names = dict[str, Any]()
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    assert len(blocks) >= 7
    for block in blocks:
        if "import sash.spark" in block:
            continue
        text = "\n".join(line for line in block.splitlines() if "spark" not in line)
        for many, fewer in FEWER.items():
            text = text.replace(many, fewer)
        exec(text, names)
    assert len(names["late"].run(names["events"])) == 40
    names["store"].close()


def test_streams() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    (text,) = [block for block in blocks if "def batch(" in block]
    shown = re.findall(r"^# (.*(?:\n# .*)*)$", text, re.M)
    shown = [re.sub(r"\n# ", "\n", part) for part in shown if not part.startswith("nothing")]
    said, names = [], dict[str, Any]()
    for statement in ast.parse(text).body:
        source = ast.unparse(statement)
        if not isinstance(statement, ast.Expr):
            exec(source, names)
            continue
        made = eval(source, names)
        if not isinstance(made, pd.DataFrame) or len(made):
            said.append(str(made))
    assert [part.split() for part in said] == [part.split() for part in shown]


def test_windows() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    texts = [block for block in blocks if "sash.trailing(" in block]
    names = dict[str, Any]()
    assert len(texts) == 2
    for text in texts:
        *statements, last = ast.parse(text).body
        exec("\n".join(map(ast.unparse, statements)), names)
        assert text.strip().endswith(f"# {eval(ast.unparse(last), names)}")
