"""Frames, which are the ranges of rows that driven windows hold: the Python side of their
kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..kernels.call import Call
from ..kernels.columns import Array, Table
from ..kernels.core import BufferCore, ObjectCore, make_core
from ..kernels.slots import CAPACITY
from ..query.plan import Group
from ..tables import threads as pieces
from ..tables.threads import cut_rows
from ..windows.contract import Span
from .answers import answers_apart
from .frame_steps import ANSWERS, FRAME, HOLDS
from .frames_kernel import FRAMES
from .trace import note_room

__all__ = [
    "Apart",
    "Excluding",
    "Frames",
    "InTime",
    "LastRows",
    "NoFrameAnswer",
    "Range",
    "Ranges",
    "Whole",
]

Range = tuple[int, int]


class NoFrameAnswer(OverflowError):
    """A frame's answer does not exist."""

    def __init__(self, reason: str, frame: int) -> None:
        super().__init__(reason)
        self.frame = frame


class Frames(ABC):
    """The frames of the events that fire, in order of key and time.  A frame is the rows that the
    event's window holds, by their places in that order."""

    #: The rows that fire, None for all.
    fired: Array | None = None

    @abstractmethod
    def __len__(self) -> int:
        """The number of frames."""

    @abstractmethod
    def _longest(self) -> int:
        """The number of rows that the queue must have room for, because rows are evicted; 1 or
        more, if only the kernel can find out how many; 0 if no row is ever evicted."""

    @abstractmethod
    def _run(
        self, core: BufferCore | ObjectCore, call: Call, columns: Any, outputs: Any, to: int
    ) -> None:
        """Call the kernel to answer all frames into the outputs from `to` on."""

    @abstractmethod
    def part(self, frames: Range, rows: Range) -> Frames:
        """A range of frames, which hold only rows of this range of rows.  Places of rows count from
        the start of that range."""

    def pieces(self, cut: tuple[Range, Range]) -> list[tuple[Range, Range]]:
        """Divide a range of frames, given with the rows that they hold, into such ranges, on which
        threads can work side by side."""
        return [cut]

    def answer_alone(self, group: Group, columns: Table) -> Any:
        """The outputs of all frames, over columns in the order of the rows."""
        kept, outputs = make_core(FRAMES, group.operator, 8).outputs(len(self))
        self.answer(group, columns, outputs, 0)
        return kept

    def answer(self, group: Group, columns: Table, outputs: Any, to: int) -> None:
        """Answer all frames, over columns in the order of the rows, into the outputs from `to`
        on."""
        longest = self._longest()
        core = make_core(FRAMES, group.operator, 1 << max(3, longest.bit_length()))
        core.header[HOLDS] = int(longest > 0)
        core.header[FRAME] = self._skipped()
        with core.call() as call:
            handle = call.columns(columns)
            try:
                self._run(core, call, handle, outputs, to - self._skipped())
                note_room(core)
            except OverflowError as error:
                slot = core.get(ANSWERS)
                reason = answers_apart(core, group, slot - 1).reason if slot else ""
                frame = core.get(FRAME) - self._skipped() + to
                raise NoFrameAnswer(reason or str(error), frame) from error

    def _skipped(self) -> int:
        """The number of rows before the first one that has a frame."""
        return 0


class Whole(Frames):
    """Frames without a hole."""

    @abstractmethod
    def ranges(self) -> tuple[Array, Array]:
        """The rows `[first, last)` of each frame."""


class OfRows(Whole):
    """Frames without a hole, one for each row of groups except the first `skip` rows."""

    bounds: Array
    skip: int

    @abstractmethod
    def _begins(self, row: int) -> Range:
        """Find where a piece can begin: at this row or a little before it, at a row whose frame
        holds all rows before it that later frames hold.  Return the row, and the first row of its
        frame.
        """

    def pieces(self, cut: tuple[Range, Range]) -> list[tuple[Range, Range]]:
        """Ranges with about the same number of rows.  A long group is cut too, if the frame at the
        cut holds few rows compared with a piece, because these rows are inserted twice.  The rows
        of a frame are still combined in the same order, but may be associated differently; the cuts
        depend on the rows alone."""
        (first, last), _ = cut
        made: list[tuple[Range, Range]] = []
        begin, held = first, first
        for low, _ in cut_rows(last - first, least=2 * pieces.PIECE)[1:]:
            found = self._begins(first + low)
            if found[0] > begin and 4 * (found[0] - found[1]) <= found[0] - begin:
                made.append(((begin, found[0]), (held, found[0])))
                begin, held = found
        return [*made, ((begin, last), (held, last))]

    def _group(self, row: int) -> Range:
        """The rows of a row's group."""
        after = int(np.searchsorted(self.bounds, row, side="right"))
        return int(self.bounds[after - 1]), int(self.bounds[after])

    def _bounds_in(self, rows: Range) -> Array:
        """The bounds of the groups within a range of rows, counted from its first row."""
        first, last = rows
        low = np.searchsorted(self.bounds, first, side="right")
        inner = self.bounds[low : np.searchsorted(self.bounds, last, side="left")]
        return np.concatenate([[first], inner, [last]]) - first

    def _skipped(self) -> int:
        return self.skip


