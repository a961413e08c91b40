"""A state in memory: a forest for each group of aggregates, over the same numbered keys.

What is remembered of emitted windows (revisions, last values) goes by the numbers of keys too.  An
`Emitted` names keys by these numbers, so it can be used until the next step.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..query.types import value_type
from ..tables.answers import concat_answers
from ..tables.arrow import from_ipc, one_array, to_ipc
from ..tables.keys import by_group, key_codes
from ..tables.order import in_time, nanoseconds
from .answers import joined_reasons
from .contract import Emitted, Recalled, Slices, State, Step, StepFailed
from .forest import CombineRaised, Forest
from .key_numbers import KeyNumbers

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
        window = plan.query.aligned
        self._forests = [Forest(group, window, plan.types) for group in plan.groups]
        # an error here says that answers cannot have the types that are wanted
        self._no_values = {n: v for f in self._forests for n, v in f.no_values().items()}
        self._keys = KeyNumbers([value_type(field.type) for field in plan.keys])
        self._revisions: dict[int, dict[int, int]] = {}  # by window, then by key
        self._last = _Values(_NONE, _NONE, self._no_values)
        self._keep: int | None = None  # windows before it are closed
        self._changed = False  # since the last commit
        self.broken = False

    def cut(self, table: pa.Table, times: Array) -> Slices:
        """Cut rows into slices; changes nothing."""
        names = [field.name for field in self._plan.keys]
        codes, keys = key_codes([one_array(table.column(name)) for name in names], len(times))
        finer = nanoseconds(one_array(table.column(self._plan.query.time)), times)
        rows, bounds = by_group(codes, len(keys[0]) if keys else 1, in_time(times, finer))
        in_order, whole = times[rows], not self._plan.ordered
        cuts = [f.cut(table, rows, in_order, bounds, whole=whole) for f in self._forests]
        starts, _, ends = cuts[0]
        return Slices(keys, ends, starts, [partials for _, partials, _ in cuts])

    def step(self, slices: Slices | None, step: Step) -> Emitted:
        """Insert slices, emit windows, forget what no open window holds.

        A row's `covered` may lie behind the windows that are due: those up to it are not emitted
        later, unless a slice comes into them.
        """
        self._check_sound()
        self._changed = True
        self._settle()
        visits, bounds, starts = _NONE, np.zeros(1, dtype=np.int64), _NONE
        partials: list[Any] = [_NONE] * len(self._forests)
        if slices is not None and len(slices.starts):
            bounds, starts, partials = slices.bounds, slices.starts, slices.partials
            visits = self._keys.add(slices.keys, len(bounds) - 1)
        for forest in self._forests:
            forest.make_room(self._keys.most)
        if step.early or step.keep > step.opened or step.due > step.fresh:
            # any key may have something to emit or to forget
            many, places = np.diff(bounds), self._keys.places(visits)
            visits = self._keys.in_order()
            bounds = np.zeros(len(visits) + 1, dtype=np.int64)
            bounds[places + 1] = many
            bounds = np.cumsum(bounds)
        answered = []
        for forest, part in zip(self._forests, partials, strict=True):
            try:
                answered.append(forest.step(step, visits, bounds, starts, part))
            except CombineRaised as at:
                error, names = at.__cause__, forest.group.names
                assert isinstance(error, Exception)
                raise StepFailed(error, names, self._keys.columns, at.key, at.window) from error
        self._keep = step.keep
        self._keys.remove(answered[0].gone)
        first = answered[0]
        return Emitted(
            keys=self._keys.columns,
            codes=first.keys,
            windows=first.windows,
            reasons=first.reasons,
            values={name: v for a in answered for name, v in a.values.items()},
            failed=joined_reasons(*(a.failed for a in answered)),
            covered=first.covered if step.changes else None,
        )

    def _settle(self) -> None:
        """Forget what is remembered of closed windows and of keys that left, and number the others
        anew if many left."""
        keys, last = self._keys, self._last
        if self._keep is not None:
            for window in [w for w in self._revisions if w < self._keep]:
                del self._revisions[window]
            if len(last.keys):
                alive = (last.covered + 1 >= self._keep) & keys.there(last.keys)
                if not alive.all():
                    self._last = last = last.take(np.flatnonzero(alive))
        kept = keys.compact()
        if kept is None:
            return
        for forest in self._forests:
            forest.renumber(kept)
        last.keys = np.searchsorted(kept, last.keys)
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
        self._changed = False

    def abandon(self) -> None:
        """Refuse further use, if anything changed since the last commit."""
        self.broken |= self._changed

    def ask(self, key: tuple[Any, ...], lo: int, hi: int) -> dict[str, Any]:
        """The values of one key over the times from `lo` up to but not including `hi`."""
        self._check_sound()
        number = self._keys.number(key)
        made: dict[str, Any] = {}
        for forest in self._forests:
            made |= forest.ask(number, lo, hi - 1)
        return {name: made[name] for name in self._plan.query.select}

    def no_values(self) -> dict[str, pa.Array]:
        """Values of a result without rows."""
        return self._no_values

    def size(self) -> dict[str, int]:
        """How many keys and slices there are, and how many bytes they take."""
        return {
            "keys": len(self._keys),
            "slices": sum(f.slices() for f in self._forests),
            "bytes": sum(f.size() for f in self._forests),
        }

    def dump(self) -> list[bytes]:
        """The whole state as bytes."""
        self._check_sound()
        self.broken = True  # unless it ends
        self._settle()
        self.broken = False
        revisions = [[w, k, r] for w, of in self._revisions.items() for k, r in of.items()]
        head = {
            "forests": [f.describe() for f in self._forests],
            "keep": self._keep,
            "revisions": revisions,
        }
        last = {"key": self._last.keys, "covered": self._last.covered}
        last |= {f"value {name}": column for name, column in self._last.values.items()}
        blobs = [json.dumps(head).encode(), to_ipc(self._keys.table()), to_ipc(pa.table(last))]
        return blobs + [blob for forest in self._forests for blob in forest.dump()]

    def load(self, blobs: list[bytes]) -> None:
        """Take back what `dump` gave, into a state that is empty."""
        head, keys, last, *forests = blobs
        saved = json.loads(head)
        mine = [f.describe() for f in self._forests]
        if saved["forests"] != mine:
            raise ValueError(
                f"these bytes hold partials of {saved['forests']}; the query has {mine}"
            )
        self._keep = saved["keep"]
        for window, key, revision in saved["revisions"]:
            self._revisions.setdefault(window, {})[key] = revision
        self._keys.restore(from_ipc(keys))
        numbers, covered, *values = from_ipc(last).columns
        names = [name.removeprefix("value ") for name in from_ipc(last).column_names[2:]]
        self._last = _Values(
            np.array(numbers),
            np.array(covered),
            dict(zip(names, map(one_array, values), strict=True)),
        )
        for forest, records, memory in zip(self._forests, forests[::2], forests[1::2], strict=True):
            forest.load(records, memory)

    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
        for forest in self._forests:
            forest._check()
            assert forest.held() == self._forests[0].held(), "groups hold different slices"
        held = {number for number, _ in self._forests[0].held()}
        there = set(self._keys.in_order().tolist())
        assert held <= there, "a key holds slices, and left"
        if self._plan.query.emit != "changes":
            assert held == there, "a key is there, and holds nothing"
        assert (np.diff(self._last.keys) > 0).all(), "a key has two last values"
