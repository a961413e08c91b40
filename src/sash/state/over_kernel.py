"""From rows in order to the answers of frames of several sizes that end together.

Each row is lifted once, whatever the number of sizes.  A group's rows are cut into chunks of CHUNK
rows.  The chunk in which the current frames end is open; in the chunks before it, each row's slot
has the aggregate from the row to the end of its chunk.  So a frame combines three partials: from
its first row to the end of that row's chunk, the chunks between, and the open chunk up to the
frame's end.

    chunks     |----------|----------|----------|-----
    a frame          [----)(--------------------)(--]
                     slot         between        open

The partials of the open chunk serve all sizes.  The chunks between are in two stacks of chunks for
each size, which change once for each chunk.  Frames that begin in the open chunk combine two slots
of a table of that chunk, which serves all sizes too (`tabulate`).

Time: two combines for each row and size, or one where the frame begins in the open chunk; three,
amortised, for each chunk and size; two for each row, and at most six for the table.

The kernel answers together the rows whose frames end in one chunk.  First it finds where the frames
begin, eight rows at a time, as each search begins where the one before ended: while a processor
waits for one size, it works on the others.  Then it answers frames size by size, in loops whose
turns do not depend on each other, so that the compiler takes several frames at once.
"""

from __future__ import annotations

from typing import Any

from ..kernels.program import Kernel
from ..kernels.slots import (
    Columns,
    Memory,
    Outputs,
    below,
    clear,
    combined,
    copy,
    gathered,
    get,
    item,
    lift,
    lowered,
    partial,
    put,
    set_item,
    set_partial,
    set_ranks,
)
from . import vector_over
from .over_steps import (
    BEGIN,
    BETWEEN,
    CHUNK,
    CHUNKS,
    DIGITS,
    EMPTY,
    OPEN,
    PREFIX,
    RING,
    RING_MASK,
    SCRATCH,
    TABLE,
    TABLED,
    TAIL,
    WIDE,
    between,
    close_chunk,
    row_slot,
    stack_slot,
)

__all__ = ["OVER"]

BEYOND = 2**62  # greater than any row


def fill(m: Memory, columns: Columns, row: int, last: int) -> int:
    """Lift the rows before `last` into the open chunk."""
    opened = get(m, OPEN)
    x = partial(m, PREFIX + row - opened)
    while row < last:
        at = row_slot(m, row)
        lift(m, at, columns, row)
        row += 1
        x = combined(x, partial(m, at))
        set_partial(m, PREFIX + row - opened, x)
    return row


def find_firsts(
    m: Memory,
    times: Any,
    olders: Any,
    sizes: int,
    lows: Any,
    first: int,
    last: int,
    end: int,
    firsts: Any,
) -> None:
    """Find the first row of each frame from `first` up to `last`, for each size; the group ends at
    `end`.  After the rows of a size come eight numbers that are beyond all rows."""
    f = first
    while f + 8 <= last and f + 22 < end:
        for s in range(sizes):
            low = item(lows, s)
            if low >= 0:
                at = s * WIDE + f - first
                set_ranks(firsts, at, times, f, item(olders, s), low)
                set_item(lows, s, item(firsts, at + 7))
        f += 8
    for s in range(sizes):
        low = item(lows, s)
        if low >= 0:
            at = s * WIDE - first
            for i in range(f, last):
                bound = item(times, i) - item(olders, s)
                while low < end and item(times, low) < bound:
                    low += 1
                set_item(firsts, at + i, low)
            set_item(lows, s, low)
            for i in range(last, last + 8):
                set_item(firsts, at + i, BEYOND)


def next_from(m: Memory, firsts: Any, own: int, f: int, bound: int) -> int:
    """The first frame from `f` on that begins at row `bound` or later, or the end of the frames."""
    gone = 8
    while gone == 8:
        gone = below(firsts, own + f, bound)
        f += gone
    return f


def answer_two(m: Memory, a: int, b: int, outputs: Outputs, row: int) -> None:
    """Answer two slots combined."""
    lowered(m, combined(gathered(m, a), gathered(m, b)), outputs, row)


