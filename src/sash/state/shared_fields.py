"""Fields of the calls of a shared forest's kernel, and of each query's ask.

Fields that all kernels of forests have are in `forest_fields`, at the same numbers.
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

#: Fields of a call.  Due windows end by LIMIT; no window needs slices before EDGE; a slice before
#: AGAIN_EDGE may be in a window that was emitted; no due window ends before UNDUE.  QUERIES is the
#: number of queries; the first ACTIVE of them have due windows.
LIMIT, EDGE, ACTIVE = 2, 3, 6
AGAIN_EDGE, UNDUE, QUERIES = 20, 21, 22
#: How far the call has come with a key: the query whose windows are being answered; the end of the
#: next window of all queries, and of the queries looked at so far in this round; whether each
#: query's next window is known; the query whose next window is to be emitted early; the next and
#: the end of the other sizes that a window must still be answered over, the window's end, and its
#: row.
QUERY, SOONEST, COMES, STARTED, EARLY_OF = 23, 24, 25, 26, 27
MORE, MORE_END, HIGH, OWN_ROW = 28, 29, 30, 31
#: Whether the slices before EDGE become one entry, because some windows hold all since the
#: beginning.
AS_ONE = 32
SHARED_CALL = 33

#: Fields of a query's ask, ASK for each query: the eight that describe its windows
#: (`slicing.slices`); the numbers of its first open window, of the first window that was not due
#: before, and of the first that is not due now; whether only changes are wanted; the start and the
#: end of the first window that is not due; the next window to answer; the first of its other sizes,
#: and their number; and how far back the longest size reaches from a window's end, 0 if there are
#: no other sizes.
ASK = 18
OPENED_OF, FRESH_OF, DUE_OF, CHANGES_OF, START_DUE, END_DUE = 8, 9, 10, 11, 12, 13
NEXT_OF, MORE_FIRST, MORE_MANY, REACH = 14, 15, 16, 17
