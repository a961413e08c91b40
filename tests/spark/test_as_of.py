"""Answers as of a moment on Spark are those of a table in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.testing.rows import rows_of
from sash.testing.streams import stream

pytest.importorskip("pyspark")
import sash.spark
from sash.spark import by_events

Frame = Callable[[Any], Any]

SELECT = {
    "rows": sash.count(),
    "top": sash.max("x"),
    "some": sash.sum("i", where=pc.field("s") == "x"),
    "all": sash.collect("n"),
    "long": sash.count().over("9 seconds"),
}


@pytest.mark.parametrize("known", [None, "w"])
@pytest.mark.parametrize("window", [sash.trailing("5 seconds"), sash.lifetime()], ids=str)
def test_the_rows_are_those_of_a_table(
    frame: Frame, monkeypatch: pytest.MonkeyPatch, window: Any, known: str | None
) -> None:
    monkeypatch.setattr(by_events, "_LEAST", 1)
    monkeypatch.setattr(by_events, "_TIMES", 1)
    events = stream("disorder", 90)
    at = [t + 10**5 * (n % 5 - 2) for n, t in enumerate(events["t"].cast(pa.int64()).to_pylist())]
    asked = pa.table(
        {
            "k": [*events["k"].to_pylist()[:80], *["nobody"] * 10],
            "asked at": pa.array(at, pa.timestamp("us", "UTC")),
            "id": range(90),
        }
    )
    q = sash.Query(time="t", by=["k"], tie="n", window=window, select=SELECT)
    got = sash.spark.at(frame(events), frame(asked), q, time="asked at", known=known)
    right = q.at(events, asked, time="asked at", known=known)
    assert got.columns == right.column_names
    rows = sorted(rows_of(got.toArrow()), key=lambda row: row["id"])
    assert [repr(row) for row in rows] == [repr(row) for row in rows_of(right)]


def test_what_cannot_be_asked_is_refused(frame: Frame) -> None:
    events, asked = frame(stream("ties", 5)), frame(pa.table({"k": ["a"], "at": [1]}))
    q = sash.Query(time="t", by=["k"], window=sash.trailing(5), select={"many": sash.count()})
    with pytest.raises(ValueError, match="'many'"):
        sash.spark.at(events, asked.withColumnRenamed("k", "Many"), q, time="at")
    with pytest.raises(KeyError, match="no column 'when'"):
        sash.spark.at(events, asked, q, time="when")
    with pytest.raises(KeyError, match="no column 'seen'"):
        sash.spark.at(events, asked, q, time="at", known="seen")
    with pytest.raises(TypeError, match="cast one of them"):
        sash.spark.at(events, frame(pa.table({"k": [1], "at": [1]})), q, time="at")
    q = sash.Query(time="t", window=sash.tumbling(5), select={"many": sash.count()})
    with pytest.raises(ValueError, match="a question is about the time up to a moment"):
        sash.spark.at(events, asked, q, time="at")
