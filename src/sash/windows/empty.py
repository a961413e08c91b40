"""Windows that hold nothing, between two of a key that hold something.

    tumbling("1 hour", empty="zero")     x            x        x: an event of the key
                                         [---)[---)[---)
                                           1    0    1         count()

A gap is filled if the window that ends it starts at most `idle` after the end of the one before it.
So which windows there are depends on the events alone, and on a stream a key is forgotten that long
after the end of its last window.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from .contract import Aligned
from .durations import check_length, duration, duration_text

__all__ = ["Empty", "check_empty", "empty_text", "idle_of"]

#: What is emitted for a window that holds nothing: the answers over no events.
Empty: TypeAlias = Literal["zero"]


def idle_of(given: Any) -> int | None:
    """How long a gap may be that is filled, as users write it."""
    return None if given is None else duration(given, "how long a key may be idle")


def check_empty(window: Aligned) -> None:
    """Refuse what makes no sense."""
    if window.empty not in (None, "zero"):
        raise ValueError(
            f"empty is 'zero', for windows that hold nothing, or left out, not {window.empty!r}"
        )
    if window.idle is None:
        return
    if window.empty is None:
        raise ValueError(
            "idle says how long a gap may be that is filled with empty windows; give empty='zero' "
            "as well, or leave it out"
        )
    check_length(window.idle, "idle")


def empty_text(window: Aligned) -> str:
    """Both as a window's text has them."""
    if window.empty is None:
        return ""
    idle = "" if window.idle is None else f", idle={duration_text(window.idle)!r}"
    return f", empty={window.empty!r}{idle}"
