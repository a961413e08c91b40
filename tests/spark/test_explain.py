"""What `sash.spark.explain` says agrees with the ways that `aggregate` takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import sash
from sash.explain import Explanation
from sash.testing.fuzz.streams import SELECTS
from sash.testing.streams import stream

pytest.importorskip("pyspark")
import sash.spark

SAMPLE = stream("disorder", 60, plain=True)


def query(window: Any, select: str = "numbers", **more: Any) -> sash.Query:
    return sash.Query(time="t", by=["k"], window=window, select=SELECTS[select], **more)


def warned(found: Explanation, text: str) -> bool:
    return any(text in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("window", "select", "slices"),
    [
        (sash.tumbling("5 s"), "numbers", "auto"),
        (sash.sliding("10 s", "2 s"), "numbers", "spark"),
        (sash.sliding("10 s", "2 s"), "numbers", "python"),
        (sash.sliding("10 s", "2 s"), "in order", "auto"),
        (sash.session("3 s"), "numbers", "auto"),
    ],
)
def test_a_table_is_explained_by_the_way_that_it_takes(
    frame: Callable[[Any], Any], window: Any, select: str, slices: Any
) -> None:
    df, q = frame(SAMPLE), query(window, select)
    found, way = sash.spark.explain(df, q, slices=slices), sash.spark.way(df, q, slices)
    assert found.steps[0].why == way.why
    assert found.place == "sash.spark.aggregate, over a table"
    assert str(found)


def test_a_key_with_a_map_is_explained(frame: Callable[[Any], Any]) -> None:
    maps = pa.array(
        [[("a", n % 3)] for n in range(SAMPLE.num_rows)], pa.map_(pa.string(), pa.int64())
    )
    q = sash.Query(
        time="t", by=["m"], window=sash.sliding("10 s", "2 s"), select=SELECTS["numbers"]
    )
    assert sash.spark.explain(frame(SAMPLE.append_column("m", maps)), q).steps[0].why


def test_a_hot_key_and_an_order_that_nothing_settles_are_warned_of(
    frame: Callable[[Any], Any],
) -> None:
    df = frame(SAMPLE)
    assert warned(sash.spark.explain(df, query(sash.lifetime())), "a hot key cannot be split")
    assert not warned(sash.spark.explain(df, query(sash.trailing("5 s"))), "hot key")
    assert not sash.spark.explain(df, query(sash.sliding("10 s", "2 s"))).warnings
    ordered = query(sash.sliding("10 s", "2 s"), "in order")
    assert warned(sash.spark.explain(df, ordered), "on Spark those of one key and time have none")
    tied = query(sash.sliding("10 s", "2 s"), "in order", tie="n")
    assert not sash.spark.explain(df, tied).warnings


def test_a_stream_is_explained_before_it_starts(spark: Any) -> None:
    rate = spark.readStream.format("rate").load().withWatermark("timestamp", "1 minute")
    counts = {"n": sash.count(), "top": sash.max("value")}
    q = sash.Query(time="timestamp", window=sash.sliding("1 minute", "1 s"), select=counts)
    found = sash.spark.explain(rate, q, lateness="1 hour")
    assert found.steps[0].what.startswith("rows are combined into slices before the shuffle")
    assert "records in Spark's state store" in found.steps[1].what
    assert "tiles in Spark's state" in found.costs.words
    assert warned(found, "a lateness of 1 hour keeps 3,660 slices a key, where windows need 60")
    for asked in (q, sash.share({"q": q})):
        own, same, none = (
            sash.spark.explain(rate, asked, lateness=lateness).to_dict()
            for lateness in (None, "1 minute", 0)
        )
        assert own == same != none
    with_late = sash.spark.explain(rate, q, late=True)
    assert with_late.steps[0].what == "rows are shuffled as they are"
    assert warned(with_late, "a hot key cannot be split")
    with pytest.raises(ValueError, match="slices='spark' cannot be had for this query: the slices"):
        sash.spark.explain(rate, q, slices="spark")
    with pytest.raises(ValueError, match="slices is one of auto, spark, python, rows, not 'no'"):
        sash.spark.explain(rate, q, slices="no")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"for a stream, sash\.spark\.explain says how it runs"):
        sash.spark.way(rate, q)
    lifetime = sash.Query(time="timestamp", window=sash.lifetime(), select=counts)
    with pytest.raises(ValueError, match="a lifetime keeps one partial a key"):
        sash.spark.explain(rate, lifetime, mode="live")
