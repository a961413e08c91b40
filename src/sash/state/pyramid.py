"""The windows of many queries over the same slices, from one pyramid of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..kernels.columns import Array
from ..kernels.core import BufferCore, ObjectCore, make_core
from ..operators import count as counted
from ..query.plan import Group
from ..slicing.slices import specify
from ..windows import Aligned
from .answers import Apart, Sources, answers_apart, answers_of
from .contract import Slices
from .pyramid_kernel import AGAIN, ASKED, ASKING, CHUNK, PYRAMID, QUERY
from .scan import Windows, partials_handle
from .scan_kernel import ANSWERS, GROUP

__all__ = ["Ask", "Pyramid", "PyramidFailed"]


class PyramidFailed(RuntimeError):
    """`combine` raised while a pyramid was built, maybe of slices that no window holds together."""


@dataclass(frozen=True)
class Ask:
    """What a query asks a pyramid for: its group of aggregates, its windows, all or only those with
    other slices than the one before, the types of the answers, and the values of columns that are
    read by number."""

    group: Group
    window: Aligned
    changes: bool
    types: dict[str, Any]
    sources: Sources


class Pyramid:
    """A pyramid over the slices of one group of aggregates; it does not change once it is made, so
    that threads may ask it at the same time."""

    def __init__(self, group: Group, slices: Slices, at: int) -> None:
        self._slices, self._partials = slices, slices.partials[at]
        self._operator = group.operator
        core = make_core(PYRAMID, group.operator, 1)
        bounds = [slices.bounds]
        while (np.diff(bounds[-1]) > CHUNK).any():
            chunks = -(-np.diff(bounds[-1]) // CHUNK)
            bounds.append(np.concatenate([[0], np.cumsum(chunks)]))
        tops = np.cumsum([0, *(int(b[-1]) for b in bounds)])
        self._places = np.concatenate([b[:-1] + n for b, n in zip(bounds, tops[:-1], strict=True)])
        room, count = int(tops[-1]), len(slices.bounds) - 1
        objects = isinstance(core, ObjectCore)
        self._ups, self._downs = (
            [None] * room if objects else np.empty((room, core.width), np.int64) for _ in range(2)
        )
        level = self._partials
        for i, (own, top) in enumerate(zip(bounds, tops[:-1].tolist(), strict=True)):
            if i:
                level = _whole_chunks(self._ups, bounds[i - 1], int(tops[i - 1]))
            held = [partials_handle(core, a) for a in (level, self._ups, self._downs)]
            (_, at), (_, ups), (_, downs) = held
            with core.call() as call:
                try:
                    core.run.build_level(core.m, at, call.integers(own), count, top, ups, downs)
                except Exception as error:
                    raise PyramidFailed(f"combine raised {error!r}") from error
            del held

    def windows(self, asks: Sequence[Ask]) -> list[Windows]:
        """All windows of several queries."""
        core = make_core(PYRAMID, self._operator, 1)
        slices, groups = self._slices, len(self._slices.bounds) - 1
        shown = asks[0].window.clock.reading(slices.starts)
        asked = np.zeros((len(asks), ASKED), dtype=np.int64)
        for ask, fields in zip(asks, asked, strict=True):
            specify(fields, ask.window, 0)
        changes = np.array([ask.changes for ask in asks])
        held = [partials_handle(core, a) for a in (self._partials, self._ups, self._downs)]
        kept = [core.integers(a) for a in (self._places, shown, slices.bounds)]
        kept += [core.integers(a) for a in (asked.reshape(-1), changes)]
        (places, at, bounds, windows, only) = (handle for _, handle in kept)
        found, at_found = core.integers(np.zeros(len(asks), dtype=np.int64))
        # the header is the own one's: others may count at the same time
        run = _counter().run if isinstance(core, BufferCore) else core.run
        run.count_asked(core.m, at, bounds, groups, windows, len(asks), at_found)
        room = np.asarray(found, dtype=np.int64)
        room = np.where(changes, np.minimum(room, 2 * len(shown) + groups), room)
        first = np.concatenate([[0], np.cumsum(room)])
        out, at_out = core.outputs(int(first[-1]))
        rows, at_rows = core.integers(first[:-1].copy())
        ends, at_ends = core.integers(np.empty(len(asks) * groups, dtype=np.int64))
        numbers, at_numbers = core.integers(np.empty(first[-1], dtype=np.int64))
        many = first[-1] if changes.any() else 0
        covered, at_covered = core.integers(np.empty(many, dtype=np.int64))
        header = core.header
        header[GROUP] = header[QUERY] = header[AGAIN] = header[ANSWERS] = 0
        given = *(h for _, h in held), places, at, bounds, groups, windows, only, len(asks)
        apart: list[dict[int, Apart]] = [{} for _ in asks]
        done = 0
        while not done:
            try:
                to = at_rows, at_out, at_ends, at_numbers, at_covered
                done = core.run.windows_of_pyramid(core.m, *given, *to)
            except Exception:
                if not core.get(ANSWERS):
                    raise
                q, slot = core.get(QUERY), core.get(ANSWERS) - 1
                row = int(rows[q]) - 1 - int(first[q])
                apart[q][row] = answers_apart(core, asks[q].group, slot)
                header[ANSWERS] = 0
        del held, kept
        made = []
        for q, ask in enumerate(asks):
            own = slice(int(first[q]), int(rows[q]))
            count = own.stop - own.start
            values, lacking = answers_of(
                core, ask.group, ask.types, _some(out, own), count, apart[q], ask.sources
            )
            last = np.asarray(ends[q * groups : (q + 1) * groups], dtype=np.int64)
            made.append(
                Windows(
                    last - own.start,
                    np.asarray(numbers[own], dtype=np.int64),
                    np.asarray(covered[own] if ask.changes else covered[:0], dtype=np.int64),
                    values,
                    lacking,
                )
            )
        return made


def _some(outputs: Any, rows: slice) -> Any:
    """Some rows of what a kernel wrote."""
    if isinstance(outputs, list):
        return outputs[rows]
    pairs = [(data[rows], None if valid is None else valid[rows]) for data, valid in outputs[0]]
    return pairs, *outputs[1:]


@cache
def _counter() -> BufferCore | ObjectCore:
    """Counts windows for all pyramids of compiled operators."""
    return make_core(ASKING, counted.of("int64"), 1)


def _whole_chunks(ups: Any, bounds: Array, at: int) -> Any:
    """The chunks of a level as slices of the next one: each is what goes up to its last slice."""
    counts = np.diff(bounds)
    chunks = -(-counts // CHUNK)
    owners = np.repeat(np.arange(len(counts)), chunks)
    number = np.arange(len(owners)) - np.repeat(np.cumsum(chunks) - chunks, chunks)
    last = at + bounds[owners] + np.minimum((number + 1) * CHUNK, counts[owners]) - 1
    return [ups[i] for i in last.tolist()] if isinstance(ups, list) else ups[last]
