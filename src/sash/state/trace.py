"""A trace of a run: the steps that it took, and the memory that it used.

How sash computes a table depends on the table's rows.  So `explain` runs a sample, and shows the
steps that the sample took.
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
    """The steps that a run took, each once; the largest number of entries that a kernel had room
    for, and the bytes of its memory."""

    steps: list[str] = field(default_factory=list)
    entries: int = 0
    bytes: int = 0


_open: ContextVar[Trace | None] = ContextVar("sash trace", default=None)


@contextmanager
def tracing() -> Iterator[Trace]:
    """Trace all runs within the `with` block.

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
    """Add a step to the trace, if there is one."""
    trace = _open.get()
    if trace is not None and step not in trace.steps:
        trace.steps.append(step)


def note_room(core: BufferCore | ObjectCore) -> None:
    """Add the memory of a kernel to the trace, if there is one."""
    trace = _open.get()
    if trace is None:
        return
    entries = int(core.get(CAPACITY))
    trace.entries = max(trace.entries, entries)
    size = core.buffer.nbytes if isinstance(core, BufferCore) else 8 * entries
    trace.bytes = max(trace.bytes, size)