def answer_three(m: Memory, a: int, b: int, c: int, outputs: Outputs, row: int) -> None:
    """Answer three slots combined."""
    lowered(m, combined(combined(gathered(m, a), gathered(m, b)), gathered(m, c)), outputs, row)


def row_or_empty(m: Memory, place: int, rows: int) -> int:
    """The slot of a place in the open chunk, or an empty slot if the row is not there yet."""
    if place >= rows:
        return EMPTY
    return row_slot(m, get(m, OPEN) + place)


def tabulate_eights(m: Memory, rows: int) -> None:
    """Fill the table's lines for the three lowest digits.  It takes eight places at a time: loops
    over fewer took several times as long."""
    ones, twos, fours = TABLE, TABLE + CHUNK, TABLE + 2 * CHUNK
    for p in range(0, rows, 8):
        a, b = partial(m, row_or_empty(m, p, rows)), partial(m, row_or_empty(m, p + 1, rows))
        c, d = partial(m, row_or_empty(m, p + 2, rows)), partial(m, row_or_empty(m, p + 3, rows))
        e, f = partial(m, row_or_empty(m, p + 4, rows)), partial(m, row_or_empty(m, p + 5, rows))
        g = partial(m, row_or_empty(m, p + 6, rows))
        set_partial(m, ones + p, a)
        set_partial(m, ones + p + 2, c)
        set_partial(m, ones + p + 4, e)
        set_partial(m, ones + p + 6, g)
        set_partial(m, twos + p, combined(a, b))
        set_partial(m, twos + p + 1, b)
        set_partial(m, twos + p + 3, c)
        ef = combined(e, f)
        set_partial(m, twos + p + 4, ef)
        set_partial(m, twos + p + 5, f)
        set_partial(m, twos + p + 7, g)
        cd = combined(c, d)
        bcd = combined(b, cd)
        set_partial(m, fours + p, combined(a, bcd))
        set_partial(m, fours + p + 1, bcd)
        set_partial(m, fours + p + 2, cd)
        set_partial(m, fours + p + 3, d)
        set_partial(m, fours + p + 5, e)
        set_partial(m, fours + p + 6, ef)
        set_partial(m, fours + p + 7, combined(ef, g))


def tabulate(m: Memory, rows: int) -> None:
    """Fill the table of the open chunk, of which the first `rows` rows are there.

    Two different places in a chunk have a highest binary digit in which they differ.  Cut off below
    this digit, the greater place is a third one, between them.  The table's line for the digit has
    the aggregate from the lesser place up to the third, and from the third up to the greater place.
    So two slots of one line hold the rows between any two places.  Where the third place is the
    greater one, its slot is empty, and it always is.
    """
    ring, mask, opened = get(m, RING), get(m, RING_MASK), get(m, OPEN)
    tabulate_eights(m, rows)
    line = TABLE + 3 * CHUNK
    half = 8
    while half <= rows:
        for mid in range(half, rows + 1, 2 * half):
            last = min(half, rows - mid + 1)  # the places from mid on that frames may end at
            x = partial(m, ring + ((opened + mid - 1) & mask))
            set_partial(m, line + mid - 1, x)
            y = partial(m, EMPTY)
            for p in range(1, last):
                x = combined(partial(m, ring + ((opened + mid - 1 - p) & mask)), x)
                y = combined(y, partial(m, ring + ((opened + mid - 1 + p) & mask)))
                set_partial(m, line + mid - 1 - p, x)
                set_partial(m, line + mid + p, y)
            for p in range(last, half):
                x = combined(partial(m, ring + ((opened + mid - 1 - p) & mask)), x)
                set_partial(m, line + mid - 1 - p, x)
        half *= 2
        line += CHUNK
    put(m, TABLED, rows)


