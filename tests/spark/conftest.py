"""One Spark session for all tests here: two cores, RocksDB for state, and a time zone with clock
changes, in which nothing may go wrong."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest


def need_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not (shutil.which("java") or (home and (Path(home) / "bin" / "java").exists())):
        pytest.fail("the Spark tests need Java 17 or newer: see `make java`", pytrace=False)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    need_java()
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    import sash.spark

    place = tmp_path_factory.mktemp("spark")
    session = sash.spark.session(
        "local[2]",
        name="sash tests",
        config={
            "spark.ui.enabled": "false",
            "spark.default.parallelism": "2",
            "spark.sql.session.timeZone": "America/New_York",
            "spark.sql.warehouse.dir": str(place / "warehouse"),
            "spark.local.dir": str(place / "local"),
            "spark.driver.memory": "1g",
        },
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def frame(spark: Any) -> Callable[[Any], Any]:
    """A DataFrame of an Arrow table, in two partitions, with its nulls and NaNs as they are."""

    def made(table: Any) -> Any:
        spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")  # for times without a zone
        try:
            return spark.createDataFrame(table).repartition(2)
        finally:
            spark.conf.unset("spark.sql.timestampType")

    return made


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """The files for rows that were made, in a folder where none has a name."""
    from sash.spark import row_files

    made: list[Any] = []

    def noted(dir: str) -> Any:
        assert dir == str(tmp_path)
        made.append(TemporaryFile(dir=dir))  # noqa: SIM115
        assert not list(tmp_path.iterdir())
        return made[-1]

    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},{tmp_path}/other")
    monkeypatch.setattr(row_files, "TemporaryFile", noted)
    return made
