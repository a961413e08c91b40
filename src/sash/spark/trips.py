"""Many calls of Spark's state in one trip.

A call of the state from Python is a message to the JVM and the wait for its answer.  Most of its
time is the wait: a record of 100 bytes to 20 kB takes 84 to 312 µs, of which Python computes 15 to
29.  The JVM answers messages in their order, so many can be sent before the first answer is read,
and then a record takes 21 to 98 µs.

PySpark has no call for that.  Its own code makes the messages here, and reads the answers, with
what it writes to held back and the answers put off; where another PySpark is built otherwise,
records are read and written one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, TypeVar

from pyspark.errors import PySparkRuntimeError

__all__ = ["Trips"]

#: Messages at a time.  Those that ask for records fit into a socket's buffer: if they did not, both
#: sides could wait for the other to read.
_AT_ONCE = 128

T = TypeVar("T")


class Trips:
    """A map of Spark's state, `state`, whose calls are sent and not waited for."""

    def __init__(self, state: Any) -> None:
        """Raise AttributeError if this PySpark is built otherwise."""
        client = copy(state._mapStateClient)
        self._server = client._stateful_processor_api_client
        self._send = type(self._server)._send_proto_message
        self._receive = self._server._receive_proto_message
        self._read = self._server._deserialize_from_bytes
        self.sockfile = _Held(self._server.sockfile)
        client._stateful_processor_api_client = self
        self.state = copy(state)
        self.state._mapStateClient = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    def _send_proto_message(self, message: bytes) -> None:
        self._send(self, message)

    def _receive_proto_message(self) -> tuple[int, str, bytes]:
        return 0, "", b""  # as if it had gone well, until the answers are read

    def call(self, call: Callable[[T], Any], given: Sequence[T]) -> list[Any]:
        """Make a call of `state` for each of what is given; the rows that come back, None where
        there is none."""
        rows: list[Any] = []
        for at in range(0, len(given), _AT_ONCE):
            some = given[at : at + _AT_ONCE]
            for each in some:
                call(each)
            self.sockfile.go()
            # all are read before one is judged, so that none is left for the next call
            answers = [self._receive() for _ in some]
            for status, why, value in answers:
                if status:
                    raise PySparkRuntimeError(f"Spark's state refused a call: {why}")
                rows.append(self._read(value) if len(value) else None)
        return rows


class _Held:
    """A file that is written to and not flushed."""

    def __init__(self, file: Any) -> None:
        self.write = file.write
        self.go = file.flush

    def flush(self) -> None:
        """Nothing: `go` does it."""
