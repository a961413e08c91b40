"""Windows of calendars over tables and streams: against brute force, over clock changes of every
kind, and against Polars."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.engine.stream import Stream
from sash.testing.fuzz.streams import SELECTS
from sash.testing.queries import answers, differences, replay, rows_of
from sash.testing.stored import STATES, open_stream
from sash.testing.streams import STREAMS, batches, stream
from sash.windows import Calendar
from thinning import crossed

from .test_stream import check_late, feed, joined, last_revisions, starts_in_order

HOUR = 3_600_000_000

#: Windows, and a time some days before the clock of their zone changes, in hours.
WINDOWS: dict[Calendar, str] = {
    sash.tumbling("1 day", timezone="America/New_York"): "2024-03-09",
    sash.sliding("7 days", "1 day", timezone="America/New_York"): "2024-11-01",
    sash.sliding("1 month", "1 day", timezone="America/Sao_Paulo"): "2018-11-02",
    sash.sliding("5 days", "2 days", timezone="Pacific/Apia"): "2011-12-28",
    sash.sliding("2 weeks", "1 week", timezone="Australia/Lord_Howe"): "2024-04-05",
    sash.tumbling("1 month", timezone="Asia/Kathmandu"): "1985-12-30",
    sash.sliding("2 quarters", "1 quarter", timezone="Africa/Casablanca"): "2024-03-08",
    sash.sliding("2 months", "1 week", timezone="America/St_Johns"): "2006-10-27",
    sash.tumbling("1 year", timezone="Europe/London"): "1969-12-31",
}


def events(kind: str, count: int, since: str, hours: int, **more: Any) -> pa.Table:
    """A stream in which a second takes some hours."""
    table = stream(kind, count, **more)
    start = int(np.datetime64(since, "us").astype(np.int64))
    moved = pc.add(pc.multiply(table["t"].cast(pa.int64()), hours * 3600), start)
    return table.set_column(0, "t", moved.cast(pa.timestamp("us", "UTC")))


def hours_for(window: Calendar) -> int:
    return 6 if window.every.unit == "day" else 60


CASES = [
    (list(SELECTS)[(i + j) % 3], kind, window, since)
    for i, kind in enumerate(k for k in STREAMS if k not in ("short", "bursts"))
    for j, (window, since) in enumerate(WINDOWS.items())
    if (i + j) % 3 == 0
]


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_tables(window: Calendar) -> None:
    kinds, emits = ("disorder", "ties", "gaps"), ("all", "changes")
    turn = list(WINDOWS).index(window)
    for kind, select, emit in crossed(kinds, SELECTS.values(), emits, turn=turn):
        table = events(kind, 60, WINDOWS[window], hours_for(window))
        q = sash.Query(time="t", by=["k"], window=window, select=select, emit=emit)
        assert not differences(q, answers(q, table), q.run(table))


@pytest.mark.thin
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("select", "kind", "window", "since"), CASES, ids=str)
def test_streams(select: str, kind: str, window: Calendar, since: str, state: str) -> None:
    q = sash.Query(time="t", by=["k"], window=window, select=SELECTS[select])
    parts = list(batches(events(kind, 60, since, hours_for(window)), seed=len(kind), most=25))
    lateness = ("0 days", "40 hours", "5000 days")[len(kind) % 3]
    rows, late = replay(q, parts, lateness)

    final = open_stream(state, q, lateness=lateness)
    given = feed(final, parts)
    assert not differences(q, rows, joined(given), ordered=False)
    assert all(starts_in_order(q, table) for table in given)
    check_late(q, final, late)

    live = open_stream(state, q, lateness=lateness, mode="live")
    assert not differences(q, rows, last_revisions(q, feed(live, parts)), ordered=False)
    check_late(q, live, late)


@pytest.mark.once
@pytest.mark.parametrize("state", STATES)
def test_any_cutting_ends_with_what_one_run_gives(state: str) -> None:
    for window in list(WINDOWS)[1:4]:
        table = events("disorder", 48, WINDOWS[window], 6, seed=4)
        for emit in ("all", "changes"):
            q = sash.Query(time="t", by=["k"], window=window, select=SELECTS["numbers"], emit=emit)
            run = rows_of(q.run(table))
            for most in (1, 7, 48):
                s = open_stream(state, q, lateness="400 days")
                given = feed(s, batches(table, seed=most, least=1, most=most), check=False)
                assert not differences(q, run, joined(given), ordered=False)
                assert s.late.num_rows == 0


def test_snapshots_are_of_one_time_zone() -> None:
    window, since = sash.sliding("1 month", "1 day", timezone="America/New_York"), "2024-02-20"
    table = events("disorder", 60, since, 6)
    for select in SELECTS.values():
        q = sash.Query(time="t", by=["k"], window=window, select=select)
        s = q.stream(lateness="2 days")
        given = [s.push(table.slice(0, 30))]
        data = s.to_bytes()
        s = Stream.from_bytes(data, q)
        given += [s.push(table.slice(30)), s.close()]
        rows, _ = replay(q, [table.slice(0, 30), table.slice(30)], "2 days")
        assert not differences(q, rows, joined(given), ordered=False)
        other = sash.sliding("1 month", "1 day", timezone="America/Toronto")
        with pytest.raises(ValueError, match=r"window was .*New_York.* and is .*Toronto"):
            Stream.from_bytes(data, sash.Query(time="t", by=["k"], window=other, select=select))


@pytest.mark.plain
def test_a_stream_can_be_asked_between_edges() -> None:
    window = sash.sliding("7 days", "1 day", timezone="America/New_York")
    q = sash.Query(time="t", window=window, select={"n": sash.count()})
    s = q.stream()
    s.push({"t": [0, 30 * HOUR, 60 * HOUR]})
    assert s.query() == {"n": 3}
    assert s.query(lo=5 * HOUR, hi=29 * HOUR) == {"n": 0}
    assert s.query(lo=29 * HOUR) == {"n": 2}
    with pytest.raises(ValueError, match="no window starts or ends there"):
        s.query(lo=24 * HOUR)


@pytest.mark.plain
def test_times_beyond_the_calendar_are_refused() -> None:
    q = sash.Query(
        time="t", window=sash.tumbling("1 day", timezone="UTC"), select={"n": sash.count()}
    )
    last = 253_402_300_799_999_999  # of the year 9999
    found = q.run({"t": [0, last]}).to_pylist()
    assert [row["window_start"] for row in found] == [0, last + 1 - 24 * HOUR]
    with pytest.raises(ValueError, match=r"row 1: .* beyond the years 1 to 9999, which a calendar"):
        q.run({"t": [0, last + 1]})
    s = q.stream()
    s.push({"t": [0, last + 1, -62_135_596_800_000_001, None]})
    beyond = "its time is beyond the years 1 to 9999, which a calendar has"
    assert s.late["reason"].to_pylist() == [beyond, beyond, "its time is null"]
    assert s.close().to_pylist() == [{"window_start": 0, "window_end": 24 * HOUR, "n": 1}]
    long = sash.tumbling("7 months", timezone="UTC")  # the last ends in the year 10000
    s = sash.Query(time="t", window=long, select={"n": sash.count()}).stream()
    for time in (last - 1, last + 1):
        s.push({"t": time})
    assert (s.counts["late"], s.time) == (1, last - 1), "nor are they noted for later"


@pytest.mark.plain
def test_brute_force_knows_calendars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what cannot be used."""
    q = sash.Query(
        time="t",
        window=sash.sliding("2 days", "1 day", timezone="America/New_York"),
        select={"n": sash.count()},
    )
    batch = {"t": [0, 40 * HOUR, None, 2**58, 90 * HOUR]}
    ours = q.stream(lateness="1 day")
    right = [ours.push(batch), ours.close()]
    monkeypatch.setenv("SASH_ORACLE", "1")
    other = q.stream(lateness="1 day")
    assert [other.push(batch), other.close()] == right
    assert other.late["reason"].to_pylist() == ours.late["reason"].to_pylist()


