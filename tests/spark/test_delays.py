"""How late rows come, as an observed metric."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sash
import sash.spark
from sash.engine.delays import BUCKETS

SECOND = 1_000_000
BATCHES = ([100, 110], [109, 90, 120], [120, 60, 119])  # seconds, a file and a micro-batch each


@pytest.mark.parametrize("window", [sash.tumbling("10 seconds"), sash.rows(2)], ids=repr)
def test_lateness_is_by_stream_time_over_all_keys(spark: Any, tmp_path: Path, window: Any) -> None:
    q = sash.Query(time="t", by=["k"], window=window, select={"n": sash.count()})
    (tmp_path / "in").mkdir()
    for i, seconds in enumerate(BATCHES):
        times = pa.array([s * SECOND for s in seconds], pa.timestamp("us", "UTC"))
        table = pa.table({"t": times, "k": [f"key {s}" for s in seconds]})
        file = tmp_path / "in" / f"{i}.parquet"
        pq.write_table(table, file)
        os.utime(file, (1000 + i, 1000 + i))  # Spark takes files in order of their age
    rows = spark.readStream.schema("t timestamp, k string").option("maxFilesPerTrigger", 1)
    rows = rows.parquet(str(tmp_path / "in")).withWatermark("t", "30 seconds")
    out = sash.spark.aggregate(rows, q, late=True)
    writer = out.writeStream.foreachBatch(lambda frame, _: frame.collect() and None)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    found = [p.observedMetrics["sash"]["lateness"] for p in query.recentProgress if p.numInputRows]
    assert {len(counts) for counts in found} == {BUCKETS + 1}
    # in order, up to 1 second, 2, 4, 8, 16, 32, 64
    assert [list(counts[:8]) for counts in found] == [
        [2, 0, 0, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 1, 0],
        [1, 1, 0, 0, 0, 0, 0, 1],
    ]
