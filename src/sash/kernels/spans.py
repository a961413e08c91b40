"""Reserves address space, in which memories grow without moving.

If a large memory moves when it grows, one operation waits until all of it is copied: 100 ms and
more for some million partials.  A span is address space that the process reserves and does not use
yet.  The system provides a page when the process first touches it, in about a microsecond.  So a
memory at the start of a span grows without a copy: only its recorded length changes.  A memory
that shrinks gives pages back in pieces.

A span is as long as the machine's memory.  That costs nothing: the system charges only for pages
that the process has touched.  Address space is plenty (2^47 bytes) but not endless, so spans become
shorter when there are many, and there are at most 16,384; a memory that has outgrown its span
moves.  Memories below `MODERATE` bytes need no span, as nobody notices their moves.

Where address space is limited or charged (`ulimit -v`, `ulimit -d`, `vm.overcommit_memory=2`,
Windows), and where the environment says `SASH_SPANS=0`, there are no spans, and memories move when
they grow.
"""

from __future__ import annotations

import mmap
import os
import sys
from contextlib import suppress
from typing import Any

import numpy as np

resource: Any
try:
    import resource
except ImportError:  # Windows
    resource = None

__all__ = ["LARGE", "MODERATE", "Span", "reserve", "room"]

#: A memory of up to so many bytes has no span: a core copies all of it when it grows or shrinks.
MODERATE = 1 << 14
#: The usual size of a large page, in bytes.
LARGE_PAGE = 1 << 21
#: From so many bytes on, a memory uses large pages; the system charges for the whole last page.
LARGE = 1 << 22
#: From so many bytes on, an array of `room` has pages of its own.
OWN_PAGES = 1 << 20
#: The address space that all spans share, in bytes: a quarter of the address space of a process.
SHARED = 1 << 45

_NORESERVE = {"linux": 0x4000, "darwin": 0x40}
#: The most spans: Linux lets a process have 65,530 mappings, and other code needs some of them.
MANY = 1 << 14

_reserved = 0  # bytes of all spans; if two threads miscount them, no harm is done
_spans = 0


class Span:
    """Reserved address space.  The process frees it when no array on it is left."""

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
        """Give back the pages that lie wholly between two words; their content is undefined from
        then on.  Return the word after the last of these pages."""
        page = mmap.PAGESIZE
        first, last = -(-8 * start // page) * page, 8 * end // page * page
        if first >= last:
            return start
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED, first, last - first)
        return last // 8

    def use_large_pages(self, wanted: bool) -> None:
        """Allow or forbid large pages for memory that the process touches from now on.  They make a
        walk through a large memory faster, but the first touch of each takes a few hundred
        microseconds, as the system clears all of it: right for calls with many rows, wrong for
        calls with one."""
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
    """Reserve a span for a memory that takes so many bytes now; None if the system, the environment
    or the number of spans forbids it."""
    if not _FREE or needed > _PHYSICAL or _spans >= MANY or _limited():
        return None
    size = min(_PHYSICAL, max(64 * needed, (SHARED - _reserved) // 64))
    try:
        return Span(-(-size // LARGE_PAGE) * LARGE_PAGE)
    except (OSError, ValueError, MemoryError):
        return None


def room(count: int, kind: Any) -> np.ndarray[Any, Any]:
    """An array of so many items, for the results of a kernel.  A large one has pages of its own,
    which the system gets back as soon as the array is freed.  malloc would keep them: where threads
    had answered pieces of a table, that was half as much memory again as the table takes.

    >>> room(3, np.float64).shape
    (3,)
    """
    kind = np.dtype(kind)
    size = count * kind.itemsize
    if size < OWN_PAGES or not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.empty(count, dtype=kind)
    large = size >= LARGE
    if large:  # the system aligns what is whole large pages to them
        size = -(-size // LARGE_PAGE) * LARGE_PAGE
    try:
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError):  # malloc may still have room, and else raises a MemoryError
        return np.empty(count, dtype=kind)
    if large and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a system without large pages
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype=kind, count=count)


def _costs_nothing() -> bool:
    """True if the system does not charge for pages that nobody has touched."""
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


# Found out at import, so that no insertion has to wait for it.
_FREE, _PHYSICAL = _costs_nothing(), _memory()


def _limited() -> bool:
    """True if the process has a limit on address space, which spans would use up, or if the user
    has set SASH_SPANS to 0, because something else on the machine charges for address space."""
    if os.environ.get("SASH_SPANS", "1") == "0":
        return True
    limits = (resource.RLIMIT_AS, resource.RLIMIT_DATA)
    return any(resource.getrlimit(limit)[0] != resource.RLIM_INFINITY for limit in limits)
