"""Windows that hold nothing, on Spark: the rows that brute force has, over tables and streams."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sash
from sash.testing.queries import answers, differences
from sash.testing.streams import batches, stream

pytest.importorskip("pyspark")
import sash.spark

from .test_streaming import START, Stream, events, last_one

Frame = Callable[[Any], Any]
SECOND = 1_000_000
SELECT = {"n": sash.count(), "total": sash.sum("i"), "top": sash.max("x")}


def test_tables(frame: Frame) -> None:
    """Gaps of many windows, which stretches would cut."""
    table = stream("gaps", 120)
    short = sash.tumbling("0.1 seconds", empty="zero", idle="3 minutes")
    pairs = sash.sliding("7 seconds", "3 seconds", empty="zero")
    for window, ways in ((short, ("spark", "rows")), (pairs, ("python",))):
        q = sash.Query(time="t", by=["k"], window=window, select=SELECT)
        right = answers(q, table)
        for slices in ways:
            got = sash.spark.aggregate(frame(table), q, slices=slices)  # type: ignore[arg-type]
            assert not differences(q, right, got.toArrow(), ordered=False), slices


def test_streams(spark: Any, tmp_path: Path) -> None:
    files = Stream(spark, tmp_path)
    table = events("gaps", 90)
    files.write(*batches(table, seed=3, least=40, most=50), last_one(table))
    window = sash.sliding("7 seconds", "3 seconds", empty="zero", idle="5 minutes")
    q = sash.Query(time="t", by=["k"], window=window, select=SELECT)
    out = sash.spark.aggregate(files.read("1 day"), q, buckets=2)
    given, _ = files.run(out)
    found = given.where(f"unix_micros(window.end) < {START + 10**5 * SECOND}").drop("event_time")
    right = answers(q, table)
    assert any(row["n"] == 0 for row in right)
    assert not differences(q, right, found.toArrow(), ordered=False)
    endless = sash.Query(time="t", window=sash.tumbling(10, empty="zero"), select=SELECT)
    with pytest.raises(ValueError, match="give idle='30 days', say"):
        sash.spark.aggregate(files.read(), endless)
