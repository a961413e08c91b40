"""Moves a ring of elements to another capacity, a few elements per operation.

The element at position p of a ring with capacity c is at place p & (c - 1).  If the capacity
changes, some elements keep their places, and the others get new places, which are free:

    capacity 8     | 8 | 9 | 2 | 3 | 4 | 5 | 6 | 7 |
    capacity 16    | - | - | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 |  …

So a `Move` copies elements to their new places while the kernel goes on with the old places.  If
the kernel changes elements that were already copied, the move copies them again.  When it has
copied all elements, it sets the capacity in one step: an interrupt leaves a sound memory.

A move copies eight elements per operation on average: it copies a piece of them after every few
operations.  An eviction of many elements counts as so many operations.  A ring begins to grow when
it is three quarters full, so its move ends before the ring is full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .slots import CAPACITY, END, START

if TYPE_CHECKING:
    from .buffer_memory import BufferCore

__all__ = ["Move", "tend"]

PIECE = 1 << 13  # bytes that a move copies at a time; eight elements if they have more
EACH = 8  # elements that a move copies per operation
#: If calls with many rows did so many operations between two pieces, the move starts anew.
LATE = 1 << 12


class Move:
    """A ring's move from the capacity `old` to the capacity `new`."""

    def __init__(self, core: BufferCore, capacity: int) -> None:
        self.old, self.new = core.get(CAPACITY), capacity
        piece = PIECE // (8 * core.width * core.kernel.each)
        self._most = max(min(piece, self.old // EACH), EACH)
        self._wait = self._every = self._most // EACH  # operations until the next piece
        self._copied = core.get(START)  # elements before this position are copied
        self._seen = list(core.header)

    def sensible(self, length: int) -> bool:
        """True if a window of this length fits the new capacity with room to grow."""
        return self.new > self.old or length <= self.new - self.new // 4

    def step(self, core: BufferCore, operations: int) -> bool:
        """Continue the move after so many operations.  Return True when the ring has the new
        capacity and all memory beyond it is given back."""
        self._wait -= operations
        if self._wait > 0:
            return False
        counted = self._every - self._wait
        pieces, self._wait = counted // self._every, self._every
        if core.get(CAPACITY) != self.new:
            if not self._go(core, pieces * self._most, counted):
                return False
            pieces -= 1
        if self.new > self.old:
            return True
        return pieces > 0 and core.trim(pieces)

    def done(self, core: BufferCore) -> bool:
        """True if a move to a larger capacity is complete, but an interrupt kept `tend` from ending
        it."""
        return self.new > self.old and core.get(CAPACITY) == self.new

    def finish(self, core: BufferCore) -> None:
        """Complete the move to a larger capacity at once."""
        self._go(core, self.old, 0)

    def _go(self, core: BufferCore, most: int, counted: int) -> bool:
        """Copy up to `most` more elements, and set the new capacity once all are copied.  Return
        True if so."""
        core.stretch(self.new)
        self._copy_again(core, counted)
        self._copy_more(core, most)
        if self._copied < core.get(END):
            return False
        core.header[CAPACITY] = self.new
        return True

    def _copy_again(self, core: BufferCore, counted: int) -> None:
        """Copy again the elements that have changed since the last piece, although they were
        already copied.  The header shows all operations since then; `counted` leaves out those of
        calls with many rows.  After too many operations, the move starts anew."""
        seen, now = self._seen, list(core.header)
        operations = now[START] - seen[START] + now[END] - seen[END]
        assert core.kernel.ring is not None
        if operations - counted > LATE or now[END] - now[START] <= 2 * operations:
            self._copied = now[START]
        else:
            for first, last in core.kernel.ring(seen, now, operations):
                at, last = max(first, now[START]), min(last, self._copied)
                while at < last:
                    at = self._copy(core, at, last)
        self._seen = now

    def _copy_more(self, core: BufferCore, most: int) -> None:
        """Copy up to `most` elements that are not copied yet; elements that keep their places do
        not count."""
        at, end = max(self._copied, core.get(START)), core.get(END)
        while at < end and most > 0:
            done = self._copy(core, at, min(end, at + most))
            if self._stays(at):
                done = min(end, self._block_end(at))
            else:
                most -= done - at
            at = done
        self._copied = at

    def _copy(self, core: BufferCore, first: int, last: int) -> int:
        """Copy elements that lie side by side both before and after the move.  Return the position
        after the last of them."""
        last = min(last, self._block_end(first))
        if not self._stays(first):
            scratch, each = core.kernel.scratch, core.kernel.each
            to, start = first & (self.new - 1), first & (self.old - 1)
            core.copy_slots(scratch + each * to, scratch + each * start, each * (last - first))
        return last

    def _stays(self, at: int) -> bool:
        """True if an element has the same place before and after the move."""
        return at & (self.new - 1) == at & (self.old - 1)

    def _block_end(self, at: int) -> int:
        """The position up to which elements lie side by side, before and after the move."""
        block = min(self.old, self.new)
        return (at // block + 1) * block


def tend(core: BufferCore, operations: int = 1) -> int:
    """Start or continue a move of a gradual ring, after so many operations: a ring grows when it is
    nearly full, and shrinks when it is mostly empty.  Return 0, or the capacity to which the caller
    must resize the whole ring at once, because its span is too short."""
    length, capacity, move = core.get(END) - core.get(START), core.get(CAPACITY), core.moving
    if move is not None and (move.done(core) or not move.sensible(length)):
        core.set_bounds()
        move = None
    if move is None:
        if length >= core.high:
            wanted = 2 * capacity
        elif length < core.low:
            wanted = core.smaller(length)
        else:
            return 0
        if not core.can_become(wanted):  # the span is too short
            return wanted if length == capacity else 0
        core.moving = move = Move(core, wanted)
        core.high, core.low = -1, capacity  # it goes on with each operation
    if length == capacity:
        move.finish(core)
        core.set_bounds()
    elif move.step(core, operations):
        core.set_bounds()
        return tend(core, 0)  # the window may have become shorter since the move began
    return 0
