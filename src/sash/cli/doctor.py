"""Find what sash needs on this machine: what is there, what is missing, and how to get it."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import sash

from .java import GET_JAVA, OLDEST_JAVA, find_java

__all__ = ["Finding", "examine", "examine_worker"]

OLDEST_PYTHON = (3, 11)

#: Packages, with the extra that installs them and their purpose.
_PACKAGES = {
    "": ("numpy", "numba", "pyarrow"),
    "spark": ("pyspark", "pandas", "protobuf"),
    "connect": ("grpcio", "grpcio-status", "googleapis-common-protos", "zstandard"),
    "sketches": ("datasketches",),
    "rocksdb": ("rocksdict",),
    "redis": ("redis",),
    "plots": ("matplotlib",),
}


@dataclass(frozen=True)
class Finding:
    """One thing that sash needs, always or for some of its features."""

    what: str
    found: str  # the version; empty if it is missing
    needed: bool = True  # False if sash runs without it
    how: str = ""  # to get it

    @property
    def good(self) -> bool:
        return bool(self.found) or not self.needed


def examine() -> Iterator[Finding]:
    """Examine this machine."""
    python = platform.python_version()
    old = sys.version_info[:2] < OLDEST_PYTHON
    yield Finding(
        "Python",
        "" if old else f"{python} ({sys.executable})",
        how=f"this is {python}; sash needs 3.11 or newer" if old else "",
    )
    yield Finding("sash", sash.__version__)
    for extra, packages in _PACKAGES.items():
        for package in packages:
            how = f"pip install 'sash[{extra}]'" if extra else "pip install sash"
            yield Finding(package, _version(package), needed=not extra, how=how)
    yield _compiler()
    yield _cache()
    java = find_java()
    if java is None or java.major < OLDEST_JAVA:
        was = "" if java is None else f"{java.path} is Java {java.major}; "
        how = f"{was}for Spark, Java {OLDEST_JAVA} or newer: {GET_JAVA}"
        yield Finding("Java", "", needed=False, how=how)
    else:
        yield Finding("Java", f"{java.major} ({java.path})")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _compiler() -> Finding:
    """Check that numba can compile here."""
    if not _version("numba"):
        return Finding("compiled kernels", "", how="pip install sash")
    if os.environ.get("SASH_JIT") == "0":
        how = "SASH_JIT=0 turns them off: unset it for speed"
        return Finding("compiled kernels", "", needed=False, how=how)
    return _tried("compiled kernels", _compile_one, "numba cannot compile on this machine")


def _compile_one() -> str:
    from numba import njit

    assert njit(lambda x: x + 1)(1) == 2
    return "numba compiles"


def _cache() -> Finding:
    """Check that sash can keep compiled kernels."""
    how = "set SASH_CACHE_DIR to a folder that can be written to, or every process compiles anew"
    return _tried("kernel cache", _write_one, how)


def _write_one() -> str:
    from ..kernels.cache import folder

    found = folder()
    if found is None:
        raise OSError("it cannot be written to")
    return str(found)


def _tried(what: str, attempt: Callable[[], str], how: str) -> Finding:
    try:
        return Finding(what, attempt())
    except Exception as error:
        return Finding(what, "", how=f"{how} ({type(error).__name__}: {error})")


def examine_worker(spark: Any) -> Iterator[Finding]:
    """Examine the Python of a Spark worker."""
    yield Finding("Spark", str(spark.version))
    packages = tuple(p for extra in ("", "spark") for p in _PACKAGES[extra])

    def ask(batches: Any) -> Iterator[Any]:
        import os
        import sys
        from importlib import import_module
        from importlib.metadata import PackageNotFoundError, version

        import pyarrow

        for _ in batches:
            pass
        rows = [("Python", f"{sys.version.split()[0]} ({sys.executable})")]
        try:
            rows.append(("sash", str(import_module("sash").__version__)))
        except Exception:
            rows.append(("sash", ""))
        for package in packages:
            try:
                rows.append((package, version(package)))
            except PackageNotFoundError:
                rows.append((package, ""))
        folder = os.environ.get("SASH_CACHE_DIR") or os.path.expanduser("~/.cache/sash")
        rows.append(("kernel cache", folder if os.access(folder, os.W_OK) else ""))
        names, found = zip(*rows, strict=True)
        yield pyarrow.RecordBatch.from_arrays(
            [pyarrow.array(names), pyarrow.array(found)], names=["what", "found"]
        )

    how = "install sash[spark] in the workers' Python, or name another with PYSPARK_PYTHON"
    asked = spark.range(1).repartition(1).mapInArrow(ask, "what string, found string")
    for row in asked.collect():
        needed = row.what != "kernel cache"
        yield Finding(f"worker: {row.what}", row.found, needed=needed, how=how)
