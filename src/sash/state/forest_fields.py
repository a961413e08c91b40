"""Fields of a forest's header, of its keys' records, and of the calls of its kernel."""

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

#: The header field at which the window's fields begin; the forest's own fields have the usual ones.
FIELDS = 15

#: Fields of a record, all of them numbers of windows: the next to be answered, if nothing comes;
#: the last that holds the oldest slice; the last that is known to have the same slices as the
#: one that was answered last.  PART says which memory the key's tree is in.
NEXT, EXPIRES, COVERED = 4, 5, 6

#: Fields of a call.  The first ones are a `Step`; WITH_EARLY is 2 after the current key's early
#: window.
OPENED, FRESH, DUE, KEEP = 0, 1, 2, 3
WITH_AGAIN, WITH_EARLY, CHANGES = 4, 5, 6
#: How far the call has come: the place of the current key among the keys to visit; whether the
#: key's tree is in the header; the key's next slice and next window; how many rows are written or
#: reserved, and how many there is room for; the row that is being lowered (-1 while its slices are
#: combined); the next row and the end of the rows that are reserved for windows emitted again; how
#: many keys have no slices any more; how many rows are missing; the window that the kernel works
#: on; the slot that is being lowered.
VISIT, BEGUN, SLICE, WINDOW, MADE, ROWS = 7, 8, 9, 10, 11, 12
AT, AGAIN_ROW, AGAIN_END, GONE, WANTED, NOW, SLOT = 13, 14, 15, 16, 17, 18, 19
CALL = 20
