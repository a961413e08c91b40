"""A key's values over any range of time, from tiles at the ends of the range and from totals
between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..tables.answers import warn_of
from .answers import Sources
from .apart import lowered
from .key_hash import hash_keys
from .numbered import Numbered
from .part import tile_name, unpack_part
from .part_index import NEVER, Index, part_name
from .records import Records
from .tile import BITS, Form, Tile

__all__ = ["ask"]


def ask(
    plan: Plan, form: Form, records: Records, key: tuple[Any, ...], lo: int, hi: int
) -> dict[str, Any]:
    """The values of one key over the times from `lo` up to but not including `hi`.

    This reads the nodes of the index on the way to the key's part, the part's root and, on each
    level, the tiles that the ends of the range cut.  For tiles in between, it takes the totals on
    the level above.
    """
    if len(key) != len(plan.keys):
        raise ValueError(f"this stream has {len(plan.keys)} key columns, not {len(key)}: {key!r}")
    columns = [pa.array([x], field.type) for x, field in zip(key, form.key_schema, strict=True)]
    hashed = hash_keys(columns, 1)
    found = _pieces(form, records, hashed, lo, hi)
    partials: list[Any] = [group.operator.identity for group in plan.groups]
    sources: list[Sources | None] = [None] * len(partials)
    if found:
        for n in range(len(partials)):
            partials[n], sources[n] = _combined(form, n, [piece[n] for piece in found])
    values, failed = lowered(plan, [partials], sources)
    warn_of({0: failed} if failed else {})
    return values


def _combined(form: Form, number: int, partials: list[Any]) -> tuple[Any, Sources | None]:
    """Combine the partials of a group of aggregates, in order.  Also return the values of the
    columns that the kernel reads as numbers."""
    folds, operator = form.folds[number], form.operators[number]
    if not folds.width:
        combine, made = operator.python_combine(), partials[0]
        for partial in partials[1:]:
            made = combine(made, partial)
        return made, None
    runs = np.arange(len(partials)), np.array([0, len(partials)])
    folded = folds.fold(folds.join(partials), *runs)
    if isinstance(folded, Numbered):
        return folds.partial(folded.words[0]), folded.sources
    return folds.partial(folded[0]), None


def _pieces(form: Form, records: Records, hashed: Array, lo: int, hi: int) -> list[list[Any]]:
    """The partials of a range, oldest first; each is a list with a partial for each group of
    aggregates."""
    index = Index(records)
    visited = index.visit(hashed, -NEVER, -NEVER)
    at = int(visited.of_keys[0])
    if not visited.exists[at]:
        return []
    prefix, bits = int(visited.rows["prefix"][at]), int(visited.rows["bits"][at])
    (body,) = records.need([part_name(prefix, bits)])
    head, entries = unpack_part(memoryview(body), form.queries)
    first, last = form.edges.number(np.array([lo, hi - 1])).tolist()
    pieces: list[tuple[int, int, list[Any]]] = []  # each with its first slice and row, to be sorted
    tiles = [form.unpack(entries, head.height)]
    for level in range(head.height, -1, -1):
        below = []
        for tile in tiles:
            for row in _rows_of(tile, hashed):
                unit = int(tile.units[row])
                start, end = unit << BITS * level, (unit + 1) << BITS * level
                if end <= first or start > last:
                    continue
                if level and not first <= start < end <= last:
                    below.append(unit)
                elif level or not form.marks or lo <= tile.marks[0][row] < hi:
                    one = np.array([row])
                    both = zip(form.folds, tile.partials, strict=True)
                    found = [f.take(p, one) if f.width else p[row] for f, p in both]
                    pieces.append((start, row, found))
        names = [tile_name(prefix, bits, level - 1, unit) for unit in below]
        tiles = [form.unpack(memoryview(b), level - 1) for b in records.need(names)]
    return [partials for _, _, partials in sorted(pieces, key=lambda piece: piece[:2])]


def _rows_of(tile: Tile, hashed: Array) -> range:
    """The places of a key's entries in a tile."""
    at = np.flatnonzero(hash_keys(tile.keys, len(tile.counts)) == hashed[0])
    if not len(at):
        return range(0)
    end = int(tile.counts[: at[0] + 1].sum())
    return range(end - int(tile.counts[at[0]]), end)
