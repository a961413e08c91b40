"""Where generated kernels live between processes.

A kernel's source is written once under a name that says what is in it, and numba keeps the
compiled code beside it.  Several processes may write at once: a file is made whole
under a name of its own and linked into place, and who comes second leaves the first's file
alone (numba's index goes by its time stamp).  Where no folder can be written, kernels are
compiled in memory.
"""

from __future__ import annotations

import importlib.util
import json
import linecache
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["folder", "in_memory", "load", "read_facts", "write_facts"]


def folder() -> Path | None:
    """The cache folder, made if need be; None if it cannot be written.

    `SASH_CACHE_DIR` names it; else it is `sash` in the user's cache folder.
    """
    named = os.environ.get("SASH_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return _usable(named or os.path.join(base, "sash"))


@cache
def _usable(path: str) -> Path | None:
    import numba

    python = f"py{sys.version_info[0]}{sys.version_info[1]}"
    try:
        made = Path(path).expanduser() / f"{python}-numba{numba.__version__}"
        made.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=made):
            pass
    except (OSError, RuntimeError):
        return None
    return made


def load(name: str, text: Callable[[], str]) -> ModuleType | None:
    """The module of this name, written first if it is not there; None without a folder."""
    home = folder()
    if home is None:
        return None
    path = home / f"{name}.py"
    module_name = f"sash._generated.{name}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    if not path.exists() and not _write_once(path, text()):
        return None
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module


def in_memory(name: str, text: str, names: dict[str, Any]) -> ModuleType:
    """A module made from text without a file, with some names set beforehand."""
    module = ModuleType(f"sash._generated.{name}")
    module.__dict__.update(names)
    filename = f"<sash {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), module.__dict__)
    return module


def read_facts(name: str) -> Any:
    """What was noted under this name, or None."""
    home = folder()
    try:
        return json.loads((home / f"{name}.json").read_text()) if home else None
    except (OSError, ValueError):
        return None


def write_facts(name: str, facts: Any) -> None:
    """Note something for later processes, if there is a folder for it."""
    home = folder()
    if home is not None:
        _write_once(home / f"{name}.json", json.dumps(facts))


def _write_once(path: Path, text: str) -> bool:
    """Write a file whole, or leave the one that is there; False if the disk says no."""
    try:
        handle, made = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
            os.link(made, path)
        except FileExistsError:
            pass
        finally:
            os.unlink(made)
    except OSError:
        return False
    return True
