"""Times that are whole numbers: a counter is as good as a time, and seconds are warned of."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sash

pytestmark = pytest.mark.plain

NOW = 1_770_000_000
LONG: list[Any] = [
    sash.tumbling("1 hour"),
    sash.cumulate("1 day", "1 hour"),
    sash.tumbling("1 month", timezone="Europe/Berlin"),
    sash.trailing("10 minutes"),
    sash.session("30 seconds"),
    sash.window(keep="1 hour", every=sash.rows(2)),
    sash.window(keep=sash.rows(2), every="1 hour"),
]
#: Windows of those who count seconds or milliseconds on purpose, or whose windows have no length.
OWN: list[Any] = [
    sash.sliding(3600, 60),
    sash.tumbling(86_400_000),
    sash.session(1800),
    sash.rows(3),
    sash.lifetime(),
]


def query(window: Any) -> sash.Query:
    return sash.Query(time="t", by=["k"], window=window, select={"n": sash.count()})


def table(unit: int, first: int = NOW) -> pa.Table:
    return pa.table({"t": (first + np.arange(3)) * unit, "k": [*"aab"]})


@pytest.mark.parametrize(("unit", "name"), [(1, "seconds"), (1000, "milliseconds")])
@pytest.mark.parametrize("window", LONG, ids=repr)
def test_seconds_since_1970_are_warned_of(window: Any, unit: int, name: str) -> None:
    q, given = query(window), table(unit)
    text = f"the times in column 't' look like {name} since 1970, and sash reads whole numbers as"
    with pytest.warns(RuntimeWarning, match=text) as caught:
        q.run(given)
    assert {one.filename for one in caught} == {__file__}
    s = q.stream()
    with pytest.warns(RuntimeWarning, match=text) as caught:
        s.push(given)
    assert caught[0].filename == __file__
    s.push(given)  # a warning would be an error
    cautions = q.explain(given).warnings
    assert any("'t' are whole numbers (int64)" in text for text in cautions)


@pytest.mark.parametrize("window", LONG, ids=repr)
def test_what_the_warning_says_helps(window: Any) -> None:
    kind = pa.timestamp("s")
    given = table(1).set_column(0, "t", table(1)["t"].cast(kind))
    found = query(window).run(given)
    assert found["window_end"].to_pylist()[0].year == 2026
    assert not any("whole numbers" in text for text in query(window).explain(given).warnings)


@pytest.mark.parametrize("window", OWN, ids=repr)
@pytest.mark.parametrize("unit", [1, 1000])
def test_a_counter_is_legal(window: Any, unit: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        query(window).run(table(unit))
        query(window).stream().push(table(unit))
    assert not any("whole numbers" in text for text in query(window).explain(table(1)).warnings)


@pytest.mark.parametrize(
    "given",
    [
        table(1_000_000),
        table(1, first=0),
        pa.table({"t": [1_000_000_000, 1_500_000_001, 2_000_000_000], "k": [*"aab"]}),
        table(1, first=25 * 10**8),
        pa.table({"t": [0, NOW], "k": ["a", "a"]}),
        pa.table({"t": pa.array([], pa.int64()), "k": pa.array([], pa.string())}),
        table(1).set_column(0, "t", table(1)["t"].cast(pa.timestamp("us"))),
    ],
    ids=["microseconds", "from 0", "whole seconds", "far", "one is", "none", "timestamps"],
)
def test_other_times_are_not_warned_of(given: pa.Table) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        query(sash.tumbling("1 hour")).run(given)
        query(sash.tumbling("1 hour")).stream().push(given)


def test_shared_queries_and_statements_are_warned_too() -> None:
    q = query(sash.tumbling("1 hour"))
    shared = sash.share({"rows": query(sash.rows(2)), "q": q, "other": q})
    statement = sash.sql("SELECT count(*) AS n FROM e GROUP BY window(t, '1 hour')")
    for run in (shared.run, shared.stream().push, statement.run, statement.stream().push):
        with pytest.warns(RuntimeWarning, match="look like seconds since 1970") as caught:
            run(table(1))
        assert {one.filename for one in caught} == {__file__}


def test_a_warning_as_an_error_leaves_the_stream_as_it_was() -> None:
    s = query(sash.tumbling("1 hour")).stream()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="look like seconds"):
            s.push(table(1))
    assert s.counts["rows"] == 0
    s.push(table(1_000_000))
    assert s.counts["rows"] == 3


def test_nanoseconds_are_out_of_range_and_the_error_says_what_to_do() -> None:
    q = query(sash.tumbling("1 hour"))
    with pytest.raises(ValueError, match=r"out of range .* cast nanoseconds to timestamp\('ns'\)"):
        q.run(table(10**9))
    s = q.stream()
    with pytest.warns(RuntimeWarning, match="look like nanoseconds since 1970"):
        s.push(table(10**9))
    assert s.counts["late"] == 3


def test_one_event_as_the_warning_says() -> None:
    s = query(sash.tumbling("1 hour")).stream()
    for i in range(3):
        s.push({"t": np.datetime64(NOW + i, "s"), "k": "a"})
    assert s.close()["window_start"].to_pylist()[0].year == 2026
