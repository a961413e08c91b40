"""Builds Spark sessions with the settings that sash needs, and checks sessions before a stream."""

from __future__ import annotations

import os
import re
import socket
import sys
import tempfile
import warnings
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from ..kernels.outside import level_outside

__all__ = ["check_stream", "session"]

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PARTITIONS = "spark.sql.shuffle.partitions"
_SETTINGS = {
    _PROVIDER: _ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
#: The setting that makes Spark send rows to Python workers through Unix sockets.  A task with few
#: rows, such as the task that packs them, waits 8 ms for its rows; through TCP it waits 40 ms, by
#: which Linux delays acknowledgements.
_SOCKETS = "spark.python.unix.domain.socket"
_LONGEST = 61  # the most characters that Spark allows for the path of the sockets' folder
_MANY = 4  # more partitions than this for each core are too many


def session(
    master: str | None = None,
    *,
    remote: str | None = None,
    name: str = "sash",
    partitions: int | None = None,
    config: Mapping[str, Any] | None = None,
) -> SparkSession:
    """A Spark session with the settings that sash needs.

    `master` is where Spark runs, such as "local[2]" or "spark://host:7077"; without it, Spark runs
    where spark-submit says, or on all cores of this machine.  `remote` is the address of a Spark
    Connect server instead.  Streams keep their state in RocksDB.  By default, a shuffle has as many
    `partitions` as there are cores, if the settings show their number.  On this machine, workers
    run the same Python as the caller, unless PYSPARK_PYTHON names another.  Settings in `config`
    override all others.

        spark = sash.spark.session("local[4]", config={"spark.driver.memory": "4g"})
    """
    if master is not None and remote is not None:
        raise ValueError(
            f"a session has a master or a remote, not both: master={master!r}, remote={remote!r}"
        )
    if partitions is not None and not (isinstance(partitions, int) and partitions > 0):
        raise ValueError(f"partitions is a number from 1, not {partitions!r}")
    if remote is None or remote.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {**_SETTINGS, **_sockets(master), **(config or {})}
    if partitions is not None:
        settings.setdefault(_PARTITIONS, partitions)
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    if remote is not None:
        builder = builder.remote(remote)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    cores = _cores(spark)
    if _PARTITIONS not in settings and cores is not None:
        spark.conf.set(_PARTITIONS, str(cores))
    return spark


def _sockets(master: str | None) -> dict[str, str]:
    """Settings for Unix sockets in this machine's temporary folder, if Spark runs here and the
    folder's path is short enough."""
    folder = tempfile.gettempdir()
    if not (master or "").startswith("local") or not hasattr(socket, "AF_UNIX"):
        return {}
    if len(folder) > _LONGEST:
        return {}
    return {f"{_SOCKETS}.enabled": "true", f"{_SOCKETS}.dir": folder}


def check_stream(spark: SparkSession) -> None:
    """Refuse a session in which no stream of sash can run, and warn of one with far too many
    partitions."""
    provider = spark.conf.get(_PROVIDER, None)
    if "RocksDB" not in (provider or ""):
        raise ValueError(
            f"a stream of sash keeps its state in RocksDB, and {_PROVIDER} is {provider}: start "
            "the session with sash.spark.session(…), or call "
            f"spark.conf.set({_PROVIDER!r}, {_ROCKSDB!r})"
        )
    partitions, cores = int(spark.conf.get(_PARTITIONS, None) or 200), _cores(spark)
    if cores is not None and partitions > _MANY * cores:
        warnings.warn(
            f"each micro-batch starts a task with Python for each of {partitions} partitions, at a "
            f"quarter of a second each, and there are {cores} cores: before the stream's first "
            f"start, spark.conf.set({_PARTITIONS!r}, {cores}), or start the session with "
            "sash.spark.session(…); a checkpoint keeps the number that it was started with",
            stacklevel=level_outside(),
        )


def _cores(spark: SparkSession) -> int | None:
    """The number of tasks that run at a time; None if the settings do not show it."""

    def said(name: str) -> str:
        return spark.conf.get(name, None) or ""

    found = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", said("spark.master"))
    if found:
        count = found[1] or "1"
        return int(count) if count != "*" else os.cpu_count()
    if said("spark.executor.instances") and said("spark.executor.cores"):
        return int(said("spark.executor.instances")) * int(said("spark.executor.cores"))
    return int(said("spark.cores.max") or 0) or None
