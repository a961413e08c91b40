"""Buckets fall evenly into Spark's partitions."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sash.spark.buckets import bucket_names


@pytest.mark.parametrize("partitions", [1, 2, 3, 4, 7, 8, 10, 64, 200])
def test_buckets_fall_evenly_into_partitions(spark: SparkSession, partitions: int) -> None:
    buckets = 2 * partitions
    frame = spark.createDataFrame([(name,) for name in bucket_names(buckets)], "bucket int")
    moved = frame.repartition(partitions, "bucket").select(F.spark_partition_id())
    counts = Counter(row[0] for row in moved.collect())
    assert len(set(bucket_names(buckets))) == buckets
    assert set(counts.values()) == {2}
    assert len(counts) == partitions


def test_names_do_not_depend_on_how_many_there_are() -> None:
    assert bucket_names(200)[:64] == bucket_names(64)
