"""The same results by panes, pairs and Cutty, over tables."""

from __future__ import annotations

from typing import Any

import pytest

import sash
from sash.explain import Explanation
from sash.testing.fuzz.streams import SELECTS
from sash.testing.queries import answers, differences
from sash.testing.streams import WINDOWS, stream

TECHNIQUES: tuple[Any, ...] = ("panes", "pairs", "cutty")
#: Slides that divide the size and that do not, and windows that start together.
CUT = [*WINDOWS[:5], *WINDOWS[7:], sash.sliding("1 week", "1 day", timezone="Europe/Berlin")]


def query(window: Any, select: str = "numbers", **more: Any) -> sash.Query:
    return sash.Query(time="t", by=["k"], window=window, select=SELECTS[select], **more)


@pytest.mark.plain
@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize("kind", ["disorder", "gaps", "ties", "before 1970"])
def test_every_technique_has_the_rows_of_the_definition(kind: str, technique: Any) -> None:
    table = stream(kind, 80)
    for window in CUT:
        for select in SELECTS:
            q = query(window, select)
            found = q.run(table, slicing=technique)
            assert not differences(q, answers(q, table), found), window


@pytest.mark.plain
@pytest.mark.parametrize("technique", TECHNIQUES)
def test_changes_and_empty_windows_are_the_same(technique: Any) -> None:
    table = stream("gaps", 100)
    for q in (
        query(sash.sliding("7 seconds", "3 seconds"), emit="changes"),
        query(sash.sliding("7 seconds", "3 seconds", empty="zero", idle="1 minute")),
    ):
        assert not differences(q, answers(q, table), q.run(table, slicing=technique))


@pytest.mark.once
@pytest.mark.parametrize("technique", ["panes", "cutty"])
def test_compiled(technique: Any) -> None:
    table = stream("disorder", 300, plain=True)
    q = sash.Query(
        time="t", by=["k"], window=sash.sliding("7 s", "3 s"), select={"y": sash.max("x")}
    )
    assert q.run(table, slicing=technique).equals(q.run(table))


def explained(technique: Any, window: Any) -> Explanation:
    sample = stream("in order", 200, plain=True)
    return query(window).explain(data=sample, slicing=technique)


@pytest.mark.plain
@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize("window", [CUT[1], CUT[2], CUT[3]], ids=repr)
def test_explain_counts_what_each_technique_takes(window: Any, technique: Any) -> None:
    found = explained(technique, window)
    assert found.expected is not None
    assert found.measured is not None
    assert found.expected.rows == found.measured.rows
    assert 1 <= found.expected.combines / found.measured.combines <= 1.6


def test_cutty_makes_half_the_slices_of_pairs_where_the_slide_does_not_divide_the_size() -> None:
    window = sash.sliding("7 seconds", "3 seconds")
    many = {name: query(window).explain(slicing=name).windows.slices for name in TECHNIQUES}
    assert many == {"panes": 7, "pairs": 5, "cutty": 3}


def test_windows_that_events_make_have_no_slices() -> None:
    with pytest.raises(ValueError, match="only windows that are aligned to the clock have slices"):
        query(sash.trailing("5 s")).run(stream("ties", 5), slicing="panes")
    with pytest.raises(ValueError, match="slicing is 'auto', 'panes', 'pairs' or 'cutty'"):
        query(sash.tumbling(5)).run(stream("ties", 5), slicing="slices")  # type: ignore[call-overload]