@dataclass(frozen=True)
class InTime(OfRows):
    """A frame for each row: the rows of its group whose times are at most `older` and more than
    `younger` before the row's own time."""

    times: Array
    bounds: Array
    older: int
    younger: int
    holds: bool  # whether to keep rows in the queue, because some will be evicted
    skip: int = 0

    def __len__(self) -> int:
        return len(self.times) - self.skip

    def part(self, frames: Range, rows: Range) -> InTime:
        times, bounds = self.times[slice(*rows)], self._bounds_in(rows)
        return replace(self, times=times, bounds=bounds, skip=frames[0] - rows[0])

    def _begins(self, row: int) -> Range:
        begin, end = self._group(row)
        times = self.times[begin:end]
        # rows at one time may all be in each other's frames
        row = begin + int(np.searchsorted(times, self.times[row]))
        held = begin + int(np.searchsorted(times, self.times[row] - self.older))
        return (row, min(held, row)) if row > begin else (row, row)

    def _longest(self) -> int:
        if not self.holds or not len(self.times):
            return int(self.holds)
        # look at a few frames; the kernel asks for more room if others hold more rows
        some = [self._begins((len(self.times) - 1) * i // 4) for i in range(1, 5)]
        return 1 + max(row - held for row, held in some)

    def longest(self) -> int:
        """A number of rows that no frame exceeds, and the longest frame hardly falls short of."""
        from .measures import longest_in_time  # which imports this module

        return longest_in_time(self)

    def ranges(self) -> tuple[Array, Array]:
        from .measures import held_in_time

        return held_in_time(Span(self.older, self.younger), self.times, self.bounds)

    def _run(
        self, core: BufferCore | ObjectCore, call: Call, columns: Any, outputs: Any, to: int
    ) -> None:
        given = call.integers(self.times), call.integers(self.bounds), len(self.bounds) - 1
        done = 0
        while not done:
            done = core.run.frames_in_time(
                core.m, columns, *given, self.older, self.younger, outputs, to
            )
            if not done:
                room = core.get(CAPACITY)
                core.resize(2 * room, core.ring_blocks(room, 2 * room))


@dataclass(frozen=True)
class LastRows(OfRows):
    """A frame for each row: the row and the rows of its group before it, at most `size` in all."""

    bounds: Array
    size: int
    skip: int = 0

    def __len__(self) -> int:
        return int(self.bounds[-1]) - self.skip

    def part(self, frames: Range, rows: Range) -> LastRows:
        return replace(self, bounds=self._bounds_in(rows), skip=frames[0] - rows[0])

    def _begins(self, row: int) -> Range:
        return row, max(self._group(row)[0], row + 1 - self.size)

    def _longest(self) -> int:
        return min(self.size, int(np.diff(self.bounds).max(initial=1)))

    def ranges(self) -> tuple[Array, Array]:
        last = np.arange(1, len(self) + 1)
        return np.maximum(last - self.size, np.repeat(self.bounds[:-1], np.diff(self.bounds))), last

    def _run(
        self, core: BufferCore | ObjectCore, call: Call, columns: Any, outputs: Any, to: int
    ) -> None:
        bounds, count = call.integers(self.bounds), len(self.bounds) - 1
        core.run.frames_of_rows(core.m, columns, bounds, count, self.size, outputs, to)


@dataclass(frozen=True)
class Ranges(Whole):
    """The frames `[first, last)` of the rows in `fired`, or of all rows."""

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

    def _run(
        self, core: BufferCore | ObjectCore, call: Call, columns: Any, outputs: Any, to: int
    ) -> None:
        given = call.integers(self.first), call.integers(self.last)
        core.run.frames(core.m, columns, *given, len(self), outputs, to)


class Apart(Ranges):
    """Frames that are not empty, and share no rows."""

    def _longest(self) -> int:
        return 0

    def _run(
        self, core: BufferCore | ObjectCore, call: Call, columns: Any, outputs: Any, to: int
    ) -> None:
        given = call.integers(self.first), call.integers(self.last)
        core.run.frames_apart(core.m, columns, *given, len(self), outputs, to)


@dataclass(frozen=True)
class Excluding(Frames):
    """A frame for each row: the rows `[first, last)`, and some of the rows `[last, ends)`, which
    are the events at the row's own time: with `ties` the row itself, otherwise all of them but the
    row.
    """

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

    def _run(
        self, core: BufferCore | ObjectCore, call: Call, columns: Any, outputs: Any, to: int
    ) -> None:
        given = [call.integers(a) for a in (self.first, self.last, self.ends)]
        peers = 0 if self.ties else int((self.ends - self.last).max(initial=0))
        after: Any = [None] * peers
        if isinstance(core, BufferCore):
            _, after = call.space(peers * core.width)
        core.run.frames_excluding(
            core.m, columns, *given, len(self), int(self.ties), after, outputs, to
        )
