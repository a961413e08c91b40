"""Records in Spark's state, many in one trip, against a server that answers as Spark's does."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
from pyspark.errors import PySparkRuntimeError
from pyspark.sql.streaming.map_state_client import MapStateClient
from pyspark.sql.streaming.proto import StateMessage_pb2
from pyspark.sql.streaming.stateful_processor import MapState
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorApiClient
from pyspark.sql.types import StructType

from sash.spark.state import KEY, VALUE, SparkStore

M: Any = StateMessage_pb2
REFUSED = b"refused"


def answered(request: Any, records: dict[bytes, bytes]) -> tuple[int, str, bytes]:
    """Do what a message asks for; the status, the error and the value that go back."""
    call = request.stateVariableRequest.mapStateCall
    kind = call.WhichOneof("method")
    asked = getattr(call, kind)
    if REFUSED in asked.userKey:
        return 1, "it is not wanted", b""
    if kind == "getValue":
        return 0, "", records.get(asked.userKey, b"")
    if kind == "updateValue":
        records[asked.userKey] = asked.value
    else:
        assert kind == "removeKey"
        records.pop(asked.userKey, None)
    return 0, "", b""


def serve(sock: socket.socket, records: dict[bytes, bytes]) -> None:
    """Answer messages, each before the next is read, until the other side hangs up."""
    with sock, sock.makefile("rwb") as file:
        while head := file.read(8):
            request = M.StateRequest()
            request.ParseFromString(file.read(struct.unpack("!ii", head)[1]))
            status, error, value = answered(request, records)
            said = M.StateResponse(statusCode=status, errorMessage=error, value=value)
            file.write(struct.pack("!i", said.ByteSize()) + said.SerializeToString())
            file.flush()


@contextmanager
def connected(place: Path) -> Iterator[Any]:
    """PySpark's own map over a server in another thread."""
    path = str(place / "s")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen()
        client = StatefulProcessorApiClient(path, StructType())
        sock = listener.accept()[0]
    server = threading.Thread(target=serve, args=(sock, {}), daemon=True)
    server.start()
    client._client_socket.settimeout(20)  # both sides wait for the other: an error, not for ever
    try:
        yield MapState(MapStateClient(client, KEY, VALUE), "records")
    finally:
        client.sockfile.close()
        client._client_socket.close()
        server.join()


@pytest.fixture(params=["in trips", "one by one"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SparkStore]:
    with connected(tmp_path) as state:
        made = SparkStore(state)
        assert made._trips is not None, "this PySpark is built otherwise"
        if request.param == "one by one":
            made._trips = None
        yield made


def test_records_are_as_in_a_dict(store: SparkStore) -> None:
    source, kept = random.Random(3), {}
    names = [b"r%d" % i for i in range(300)]
    moved = 0
    for _ in range(20):
        some = source.sample(names, source.choice((0, 1, 2, 127, 128, 129, 300)))
        puts = {name: source.randbytes(source.choice((0, 1, 50, 3000))) for name in some}
        gone = source.sample(names, source.choice((0, 1, 40, 200)))
        store.put_many(puts)
        store.delete_many(gone)
        kept |= puts
        for name in gone:
            kept.pop(name, None)
        source.shuffle(names)
        assert store.get_many(names) == [kept.get(name) for name in names]
        moved += len(puts) + len(gone) + len(names)
    assert store.records == moved


def test_many_large_records_fit_through_a_socket(store: SparkStore) -> None:
    puts = {b"large %d" % i: b"%d" % i * 9000 for i in range(400)}
    store.put_many(puts)
    assert store.get_many(list(puts)) == list(puts.values())


def test_a_refused_call_is_an_error_and_leaves_no_answer_behind(store: SparkStore) -> None:
    with pytest.raises(PySparkRuntimeError, match="it is not wanted"):
        store.put_many({b"a": b"1", REFUSED: b"2", b"b": b"3"})
    assert store.get_many([b"a"]) == [b"1"]
    with pytest.raises(PySparkRuntimeError, match="it is not wanted"):
        store.get_many([b"a", REFUSED, b"b", b"c"])
    store.put_many({b"c": b"4", b"d": b"5"})
    assert store.get_many([b"d", b"a", b"c"]) == [b"5", b"1", b"4"]


def test_a_map_that_is_built_otherwise_is_called_one_by_one() -> None:
    class Other:
        def getValue(self, key: tuple[bytes]) -> tuple[bytes] | None:
            return (key[0] * 2,)

    assert SparkStore(Other()).get_many([b"a", b"b"]) == [b"aa", b"bb"]
