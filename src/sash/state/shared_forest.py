"""The slices of all keys in memory, for one group of the aggregates of several queries: a forest
that answers the windows of all of them, as seen from Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..kernels.core import ObjectCore
from ..kernels.program import Kernel
from ..query.plan import Group
from ..slicing.slices import specify
from ..windows import Aligned
from .answers import answers_and_reasons
from .contract import Step
from .forest import _FAR, Forest
from .forest_fields import AT, BEGUN, GONE, MADE, ROWS, VISIT, WANTED, WITH_AGAIN, WITH_EARLY
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

__all__ = ["AnsweredAll", "Asks", "SharedForest"]

_UNBOUNDED = 2**62


@dataclass(frozen=True)
class Asks:
    """What a step asks of a forest for each query, as its kernel reads it.

    Queries that have windows due come first: `queries` has the places, in the order of the kernel,
    among those that were given.  A size of 2^61 is all since the beginning.
    """

    queries: Array
    fields: Array  # a row for each query
    by_end: Array  # the queries by when their first window ends that is not due
    sizes: Array  # further sizes of all queries
    call: dict[int, int]  # fields of the call

    @classmethod
    def of(
        cls, windows: Sequence[Aligned], steps: Sequence[Step], sizes: Sequence[Sequence[int]]
    ) -> Asks:
        """What the queries ask: their windows, what is due of each, and their further sizes."""
        count = len(windows)
        queries = np.array(sorted(range(count), key=lambda i: steps[i].due <= steps[i].fresh))
        fields = np.zeros((count, ASK), dtype=np.int64)
        spans = np.zeros((count, 4), dtype=np.int64)
        more: list[int] = []
        for row, i in enumerate(queries.tolist()):
            window, step, cycle = windows[i], steps[i], windows[i].cycle
            low, high = window.first(-_FAR), window.first(_FAR)
            opened, fresh, due, keep = (
                min(max(n, low), high) for n in (step.opened, step.fresh, step.due, step.keep)
            )
            specify(fields[row], window, 0)
            asked = fields[row]
            asked[OPENED_OF], asked[FRESH_OF], asked[DUE_OF] = opened, fresh, due
            # a window with the slices of the one before may differ from it in a longer size
            asked[CHANGES_OF] = step.changes and not sizes[i]
            asked[START_DUE], asked[END_DUE] = cycle.start(due), cycle.end(due)
            asked[MORE_FIRST], asked[MORE_MANY] = len(more), len(sizes[i])
            more += sizes[i]
            own = cycle.end(keep) - cycle.start(keep)
            far = max([own, *(size for size in sizes[i] if size < _FAR)])
            asked[REACH] = max([own, *sizes[i]]) if sizes[i] else 0
            spans[row] = (
                cycle.end(due - 1),
                cycle.end(keep) - far,
                cycle.end(fresh - 1),
                cycle.end(fresh) if due > fresh else _UNBOUNDED,
            )
        call = {
            LIMIT: int(spans[:, 0].max()),
            EDGE: int(spans[:, 1].min()),
            AGAIN_EDGE: int(spans[:, 2].max()),
            UNDUE: int(spans[:, 3].min()),
            ACTIVE: sum(step.due > step.fresh for step in steps),
            QUERIES: count,
            WITH_AGAIN: int(steps[0].again),
            WITH_EARLY: int(steps[0].early),
            AS_ONE: int(any(size >= _FAR for size in more)),
        }
        by_end = np.argsort(fields[:, END_DUE], kind="stable")
        return cls(queries, fields, by_end, np.array(more, dtype=np.int64), call)

    def visits_all(self) -> bool:
        """True if keys without new slices may have something to emit."""
        return bool(self.call[ACTIVE] or self.call[WITH_EARLY])


@dataclass
class AnsweredAll:
    """Windows that a step answered, of all queries: the key, the query, the window, by number, why
    it is emitted, and the last window that has the same slices (where only changes are wanted);
    the answers by name, and why some do not exist, by row and name; the numbers of keys that hold
    nothing any more."""

    keys: Array
    owners: Array
    windows: Array
    reasons: Array
    covered: Array
    values: dict[str, pa.Array]
    failed: dict[int, dict[str, str]]
    gone: Array


class SharedForest(Forest):
    """The slices of all keys for one group of the aggregates of several queries."""

    _fields: ClassVar[int] = SHARED_CALL
    _columns: ClassVar[tuple[str, ...]] = ("keys", "owners", "windows", "reasons", "covered")

    def __init__(self, group: Group, window: Aligned, types: dict[str, Any]) -> None:
        super().__init__(group, window, types)
        self._any_window = window

    def _kernel_of(self, arity: int) -> Kernel:
        return shared_kernel(arity)

    def step_all(
        self, asks: Asks, visits: Array, bounds: Array, starts: Array, partials: Any
    ) -> AnsweredAll:
        """Insert slices, answer the windows of all queries, evict.  The keys to visit have numbers;
        the slices of the key visits[v] are those from bounds[v] to bounds[v + 1]."""
        core, call = self._core, self._call
        for field, value in asks.call.items():
            call[field] = value
        call[VISIT] = call[BEGUN] = call[MADE] = call[GONE] = call[WANTED] = 0
        call[MORE] = call[MORE_END] = 0
        call[AT] = -1
        given = (asks.fields.reshape(-1).copy(), asks.by_end, asks.sizes, visits, bounds, starts)
        kept = [core.integers(np.ascontiguousarray(a, dtype=np.int64)) for a in given]
        held = self._to_insert(partials)
        held, at_partials = (held, held) if isinstance(core, ObjectCore) else core.integers(held)
        gone, at_gone = core.integers(np.empty(len(visits), dtype=np.int64))
        out = self._out
        out.begin(self._rows, changes=bool(asks.fields[:, CHANGES_OF].any()))

        def run() -> int:
            if call[MADE] + call[WANTED] >= out.rows:
                out.grow(max(2 * out.rows, int(call[MADE] + 2 * call[WANTED])))
                call[WANTED] = 0
            call[ROWS] = out.rows
            at = [handle for _, handle in kept]
            done: int = core.run.step_all(
                core.m,
                self._at_call,
                self._at_records,
                *at[:3],
                at[3],
                len(visits),
                *at[4:],
                at_partials,
                *out.handles,
                at_gone,
            )
            return done

        apart = self._completed(run, visits)
        del held  # the kernel needs it no more
        made = int(call[MADE])
        self._rows = made + made // 4
        if isinstance(out.kept, list):  # rows without an owner have no answer either
            nothing = (None,) * len(self.group.names)
            out.kept[:made] = [nothing if row is None else row for row in out.kept[:made]]
        given_out = core, self.group, self._types, out.kept, made, apart, self.sources
        values, failed = answers_and_reasons(*given_out)
        out.end()
        self.let_go()
        left = np.asarray(gone[: int(call[GONE])], dtype=np.int64)
        return AnsweredAll(**out.read(made), values=values, failed=failed, gone=left)

    def _plant(self, visits: Array, bounds: Array, starts: Array, partials: Any) -> None:
        low = self._windows[0]
        nothing = Step(opened=low, fresh=low, due=low, keep=low)
        asks = Asks.of([self._any_window], [nothing], [()])
        self.step_all(asks, visits, bounds, starts, partials)
