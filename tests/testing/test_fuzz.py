"""The fuzzer finds what is wrong, makes it small, and repeats a case by its number."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from sash.aggregators import DabaLite, Fiba
from sash.engine.stream import Stream
from sash.testing.fuzz import TARGETS, StreamCase, WindowCase, search, smallest
from sash.testing.fuzz.__main__ import main


@pytest.mark.parametrize("target", TARGETS)
def test_a_case_is_the_same_for_the_same_number(target: str) -> None:
    for number in range(20):
        first, again = (TARGETS[target].draw(Random(number)) for _ in range(2))
        assert repr(first) == repr(again)


@pytest.mark.parametrize("target", TARGETS)
def test_no_difference(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--target", target, "--minutes", "0.05", "--seed", "7"]) == 0
    assert "no difference found" in capsys.readouterr().out


def test_a_wrong_answer_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """An aggregator that forgets what it holds when the third value leaves."""
    right = DabaLite.query
    monkeypatch.setattr(DabaLite, "query", lambda self: None if len(self) == 3 else right(self))
    cases = [WindowCase.draw(Random(i)) for i in range(200)]
    failing = [c for c in cases if c.window == "DabaLite({})" and c.problem()]
    assert failing
    small = failing[0].smaller(lambda c: c.problem() is not None)
    assert [s[0] for s in small.steps].count("query") == 1
    assert small.operations <= 5
    assert "is not the answer over" in (small.problem() or "")


def test_a_lost_value_of_a_bulk_insertion_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Fiba.bulk_insert

    def lossy(self: Fiba, times: Any, values: Any) -> None:
        right(self, times[: 2**5], values if isinstance(values, tuple) else values[: 2**5])

    case = WindowCase(
        "Fiba({})",
        "operators.sum.of(int)",
        (("insert", 1, 1), ("bulk_insert", list(range(40)), [1] * 40), ("query",)),
    )
    assert case.problem() is None
    monkeypatch.setattr(Fiba, "bulk_insert", lossy)
    small = case.smaller(lambda c: c.problem() is not None)
    assert [s[0] for s in small.steps] == ["bulk_insert", "query"]


def test_a_stream_that_loses_rows_is_found_and_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a batch of more than two rows the last one is lost."""
    right = Stream.push

    def lossy(self: Stream, batch: Any) -> Any:
        return right(self, batch.slice(0, batch.num_rows - 1) if batch.num_rows > 2 else batch)

    monkeypatch.setattr(Stream, "push", lossy)
    _, _, found = search(StreamCase, seed=3, cases=50)
    assert found is not None
    assert isinstance(found.case, StreamCase)
    assert len(found.case.rows) == 3
    names: dict[str, Any] = {}
    exec(found.case.as_test(), names)
    with pytest.raises(AssertionError):
        names["test_found_by_fuzzing"]()
    monkeypatch.undo()
    names["test_found_by_fuzzing"]()
    assert main(["--target", "streams", "--case", str(found.number), "--seed", "3"]) == 0


def test_smallest() -> None:
    assert smallest([3, 1, 2], lambda xs: True) == []
    assert smallest("abcabc", lambda xs: xs.count("a") == 2) == ["a", "a"]


def test_a_case_needs_a_target(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--case", "3"])
    assert "--case needs --target" in capsys.readouterr().err
