"""The windows of many queries over the same slices, answered from one pyramid of these slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..kernels.core import BufferCore, ObjectCore, make_core
from ..operators import count as counted
from ..query.plan import Group
from ..slicing.cycles import Cycles
from ..tables.answers import concat_all
from ..windows import Aligned
from ..windows.contract import Clock
from .answers import Apart, Sources, answers_and_reasons, answers_apart, told
from .contract import Slices
from .listing import Listing, numbers_between
from .pyramid_kernel import AGAIN, ASKING, CHUNK, PYRAMID, QUERY
from .scan import Windows, partials_handle
from .scan_kernel import ANSWERS, GROUP

__all__ = ["Answers", "Ask", "Pyramid", "PyramidFailed"]

#: The most windows to list at a time: this many, plus this many for each slice.
_LISTED, _LISTED_PER_SLICE = 1 << 16, 2


class PyramidFailed(RuntimeError):
    """`combine` raised an error in a pyramid, perhaps for slices that no window holds together."""


@dataclass(frozen=True)
class Ask:
    """What a query asks of a pyramid: its group of aggregates; its windows, with `changes` only
    those with other slices than the window before; the types of the answers; and the values of
    columns that the group reads as numbers."""

    group: Group
    window: Aligned
    changes: bool
    types: dict[str, Any]
    sources: Sources | None


class Pyramid:
    """A pyramid over the slices of one group of aggregates.  It never changes, so threads may call
    its methods at the same time."""

    def __init__(self, group: Group, slices: Slices, at: int, clock: Clock) -> None:
        self._slices, self._partials = slices, slices.partials[at]
        self._operator = group.operator
        self._shown = clock.reading(slices.starts)  # all windows have this clock
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
        """All windows of several queries that hold a slice."""
        forms: dict[Any, list[int]] = {}
        for q, ask in enumerate(asks):
            forms.setdefault(_form(ask), []).append(q)
        made: dict[int, Windows] = {}
        for places in forms.values():
            some = [asks[q] for q in places]
            cycles = Cycles([ask.window.cycle for ask in some])
            changes = np.array([ask.changes for ask in some])
            for own, found in self.answers(some[0], cycles, changes):
                for q in range(own.start, own.stop):
                    made[places[q]] = found.windows(q - own.start, some[q])
        return [made[q] for q in range(len(asks))]

    def answers(
        self, ask: Ask, cycles: Cycles, changes: Array, wanted: Array | None = None
    ) -> Iterator[tuple[slice, Answers]]:
        """Yield the windows of several queries that hold a slice, for some of the queries at a
        time, so that there are about as many windows in a list as slices.  With `wanted`, only the
        windows from one number up to another of each query.  All queries ask for the same columns
        of answers, those of `ask`."""
        numbers = numbers_between(cycles, self._shown, wanted)
        covers = bool(changes.any())
        most = _LISTED + _LISTED_PER_SLICE * len(self._shown)
        begin = total = 0
        for q, count in enumerate([*(numbers[:, 1] - numbers[:, 0]).tolist(), 0]):
            if q == len(cycles) or (total + count > most and q > begin):
                some = slice(begin, q)
                listing = Listing.of(cycles.some(some), numbers[some])
                yield some, self._answers(ask, changes[some], listing, covers=covers)
                begin, total = q, 0
            total += count

    def _answers(self, ask: Ask, changes: Array, listing: Listing, *, covers: bool) -> Answers:
        """The answers of the windows in a list that hold a slice.  `covers` is True if any of the
        answers that will be concatenated with these has only changes: then all of them need a
        column for the last window with the same slices."""
        core = make_core(PYRAMID, self._operator, 1)
        slices, groups = self._slices, len(self._slices.bounds) - 1
        queries = len(changes)
        held = [partials_handle(core, a) for a in (self._partials, self._ups, self._downs)]
        given = self._places, self._shown, slices.bounds, listing.times
        kept = [core.integers(a) for a in (*given, listing.bounds, listing.lows, listing.highs)]
        kept += [core.integers(a) for a in (changes, np.empty(len(listing.times), np.int64))]
        places, starts, bounds, times, lists, lows, highs, only, firsts = (h for _, h in kept)
        asked = starts, bounds, groups, times, len(listing.times), lists, lows, highs, only
        found, at_found = core.integers(np.zeros(queries, dtype=np.int64))
        run = _counter().run if isinstance(core, BufferCore) else core.run
        run.count_asked(core.m, *asked, queries, firsts, at_found)
        first = np.concatenate([[0], np.cumsum(np.asarray(found, dtype=np.int64))])
        count = int(first[-1])
        out, at_out = core.outputs(count)
        rows, at_rows = core.integers(first[:-1].copy())
        ends, at_ends = core.integers(np.empty(queries * groups, dtype=np.int64))
        made, at_made = core.integers(np.empty(count, dtype=np.int64))
        covered, at_covered = core.integers(np.zeros(count if covers else 0, dtype=np.int64))
        to = at_rows, at_out, at_ends, at_made, at_covered
        header = core.header
        header[GROUP] = header[QUERY] = header[AGAIN] = header[ANSWERS] = 0
        apart: dict[int, Apart] = {}
        done = 0
        while not done:
            try:
                done = core.run.windows_of_pyramid(
                    core.m, *(h for _, h in held), places, *asked, queries, firsts, *to
                )
            except Exception as error:
                if not core.get(ANSWERS):
                    raise PyramidFailed(f"combine raised {error!r}") from error
                row, slot = int(rows[core.get(QUERY)]) - 1, core.get(ANSWERS) - 1
                apart[row] = answers_apart(core, ask.group, slot)
                header[ANSWERS] = 0
        del held, kept
        values, failed = answers_and_reasons(
            core, ask.group, ask.types, out, count, apart, ask.sources
        )
        number = np.repeat(listing.first, np.diff(first))
        return Answers(
            first,
            np.asarray(ends, dtype=np.int64).reshape(queries, groups),
            np.asarray(made, dtype=np.int64) + number,
            np.asarray(covered, dtype=np.int64) + number[: len(covered)],
            values,
            failed,
        )


@dataclass(frozen=True)
class Answers:
    """The windows of several queries.  Query q has the rows from bounds[q] up to bounds[q + 1]; its
    rows of group g end before ends[q, g].  Each row has the number of its window, the number of the
    last window with the same slices if only changes are wanted, and the answers of all aggregates,
    by the names that the first query has for them.  `failed` has the reason for each answer that
    does not exist, by row and name."""

    bounds: Array
    ends: Array
    numbers: Array
    covered: Array
    values: dict[str, pa.Array]
    failed: dict[int, dict[str, str]]

    @staticmethod
    def one_after_another(parts: Sequence[Answers]) -> Answers:
        """Concatenate the windows of several sets of queries."""
        if len(parts) == 1:
            return parts[0]
        rows = np.cumsum([0, *(len(part.numbers) for part in parts)]).tolist()
        moved = list(zip(parts, rows[:-1], strict=True))
        names = list(parts[0].values)
        return Answers(
            np.concatenate([*(part.bounds[:-1] + n for part, n in moved), rows[-1:]]),
            np.concatenate([part.ends + n for part, n in moved]),
            np.concatenate([part.numbers for part in parts]),
            np.concatenate([part.covered for part in parts]),
            {name: concat_all([part.values[name] for part in parts]) for name in names},
            {row + n: why for part, n in moved for row, why in part.failed.items()},
        )

    def windows(self, query: int, ask: Ask) -> Windows:
        """The windows of one query."""
        own = slice(int(self.bounds[query]), int(self.bounds[query + 1]))
        names = dict(zip(self.values, ask.group.names, strict=True))
        lacking = {
            row - own.start: told({names[name]: why for name, why in reasons.items()})
            for row, reasons in self.failed.items()
            if own.start <= row < own.stop
        }
        return Windows(
            self.ends[query] - own.start,
            self.numbers[own],
            self.covered[own] if ask.changes else self.covered[:0],
            {names[name]: column[own] for name, column in self.values.items()},
            lacking,
        )


def _form(ask: Ask) -> Any:
    """All that the columns of a query's answers depend on besides the kernel's outputs."""
    group = ask.group
    types = tuple(str(ask.types[name]) for name in group.names)
    fields = tuple(part.operator.fields for part in group.operator.parts)
    return types, group.exact, group.values_of, fields, id(ask.sources)


@cache
def _counter() -> BufferCore | ObjectCore:
    """The core that counts windows for all pyramids of compiled operators."""
    return make_core(ASKING, counted.of("int64"), 1)


def _whole_chunks(ups: Any, bounds: Array, at: int) -> Any:
    """The partials of a level's chunks, which are the slices of the next level.  A chunk's partial
    is the one that goes up to its last slice."""
    counts = np.diff(bounds)
    chunks = -(-counts // CHUNK)
    owners = np.repeat(np.arange(len(counts)), chunks)
    number = np.arange(len(owners)) - np.repeat(np.cumsum(chunks) - chunks, chunks)
    last = at + bounds[owners] + np.minimum((number + 1) * CHUNK, counts[owners]) - 1
    return [ups[i] for i in last.tolist()] if isinstance(ups, list) else ups[last]
