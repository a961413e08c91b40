"""What a type checker knows of the public names: mypy checks a program that uses them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import sash

SOURCE = Path(sash.__file__).parent

#: Neither pandas nor pyarrow comes with types, so these stand for their stubs.
STUBS = {
    "pandas": """
        from typing import Any
        class DataFrame:
            @property
            def shape(self) -> tuple[int, int]: ...
            def join(self, other: DataFrame, on: str | None = None) -> DataFrame: ...
        """,
    "pyarrow": """
        class Table:
            @property
            def shape(self) -> tuple[int, int]: ...
            def join(self, right_table: Table, keys: list[str]) -> Table: ...
        class RecordBatch:
            @property
            def shape(self) -> tuple[int, int]: ...
            def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
        class DataType: ...
        def __getattr__(name: str) -> type: ...
        """,
}
CONFIG = """
[mypy]
strict = true
[mypy-sash.*]
follow_imports = silent
[mypy-numba.*,llvmlite.*,datasketches.*,hypothesis.*,pyspark.*]
ignore_missing_imports = true
follow_imports = skip
"""
#: An error that is expected and does not come is one, too: an ignore that nothing needs.
PROGRAM = """
from typing import assert_type

import pandas as pd
import polars as pl
import pyarrow as pa

import sash

def tables(
    q: sash.Query, a: pd.DataFrame, b: pl.DataFrame, c: pa.Table, d: pl.LazyFrame, e: pa.RecordBatch
) -> None:
    assert_type(q.run(a), pd.DataFrame)
    assert_type(q.run(b), pl.DataFrame)
    assert_type(q.run(c), pa.Table)
    assert_type(q.run(d), pl.DataFrame)
    assert_type(q.run(e), pa.Table)
    assert_type(q.run({"t": [1]}), pa.Table)
    q.run(3)  # type: ignore[call-overload]

def streams(q: sash.Query) -> None:
    s = assert_type(q.stream(lateness="1 minute", mode="live", early=True), sash.Stream)
    assert_type(sash.Stream.from_bytes(s.to_bytes(), q), sash.Stream)
    q.stream(mode="lively")  # type: ignore[arg-type]

def queries(window: sash.Sliding) -> sash.Query:
    sash.Query(time="t", window=window, select={}, emit="some")  # type: ignore[arg-type]
    return sash.Query(time="t", window=sash.sliding("1 hour", "1 minute"), select={
        "n": sash.count(),
        "known": sash.count("x"),
        "who": sash.arg_max("carrier", by="delay", ignore_nulls=True),
        "first": sash.first("x", ignore_nulls=True),
        "some": sash.first_n("x", 3),
        "half": sash.quantiles("x", at=[0.5], k=100),
        "own": sash.aggregate(sash.operators.max, "x"),
    })

def mistakes() -> None:
    assert_type(sash.max("x"), sash.Aggregate)
    sash.max()  # type: ignore[call-arg]
    sash.max("x", "y")  # type: ignore[call-arg]
    sash.arg_max("x")  # type: ignore[call-arg]
    sash.first_n("x")  # type: ignore[call-arg]
    sash.first_n("x", "3")  # type: ignore[arg-type]
    sash.maximum("x")  # type: ignore[attr-defined]
"""


def test_the_package_says_that_it_has_types() -> None:
    assert (SOURCE / "py.typed").exists()


def test_a_type_checker_knows_tables_aggregates_and_modes(tmp_path: Path) -> None:
    for name, text in STUBS.items():
        stub = tmp_path / name / "__init__.pyi"
        stub.parent.mkdir()
        stub.write_text("\n".join(line[8:] for line in text.splitlines()))
    (tmp_path / "mypy.ini").write_text(CONFIG)
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=mypy.ini", "--cache-dir=cache", "program.py"],
        cwd=tmp_path,
        env={"MYPYPATH": f"{tmp_path}:{SOURCE.parent}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
