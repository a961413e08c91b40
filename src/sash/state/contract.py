"""What a state does for the lifecycle: it keeps the slices of all keys, and answers windows.

    lifecycle                                  state
    which rows are late, and why
    rows → slices                 cut        → slices of each key
    which windows are due         step       → inserts slices, answers windows, forgets slices
    which revision a window is    revise     → counts of revisions, kept until the window closes
    which windows changed         recall,
                                  remember   → the last emitted values of each key

A state decides nothing.  The lifecycle passes a `Step`, which says which windows are due, which
ones the state may emit again, and which slices it may forget.  A step refers to windows by their
numbers (`windows.contract`), so a state uses the window only to find where a slice lies.  A batch
changes the state completely or not at all: the lifecycle calls `commit` at the end, or `abandon` if
anything raised an error.
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

#: Why a window is emitted: NEW, it is due and was not emitted before; AGAIN, it was emitted before
#: and has changed; EARLY, it is not due yet, and is emitted with the slices that it has so far.
NEW, AGAIN, EARLY = 0, 1, 2


@dataclass
class Slices:
    """The slices of a batch.  The slices of key k are those from bounds[k] up to bounds[k + 1], in
    order of time.

    If the order of events matters, a slice cannot be one partial, because a later batch may have
    events between the slice's events.  Then each distinct time is a slice of its own, and with a
    tie column each distinct (time, tie).
    """

    keys: list[pa.Array]  # an array for each key column: the distinct keys, in order
    bounds: Array
    starts: Array  # the start of each slice, or the time of its events
    #: For each group of aggregates: rows of words, `Numbered`, or a list of objects.
    partials: list[Any]
    ties: Array | None = None

    @property
    def spans(self) -> tuple[Array, Array]:
        """The places at which the slices of each key begin, and at which they end."""
        return self.bounds[:-1], self.bounds[1:]


def some_slices(slices: Slices, keep: Array) -> Slices:
    """The slices for which `keep` is True, and the keys of these slices."""
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
    """What a batch asks of a state.  `opened`, `fresh`, `due` and `keep` are numbers of windows.

    The state emits the windows from `fresh` up to but not including `due` that hold a slice.  With
    `again`, it also emits the windows from `opened` up to `fresh` that hold one of the batch's
    slices.  With `early`, it also emits window `due`, with the slices that it has so far.  Then the
    state forgets the slices that only windows before `keep` hold.

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
    changes: bool = False  # the state may leave out a window with the same slices as the one before
    #: with a store: the step takes only parts between these two slots of the index's root, both
    #: inclusive; None for all parts
    among: tuple[int, int] | None = None


@dataclass
class Emitted:
    """Windows that a step emits, in order of key and window."""

    keys: list[pa.Array]  # a column for each key column
    codes: Array  # the place of each row's key in those columns
    windows: Array  # numbers
    reasons: Array  # NEW, AGAIN or EARLY; AGAIN only if the window held a slice before the batch
    values: Mapping[str, pa.Array]
    failed: dict[int, str] = field(default_factory=dict)  # why rows lack answers, by row
    # with `changes`: the last window that has the same slices as the row's window, or the last one
    # of these that is due
    covered: Array | None = None
    # makes the table of all rows, if it is a range of a table that several queries share
    table: Callable[[], pa.Table] | None = None


@dataclass
class Recalled:
    """The last emitted values of some keys.  `there` is True for each key with remembered values;
    `covered` is the last window that has these values; `values` has a row for each key for which
    `there` is True, in order."""

    there: Array
    covered: Array
    values: dict[str, pa.Array]


class StepFailed(RuntimeError):
    """An operator's `combine` raised an error in a step, for these aggregates, key and window."""

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
        """Cut rows, in any order, into slices.  The state stays as it is."""

    def portions(self, slices: Slices | None, step: Step) -> Iterable[tuple[Slices | None, Step]]:
        """Divide a batch into steps over disjoint sets of keys, if one step over all of the batch's
        keys would need too much memory."""
        return [(slices, step)]

    @abstractmethod
    def step(self, slices: Slices | None, step: Step) -> Emitted:
        """Insert slices, emit windows, forget the slices that no open window holds."""

    @abstractmethod
    def revise(self, emitted: Emitted, rows: Array, last: Array) -> Array:
        """Count one more revision of the windows in these rows, and return the new revisions.  If
        the state has no count for a window, its last revision was `last`."""

    @abstractmethod
    def recall(self, emitted: Emitted, codes: Array) -> Recalled:
        """The remembered values of some keys, by their places in `emitted.keys`."""

    @abstractmethod
    def remember(
        self, emitted: Emitted, codes: Array, covered: Array, values: dict[str, pa.Array]
    ) -> None:
        """Remember values of some keys, such as the last emitted ones, in place of the values
        remembered so far.  The state forgets them when window `covered` + 1 is closed."""

    #: True if a batch was abandoned and its changes cannot be undone: the state refuses all calls.
    broken = False

    def prepare(self) -> None:  # noqa: B027 -- most states have nothing to do
        """Do all work that may fail, so that the caller can still abandon the batch."""

    @abstractmethod
    def commit(self) -> None:
        """Make the changes since the last commit final."""

    @abstractmethod
    def abandon(self) -> None:
        """Undo the changes since the last commit, or refuse further use."""

    @abstractmethod
    def size(self) -> dict[str, int]:
        """The number of keys and of slices, and the bytes that they take."""

    @abstractmethod
    def _check(self) -> None:
        """Raise AssertionError if the state is not sound."""
