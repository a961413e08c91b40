"""Errors of the command line, and the exit code of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["FAILED", "INTERRUPTED", "WRONG", "Interrupted", "JobError", "Problem", "RunError"]

FAILED, WRONG, INTERRUPTED = 1, 2, 130


@dataclass(frozen=True)
class Problem:
    """Something wrong with a file, and the line on which it stands."""

    line: int
    text: str
    file: Path | None = None  # where it is not the job file

    def said(self, job: Path) -> str:
        """The problem, with its place before it."""
        return f"{self.file or job}:{self.line}: {self.text}"


class JobError(Exception):
    """A job file that cannot be run: exit code 2."""

    def __init__(self, file: Path, problems: list[Problem]) -> None:
        self.file = file
        once = dict.fromkeys(problems)
        self.problems = sorted(once, key=lambda p: (str(p.file or ""), p.line))
        super().__init__("\n".join(p.said(file) for p in self.problems))


class RunError(Exception):
    """A run that failed: exit code 1.  The message has the cause in one sentence."""


class Interrupted(Exception):
    """A run that Ctrl-C ended: exit code 130."""
