"""The members of a shared stream: one stream for each bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..query.query import Query
from ..query.shared import Shared
from .bundle_stream import BundleStream
from .bundles import Bundle, bundles_in, lacks, why_apart
from .identity import differences, fingerprint
from .stream import Stream

__all__ = ["Member", "bundles_of", "check_same_queries", "check_trusted", "seen", "sharing"]


class Member:
    """The stream of one bundle, and the names of its queries."""

    def __init__(self, names: tuple[str, ...], stream: Stream) -> None:
        self.names, self.stream = names, stream

    def named(self, found: Any) -> dict[str, Any]:
        """A result of the stream as a dict by query."""
        if isinstance(self.stream, BundleStream):
            return dict(found)
        return {self.names[0]: found}

    def all_names(self) -> list[str]:
        """The names of the queries, and of removed queries whose partials are still kept."""
        if isinstance(self.stream, BundleStream):
            return list(self.stream.bundle.names)
        return list(self.names)

    def counts(self) -> dict[str, dict[str, int]]:
        """The counts of each query."""
        if isinstance(self.stream, BundleStream):
            return {name: self.stream.counts_of(name) for name in self.names}
        return {self.names[0]: self.stream.counts}

    def remove(self, name: str) -> None:
        """Remove one of several queries."""
        assert isinstance(self.stream, BundleStream)
        self.stream.remove(name)
        self.names = tuple(other for other in self.names if other != name)

    def spread(self) -> None:
        """Copy the progress of the first query to all queries, if nothing was pushed yet."""
        if isinstance(self.stream, BundleStream) and self.stream._plan is None:
            for at in self.stream._each.values():
                vars(at).update(vars(self.stream._progress))


def bundles_of(members: Sequence[Member], queries: Mapping[str, Query]) -> tuple[Bundle, ...]:
    """The bundles of a running stream, without the removed queries."""
    return bundles_in([m.names for m in members], queries)


def seen(members: Sequence[Member]) -> pa.Schema | None:
    """The columns that all queries read, or None if some have seen no batch yet."""
    fields: dict[str, pa.Field] = {}
    for member in members:
        if member.stream._plan is None:
            return None
        fields |= {field.name: field for field in member.stream._plan.schema}
    return pa.schema(fields.values())


def sharing(members: Sequence[Member], name: str, query: Query) -> tuple[Member, BundleStream]:
    """The member whose slices a query can share; raise an error that says why there is none."""
    unlike: list[str] = []
    lacking: list[str] = []
    for member in members:
        if not isinstance(member.stream, BundleStream):
            continue
        if apart := why_apart(query, member.stream.bundle):
            unlike.append(apart)
            continue
        lacking = lacks(query, member.stream.bundle)
        if not lacking and (merged := member.stream.merged(query)):
            lacking = [merged]
        if not lacking or member.stream._plan is None:
            return member, member.stream
    why = "; ".join(dict.fromkeys(lacking or unlike)) or "no query here keeps slices"
    raise ValueError(
        f"the query {name!r} cannot share what the stream holds ({why}); add it with since='now'"
    )


def check_trusted(shared: Shared, trust: Sequence[str]) -> None:
    """Refuse a name in `trust` that is no aggregate of any query."""
    known = {name for query in shared.queries.values() for name in query.select}
    for name in trust:
        if name not in known:
            raise ValueError(
                f"trust names {name!r}, which no query selects; aggregates are: "
                f"{', '.join(sorted(known))}"
            )


def check_same_queries(
    old: Mapping[str, dict[str, str]],
    shared: Shared,
    trust: Sequence[str] = (),
    what: str = "these bytes are",
) -> None:
    """Refuse the state of another set of queries, and say what differs."""
    new = {name: fingerprint(query) for name, query in shared.queries.items()}
    check_trusted(shared, trust)
    found = [f"{name} is not there any more" for name in old if name not in new]
    found += [f"{name} is new" for name in new if name not in old]
    for name in old:
        if name in new:
            own = [one for one in trust if one in shared.queries[name].select]
            found += [f"{name}: {text}" for text in differences(old[name], new[name], own)]
    if found:
        raise ValueError(
            f"{what} of other queries ({'; '.join(found)}); use the queries as they were"
        )
