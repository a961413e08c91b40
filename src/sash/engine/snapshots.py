"""Streams as bytes: a version, a checksum, what the query was, all state, and no pickles.

After the head that `aggregators.snapshot` writes come blobs: what the stream is and how far it has
come, in JSON; the schema; the late rows; and those of the state.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..aggregators.snapshot import open_bytes, seal
from ..query.query import Query
from ..tables.arrow import from_ipc, to_ipc
from .identity import differences, fingerprint
from .lifecycle import Progress

if TYPE_CHECKING:
    from .stream import Stream

__all__ = ["from_bytes", "to_bytes"]

_KIND = "Stream 4"


def to_bytes(stream: Stream, *, state: bool = True) -> bytes:
    """The whole stream as bytes, or all but its state."""
    head = {
        "query": stream._fingerprint,
        "lateness": stream._lateness,
        "mode": stream._mode,
        "early": stream._early,
        "closed": stream._closed,
        "kind": stream._kind,
        "keep_late": stream._late.limit,
        "late_dropped": stream._late.dropped,
        "progress": asdict(stream._progress),
        "stored": stream._journal is not None,
    }
    blobs = [json.dumps(head).encode()]
    blobs.append(to_ipc(stream._schema.empty_table() if stream._plan else pa.table({})))
    blobs.append(to_ipc(stream._late.table(stream._plan and stream._plan.time_type)))
    if state and stream._plan is not None:
        blobs += stream._dump()
    return seal((_KIND,), b"".join(struct.pack("<Q", len(b)) + b for b in blobs))


def from_bytes(cls: type[Stream], data: bytes, query: Query, trust: Sequence[str]) -> Stream:
    """The stream again."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"a stream comes back from the bytes that to_bytes() gave, not {data!r}")
    if not isinstance(query, Query):
        raise TypeError(f"a stream comes back with its sash.Query, not {query!r}")
    head, schema, blobs = _opened(data, query, trust)
    settings = {name: head[name] for name in ("lateness", "mode", "early", "keep_late")}
    if head.get("stored"):
        from .stored import load

        made = load(cls, query, settings)
    else:
        made = cls._for(query)(query, **settings)
    _fill(made, head, schema, blobs)
    return made


def restore(stream: Stream, data: bytes, trust: Sequence[str], settings: dict[str, Any]) -> None:
    """Make a new stream what it was; its state is where it is."""
    head, schema, blobs = _opened(data, stream._query, trust)
    for name, mine in (("mode", stream._mode), ("early", stream._early)):
        if head[name] != mine:
            raise ValueError(
                f"{stream._journal!r} is a stream with {name}={head[name]!r}, and cannot go on "
                f"with {name}={mine!r}"
            )
    given = settings.get("schema")
    if given is not None and len(schema) and not stream._schema.equals(schema):
        raise ValueError(
            f"{stream._journal!r} is a stream of other columns or types: {_columns(schema)}; "
            f"those that are given are {_columns(stream._schema)}"
        )
    _fill(stream, head, schema, blobs)


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _opened(
    data: bytes, query: Query, trust: Sequence[str]
) -> tuple[dict[str, Any], pa.Schema, Iterator[bytes]]:
    """What a stream was, its columns, and all else; that of another query is refused."""
    said, body = open_bytes(bytes(data))
    if said[0] in ("Stream 1", "Stream 2", "Stream 3"):
        raise ValueError("these bytes are of an older sash, whose streams this one cannot read")
    if said != [_KIND]:
        raise ValueError(f"these bytes hold a {said[0]}, and this release reads a {_KIND}")
    blobs = _parts(body)
    head = json.loads(next(blobs))
    found = differences(head["query"], fingerprint(query), trust)
    if found:
        raise ValueError(
            f"these bytes are of a stream of another query ({'; '.join(found)}); use the query as "
            "it was, or name the aggregates whose partials mean the same as before: trust=['…']"
        )
    return head, from_ipc(next(blobs)).schema, blobs


def _fill(made: Stream, head: dict[str, Any], schema: pa.Schema, blobs: Iterator[bytes]) -> None:
    """Make a stream what it was."""
    made._late.load(from_ipc(next(blobs)), head["late_dropped"])
    made._progress = Progress(**head["progress"])
    made._closed, made._kind = head["closed"], head["kind"]
    if len(schema):
        if made._plan is None:
            made._set_up(schema)
        if state := list(blobs):
            made._load(state)


def _parts(body: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(body):
        (size,) = struct.unpack_from("<Q", body, at)
        yield body[at + 8 : at + 8 + size]
        at += 8 + size
