"""Frames of several sizes that end together: the Python side of their kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array, Table
from ..kernels.core import BufferCore, make_core
from ..query.plan import Group
from ..tables.rows import Ordered
from ..tables.threads import cut_rows, side_by_side
from .answers import answers_of, columns_of
from .frame_answers import taken
from .frames import InTime, NoFrameAnswer, Range
from .over_kernel import OVER
from .over_steps import CHUNK, LINES, MASKS, SCRATCH, WIDE

__all__ = ["Sizes", "answers_of_sizes"]

#: The number of rows that are put in order at a time, so that they stay in the cache.
_BLOCK = 2048


@dataclass(frozen=True)
class Sizes:
    """Frames of several sizes for each row, longest first.  The frames of a row end together, and
    begin at different rows."""

    frames: tuple[InTime, ...]

    def part(self, frames: Range, rows: Range) -> Sizes:
        """A range of frames, which hold only rows of this range of rows."""
        return replace(self, frames=tuple(f.part(frames, rows) for f in self.frames))

    def answer(
        self, group: Group, columns: Table, places: tuple[int, int, int], outputs: Any
    ) -> None:
        """Answer all frames, over columns in the order of the rows, into these places of the
        outputs; see `over_kernel.frames_over`."""
        one, sizes = self.frames[0], len(self.frames)
        # room for the rows of the longest frame that evicts rows, and for the chunks in which it
        # begins and ends
        longest = next((f.longest() for f in self.frames if f.holds), 0)
        ring = _power(longest + 2 * CHUNK)
        stack = _power(ring // CHUNK + 1)
        core = make_core(OVER, group.operator, sizes * (stack + 1) + ring)
        stacks = SCRATCH + sizes * (stack + 1)
        for field, value in zip(MASKS, (SCRATCH, stacks, stack - 1, ring - 1), strict=True):
            core.header[field] = value
        olders = np.array([f.older if f.holds else -1 for f in self.frames])
        with core.call() as call:
            given = call.columns(columns), call.integers(one.times), call.integers(one.bounds)
            known = len(one.bounds) - 1, call.integers(olders), sizes, one.younger
            state = [
                call.integers(np.zeros(n, np.int64)) for n in (sizes, sizes, CHUNK, sizes * WIDE)
            ]
            state.append(call.integers(np.array(LINES)))
            try:
                at, step, apart = places
                to = at - one.skip * step, step, apart
                core.run.frames_over(core.m, *given, *known, *state, one.skip, *to, outputs)
            except OverflowError:  # answer each size alone: that raises an error with the frame
                for i, frames in enumerate(self.frames):
                    frames.answer_alone(group.alone(i), columns)
                raise


def answers_of_sizes(
    sizes: Sizes,
    group: Group,
    types: dict[str, Any],
    table: pa.Table,
    ordered: Ordered,
    order: Array | None,
    cuts: list[tuple[Range, Range]],
    threads: int,
) -> dict[str, pa.Array]:
    """The answers of a group of aggregates over windows of several sizes, by name; for the
    arguments see `frame_answers.answers_of_frames`."""
    columns, sources = columns_of(group, table)
    columns, rows = ordered.columns(columns, threads)
    total = len(sizes.frames[0])
    core = make_core(OVER, group.operator, 8)
    kept, outputs = core.outputs(total * len(sizes.frames))
    typed = isinstance(core, BufferCore) and bool(core.layout.answers)
    many = len(sizes.frames)
    cuts = [piece for cut in cuts for piece in sizes.frames[0].pieces(cut)]
    # If rows must be put into an arbitrary order, the answers of a row are neighbours and move
    # together.  From the order of keys to a table in order of time, the rows of a key stay near
    # each other, and it takes half the time to move each column by itself.
    together = typed and order is not None and ordered.places is None
    step, apart = (many, 1) if together else (1, total)
    if not typed or "object" in columns.types or len(cuts) == 1:
        given = columns if rows is None else columns.take(rows)
        sizes.answer(group, given, (0, step, apart), outputs)
    else:

        def give(cut: tuple[Range, Range]) -> None:
            frames, held = cut
            given = columns.runs([held]) if rows is None else columns.take(rows[slice(*held)])
            try:
                places = frames[0] * step, step, apart
                sizes.part(frames, held).answer(group, given, places, outputs)
            except NoFrameAnswer as error:
                error.frame += frames[0]
                raise

        side_by_side(give, cuts, threads)
    made: dict[str, pa.Array] = {}
    parted = _parted(kept, many, total, order, threads, together=together)
    for i, some in enumerate(parted):
        made |= answers_of(core, group.alone(i), types, some, total, None, sources)[0]
    return made


def _parted(
    kept: Any, many: int, total: int, order: Array | None, threads: int, *, together: bool
) -> list[Any]:
    """The outputs of each size, in the order `order`.  With `together`, the outputs of a row are
    neighbours in `kept`."""
    if isinstance(kept, list):
        parts = [kept[i * total : (i + 1) * total] for i in range(many)]
        return parts if order is None else [[part[i] for i in order.tolist()] for part in parts]
    made: list[list[Any]] = [[] for _ in range(many)]
    for data, valid in kept[0]:
        move = partial(_columns if together else _apart, many, total, order, threads)
        columns = move(data)
        valids: Any = [None] * many
        if valid is not None and not valid.all():
            valids = move(valid)
        for part, pair in zip(made, zip(columns, valids, strict=True), strict=True):
            part.append(pair)
    return [(pairs, *kept[1:]) for pairs in made]


def _apart(many: int, total: int, order: Array | None, threads: int, items: Array) -> Any:
    """A column of the outputs of each size; the sizes lie one after the other in `items`."""
    columns = items.reshape(many, total, *items.shape[1:])
    if order is None:
        return columns
    made, spare = [], np.empty_like(columns[0])
    for column in columns:  # write each one over the one before
        made.append(taken(column, order, threads, spare))
        spare = column
    return made


def _columns(many: int, total: int, order: Array | None, threads: int, items: Array) -> Array:
    """A column of the outputs of each size; the sizes of a row are neighbours in `items`, and move
    together."""
    assert order is not None
    made = np.empty((many, total, *items.shape[1:]), items.dtype)
    rows = items.reshape(total, many, *items.shape[1:])

    def take(piece: Range) -> None:
        for low in range(*piece, _BLOCK):
            some = slice(low, min(low + _BLOCK, piece[1]))
            block = np.take(rows, order[some], axis=0, mode="clip")
            for i in range(many):
                made[i, some] = block[:, i]

    side_by_side(take, cut_rows(total), threads)
    return made


def _power(least: int) -> int:
    """The first power of two that is at least this."""
    return 1 << (least - 1).bit_length()
