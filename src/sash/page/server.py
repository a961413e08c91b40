"""The server of the live page: `http.server` on 127.0.0.1, read-only.

    /                the page            /events   what is new, as Server-Sent Events
    /page.js, …      its files           /cell     a cell of the heat map, as JSON

Another site could let a name of its own resolve to 127.0.0.1 and point a browser here, so the
server refuses requests whose Host is not localhost or 127.0.0.1.  All data travels as JSON and
becomes text in the page, and the page may load nothing from elsewhere.
"""

from __future__ import annotations

import json
import threading
import time
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .feed import Feed

__all__ = ["PORT", "Page", "serve"]

#: The default port of the page.
PORT = 8765

_FILES = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/map.js": ("map.js", "text/javascript"),
    "/lateness.js": ("lateness.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
    "/uPlot.js": ("uPlot.iife.min.js", "text/javascript"),
    "/uPlot.css": ("uPlot.min.css", "text/css"),
    "/uPlot.LICENSE": ("uPlot.LICENSE", "text/plain"),
}
_HOSTS = ("localhost", "127.0.0.1")
_PAUSE = 1.0  # seconds between two messages to a browser, at least
_SHARE = 0.01  # of a processor's time that a browser may take from the job
_ALIVE = 2.0  # seconds after which a connection without news is tried


@cache
def _file(name: str) -> bytes:
    return files(__package__).joinpath("static", name).read_bytes()


class Page:
    """A running page; `serve` starts it."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._thread = threading.Thread(
            target=server.serve_forever, args=(0.1,), name="page", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self._server.server_port}/"

    def close(self) -> None:
        """Stop serving; open connections end."""
        self._server.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def serve(feed: Feed, port: int = PORT) -> Page:
    """Serve the page of a feed on 127.0.0.1, in a thread of its own, until `close`.  Port 0 picks a
    free port.

    >>> page = serve(Feed("flights"), port=0)
    >>> page.close()
    """
    try:
        return Page(_Server(feed, port))
    except OSError as error:
        raise OSError(
            error.errno,
            f"the page cannot be served on port {port} of 127.0.0.1 ({error.strerror}); give "
            "another port, or 0 for any that is free",
        ) from None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # connections of browsers may stay open

    def __init__(self, feed: Feed, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.feed = feed
        self.stopping = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: browsers close connections at any time."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "sash"
    sys_version = ""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the terminal belongs to the job."""

    def do_HEAD(self) -> None:
        """Answer like GET, without the body."""
        self.do_GET()

    def do_GET(self) -> None:
        """Answer a request."""
        host = (self.headers.get("Host") or "").rsplit(":", 1)[0]
        asked = urlsplit(self.path)
        if host not in _HOSTS:
            self._refuse(HTTPStatus.FORBIDDEN, "this page is served to localhost only")
        elif asked.path in _FILES:
            name, kind = _FILES[asked.path]
            self._send(_file(name), kind)
        elif asked.path == "/events" and self.command == "GET":
            self._events()
        elif asked.path == "/cell":
            self._cell(parse_qs(asked.query))
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    def _cell(self, asked: dict[str, list[str]]) -> None:
        try:
            key, start = (int(asked[name][0]) for name in ("key", "start"))
        except (KeyError, ValueError):
            self._refuse(HTTPStatus.BAD_REQUEST, "a cell has a key and a start, which are numbers")
            return
        found = self.server.feed.cell(key, start)
        if found is None:
            self._refuse(HTTPStatus.NOT_FOUND, "this cell is no longer kept")
        else:
            self._send(json.dumps(found, default=str).encode(), "application/json")

    def _events(self) -> None:
        """Send changes until the browser disconnects or the server stops."""
        self._head(HTTPStatus.OK, "text/event-stream", None)
        feed, stopping, seen = self.server.feed, self.server.stopping, 0
        while not stopping.is_set():
            began = time.thread_time()
            made = feed.since(seen)
            data = json.dumps(made | {"now": time.time()}, default=str, allow_nan=False)
            self.wfile.write(f"data: {data}\n\n".encode())
            seen = made["version"]
            stopping.wait(_PAUSE)
            feed.wait_for_end(min((time.thread_time() - began) / _SHARE - _PAUSE, _ALIVE))
            while not stopping.is_set() and not feed.wait(seen, _ALIVE):
                self.wfile.write(b": alive\n\n")

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._send(why.encode(), "text/plain", status)

    def _send(self, body: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._head(status, kind, len(body))
        if self.command != "HEAD":
            self.wfile.write(body)

    def _head(self, status: HTTPStatus, kind: str, length: int | None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        if length is None:
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(length))
        self.send_header("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
