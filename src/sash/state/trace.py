"""What a run did, for whoever asks: the steps that it took, and the room that it made.

Which way a table goes depends on its rows, so it is only known when they are there.  `explain` runs
a sample and shows the way that the sample took.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from ..kernels.core import BufferCore, ObjectCore
from ..kernels.slots import CAPACITY

__all__ = ["Trace", "note_room", "note_step", "tracing"]


@dataclass
class Trace:
    """The steps that a run took, each once; the most entries that it made room for at once, and
    their bytes."""

    steps: list[str] = field(default_factory=list)
    entries: int = 0
    bytes: int = 0


_open: ContextVar[Trace | None] = ContextVar("sash trace", default=None)


@contextmanager
def tracing() -> Iterator[Trace]:
    """Note what runs do meanwhile.

    >>> with tracing() as trace:
    ...     note_step("rows are sorted")
    >>> trace.steps
    ['rows are sorted']
    """
    made = Trace()
    before = _open.set(made)
    try:
        yield made
    finally:
        _open.reset(before)


def note_step(step: str) -> None:
    """Note that a step is taken."""
    trace = _open.get()
    if trace is not None and step not in trace.steps:
        trace.steps.append(step)


def note_room(core: BufferCore | ObjectCore) -> None:
    """Note the memory that a kernel works on."""
    trace = _open.get()
    if trace is None:
        return
    entries = int(core.get(CAPACITY))
    trace.entries = max(trace.entries, entries)
    size = core.buffer.nbytes if isinstance(core, BufferCore) else 8 * entries
    trace.bytes = max(trace.bytes, size)
