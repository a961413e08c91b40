"""The sessions that a live stream has emitted, which it may emit again or withdraw.

A session is known by its key and its start.  Events that come behind it, or into it, make it a new
revision.  An event before it, or one that closes the gap to the session before, gives its events to
a session of another start: it is withdrawn.  A session that is withdrawn is remembered for as long
as one with its start may come again (where sessions have a greatest size), so that revisions go on.
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
#: What is known of an emitted session.
LIVE = ("start", "end", "revision", "deleted")


@dataclass
class Withdrawn:
    """Sessions that are withdrawn: the visit of each one's key, start and end as they were emitted
    last, and the revision."""

    groups: Array
    starts: Array
    ends: Array
    revisions: Array


class LiveSessions:
    """The emitted sessions of all keys that are not closed, and what is known of them."""

    def __init__(self) -> None:
        self.lanes = Lanes([_NONE] * len(LIVE))

    def step(
        self, visits: Array, found: Spans, touched: Array, closed: Array, since: int
    ) -> tuple[Array, Array, Withdrawn]:
        """The sessions that the visited keys have now, which of them have new events, and which are
        closed; no event comes before `since`.  Returns which of the sessions are to be emitted,
        the revision of each, and those that are withdrawn."""
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
        # what is remembered: sessions that are open, and those that are withdrawn
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
        """Raise AssertionError if it is not sound; the numbers are those of all keys."""
        counts, (starts, _, _, _) = self.lanes.get(numbers)
        assert len(self.lanes) == counts.sum(), "a key has sessions, and left"
        owners = np.repeat(numbers, counts)
        order = np.lexsort((starts, owners))
        same = (np.diff(owners[order]) == 0) & (np.diff(starts[order]) == 0)
        assert not same.any(), "two sessions of a key have one start"
