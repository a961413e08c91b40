"""The answers of groups of aggregates over frames, piece by piece, in the table's order."""

from __future__ import annotations

from collections.abc import Sequence
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
from .frames import Frames, Range
from .frames_kernel import FRAMES
from .moving import Moving, moving_of

__all__ = ["answers_of_frames", "in_order", "taken"]


def answers_of_frames(
    asked: Sequence[tuple[Frames, Group]],
    types: dict[str, Any],
    table: pa.Table,
    ordered: Ordered,
    order: Array | None,
    cuts: list[tuple[Range, Range]],
    threads: int,
) -> dict[str, pa.Array]:
    """The answers of groups of aggregates by name, each over frames of its own; row r has that of
    frame order[r], or r.  The groups are the same but for their names, so that columns are read,
    and rows brought together, once.  `cuts` are ranges of frames, with the rows that they hold and
    no others do."""
    group = asked[0][1]
    columns, sources = columns_of(group, table)
    columns, rows = ordered.columns(columns, threads)
    core = make_core(FRAMES, group.operator, 8)
    kept = [core.outputs(len(frames)) for frames, _ in asked]
    if len(asked) == 1:
        cuts = [piece for cut in cuts for piece in asked[0][0].pieces(cut)]
    typed = isinstance(core, BufferCore) and bool(core.layout.answers)
    if not typed or "object" in columns.types:
        cuts = cuts[:1]
    moving = moving_of(asked[0][0], group, columns) if typed and len(asked) == 1 else None
    if moving is not None:
        give_moving = partial(_give_moving, moving, columns, rows, kept[0][0][0])
        side_by_side(give_moving, cuts, threads)
    elif len(cuts) == 1:
        given = columns if rows is None else columns.take(rows)
        for (frames, named), (_, outputs) in zip(asked, kept, strict=True):
            frames.answer(named, given, outputs, 0)
    else:
        give = partial(_give, asked, columns, rows, [outputs for _, outputs in kept])
        side_by_side(give, cuts, threads)
    made: dict[str, pa.Array] = {}
    for frames, named in asked:
        outputs, _ = kept.pop(0)
        if order is not None:
            outputs = in_order(outputs, order, threads)
        made |= answers_of(core, named, types, outputs, len(frames), None, sources)[0]
    return made


def _give(
    asked: Sequence[tuple[Frames, Group]],
    columns: Table,
    rows: Array | None,
    outputs: list[Any],
    cut: tuple[Range, Range],
) -> None:
    """Answer a range of frames."""
    some, held = cut
    given = columns.runs([held]) if rows is None else columns.take(rows[slice(*held)])
    for (frames, group), out in zip(asked, outputs, strict=True):
        frames.part(some, held).answer(group, given, out, some[0])


def _give_moving(
    moving: Moving,
    columns: Table,
    rows: Array | None,
    outputs: list[tuple[Array, Array | None]],
    cut: tuple[Range, Range],
) -> None:
    """The same for aggregates with a kernel of their own."""
    some, held = cut
    given = columns.runs([held]) if rows is None else columns.take(rows[slice(*held)])
    moving.part(some, held).answer(given, outputs, some[0])


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
        moved = None if valid is None or valid.all() else taken(valid, order, threads)
        pairs.append((taken(data, order, threads), moved))
    return (pairs, *rest)


def taken(items: Array, order: Array, threads: int, spare: Array | None = None) -> Array:
    """Items in another order, in an array of their own, or in a spare one like it: of ten columns,
    pages that the system had to clear took a third of the time.  Where the table's rows are in
    order of time, those of a block are neighbours in each key."""
    made = np.empty_like(items) if spare is None else spare

    def take(piece: Range) -> None:
        some = slice(*piece)
        np.take(items, order[some], axis=0, out=made[some], mode="clip")

    side_by_side(take, cut_rows(len(order)), threads)
    return made
