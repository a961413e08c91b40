"""A core: a kernel's functions, and the memory of one aggregator, on which they work.

`BufferCore` keeps the memory in one flat buffer, `ObjectCore` in Python lists.
"""

from __future__ import annotations

from functools import cache

from ..operators import count
from ..operators.contract import Operator
from .buffer_memory import BufferCore
from .memory import Core
from .object_memory import ObjectCore
from .partials import decoder, encoder
from .program import Kernel, specialise

__all__ = ["BufferCore", "Core", "ObjectCore", "decoder", "encoder", "make_core", "shared_core"]


def make_core(kernel: Kernel, operator: Operator, capacity: int) -> BufferCore | ObjectCore:
    """Specialise a kernel to an operator, and make a memory for it."""
    program = specialise(kernel, operator)
    if program.layout is None:
        return ObjectCore(kernel, program, capacity)
    return BufferCore(kernel, program, capacity)


@cache
def shared_core(kernel: Kernel) -> BufferCore:
    """The core of a kernel that depends on no operator and keeps nothing in its memory, so that all
    threads share it."""
    made = make_core(kernel, count.of("int64"), 1)
    assert isinstance(made, BufferCore)
    return made
