"""A stored window as one in memory: for snapshots, and to check it."""

from __future__ import annotations

from typing import Any

from ..kernels.slots import CAPACITY, END, START
from .in_order import InOrder, capacity_for
from .level_window import LevelWindow
from .levels import RING
from .resident import Resident
from .stored_kernel import BITS, FIRST, LAST, LEVELS, PHASE, STEP

__all__ = ["check", "in_memory"]


def in_memory(window: Resident, plain: type[LevelWindow]) -> LevelWindow:
    """The same window in memory."""
    core, slots = window._core, window._at
    start, end = core.get(START), core.get(END)
    made = plain(window._given.shown, window._policy)
    made._given = window._given
    made._core = InOrder._make(made, core.operator)
    capacity = capacity_for(end - start)
    if capacity > made._core.get(CAPACITY):
        made._core.resize(capacity, [])
    capacity = made._core.get(CAPACITY)
    for field in range(1, BITS):
        made._core.header[field] = core.header[field]
    bits = slots.bits
    for level in slots.leaves(capacity.bit_length()):
        young = slots.page(end, level) - 1
        for page in range(slots.page(start, level), slots.page(end - 1, level) + 1):
            if page < young:
                window._load_whole(level, page)
            for above in range(min(slots.high, capacity.bit_length() - level)):
                wide = capacity >> level + above
                first, last = start >> level + above, end - 1 >> level + above
                low = max(page << bits - above, first, last + 1 - wide)
                high = min((page + 1) << bits - above, last + 1)
                slot = slots.middle if page < young else slots.tail
                at = slot(level, page, above) - (page << bits - above)
                while low < high:  # up to where the ring comes round
                    some = min(high - low, wide - (low & (wide - 1)))
                    to = RING + 2 * capacity - 2 * wide + (low & (wide - 1))
                    _copy(made._core, to, core, at + low, some)
                    low += some
    _copy(made._core, 0, core, 0, RING)
    _copy(made._core, RING + 2 * capacity, core, RING, capacity.bit_length() + 1)
    return made


def _copy(to_core: Any, to: int, core: Any, at: int, count: int) -> None:
    """Copy a run of slots from one memory into another."""
    to_core.load_slots(to, count, core.dump_slots(at, count))


def check(window: Resident, plain: type[LevelWindow]) -> None:
    """Check the invariants of a stored window, and of the same window in memory."""
    header, slots = window._core.header, window._at
    start, end = header[START], header[END]
    assert 0 <= start <= end < header[LAST]
    assert start < header[FIRST]
    assert header[PHASE] == 0
    assert (end - start).bit_length() + 2 <= header[LEVELS] <= 64
    for level in window._leaves():
        head, young = slots.page(start, level), slots.page(end, level) - 1
        for page in range(head, young):
            if page <= head + 1:
                assert window._has(level, page), f"page {page} of level {level} is not there"
            if window._has(level, page):
                _check_head(window, level, page)
    in_memory(window, plain)._check()


def _check_head(window: Resident, level: int, page: int) -> None:
    """A page at the head is as it is in the store, but for what has left in part."""
    core, slots = window._core, window._at
    window._load_whole(level, page)
    for above in range(0, slots.high, STEP):
        first = page << slots.bits - above
        gone = max(-(-core.get(START) >> level + above) - first, 0)
        count = (1 << slots.bits - above) - gone
        if count > 0:
            mine = core.dump_slots(slots.head(level, page, above) + gone, count)
            kept = core.dump_slots(slots.middle(level, page, above) + gone, count)
            assert mine == kept, f"page {page} of level {level} differs"
