"""Streams as bytes: a version, a checksum, what the query was, all state, and no pickles.

In the bytes are, after what `aggregators.snapshot` puts before them, a head in JSON and some
blobs: the schema, the keys, the late rows, the last windows where only changes are given, and
for each group of aggregates its records and its memory.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..aggregators.snapshot import open_bytes, seal
from ..query.query import Query
from .given import Rows
from .identity import differences, fingerprint

if TYPE_CHECKING:
    from .stream import Stream

__all__ = ["from_bytes", "to_bytes"]

_KIND = "Stream 2"


def to_bytes(stream: Stream) -> bytes:
    """The whole stream as bytes."""
    last = stream._changes.last if stream._changes is not None else None
    head = {
        "query": stream._fingerprint,
        "forests": [f.describe() for f in stream._forests],
        "lateness": stream._lateness,
        "mode": stream._mode,
        "early": stream._early,
        "time": stream._time,
        "watermark": stream._watermark,
        "closed": stream._closed,
        "rows": stream._rows,
        "given": stream._given,
        "late": stream._late.count,
        "revisions": [[w, k, r] for w, of in stream._revisions.last.items() for k, r in of.items()],
    }
    blobs = [json.dumps(head).encode()]
    blobs.append(_ipc(stream._schema.empty_table() if stream._plan else pa.table({})))
    blobs.append(_ipc(stream._late.table()))
    if stream._plan is not None:
        blobs.append(_ipc(stream._keys.table()))
        blobs.append(_ipc(_table_of(last)))
        for forest in stream._forests:
            blobs += forest.dump()
    return seal((_KIND,), b"".join(struct.pack("<Q", len(b)) + b for b in blobs))


def from_bytes(cls: type[Stream], data: bytes, query: Query, trust: Iterable[str] = ()) -> Stream:
    """The stream again."""
    said, body = open_bytes(data)
    if said == ["Stream 1"]:
        raise ValueError("these bytes are of an older sash, whose streams this one cannot read")
    if said != [_KIND]:
        raise ValueError(f"these bytes hold a {said[0]}, and no stream")
    blobs = _parts(body)
    head = json.loads(next(blobs))
    _check_same(head["query"], fingerprint(query), trust)
    schema = _table(next(blobs)).schema
    made = cls(query, lateness=head["lateness"], mode=head["mode"], early=head["early"])
    made._late.restore(_table(next(blobs)), head["late"])
    made._time, made._watermark, made._closed = head["time"], head["watermark"], head["closed"]
    made._rows, made._given = head["rows"], head["given"]
    for w, k, r in head["revisions"]:
        made._revisions.last.setdefault(w, {})[k] = r
    if not len(schema):
        return made
    made._set_up(schema)
    for kept, forest in zip(head["forests"], made._forests, strict=True):
        if kept != forest.describe():
            raise ValueError(
                f"these bytes hold partials of {kept}; the query's are {forest.describe()}"
            )
    made._keys.restore(_table(next(blobs)))
    last = _table(next(blobs))
    if made._changes is not None and last.num_columns:
        made._changes.last = _rows_of(last)
    for forest in made._forests:
        forest.restore(next(blobs), next(blobs))
    return made


def _check_same(old: dict[str, str], new: dict[str, str], trust: Iterable[str]) -> None:
    """Refuse the state of another query."""
    found = differences(old, new, trust)
    if found:
        raise ValueError(
            f"these bytes are of a stream of another query ({'; '.join(found)}); restore them with "
            "the query as it was, or name the aggregates whose partials mean the same as before: "
            "trust=['…']"
        )


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _table(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all().combine_chunks()


def _parts(body: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(body):
        (size,) = struct.unpack_from("<Q", body, at)
        yield body[at + 8 : at + 8 + size]
        at += 8 + size


def _table_of(rows: Rows | None) -> pa.Table:
    if rows is None:
        return pa.table({})
    columns: dict[str, Any] = {"key": rows.keys, "start": rows.starts}
    columns["mark"] = rows.marks
    return pa.table(columns | {f"value {n}": v for n, v in rows.values.items()})


def _rows_of(table: pa.Table) -> Rows:
    keys, starts, marks = (np.array(table.column(i)) for i in range(3))
    values = {
        name.removeprefix("value "): table.column(name).combine_chunks()
        for name in table.column_names[3:]
    }
    return Rows(keys, starts, marks, values)
