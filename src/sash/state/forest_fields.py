"""Fields of a forest's header, of its records, and of the calls of its kernel."""

from __future__ import annotations

from ..aggregators.forest import PART

__all__ = [
    "AGAIN_END",
    "AGAIN_ROW",
    "AT",
    "BEGUN",
    "CALL",
    "CHANGES",
    "COVERED",
    "DUE",
    "EXPIRES",
    "FIELDS",
    "FRESH",
    "GONE",
    "KEEP",
    "MADE",
    "NEXT",
    "NOW",
    "OPENED",
    "PART",
    "ROWS",
    "SLICE",
    "SLOT",
    "VISIT",
    "WANTED",
    "WINDOW",
    "WITH_AGAIN",
    "WITH_EARLY",
]

#: Where a forest's header has the window, as its own fields have the usual places.
FIELDS = 15

#: Fields of a record, all of them numbers of windows: the next to be answered, if nothing comes;
#: the last that holds the oldest slice; the last that is known to have the same slices as the
#: one that was answered last.  PART says which memory the key's tree is in.
NEXT, EXPIRES, COVERED = 4, 5, 6

#: Fields of a call.  What is asked for, as in a `Step`.
OPENED, FRESH, DUE, KEEP = 0, 1, 2, 3
WITH_AGAIN, WITH_EARLY, CHANGES = 4, 5, 6
#: How far it got: the key, whether it is at hand, its next slice and window, the rows made and how
#: many there may be, the row that is being answered (-1 while its slices are combined), those that
#: are emitted again, keys that left, rows that lack, the window that work is done for, the slot
#: that is being lowered.
VISIT, BEGUN, SLICE, WINDOW, MADE, ROWS = 7, 8, 9, 10, 11, 12
AT, AGAIN_ROW, AGAIN_END, GONE, WANTED, NOW, SLOT = 13, 14, 15, 16, 17, 18, 19
CALL = 20
