"""Frames, the ranges of rows that windows hold, and their answers, as seen from Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..kernels.core import BufferCore, ObjectCore, make_core
from ..query.plan import Group
from ..windows.contract import Exclude
from .answers import answers_apart, answers_of, columns_of
from .frames_kernel import ANSWERS, FRAME, FRAMES, HOLDS

__all__ = ["Frames", "NoFrameAnswer"]


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
        columns, count = columns_of(group, table), len(self.first)
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
        return answers_of(core, group, types, kept, count, None)[0]


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
