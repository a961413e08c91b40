"""What a state does for the lifecycle: it keeps the slices of all keys, and answers windows.

    lifecycle                                  state
    which rows are late, and why
    rows → slices                 cut        → slices of each key
    which windows are due         step       → inserts slices, answers windows, forgets slices
    which revision a window is    revise     → counts of revisions, kept until the window closes
    which windows changed         recall,
                                  remember   → the last emitted values of each key

A state decides nothing: `Step` says which windows are due, which may be emitted again, and what may
be forgotten.  Windows go by their numbers (`windows.contract`), so a state asks the window only
where a slice lies.  A batch changes the state wholly, by `commit`, or not at all: `abandon` comes
instead of it if anything raises.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array

__all__ = [
    "AGAIN",
    "EARLY",
    "NEW",
    "Emitted",
    "Recalled",
    "Slices",
    "State",
    "Step",
    "StepFailed",
    "some_slices",
]

#: Why a window is emitted: it is due, and was not emitted before; it was, and changed; it is not
#: due yet, but emitted as it stands.
NEW, AGAIN, EARLY = 0, 1, 2


@dataclass
class Slices:
    """The slices of a batch.  Key k, of `keys` in order, has the slices from bounds[k] to
    bounds[k + 1], in order of time.

    Where the order of events matters, a slice cannot be one partial, as more events may come
    between those it has.  Then each distinct time is a slice of its own, and with a tie column
    each distinct (time, tie).
    """

    keys: list[pa.Array]  # a column for each key column, none twice, in the order of the keys
    bounds: Array
    starts: Array  # when a slice starts, or the time of its events
    #: For each group of aggregates: rows of words, `Numbered`, or a list of objects.
    partials: list[Any]
    ties: Array | None = None

    @property
    def spans(self) -> tuple[Array, Array]:
        """Where the slices of each key begin, and where they end."""
        return self.bounds[:-1], self.bounds[1:]


def some_slices(slices: Slices, keep: Array) -> Slices:
    """Some of the slices, and the keys that have any of them."""
    if keep.all():
        return slices
    owners = np.repeat(np.arange(len(slices.bounds) - 1), np.diff(slices.bounds))[keep]
    counts = np.bincount(owners, minlength=len(slices.bounds) - 1)
    left = pa.array(np.flatnonzero(counts))
    at = np.flatnonzero(keep)
    return Slices(
        [key.take(left) for key in slices.keys],
        np.append(0, np.cumsum(counts[counts > 0])),
        slices.starts[at],
        [[p[i] for i in at] if isinstance(p, list) else p[at] for p in slices.partials],
        None if slices.ties is None else slices.ties[at],
    )


@dataclass(slots=True, unsafe_hash=True)  # not frozen, as that takes 4 µs a query and batch
class Step:
    """What a batch asks of a state, in numbers of windows.

    Windows from `fresh` up to `due` are emitted, if they hold something.  With `again`, so are
    those from `opened` up to `fresh` that hold one of the batch's slices.  With `early`, so is
    window `due`, as it stands.  Then what only windows before `keep` hold is forgotten.

        closed    emitted before, open    due now      open, not due
        --------|-----------------------|------------|---------------
              opened                  fresh         due             keep lies from opened to due
    """

    opened: int
    fresh: int
    due: int
    keep: int
    again: bool = False
    early: bool = False
    changes: bool = False  # a window with the same slices as the one before may be left out
    #: the first and the last slot of a store's index that the step is about; None for all
    among: tuple[int, int] | None = None


@dataclass
class Emitted:
    """Windows that a step emits, in order of key and window."""

    keys: list[pa.Array]  # a column for each key column
    codes: Array  # the place of each row's key in those columns
    windows: Array  # numbers
    reasons: Array  # NEW, AGAIN or EARLY; AGAIN only if it held something before the batch
    values: Mapping[str, pa.Array]
    failed: dict[int, str] = field(default_factory=dict)  # rows that lack answers: which, and why
    # with `changes`: the last window that has a row's content, or the last of those that is due
    covered: Array | None = None
    # the table of all rows, where it is a range of that of several queries
    table: Callable[[], pa.Table] | None = None


@dataclass
class Recalled:
    """What is remembered of some keys: whether there is anything, the last window that is covered,
    and its values; the rows of `values` are those of the keys that have something, in order."""

    there: Array
    covered: Array
    values: dict[str, pa.Array]


class StepFailed(RuntimeError):
    """An operator's `combine` raised in a step: for which aggregates, key and window."""

    def __init__(
        self, error: Exception, names: tuple[str, ...], keys: list[pa.Array], code: int, window: int
    ) -> None:
        super().__init__(f"combine of {', '.join(names)} raised {type(error).__name__}: {error}")
        self.names = names
        self.keys = keys  # a column for each key column
        self.code = code  # the key's place in them
        self.window = window  # its number


class State(ABC):
    """The slices of all keys, of one query."""

    @abstractmethod
    def cut(self, table: pa.Table, times: Array) -> Slices:
        """Cut rows into slices; changes nothing.  The rows can be in any order."""

    def portions(self, slices: Slices | None, step: Step) -> Iterable[tuple[Slices | None, Step]]:
        """The steps that a batch is done in, each with slices of keys of its own: more than one if
        the memory for all at once would be large."""
        return [(slices, step)]

    @abstractmethod
    def step(self, slices: Slices | None, step: Step) -> Emitted:
        """Insert slices, emit windows, forget what no open window holds."""

    @abstractmethod
    def revise(self, emitted: Emitted, rows: Array, last: Array) -> Array:
        """Count a revision of the windows in some rows, and return its number: one more than the
        revision before, or than `last` where none was counted."""

    @abstractmethod
    def recall(self, emitted: Emitted, codes: Array) -> Recalled:
        """What is remembered of some keys, by their places in `emitted.keys`."""

    @abstractmethod
    def remember(
        self, emitted: Emitted, codes: Array, covered: Array, values: dict[str, pa.Array]
    ) -> None:
        """Remember values of some keys, the last emitted ones, say, instead of what was remembered,
        until window `covered` + 1 is closed."""

    #: Whether a batch was abandoned of which a part cannot be undone: all calls are then refused.
    broken = False

    def prepare(self) -> None:  # noqa: B027 -- most have nothing to do
        """Do all that may fail before `commit`, while the batch can still be abandoned."""

    @abstractmethod
    def commit(self) -> None:
        """Make the changes since the last commit final."""

    @abstractmethod
    def abandon(self) -> None:
        """Undo the changes since the last commit, or refuse further use."""

    @abstractmethod
    def size(self) -> dict[str, int]:
        """How many keys and slices there are, and how many bytes they take."""

    @abstractmethod
    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
