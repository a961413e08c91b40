"""Root causes out of what Spark says."""

from __future__ import annotations

import pytest

from sash.cli.causes import root_cause

pytestmark = pytest.mark.plain

PYTHON = """[STREAM_FAILED] Query [id = 7e, runId = 5c] terminated with exception: Job aborted due \
to stage failure: Task 1 in stage 3.0 failed 1 times, most recent failure: Lost task 1.0 in stage \
3.0 (TID 4) (127.0.0.1 executor driver): org.apache.spark.api.python.PythonException: Traceback \
(most recent call last):
  File "/x/worker.py", line 1, in main
    process()
  File "/x/queries.py", line 9, in combine
    raise ValueError("no sum for 3
and 4")
ValueError: key 'a', window 12:00: no sum for 3
and 4

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)

Driver stacktrace:
Caused by: org.apache.spark.api.python.PythonException: ... SQLSTATE: XXKST
"""

JAVA = """org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed. SQLSTATE: 58030
\tat org.apache.spark.sql.errors.QueryExecutionErrors
Caused by: java.io.IOException: Mkdirs failed to create file:/tmp/file/out
\tat org.apache.hadoop.fs.ChecksumFileSystem.create(ChecksumFileSystem.java:515)
"""


def test_the_last_error_of_a_worker_is_the_cause() -> None:
    assert root_cause(PYTHON) == "key 'a', window 12:00: no sum for 3 and 4 (ValueError)"


def test_an_error_of_any_name_is_the_cause_and_one_that_passes_it_on_is_not() -> None:
    trace = "Traceback (most recent call last):\n  File "
    text = f"{trace}1\nValueError: no\n\nwhich caused\n\n{trace}2\nsash.x.CombineFailed: n: no\n\n"
    assert root_cause(text) == "n: no (CombineFailed)"
    passed = f"{text}{trace}3\npy4j.protocol.Py4JJavaError: An error occurred while calling o7.x.\n"
    assert root_cause(passed) == "n: no (CombineFailed)"


def test_the_last_cause_of_java_is_the_cause() -> None:
    assert root_cause(JAVA) == "Mkdirs failed to create file:/tmp/file/out (IOException)"


def test_else_it_is_what_spark_says() -> None:
    said = "[PATH_NOT_FOUND] Path does not exist: file:/x. SQLSTATE: 42K03"
    assert root_cause(said) == "[PATH_NOT_FOUND] Path does not exist: file:/x."
    assert root_cause("") == "no reason was given"
    assert root_cause("a plain message\n\nand more") == "a plain message"
