"""A program that streams files through a query, to be killed and started again.

python driver.py FOLDER MASTER: reads FOLDER/in, one file a micro-batch, and keeps results in
FOLDER/results and late rows in FOLDER/late.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import sash

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

QUERY = sash.Query(
    time="t",
    by=["k"],
    window=sash.sliding("20 seconds", "2 seconds"),
    select={"n": sash.count(), "top": sash.max("i"), "all": sash.collect("n")},
    tie="n",
)
LATENESS = "4 seconds"


def session(master: str) -> Any:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        .config("spark.driver.memory", "600m")
        .config("spark.executor.memory", "600m")
        .config("spark.driver.host", "127.0.0.1")
    )
    for name in ("PYTHONPATH", "SASH_CACHE_DIR"):
        if name in os.environ:
            builder = builder.config(f"spark.executorEnv.{name}", os.environ[name])
    return builder.getOrCreate()


def main(folder: str, master: str) -> None:
    import sash.spark

    spark = session(master)
    spark.sparkContext.setLogLevel("OFF")
    source = (
        spark.readStream.schema("t timestamp, n long, k string, i long")
        .option("maxFilesPerTrigger", 1)
        .parquet(f"{folder}/in")
        .withWatermark("t", LATENESS)
    )
    out = sash.spark.aggregate(source, QUERY, late=True, buckets=3)
    keep = sash.spark.upsert(f"{folder}/results", late=f"{folder}/late")
    query = (
        out.writeStream.foreachBatch(keep)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
