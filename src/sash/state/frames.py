"""Frames, the ranges of rows that windows hold, and their answers, as seen from Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.call import Call
from ..kernels.columns import Array, Table
from ..kernels.core import BufferCore, ObjectCore, make_core
from ..kernels.slots import CAPACITY
from ..query.plan import Group
from ..tables.threads import cut_rows, side_by_side
from ..windows.contract import Span
from .answers import answers_apart, answers_of, columns_of
from .frame_steps import ANSWERS, FRAME, HOLDS
from .frames_kernel import FRAMES
from .trace import note_room

__all__ = [
    "Apart",
    "Excluding",
    "Frames",
    "InTime",
    "NoFrameAnswer",
    "Range",
    "Ranges",
    "Whole",
    "answers_of_frames",
    "in_order",
    "inverse",
    "taken",
    "write_answers",
]

Range = tuple[int, int]


class NoFrameAnswer(OverflowError):
    """A frame's answer does not exist."""

    def __init__(self, reason: str, frame: int) -> None:
        super().__init__(reason)
        self.frame = frame


class Frames(ABC):
    """The windows of the events that fire, in order of key and time: of each the rows that it
    holds, by their places in that order."""

    #: The rows that fire, None for all.
    fired: Array | None = None

    @abstractmethod
    def __len__(self) -> int:
        """How many there are."""

    @abstractmethod
    def _longest(self) -> int:
        """How many rows must be kept, because some of them are evicted, or 1 if only the kernel
        finds out; 0 if none ever is."""

    @abstractmethod
    def _run(self, core: BufferCore | ObjectCore, call: Call, columns: Any, outputs: Any) -> None:
        """Let the kernel answer all frames."""

    @abstractmethod
    def part(self, frames: Range, rows: Range) -> Frames:
        """A range of frames, which hold no rows but those of a range, by the places that these have
        among themselves."""

    def answer_alone(self, group: Group, columns: Table) -> Any:
        """The outputs of all frames, over columns that have their order."""
        longest = self._longest()
        core = make_core(FRAMES, group.operator, 1 << max(3, longest.bit_length()))
        core.header[HOLDS] = int(longest > 0)
        kept, outputs = core.outputs(len(self))
        with core.call() as call:
            handle = call.columns(columns)
            try:
                self._run(core, call, handle, outputs)
                note_room(core)
            except OverflowError as error:
                slot = core.get(ANSWERS)
                reason = answers_apart(core, group, slot - 1).reason if slot else ""
                raise NoFrameAnswer(reason or str(error), core.get(FRAME)) from error
        return kept


class Whole(Frames):
    """Frames without a hole."""

    @abstractmethod
    def ranges(self) -> tuple[Array, Array]:
        """The rows `[first, last)` of each."""


@dataclass(frozen=True)
class InTime(Whole):
    """A frame for each row: the rows of its group whose times are from `older` before its own up to
    `younger` before it, which is not included."""

    times: Array
    bounds: Array
    older: int
    younger: int
    holds: bool  # rows must be kept, because some will be evicted

    def __len__(self) -> int:
        return len(self.times)

    def part(self, frames: Range, rows: Range) -> InTime:
        bounds = self.bounds[np.searchsorted(self.bounds, rows[0], side="left") :]
        bounds = bounds[: np.searchsorted(bounds, rows[1], side="right")] - rows[0]
        return replace(self, times=self.times[slice(*rows)], bounds=bounds)

    def _longest(self) -> int:
        return int(self.holds)

    def ranges(self) -> tuple[Array, Array]:
        from .measures import held_in_time  # which imports this module

        return held_in_time(Span(self.older, self.younger), self.times, self.bounds)

    def _run(self, core: BufferCore | ObjectCore, call: Call, columns: Any, outputs: Any) -> None:
        given = call.integers(self.times), call.integers(self.bounds)
        done = 0
        while not done:
            done = core.run.frames_in_time(
                core.m, columns, *given, len(self.bounds) - 1, self.older, self.younger, outputs
            )
            if not done:
                room = core.get(CAPACITY)
                core.resize(2 * room, core.ring_blocks(room, 2 * room))


@dataclass(frozen=True)
class Ranges(Whole):
    """The frames `[first, last)` of the rows in `fired`, or of all."""

    first: Array
    last: Array
    fired: Array | None = None

    def __len__(self) -> int:
        return len(self.first)

    def part(self, frames: Range, rows: Range) -> Ranges:
        some = slice(*frames)
        return replace(
            self, first=self.first[some] - rows[0], last=self.last[some] - rows[0], fired=None
        )

    def ranges(self) -> tuple[Array, Array]:
        return self.first, np.maximum(self.first, self.last)

    def _longest(self) -> int:
        return int((self.last - self.first).max(initial=0))

    def _run(self, core: BufferCore | ObjectCore, call: Call, columns: Any, outputs: Any) -> None:
        given = call.integers(self.first), call.integers(self.last)
        core.run.frames(core.m, columns, *given, len(self), outputs)


class Apart(Ranges):
    """Frames that hold something, and no row of which is in another."""

    def _longest(self) -> int:
        return 0

    def _run(self, core: BufferCore | ObjectCore, call: Call, columns: Any, outputs: Any) -> None:
        given = call.integers(self.first), call.integers(self.last)
        core.run.frames_apart(core.m, columns, *given, len(self), outputs)


