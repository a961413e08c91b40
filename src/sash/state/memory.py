"""A state in memory: a forest for each group of aggregates, over the same numbered keys.

What is remembered of emitted windows (revisions, last values) goes by the numbers of keys too.  An
`Emitted` names keys by these numbers, so it can be used until the next step.  Forests keep slices
by what the window's clock shows (`windows.contract.Clock`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..tables.answers import concat_answers
from ..tables.arrow import from_ipc, one_array, to_ipc
from ..tables.keys import by_group, key_codes
from ..tables.order import in_time, nanoseconds
from .answers import joined_reasons
from .contract import Emitted, Recalled, Slices, State, Step
from .grove import Grove

__all__ = ["ForestState"]

_NONE = np.zeros(0, dtype=np.int64)


@dataclass
class _Values:
    """The last emitted values of some keys, in order of their numbers, and the last window that
    each row covers."""

    keys: Array
    covered: Array
    values: dict[str, pa.Array]

    def take(self, rows: Array) -> _Values:
        """Some of the rows."""
        at = pa.array(rows)
        values = {name: column.take(at) for name, column in self.values.items()}
        return _Values(self.keys[rows], self.covered[rows], values)

    def join(self, more: _Values) -> _Values:
        """These rows and those of other keys."""
        both = _Values(
            np.concatenate([self.keys, more.keys]),
            np.concatenate([self.covered, more.covered]),
            {
                name: concat_answers(column, more.values[name])
                for name, column in self.values.items()
            },
        )
        return both.take(np.argsort(both.keys))


class ForestState(State):
    """The slices of all keys in memory.

    A step changes it at once.  So if a batch that was begun is abandoned, further ones are refused.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._clock = plan.query.aligned.clock
        self._grove = Grove(plan, plan.query.aligned)
        self._revisions: dict[int, dict[int, int]] = {}  # by window, then by key
        self._last = _Values(_NONE, _NONE, self._no_last())
        self._idle = _NONE  # keys that hold nothing, and may be remembered
        self._keep: int | None = None  # windows before it are closed
        self._changed = False  # since the last commit
        self.broken = False

    def cut(self, table: pa.Table, times: Array) -> Slices:
        """Cut rows into slices; changes nothing."""
        names = [field.name for field in self._plan.keys]
        codes, keys = key_codes([one_array(table.column(name)) for name in names], len(times))
        finer = nanoseconds(one_array(table.column(self._plan.query.time)), times)
        rows, bounds = by_group(codes, len(keys[0]) if keys else 1, in_time(times, finer))
        shown, whole = self._clock.reading(times[rows]), not self._plan.ordered
        cuts = [f.cut(table, rows, shown, bounds, whole=whole) for f in self._grove.forests]
        starts, _, ends = cuts[0]
        return Slices(keys, ends, self._clock.time(starts), [partials for _, partials, _ in cuts])

    def step(self, slices: Slices | None, step: Step) -> Emitted:
        """Insert slices, emit windows, forget what no open window holds.

        A row's `covered` may lie behind the windows that are due: those up to it are not emitted
        later, unless a slice comes into them.
        """
        self._check_sound()
        self._changed = True
        self._settle()
        visits, bounds, starts = _NONE, np.zeros(1, dtype=np.int64), _NONE
        partials: list[Any] = [_NONE] * len(self._grove.forests)
        if slices is not None and len(slices.starts):
            bounds, partials = slices.bounds, slices.partials
            starts = self._clock.reading(slices.starts)
            visits = self._grove.keys.add(slices.keys, len(bounds) - 1)
        self._grove.make_room()
        if step.early or step.keep > step.opened or step.due > step.fresh:
            # any key may have something to emit or to forget
            bounds = self._grove.spread(visits, np.diff(bounds))
            visits = self._grove.keys.in_order()
        answered = []
        for forest, part in zip(self._grove.forests, partials, strict=True):
            with self._grove.naming(forest):
                answered.append(forest.step(step, visits, bounds, starts, part))
        self._keep = step.keep
        if self._plan.query.aligned.empty:
            self._idle = np.union1d(self._idle, answered[0].gone)
        else:
            self._grove.keys.remove(answered[0].gone)
        first = answered[0]
        return Emitted(
            keys=self._grove.keys.columns,
            codes=first.keys,
            windows=first.windows,
            reasons=first.reasons,
            values={name: v for a in answered for name, v in a.values.items()},
            failed=joined_reasons(*(a.failed for a in answered)),
            covered=first.covered if step.changes else None,
        )

    def _no_last(self) -> dict[str, pa.Array]:
        """What is remembered of no keys: their last values, or where empty windows are wanted the
        numbers of their last windows."""
        if self._plan.query.aligned.empty:
            return {"last": pa.array([], pa.int64())}
        return self._grove.no_values

    def _release(self) -> None:
        """Let keys leave that hold nothing and are not remembered."""
        last, keep = self._last, self._keep
        if not len(self._idle) or keep is None:
            return
        remembered = last.keys[last.covered + 1 >= keep]
        waiting = self._idle[~self._grove.holds(self._idle)]
        gone = np.setdiff1d(waiting, remembered)
        self._idle = np.setdiff1d(waiting, gone)
        self._grove.keys.remove(gone)

    def _settle(self) -> None:
        """Forget what is remembered of closed windows and of keys that left, and number the others
        anew if many left."""
        self._release()
        keys, last = self._grove.keys, self._last
        if self._keep is not None:
            for window in [w for w in self._revisions if w < self._keep]:
                del self._revisions[window]
            if len(last.keys):
                alive = (last.covered + 1 >= self._keep) & keys.there(last.keys)
                if not alive.all():
                    self._last = last = last.take(np.flatnonzero(alive))
        kept = self._grove.compact()
        if kept is None:
            return
        last.keys = np.searchsorted(kept, last.keys)
        self._idle = np.searchsorted(kept, self._idle)
        new = {old: i for i, old in enumerate(kept.tolist())}
        self._revisions = {
            window: {new[k]: revision for k, revision in of.items() if k in new}
            for window, of in self._revisions.items()
        }

    def revise(self, emitted: Emitted, rows: Array, last: Array) -> Array:
        """Count a revision of the windows in some rows, and return its number."""
        made = np.empty(len(rows), dtype=np.int64)
        given = (emitted.windows[rows], emitted.codes[rows], last)
        for i, (window, key, before) in enumerate(zip(*(a.tolist() for a in given), strict=True)):
            of = self._revisions.setdefault(window, {})
            made[i] = of[key] = of.get(key, before) + 1
        return made

    def recall(self, emitted: Emitted, codes: Array) -> Recalled:
        """What is remembered of some keys; `covered` is 0 where there is nothing."""
        last = self._last
        place = np.searchsorted(last.keys, codes)
        place[place == len(last.keys)] = 0
        there = last.keys[place] == codes if len(last.keys) else np.zeros(len(codes), dtype=bool)
        rows = place[there]
        covered = np.zeros(len(codes), dtype=np.int64)
        covered[there] = last.covered[rows]
        return Recalled(there, covered, last.take(rows).values)

    def remember(
        self, emitted: Emitted, codes: Array, covered: Array, values: dict[str, pa.Array]
    ) -> None:
        """Remember the last emitted values of some keys, instead of what was remembered."""
        old = self._last
        others = np.flatnonzero(~np.isin(old.keys, codes))
        self._last = old.take(others).join(_Values(codes, covered, values))

    def _check_sound(self) -> None:
        if self.broken:
            raise RuntimeError(
                "an error stopped this stream in the middle of a batch, and its state is not sound "
                "any more: make a new stream, or restore one from its bytes"
            )

    def commit(self) -> None:
        """Make the changes since the last commit final."""
        self._release()
        self._changed = False

    def abandon(self) -> None:
        """Refuse further use, if anything changed since the last commit."""
        self.broken |= self._changed

    def ask(self, key: tuple[Any, ...], lo: int, hi: int) -> dict[str, Any]:
        """The values of one key over the times from `lo` up to but not including `hi`."""
        self._check_sound()
        number = self._grove.keys.number(key)
        made: dict[str, Any] = {}
        lo, hi = self._clock.reading(lo), self._clock.reading(hi)
        for forest in self._grove.forests:
            made |= forest.ask(number, lo, hi - 1)
        return {name: made[name] for name in self._plan.query.select}

    def no_values(self) -> dict[str, pa.Array]:
        """Values of a result without rows."""
        return self._grove.no_values

    def size(self) -> dict[str, int]:
        """How many keys and slices there are, and how many bytes they take."""
        return self._grove.size()

    def dump(self) -> list[bytes]:
        """The whole state as bytes."""
        self._check_sound()
        self.broken = True  # unless it ends
        self._settle()
        self.broken = False
        revisions = [[w, k, r] for w, of in self._revisions.items() for k, r in of.items()]
        head = {
            "forests": self._grove.describe(),
            "keep": self._keep,
            "revisions": revisions,
        }
        last = {"key": self._last.keys, "covered": self._last.covered}
        last |= {f"value {name}": column for name, column in self._last.values.items()}
        keys, *forests = self._grove.dump()
        return [json.dumps(head).encode(), keys, to_ipc(pa.table(last)), *forests]

    def load(self, blobs: list[bytes]) -> None:
        """Take back what `dump` gave, into a state that is empty."""
        head, keys, last, *forests = blobs
        saved = json.loads(head)
        self._grove.check_same(saved["forests"])
        self._keep = saved["keep"]
        for window, key, revision in saved["revisions"]:
            self._revisions.setdefault(window, {})[key] = revision
        numbers, covered, *values = from_ipc(last).columns
        names = [name.removeprefix("value ") for name in from_ipc(last).column_names[2:]]
        self._last = _Values(
            np.array(numbers),
            np.array(covered),
            dict(zip(names, map(one_array, values), strict=True)),
        )
        self._grove.load([keys, *forests])
        if self._plan.query.aligned.empty:
            there = self._grove.keys.in_order()
            self._idle = np.sort(there[~self._grove.holds(there)])

    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
        all_hold = self._plan.query.emit != "changes" and not self._plan.query.aligned.empty
        self._grove._check(all_hold=all_hold)
        assert (np.diff(self._last.keys) > 0).all(), "a key has two last values"
