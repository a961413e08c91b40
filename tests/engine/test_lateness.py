"""`sash.lateness` says of every row what a stream that is fed row by row does with it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.engine.lateness import LEVELS, arrivals, judged
from sash.testing.fuzz.streams import SELECTS
from sash.testing.streams import WINDOWS, stream
from sash.windows import Window

pytestmark = pytest.mark.plain

SECOND = 1_000_000
ALIGNED: list[Window] = [*WINDOWS, sash.tumbling("1 day", timezone="Europe/Berlin")]
BY_EVENTS: list[Window] = [
    sash.trailing("5 seconds"),
    sash.lifetime(),
    sash.rows(4),
    sash.delta("i", 3),
    sash.window(keep=sash.rows(3), every="2 seconds"),
    sash.session("3 seconds", max_size="9 seconds"),
]
SESSIONS: list[Window] = [sash.session(g) for g in ("1 second", "3 seconds", "20 seconds")]
ALLOWED = (0, SECOND, 5 * SECOND + 1, 100 * SECOND)


def fed(query: sash.Query, table: pa.Table, allowance: int) -> tuple[list[str], int]:
    """What a stream that is fed row by row makes of each row, and how many slices of a group of
    aggregates it has at most."""
    s = query.stream(lateness=allowance)
    made, most = [], 0
    for i in range(table.num_rows):
        before = s.counts
        s.push(table.slice(i, 1))
        now = s.counts
        grown = [name for name in ("late", "partly_late") if now[name] > before[name]]
        made.append(grown[0] if grown else "")
        most = max(most, s.state_size()["slices"] // len(s._plan.groups))
    return made, most


def said(query: sash.Query, table: pa.Table, allowance: int) -> list[str]:
    """What `lateness` says of each row."""
    some, all_ = judged(arrivals(table, query)).rows(allowance)
    made = [""] * table.num_rows
    for rows, name in ((some, "partly_late"), (all_, "late")):
        for row in rows.tolist():
            made[row] = name
    return made


Counts = Callable[[pa.Table, sash.Query, int], list[int]]


def check(query: sash.Query, table: pa.Table, kept: Counts | None = None) -> None:
    """Compare with a stream; what is kept with its slices, or with other counts."""
    found = sash.lateness(table, query, allowances=ALLOWED).to_pylist()
    for allowance, row in zip(ALLOWED, found, strict=True):
        made, most = fed(query, table, allowance)
        assert said(query, table, allowance) == made
        assert (row["late"], row["partly_late"]) == (made.count("late"), made.count("partly_late"))
        assert row["kept"] == (most if kept is None else max(kept(table, query, allowance)))


@pytest.mark.parametrize("i", range(len(ALIGNED)), ids=map(repr, ALIGNED))
def test_aligned_windows(i: int) -> None:
    query = sash.Query(time="t", by=["k"], window=ALIGNED[i], select={"n": sash.count()})
    check(query, stream(("disorder", "keys come and go")[i % 2], 30))


@pytest.mark.parametrize("select", ["in order", "objects"])
def test_entries_that_are_times(select: str) -> None:
    window = sash.sliding("10 seconds", "2 seconds")
    query = sash.Query(time="t", by=["k"], window=window, select=SELECTS[select])
    check(query, stream("ties", 30))


def waiting(table: pa.Table, query: sash.Query, allowance: int) -> list[int]:
    """How many rows that are not late wait for the watermark, after each row."""
    times = table["t"].cast(pa.int64()).to_pylist()
    late = said(query, table, allowance)
    counts = []
    for i in range(len(times)):
        watermark = max(times[: i + 1]) - allowance
        counts.append(sum(times[j] >= watermark and not late[j] for j in range(i + 1)))
    return counts


@pytest.mark.parametrize("window", BY_EVENTS, ids=repr)
def test_windows_that_events_make(window: Window) -> None:
    query = sash.Query(time="t", by=["k"], window=window, select={"n2": sash.count()})
    check(query, stream("disorder", 25, plain=True), waiting)


def open_sessions(table: pa.Table, query: sash.Query, allowance: int) -> list[int]:
    """How many sessions that rows which are not late make are not closed, after each row."""
    late = np.array(said(query, table, allowance)) == "late"
    times = table["t"].cast(pa.int64()).to_numpy()
    counts = []
    for i in range(len(late)):
        rows = pa.array(np.flatnonzero(~late[: i + 1]))
        made = query.run(table.take(rows))["window_end"].cast(pa.int64()).to_numpy()
        counts.append(int((made >= times[: i + 1].max() - allowance).sum()))
    return counts


@pytest.mark.parametrize("kind", ["disorder", "ties"])
@pytest.mark.parametrize("window", SESSIONS, ids=repr)
def test_sessions(window: Window, kind: str) -> None:
    query = sash.Query(time="t", by=["k"], window=window, select={"n": sash.count()})
    check(query, stream(kind, 24), open_sessions)


def test_gaps_in_a_column() -> None:
    table = stream("disorder", 30, plain=True)
    gaps = pa.array([(i % 4) * SECOND for i in range(30)])
    table = table.append_column("gap", gaps)
    query = sash.Query(time="t", window=sash.session("gap"), select={"n": sash.count()})
    usable = table.filter(pc.field("gap") > 0)
    check(query, usable, waiting)
    assert sash.lateness(table, query).equals(sash.lateness(usable, query))


def test_a_condition_and_another_order() -> None:
    table = stream("disorder", 80, plain=True)
    query = sash.Query(
        time="t",
        by=["k"],
        window=sash.sliding("6 seconds", "2 seconds"),
        select={"n2": sash.count()},
        where=pc.field("x") > 0,
    )
    kept = table.filter(pc.field("x") > 0)
    check(query, kept)
    expected = sash.lateness(kept, query)
    assert sash.lateness(table, query).equals(expected)
    mixed = table.take(pa.array(np.random.default_rng(1).permutation(80)))
    assert sash.lateness(mixed, query, arrived="n").equals(expected)


def test_allowances_are_quantiles_of_rows_out_of_order() -> None:
    times = [0, 100, *range(50, 90), 200]
    table = pa.table({"t": times})
    query = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
    found = sash.lateness(table, query)
    late = np.sort(arrivals(table, query).delays())
    assert late.tolist() == list(range(11, 51))
    allowances = [d // timedelta(microseconds=1) for d in found["allowance"].to_pylist()]
    assert allowances[0] == 0
    assert allowances[-1] == 50
    assert allowances == sorted(set(allowances))
    assert set(allowances) <= {0, *late.tolist()}
    assert len(LEVELS) == 20
    assert found["late"].to_pylist()[-1] == 0
    assert set(found["rows"].to_pylist()) == {43}


def test_the_same_kind_of_table_comes_back() -> None:
    query = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
    values = {"t": [5, 25, 3]}
    assert isinstance(sash.lateness(pd.DataFrame(values), query), pd.DataFrame)
    assert isinstance(sash.lateness(pl.DataFrame(values), query), pl.DataFrame)
    for none in ([], [1]):
        found = sash.lateness(pa.table({"t": pa.array(none, pa.int64())}), query).to_pylist()
        many = len(none)
        assert [(row["rows"], row["late"], row["kept"]) for row in found] == [(many, 0, many)]


def test_what_cannot_be_used_is_refused() -> None:
    query = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
    table = pa.table({"t": [1, 2], "a": [None, 1]})
    with pytest.raises(ValueError, match=r"1 row.* no value in 'a'"):
        sash.lateness(table, query, arrived="a")
    with pytest.raises(KeyError, match="'b', which is not there"):
        sash.lateness(table, query, arrived="b")
    with pytest.raises(ValueError, match="from 0 on"):
        sash.lateness(table, query, allowances=[-1])
    with pytest.raises(ValueError, match=r"time, in column 't', is null"):
        sash.lateness(pa.table({"t": [1, None]}), query)
    with pytest.raises(TypeError, match=r"a sash\.Query"):
        sash.lateness(table, "query")


@pytest.mark.plain
@pytest.mark.parametrize("size", [3, 35])
def test_several_sizes_in_a_row(size: int) -> None:
    """An event counts for as long as the longest size reaches back to it."""
    select = {"n": sash.count(), "m": sash.count().over(size)}
    q = sash.Query(time="t", window=sash.tumbling(10), select=select)
    times = [4, 8, 16, -2, 28, -2, 32]
    s = q.stream()
    for t in times:
        s.push({"t": t})
    made = sash.lateness(pa.table({"t": times}), q, allowances=[0]).to_pylist()[0]
    assert {n: made[n] for n in ("late", "partly_late")} == {
        n: s.counts[n] for n in ("late", "partly_late")
    }
