"""Makes many calls of Spark's state in one trip.

For each call of the state, Python sends a message to the JVM and waits for the answer.  Most of the
time is the wait: a call with a record of 100 bytes to 20 kB takes 84 to 312 µs, of which Python
computes for 15 to 29 µs.  The JVM answers messages in their order.  So `Trips` sends many messages
before it reads the first answer, and then a record takes 21 to 98 µs.

PySpark has no call for that.  So PySpark's own code makes the messages here, but `Trips` holds them
back in the file's buffer, and reads the answers later.  If a version of PySpark lacks the needed
attributes, records are read and written one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, TypeVar

from pyspark.errors import PySparkRuntimeError

__all__ = ["Trips"]

#: Messages at a time.  So many requests for records fit into a socket's buffer; with more, each
#: side could wait for the other one to read.
_AT_ONCE = 128

T = TypeVar("T")


class Trips:
    """Has a copy `state` of a map of Spark's state, whose calls do not wait for answers."""

    def __init__(self, state: Any) -> None:
        """Raise AttributeError if this PySpark lacks the attributes that `Trips` uses."""
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
        return 0, "", b""  # an answer of success; `call` reads the real answers

    def call(self, call: Callable[[T], Any], given: Sequence[T]) -> list[Any]:
        """Call `state` for each item, and return the rows of the answers; None for an answer
        without a row."""
        rows: list[Any] = []
        for at in range(0, len(given), _AT_ONCE):
            some = given[at : at + _AT_ONCE]
            for each in some:
                call(each)
            self.sockfile.go()
            # read all answers before any is checked, so that none is left for the next call
            answers = [self._receive() for _ in some]
            for status, why, value in answers:
                if status:
                    raise PySparkRuntimeError(f"Spark's state refused a call: {why}")
                rows.append(self._read(value) if len(value) else None)
        return rows


class _Held:
    """A file whose `flush` does nothing."""

    def __init__(self, file: Any) -> None:
        self.write = file.write
        self.go = file.flush

    def flush(self) -> None:
        """Do nothing: `go` flushes."""
