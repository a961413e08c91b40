"""The answers of groups of aggregates over frames, piece by piece, in the table's order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array, Table
from ..kernels.core import BufferCore, make_core
from ..kernels.spans import room
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
    """The answers of groups of aggregates by name, each group over frames of its own.  Row r has
    the answer of frame order[r] or, without `order`, of frame r.  The groups differ only in their
    names, so columns are read, and rows are put in order, once.  `cuts` are ranges of frames, each
    with the rows that its frames hold and no other frames do."""
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
    spare: list[Array] = []  # arrays of words that belong to this call alone
    if rows is None and order is not None:  # the columns were moved
        own = {id(c.data): c.data for c in columns.columns if c.type != "bool"}
        own.pop(id(ordered.times), None)  # columns may share an array, also with the times
        spare = list(own.values())
    for frames, named in asked:
        outputs, _ = kept.pop(0)
        if order is not None:
            outputs = in_order(outputs, order, threads, spare)
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
    """Answer a range of frames by `moving`, for aggregates with a kernel of their own."""
    some, held = cut
    given = columns.runs([held]) if rows is None else columns.take(rows[slice(*held)])
    moving.part(some, held).answer(given, outputs, some[0])


def in_order(kept: Any, order: Array, threads: int, spare: list[Array]) -> Any:
    """A core's outputs in another order: columns with their validity, or a list of objects.
    Columns of words move into arrays of `spare`, which are as long or longer, and leave their own
    arrays there.

    The kernel writes outputs one after the other.  If it wrote each to its final place, that would
    take three times as long with a thousand keys: a write that misses the cache delays the next
    frame.
    """
    if isinstance(kept, list):
        return [kept[i] for i in order.tolist()]
    columns, *rest = kept
    pairs = []
    while columns:  # one column at a time, so that its old array is freed before the next
        data, valid = columns.pop(0)
        moved = None if valid is None or valid.all() else taken(valid, order, threads)
        into = None
        if data.ndim == 1 and data.itemsize == 8:
            if spare:
                into = spare.pop().view(data.dtype)[: len(data)]
            spare.append(data)
        pairs.append((taken(data, order, threads, into), moved))
    return (pairs, *rest)


def taken(items: Array, order: Array, threads: int, spare: Array | None = None) -> Array:
    """Items in another order, in a new array or in a spare one of the same kind: with ten columns,
    a third of the time went to memory pages that the system had to clear.  If the table's rows are
    in order of time, the rows of a block are neighbours within each key."""
    made = spare
    if made is None:
        made = room(len(items), items.dtype) if items.ndim == 1 else np.empty_like(items)

    def take(piece: Range) -> None:
        some = slice(*piece)
        np.take(items, order[some], axis=0, out=made[some], mode="clip")

    side_by_side(take, cut_rows(len(order)), threads)
    return made
