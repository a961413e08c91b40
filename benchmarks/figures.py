"""Figures that are kept with the project, from which `tools/performance.py` writes its page.

A file has the machines that were measured on, and what was measured by name, with the commit, the
load and the machine (its place in the list) of each.  Saving replaces what has the same name.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "commit", "load", "save"]

FOLDER = Path(__file__).parent / "figures"


def load(name: str) -> dict[str, Any]:
    """What a file has: `{"machines": [...], "figures": {name: {...}}}`, or nothing yet."""
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def save(name: str, machine: dict[str, str], figures: Mapping[str, dict[str, Any]]) -> Path:
    """Put figures into a file, in place of those that have the same names."""
    kept = {"machines": [], "figures": {}} | load(name)
    machines: list[dict[str, str]] = kept["machines"]
    if machine not in machines:
        machines.append(machine)
    place = machines.index(machine)
    merged = kept["figures"] | {
        each: {**figure, "machine": place} for each, figure in figures.items()
    }
    used = sorted({figure["machine"] for figure in merged.values()})
    for figure in merged.values():
        figure["machine"] = used.index(figure["machine"])
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.json"
    text = json.dumps({"machines": [machines[i] for i in used], "figures": merged}, indent=1)
    path.write_text(text + "\n")
    return path


def commit() -> str:
    """The commit that is measured, with "+" if sources have been changed since; "unknown" where
    there is no repository."""
    root = Path(__file__).parent.parent
    try:
        head = _git(root, "rev-parse", "--short", "HEAD")
        changed = _git(root, "status", "--porcelain", "--", "src", "benchmarks/*.py")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head}+" if changed else head


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
