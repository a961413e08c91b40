"""A long stream whose keys come and go: state levels off, and quiet keys leave it.

`make test-faults` has 200 micro-batches, `make test` some of them.
"""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import sash
from sash.testing.queries import answers, differences

pytest.importorskip("pyspark")
import sash.spark

BATCHES = 200 if os.environ.get("SASH_FAULTS") else 20
SECOND = 1_000_000
START = 1_700_000_000 * SECOND
WINDOW = 30  # seconds


def batch(number: int) -> pa.Table:
    """Ten seconds of eight keys, which are others after five batches, and some rows of the batch
    before; none is too late.  In the end one row, long after."""
    seconds = [(5 * i) % 14 + 10 * number for i in range(14)] if number < BATCHES else [10**6]
    keys = [f"key {number // 5 * 8 + i}" for i in range(8)] if number < BATCHES else ["end"]
    at = [START + s * SECOND for s in seconds for _ in keys]
    return pa.table(
        {
            "t": pa.array(at, pa.timestamp("us", "UTC")),
            "k": [k for _ in seconds for k in keys],
            "i": pa.array(range(len(at)), pa.int64()),
        }
    )


def test_state_levels_off_and_quiet_keys_leave(spark: Any, tmp_path: Any) -> None:
    """In live mode, which keeps all that the other does, and revisions."""
    tables = [batch(b) for b in range(BATCHES + 1)]
    source, out, kept = (str(tmp_path / name) for name in ("in", "out", "checkpoint"))
    os.mkdir(source)
    for b, table in enumerate(tables):
        file = os.path.join(source, f"{b:05d}.parquet")
        pa.parquet.write_table(table, file)
        os.utime(file, (10**9 + b,) * 2)
    q = sash.Query(
        time="t",
        by="k",
        window=sash.sliding(f"{WINDOW} seconds", "1 second"),
        select={"n": sash.count(), "worst": sash.max("i")},
    )
    rows = spark.readStream.schema(spark.read.parquet(source).schema)
    rows = rows.option("maxFilesPerTrigger", 1).parquet(source).withWatermark("t", "15 seconds")
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "500")
    result = sash.spark.aggregate(rows, q, mode="live", buckets=1)
    running = (
        result.writeStream.foreachBatch(sash.spark.upsert(out))
        .option("checkpointLocation", kept)
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    progress = [p for p in running.recentProgress if p.numInputRows]
    assert len(progress) == BATCHES + 1

    found = sash.spark.latest(spark, out).where("k != 'end'")
    right = [row for row in answers(q, pa.concat_tables(tables)) if row["k"] != "end"]
    assert not differences(q, right, found.toArrow(), ordered=False)
    assert any(p.observedMetrics["sash"]["corrections"] for p in progress[1:-1])

    # after windows have begun to close, and before the last row closes all
    records = [p.stateOperators[0].numRowsTotal for p in progress[8:-1]]
    touched = [p.observedMetrics["sash"].asDict() for p in progress[8:-1]]
    half = len(records) // 2
    assert max(records[half:]) <= max(records[:half]) + 2
    for what in ("state_records", "state_bytes"):
        first, second = (max(t[what] for t in part) for part in (touched[:half], touched[half:]))
        assert second <= 1.25 * first, what
    assert running.recentProgress[-1].stateOperators[0].numRowsTotal < 10, "one key is left"
