"""Spans of address space."""

from __future__ import annotations

import mmap
import resource
from pathlib import Path

import numpy as np
import pytest

from sash.kernels import spans
from sash.kernels.spans import LARGE_PAGE, OWN_PAGES, Span, reserve, room


def test_a_span_grows_in_place() -> None:
    span = reserve(1 << 16)
    assert span is not None
    short = span.words(100)
    assert short is not None
    short[:] = 7
    longer = span.words(1 << 14)
    assert longer is not None
    assert longer.ctypes.data == short.ctypes.data
    assert longer[:100].tolist() == [7] * 100
    assert span.words(span.size // 8 + 1) is None


def test_whole_pages_are_given_back_and_nothing_beside_them() -> None:
    span, page = Span(LARGE_PAGE), mmap.PAGESIZE // 8
    words = span.words(8 * page)
    assert words is not None
    words[:] = 1
    assert span.give_back(page // 2, 3 * page + page // 2) == 3 * page
    assert words[:page].all()
    assert words[3 * page :].all()
    words[page : 2 * page] = 1
    assert span.give_back(page + 1, 2 * page) == page + 1  # no whole page
    assert words[page : 2 * page].all()


def test_spans_become_shorter_as_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "_reserved", spans.SHARED)
    span = reserve(1 << 16)
    assert span is not None
    assert span.size == 64 << 16


def test_address_space_is_counted() -> None:
    before = spans._reserved, spans._spans
    held = [reserve(1 << 16) for _ in range(3)]
    assert spans._reserved > before[0]
    assert spans._spans == before[1] + 3
    held.clear()
    assert (spans._reserved, spans._spans) == before


def test_there_is_no_span_where_it_would_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reserve(1 << 60) is None
    with monkeypatch.context() as patch:
        patch.setattr(spans, "_limited", lambda: True)
        assert reserve(1 << 16) is None
    for limit in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        with monkeypatch.context() as patch:
            patch.setattr(resource, "getrlimit", lambda given, limit=limit: _limits[given == limit])
            assert reserve(1 << 16) is None
    with monkeypatch.context() as patch:
        patch.setenv("SASH_SPANS", "0")
        assert reserve(1 << 16) is None
        patch.setenv("SASH_SPANS", "1")
        assert reserve(1 << 16) is not None
    with monkeypatch.context() as patch:
        patch.setattr(spans, "_spans", spans.MANY)
        assert reserve(1 << 16) is None
    with monkeypatch.context() as patch:
        patch.setattr(spans, "_FREE", False)
        assert reserve(1 << 16) is None
    with monkeypatch.context() as patch:
        patch.setattr(spans, "Span", _refused)
        assert reserve(1 << 16) is None


_limits = ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), (1 << 40, 1 << 40))


def test_pages_are_small_until_large_ones_are_asked_for() -> None:
    """Also where the system gives large ones to everybody (`transparent_hugepage=always`)."""
    maps = Path("/proc/self/smaps")
    if not maps.exists() or not Path("/sys/kernel/mm/transparent_hugepage").exists():
        return
    span = Span(LARGE_PAGE)
    words = span.words(1)
    assert words is not None
    for wanted, flag in ((None, "nh"), (True, "hg"), (False, "nh")):
        if wanted is not None:
            span.use_large_pages(wanted)
        assert flag in _flags(maps.read_text(), words.ctypes.data)


def test_pages_of_a_large_array_go_back_when_it_is_freed() -> None:
    """Also if a later one is still there: malloc gives back only what lies after all others."""
    status = Path("/proc/self/statm")
    if not status.exists():
        return
    words = OWN_PAGES // 4

    def held() -> int:
        return mmap.PAGESIZE * int(status.read_text().split()[1])

    np.empty(8 * words)  # from now on, malloc would keep arrays as large as the ones below
    made = [room(words, np.int64) for _ in range(32)]
    for array in made:
        array[:] = 1
    before = held()
    del made[:-1], array
    assert before - held() > 30 * 8 * words


def test_a_small_array_has_no_pages_of_its_own() -> None:
    assert room(OWN_PAGES - 1, np.uint8).base is None
    assert room(OWN_PAGES, np.uint8).base is not None
    assert room(0, np.float64).dtype == np.float64


def _flags(maps: str, address: int) -> list[str]:
    """The flags of the mapping that an address is in."""
    here = False
    for line in maps.splitlines():
        first, *rest = line.split()
        if not first.endswith(":"):
            start, end = (int(x, 16) for x in first.split("-"))
            here = start <= address < end
        elif here and first == "VmFlags:":
            return rest
    raise AssertionError("there is no such mapping")


def _refused(size: int) -> Span:
    raise OSError("no address space left")
