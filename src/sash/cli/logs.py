"""What Spark and its Python workers say goes to a file: the terminal is left to progress."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

__all__ = ["captured", "log_path"]


def log_path(job: str) -> Path:
    """A file for the log of a run."""
    name = re.sub(r"[^\w.-]", "_", job)
    return (
        Path(tempfile.gettempdir())
        / f"sash-{name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    )


@contextlib.contextmanager
def captured(log: Path) -> Iterator[TextIO]:
    """Send what this process and those it starts write to stderr into a file; yields what stderr
    was, for messages to people."""
    sys.stderr.flush()
    log.parent.mkdir(parents=True, exist_ok=True)
    shown = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8")
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    before = sys.stderr
    os.dup2(file, 2)
    os.close(file)
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8")
    try:
        yield shown
    finally:
        sys.stderr.close()
        sys.stderr = before
        os.dup2(shown.fileno(), 2)
        shown.close()
