"""Snapshots of shared streams: `SharedStream.to_bytes` and `from_bytes`.

A snapshot has a head, which names the queries and says which of them share slices, the late rows of
all queries, and the bytes of each member.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..aggregators.snapshot import open_bytes, seal
from ..query.shared import Shared
from ..tables.arrow import from_ipc, to_ipc
from .bundles import bundled
from .members import check_same_queries
from .snapshots import check_bytes, fill, joined, opened, parts, settings_of

if TYPE_CHECKING:
    from .shared_stream import SharedStream

__all__ = ["from_shared_bytes", "shared_bytes"]

_KIND = "SharedStream 1"


def shared_bytes(stream: SharedStream) -> bytes:
    """Write a shared stream as bytes, with a version and a checksum."""
    head = {
        "queries": stream._fingerprints,
        "members": [member.all_names() for member in stream._members],
        "removed": list(stream._removed),
        "closed": stream._closed,
        "keep_late": stream._late.limit,
        "late_dropped": stream._late.dropped,
    }
    blobs = [json.dumps(head).encode(), to_ipc(stream._late.table(stream._time_type()))]
    blobs += [member.stream.to_bytes() for member in stream._members]
    return seal((_KIND,), joined(blobs))


def from_shared_bytes(
    cls: type[SharedStream], data: bytes, shared: Shared, trust: Sequence[str]
) -> SharedStream:
    """Restore a shared stream, or raise an error that says how its queries differ from `shared`."""
    check_bytes(data)
    if not isinstance(shared, Shared):
        raise TypeError(f"a shared stream comes back with what sash.share gave, not {shared!r}")
    said, body = open_bytes(bytes(data))
    if said != [_KIND]:
        raise ValueError(f"these bytes hold a {said[0]}, and this release reads a {_KIND}")
    blobs = parts(body)
    head = json.loads(next(blobs))
    check_same_queries(head["queries"], shared, trust)
    late = from_ipc(next(blobs))
    heads = [opened(data) for data in blobs]
    settings = settings_of(heads[0][0])
    settings["keep_late"] = head["keep_late"]
    made = cls(shared, **settings)
    made._members = []
    for names, (own, rest) in zip(head["members"], heads, strict=True):
        bundle = bundled({name: shared.queries[name] for name in names})
        member = made._member(bundle, None)
        fill(member.stream, own, rest)
        member.spread()
        made._members.append(member)
    for name in head["removed"]:
        made.remove(name)
    made._late.load(late, head["late_dropped"])
    made._closed = head["closed"]
    return made
