"""Streams against brute force: generated streams, cut into batches in any way."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import sash
from sash import operators
from sash.testing.queries import answers, differences, replay, rows_of
from sash.testing.streams import STREAMS, WINDOWS, batches, stream

#: The distance between the two largest values: not commutative in what it keeps.
latest_two = sash.operator(
    identity=(0, 0, 0),
    lift=lambda x: (1, 0, x),
    combine=lambda a, b: a if b[0] == 0 else b if b[0] > 1 else (min(a[0] + 1, 2), a[2], b[2]),
    lower=lambda a: a[2] - a[1],
    name="latest_two",
)

SELECTS: dict[str, dict[str, sash.Aggregate]] = {
    "numbers": {
        "n": sash.count(),
        "total": sash.sum("i"),
        "most": sash.max("x"),
        "mean": sash.mean("x"),
    },
    "in order": {"first": sash.first("n"), "last": sash.last("x"), "n": sash.count()},
    "objects": {"all": sash.collect("s"), "who": sash.arg_max("x", "s"), "n": sash.count()},
    "own": {"own": sash.aggregate(latest_two, "n"), "text": sash.concat("s")},
}
LATENESS = {"none": 0, "some": "4 seconds", "all": "400 days"}


def query(select: str, window: sash.Sliding, **more: Any) -> sash.Query:
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


def last_revisions(q: sash.Query, given: list[pa.Table]) -> list[dict[str, Any]]:
    """The last row of each window; revisions must count from 0 on."""
    last: dict[Any, dict[str, Any]] = {}
    for table in given:
        for row in rows_of(table):
            key = (*(repr(row[k]) for k in q.by), row["window_start"])
            before = last[key]["revision"] if key in last else -1
            assert row["revision"] == before + 1, row
            last[key] = row
    return list(last.values())


def check_late(q: sash.Query, s: Any, expected: list[Any]) -> None:
    """The late output has exactly the rows that brute force says, and nothing is lost."""
    found = rows_of(s.late)
    assert len(found) == len(expected) == s.counts["late"]
    for row, (right, missed) in zip(found, expected, strict=True):
        assert row["n"] == right["n"]
        assert row["missed"] == len(missed)
        if missed:
            assert [row["missed_first"], row["missed_last"]] == [missed[0], missed[-1]]
    assert s.counts["rows"] == s.counts["counted"] + s.counts["late"]


CASES = [
    (select, kind, window, lateness)
    for i, kind in enumerate(STREAMS)
    for j, window in enumerate(WINDOWS)
    for select, lateness in [
        (list(SELECTS)[(i + j) % 4], list(LATENESS)[(i + 2 * j) % 3]),
        (list(SELECTS)[(i + j + 2) % 4], list(LATENESS)[(i + 2 * j + 1) % 3]),
    ]
]


@pytest.mark.parametrize(("select", "kind", "window", "lateness"), CASES, ids=str)
def test_final_and_live_end_with_what_brute_force_says(
    select: str, kind: str, window: sash.Sliding, lateness: str
) -> None:
    q = query(select, window)
    table = stream(kind, 90, seed=len(kind), plain=select == "own")
    parts = list(batches(table, seed=len(select), most=25))
    rows, late = replay(q, parts, LATENESS[lateness])

    final = q.stream(lateness=LATENESS[lateness])
    given = feed(final, parts)
    assert not differences(q, rows, pa.concat_tables(given), ordered=False)
    starts = [(repr(r["k"]), r["window_start"]) for t in given for r in rows_of(t)]
    assert len(set(starts)) == len(starts), "a window was given twice"
    check_late(q, final, late)

    live = q.stream(lateness=LATENESS[lateness], mode="live")
    given = feed(live, parts)
    assert not differences(q, rows, last_revisions(q, given), ordered=False)
    check_late(q, live, late)
