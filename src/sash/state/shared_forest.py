"""The slices of all keys in memory, for one group of the aggregates of several queries: the Python
side of a forest that answers the windows of all queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..aggregators.forest import RECORD, UNBOUNDED
from ..kernels.columns import Array
from ..kernels.core import BufferCore, ObjectCore
from ..kernels.program import Kernel
from ..kernels.threads import side_by_side
from ..query.plan import Group
from ..slicing.cycles import Cycles
from ..slicing.slices import specify
from ..windows import Aligned
from .answers import answers_and_reasons
from .contract import Slices, Step
from .forest import _FAR, CombineRaised, Forest, memories_of
from .forest_fields import (
    AT,
    BEGUN,
    EXPIRES,
    GONE,
    MADE,
    NEXT,
    PART,
    ROWS,
    VISIT,
    WANTED,
    WITH_AGAIN,
    WITH_EARLY,
)
from .parted_forest import PartedForest, none_raised
from .pyramid import Ask
from .scan import partials_handle
from .shared_answers import AnsweredAll, joined_all
from .shared_fields import (
    ACTIVE,
    AGAIN_EDGE,
    AS_ONE,
    ASK,
    CHANGES_OF,
    DUE_OF,
    EDGE,
    END_DUE,
    FRESH_OF,
    LIMIT,
    MORE,
    MORE_END,
    MORE_FIRST,
    MORE_MANY,
    OPENED_OF,
    QUERIES,
    REACH,
    SHARED_CALL,
    START_DUE,
    UNDUE,
)
from .shared_kernel import shared_kernel

__all__ = ["Asks", "Queries", "SharedForest"]

_UNBOUNDED = 2**62


class Queries:
    """What the queries of a forest ask in every step: their windows, and other sizes."""

    def __init__(self, windows: Sequence[Aligned], sizes: Sequence[Sequence[int]]) -> None:
        self.cycles = Cycles([window.cycle for window in windows])
        self.sizes = sizes
        #: The numbers of all windows lie between these.
        self.low, self.high = np.array([(w.first(-_FAR), w.first(_FAR)) for w in windows]).T
        self.fields = np.zeros((len(windows), ASK), dtype=np.int64)
        for fields, window, more in zip(self.fields, windows, sizes, strict=True):
            specify(fields, window, 0)
            fields[MORE_MANY] = len(more)
        #: The longest of the other sizes, and the longest that is not a lifetime.
        self.far = np.array([max(more, default=0) for more in sizes], dtype=np.int64)
        finite = [[size for size in more if size < _FAR] for more in sizes]
        self.far_ago = np.array([max(more, default=0) for more in finite], dtype=np.int64)


@dataclass(frozen=True)
class Asks:
    """What a step asks of a forest for each query, in the form that the kernel reads.

    Queries with due windows come first: for each query in the kernel's order, `queries` has its
    place in the caller's order.  A size of 2^61 means all since the beginning.
    """

    queries: Array
    fields: Array  # a row for each query
    by_end: Array  # the queries, in order of the end of the first window that is not due
    sizes: Array  # other sizes of all queries
    call: dict[int, int]  # fields of the call

    @classmethod
    def of(cls, queries: Queries, steps: Sequence[Step]) -> Asks:
        """The asks of queries, from a step for each query."""
        cycles, sizes = queries.cycles, queries.sizes
        given = np.array([(s.opened, s.fresh, s.due, s.keep) for s in steps], dtype=np.int64)
        active = given[:, 2] > given[:, 1]
        opened, fresh, due, keep = np.clip(given.T, queries.low, queries.high)
        ends = cycles.end(due)
        own = cycles.end(keep) - cycles.start(keep)
        fields = queries.fields.copy()
        fields[:, OPENED_OF], fields[:, FRESH_OF], fields[:, DUE_OF] = opened, fresh, due
        # a window with the same slices as the window before may differ from it in a longer size
        fields[:, CHANGES_OF] = [
            s.changes and not more for s, more in zip(steps, sizes, strict=True)
        ]
        fields[:, START_DUE], fields[:, END_DUE] = cycles.start(due), ends
        fields[:, REACH] = np.where(queries.far > 0, np.maximum(own, queries.far), 0)
        order = np.argsort(~active, kind="stable")
        fields = fields[order]
        fields[:, MORE_FIRST] = np.cumsum(fields[:, MORE_MANY]) - fields[:, MORE_MANY]
        more = [size for q in order.tolist() for size in sizes[q]]
        call = {
            LIMIT: int(cycles.end(due - 1).max()),
            EDGE: int((cycles.end(keep) - np.maximum(own, queries.far_ago)).min()),
            AGAIN_EDGE: int(cycles.end(fresh - 1).max()),
            UNDUE: int(cycles.end(fresh)[active].min(initial=_UNBOUNDED)),
            ACTIVE: int(active.sum()),
            QUERIES: len(steps),
            WITH_AGAIN: int(steps[0].again),
            WITH_EARLY: int(steps[0].early),
            AS_ONE: int(any(size >= _FAR for size in more)),
        }
        by_end = np.argsort(fields[:, END_DUE], kind="stable")
        return cls(order, fields, by_end, np.array(more, dtype=np.int64), call)

    def only_inserting(self) -> Asks:
        """The same asks for a call that only inserts: nothing is due, and nothing is evicted."""
        nothing = {ACTIVE: 0, UNDUE: _UNBOUNDED, LIMIT: -_FAR, EDGE: -_FAR}
        return replace(self, call=self.call | nothing)

    def only_forgetting(self) -> Asks:
        """The same asks for a call that only evicts: the due windows are already answered."""
        return replace(self, call=self.call | {ACTIVE: 0, UNDUE: _UNBOUNDED})

    def visits_all(self) -> bool:
        """True if keys without new slices may have windows to emit."""
        return bool(self.call[ACTIVE] or self.call[WITH_EARLY])


class SharedForest(PartedForest):
    """The slices of all keys for one group of the aggregates of several queries."""

    _fields: ClassVar[int] = SHARED_CALL
    _columns: ClassVar[tuple[str, ...]] = ("keys", "owners", "windows", "reasons", "covered")

    def __init__(self, group: Group, window: Aligned, types: dict[str, Any]) -> None:
        super().__init__(group, window, types)
        self._new = lambda: SharedForest(group, window, types)
        self._any_window = window

    def _kernel_of(self, arity: int) -> Kernel:
        return shared_kernel(arity)

    def step_all(
        self,
        asks: Asks,
        visits: Array,
        bounds: Array,
        starts: Array,
        partials: Any,
        threads: int = 1,
    ) -> AnsweredAll:
        """Insert slices, answer the windows of all queries, evict.  `visits` has the numbers of the
        keys to visit; the slices of key visits[v] are those from bounds[v] up to bounds[v + 1]."""
        inserted, parts, spans = self._to_insert(partials), self._parts, (bounds[:-1], bounds[1:])
        if self.divisible:
            self._deal(visits, spans)
        if threads == 1 or len(parts) == 1:
            found = self._step_all(asks, visits, spans, starts, inserted, parts)
            self.answered = len(found.keys)
            self.let_go()
            return found
        of = self._records[RECORD * visits + PART]

        def run(part: Forest) -> AnsweredAll | CombineRaised:
            at = np.flatnonzero(of == part.part)
            own = spans[0][at], spans[1][at]
            assert isinstance(part, SharedForest)
            try:
                return part._step_all(asks, visits[at], own, starts, inserted, [part])
            except CombineRaised as error:
                return error

        made = none_raised(side_by_side(run, parts, threads), visits)
        self.answered = sum(len(one.keys) for one in made)
        self.let_go()
        place = np.empty(len(self._records) // RECORD, dtype=np.int32)
        place[visits] = np.arange(len(visits))
        return joined_all(made, place, len(asks.queries))

    def _step_all(
        self,
        asks: Asks,
        visits: Array,
        spans: tuple[Array, Array],
        starts: Array,
        inserted: Any,
        parts: Sequence[Forest],
    ) -> AnsweredAll:
        """The same for keys whose trees are in the memories of some parts."""
        core, call = self._core, self._call
        for field, value in asks.call.items():
            call[field] = value
        call[VISIT] = call[BEGUN] = call[MADE] = call[GONE] = call[WANTED] = 0
        call[MORE] = call[MORE_END] = 0
        call[AT] = -1
        given = (asks.fields.reshape(-1).copy(), asks.by_end, asks.sizes, visits, *spans, starts)
        kept = [core.integers(np.ascontiguousarray(a, dtype=np.int64)) for a in given]
        held = at_partials = inserted
        if isinstance(core, BufferCore):
            held, at_partials = core.integers(inserted)
        gone, at_gone = core.integers(np.empty(len(visits), dtype=np.int64))
        out = self._out
        out.begin(self._rows, changes=bool(asks.fields[:, CHANGES_OF].any()))

        def run() -> int:
            if call[MADE] + call[WANTED] >= out.rows:
                out.grow(max(2 * out.rows, int(call[MADE] + 2 * call[WANTED])))
                call[WANTED] = 0
            call[ROWS] = out.rows
            at = [handle for _, handle in kept]
            memories, at_memories = memories_of(parts)
            asked = at_memories, *at[:3]
            changed = at[3], len(visits), *at[4:], at_partials
            done: int = core.run.step_all(
                core.m, self._at_call, self._at_records, *asked, *changed, *out.handles, at_gone
            )
            del memories
            return done

        apart = self._completed(run, visits, parts)
        del held  # the kernel needs it no more
        made = int(call[MADE])
        self._rows = made + made // 4
        if isinstance(out.kept, list):  # rows without an owner have no answers
            nothing = (None,) * len(self.group.names)
            out.kept[:made] = [nothing if row is None else row for row in out.kept[:made]]
        given_out = core, self.group, self._types, out.kept, made, apart, self.sources
        values, failed = answers_and_reasons(*given_out)
        out.end()
        left = np.asarray(gone[: int(call[GONE])], dtype=np.int64)
        return AnsweredAll(**out.read(made), values=values, failed=failed, gone=left)

    def laid_out(self, visits: Array, low: int) -> Slices:
        """The slices of some keys from time `low` on, in order."""
        core, count = self._core, len(visits)
        counts = np.asarray(self._records, dtype=np.int64)[3::RECORD][visits]
        most = int(counts.sum())
        keys, at_keys = core.integers(visits)
        bounds, at_bounds = core.integers(np.zeros(count + 1, dtype=np.int64))
        starts, at_starts = core.integers(np.empty(most, dtype=np.int64))
        objects = isinstance(core, ObjectCore)
        words: Any = [None] * most if objects else np.empty((most, core.width), dtype=np.int64)
        held, at = partials_handle(core, words)
        memories, at_memories = memories_of(self._parts)
        of = core.m, self._at_records, at_memories, at_keys, count
        core.run.lay_out(*of, low, at_bounds, at_starts, at)
        del held, keys, memories
        made = int(bounds[count])
        return Slices([], np.asarray(bounds), np.asarray(starts[:made]), [words[:made]])

    def oldest(self, visits: Array) -> int:
        """The start of the oldest slice of these keys; UNBOUNDED if they have none."""
        return int(self._noted(visits, EXPIRES).min(initial=UNBOUNDED))

    def visit_again(self, visits: Array) -> None:
        """Make the next step visit these keys, even if nothing is due for them."""
        for number in visits.tolist():
            self._records[RECORD * number + NEXT] = -UNBOUNDED

    def for_pyramid(self) -> Ask:
        """What a query asks of a pyramid."""
        return Ask(self.group, self._any_window, False, self._types, self.sources)

    def _plant(self, visits: Array, bounds: Array, starts: Array, partials: Any) -> None:
        low = self._windows[0]
        nothing = Step(opened=low, fresh=low, due=low, keep=low)
        asks = Asks.of(Queries([self._any_window], [()]), [nothing])
        self.step_all(asks, visits, bounds, starts, partials)
