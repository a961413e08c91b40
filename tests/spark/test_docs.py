"""The tutorial, with its part on Spark."""

from __future__ import annotations

from typing import Any

from test_docs import ROOT, run


def test_the_tutorial(spark: Any, capsys: Any) -> None:
    run(ROOT / "docs" / "tutorial.md", {"__name__": "__main__"}, spark=True)
    said = capsys.readouterr().out
    # of the table a row for each window, and of the stream for each that it has passed the end of
    assert said.count("|JFK   |") == 6 + 4
