"""Where generated kernels live between processes.

A kernel's source is written under a name that says what is in it, and the machine code of each of
its functions beside it:

    two_stacks_lite_<digest>.py                    the source
    two_stacks_lite_<digest>.slide-<digest>.nbc    a function's machine code, as numba pickles it
    operator_<digest>.json                         which types numba inferred

Several processes may write at once: a file is made whole under a name of its own and then
put in place, and whose comes last does not matter, because the same name means the same content.
Each file ends with a checksum over its name and content.  A file without the right one,
truncated or put there by something else, is as good as none: it is made again.  Where nothing can
be written, because there is no folder or the disk is full, kernels are compiled in memory.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import linecache
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["brief", "entry", "folder", "in_memory", "load", "read_facts", "write_facts"]


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
    """The module of this name, written first if it is not there; None if that cannot be."""
    home = folder()
    if home is None:
        return None
    path = home / f"{name}.py"
    module_name = f"sash._generated.{name}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    if _read(path) is None and not _write(path, text().encode()):
        return None
    try:
        return _import(module_name, path)
    except Exception:  # a damaged file of bytecode, which Python keeps beside the source
        try:
            Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
            return _import(module_name, path)
        except Exception:  # numba finds no place to write to, or the source is gone
            return None


def _import(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def entry(function: Callable[..., Any]) -> Any:
    """Compile a function of a generated file with numba, and keep its machine code beside it.
    Other threads run Python code while the function runs."""
    return _cached(function, nogil=True)


def brief(function: Callable[..., Any]) -> Any:
    """The same for a function that is too short to release the interpreter's lock."""
    return _cached(function, nogil=False)


def _cached(function: Callable[..., Any], *, nogil: bool) -> Any:
    """numba's own files have no checksum, and a damaged one or a full disk is an error there."""
    from numba import njit

    made = njit(cache=True, nogil=nogil)(function)
    path = Path(function.__code__.co_filename)
    if hasattr(getattr(made, "_cache", None), "_cache_file"):
        made._cache._cache_file = _MachineCode(path.with_name(f"{path.stem}.{function.__name__}"))
    return made


class _MachineCode:
    """The machine code of one function, in place of numba's `IndexDataCacheFile`."""

    def __init__(self, base: Path) -> None:
        self._base = base

    def _path(self, key: Any) -> Path:
        """Where the code for a signature and a processor is."""
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return self._base.with_name(f"{self._base.name}-{digest}.nbc")

    def load(self, key: Any) -> Any:
        """The compiled function as numba saved it, or None."""
        data = _read(self._path(key))
        return None if data is None else pickle.loads(data)

    def save(self, key: Any, data: Any) -> None:
        """Keep a compiled function, if the disk allows it."""
        from numba.core.serialize import dumps

        _write(self._path(key), dumps(data))

    def flush(self) -> None:
        """Forget the function's code."""
        for path in self._base.parent.glob(f"{self._base.name}-*.nbc"):
            path.unlink(missing_ok=True)


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
    data = _read(home / f"{name}.json") if home else None
    return None if data is None else json.loads(data)


def write_facts(name: str, facts: Any) -> None:
    """Note something for later processes, if there is a folder for it."""
    home = folder()
    if home is not None:
        _write(home / f"{name}.json", json.dumps(facts).encode())


def _sealed(name: str, content: bytes) -> bytes:
    """A file's content with its checksum, which is a comment in Python."""
    digest = hashlib.sha256(name.encode() + b"\n" + content).hexdigest()
    return content + f"\n# {digest}\n".encode()


def _read(path: Path) -> bytes | None:
    """What a file holds; None if it is not there or not as it was written."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    content = data[: -len(_sealed("", b""))]
    return content if _sealed(path.name, content) == data else None


def _write(path: Path, content: bytes) -> bool:
    """Write a file whole, in place of any that is there; False if the disk says no."""
    try:
        handle, made = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_sealed(path.name, content))
            os.replace(made, path)
        except OSError:
            os.unlink(made)
            return False
    except OSError:
        return False
    return True