def frames_of_size(
    m: Memory,
    size: int,
    lows: Any,
    mids: Any,
    firsts: Any,
    ends: Any,
    lines: Any,
    count: int,
    at: int,
    step: int,
    outputs: Outputs,
) -> None:
    """Answer `count` frames of one size, which end in the open chunk.  If the size's low row is
    below 0, its frames hold all rows of their group up to their end."""
    opened = get(m, OPEN)
    if item(lows, size) < 0:
        for i in range(count):
            answer_two(m, stack_slot(m, size, -1), TAIL + i, outputs, at + i * step)
        return
    ring, mask, begin = get(m, RING), get(m, RING_MASK), get(m, BEGIN)
    own = size * WIDE
    newest = item(firsts, own + count - 1)
    f = 0
    while f < count and item(firsts, own + f) < opened:
        chunk = (item(firsts, own + f) - begin) >> DIGITS
        end = min((min(newest, opened - 1) - begin) >> DIGITS, chunk + CHUNKS - 1) + 1
        for c in range(chunk, end):
            between(m, mids, size, c)
        last = count
        if newest >= begin + end * CHUNK:
            last = next_from(m, firsts, own, f, begin + end * CHUNK)
        for i in range(f, last):
            low = item(firsts, own + i)
            a, b = ring + (low & mask), BETWEEN + (((low - begin) >> DIGITS) & (CHUNKS - 1))
            answer_three(m, a, b, TAIL + i, outputs, at + i * step)
        f = last
    if f < count:
        rows = item(ends, count - 1) - opened
        if get(m, TABLED) < rows:
            tabulate(m, rows)
        for i in range(f, count):
            high = item(ends, i) - opened
            low = min(item(firsts, own + i) - opened, high)
            line = item(lines, low ^ high)
            answer_two(m, line + low, line + high, outputs, at + i * step)


def frames_over(
    m: Memory,
    columns: Columns,
    times: Any,
    bounds: Any,
    count: int,
    olders: Any,
    sizes: int,
    younger: int,
    lows: Any,
    mids: Any,
    ends: Any,
    firsts: Any,
    lines: Any,
    skip: int,
    at: int,
    step: int,
    apart: int,
    outputs: Outputs,
) -> None:
    """Answer one frame for each row and size, from row `skip` on, of `count` groups, which are in
    order of time.  A frame holds the rows of its group whose times are at most `older` and more
    than `younger` before the row's own time; if `older` is below 0, it also holds all rows before
    them.  The answer of row r goes to row `at` + r * `step` of the output for the first size, and
    `apart` rows further for each later size.
    """
    for g in range(count):
        begin = item(bounds, g)
        n = item(bounds, g + 1)
        put(m, BEGIN, begin)
        put(m, OPEN, begin)
        put(m, TABLED, 0)
        for s in range(sizes):
            set_item(lows, s, begin if item(olders, s) >= 0 else -1)
            set_item(mids, s, 0)
            clear(m, stack_slot(m, s, -1))
        row = begin
        high = begin
        i = max(begin, skip)
        while i < n:
            full = get(m, OPEN) + CHUNK
            j = i
            while j < n and j - i < CHUNK and high < full:
                t = item(times, j)
                while high < n and item(times, high) < t - younger:
                    high += 1
                if high < full:
                    set_item(ends, j - i, high)
                    j += 1
            if j > i:
                row = fill(m, columns, row, max(row, item(ends, j - i - 1)))
                for f in range(j - i):
                    copy(m, TAIL + f, PREFIX + item(ends, f) - get(m, OPEN))
                find_firsts(m, times, olders, sizes, lows, i, j, n, firsts)
                for s in range(sizes):
                    to = at + s * apart + i * step
                    frames_of_size(m, s, lows, mids, firsts, ends, lines, j - i, to, step, outputs)
                i = j
            if high >= full:
                row = fill(m, columns, row, full)
                close_chunk(m, lows, mids, sizes)


#: The kernel that answers frames of several sizes.
OVER = Kernel(
    "frames_over",
    (
        row_slot,
        stack_slot,
        between,
        close_chunk,
        fill,
        find_firsts,
        next_from,
        answer_two,
        answer_three,
        row_or_empty,
        tabulate_eights,
        tabulate,
        frames_of_size,
        frames_over,
    ),
    ("frames_over",),
    scratch=SCRATCH,
    for_vectors=(
        vector_over.fill,
        vector_over.answer_two,
        vector_over.answer_three,
        vector_over.tabulate,
    ),
)