@dataclass(frozen=True)
class Excluding(Frames):
    """A frame for each row: `[first, last)`, and of the rows `[last, ends)`, the events of its own
    time, the row itself (`ties`) or all others."""

    first: Array
    last: Array
    ends: Array
    longest: int
    ties: bool

    def __len__(self) -> int:
        return len(self.first)

    def part(self, frames: Range, rows: Range) -> Excluding:
        some = slice(*frames)
        first, last, ends = (a[some] - rows[0] for a in (self.first, self.last, self.ends))
        return replace(self, first=first, last=last, ends=ends)

    def _longest(self) -> int:
        return self.longest

    def _run(self, core: BufferCore | ObjectCore, call: Call, columns: Any, outputs: Any) -> None:
        given = [call.integers(a) for a in (self.first, self.last, self.ends)]
        peers = 0 if self.ties else int((self.ends - self.last).max(initial=0))
        after: Any = [None] * peers
        if isinstance(core, BufferCore):
            _, after = call.space(peers * core.width)
        core.run.frames_excluding(
            core.m, columns, *given, len(self), int(self.ties), after, outputs
        )


def answers_of_frames(
    asked: Sequence[tuple[Frames, Group]],
    types: dict[str, Any],
    table: pa.Table,
    rows: Array | None,
    order: Array | None,
    cuts: list[tuple[Range, Range]],
    threads: int,
) -> dict[str, pa.Array]:
    """The answers of groups of aggregates by name, each over frames of its own; row r has that of
    frame order[r], or r.  The groups are the same but for their names, so that columns are read,
    and rows brought together, once.  `rows` says where in the table the rows are, None that the
    table has their order.  `cuts` are ranges of frames, with the rows that they hold and no others
    do."""
    group = asked[0][1]
    columns, sources = columns_of(group, table)
    core = make_core(FRAMES, group.operator, 8)
    typed = isinstance(core, BufferCore) and core.layout.answers
    if not typed or "object" in columns.types or len(cuts) == 1:
        given = columns if rows is None else columns.take(rows)
        kept = [frames.answer_alone(named, given) for frames, named in asked]
    else:
        kept = [core.outputs(len(frames))[0] for frames, _ in asked]
        give = partial(_give, asked, columns, rows, [outputs[0] for outputs in kept])
        side_by_side(give, cuts, threads)
    made: dict[str, pa.Array] = {}
    for frames, named in asked:
        outputs = kept.pop(0)
        if order is not None:
            outputs = in_order(outputs, order, threads)
        made |= answers_of(core, named, types, outputs, len(frames), None, sources)[0]
    return made


def _give(
    asked: Sequence[tuple[Frames, Group]],
    columns: Table,
    rows: Array | None,
    outputs: list[list[tuple[Array, Array | None]]],
    cut: tuple[Range, Range],
) -> None:
    """Write the answers of a range of frames to where they belong."""
    some, held = cut
    given = columns.runs([held]) if rows is None else columns.take(rows[slice(*held)])
    for (frames, group), out in zip(asked, outputs, strict=True):
        write_answers(frames.part(some, held), group, given, out, some[0])


def write_answers(
    frames: Frames,
    group: Group,
    columns: Table,
    outputs: list[tuple[Array, Array | None]],
    first: int,
) -> None:
    """Answer frames, over columns that have their order, into outputs from a place on."""
    try:
        found, *_ = frames.answer_alone(group, columns)
    except NoFrameAnswer as error:
        error.frame += first
        raise
    some = slice(first, first + len(frames))
    for (data, valid), (to, to_valid) in zip(found, outputs, strict=True):
        to[some] = data
        if to_valid is not None:
            to_valid[some] = valid


def in_order(kept: Any, order: Array, threads: int) -> Any:
    """A core's outputs, columns with their validity or a list of objects, in another order.

    The kernel writes them one after the other.  To let it write each where it belongs takes three
    times as long with a thousand keys: a write that misses the cache holds up the next frame.
    """
    if isinstance(kept, list):
        return [kept[i] for i in order.tolist()]
    columns, *rest = kept
    pairs = []
    while columns:  # one at a time, and each is let go of
        data, valid = columns.pop(0)
        moved = None if valid is None else taken(valid, order, threads)
        pairs.append((taken(data, order, threads), moved))
    return (pairs, *rest)


def taken(items: Array, order: Array, threads: int) -> Array:
    """Items in another order.  Where the table's rows are in order of time, those of a block are
    neighbours in each key."""
    made = np.empty_like(items)

    def take(piece: Range) -> None:
        some = slice(*piece)
        np.take(items, order[some], axis=0, out=made[some], mode="clip")

    side_by_side(take, cut_rows(len(order)), threads)
    return made


def inverse(places: Array, threads: int) -> Array:
    """The order of items that has each at its place."""
    made = np.empty_like(places)

    def put(piece: Range) -> None:
        made[places[slice(*piece)]] = np.arange(*piece)

    side_by_side(put, cut_rows(len(places)), threads)
    return made
