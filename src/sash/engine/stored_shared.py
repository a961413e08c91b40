"""Several queries over one stream, with their state in a store: `Shared.stream(store=…, name=…)`.

All records are under one name in the store.  Each member, which is a bundle of queries or a query
that shares only the intake, has records of its own, whose keys begin with the member's number.  The
root is a snapshot without the state.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..aggregators.snapshot import open_bytes, seal
from ..query.shared import Shared
from ..state.part_index import FIRST
from ..stores.contract import Store
from ..stores.journal import Journal
from ..stores.sealed import Damaged
from ..tables.arrow import from_ipc, to_ipc
from .bundle_stream import BundleStream
from .bundles import bundled
from .members import Member, check_same_queries
from .snapshots import fill, joined, opened, parts, to_bytes
from .stored import check_store
from .stream import Stream

if TYPE_CHECKING:
    from .shared_stream import SharedStream

__all__ = ["member_stream", "open_shared", "prefix_of", "sync"]

_KIND = "SharedStream in a store 1"


def open_shared(
    cls: type[SharedStream],
    shared: Shared,
    store: Store,
    name: str | None,
    trust: Sequence[str] = (),
    **settings: Any,
) -> SharedStream:
    """Open the stream with this name, as of its last `sync`, or make a new one."""
    check_store(store, name, "share(…).stream(store=…, name='…')")
    space = store.claim(name or "")
    try:
        made = cls.__new__(cls)
        made._journal = Journal(space, first=FIRST)
        made.__init__(shared, **settings)  # type: ignore[misc]
        if made._journal.root is not None:
            _restore(made, shared, made._journal.root, trust)
    except BaseException:
        space.release()
        raise
    return made


def prefix_of(number: int) -> bytes:
    """The prefix of the keys of a member's records."""
    return f"{number}:".encode()


def member_stream(
    kind: type[Stream], journal: Journal, number: int, *given: Any, **more: Any
) -> Any:
    """Make a member's stream over its records."""
    made: Any = kind.__new__(kind)
    made._place, made._store = "Query.stream, in a store", journal
    made._prefix = prefix_of(number)
    made.__init__(*given, **more)
    return made


def sync(stream: SharedStream) -> None:
    """Make all changes of the stream up to now durable."""
    journal = stream._journal
    if journal is None:
        raise TypeError(
            "this stream has no store to sync with; make it with share(…).stream(store=…, name=…), "
            "or save it with to_bytes()"
        )
    for member in stream._members:
        with member.stream._turns.between():
            member.stream._settle()
    there = journal.get_many([prefix_of(i) + FIRST for i in range(len(stream._members))])
    head = {
        "queries": stream._fingerprints,
        "members": [_said(member) for member in stream._members],
        "there": [record is not None for record in there],
        "closed": stream._closed,
        "late_dropped": stream._late.dropped,
    }
    blobs = [json.dumps(head).encode(), to_ipc(stream._late.table(stream._time_type()))]
    blobs += [to_bytes(member.stream, state=False) for member in stream._members]
    journal.sync(seal((_KIND,), joined(blobs)))


def _said(member: Member) -> dict[str, Any]:
    stream = member.stream
    each = stream._each if isinstance(stream, BundleStream) else {}
    return {"names": member.names, "each": {name: asdict(at) for name, at in each.items()}}


def _restore(stream: SharedStream, shared: Shared, data: bytes, trust: Sequence[str]) -> None:
    """Restore a stream from its root: all but the state, which is in the store."""
    journal = stream._journal
    assert journal is not None
    said, body = open_bytes(data)
    if said != [_KIND]:
        raise ValueError(f"{journal!r} holds a {said[0]}, and this is a {_KIND}")
    blobs = parts(body)
    head = json.loads(next(blobs))
    check_same_queries(head["queries"], shared, trust, what=f"{journal!r} is")
    late = from_ipc(next(blobs))
    stream._members = []
    for number, (own, blob) in enumerate(zip(head["members"], blobs, strict=True)):
        told, rest = opened(blob)
        for name in ("mode", "early"):
            if told[name] != stream._settings[name]:
                raise ValueError(
                    f"{journal!r} is a stream with {name}={told[name]!r}, and cannot go on with "
                    f"{name}={stream._settings[name]!r}"
                )
        (first,) = journal.get_many([prefix_of(number) + FIRST])
        if head["there"][number] and first is None:
            raise Damaged(f"{journal!r} is damaged: its record {FIRST!r} is missing")
        bundle = bundled({name: shared.queries[name] for name in own["names"]})
        member = stream._member(bundle, None)
        fill(member.stream, told, rest)
        if isinstance(member.stream, BundleStream):
            for name, at in own["each"].items():
                vars(member.stream._each[name]).update(at)
        stream._members.append(member)
    stream._late.load(late, head["late_dropped"])
    stream._closed = head["closed"]
