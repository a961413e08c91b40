"""The sash command in a terminal, and the screen as a person sees it."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import pexpect
import pyte

COLUMNS, LINES = 100, 30


class Terminal:
    """Runs a command in a pty, and draws what it writes."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.Stream(self._screen)
        self.child: Any = pexpect.spawn(
            sys.executable,
            ["-c", "from sash.cli import main; main()", *arguments],
            env=os.environ | {"TERM": "xterm-256color", "SASH_JIT": "0"} | environment,
            dimensions=(LINES, COLUMNS),
            encoding="utf-8",
            timeout=60,
        )
        self.seen = ""

    def screen(self) -> str:
        """The lines on the screen."""
        return "\n".join(line.rstrip() for line in self._screen.display).strip()

    def until(self, wanted: str, seconds: float = 30) -> str:
        """Wait for text on the screen, and return the screen."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ended = not self._read()
            if wanted in self.screen():
                return self.screen()
            if ended:
                break
        raise AssertionError(f"{wanted!r} did not come; the screen shows\n{self.screen()}")

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.child.sendintr()

    def end(self, seconds: float = 60) -> int:
        """Wait for the end, and return the exit code."""
        end = time.monotonic() + seconds
        while self._read():
            assert time.monotonic() < end, f"no end; the screen shows\n{self.screen()}"
        self.child.close()
        assert self.child.exitstatus is not None, f"killed by signal {self.child.signalstatus}"
        return int(self.child.exitstatus)

    def _read(self) -> bool:
        """Draw what has come; False at the end."""
        try:
            text = self.child.read_nonblocking(65536, timeout=0.2)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.seen += text
        self._stream.feed(text)
        return True
