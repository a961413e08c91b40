"""A shared stream that begins where a stream of one query stands: `Stream.shared`."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from ..query.shared import Shared
from ..state.memory import ForestState
from ..state.transplant import transplant
from .aligned_stream import AlignedStream
from .bundle_stream import BundleStream
from .bundles import ALONE
from .oracle import ByBruteForce
from .shared_late import NamedLate, named
from .stream import Stream

if TYPE_CHECKING:
    from .shared_stream import SharedStream

__all__ = ["shared_from"]


def shared_from(stream: Stream, name: str) -> SharedStream:
    """A shared stream of one query, with a copy of the stream's state."""
    from .shared_stream import SharedStream

    if stream._journal is not None or stream._store is not None:
        raise ValueError(
            f"{stream._journal!r} is in a store, and cannot be shared; start another stream: "
            "sash.share({…}).stream(store=…, name=…)"
        )
    stream = deepcopy(stream)
    if stream._closed:
        raise ValueError("this stream is closed; make a new one with sash.share({…}).stream(…)")
    made = SharedStream(
        Shared({name: stream._as_given()}),
        lateness=stream._lateness,
        mode=stream._mode,
        early=stream._early,
        keep_late=stream._late.limit,
    )
    (member,) = made._members
    late = stream._late.table(stream._plan and stream._plan.time_type)
    made._late.load(named(late, [name]) if late.num_rows else late, stream._late.dropped)
    forest = isinstance(stream, AlignedStream) and not isinstance(stream, ByBruteForce)
    if isinstance(member.stream, BundleStream) and forest:
        _fill(member.stream, stream, name)
        member.spread()
    else:
        member.stream = stream
        stream._late = NamedLate(made._late, (name,))
    return made


def _fill(made: BundleStream, stream: Any, name: str) -> None:
    """Copy the progress and state of a stream into the stream of a bundle with its one query."""
    at, progress = made._each[name], stream._progress
    if isinstance(stream, BundleStream):  # one query with several sizes
        progress = stream._each[ALONE]
    vars(at).update(vars(progress))
    made._delays, made._kind = stream._delays.copy(), stream._kind
    if stream._plan is None:
        return
    made._optional = dict(stream._optional)
    made._set_up(stream._schema)
    if isinstance(stream, BundleStream):
        head, *rest = stream._shared.dump()
        said = json.loads(head)
        for what in ("keep", "revisions"):
            said[what] = {name: said[what][ALONE]}
        made._shared.load([json.dumps(said).encode(), *rest])
    else:
        assert isinstance(stream._state, ForestState)
        transplant(stream._state, made._shared, made._made.columns[name])
