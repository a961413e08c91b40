"""Errors of the command line, and the exit code of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["FAILED", "INTERRUPTED", "WRONG", "Interrupted", "JobError", "Problem", "RunError"]

FAILED, WRONG, INTERRUPTED = 1, 2, 130


@dataclass(frozen=True)
class Problem:
    """A mistake in a file, and its line."""

    line: int
    text: str
    file: Path | None = None  # None for the job file itself

    def said(self, job: Path) -> str:
        """The message, with file and line before it."""
        return f"{self.file or job}:{self.line}: {self.text}"


class JobError(Exception):
    """Raised for a job file that cannot run: exit code 2."""

    def __init__(self, file: Path, problems: list[Problem]) -> None:
        self.file = file
        once = dict.fromkeys(problems)
        self.problems = sorted(once, key=lambda p: (str(p.file or ""), p.line))
        super().__init__("\n".join(p.said(file) for p in self.problems))


class RunError(Exception):
    """Raised for a run that failed: exit code 1.  The message states the cause in one sentence."""


class Interrupted(Exception):
    """Raised when Ctrl-C ends a run: exit code 130."""
