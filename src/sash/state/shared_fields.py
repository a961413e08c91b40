"""Fields of the calls of a shared forest's kernel, and of what each query asks.

Fields that other kernels of forests have too stand where `forest_fields` has them.
"""

from __future__ import annotations

__all__ = [
    "ACTIVE",
    "AGAIN_EDGE",
    "ASK",
    "AS_ONE",
    "CHANGES_OF",
    "COMES",
    "DUE_OF",
    "EARLY_OF",
    "EDGE",
    "END_DUE",
    "FRESH_OF",
    "HIGH",
    "LIMIT",
    "MORE",
    "MORE_END",
    "MORE_FIRST",
    "MORE_MANY",
    "NEXT_OF",
    "OPENED_OF",
    "OWN_ROW",
    "QUERIES",
    "QUERY",
    "REACH",
    "SHARED_CALL",
    "SOONEST",
    "STARTED",
    "START_DUE",
    "UNDUE",
]

#: Fields of a call.  Windows that end by LIMIT are due; what is before EDGE is needed by none;
#: a slice before AGAIN_EDGE may be in a window that was emitted; no window that is due ends before
#: UNDUE.  Of so many QUERIES, the first ACTIVE ones have windows that are due.
LIMIT, EDGE, ACTIVE = 2, 3, 6
AGAIN_EDGE, UNDUE, QUERIES = 20, 21, 22
#: How far it got with a key: the query whose windows are being answered; when the next window ends
#: of all queries, and of those that were looked at so far; whether each query's next window is
#: known; the query whose next window is emitted early; which further sizes of a window are still to
#: be answered, when that window ends, and its row.
QUERY, SOONEST, COMES, STARTED, EARLY_OF = 23, 24, 25, 26, 27
MORE, MORE_END, HIGH, OWN_ROW = 28, 29, 30, 31
#: Whether what is before EDGE becomes one entry, as some windows hold all since the beginning.
AS_ONE = 32
SHARED_CALL = 33

#: What a query asks, so many fields for each: the eight that say which windows it has
#: (`slicing.slices`); the numbers of its first open window, of the first that was not due, and of
#: the first that is not due now; whether only changes are wanted; when the first window that is
#: not due starts and ends; the next window to be answered; its further sizes; and how far back the
#: longest of them reaches from a window's end, 0 for the window's own.
ASK = 18
OPENED_OF, FRESH_OF, DUE_OF, CHANGES_OF, START_DUE, END_DUE = 8, 9, 10, 11, 12, 13
NEXT_OF, MORE_FIRST, MORE_MANY, REACH = 14, 15, 16, 17
