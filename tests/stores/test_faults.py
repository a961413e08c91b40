"""Stores and what becomes of them: processes that are killed, servers that stop, disks that fill.

`python tests/faults/store_kills.py` kills many more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import sash
from sash import operators as ops
from sash.aggregators import Amta
from sash.stores import StoreError
from servers import RedisServer

pytestmark = pytest.mark.plain
ROOT = Path(__file__).resolve().parent.parent


def test_processes_that_are_killed_find_the_last_sync() -> None:
    """Some kills of each kind, on each store."""
    command = [sys.executable, str(ROOT / "faults" / "store_kills.py"), "--kills", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 10
    assert all(sum(line["kills"].values()) >= 2 for line in found)


def test_a_server_that_is_stopped_and_started_in_the_middle(tmp_path: Path) -> None:
    """Calls wait, or raise and have changed nothing; then all goes on, and nothing is lost."""
    server = RedisServer(tmp_path)
    errors = 0
    try:
        store = sash.stores.redis(server.url, patience=0.3)
        window = Amta(ops.sum.of(int), store=store, name="w", cache=16, buffer=16)
        query = sash.Query(time="t", window=sash.tumbling(50), select={"n": sash.sum("x")})
        stream = query.stream(store=store, name="s")
        total = emitted = pushed = 0
        away = threading.Thread(target=_restart, args=(server,))
        for i in range(600):
            if i == 100:
                window.sync()
                stream.sync()
                away.start()
            while True:
                try:
                    if len(window) < i + 1:
                        window.insert(i)
                    if pushed < i + 1:
                        for row in stream.push({"t": i, "x": i}).to_pylist():
                            emitted += row["n"]
                        pushed += 1
                    if i % 50 == 49:
                        window.sync()
                        stream.sync()
                    break
                except StoreError as error:
                    errors += 1
                    if "does not answer" not in str(error):
                        raise
            total += i
        away.join()
        window.sync()
        stream.sync()
        window.release()
        stream.release()
        window = Amta.open(store, "w")
        assert (len(window), window.query()) == (600, total)
        left = query.stream(store=store, name="s").close().to_pylist()
        assert emitted + sum(row["n"] for row in left) == total
        assert errors
        store.close()
    finally:
        server.close()


def _restart(server: RedisServer) -> None:
    server.stop(kill=True)
    time.sleep(1.2)
    server.start()


FULL = """
import sys
import sash
from sash import operators as ops
from sash.aggregators import Amta
from sash.stores import StoreError

store = sash.stores.rocksdb(sys.argv[1], cache=1 << 20)
window = Amta(ops.sum.of(int), store=store, name="w", cache=256, buffer=256)
synced = 0
window.sync()
try:
    for i in range(10**6):
        window.insert(i)
        if i % 2000 == 1999:
            window.sync()
            synced = i + 1
except StoreError as error:
    print(synced, error)
"""
OPEN = """
import sys
import sash
from sash.aggregators import Amta
window = Amta.open(sash.stores.rocksdb(sys.argv[1], cache=1 << 20), "w")
window._check()
print(len(window), window.query())
"""


def _python(program: str, folder: Path) -> str:
    environment = {**os.environ, "SASH_JIT": "0"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_full_disk_is_an_error_that_names_the_place(tmp_path: Path) -> None:
    """Everything up to the last sync is there again when there is room."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], check=False
    )
    program = FULL
    if mounted.returncode:  # who may not mount has files that cannot grow
        program = (
            "import resource, signal\\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\\n" + FULL
        )
    try:
        synced, _, said = _python(program, folder).partition(" ")
        assert str(folder) in said
        assert "cannot be written" in said
        if not mounted.returncode:
            assert "No space left" in said
            subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True)
        length, total = map(int, _python(OPEN, folder).split())
        assert length in (int(synced), int(synced) + 2000)  # the one that failed may have got there
        assert total == length * (length - 1) // 2
    finally:
        if not mounted.returncode:
            subprocess.run(["umount", "-l", str(folder)], check=True)
