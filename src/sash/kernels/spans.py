"""Address space for memories that grow where they are.

A large memory that moves when it grows makes one operation wait for all of it: 100 ms and more for
some million partials.  A span is address space that the process reserves and does not use: the
system gives it pages when they are first touched, some microsecond each, so a memory at the start
of a span grows by being called longer.  What a memory does not need any more is given back in
pieces.

A span is as long as the machine's memory.  That is a number, not a cost: only pages that were
touched are charged.  Address space itself is plenty (2^47 bytes) but not endless, so many spans
become shorter, and there are at most 16,384; a memory that has outgrown its span moves.  Memories
below `MODERATE` bytes need none, as they move in less time than it takes to notice.

Where address space is limited or charged (`ulimit -v`, `ulimit -d`, `vm.overcommit_memory=2`,
Windows), and where the environment says `SASH_SPANS=0`, there are no spans, and memories move when
they grow.
"""

from __future__ import annotations

import mmap
import os
import sys
from typing import Any

import numpy as np

resource: Any
try:
    import resource
except ImportError:  # Windows
    resource = None

__all__ = ["LARGE", "MODERATE", "Span", "reserve"]

#: Bytes up to which a memory is copied as a whole when it grows or shrinks.
MODERATE = 1 << 14
#: Large pages are of so many bytes, mostly.
LARGE_PAGE = 1 << 21
#: Bytes from which a memory is worth large pages, the last of which is charged as a whole.
LARGE = 1 << 22
#: Bytes of address space that all spans share, a quarter of what a process has.
SHARED = 1 << 45

_NORESERVE = {"linux": 0x4000, "darwin": 0x40}
#: The most spans: Linux lets a process have 65,530 mappings, of which others need some too.
MANY = 1 << 14

_reserved = 0  # bytes of all spans; that two threads may miscount them does no harm
_spans = 0


class Span:
    """Reserved address space; it is given back when no array on it is left."""

    def __init__(self, size: int) -> None:
        global _reserved, _spans
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE.get(sys.platform, 0)
        self._map = mmap.mmap(-1, size, flags=flags)
        self.size = size
        self._large: bool | None = None
        self.use_large_pages(False)
        _reserved += size
        _spans += 1
        self._words: np.ndarray[Any, Any] = np.frombuffer(self._map, dtype=np.int64)

    def __del__(self) -> None:
        global _reserved, _spans
        if hasattr(self, "size"):
            _reserved -= self.size
            _spans -= 1

    def words(self, count: int) -> np.ndarray[Any, Any] | None:
        """The first words of the span as an array; None if the span is too short."""
        return self._words[:count] if 8 * count <= self.size else None

    def give_back(self, start: int, end: int) -> int:
        """Give back the pages that lie wholly between two words; later they read as anything.
        Returns the word up to which that is done."""
        page = mmap.PAGESIZE
        first, last = -(-8 * start // page) * page, 8 * end // page * page
        if first >= last:
            return start
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED, first, last - first)
        return last // 8

    def use_large_pages(self, wanted: bool) -> None:
        """Say whether pages touched from now on may be large ones.  They make a walk through a
        large memory faster, and the first touch of each takes a few hundred microseconds, as all
        of it is cleared: right for calls with many rows, wrong for single ones."""
        if wanted == self._large:
            return
        self._large = wanted
        advice = getattr(mmap, "MADV_HUGEPAGE" if wanted else "MADV_NOHUGEPAGE", None)
        if advice is not None:
            try:
                self._map.madvise(advice)
            except OSError:  # a system without large pages
                return


def reserve(needed: int) -> Span | None:
    """A span for a memory that takes so many bytes now; None if there can be none here."""
    if not _FREE or needed > _PHYSICAL or _spans >= MANY or _limited():
        return None
    size = min(_PHYSICAL, max(64 * needed, (SHARED - _reserved) // 64))
    try:
        return Span(-(-size // LARGE_PAGE) * LARGE_PAGE)
    except (OSError, ValueError, MemoryError):
        return None


def _costs_nothing() -> bool:
    """Whether pages that nobody has touched cost nothing."""
    if resource is None or not hasattr(mmap, "MAP_ANONYMOUS") or sys.maxsize < 2**47:
        return False
    try:
        with open("/proc/sys/vm/overcommit_memory") as file:
            return file.read().strip() != "2"
    except OSError:
        return sys.platform in _NORESERVE


def _memory() -> int:
    """The machine's memory in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 34


# Found out here, and not by the first insertion that needs a span.
_FREE, _PHYSICAL = _costs_nothing(), _memory()


def _limited() -> bool:
    """Whether what is reserved would be missing elsewhere in the process, or be charged by who
    counts address space, which only the user can know."""
    if os.environ.get("SASH_SPANS", "1") == "0":
        return True
    limits = (resource.RLIMIT_AS, resource.RLIMIT_DATA)
    return any(resource.getrlimit(limit)[0] != resource.RLIM_INFINITY for limit in limits)
