"""Starts Spark for a job, sends what it says to a log, and turns failures into one message."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from .causes import root_cause
from .check import Ready
from .doctor import Finding, examine_worker
from .errors import Interrupted, RunError
from .java import need_java
from .logs import captured, log_path
from .on_spark import run_on_spark
from .report import Watcher
from .stopping import Stop
from .writing import Show

__all__ = ["Opened", "ask_worker", "launch", "session", "terminal"]

#: Opens what is shown of a run on a stream.
Opened = Callable[[TextIO], AbstractContextManager[tuple[Watcher, Show]]]

#: Times without a zone mean the same everywhere, and nothing is drawn over our own progress.
_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
}


def launch(
    ready: Ready,
    opened: Opened,
    *,
    master: str | None = None,
    remote: str | None = None,
    log: Path | None = None,
) -> None:
    """Run a job on Spark."""
    if remote is None or remote.startswith("local"):
        need_java()
    with terminal(log or log_path(ready.job.name)) as (out, stop), opened(out) as (watch, show):
        watch.started(ready, None)
        many = _partitions(ready, master, remote)
        with session(ready.job.name, stop, master=master, remote=remote, partitions=many) as spark:
            run_on_spark(spark, ready, watch, show, stop, remote=remote is not None)


def _partitions(ready: Ready, master: str | None, remote: str | None) -> int | None:
    """How many partitions a shuffle has where Spark cannot tell its cores and would take 200, each
    of which starts Python: one for each bucket, if the job says how many there are."""
    here = (master or remote or "").startswith("local")
    return None if here else ready.job.tables.run.buckets


@contextlib.contextmanager
def terminal(log: Path) -> Iterator[tuple[TextIO, Stop]]:
    """Where people read, and Ctrl-C, while all else that is written goes to a log; a failure is
    its root cause, and where the log is."""
    with captured(log) as out:
        stop = Stop(out)
        with stop.watched():
            try:
                yield out, stop
            except (RunError, Interrupted, KeyboardInterrupt):
                raise
            except Exception as error:
                traceback.print_exc()  # into the log
                raise RunError(f"{root_cause(_text(error))}\nthe full log: {log}") from None


@contextlib.contextmanager
def session(
    name: str,
    stop: Stop,
    *,
    master: str | None = None,
    remote: str | None = None,
    partitions: int | None = None,
) -> Iterator[Any]:
    """A Spark session, in which Ctrl-C is ours."""
    try:
        import sash.spark
    except ImportError as error:
        raise RunError(str(error)) from None
    make = partial(
        sash.spark.session,
        master,
        remote=remote,
        name=name,
        partitions=partitions,
        config=_SETTINGS,
    )
    spark = stop.until(make)
    try:
        yield spark
    finally:
        with contextlib.suppress(Exception):  # Java may be gone
            spark.stop()


def ask_worker(*, master: str, remote: str | None) -> list[Finding]:
    """What the Python of a worker has."""
    if remote is None:
        need_java()
    with (
        terminal(log_path("doctor")) as (_, stop),
        session("sash doctor", stop, master=master, remote=remote) as spark,
    ):
        return list(examine_worker(spark))


def _text(error: Exception) -> str:
    """All that an error says, with its causes."""
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    return str(error)
