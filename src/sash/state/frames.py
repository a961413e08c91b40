"""The frames of driven windows, and their answers, as seen from Python.

rows in order of key and time → a range of rows for each event that fires → its answers
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..kernels.core import BufferCore, ObjectCore, make_core
from ..operators import count
from ..query.plan import Group
from ..windows.contract import Count, Driven, Exclude, Span
from .answers import answers_apart, answers_of, columns_of
from .frames_kernel import ANSWERS, FRAME, FRAMES, HOLDS, SPANS

__all__ = ["Frames", "NoFrameAnswer", "frames_of"]

_FOREVER = 2**61  # longer than any two times are apart


class NoFrameAnswer(OverflowError):
    """A frame's answer does not exist."""

    def __init__(self, reason: str, frame: int) -> None:
        super().__init__(reason)
        self.frame = frame


@dataclass(frozen=True)
class Frames:
    """The windows of the events that fire, in order of key and time: of each its row, and the rows
    `[first, last)` that it holds; all by their places in that order.

    Where something is `excluded`, every row fires, and the rows from `last` up to `ends` are the
    events of its own time.
    """

    fired: Array
    first: Array
    last: Array
    ends: Array | None = None
    excluded: Exclude | None = None

    def oldest(self, times: Array) -> tuple[Array, Array]:
        """The time of the oldest event that each frame holds, and whether it holds any."""
        held = self.last > self.first
        own = times[self.fired]
        if not len(own):
            return own, held
        oldest = np.where(held, times[np.minimum(self.first, len(times) - 1)], own)
        if self.excluded == "ties":
            held = np.ones(len(own), dtype=bool)
        elif self.excluded == "row":
            assert self.ends is not None
            held = held | (self.ends - self.last > 1)
        return oldest, held

    def answers(
        self,
        group: Group,
        types: dict[str, Any],
        table: pa.Table,
        rows: Array | None,
        places: Array,
    ) -> dict[str, pa.Array]:
        """The answers of a group of aggregates by name: frame f's are in row places[f].  `rows`
        says where in the table the rows are, None that the table has their order."""
        core = self._core(group)
        columns = columns_of(group, table)
        taken, handle = core.take(columns if rows is None else columns.take(rows))
        kept, outputs = core.outputs(len(self.fired))
        held = [core.integers(a) for a in (self.first, self.last)]
        where = core.integers(places)
        try:
            if self.excluded in ("row", "ties"):
                assert self.ends is not None
                peers = int((self.ends - self.last).max(initial=0))
                after, at_after = _room(core, 0 if self.excluded == "ties" else peers)
                ends = core.integers(self.ends)
                core.run.frames_excluding(
                    core.m,
                    handle,
                    *(h for _, h in held),
                    ends[1],
                    where[1],
                    len(self.fired),
                    int(self.excluded == "ties"),
                    at_after,
                    outputs,
                )
                del after, ends
            else:
                core.run.frames(
                    core.m, handle, *(h for _, h in held), where[1], len(self.fired), outputs
                )
        except OverflowError as error:
            slot = core.get(ANSWERS)
            reason = answers_apart(core, group, slot - 1).reason if slot else ""
            raise NoFrameAnswer(reason or str(error), core.get(FRAME)) from error
        del taken, held, where
        return answers_of(core, group, types, kept, len(self.fired), None)[0]

    def _core(self, group: Group) -> BufferCore | ObjectCore:
        """A memory with room for the longest frame; none, if no row is ever evicted."""
        moves = self.first[1:] != self.first[:-1]
        # where a frame begins behind all that the one before holds, it starts anew
        holds = bool((moves & (self.first[1:] < self.last[:-1])).any())
        most = int((self.last - self.first).max(initial=0)) if holds else 0
        core = make_core(FRAMES, group.operator, 1 << max(3, most.bit_length()))
        core.header[HOLDS] = int(holds)
        return core


def frames_of(window: Driven, times: Array, bounds: Array) -> Frames:
    """The frames of a window over groups of events, which are in order of time."""
    keep, every = window.keep, window.every
    fired = np.arange(len(times))
    assert every == Count(1)
    assert isinstance(keep, Span)
    first, last = _spans(keep, times, bounds)
    if window.excluded in ("row", "ties"):
        ends = _spans(Span(None, -1), times, bounds)[1]
        return Frames(fired, first, last, ends, window.excluded)
    return Frames(fired, first, last)


@cache
def _finder() -> BufferCore | ObjectCore:
    return make_core(SPANS, count.of("int64"), 1)


def _spans(keep: Span, times: Array, bounds: Array) -> tuple[Array, Array]:
    """For each event the rows that a span of time holds."""
    core = _finder()
    older = _FOREVER if keep.older is None else keep.older
    with core.call() as call:
        at_times, at_bounds = call.integers(times), call.integers(bounds)
        first, at_first = call.space(len(times))
        last, at_last = call.space(len(times))
        core.run.spans(
            core.m, at_times, at_bounds, len(bounds) - 1, older, keep.younger, at_first, at_last
        )
        return np.asarray(first, dtype=np.int64), np.asarray(last, dtype=np.int64)


def _room(core: BufferCore | ObjectCore, partials: int) -> tuple[Any, Any]:
    """Room for partials that a kernel stores, and its handle."""
    if isinstance(core, ObjectCore):
        made: list[Any] = [None] * partials
        return made, made
    return core.integers(np.empty(partials * core.width, dtype=np.int64))
