"""The chooser: what it takes for which window, and that it says why."""

from __future__ import annotations

import pytest

from sash import operators as ops
from sash.aggregators import (
    Amta,
    DabaLite,
    Fiba,
    SubtractOnEvict,
    Timed,
    TwoStacksLite,
    choose,
)


def test_each_need_has_its_aggregator() -> None:
    assert choose(ops.max).aggregator is TwoStacksLite
    assert choose(ops.max, no_pauses=True).aggregator is DabaLite
    assert choose(ops.sum.of(int)).aggregator is SubtractOnEvict
    assert choose(ops.sum.of(float)).aggregator is TwoStacksLite
    assert choose(ops.sum.of(int), bulk=True).aggregator is Amta
    assert choose(ops.collect, policy=True, timed=True).aggregator is Amta
    assert choose(ops.max, in_order=False, bulk=True).aggregator is Fiba


def test_a_time_window_with_bulk_eviction() -> None:
    window = choose(ops.concat, timed=True, bulk=True).make(ops.concat)
    assert isinstance(window, Timed)
    assert isinstance(window.fifo, Amta)
    window.bulk_insert([1, 2, 2, 5], ["a", "b", "c", "d"])
    window.bulk_evict(2)
    assert window.query() == "d"
    assert isinstance(choose(ops.max, in_order=False, timed=True).make(ops.max), Fiba)


def test_every_choice_names_itself_and_its_reason() -> None:
    for given in ({}, {"bulk": True}, {"policy": True}, {"in_order": False}, {"no_pauses": True}):
        for op in (ops.max, ops.count):
            choice = choose(op, **given)  # type: ignore[arg-type]
            name, _, reason = choice.reason.partition(": ")
            assert name == choice.aggregator.__name__
            assert len(reason) > 10


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(TypeError, match=r"needs an operator.*not 'max'"):
        choose("max")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="needs values in order"):
        choose(ops.max, in_order=False, policy=True)
