"""Figures of the benchmarks on Spark, kept by part: `spark.py` has the format."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .spark_bench import Line

__all__ = ["Saved", "commit"]


class Saved:
    """A file of figures, of which each part is replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, name: str, about: dict[str, Any], lines: Sequence[Line]) -> None:
        """Replace the figures of a part, and leave all others as they are."""
        found = json.loads(self.path.read_text()) if self.path.exists() else {}
        parts = found.get("parts", {})
        parts[name] = {**about, "lines": [asdict(line) for line in lines]}
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(json.dumps({"parts": parts}, indent=1, ensure_ascii=False) + "\n")


def commit() -> str:
    """The commit that is measured; "+" behind it says that sources have changed since."""

    def said(*words: str) -> str:
        asked = ["git", "-C", str(Path(__file__).parent), *words]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = said("status", "--porcelain", "--untracked-files=no", "--", "../src", ".")
        kept = all(line.endswith("figures/spark.json") for line in changed.splitlines())
        return said("rev-parse", "--short", "HEAD") + ("" if kept else "+")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
