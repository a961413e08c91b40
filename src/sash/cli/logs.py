"""Send the output of Spark and its Python workers to a file, and leave the terminal to progress."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from .errors import RunError

__all__ = ["captured", "failures", "log_path"]


def log_path(job: str) -> Path:
    """A file for the log of a run."""
    name = re.sub(r"[^\w.-]", "_", job)
    return (
        Path(tempfile.gettempdir())
        / f"sash-{name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    )


@contextlib.contextmanager
def captured(log: Path) -> Iterator[TextIO]:
    """Redirect stderr of this process, and of processes that it starts, to a file; yields the
    original stderr, for messages to people."""
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


@contextlib.contextmanager
def failures(log: Path | None, job: str) -> Iterator[None]:
    """Turn an unexpected error into one message; its trace goes to a log."""
    try:
        yield
    except RunError:
        raise
    except Exception as error:
        path = log or log_path(job)
        path.write_text(traceback.format_exc(), encoding="utf-8")
        said = error.args[0] if isinstance(error, KeyError) and error.args else error
        raise RunError(f"{said} ({type(error).__name__})\nthe full log: {path}") from None
