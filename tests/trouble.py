"""Errors at every point where Python code runs, for tests of what they leave behind."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import sash

__all__ = ["Alarm", "Trap", "alarms", "in_threads", "interrupted", "refusal"]


class Trap:
    """Called by an operator's functions.  Once it is set, it raises at the nth call, or calls
    something itself at the next."""

    def __init__(self) -> None:
        self.after: int | None = None
        self.error: type[BaseException] = ValueError
        self.calls = 0
        self.act: Callable[[], Any] | None = None

    def __call__(self) -> None:
        self.calls += 1
        if self.act is not None:
            act, self.act = self.act, None
            act()
        if self.after is not None:
            self.after -= 1
            if self.after < 0:
                self.after = None
                raise self.error("here")


@contextmanager
def interrupted(at: int, within: str = "sash") -> Iterator[list[int]]:
    """Raise a KeyboardInterrupt before the nth line of sash's code that runs, or of its files with
    a name, and count the lines.

    Left out are the checks of addresses without the JIT, which go over all arrays that are alive,
    and the loading of kernels, which has a lock: here an error can come as the lock is given back,
    where no signal is handled.  So is `__del__`, out of which no error comes.
    """
    seen = [0]

    def line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            seen[0] += 1
            if seen[0] == at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        apart = "/tests/" in name or name.endswith(("checked.py", "program.py"))
        apart = apart or frame.f_code.co_name == "__del__"
        return line if within in name and not apart else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield seen
    finally:
        sys.settrace(before)


class Alarm:
    """Raises an error out of a signal, once, a while after `ring` and not after `rest`."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error, self.armed = error, False

    def ring(self, seconds: float) -> None:
        self.armed = True
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def rest(self) -> None:
        self.armed = False

    def __call__(self, *_: Any) -> None:
        if self.armed:
            raise self.error


@contextmanager
def alarms(error: type[BaseException]) -> Iterator[Alarm]:
    """An alarm for the tests' thread.  A signal that comes within a callback of the garbage
    collector or a `__del__` is lost, as Python lets no error out of these."""
    alarm, hook = Alarm(error), sys.unraisablehook

    def unraisable(found: Any) -> None:
        if found.exc_type is not error:
            hook(found)

    before = signal.signal(signal.SIGALRM, alarm)
    sys.unraisablehook = unraisable
    try:
        yield alarm
    finally:
        alarm.rest()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook


def refusal(call: Callable[[], Any]) -> str:
    """What a call is refused with, because of an earlier one; nothing if it is not."""
    try:
        call()
    except sash.InUse:
        return "in use"
    except RuntimeError as error:
        return "not sound" if "not sound any more" in str(error) else f"{error!r}"
    return ""


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run work(0), work(1), … side by side, with as many changes of thread as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(before)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
