"""Panes, pairs and Cutty against their definitions, each other, and the papers' counts."""

from __future__ import annotations

import random
from math import gcd
from typing import Any

import pytest

import sash
from sash.slicing.techniques import choose_slicing, cutty, pairs, panes

RANDOM = random.Random(0)
SIZES = [(r, s) for r in range(1, 25) for s in range(1, r + 1)]


def windows_of(size: int, every: int, offset: int = 0) -> list[tuple[int, int]]:
    """The windows around 0 … 100, by definition."""
    return [(n * every + offset, n * every + offset + size) for n in range(-60, 160)]


def cuts(edges: Any, low: int = 0, high: int = 80) -> set[int]:
    """The times at which a new slice begins, by brute force."""
    return {t for t in range(low + 1, high) if edges.number(t) != edges.number(t - 1)}


@pytest.mark.parametrize("seed", range(40))
def test_cuts_are_where_the_definitions_have_them(seed: int) -> None:
    source = random.Random(seed)
    size = source.randint(1, 20)
    every = source.randint(1, size)
    offset = source.randrange(every)
    window = sash.sliding(size, every, offset)
    spans = windows_of(size, every, offset)
    starts = {a for a, _ in spans if 0 < a < 80}
    ends = {b for _, b in spans if 0 < b < 80}
    assert cuts(cutty(window).edges) == starts
    assert cuts(pairs(window).edges) == starts | ends
    step = gcd(size, every)
    assert cuts(panes(window).edges) == {t for t in range(1, 80) if (t - offset) % step == 0}


@pytest.mark.parametrize("made", [panes, pairs])
def test_events_of_a_closed_slice_are_in_the_same_windows(made: Any) -> None:
    for size, every in RANDOM.sample(SIZES, 40):
        edges, spans = made(sash.sliding(size, every)).edges, windows_of(size, every)
        held: dict[int, set[int]] = {}
        for t in range(60):
            here = {i for i, (a, b) in enumerate(spans) if a <= t < b}
            assert held.setdefault(edges.number(t), here) == here


def test_slices_of_a_window_are_as_many_as_the_papers_count() -> None:
    """FlatFIT, section 2.1, with Cutty's count for a slide that divides the size put right."""
    for size, every in SIZES:
        window = sash.sliding(size, every)
        divides = size % every == 0
        many = [made(window).per_window(window) for made in (panes, pairs, cutty)]
        by_panes = size // gcd(size, every)
        by_pairs = size // every if divides else 2 * (size // every) + 1
        by_cutty = size // every if divides else size // every + 1
        assert many == [by_panes, by_pairs, by_cutty]
        assert many[2] <= many[1] <= many[0]


def test_pairs_have_the_lengths_of_the_paper() -> None:
    """f1 = range % slide and f2 = slide - f1, in turn."""
    for size, every in SIZES:
        if size % every:
            edges = pairs(sash.sliding(size, every)).edges
            assert edges.cuts == (0, size % every)
            assert edges.cycle - edges.cuts[1] == every - size % every


def test_cumulating_windows_and_calendars_are_cut_too() -> None:
    window = sash.cumulate(6, 2)
    assert [made(window).edges.cycle for made in (panes, pairs, cutty)] == [2, 2, 6]
    assert [made(window).per_window(window) for made in (panes, pairs, cutty)] == [3, 3, 1]
    month = sash.sliding("1 month", "1 day", timezone="Europe/Berlin")
    assert panes(month).edges == pairs(month).edges == cutty(month).edges


def test_cutty_is_for_events_in_order() -> None:
    window = sash.sliding(5, 2)
    assert choose_slicing(window, "cutty", in_order=True).reads_open
    with pytest.raises(ValueError, match="in order of time"):
        choose_slicing(window, "cutty", in_order=False)
    with pytest.raises(ValueError, match="'panes', 'pairs' or 'cutty', not 'slices'"):
        choose_slicing(window, "slices", in_order=True)
