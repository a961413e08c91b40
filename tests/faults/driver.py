"""A program that streams files through a query, to be killed and started again.

python driver.py FOLDER MASTER STREAM TRIGGER: reads FOLDER/in, one file a micro-batch, and keeps
results in FOLDER/results, late rows in FOLDER/late, and in FOLDER/calls the number of each
micro-batch that it hands to the sink.  STREAM is one of STREAMS, or several with commas between
them, each with a folder of its name in FOLDER.  With the trigger "now" it ends when all files are
read that are there; with "arriving" it waits for more.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import sash

ORDERED = {"rows": sash.count(), "top": sash.max("i"), "all": sash.collect("n")}
NUMBERS = {"rows": sash.count(), "top": sash.max("i"), "last": sash.max("n")}


def query(window: Any, select: Any, tie: str | None = None) -> sash.Query:
    return sash.Query(time="t", by=["k"], window=window, select=select, tie=tie)


#: A query, or several, and a mode for each stream.  On Spark, events of one time have an order
#: only by `tie`.
STREAMS: dict[str, tuple[Any, Any]] = {
    "final": (query(sash.sliding("20 seconds", "2 seconds"), ORDERED, "n"), "final"),
    "live": (query(sash.sliding("20 seconds", "2 seconds"), ORDERED, "n"), "live"),
    "trailing": (query(sash.trailing("20 seconds"), ORDERED, "n"), "final"),
    "trailing live": (query(sash.trailing("20 seconds"), NUMBERS), "live"),
    "rows": (query(sash.rows(5), ORDERED, "n"), "final"),
    "session": (query(sash.session("900 milliseconds"), NUMBERS), "final"),
    "session live": (query(sash.session("900 milliseconds"), NUMBERS), "live"),
    "shared": (
        sash.share(
            {
                "sizes": query(
                    sash.sliding("20 seconds", "2 seconds"),
                    NUMBERS | {"long": sash.count().over("1 minute")},
                ),
                "tens": query(sash.tumbling("10 seconds"), NUMBERS),
                "sessions": query(sash.session("900 milliseconds"), NUMBERS),
            }
        ),
        "live",
    ),
    "delta": (query(sash.delta("i", 200, every=100), ORDERED, "n"), "final"),
    "punctuated": (query(sash.punctuated("b"), ORDERED, "n"), "final"),
    "lifetime": (query(sash.lifetime(), ORDERED, "n"), "final"),
    "kept": (query(sash.window(keep="20 seconds", every=sash.rows(3)), ORDERED, "n"), "final"),
    "policy": (query(sash.policies.at_most_sum(2000, "i"), ORDERED, "n"), "final"),
}
LATENESS = "4 seconds"


def session(master: str) -> Any:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    import sash.spark

    config = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "600m",
        "spark.executor.memory": "600m",
        "spark.driver.host": "127.0.0.1",
        # a stream without new files looks for some ten times a second, not a hundred times
        "spark.sql.streaming.pollingDelay": "100ms",
    }
    for name in ("PYTHONPATH", "SASH_CACHE_DIR"):
        if name in os.environ:
            config[f"spark.executorEnv.{name}"] = os.environ[name]
    return sash.spark.session(master, partitions=2, config=config)


def main(folder: str, master: str, streams: str = "final", trigger: str = "now") -> None:
    spark, names = session(master), streams.split(",")
    spark.sparkContext.setLogLevel("OFF")
    places = [Path(folder, name) for name in names] if len(names) > 1 else [Path(folder)]
    started = [start(spark, *each, trigger) for each in zip(places, names, strict=True)]
    while trigger != "now" and all(query.isActive for query in started):
        time.sleep(0.2)
    for query in sorted(started, key=lambda query: query.isActive):  # what has failed comes first
        query.awaitTermination()
    spark.stop()


def start(spark: Any, place: Path, stream: str, trigger: str) -> Any:
    """The running query of a stream in its folder."""
    import sash.spark

    query, mode = STREAMS[stream]
    source = (
        spark.readStream.schema("t timestamp, n long, k string, i long, b boolean")
        .option("maxFilesPerTrigger", 1)
        .parquet(f"{place}/in")
        .withWatermark("t", LATENESS)
    )
    out = sash.spark.aggregate(source, query, mode=mode, late=True, buckets=3)
    keep = sash.spark.upsert(f"{place}/results", late=f"{place}/late")

    def noted(batch: Any, number: int) -> None:
        with (place / "calls").open("a") as calls:
            calls.write(f"{number}\n")
        keep(batch, number)

    writer = out.writeStream.foreachBatch(noted)
    writer = writer.option("checkpointLocation", f"{place}/checkpoint")
    if trigger == "now":
        writer = writer.trigger(availableNow=True)
    return writer.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
