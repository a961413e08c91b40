"""The functions of `chains` for vectors, which have a place in memory and are never values."""

from __future__ import annotations

from .slots import WIDTH, Memory, combine, copy

__all__ = ["accumulate", "fold", "join", "splice", "weave"]


def accumulate(m: Memory, ring: int, mask: int, first: int, last: int) -> None:
    """Replace each slot of a ring by the aggregate from it to the last."""
    for i in range(last - 1, first - 1, -1):
        at = ring + (i & mask)
        combine(m, at, at, ring + ((i + 1) & mask))


def join(m: Memory, dst: int, a: int, b: int, c: int) -> None:
    """Combine three slots."""
    combine(m, dst, a, b)
    combine(m, dst, dst, c)


def fold(m: Memory, dst: int, first: int, count: int) -> None:
    """Combine neighbouring slots."""
    copy(m, dst, first)
    for i in range(1, count):
        combine(m, dst, dst, first + WIDTH * i)


def splice(m: Memory, dst: int, first: int, count: int, at: int, new: int) -> None:
    """Combine neighbouring slots with a new one between them."""
    if at > 0:
        fold(m, dst, first, at)
        combine(m, dst, dst, new)
    else:
        copy(m, dst, new)
    for i in range(at, count):
        combine(m, dst, dst, first + WIDTH * i)


def weave(
    m: Memory, dst: int, between: int, first: int, count: int, head: int, tail: int, at: int
) -> None:
    """Combine two runs of slots, one of each in turn."""
    if head != 0:
        combine(m, dst, between, first)
    else:
        copy(m, dst, first)
    for i in range(1, count):
        combine(m, dst, dst, between + WIDTH * i)
        combine(m, dst, dst, first + WIDTH * i)
    if tail != 0:
        combine(m, dst, dst, between + WIDTH * count)
