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

__all__ = ["Frames", "NoFrameAnswer", "Sessions", "frames_of", "sessions_of"]

_FOREVER = 2**61  # longer than any two times are apart


class NoFrameAnswer(OverflowError):
    """A frame's answer does not exist."""

    def __init__(self, reason: str, frame: int) -> None:
        super().__init__(reason)
        self.frame = frame


@dataclass(frozen=True)
class Frames:
    """The windows of the events that fire, in order of key and time: of each the rows
    `[first, last)` that it holds, by their places in that order.

    The rows in `fired` fire, or all of them.  Where something is `excluded` all do, and the rows
    from `last` up to `ends` are the events of a row's own time.
    """

    first: Array
    last: Array
    longest: int  # how many rows must be kept, because some of them are evicted; 0 if none ever is
    fired: Array | None = None
    ends: Array | None = None
    excluded: Exclude | None = None
    apart: bool = False  # each frame holds something, and no row is in two

    def oldest(self, times: Array) -> tuple[Array, Array]:
        """The time of the oldest event that each frame holds, and whether it holds any."""
        held = self.last > self.first
        own = times if self.fired is None else times[self.fired]
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
        order: Array | None,
    ) -> dict[str, pa.Array]:
        """The answers of a group of aggregates by name: first that of frame order[0], or of frame
        0.  `rows` says where in the table the rows are, None that the table has their order."""
        core = make_core(FRAMES, group.operator, 1 << max(3, self.longest.bit_length()))
        core.header[HOLDS] = int(self.longest > 0)
        (columns, sources), count = columns_of(group, table), len(self.first)
        taken, handle = core.take(columns if rows is None else columns.take(rows))
        kept, outputs = core.outputs(count)
        held = [core.integers(a) for a in (self.first, self.last)]
        bounds = [h for _, h in held]
        try:
            if self.excluded in ("row", "ties"):
                assert self.ends is not None
                ties = self.excluded == "ties"
                peers = 0 if ties else int((self.ends - self.last).max(initial=0))
                held += [core.integers(self.ends), _room(core, peers)]
                core.run.frames_excluding(
                    core.m,
                    handle,
                    *bounds,
                    held[2][1],
                    count,
                    int(ties),
                    held[3][1],
                    outputs,
                )
            elif self.apart:
                core.run.frames_apart(core.m, handle, *bounds, count, outputs)
            else:
                core.run.frames(core.m, handle, *bounds, count, outputs)
        except OverflowError as error:
            slot = core.get(ANSWERS)
            reason = answers_apart(core, group, slot - 1).reason if slot else ""
            raise NoFrameAnswer(reason or str(error), core.get(FRAME)) from error
        del taken, held
        if order is not None:
            kept = _reordered(kept, order)
        return answers_of(core, group, types, kept, count, None, sources)[0]


def frames_of(window: Driven, times: Array, bounds: Array) -> Frames:
    """The frames of a window over groups of events, which are in order of time."""
    keep, every = window.keeps, window.fires
    ends = None
    if isinstance(keep, Span):
        first, last, longest = _spans(keep, times, bounds)
        if keep.older is None:
            longest = 0
    else:
        last = np.arange(1, len(times) + 1)
        first = np.maximum(last - keep.rows, _begins(bounds))
        longest = int((last - first).max(initial=0))
    if window.excluded in ("row", "ties"):
        ends = _spans(Span(None, -1), times, bounds)[1]
    assert isinstance(every, Count)
    if every.rows == 1:
        return Frames(first, last, longest, None, ends, window.excluded)
    fired = np.flatnonzero((np.arange(1, len(times) + 1) - _begins(bounds)) % every.rows == 0)
    return Frames(first[fired], last[fired], longest, fired)


def _begins(bounds: Array) -> Array:
    """For each row the first row of its group."""
    return np.repeat(bounds[:-1], np.diff(bounds))


@dataclass(frozen=True)
class Sessions:
    """The sessions of groups of events, in order: the group, start and end of each, and its
    frame."""

    groups: Array
    starts: Array
    ends: Array
    frames: Frames


def sessions_of(
    times: Array, reaches: Array, bounds: Array, longest: int | None = None
) -> Sessions:
    """The sessions of groups of events, which are in order of time; an event reaches from its time
    up to and including `reaches`."""
    core, count = _finder(), len(times)
    with core.call() as call:
        given = [call.integers(a) for a in (times, reaches, bounds)]
        groups, at_groups = call.space(count)
        first, at_first = call.space(count)
        ends, at_ends = call.space(count)
        limit = _FOREVER if longest is None else longest
        made = core.run.sessions(
            core.m, *given, len(bounds) - 1, limit, at_groups, at_first, at_ends
        )
        groups, first, ends = (np.asarray(a)[:made].copy() for a in (groups, first, ends))
    last = np.append(first[1:], count) if made else first
    return Sessions(groups, times[first], ends, Frames(first, last, 0, apart=True))


@cache
def _finder() -> BufferCore | ObjectCore:
    return make_core(SPANS, count.of("int64"), 1)


def _spans(keep: Span, times: Array, bounds: Array) -> tuple[Array, Array, int]:
    """For each event the rows that a span of time holds, and the most that one holds."""
    core = _finder()
    older = _FOREVER if keep.older is None else keep.older
    with core.call() as call:
        at_times, at_bounds = call.integers(times), call.integers(bounds)
        first, at_first = call.space(len(times))
        last, at_last = call.space(len(times))
        longest = core.run.spans(
            core.m, at_times, at_bounds, len(bounds) - 1, older, keep.younger, at_first, at_last
        )
        return np.asarray(first), np.asarray(last), longest


def _room(core: BufferCore | ObjectCore, partials: int) -> tuple[Any, Any]:
    """Room for partials that a kernel stores, and its handle."""
    if isinstance(core, ObjectCore):
        made: list[Any] = [None] * partials
        return made, made
    return core.integers(np.empty(partials * core.width, dtype=np.int64))


def _reordered(kept: Any, order: Array) -> Any:
    """A core's outputs in another order: columns with their validity, or a list of objects.

    The kernel writes them one after the other.  To let it write each where it belongs takes three
    times as long with a thousand keys: a write that misses the cache holds up the next frame, and
    reads that miss it do not wait for each other.
    """
    if isinstance(kept, list):
        return [kept[i] for i in order.tolist()]
    columns, *rest = kept
    made = [(data[order], None if valid is None else valid[order]) for data, valid in columns]
    return (made, *rest)
