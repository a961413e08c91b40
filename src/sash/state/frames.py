"""Frames, the ranges of rows that windows hold, and their answers, as seen from Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.call import Call
from ..kernels.columns import Array
from ..kernels.core import BufferCore, ObjectCore, make_core
from ..kernels.slots import CAPACITY
from ..query.plan import Group
from .answers import answers_apart, answers_of, columns_of
from .frames_kernel import ANSWERS, FRAME, FRAMES, HOLDS

__all__ = [
    "Apart",
    "Excluding",
    "Frames",
    "InTime",
    "NoFrameAnswer",
    "Ranges",
    "place_all",
]


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

    def answers(
        self,
        group: Group,
        types: dict[str, Any],
        table: pa.Table,
        rows: Array | None,
        places: Array | None,
    ) -> dict[str, pa.Array]:
        """The answers of a group of aggregates by name; frame f's is in row places[f], or f.
        `rows` says where in the table the rows are, None that the table has their order."""
        longest = self._longest()
        core = make_core(FRAMES, group.operator, 1 << max(3, longest.bit_length()))
        core.header[HOLDS] = int(longest > 0)
        columns, sources = columns_of(group, table)
        kept, outputs = core.outputs(len(self))
        with core.call() as call:
            handle = call.columns(columns if rows is None else columns.take(rows))
            try:
                self._run(core, call, handle, outputs)
            except OverflowError as error:
                slot = core.get(ANSWERS)
                reason = answers_apart(core, group, slot - 1).reason if slot else ""
                raise NoFrameAnswer(reason or str(error), core.get(FRAME)) from error
        if places is not None:
            kept = _placed(kept, places)
        return answers_of(core, group, types, kept, len(self), None, sources)[0]


@dataclass(frozen=True)
class InTime(Frames):
    """A frame for each row: the rows of its group whose times are from `older` before its own up to
    `younger` before it, which is not included."""

    times: Array
    bounds: Array
    older: int
    younger: int
    holds: bool  # rows must be kept, because some will be evicted

    def __len__(self) -> int:
        return len(self.times)

    def _longest(self) -> int:
        return int(self.holds)

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
class Ranges(Frames):
    """The frames `[first, last)` of the rows in `fired`, or of all."""

    first: Array
    last: Array
    fired: Array | None = None

    def __len__(self) -> int:
        return len(self.first)

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


def _placed(kept: Any, places: Array) -> Any:
    """A core's outputs, columns with their validity or a list of objects, each at its place.

    The kernel writes them one after the other.  To let it write each where it belongs takes three
    times as long with a thousand keys: a write that misses the cache holds up the next frame, and
    many at once do not wait for each other.
    """
    if isinstance(kept, list):
        made: list[Any] = [None] * len(kept)
        for place, one in zip(places.tolist(), kept, strict=True):
            made[place] = one
        return made
    columns, *rest = kept
    pairs = [
        (place_all(d, places), None if v is None else place_all(v, places)) for d, v in columns
    ]
    return (pairs, *rest)


def place_all(items: Array, places: Array) -> Array:
    """Items, each at its place."""
    made = np.empty_like(items)
    made[places] = items
    return made