@pytest.mark.plain
@pytest.mark.parametrize(
    ("size", "every", "period", "by"),
    [
        ("1 day", "1 day", "1d", "1d"),
        ("7 days", "1 day", "7d", "1d"),
        ("1 week", "1 week", "1w", "1w"),
        ("2 weeks", "2 weeks", "2w", "2w"),
        ("1 month", "1 month", "1mo", "1mo"),
        ("1 month", "1 day", "1mo", "1d"),
        ("1 quarter", "1 month", "3mo", "1mo"),
        ("1 year", "1 year", "1y", "1y"),
        ("7 months", "7 months", "7mo", "7mo"),
    ],
)
@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"])
def test_windows_are_those_of_polars(
    size: str, every: str, period: str, by: str, zone: str
) -> None:
    """Over both clock changes of a year, with an event every seven hours."""
    pl = pytest.importorskip("polars")
    start = int(np.datetime64("2023-01-20", "us").astype(np.int64))
    times = start + np.arange(0, 480 * 24, 7) * HOUR
    at = pa.array(times).cast(pa.timestamp("us", zone))
    table = pa.table({"t": at, "x": pa.array(np.arange(len(times)) % 97)})
    q = sash.Query(
        time="t",
        window=sash.sliding(size, every, timezone=zone),
        select={"n": sash.count(), "sum": sash.sum("x")},
    )
    theirs = (
        pl.from_arrow(table)
        .group_by_dynamic("t", every=by, period=period, closed="left", include_boundaries=True)
        .agg(pl.len().alias("n"), pl.col("x").sum().alias("sum"))
        .sort("t")
    )
    ours = q.run(table)
    # Polars has a window from its first event on, sash each that holds it
    since = pc.greater_equal(ours["window_start"], pa.scalar(theirs["t"][0], at.type))
    ours = ours.filter(since)
    columns = (("window_start", "_lower_boundary"), ("window_end", "_upper_boundary"))
    for mine, other in (*columns, ("n", "n"), ("sum", "sum")):
        assert ours[mine].to_pylist() == theirs[other].to_list(), mine
