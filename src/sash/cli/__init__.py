"""The `sash` command: `sash run job.toml` and its companions.

app       the commands and their options
job       a job file: its tables and keys
lines     the line of each key in a TOML file
check     a job tied to its source's columns, checked without Java
local     runs a job in this process
on_spark  runs a job on Spark

Each command imports the modules that it needs, so `sash --help` answers at once.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]

_NEEDED = ("typer", "rich", "pydantic")


def main() -> None:
    """The entry point of the `sash` command."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise SystemExit(
            f"the sash command needs {', '.join(missing)}, which this Python does not have: "
            "pip install 'sash[cli]'"
        )
    from .app import app

    app(_with_port(sys.argv[1:]), prog_name="sash")


def _with_port(arguments: list[str]) -> list[str]:
    """Add the default port to a --page that has none."""
    made = []
    for i, word in enumerate(arguments):
        made.append(word)
        if word == "--page" and not "".join(arguments[i + 1 : i + 2]).isdigit():
            from ..page import PORT

            made.append(str(PORT))
    return made
