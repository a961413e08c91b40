"""Keeps generated kernels in a folder for later processes.

The file of a kernel's source has a name made from its content.  The machine code of each of the
kernel's functions lies beside it:

    two_stacks_lite_<digest>.py                    the source
    two_stacks_lite_<digest>.slide-<digest>.nbc    a function's machine code, as numba pickles it
    operator_<digest>.json                         the types that numba inferred

Several processes may write at once: each writes the whole file under a temporary name and then
renames it.  It does not matter which process renames last, because the same name means the same
content.  Each file ends with a checksum over its name and content.  If the checksum is wrong,
because the file is truncated or comes from another program, sash writes the file again.  Where
sash cannot write, because there is no folder or the disk is full, it compiles kernels in memory.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
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

from .equal import share

__all__ = ["brief", "entry", "folder", "in_memory", "load", "read_facts", "write_facts"]


def folder() -> Path | None:
    """The cache folder, created if it does not exist; None if sash cannot write to it.

    The environment variable `SASH_CACHE_DIR` names it; the default is `sash` in the user's cache
    folder.
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
    """Import the generated module of this name; write its file first if there is none.  Return
    None if the file cannot be written or imported."""
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
    except Exception:  # perhaps the bytecode file that Python keeps beside the source is damaged
        try:
            Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
            return _import(module_name, path)
        except Exception:  # numba has no folder to write to, or the source is gone
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
    """Like `entry`, for a function that is too short to release the interpreter's lock."""
    return _cached(function, nogil=False)


def _cached(function: Callable[..., Any], *, nogil: bool) -> Any:
    """Compile a function with numba, and keep its machine code in our own files.  numba's cache
    files have no checksum, and numba raises on a damaged file or a full disk."""
    from numba import njit

    made = njit(cache=True, nogil=nogil)(function)
    path = Path(function.__code__.co_filename)
    if hasattr(getattr(made, "_cache", None), "_cache_file"):
        base = path.with_name(f"{path.stem}.{function.__name__}")
        made._cache._cache_file = _MachineCode(base, function.__globals__)
    return made


class _MachineCode:
    """The machine code of one function, in place of numba's `IndexDataCacheFile`."""

    def __init__(self, base: Path, names: dict[str, Any]) -> None:
        self._base = base
        self._names = names

    def _path(self, key: Any) -> Path:
        """The file for a function's signature and a processor."""
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return self._base.with_name(f"{self._base.name}-{digest}.nbc")

    def load(self, key: Any) -> Any:
        """The compiled function as numba saved it.  None if there is none: then numba compiles the
        function next, with what other modules of this process have compiled."""
        data = _read(self._path(key))
        if data is None:
            share(self._names)
            return None
        return _Reader(io.BytesIO(data)).load()

    def save(self, key: Any, data: Any) -> None:
        """Write a compiled function to the folder, if the disk allows it."""
        from numba.core.serialize import dumps

        _write(self._path(key), dumps(data))

    def flush(self) -> None:
        """Delete the function's machine code."""
        for path in self._base.parent.glob(f"{self._base.name}-*.nbc"):
            path.unlink(missing_ok=True)


class _Reader(pickle.Unpickler):
    """Reads machine code in which there may be functions of other modules (`equal`), which this
    process has not imported."""

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        if (module, name) != ("numba.core.environment", "_rebuild_env"):
            return found

        def environment(home: str, *more: Any) -> Any:
            # compiled code looks into no module, so any will do
            return found(home if home in sys.modules else __name__, *more)

        return environment


def in_memory(name: str, text: str, names: dict[str, Any]) -> ModuleType:
    """Make a module from text, without a file.  `names` are in the module before the text runs."""
    module = ModuleType(f"sash._generated.{name}")
    module.__dict__.update(names)
    filename = f"<sash {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), module.__dict__)
    return module


def read_facts(name: str) -> Any:
    """Read what an earlier process saved by `write_facts`; None if there is nothing."""
    home = folder()
    data = _read(home / f"{name}.json") if home else None
    return None if data is None else json.loads(data)


def write_facts(name: str, facts: Any) -> None:
    """Save a value as JSON under a name for later processes, if there is a folder."""
    home = folder()
    if home is not None:
        _write(home / f"{name}.json", json.dumps(facts).encode())


def _sealed(name: str, content: bytes) -> bytes:
    """Append the checksum to a file's content, as a Python comment."""
    digest = hashlib.sha256(name.encode() + b"\n" + content).hexdigest()
    return content + f"\n# {digest}\n".encode()


def _read(path: Path) -> bytes | None:
    """A file's content; None if the file is missing or its checksum is wrong."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    content = data[: -len(_sealed("", b""))]
    return content if _sealed(path.name, content) == data else None


def _write(path: Path, content: bytes) -> bool:
    """Write a whole file, and replace the old one in one step.  False if the disk refuses."""
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
