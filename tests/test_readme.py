"""The README's examples of streams and windows: what they show is what comes out."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pandas as pd

README = Path(__file__).resolve().parent.parent / "README.md"


def test_streams() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    (text,) = [block for block in blocks if "stream.push(batch(" in block]
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
