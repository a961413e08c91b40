"""A ring of elements on its way to another capacity, a few elements an operation.

The element at position p of a ring with capacity c is at place p & (c - 1).  If the capacity
changes, some elements stay where they are, and others have a new place, at which no
element is:

    capacity 8     | 8 | 9 | 2 | 3 | 4 | 5 | 6 | 7 |
    capacity 16    | - | - | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 |  …

So elements are copied to their new places while the kernel goes on with the old ones.  What it
changes behind the copying is copied again.  When all are copied, the capacity is set, in one step:
what interrupts a move finds a sound memory.

An operation copies eight elements, or rather every so many operations a piece is copied, and a
call that evicts many counts as so many operations.  A ring grows from three quarters on, so it is
done before it is full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .slots import CAPACITY, END, START

if TYPE_CHECKING:
    from .buffer_memory import BufferCore

__all__ = ["Move", "tend"]

PIECE = 1 << 13  # bytes that are copied at a time, unless eight elements are more
EACH = 8  # elements copied for an operation
#: Operations in calls with many rows, between two pieces, after which a move starts anew.
LATE = 1 << 12


class Move:
    """A ring's way to another capacity; `old` and `new` are the capacities."""

    def __init__(self, core: BufferCore, capacity: int) -> None:
        self.old, self.new = core.get(CAPACITY), capacity
        piece = PIECE // (8 * core.width * core.kernel.each)
        self._most = max(min(piece, self.old // EACH), EACH)
        self._wait = self._every = self._most // EACH  # operations until the next piece
        self._copied = core.get(START)  # elements before this position are copied
        self._seen = list(core.header)

    def sensible(self, length: int) -> bool:
        """Whether a window of this length still fits the new capacity, with room to grow."""
        return self.new > self.old or length <= self.new - self.new // 4

    def step(self, core: BufferCore, operations: int) -> bool:
        """Go on, after so many operations; True when the new capacity is reached and nothing is to
        be given back any more."""
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
        """Whether the way to a larger capacity was gone and not forgotten: something interrupted
        that."""
        return self.new > self.old and core.get(CAPACITY) == self.new

    def finish(self, core: BufferCore) -> None:
        """Go all of the way to a larger capacity at once."""
        self._go(core, self.old, 0)

    def _go(self, core: BufferCore, most: int, counted: int) -> bool:
        """Copy some more elements, and change the capacity if that was all."""
        core.stretch(self.new)
        self._copy_again(core, counted)
        self._copy_more(core, most)
        if self._copied < core.get(END):
            return False
        core.header[CAPACITY] = self.new
        return True

    def _copy_again(self, core: BufferCore, counted: int) -> None:
        """Copy what was copied and has changed since the last piece, in the operations that were
        counted and in calls with many rows, which are not."""
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
        """Copy elements that were not copied; those that stay at their places cost nothing."""
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
        """Copy elements of neighbouring places; returns the position up to which that is done."""
        last = min(last, self._block_end(first))
        if not self._stays(first):
            scratch, each = core.kernel.scratch, core.kernel.each
            to, start = first & (self.new - 1), first & (self.old - 1)
            core.copy_slots(scratch + each * to, scratch + each * start, each * (last - first))
        return last

    def _stays(self, at: int) -> bool:
        """Whether an element has the same place before and after."""
        return at & (self.new - 1) == at & (self.old - 1)

    def _block_end(self, at: int) -> int:
        """Up to which position elements are side by side, before and after."""
        block = min(self.old, self.new)
        return (at // block + 1) * block


def tend(core: BufferCore, operations: int = 1) -> int:
    """See to the memory of a gradual ring that is nearly full, mostly empty, or on its way, after
    so many operations.  Returns a capacity that it must be moved to as a whole, mostly 0."""
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
        return tend(core, 0)  # more may have left by now than when it started
    return 0
