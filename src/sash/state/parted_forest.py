"""A forest whose trees are in several memories, so that threads can work on it side by side.

A key's record says in which memory its tree is, and a tree never moves.  If a step brings many new
keys, each memory gets a range of them with a quarter of their slices.  Otherwise new keys go to the
memories by their numbers, 16 at a time:

    numbers   0 … 15    16 … 31    32 … 47    48 … 63    64 … 79 …
    memory       0          1          2          3          0

So a stream of few keys has one memory.  One thread goes through all keys in one call of the kernel,
whichever memories they are in.  Several threads take a memory each, and their answers are then put
in the order of the keys; if each memory has a range of the keys, the answers only have to be
concatenated.  Trees do not depend on each other, so the answers are the same.

Labels in partials are of dictionaries that all memories share: values get labels before threads
start, and are only looked up by them.  Python objects have one memory.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence, Sized
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from ..aggregators.forest import RECORD
from ..aggregators.nodes import TOP
from ..kernels.columns import Array, Table
from ..kernels.core import BufferCore, ObjectCore
from ..kernels.threads import how_many, side_by_side
from ..query.plan import Group, Plan
from ..slicing.cut import cut_events
from ..tables.answers import concat_all
from ..tables.rows import Ordered, rows_in_order, without_others
from ..tables.threads import rise
from ..windows import Aligned
from .answers import Sources, columns_of
from .contract import NEW, Step
from .forest import Answered, AnsweredRanges, CombineRaised, Forest
from .forest_fields import PART
from .labels import Partials
from .range_answers import Found, Inserted, Ranges

__all__ = ["PARTS", "PartedForest", "batch_in_order", "none_raised", "threads_for"]

T = TypeVar("T")

PARTS = 4  # memories, and so the most threads that have something to do
#: Rows, or slices, of a batch from which on threads are worth their start and what they take on the
#: way, some 2 ms of processor time in all: a push takes 30 to 110 ns a row.
MANY = 1 << 16
STRIPE = 16  # keys that come one after the other and share a memory


def threads_for(rows: Sized, answered: int = 0) -> int:
    """How many threads a step uses for some rows, or slices, where the last one answered so many
    windows."""
    return how_many() if max(len(rows), answered) >= MANY else 1


def batch_in_order(plan: Plan, table: pa.Table, threads: int) -> Ordered:
    """The rows of a batch in order of key and time; threads take a quarter each of few rows."""
    weight = PARTS if threads > 1 else 1
    return without_others(rows_in_order(plan, table, threads, weight=weight))


class PartedForest(Forest):
    """A forest in up to four memories; its own memory is the first."""

    def __init__(self, group: Group, window: Aligned, types: dict[str, Any]) -> None:
        super().__init__(group, window, types)
        self._new: Callable[[], Forest] = lambda: Forest(group, window, types)
        self._others: list[Forest] = []  # the memories but the first, each a forest
        self._dealt = 0  # the numbers before it are those of keys whose records say the memory
        self._numbers = 0  # of keys that there are
        self.answered = 0  # how many windows the last step answered
        self.divisible = isinstance(self._core, BufferCore)

    @property
    def _parts(self) -> list[Forest]:
        """All memories.  Not stored as a list: the forest would be in it, a cycle of references,
        and would not be freed at once."""
        return [self, *self._others]

    def __deepcopy__(self, memo: Any) -> Forest:
        made = super().__deepcopy__(memo)
        assert isinstance(made, PartedForest)
        made._others = [copy.deepcopy(part, memo) for part in self._others]
        made._share()
        return made

    def _share(self, memories: int = 1) -> None:
        """Make memories until there are this many, and let all of them share the records."""
        while 1 + len(self._others) < memories:
            more = self._new()
            more.part = 1 + len(self._others)
            self._others.append(more)
        for part in self._others:
            part._records, part._at_records = self._records, self._at_records
            part._labels = self._labels

    def make_room(self, numbers: int) -> None:
        """Make records for keys with numbers below this."""
        super().make_room(numbers)
        self._numbers = numbers
        if self.divisible:
            self._share(min(-(-numbers // STRIPE), PARTS))

    def _deal(self, visits: Array, spans: tuple[Array, Array]) -> None:
        """Choose the memories of the new keys that have slices in this step."""
        if self._numbers == self._dealt:
            return
        # a key that is only remembered has no tree: after a snapshot is restored, its number may be
        # above `_dealt`, and it is visited without slices
        came = (visits >= self._dealt) & (spans[1] > spans[0])
        new = visits[came]
        part = new // STRIPE % PARTS
        if len(new) >= PARTS * STRIPE:
            slices = np.cumsum((spans[1] - spans[0])[came])
            part = (slices - 1) * PARTS // slices[-1]
        self._records[RECORD * new + PART] = part
        self._dealt = self._numbers

    def renumber(self, kept: Array) -> None:
        """Renumber the keys; `kept` has the old number of each new number."""
        super().renumber(kept)
        self._share()
        self._numbers = self._dealt = len(kept)

    def _core_of(self, number: int) -> BufferCore | ObjectCore:
        part = int(self._records[RECORD * number + PART])
        return self._core if part == self.part else self._others[part - 1]._core

    def step(
        self,
        step: Step,
        visits: Array,
        spans: tuple[Array, Array],
        starts: Array,
        partials: Any,
        threads: int = 1,
    ) -> Answered:
        """Insert slices, answer windows, evict; see `Forest.step`."""
        inserted, parts = self._to_insert(partials), self._parts
        if self.divisible:
            self._deal(visits, spans)
        if threads == 1 or len(parts) == 1:
            found = self._step(step, visits, spans, starts, inserted, parts)
            self.answered = len(found.keys)
            self.let_go()
            return found
        of = self._records[RECORD * visits + PART]

        def run(part: Forest) -> Answered | CombineRaised:
            at = np.flatnonzero(of == part.part)
            own = spans[0][at], spans[1][at]
            try:
                return part._step(step, visits[at], own, starts, inserted, [part])
            except CombineRaised as error:
                return error

        made = none_raised(side_by_side(run, parts, threads), visits)
        place = None
        if not rise(of):
            place = np.empty(len(self._records) // RECORD, dtype=np.int32)
            place[visits] = np.arange(len(visits))
        self.answered = sum(len(one.keys) for one in made)
        self.let_go()
        return _joined(made, place, threads, fresh=not (step.again or step.early))

    def ranges(
        self, visits: Array, inserted: Inserted, asked: Ranges, edges: Array, threads: int = 1
    ) -> Found:
        """Insert entries and answer ranges of them; see `Forest.ranges`."""
        given, parts = replace(inserted, partials=self._to_insert(inserted.partials)), self._parts
        if self.divisible:
            self._deal(visits, (inserted.bounds[:-1], inserted.bounds[1:]))
        kept, outputs = self._core.outputs(len(asked.lows))
        if threads == 1 or len(parts) == 1:
            answered = self._ranges(visits, given, asked, edges, outputs, parts)
            return self._found(kept, asked, [answered])
        of = self._records[RECORD * visits + PART]

        def run(part: Forest) -> AnsweredRanges | CombineRaised:
            at = np.flatnonzero(of == part.part)
            try:
                return part._ranges(visits, given, asked, edges, outputs, [part], at)
            except CombineRaised as error:
                return error

        return self._found(kept, asked, none_raised(side_by_side(run, parts, threads), visits))

    def _swept(self) -> list[Partials]:
        return [*super()._swept(), *(one for part in self._others for one in part._swept())]

    def columns(self, table: pa.Table) -> tuple[Table, Sources]:
        """The columns that the group reads, and the values of those that are read by number."""
        return columns_of(self.group, table, None if self._labels is None else self._labels.calm())

    def cut_some(
        self,
        part: int,
        columns: Table,
        rows: Array | None,
        times: Array,
        bounds: Array,
        into: tuple[Array, Array],
        *,
        whole: bool,
    ) -> Array:
        """Cut some groups of rows into slices, in the free slots of one memory; see `cut`.  Write
        the starts and partials of the slices to `into`, which has room for as many as there are
        rows, and return the bounds of each group's slices there."""
        core, given = (
            (self._others[part - 1] if part else self)._core,
            (columns, rows, times, bounds),
        )
        return cut_events(core, *given, whole=whole, slots=self._spare, into=into)[2]

    def room_for(self, rows: int) -> Array:
        """An array for the partials of this many rows.  Also makes all memories, because each of
        them is then used to cut rows."""
        self._share(PARTS)
        return np.empty((rows, self._core.width), dtype=np.int64)

    def size(self) -> int:
        """The bytes that the slices take, including free nodes."""
        return super().size() + sum(8 * int(part._core.get(TOP)) for part in self._others)

    def dump(self) -> list[bytes]:
        """Records, all memories one after the other, and the values of labels, as bytes."""
        records, memory, labelled = super().dump()
        cores = [part._core for part in self._others]
        return [records, b"".join([memory, *(core.dump() for core in cores)]), labelled]

    def load(self, records: bytes, memory: bytes, labelled: bytes) -> None:
        """Restore what `dump` returned."""
        if not self.divisible:
            super().load(records, memory, labelled)
            return
        words = np.frombuffer(memory, dtype="<i8")
        first = int(words[TOP])
        super().load(records, memory[: 8 * first], labelled)
        while first < len(words):
            self._share(len(self._others) + 2)
            end = first + int(words[first + TOP])
            self._others[-1]._load_memory(words[first:end])
            first = end
        self._share()
        trees = np.flatnonzero(self._records[::RECORD])
        self._dealt = int(trees[-1]) + 1 if len(trees) else 0

    def _check(self) -> None:
        super()._check()
        for part in self._others:
            part._check()


