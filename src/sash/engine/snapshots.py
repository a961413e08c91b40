"""Streams as bytes: a version, a checksum, the query's fingerprint, all state, and no pickles.

`aggregators.snapshot` writes a head.  After it come blobs: the stream's settings and progress, in
JSON; the schema; the late rows; and the blobs of the state.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..aggregators.snapshot import open_bytes, seal
from ..query.query import Query
from ..tables.arrow import from_ipc, to_ipc
from .identity import differences, fingerprint

if TYPE_CHECKING:
    from .stream import Stream

__all__ = [
    "check_bytes",
    "fill",
    "from_bytes",
    "joined",
    "opened",
    "parts",
    "restore",
    "settings_of",
    "to_bytes",
]

_KIND = "Stream 7"
_OLDER = {f"Stream {version}" for version in range(1, 7)}


def to_bytes(stream: Stream, *, state: bool = True) -> bytes:
    """Write the whole stream as bytes, or all but its state."""
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
        "delays": stream._delays.tolist(),
        "beside": stream._beside,
    }
    blobs = [json.dumps(head).encode()]
    blobs.append(to_ipc(stream._schema.empty_table() if stream._plan else pa.table({})))
    blobs.append(to_ipc(stream._late.table(stream._plan and stream._plan.time_type)))
    if state and stream._plan is not None:
        blobs += stream._dump()
    return seal((_KIND,), joined(blobs))


def from_bytes(cls: type[Stream], data: bytes, query: Query, trust: Sequence[str]) -> Stream:
    """Restore a stream."""
    check_bytes(data)
    if not isinstance(query, Query):
        raise TypeError(f"a stream comes back with its sash.Query, not {query!r}")
    head, blobs = _opened_for(query, data, trust)
    if head.get("stored"):
        from .stored import load

        made = load(cls, query, settings_of(head))
    else:
        made = cls._for(query)(query, **settings_of(head))
    fill(made, head, blobs)
    return made


def restore(stream: Stream, data: bytes, trust: Sequence[str], settings: dict[str, Any]) -> None:
    """Restore a stream from its root: all but the state, which is in the store."""
    head, blobs = _opened_for(stream._query, data, trust)
    for name, mine in (("mode", stream._mode), ("early", stream._early)):
        if head[name] != mine:
            raise ValueError(
                f"{stream._journal!r} is a stream with {name}={head[name]!r}, and cannot go on "
                f"with {name}={mine!r}"
            )
    schema = from_ipc(next(blobs)).schema
    given = settings.get("schema")
    if given is not None and len(schema) and not stream._schema.equals(schema):
        raise ValueError(
            f"{stream._journal!r} is a stream of other columns or types: {_columns(schema)}; "
            f"those that are given are {_columns(stream._schema)}"
        )
    _fill(stream, head, schema, blobs)


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _opened_for(
    query: Query, data: bytes, trust: Sequence[str]
) -> tuple[dict[str, Any], Iterator[bytes]]:
    """The settings and progress in a stream's bytes, and the blobs that follow; refuse the bytes of
    another query."""
    head, blobs = opened(data)
    found = differences(head["query"], fingerprint(query), trust)
    if found:
        raise ValueError(
            f"these bytes are of a stream of another query ({'; '.join(found)}); use the query as "
            "it was, or name the aggregates whose partials mean the same as before: trust=['…']"
        )
    return head, blobs


def check_bytes(data: Any) -> None:
    """Refuse data that is not bytes."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"a stream comes back from the bytes that to_bytes() gave, not {data!r}")


def opened(data: bytes) -> tuple[dict[str, Any], Iterator[bytes]]:
    """The settings and progress in a stream's bytes, and the blobs that follow."""
    said, body = open_bytes(bytes(data))
    if said[0] in _OLDER:
        raise ValueError("these bytes are of an older sash, whose streams this one cannot read")
    if said != [_KIND]:
        raise ValueError(f"these bytes hold a {said[0]}, and this release reads a {_KIND}")
    blobs = parts(body)
    return json.loads(next(blobs)), blobs


def settings_of(head: dict[str, Any]) -> dict[str, Any]:
    """The arguments with which the stream was made."""
    return {name: head[name] for name in ("lateness", "mode", "early", "keep_late")}


def fill(made: Stream, head: dict[str, Any], blobs: Iterator[bytes]) -> None:
    """Fill a new stream with the progress, late rows and state of a snapshot."""
    _fill(made, head, from_ipc(next(blobs)).schema, blobs)


def _fill(made: Stream, head: dict[str, Any], schema: pa.Schema, blobs: Iterator[bytes]) -> None:
    made._late.load(from_ipc(next(blobs)), head["late_dropped"])
    vars(made._progress).update(head["progress"])
    made._delays = np.array(head["delays"], dtype=np.int64)
    made._closed, made._kind = head["closed"], head["kind"]
    made._beside = head.get("beside", "")
    if len(schema):
        if made._plan is None:
            made._set_up(schema)
        if state := list(blobs):
            made._load(state)


def joined(blobs: Iterable[bytes]) -> bytes:
    """Join blobs into one, which `parts` can split again."""
    return b"".join(struct.pack("<Q", len(b)) + b for b in blobs)


def parts(body: bytes) -> Iterator[bytes]:
    """The blobs that `joined` joined."""
    at = 0
    while at < len(body):
        (size,) = struct.unpack_from("<Q", body, at)
        yield body[at + 8 : at + 8 + size]
        at += 8 + size
