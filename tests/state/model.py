"""The contract of states by brute force: what `TileState` and others are judged by.

Events are kept as they came.  A window's answers are computed from its events each time it is
emitted, by the operators' plain functions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from sash.kernels.columns import Array
from sash.query.plan import Plan
from sash.state.contract import AGAIN, EARLY, NEW, Emitted, Recalled, Slices, State, Step
from sash.tables.keys import by_group, key_codes
from sash.testing.queries import _tie, fold, rows_of

Row = dict[str, Any]
Key = tuple[Any, ...]


def name_of(columns: list[pa.Array], at: int) -> Key:
    """A key as something that a dict can have."""
    return tuple(_hashable(column[at].as_py()) for column in columns)


def _hashable(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return repr(value) if isinstance(value, list | dict) else value


class ModelState(State):
    """All events of each key, in order of time and tie."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._window = plan.query.window
        self._events: dict[Key, list[tuple[int, Any, int, Row]]] = {}
        self._columns = [pa.array([], type=key.type) for key in plan.keys]
        self._revisions: dict[tuple[Key, int], int] = {}
        self._remembered: dict[Key, tuple[int, dict[str, pa.Array]]] = {}
        self._arrived = 0

    def cut(self, table: pa.Table, times: Array) -> Slices:
        query = self._plan.query
        codes, keys = key_codes([table.column(c).combine_chunks() for c in query.by], len(times))
        rows, bounds = by_group(
            codes, len(keys[0]) if keys else 1, np.argsort(times, kind="stable")
        )
        events = rows_of(table)
        return Slices(keys, bounds, times[rows], [[events[i] for i in rows.tolist()]])

    def step(self, slices: Slices | None, step: Step) -> Emitted:
        self._close(step.opened)
        old = self._arrived
        # the times of each key's new events
        new = {} if slices is None else self._insert(slices)
        _, self._columns = key_codes(self._columns, len(self._columns[0]) if self._columns else 1)
        names = self._names()
        codes, windows, reasons = [], [], []
        made: list[Row] = []
        for code, name in enumerate(names):
            events = sorted(self._events.get(name, []), key=lambda e: e[:3])
            for number in self._wanted(events, new.get(name, []), step):
                held = [e for e in events if self._holds(number, e[0])]
                codes.append(code)
                windows.append(number)
                late = number < step.fresh and any(e[2] <= old for e in held)
                reasons.append(EARLY if number == step.due else AGAIN if late else NEW)
                select = self._plan.query.select
                made.append({n: fold(a, [e[3] for e in held]) for n, a in select.items()})
        self._forget(step)
        values = {
            name: pa.array([row[name] for row in made], type=kind)
            for name, kind in self._plan.types.items()
        }
        return Emitted(
            self._columns,
            np.array(codes, dtype=np.int64),
            np.array(windows, dtype=np.int64),
            np.array(reasons, dtype=np.int64),
            values,
            {},
            np.array(windows, dtype=np.int64) if step.changes else None,
        )

    def _names(self) -> list[Key]:
        if not self._columns:
            return [()]
        return [name_of(self._columns, i) for i in range(len(self._columns[0]))]

    def _insert(self, slices: Slices) -> dict[Key, list[int]]:
        query, new = self._plan.query, {}
        for i in range(len(slices.bounds) - 1):
            name = name_of(slices.keys, i)
            start, end = int(slices.bounds[i]), int(slices.bounds[i + 1])
            new[name] = slices.starts[start:end].tolist()
            kept = self._events.setdefault(name, [])
            for time, row in zip(new[name], slices.partials[0][start:end], strict=True):
                self._arrived += 1
                tie = () if query.tie is None else _tie(row[query.tie])
                kept.append((time, tie, self._arrived, row))
        self._columns = [
            pa.concat_arrays([a, b.cast(a.type)])
            for a, b in zip(self._columns, slices.keys, strict=True)
        ]
        return new

    def _holds(self, number: int, time: int) -> bool:
        return self._window.start(number) <= time < self._window.end(number)

    def _numbers(self, time: int) -> range:
        return range(self._window.first(time), self._window.last(time) + 1)

    def _wanted(self, events: list[Any], new: list[int], step: Step) -> list[int]:
        due = step.due + step.early
        wanted = {n for e in events for n in self._numbers(e[0]) if step.fresh <= n < due}
        if step.again:
            wanted |= {n for t in new for n in self._numbers(t) if step.opened <= n < step.fresh}
        return sorted(wanted)

    def _forget(self, step: Step) -> None:
        """Drop what only windows before `keep` hold."""
        for name, events in list(self._events.items()):
            kept = [e for e in events if self._window.last(e[0]) >= step.keep]
            self._events[name] = kept
            if not kept:
                del self._events[name]

    def _close(self, opened: int) -> None:
        """Drop counts of closed windows, and values that no open window is compared with."""
        self._revisions = {at: n for at, n in self._revisions.items() if at[1] >= opened}
        self._remembered = {
            name: kept for name, kept in self._remembered.items() if kept[0] + 1 >= opened
        }

    def commit(self) -> None:
        """The model keeps no batch apart."""

    def abandon(self) -> None:
        """The model keeps no batch apart."""

    def revise(self, emitted: Emitted, rows: Array, last: Array) -> Array:
        made = []
        for row, before in zip(rows.tolist(), last.tolist(), strict=True):
            at = (name_of(emitted.keys, emitted.codes[row]), int(emitted.windows[row]))
            self._revisions[at] = self._revisions.get(at, before) + 1
            made.append(self._revisions[at])
        return np.array(made, dtype=np.int64)

    def recall(self, emitted: Emitted, codes: Array) -> Recalled:
        found = [self._remembered.get(name_of(emitted.keys, c)) for c in codes.tolist()]
        some = [f for f in found if f is not None]
        values = {
            n: pa.concat_arrays([f[1][n] for f in some]) if some else pa.nulls(0)
            for n in self._plan.query.select
        }
        covered = np.array([0 if f is None else f[0] for f in found], dtype=np.int64)
        return Recalled(np.array([f is not None for f in found], dtype=bool), covered, values)

    def remember(
        self, emitted: Emitted, codes: Array, covered: Array, values: dict[str, pa.Array]
    ) -> None:
        for i, code in enumerate(codes.tolist()):
            one = {name: column.slice(i, 1) for name, column in values.items()}
            self._remembered[name_of(emitted.keys, code)] = (int(covered[i]), one)

    def size(self) -> dict[str, int]:
        return {"keys": len(self._events), "slices": sum(map(len, self._events.values()))}

    def _check(self) -> None:
        pass
