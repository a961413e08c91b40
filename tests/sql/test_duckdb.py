"""OVER on real flights: the same text gives the same rows in DuckDB, also with EXCLUDE."""

from __future__ import annotations

import pytest
from tests.engine.test_engines import flights

import sash
from sash.testing.queries import rows_of

duckdb = pytest.importorskip("duckdb")

RANGE = "RANGE BETWEEN INTERVAL '3' HOUR PRECEDING AND"
FRAMES = [
    "",
    f"{RANGE} CURRENT ROW",
    f"{RANGE} CURRENT ROW EXCLUDE CURRENT ROW",
    f"{RANGE} CURRENT ROW EXCLUDE GROUP",
    f"{RANGE} CURRENT ROW EXCLUDE TIES",
    f"{RANGE} INTERVAL '30' MINUTE PRECEDING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '1' DAY PRECEDING",
]


@pytest.mark.parametrize("frame", FRAMES)
def test_over_equals_duckdb(frame: str) -> None:
    given = flights(1200)
    text = (
        "SELECT row, count(*) OVER w AS n, count(delay) OVER w AS known, sum(delay) OVER w AS "
        "total, max(delay) OVER w - min(delay) OVER w AS spread FROM given WHERE delay IS NULL OR "
        f"delay <> 7 WINDOW w AS (PARTITION BY origin ORDER BY t {frame}) ORDER BY row"
    )
    theirs = rows_of(duckdb.sql(text).to_arrow_table())
    ours = rows_of(sash.sql(text).run(given))
    assert len(ours) > 1000
    assert ours == [{n: v if v is None else int(v) for n, v in r.items()} for r in theirs]


@pytest.mark.parametrize(
    "end", ["CURRENT ROW", "CURRENT ROW EXCLUDE TIES", "INTERVAL '10' MINUTE PRECEDING"]
)
def test_several_sizes_in_one_select_equal_duckdb(end: str) -> None:
    given = flights(800)

    def over(start: str) -> str:
        return f"OVER (PARTITION BY origin ORDER BY t RANGE BETWEEN {start} PRECEDING AND {end})"

    text = (
        "SELECT row, count(*) {} AS hour, sum(delay) {} AS five, max(delay) {} AS ever FROM given"
    )
    starts = ("INTERVAL '1' HOUR", "INTERVAL '5' HOUR", "UNBOUNDED")
    text = text.format(*map(over, starts)) + " ORDER BY row"
    theirs = rows_of(duckdb.sql(text).to_arrow_table())
    ours = rows_of(sash.sql(text).run(given))
    assert ours == [{n: v if v is None else int(v) for n, v in r.items()} for r in theirs]
