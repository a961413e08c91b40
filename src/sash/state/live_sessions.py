"""The sessions that a live stream has emitted, and may emit again or withdraw.

A session's key and start identify it.  An event that joins it at its end or within gives it a new
revision.  If an event joins it at its start, or closes the gap to the session before, the session's
events become part of a session with another start: the stream withdraws the session.  A withdrawn
session is remembered for as long as a session with its start may come again (if sessions have a
`max_size`), so that its revisions go on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels.columns import Array
from .lanes import Lanes
from .measures import Spans
from .ragged import Places

__all__ = ["LIVE", "LiveSessions", "Withdrawn"]

_NONE = np.zeros(0, dtype=np.int64)
#: The columns of an emitted session.
LIVE = ("start", "end", "revision", "deleted")


@dataclass
class Withdrawn:
    """Withdrawn sessions: the visit of each session's key, the start and end that were emitted
    last, and the new revision."""

    groups: Array
    starts: Array
    ends: Array
    revisions: Array


class LiveSessions:
    """The emitted sessions of all keys that are not closed, with their ends and revisions."""

    def __init__(self) -> None:
        self.lanes = Lanes([_NONE] * len(LIVE))

    def step(
        self, visits: Array, found: Spans, touched: Array, closed: Array, since: int
    ) -> tuple[Array, Array, Withdrawn]:
        """Compare the sessions of the visited keys with the emitted ones.  `found` are all their
        sessions now; `touched` and `closed` are True for those with new events, and for those that
        are closed; no later event is before `since`.  Return which sessions to emit, the revision
        of each, and the sessions to withdraw."""
        counts, (starts, ends, revisions, gone) = self.lanes.get(visits)
        owners = np.repeat(np.arange(len(visits)), counts)
        place = Places(owners, starts).find(found.groups, found.starts)
        padded = [np.append(column, -1) for column in (owners, starts, revisions, gone)]
        owner, start, before, was_gone = (column[place] for column in padded)
        known = (owner == found.groups) & (start == found.starts)
        emits: Array = touched | ~known | (was_gone == 1)
        now = np.where(known, before, -1) + emits
        there = np.zeros(len(starts), dtype=bool)
        there[place[known]] = True
        leave = ~there & (gone == 0)
        withdrawn = Withdrawn(owners[leave], starts[leave], ends[leave], revisions[leave] + 1)
        # remember the open sessions, and the withdrawn ones that may come again
        opened, past = ~closed, ~there & (starts >= since)
        many = int(opened.sum())
        owners = np.append(found.groups[opened], owners[past])
        columns = [
            np.append(found.starts[opened], starts[past]),
            np.append(found.ends[opened], ends[past]),
            np.append(now[opened], (revisions + leave)[past]),
            np.append(np.zeros(many, np.int64), np.ones(int(past.sum()), np.int64)),
        ]
        order = np.lexsort((columns[0], owners))
        counts = np.bincount(owners, minlength=len(visits))
        self.lanes.put(visits, counts, [column[order] for column in columns])
        return emits, now, withdrawn

    def _check(self, numbers: Array) -> None:
        """Raise AssertionError if the sessions are not sound; `numbers` are those of all keys."""
        counts, (starts, _, _, _) = self.lanes.get(numbers)
        assert len(self.lanes) == counts.sum(), "a key has sessions, and left"
        owners = np.repeat(numbers, counts)
        order = np.lexsort((starts, owners))
        same = (np.diff(owners[order]) == 0) & (np.diff(starts[order]) == 0)
        assert not same.any(), "two sessions of a key have one start"
