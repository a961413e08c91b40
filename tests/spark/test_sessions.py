"""What sash needs of Spark: a builder sets it; where it is not so, one is told beforehand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sash

pytest.importorskip("pyspark")
import pyspark
from pyspark import cloudpickle

import sash.spark
from sash.spark import packages
from sash.spark.sessions import _cores, check_stream
from sash.spark.shipping import NEEDED, shipped

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"


@pytest.fixture
def settings(spark: Any) -> Any:
    """Sets settings of the session until the test is over."""
    before: dict[str, str] = {}

    def change(name: str, value: str) -> None:
        before.setdefault(name, spark.conf.get(name))
        spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        spark.conf.set(name, value)


def stream(spark: Any) -> Any:
    source = spark.readStream.format("rate").load()
    return source.withWatermark("timestamp", "1 minute")


QUERY = sash.Query(time="timestamp", window=sash.tumbling("1 second"), select={"n": sash.count()})


def test_the_session_of_these_tests(spark: Any) -> None:
    """It was made by the builder, which counts cores and lets its caller have the last word."""
    assert spark.conf.get(PARTITIONS) == "2"
    assert "RocksDB" in spark.conf.get(PROVIDER)
    assert spark.conf.get("spark.python.unix.domain.socket.enabled") == "true"
    again = sash.spark.session(config={PARTITIONS: 3})
    try:
        assert again is spark
        assert spark.conf.get(PARTITIONS) == "3"
        sash.spark.session(partitions=4)
        assert spark.conf.get(PARTITIONS) == "4"
    finally:
        sash.spark.session()
    assert spark.conf.get(PARTITIONS) == "2"
    with pytest.raises(ValueError, match="a master or a remote, not both"):
        sash.spark.session("local[2]", remote="sc://localhost")
    with pytest.raises(ValueError, match="partitions is a number from 1, not 0"):
        sash.spark.session(partitions=0)


class Settings:
    """A session as far as its settings."""

    def __init__(self, **given: str) -> None:
        self.given = {name.replace("_", "."): value for name, value in given.items()}

    @property
    def conf(self) -> Any:
        return self

    def get(self, name: str, default: str | None) -> str | None:
        return self.given.get(name, default)


def test_cores_are_counted_where_the_settings_say() -> None:
    def cores(**given: str) -> int | None:
        return _cores(Settings(**given))  # type: ignore[arg-type]

    assert cores(spark_master="local") == 1
    assert cores(spark_master="local[3]") == 3
    assert cores(spark_master="local[3, 2]") == 3
    assert cores(spark_master="local[*]") == os.cpu_count()
    assert cores(spark_master="yarn") is None
    assert cores(spark_master="yarn", spark_executor_instances="5") is None
    assert cores(spark_executor_instances="5", spark_executor_cores="4") == 20
    assert cores(spark_master="spark://host:7077", spark_cores_max="16") == 16
    assert cores() is None


def test_a_state_store_that_will_not_do_is_named(spark: Any, settings: Any) -> None:
    df = stream(spark)
    settings(
        PROVIDER, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    )
    with pytest.raises(ValueError, match=rf"RocksDB, and {PROVIDER} is .*HDFS.*spark.conf.set"):
        sash.spark.aggregate(df, QUERY)


def test_many_partitions_on_few_cores_are_warned_of(spark: Any, settings: Any) -> None:
    check_stream(spark)  # without a word
    df = stream(spark)
    settings(PARTITIONS, "200")
    with pytest.warns(UserWarning, match=r"200 partitions.*there are 2 cores.*keeps") as seen:
        sash.spark.aggregate(df, QUERY)
    assert seen[0].filename == __file__, "the line that has to change"


def test_two_results_under_one_name(spark: Any) -> None:
    first = sash.spark.aggregate(stream(spark), QUERY)
    wide = sash.Query(time="event_time", window=sash.tumbling("1 minute"), select=QUERY.select)
    with pytest.raises(ValueError, match=r"under the name 'sash' already; .*name='hours'"):
        sash.spark.aggregate(first, wide)
    assert sash.spark.aggregate(first, wide, name="minutes").isStreaming


def test_results_before_there_are_any(spark: Any, tmp_path: Path) -> None:
    out = sash.spark.aggregate(stream(spark), QUERY, mode="live", late=True)
    (tmp_path / "empty").mkdir()
    for place in ("none", "empty"):
        path = str(tmp_path / place)
        with pytest.raises(ValueError, match=r"no results under .* yet.*schema=out.schema"):
            sash.spark.latest(spark, path)
        rows = sash.spark.latest(spark, path, schema=out.schema)
        assert rows.columns == ["window", "n", "revision", "event_time"]
        assert rows.collect() == []


def test_a_worker_without_sash_says_what_to_set(tmp_path: Path) -> None:
    """A Python with PySpark and nothing else."""
    for package in ("pyspark", "py4j"):
        (tmp_path / package).symlink_to(Path(pyspark.__file__).parents[1] / package)
    (tmp_path / "work").write_bytes(cloudpickle.dumps(shipped(sash.count)))
    load = "import pickle, pathlib; pickle.loads(pathlib.Path('work').read_bytes())"
    # -S: without the packages that are installed
    run = subprocess.run(
        [sys.executable, "-S", "-c", load],
        env={"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    said = run.stderr.strip().splitlines()[-1]
    assert said.startswith("ModuleNotFoundError: the Python of Spark's workers, "), run.stderr
    assert "numba, pyarrow, pandas, google.protobuf: set PYSPARK_PYTHON" in said


def test_work_arrives_as_it_was_sent() -> None:
    sent = cloudpickle.loads(cloudpickle.dumps(shipped(sash.max)))
    assert sent("x") == sash.max("x")
    assert all(packages._is_there(name) for name in NEEDED)


def test_a_worker_with_another_sash_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = cloudpickle.dumps(shipped(sash.max))
    monkeypatch.setattr(sash, "__version__", "0.0.7")
    with pytest.raises(ImportError, match=r"not the one of the driver .*that one 0\.0\.7"):
        cloudpickle.loads(sent)
    monkeypatch.undo()
    check = cloudpickle.dumps(shipped(packages._is_there))
    monkeypatch.delattr(packages, "_is_there")
    with pytest.raises(ImportError, match=r"not the one of the driver \(Can't get attribute"):
        cloudpickle.loads(check)
    monkeypatch.undo()
    assert cloudpickle.loads(sent)("x") == sash.max("x")


def test_packages_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    packages.check_packages()
    monkeypatch.setattr(packages, "_NEEDED", ("pyspark", "no_pandas", "no_google.protobuf"))
    with pytest.raises(ImportError, match=r"needs no_pandas, no_google.protobuf, .*sash\[spark"):
        packages.check_packages()
    monkeypatch.undo()
    monkeypatch.setattr(pyspark, "__version__", "3.5.1")
    with pytest.raises(ImportError, match=r"PySpark 4.1 or newer, and this is 3.5.1"):
        packages.check_packages()
