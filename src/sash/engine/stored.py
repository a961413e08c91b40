"""Streams whose state is in a store: `Query.stream(store=…, name=…)`.

    push ─→ records change in a journal ─→ sync: they are final, with the root
                                                             │
    a restart ─→ the journal goes back to the last sync ─→ the stream of the root

The root is a snapshot without the state: the stream's progress, its columns and its late rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..query.query import Query
from ..state.part_index import FIRST
from ..stores.contract import Store
from ..stores.journal import Journal
from ..stores.memory import MemoryStore
from . import snapshots

if TYPE_CHECKING:
    from .stream import Stream

__all__ = ["check_store", "load", "open_stream", "sync"]


def open_stream(
    cls: type[Stream],
    query: Query,
    store: Store,
    name: str | None,
    trust: Sequence[str] = (),
    **settings: Any,
) -> Stream:
    """Open the stream with this name, as of its last `sync`, or make a new one."""
    check_store(store, name, "query.stream(store=…, name='…')")
    space = store.claim(name or "")
    try:
        journal = Journal(space, first=FIRST)
        made = _made(cls, query, journal, settings)
        if journal.root is not None:
            snapshots.restore(made, journal.root, trust, settings)
    except BaseException:
        space.release()
        raise
    return made


def check_store(store: Any, name: str | None, how: str) -> None:
    """Refuse a `store` that is no store, and a stream without a name."""
    if not isinstance(store, Store):
        raise TypeError(
            "store is where the stream keeps its state, such as sash.stores.rocksdb('folder'), "
            f"not {store!r}"
        )
    if name is None:
        raise TypeError(f"a stream in a store has a name: {how}")


def _made(cls: type[Stream], query: Query, journal: Journal, settings: dict[str, Any]) -> Stream:
    """Make a stream whose state is records in a journal."""
    kind = cls._for(query)
    made = kind.__new__(kind)
    made._place, made._store, made._journal = "Query.stream, in a store", journal, journal
    made.__init__(query, **settings)  # type: ignore[misc]
    return made


def sync(stream: Stream) -> None:
    """Make all changes of the stream up to now durable."""
    journal = stream._journal
    if journal is None:
        raise TypeError(
            "this stream has no store to sync with; make it with query.stream(store=…, name=…), "
            "or save it with to_bytes()"
        )
    journal.sync(snapshots.to_bytes(stream, state=False))


def load(cls: type[Stream], query: Query, settings: dict[str, Any]) -> Stream:
    """Make a stream over a store in memory, to load the records of a snapshot into."""
    return _made(cls, query, Journal(MemoryStore().claim("snapshot")), settings)
