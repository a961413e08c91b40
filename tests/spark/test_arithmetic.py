"""Windows and edges are numbered alike by Spark's expressions and in Python."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sash.slicing.edges import Periodic, cuts_of, edges_of, union
from sash.windows import cumulate, sliding

pytest.importorskip("pyspark")

WINDOWS = [
    sliding(10, 10),
    sliding(7, 3, offset=-2),
    sliding("1 hour", "7 seconds", offset="3 seconds"),
    cumulate(12, 3, offset=5),
    cumulate("1 day", "1 second"),
    sliding(2**60, 2**59 - 1),
]
CUTS = (0, 1, 4, 6, 7, 11)


def test_spark_numbers_windows_and_edges_as_python_does(spark: Any) -> None:
    from pyspark.sql import functions as F

    from sash.spark.arithmetic import SPARK

    source = random.Random(1)
    times = [source.randint(-(2**60), 2**60) for _ in range(300)] + list(range(-150, 150))
    edges = [edges_of(w) for w in WINDOWS]
    edges += [Periodic(13, CUTS, 2), union(edges_of(WINDOWS[1]), edges_of(WINDOWS[3]))]
    ways = [w.cycle.first for w in WINDOWS] + [w.cycle.last for w in WINDOWS]
    ways += [e.number for e in edges]
    df = spark.createDataFrame(pa.table({"t": times}))
    found = df.select(
        "t", *[way(F.col("t"), SPARK).alias(f"c{i}") for i, way in enumerate(ways)]
    ).toArrow()
    at = np.array(found["t"])
    assert sorted(at.tolist()) == sorted(times)
    for i, way in enumerate(ways):
        assert found[f"c{i}"].type == pa.int64()
        assert found[f"c{i}"].to_pylist() == way(at).tolist(), way


def test_spark_has_the_starts_of_slices_as_python_has(spark: Any) -> None:
    from pyspark.sql import functions as F

    from sash.spark.arithmetic import SPARK

    numbers = list(range(-150, 150))
    edges = [cuts_of(w) for w in WINDOWS[:4]] + [Periodic(13, CUTS, 2)]
    df = spark.createDataFrame(pa.table({"n": numbers}))
    found = df.select(
        "n", *[e.time(F.col("n"), SPARK).alias(f"c{i}") for i, e in enumerate(edges)]
    ).toArrow()
    for i, each in enumerate(edges):
        assert found[f"c{i}"].type == pa.int64()
        assert found[f"c{i}"].to_pylist() == each.time(np.array(found["n"])).tolist(), each
