"""Generated kernels between processes: damaged files, full disks, several versions of sash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import sash
from sash.kernels import cache
from sash.kernels.program import jit_enabled

compiled_only = pytest.mark.skipif(not jit_enabled(), reason="about compiled code: SASH_JIT=0")

USE = """
    import resource, sys
    limit = int(sys.argv[1])
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    import numpy as np, sash
    from sash.aggregators import TwoStacksLite
    op = sash.operator(identity=0.0, lift=lambda x: x, combine=lambda a, b: a + b, name="total")
    window = TwoStacksLite(op.of(float))
    for x in range(3):
        window.insert(float(x))
    assert window.query() == 3.0
    run = window._core.run
    loaded = run.insert.stats.cache_hits[run.insert.signatures[0]] if run.insert.stats[1] else 0
    print(window._core.program.mode, loaded)
"""


def use(folder: Path, limit: int = 0, source: Path | None = None) -> list[str]:
    """Use a kernel in a process of its own: how it runs, and if its machine code was loaded."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    env["SASH_CACHE_DIR"] = str(folder)
    if source is not None:
        env["PYTHONPATH"] = str(source)
    got = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(USE), str(limit)],
        capture_output=True,
        text=True,
        env=env,
        timeout=300,
        check=False,
    )
    assert got.returncode == 0, got.stderr
    assert "Error" not in got.stderr
    return got.stdout.split()


def kept_files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.suffix in (".py", ".json", ".nbc", ".pyc"))


def truncate(path: Path, others: list[Path]) -> bytes:
    return path.read_bytes()[: path.stat().st_size // 2]


def empty(path: Path, others: list[Path]) -> bytes:
    return b""


def foreign(path: Path, others: list[Path]) -> bytes:
    return b"import nothing_of_this_name\n"


def of_another(path: Path, others: list[Path]) -> bytes:
    """Of a kind, whole, and not what the name says."""
    return next(p for p in (*others, path) if p.suffix == path.suffix and p != path).read_bytes()


@compiled_only
def test_damaged_files_are_made_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert use(home) == ["compiled", "0"]
    whole = {p: p.read_bytes() for p in kept_files(home)}
    assert {p.suffix for p in whole} == {".py", ".json", ".nbc", ".pyc"}
    for damage in (truncate, foreign):
        for path in whole:
            path.write_bytes(damage(path, []))
        assert use(home) == ["compiled", "0"], damage
    # a file of bytecode that Python takes for the right one: the time and size of the source
    (code,) = (p for p in whole if p.suffix == ".pyc")
    code.write_bytes(code.read_bytes()[:16] + b"\xff" * 100)
    assert use(home) == ["compiled", "1"]


@pytest.mark.parametrize("damage", [truncate, empty, foreign, of_another])
def test_a_file_is_read_only_as_it_was_written(
    damage: Callable[[Path, list[Path]], bytes], tmp_path: Path
) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for path in files:
        assert cache._read(path) is None
        assert cache._write(path, b"[1, 2]")
        assert cache._read(path) == b"[1, 2]"
    files[0].write_bytes(damage(files[0], files))
    assert cache._read(files[0]) is None
    assert cache._write(files[0], b"[1, 2]")
    assert cache._read(files[0]) == b"[1, 2]"
    assert sorted(tmp_path.iterdir()) == files


@compiled_only
@pytest.mark.parametrize("limit", [64, 20_000])
def test_a_full_disk_compiles_in_memory(limit: int, tmp_path: Path) -> None:
    """The system refuses to write any file beyond a limit, to numba and Python as well."""
    assert use(tmp_path, limit) == ["compiled", "0"]
    assert not list(tmp_path.rglob("*.part"))
    assert not list(tmp_path.rglob("*insert*.nbc"))
    assert bool(list(tmp_path.rglob("*.py"))) == (limit > 64)


@compiled_only
def test_two_versions_of_sash_share_a_folder(tmp_path: Path) -> None:
    here = Path(sash.__file__).parent
    other = tmp_path / "other"
    shutil.copytree(here, other / "sash", ignore=shutil.ignore_patterns("__pycache__"))
    with (other / "sash" / "kernels" / "slots.py").open("a") as file:
        file.write("# another version\n")
    home = tmp_path / "home"
    assert use(home) == ["compiled", "0"]
    assert use(home, source=other) == ["compiled", "0"]
    before = {p: p.stat().st_mtime_ns for p in kept_files(home)}
    assert len([p for p in before if p.suffix == ".py"]) == 2
    assert use(home) == ["compiled", "1"]
    assert {p: p.stat().st_mtime_ns for p in kept_files(home)} == before