def none_raised(made: Sequence[T | CombineRaised], visits: Array) -> list[T]:
    """What parts made; if operators raised there, the error of the first key is raised, as one
    thread would."""
    found, raised = [], []
    for one in made:
        if isinstance(one, CombineRaised):
            raised.append(one)
        else:
            found.append(one)
    if raised:
        place = {key: i for i, key in enumerate(visits.tolist())}
        raise min(raised, key=lambda error: place[error.key])
    return found


def _joined(
    parts: list[Answered], place: Array | None, threads: int, *, fresh: bool = False
) -> Answered:
    """The answers of several parts, one after the other or, with `place`, in the order of their
    keys' places.  `fresh` means that all windows are emitted for the first time."""
    keys = np.concatenate([part.keys for part in parts])
    names = list(parts[0].values)
    order = at = None
    if place is not None:
        order = np.argsort(place[keys], kind="stable")  # merges runs that are in order already
        at, keys = pa.array(order), keys[order]

    def numbers(name: str) -> Array:
        if fresh and name == "reasons":
            return np.broadcast_to(np.int64(NEW), len(keys))
        found: Array = np.concatenate([getattr(part, name) for part in parts])
        return found if order is None or not len(found) else found[order]

    def values(name: str) -> pa.Array:
        found = concat_all([part.values[name] for part in parts])
        return found if at is None else found.take(at)

    work: list[Callable[[], Any]] = [
        *(partial(numbers, name) for name in ("windows", "reasons", "covered")),
        *(partial(values, name) for name in names),
    ]
    # copying alone takes less time than starting threads
    many = 1 if order is None else threads
    windows, reasons, covered, *answers = side_by_side(lambda make: make(), work, many)
    failed: dict[int, str] = {}
    first = 0
    for part in parts:
        failed |= {first + row: why for row, why in part.failed.items()}
        first += len(part.keys)
    if failed and order is not None:
        new = np.empty(len(order), dtype=np.int64)
        new[order] = np.arange(len(order))
        failed = dict(sorted((int(new[row]), why) for row, why in failed.items()))
    gone = np.concatenate([part.gone for part in parts])
    return Answered(
        keys, windows, reasons, covered, dict(zip(names, answers, strict=True)), failed, gone
    )
