"""A stream of the queries of a bundle, which share one copy of the slices; a member of a
`SharedStream`."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..query.query import Query
from ..query.signatures import Mode
from ..state.shared import SharedState, reaches_back
from ..state.shared_tiles import SharedTiles
from ..tables.answers import warn_of
from ..tables.arrow import as_given, as_time, time_text
from ..windows.contract import EVER
from .aligned_stream import AlignedStream
from .asked import asked_range
from .bundle_lifecycle import BundleLifecycle, Outcomes
from .bundle_plans import BundlePlan, plan_bundle, union_query
from .bundles import Bundle, bundled
from .failures import for_query
from .late import LateOutput, late_table
from .lifecycle import Progress, latest
from .pending import Pending
from .results import result_table
from .shared_late import NamedLate, named
from .sizes import reach_of, sizes_of
from .supported import Asked, check

__all__ = ["BundleStream"]


class BundleStream(AlignedStream):
    """A stream of the queries of a bundle.  It reads batches as one query with the aggregates of
    all queries would; `push`, `advance` and `close` return a result for each query."""

    def __init__(
        self,
        bundle: Bundle,
        *,
        late: LateOutput,
        lateness: Any = 0,
        mode: Mode = "final",
        early: bool = False,
        schema: pa.Schema | None = None,
    ) -> None:
        self._bundle = bundle
        for name, query in bundle.queries.items():
            with for_query(name):
                check(self._place, Asked(query, mode=mode, early=early))
        query, _ = union_query(bundle)
        super().__init__(query, lateness=lateness, mode=mode, early=early, schema=schema)
        self._late = late
        self._each = {name: Progress() for name in bundle.queries}
        self._progress = next(iter(self._each.values()))
        self._fingerprint = {}  # the shared stream keeps the fingerprints of its queries

    def _set_up(self, schema: pa.Schema) -> None:
        plan = self._tied(schema)
        stored = self._store is not None
        made = self._made = plan_bundle(self._bundle, schema, stored=stored)
        for one in made.plans.values():
            check(self._place, Asked(one.query, one, self._mode, self._early))
        self._whole_schema = schema
        self._shared = self._shared_state(made)
        self._lives = BundleLifecycle(
            made, mode=self._mode, lateness=self._lateness, early=self._early
        )
        only_time = self._only_time is not None
        self._pending = None if self._early else Pending.of(plan, self._schema, only_time=only_time)
        self._plan = plan

    def _shared_state(self, made: BundlePlan) -> SharedState:
        if self._store is None:
            sizes = {name: _sizes(made, name) for name in made.plans}
            return SharedState(made.union, made.composite, made.plans, made.columns, sizes)
        state: Any = SharedTiles(
            made.union, made.composite, made.sights(), self._store, self._prefix
        )  # it has no `add`: in a store, no query joins later
        return state  # type: ignore[no-any-return]

    def _move(self, time: int) -> Any:
        if self._plan is not None:
            return self._process(watermark=time, stream_time=time)
        for at in self._each.values():
            at.stream_time, at.watermark = latest(at.stream_time, time), latest(at.watermark, time)
        return None

    def _process(
        self, batch: pa.Table | None = None, refused: dict[int, str] | None = None, **times: Any
    ) -> Any:
        self._spill()
        self._turns.changing = True
        lives = self._lives
        try:
            outcomes = lives.process(self._each, self._shared, batch, refused, **times)
        except BaseException:
            self._turns.changing = not lives.abandoned
            raise
        self._delays = self._delays + next(iter(outcomes.values())).delays
        if self._pending is not None:
            self._pending.low, self._pending.high = lives.quiet(self._each)
        return outcomes

    def _add_late(self, table: pa.Table, outcome: Any) -> None:
        """Keep the late rows of a batch.  Rows that are late alike for several queries are kept
        once."""
        outcomes: Outcomes = outcome
        made: dict[Any, tuple[Any, list[str]]] = {}
        for name, one in outcomes.items():
            if len(one.late.rows):
                query = self._made.plans[name].query
                made.setdefault((query.aligned, reach_of(query)), (one.late, []))[1].append(name)
        for (window, _), (late, names) in made.items():
            rows = late_table(table, late, window, self._made.union.time_type)
            assert isinstance(self._late, NamedLate)
            self._late.into.keep(named(rows, names))

    def _as_pushed(self, outcome: Any) -> Any:
        if self._plan is None:
            return {name: as_given(pa.table({}), self._kind) for name in self._each}
        outcomes: Outcomes = outcome
        tables = {
            name: result_table(self._made.plans[name], one.emitted, one.revisions)
            for name, one in outcomes.items()
        }
        if self._nothing is None:
            empty: Any = {name: table.schema.empty_table() for name, table in tables.items()}
            self._nothing = empty
        made = {name: as_given(table, self._kind) for name, table in tables.items()}
        for one in outcomes.values():
            if one.emitted.failed:
                self._turns.changing = False  # the change is complete; a warning may raise
                warn_of(one.emitted.failed)
        return made

    def counts_of(self, name: str) -> dict[str, int]:
        """The counts of one query; see `Stream.counts`."""
        with self._turns.between():
            at = vars(self._each[name])
            noted = self._pending.count if self._pending is not None else 0
            names = ("rows", "counted", "late", "partly_late", "emitted")
            return {n: at[n] + noted * (n in ("rows", "counted")) for n in names}

    def ask(self, name: str, key: Any, lo: Any, hi: Any) -> dict[str, Any]:
        """The values of a query over the times `[lo, hi)` of one key; see `Stream.query`."""
        with self._turns.between():
            self._settle()
            if self._plan is None:
                raise ValueError("nothing was pushed into this stream yet")
            first, end = asked_range(self._made.plans[name], self._progress.watermark, lo, hi)
            return self._shared.ask(name, key if isinstance(key, tuple) else (key,), first, end)

    def state_size(self) -> dict[str, int]:
        """How many keys and slices the stream holds, and how many bytes they take."""
        with self._turns.between():
            self._settle()
            if self._plan is None:
                return {"keys": 0, "slices": 0, "bytes": 0}
            return self._shared.size()

    def merged(self, query: Query) -> str:
        """Why the slices hold too few edges for a query by now; empty if they do not.  If another
        query has a lifetime, what lies before all other windows is one partial a key."""
        self.settle()
        watermark = self._progress.watermark
        before = None if self._plan is None else self._shared.merged_before()
        if before is None or watermark is None:
            return ""
        window = query.aligned
        sizes = [EVER if size is None else size for size in sizes_of(query)]
        if reaches_back(window, window.first(watermark), sizes) >= before:
            return ""
        edge = np.array([window.clock.time(before)])
        time = time_text(as_time(edge, self._made.union.time_type)[0])
        return f"what lies before {time} is one partial, for a lifetime"

    def settle(self) -> None:
        """Insert the noted events, before the queries change."""
        with self._turns.between():
            self._settle()
            self._turns.changing = False

    def joined(self, name: str, query: Query) -> tuple[Bundle, BundlePlan | None]:
        """The bundle with one query more, and its plan if the stream has one; changes nothing."""
        joined = bundled({**self._bundle.queries, name: query})
        check(self._place, Asked(query, mode=self._mode, early=self._early))
        if self._plan is None:
            return joined, None
        made = plan_bundle(joined, self._whole_schema)
        check(self._place, Asked(query, made.plans[name], self._mode, self._early))
        # removed queries still have partials, but no plan any more
        there = {*self._each, name}
        return joined, replace(made, plans={n: p for n, p in made.plans.items() if n in there})

    def add(self, name: str, joined: Bundle, made: BundlePlan | None) -> None:
        """Add a query that shares the slices, from what `joined` returned; see
        `SharedStream.add`."""
        with self._turns.between():
            at = self._progress
            if made is not None:
                self._made = made
                self._shared.add(name, made.plans[name], made.columns[name], _sizes(made, name))
            self._bundle = joined
            self._each[name] = Progress(at.stream_time, at.watermark)
            self._go_on()

    def remove(self, name: str) -> None:
        """Remove a query."""
        with self._turns.between():
            if self._plan is not None:
                plans = {n: plan for n, plan in self._made.plans.items() if n != name}
                self._made = replace(self._made, plans=plans)
                self._shared.remove(name)
            else:
                left = {n: q for n, q in self._bundle.queries.items() if n != name}
                self._bundle = bundled(left)
            del self._each[name]
            self._progress = next(iter(self._each.values()))
            self._go_on()

    def _go_on(self) -> None:
        """Continue with other queries than before.  The next batch goes through the lifecycle, and
        from its result the stream takes a new empty result."""
        self._nothing = None
        if self._plan is None:
            self._query, _ = union_query(self._bundle)
            return
        self._lives = BundleLifecycle(
            self._made, mode=self._mode, lateness=self._lateness, early=self._early
        )
        if self._pending is not None:
            self._pending.note_nothing()

    @property
    def bundle(self) -> Bundle:
        """The queries whose partials the state keeps, removed queries included."""
        return self._bundle

    def _dump_state(self) -> list[bytes]:
        each = {name: asdict(at) for name, at in self._each.items()}
        return [json.dumps(each).encode(), *self._shared.dump()]

    def _load_state(self, blobs: list[bytes]) -> None:
        for name, at in json.loads(blobs[0]).items():
            vars(self._each[name]).update(at)
        self._shared.load(blobs[1:])

    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
        if self._plan is not None:
            self._shared._check()


def _sizes(made: BundlePlan, name: str) -> list[tuple[int, tuple[str, ...]]]:
    """The sizes of a query's aggregates other than its window's, and the columns of each."""
    return [(EVER if s.size is None else s.size, s.columns) for s in made.sizes[name]]
