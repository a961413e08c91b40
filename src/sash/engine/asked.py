"""The ranges of times that `Stream.query` can answer."""

from __future__ import annotations

from typing import Any

from ..kernels.columns import to_micros
from ..query.plan import Plan
from ..query.query import Query
from ..slicing.edges import edges_of
from .lifecycle import UNBOUNDED

__all__ = ["asked_range", "refuse_at"]


def refuse_at(query: Query, at: Any) -> None:
    """Refuse `at` if windows are aligned to the clock."""
    if at is not None:
        raise ValueError(
            f"at=… asks for the time up to a moment, which a stream of {query.window!r} does not "
            "keep; stream sash.trailing(…), or give lo and hi"
        )


def asked_range(plan: Plan, watermark: int | None, lo: Any, hi: Any) -> tuple[int, int]:
    """A range of times in microseconds; without `lo` or `hi`, as far as the stream keeps events.
    Raise an error if the stream has evicted events of the range, or if `lo` or `hi` is within a
    slice whose events share a partial."""
    window = plan.query.aligned
    begin = -UNBOUNDED if watermark is None else window.start(window.first(watermark))
    first = begin if lo is None else to_micros(lo)
    end = UNBOUNDED if hi is None else to_micros(hi)
    if first < begin:
        raise ValueError(f"lo is {first}, and what lies before {begin} is evicted")
    if first > end:
        raise ValueError(f"a range goes from an older to a younger time, not {lo!r}, {hi!r}")
    if not plan.ordered:
        edges = edges_of(window)
        for name, given, at in (("lo", lo, first), ("hi", hi, end)):
            edge = at if given is None else edges.time(edges.number(at))
            if edge != at:
                raise ValueError(
                    f"{name} is {at}, within the slice that starts at {edge}; no window starts "
                    "or ends there, and its events are not kept apart"
                )
    return first, end
