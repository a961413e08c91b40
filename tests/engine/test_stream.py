"""Streams against brute force: generated streams, cut into batches in any way, over both states."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import sash
from sash.testing.fuzz.streams import SELECTS
from sash.testing.queries import differences, replay, rows_of
from sash.testing.stored import STATES, open_stream
from sash.testing.streams import STREAMS, WINDOWS, batches, stream
from sash.windows import Aligned
from thinning import FULL, STAGE

LATENESS = {"none": 0, "some": "4 seconds", "all": "400 days"}


def query(select: str, window: Aligned, **more: Any) -> sash.Query:
    return sash.Query(time="t", by=["k"], window=window, select=SELECTS[select], **more)


def feed(s: Any, parts: Any, *, check: bool = True) -> list[pa.Table]:
    """What a stream gives for each batch, and for being closed."""
    given = []
    for part in parts:
        given.append(s.push(part))
        if check:
            s._check()
    given.append(s.close())
    s._check()
    assert s.state_size()["keys"] == s.state_size()["slices"] == 0
    return given


def joined(given: list[pa.Table]) -> pa.Table:
    """All rows; an answer that is null in a whole table has no type there."""
    return pa.concat_tables(given, promote_options="permissive")


def starts_in_order(q: sash.Query, table: pa.Table) -> bool:
    """Whether rows come by keys, null first, then window."""
    places = [
        (r["k"] is not None, r["k"] or "", r["window_end"], r["window_start"])
        for r in rows_of(table)
    ]
    return places == sorted(places)


def last_revisions(q: sash.Query, given: list[pa.Table]) -> list[dict[str, Any]]:
    """The last row of each window; revisions must count from 0 on."""
    last: dict[Any, dict[str, Any]] = {}
    for table in given:
        for row in rows_of(table):
            key = (*(repr(row[k]) for k in q.by), row["window_start"], row["window_end"])
            before = last[key]["revision"] if key in last else -1
            assert row["revision"] == before + 1, row
            last[key] = row
    return list(last.values())


def check_late(q: sash.Query, s: Any, expected: list[Any]) -> None:
    """The late output has exactly the rows that brute force says, and nothing is lost."""
    found, counts = rows_of(s.late), s.counts
    assert len(found) == len(expected) == counts["late"] + counts["partly_late"]
    for row, (right, missed) in zip(found, expected, strict=True):
        assert row["n"] == right["n"]
        assert row["missed"] == len(missed)
        if missed:
            assert [row["missed_start"], row["missed_end"]] == [missed[0][0], missed[-1][1]]
    assert counts["rows"] == counts["counted"] + counts["late"]


CASES = [
    (list(SELECTS)[(i + j) % 3], kind, window, list(LATENESS)[(i + 2 * (j // 3)) % 3])
    for i, kind in enumerate(STREAMS)
    for j, window in enumerate(WINDOWS)
    if FULL or (2 * i + j) % 3 == STAGE
]


@pytest.mark.thin
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("select", "kind", "window", "lateness"), CASES, ids=str)
def test_final_and_live_end_with_what_brute_force_says(
    select: str, kind: str, window: Aligned, lateness: str, state: str
) -> None:
    q = query(select, window)
    parts = list(batches(stream(kind, 70, seed=len(kind)), seed=len(select), most=25))
    rows, late = replay(q, parts, LATENESS[lateness])

    final = open_stream(state, q, lateness=LATENESS[lateness])
    given = feed(final, parts)
    assert not differences(q, rows, joined(given), ordered=False)
    starts = [(repr(r["k"]), r["window_start"], r["window_end"]) for t in given for r in rows_of(t)]
    assert len(set(starts)) == len(starts), "a window was given twice"
    for table in given:
        assert starts_in_order(q, table)
    check_late(q, final, late)

    live = open_stream(state, q, lateness=LATENESS[lateness], mode="live")
    given = feed(live, parts)
    assert not differences(q, rows, last_revisions(q, given), ordered=False)
    for table in given:
        assert starts_in_order(q, table)
    check_late(q, live, late)


@pytest.mark.thin
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", STREAMS)
def test_only_changes(kind: str, state: str) -> None:
    for i, window in list(enumerate(WINDOWS[1:]))[:: 1 if FULL else 2]:
        # kinds next to each other in the list swap them, and each window meets both
        select = ("numbers", "objects")[(i + list(STREAMS).index(kind)) % 2]
        q = query(select, window, emit="changes")
        parts = list(batches(stream(kind, 80), seed=3, most=20))
        rows, late = replay(q, parts, "4 seconds")
        s = open_stream(state, q, lateness="4 seconds")
        assert not differences(q, rows, joined(feed(s, parts)), ordered=False)
        check_late(q, s, late)


@pytest.mark.once
@pytest.mark.thin
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", STREAMS)
def test_any_cutting_ends_with_what_one_run_gives(kind: str, state: str) -> None:
    table = stream(kind, 36, seed=4)
    for window in WINDOWS[2:4]:
        q = query("numbers", window)
        run = rows_of(q.run(table))
        for most in (1, 7, 36):
            parts = list(batches(table, seed=most, least=1, most=most))
            final = open_stream(state, q, lateness="400 days")
            given = feed(final, parts, check=False)
            assert not differences(q, run, joined(given), ordered=False)
            early = state == "memory"
            live = open_stream(state, q, lateness="400 days", mode="live", early=early)
            given = feed(live, parts, check=False)
            assert not differences(q, run, last_revisions(q, given), ordered=False)
            assert final.late.num_rows == live.late.num_rows == 0
