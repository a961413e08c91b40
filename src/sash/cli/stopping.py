"""Handle Ctrl-C while Spark runs: the first stops after the micro-batch, the second at once.

PySpark's own handler cancels all jobs, which fails the micro-batch.  PySpark installs it if the
main thread creates the session, so we create the session in another thread.  Java and the Python
workers never see Ctrl-C: Java starts with the signal ignored, and workers have a process group of
their own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from .errors import INTERRUPTED

__all__ = ["PATIENCE", "Stop", "end_java"]

PATIENCE = 30.0  # seconds for the micro-batch


class Stop:
    """Records whether the user pressed Ctrl-C."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self.asked = False

    def press(self, *_: Any) -> None:
        """Handle a Ctrl-C."""
        if self.asked:
            self._at_once()
        self.asked = True

    def _at_once(self) -> None:
        """End without waiting.  The next run repeats the micro-batch, so Java must be gone before
        that run can start."""
        shown = "\x1b[?25h" if self._out.isatty() else ""  # progress has hidden the cursor
        print(f"{shown}\nstopped at once; the next run does this micro-batch again", file=self._out)
        self._out.flush()
        end_java()
        os._exit(INTERRUPTED)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Listen for Ctrl-C."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self.press)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def until(self, work: Callable[[], Any]) -> Any:
        """Run a function in another thread and return its result; Ctrl-C does not wait for it."""
        done: list[Any] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                done.append(work())
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(0.1)
            if self.asked:
                raise KeyboardInterrupt
        if failed:
            raise failed[0]
        return done[0]


def end_java() -> None:
    """Kill the Java process that PySpark started here, whatever it is doing."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    with contextlib.suppress(Exception):
        if gateway is not None:
            gateway.proc.kill()
            gateway.proc.wait(timeout=10)
