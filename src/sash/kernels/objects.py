"""The words of `slots` on Python lists, for partials that are any object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..operators.contract import Operator
from .slots import HEADER

__all__ = ["ObjectMemory", "words"]


class ObjectMemory:
    """A kernel's memory as Python lists: header, partials, links."""

    __slots__ = ("header", "links", "slots")

    def __init__(self, slots: int, identity: Any, *, link: bool) -> None:
        self.header = [0] * HEADER
        self.slots = [identity] * slots
        self.links = [0] * slots if link else []


def words(operator: Operator) -> dict[str, Callable[..., Any]]:
    """What each word of `slots` means for an operator in plain Python."""
    join, lift_value = operator.python_combine(), operator.python_lift()
    lower_partial = operator.python_lower()
    identity = operator.identity
    several = len(operator.skips) != 1

    def get(m: Any, field: int) -> int:
        return m.header[field]  # type: ignore[no-any-return]

    def put(m: Any, field: int, value: int) -> None:
        m.header[field] = value

    def combine(m: Any, dst: int, left: int, right: int) -> None:
        slots = m.slots
        slots[dst] = join(slots[left], slots[right])

    def copy(m: Any, dst: int, src: int) -> None:
        m.slots[dst] = m.slots[src]

    def clear(m: Any, dst: int) -> None:
        m.slots[dst] = identity

    def lift(m: Any, dst: int, columns: Any, row: int) -> None:
        m.slots[dst] = lift_value(tuple(c[row] for c in columns) if several else columns[0][row])

    def lower(m: Any, src: int, outputs: Any, row: int) -> None:
        outputs[row] = lower_partial(m.slots[src])

    def link(m: Any, slot: int) -> int:
        return m.links[slot]  # type: ignore[no-any-return]

    def set_link(m: Any, slot: int, value: int) -> None:
        m.links[slot] = value

    def word(m: Any, at: int) -> int:
        return m.slots[at]  # type: ignore[no-any-return]

    def set_word(m: Any, at: int, value: int) -> None:
        m.slots[at] = value

    def item(array: Any, i: int) -> int:
        return array[i]  # type: ignore[no-any-return]

    def set_item(array: Any, i: int, value: int) -> None:
        array[i] = value

    made: dict[str, Callable[..., Any]] = {
        f.__name__: f
        for f in (
            get,
            put,
            combine,
            copy,
            clear,
            lift,
            lower,
            link,
            set_link,
            word,
            set_word,
            item,
            set_item,
        )
    }
    made["drop"] = clear
    if operator.invertible:
        take_out = operator.python_inverse()

        def inverse(m: Any, dst: int, total: int, old: int) -> None:
            m.slots[dst] = take_out(m.slots[total], m.slots[old])

        made["inverse"] = inverse
    return made
