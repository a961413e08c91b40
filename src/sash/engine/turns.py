"""Turns: a stream runs its calls one after another, and none after a call that broke off halfway.

A stream's calls take milliseconds, so a thread waits for its turn.  If an operator's function calls
back into its own stream, it would wait for itself, so the stream refuses the call.

A call sets `changing` when it begins to change the stream, and resets it when the change is
complete, or when nothing has changed after all.  If a call raises while `changing` is set, the
stream refuses further use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import Lock, get_ident
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from weakref import WeakSet

from ..aggregators.guard import InUse
from ..kernels.threads import caller

__all__ = ["BROKEN", "Turns", "in_turn", "in_turn_as_it_is"]

#: The message of a stream that a call left half changed.
BROKEN = (
    "{} stopped this stream in the middle of a batch, and its state is not sound any more: make a "
    "new stream, or restore one from its bytes"
)


class Turns:
    """Whose turn it is on a stream."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.owner = 0  # the thread that holds the lock
        self.changing = False  # True while a call is in the middle of a change
        self.broken = ""  # why the stream cannot be used any more
        _ALL.add(self)

    def __deepcopy__(self, memo: Any) -> Turns:
        """The turns of a copied stream, which no thread uses yet."""
        made = Turns()
        made.broken = self.broken
        return made

    def refuse(self) -> None:
        """Refuse a call from within a call."""
        if self.owner == caller() and self.lock.locked():
            raise InUse(
                "this stream is in the middle of a call, and a function that it called uses it "
                "again; an operator's functions and `where` cannot use their own stream"
            )

    def check(self) -> None:
        """Refuse a stream that cannot be used any more."""
        if self.broken:
            raise RuntimeError(self.broken)

    @contextmanager
    def between(self) -> Iterator[None]:
        """Hold a stream's turn between two calls; within a call, do nothing."""
        if self.owner == caller():
            yield
        else:
            with self.lock:
                yield


class HasTurns(Protocol):
    """A stream."""

    _turns: Turns

    def _settle(self) -> None:
        """Do the work that earlier calls put off."""


P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound=HasTurns)


def in_turn(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Decorate a method of a stream: a call waits for its turn, then does the work that earlier
    calls put off, then runs."""
    return _in_turn(method, settles=True)


def in_turn_as_it_is(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Decorate a method of a stream: a call waits for its turn, and leaves the work that earlier
    calls put off to the method."""
    return _in_turn(method, settles=False)


def _in_turn(
    method: Callable[Concatenate[S, P], T], *, settles: bool
) -> Callable[Concatenate[S, P], T]:
    @wraps(method)
    def call(self: S, /, *given: P.args, **named: P.kwargs) -> T:
        turns = self._turns
        turns.refuse()
        with turns.lock:
            try:
                turns.owner = caller()
                turns.check()
                if settles:
                    self._settle()
                found = method(self, *given, **named)
                turns.changing = False
                return found
            except BaseException as error:
                if turns.changing:
                    turns.broken = BROKEN.format(type(error).__name__)
                raise
            finally:
                turns.owner = 0

    return call


_ALL: WeakSet[Turns] = WeakSet()


def _after_fork() -> None:
    """Mark streams as broken in a child process if another thread of the parent was using them: no
    thread of the child completes the change."""
    for turns in list(_ALL):
        if turns.lock.locked() and turns.owner != get_ident():
            turns.lock, turns.owner = Lock(), 0
            turns.broken = BROKEN.format("a fork, while another thread used it,")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
