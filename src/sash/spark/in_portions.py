"""A bucket's micro-batch in portions of its keys, so that its memory does not go by its rows.

    portion    rows of its keys ─→ lifecycle ─→ records in Spark's state ─→ results, late rows
    portion    …

Each portion begins where the bucket stood before the micro-batch, so all rows are judged by one
watermark, and in live mode all portions come to one stream time.  What a task writes to the state
is Spark's only when the task ends well: one that fails between two portions is done again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from ..engine.lifecycle import Progress, Sliced, latest
from ..state.portions import Among
from .arrivals import Arrivals

__all__ = ["in_portions"]

P = TypeVar("P", Progress, dict[str, Progress], contravariant=True)
M = TypeVar("M", covariant=True)


class Portioned(Protocol[P, M]):
    """The windows of a query, or of some."""

    def ranges(self, progress: P, arrivals: Arrivals | None, watermark: int | None) -> list[Among]:
        """The portions to process."""

    def newest(self, progress: P, arrivals: Arrivals) -> int | None:
        """Where stream time must be for all portions, None if each may have its own."""

    def process(
        self,
        progress: P,
        batch: pa.Table | Sliced | None,
        watermark: int | None,
        among: Among = None,
        stream_time: int | None = None,
    ) -> M:
        """Process the rows of a portion."""


def in_portions(
    windows: Portioned[P, M], progress: P, arrivals: Arrivals | None, watermark: int | None
) -> Iterator[tuple[pa.Table | Sliced | None, M]]:
    """The rows of each portion, and what the windows make of them.  At the end, `progress` is where
    the bucket stands then."""
    ranges = windows.ranges(progress, arrivals, watermark)
    if ranges == [None]:
        batch = None if arrivals is None else arrivals.whole()
        yield batch, windows.process(progress, batch, watermark)
        return
    every: list[Any] = list(progress.values() if isinstance(progress, Mapping) else [progress])
    stood = [(at.stream_time, at.watermark) for at in every]
    newest = [time for time, _ in stood]
    ahead = None if arrivals is None else windows.newest(progress, arrivals)
    for among in ranges:
        for at, (stream_time, reached) in zip(every, stood, strict=True):
            at.stream_time, at.watermark = stream_time, reached
        batch = None if arrivals is None else arrivals.among(among)
        yield batch, windows.process(progress, batch, watermark, among, ahead)
        newest = [latest(a, at.stream_time) for a, at in zip(newest, every, strict=True)]
    for at, time in zip(every, newest, strict=True):
        at.stream_time = time
