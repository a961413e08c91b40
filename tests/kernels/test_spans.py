"""Spans of address space."""

from __future__ import annotations

import mmap

import pytest

from sash.kernels import spans
from sash.kernels.spans import LARGE_PAGE, Span, reserve


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
    span.give_back(page // 2, 3 * page + page // 2)
    assert words[:page].all()
    assert words[3 * page :].all()
    span.give_back(page + 1, 2 * page)  # no whole page
    assert words[2 * page - 1] in (0, 1)


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
    with monkeypatch.context() as patch:
        patch.setattr(spans, "_spans", spans.MANY)
        assert reserve(1 << 16) is None
    with monkeypatch.context() as patch:
        patch.setattr(spans, "_FREE", False)
        assert reserve(1 << 16) is None
    with monkeypatch.context() as patch:
        patch.setattr(spans, "Span", _refused)
        assert reserve(1 << 16) is None


def _refused(size: int) -> Span:
    raise OSError("no address space left")
