"""Ctrl-C while Spark runs: once, to stop after the micro-batch; twice, at once.

PySpark's own handler cancels all jobs, which fails the micro-batch; it is replaced.  Java and the
Python workers never see Ctrl-C: Java is started with it ignored, and workers have a process group
of their own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any, TextIO

from .errors import INTERRUPTED

__all__ = ["PATIENCE", "Stop"]

PATIENCE = 30.0  # seconds for the micro-batch


class Stop:
    """Whether Ctrl-C was pressed."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self.asked = False
        self.starting = True  # nothing runs yet that could be finished

    def press(self, *_: Any) -> None:
        """Ctrl-C was pressed."""
        if self.asked:
            self._at_once()
        self.asked = True
        if self.starting:
            raise KeyboardInterrupt

    def _at_once(self) -> None:
        """End without waiting.  The micro-batch is done anew by the next run, so Java must be gone
        before that can start."""
        print("\nstopped at once; the next run does this micro-batch again", file=self._out)
        self._out.flush()
        with contextlib.suppress(Exception):
            from pyspark import SparkContext

            gateway: Any = SparkContext._gateway
            if gateway is not None:
                gateway.proc.kill()
                gateway.proc.wait(timeout=10)
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

    def listen_again(self) -> None:
        """Replace the handler that PySpark has put in place."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self.press)
