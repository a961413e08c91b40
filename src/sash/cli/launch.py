"""Start Spark for a job, send its output to a log, and turn failures into one message."""

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

#: Opens the display of a run on an output stream.
Opened = Callable[[TextIO], AbstractContextManager[tuple[Watcher, Show]]]

#: Times without a zone are UTC everywhere, and Spark draws no progress bar over ours.
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
    """The number of partitions of a shuffle if Spark cannot count its cores and would take 200,
    each of which starts Python: one for each bucket, if the job sets `buckets`."""
    here = (master or remote or "").startswith("local")
    return None if here else ready.job.tables.run.buckets


@contextlib.contextmanager
def terminal(log: Path) -> Iterator[tuple[TextIO, Stop]]:
    """Yield the terminal and the Ctrl-C watcher, while all other output goes to a log.  A failure
    becomes a message with its root cause and the path of the log."""
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
    """A Spark session that leaves Ctrl-C to us."""
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
    """Examine the Python of a worker."""
    if remote is None:
        need_java()
    with (
        terminal(log_path("doctor")) as (_, stop),
        session("sash doctor", stop, master=master, remote=remote) as spark,
    ):
        return list(examine_worker(spark))


def _text(error: Exception) -> str:
    """The message of an error, with those of its causes."""
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    return str(error)
