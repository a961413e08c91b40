"""Stores and what becomes of them: processes that are killed, servers that stop, disks that fill.

`python tests/faults/store_kills.py` kills many more.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import sash
from sash import operators as ops
from sash.aggregators import Amta
from sash.stores import Damaged, StoreError
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


SYNCED = """
import os, sys
import sash
from test_faults import QUERY
from sash import operators as ops
from sash.aggregators import Amta

store = sash.stores.rocksdb(sys.argv[1], cache=1 << 20)
window = Amta(ops.sum.of(int), store=store, name="w", cache=256, buffer=256)
stream = QUERY.stream(store=store, name="s", lateness=5)
for i in range(6):
    window.slide(range(i * 500, i * 500 + 500), 1200)
    keys = [j % 50 for j in range(200)]
    stream.push({"t": [i * 20 + j % 20 for j in range(200)], "k": keys, "x": range(200)})
    window.sync()
    stream.sync()
    if i == 4:
        for family in store._families:
            family.db.flush()  # so that some of it is in files, and some in the log alone
os._exit(0)
"""
# All of it is in files, and nothing in these has left or was replaced but the first root.
IN_FILES = """
import sys
import sash
from test_faults import QUERY
from sash import operators as ops
from sash.aggregators import Amta

with sash.stores.rocksdb(sys.argv[1], cache=1 << 20) as store:
    window = Amta(ops.sum.of(int), store=store, name="w", cache=256, buffer=256)
    stream = QUERY.stream(store=store, name="s", lateness=5)
    for i in range(20_000):
        window.insert(i)
    keys = [j % 500 for j in range(2000)]
    stream.push({"t": [j % 20 for j in range(2000)], "k": keys, "x": range(2000)})
    window.sync()
    stream.sync()
    for family in store._families:
        family.db.flush()
"""
QUERY = sash.Query(
    time="t", by=["k"], window=sash.sliding(40, 10), select={"n": sash.count(), "s": sash.sum("x")}
)


def _found(folder: Path) -> list[Any]:
    """What a window and a stream have after a restart, or why they cannot be had."""
    found: list[Any] = []
    try:
        store = sash.stores.rocksdb(folder, cache=1 << 20)
    except StoreError as error:
        return [str(error)] * 2
    with store:
        try:
            window = Amta.open(store, "w")
            window._check()
            found.append((len(window), window.query()))
            window.release()
        except (StoreError, Damaged) as error:
            found.append(str(error))
        try:
            stream = QUERY.stream(store=store, name="s", lateness=5)
            found.append((stream.counts, sorted(map(repr, stream.close().to_pylist()))))
            stream.release()
        except (StoreError, Damaged) as error:
            found.append(str(error))
    return found


def _refused(folder: Path, good: list[Any], kinds: list[str], turns: int) -> dict[str, int]:
    """In how many answers a flipped bit in a file of each kind is an error that names the place;
    in all others it does no harm."""
    source, broken = random.Random(4), folder.parent / "broken"
    files = {kind: [f for f in sorted(folder.iterdir()) if kind in f.name] for kind in kinds}
    refused = dict.fromkeys(kinds, 0)
    for kind in kinds * turns:
        file = source.choice([f for f in files[kind] if f.stat().st_size])
        shutil.copytree(folder, broken)
        data = bytearray(file.read_bytes())
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)
        (broken / file.name).write_bytes(data)
        for found, wanted in zip(_found(broken), good, strict=True):
            if found != wanted:
                refused[kind] += 1
                assert isinstance(found, str), f"{file.name}: {found} is not {wanted}"
                assert str(broken) in found
        shutil.rmtree(broken)
    return refused


def test_a_flipped_bit_in_any_file_is_an_error_or_no_harm(tmp_path: Path) -> None:
    """After a kill, in the log too: never the state of an earlier sync."""
    folder = tmp_path / "store"
    _python(SYNCED, folder)
    shutil.copytree(folder, tmp_path / "whole")
    good = _found(tmp_path / "whole")
    assert good[0] == (1200, sum(range(1800, 3000)))
    assert good[1][0]["rows"] == 1200
    refused = _refused(folder, good, [".log", ".sst", ".blob", "MANIFEST"], 15)
    # how many pages of the other files are still needed depends on when a thread deletes old ones
    assert refused[".log"], refused
    assert refused["MANIFEST"], refused


TORN = """
import os, sys
import sash
from sash import operators as ops
from sash.aggregators import Amta

store = sash.stores.rocksdb(sys.argv[1], cache=1 << 20)
window = Amta(ops.sum.of(int), store=store, name="w", cache=256, buffer=256)
for i in range(6000):
    window.insert(i)
    if i == 2999:
        window.sync()
        window._pages.drain()
        (log,) = [f for f in os.listdir(sys.argv[1]) if f.endswith(".log")]
        print(log, os.path.getsize(f"{sys.argv[1]}/{log}"), flush=True)
window._pages.flush()
os._exit(0)
"""


def test_a_log_that_a_failing_machine_tore_can_be_repaired(tmp_path: Path) -> None:
    """Behind the last sync, the disk has some blocks of the log and not others before them."""
    folder, torn = tmp_path / "store", tmp_path / "torn"
    log, synced = _python(TORN, folder).split()
    whole = (folder / log).read_bytes()
    blocks = range(int(synced) // 4096 + 1, len(whole) // 4096)[::2]
    assert len(blocks) > 2
    for block in blocks:
        shutil.copytree(folder, torn)
        data = bytearray(whole)
        data[block * 4096 : (block + 1) * 4096] = bytes(4096)
        (torn / log).write_bytes(data)
        with pytest.raises(StoreError, match=r"Corruption.* repair=True"):
            sash.stores.rocksdb(torn, cache=1 << 20)
        for repair in (True, False):  # once is enough
            with sash.stores.rocksdb(torn, cache=1 << 20, repair=repair) as store:
                window = Amta.open(store, "w")
                window._check()
                assert (len(window), window.query()) == (3000, sum(range(3000)))
                window.release()
        shutil.rmtree(torn)


def test_a_flipped_bit_in_a_page_that_is_needed_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    _python(IN_FILES, folder)
    shutil.copytree(folder, tmp_path / "whole")
    good = _found(tmp_path / "whole")
    assert good[0] == (20_000, sum(range(20_000)))
    assert good[1][0]["rows"] == 2000
    refused = _refused(folder, good, [".sst", ".blob"], 12)
    # beside pages, files have an index, properties and a footer, of which little is read
    assert refused[".blob"] >= 8, refused
    assert refused[".sst"] >= 4, refused


FULL = """
import sys
import sash
from sash import operators as ops
from sash.aggregators import Amta
from sash.stores import Damaged, StoreError

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
try:
    store.close()
except StoreError:
    pass
try:  # in the same process, once it is closed
    sash.stores.rocksdb(sys.argv[1], cache=1 << 20).close()
except StoreError as error:
    assert "has it open" not in str(error), error
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
    here = f"{Path(__file__).parent}:{ROOT}:{os.environ.get('PYTHONPATH', '')}"
    environment = {**os.environ, "SASH_JIT": "0", "PYTHONPATH": here}
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
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=False
    )
    program = FULL
    if mounted.returncode:  # who may not mount has files that cannot grow
        program = (
            "import resource, signal\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 17, 1 << 17))\n" + FULL
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
