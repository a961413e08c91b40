"""Rows per slice from a sample, beside the counts of whole tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sash
import sash.spark
from sash.spark.sampling import reach_of_disorder, scaled

DRAWN = 100_000


@pytest.mark.parametrize("slices", [5_000, 57_600, 576_000, 5_000_000])
def test_a_sample_in_random_order_tells_the_rows_of_all(slices: int) -> None:
    rng = np.random.default_rng(slices)
    rows = rng.integers(0, slices, 2_000_000)
    found = DRAWN / len(np.unique(rows[:DRAWN]))
    for some in (len(rows), 262_144):
        true = some / len(np.unique(rows[:some]))
        assert scaled(found, DRAWN, [len(rows)] * 3, some) == pytest.approx(true, rel=0.1)
    assert scaled(found, DRAWN, [len(rows), 0], None) == scaled(found, DRAWN, [len(rows)], None)


def test_no_row_shares_a_slice() -> None:
    assert scaled(1.0, DRAWN, [10**7], None) == pytest.approx(1.0)
    assert scaled(1.0, DRAWN, [], None) == 0.0


def test_order_of_time_is_seen() -> None:
    rng = np.random.default_rng(1)
    times = np.sort(rng.integers(0, 10**9, DRAWN))
    late = times + rng.integers(0, 10**7, DRAWN)
    assert reach_of_disorder(times) == reach_of_disorder(late) == 0
    assert reach_of_disorder(times[:100]) == 0  # too few to tell
    assert reach_of_disorder(rng.permutation(times)) == pytest.approx(8e8, rel=0.1)
    near = times + rng.integers(0, 2 * 10**8, DRAWN)  # by far more than a block spans
    assert 1e8 < reach_of_disorder(near) < 2e8


def test_a_table_in_random_order_has_its_slices_made_by_spark(spark: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    count = 600_000
    made = {
        "random": rng.integers(0, 3_600 * 10**6, count),
        "late": np.linspace(0, 3_600 * 10**6, count) + rng.integers(0, 600 * 10**6, count),
    }
    query = sash.Query(
        time="t", by="k", window=sash.sliding("10 minutes", "1 minute"), select={"n": sash.count()}
    )
    ways = {}
    for name, times in made.items():
        table = pa.table(
            {
                "t": pa.array(times.astype(np.int64), pa.timestamp("us", "UTC")),
                "k": rng.integers(0, 1_000, count),
            }
        )
        pq.write_table(table, tmp_path / f"{name}.parquet")
        df = spark.read.parquet(str(tmp_path / f"{name}.parquet"))
        ways[name] = str(sash.spark.way(df, query))
        found = sash.spark.aggregate(df, query, slices="auto").count()
        assert found == query.run(table).num_rows
    # 600,000 rows in some 60,000 slices of a minute; a hundred thousand of them have 2.1 each
    assert ways["random"].startswith("spark: Spark has all of the operators, and a slice has 10.")
    # the first hundred thousand rows of the other table lie in a sixth of its hour
    assert not ways["late"].startswith("spark: Spark has all of the operators, and a slice has 10.")
