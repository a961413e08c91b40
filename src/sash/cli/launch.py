"""Starts Spark for a job, sends what it says to a log, and turns failures into one message."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TextIO

from .causes import root_cause
from .check import Ready
from .doctor import Finding, examine_worker
from .errors import Interrupted, RunError
from .java import need_java
from .logs import captured, log_path
from .on_spark import Show, run_on_spark
from .report import Watcher
from .stopping import Stop

__all__ = ["Opened", "ask_worker", "launch", "started"]

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
    with started(ready, opened, master=master, remote=remote, log=log) as (
        spark,
        watch,
        show,
        stop,
    ):
        run_on_spark(spark, ready, watch, show, stop, remote=remote is not None)


@contextlib.contextmanager
def started(
    ready: Ready,
    opened: Opened,
    *,
    master: str | None = None,
    remote: str | None = None,
    log: Path | None = None,
) -> Iterator[tuple[Any, Watcher, Show, Stop]]:
    """A Spark session, who is told how the run goes, how rows are shown, and Ctrl-C."""
    if remote is None:
        need_java()
    path = log or log_path(ready.job.name)
    with captured(path) as out:
        stop = Stop(out)
        with stop.watched(), opened(out) as (watch, show):
            watch.started(ready, None)
            try:
                spark = _session(ready.job.name, master, remote)
                stop.listen_again()
                try:
                    yield spark, watch, show, stop
                finally:
                    spark.stop()
            except (RunError, Interrupted, KeyboardInterrupt):
                raise
            except Exception as error:
                raise _failure(error, path) from None


def _session(name: str, master: str | None, remote: str | None) -> Any:
    try:
        import sash.spark
    except ImportError as error:
        raise RunError(str(error)) from None
    return sash.spark.session(master, remote=remote, name=name, config=_SETTINGS)


def ask_worker(*, master: str, remote: str | None) -> list[Finding]:
    """What the Python of a worker has."""
    if remote is None:
        need_java()
    path = log_path("doctor")
    with captured(path):
        try:
            spark = _session("sash doctor", master, remote)
            try:
                return list(examine_worker(spark))
            finally:
                spark.stop()
        except RunError:
            raise
        except Exception as error:
            raise _failure(error, path) from None


def _failure(error: Exception, log: Path) -> RunError:
    """The error's root cause, and where the rest is."""
    traceback.print_exc()  # into the log
    return RunError(f"{root_cause(_text(error))}\nthe full log: {log}")


def _text(error: Exception) -> str:
    """All that an error says, with its causes."""
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    return str(error)
