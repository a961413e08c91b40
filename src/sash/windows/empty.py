"""Windows without events, between two windows of a key with events.

    tumbling("1 hour", empty="zero")     x            x        x: an event of the key
                                         [---)[---)[---)
                                           1    0    1         count()

sash fills a gap if the window after the gap starts at most `idle` after the end of the window
before it.  So the events alone decide which windows exist, and a stream forgets a key when `idle`
has passed since the end of the key's last window.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from .contract import Aligned
from .durations import check_length, duration, duration_text

__all__ = ["Empty", "check_empty", "empty_text", "idle_of"]

#: The values that sash emits for a window without events: what aggregates answer for no events.
Empty: TypeAlias = Literal["zero"]


def idle_of(given: Any) -> int | None:
    """Convert the longest gap to fill, as users write it, to microseconds."""
    return None if given is None else duration(given, "how long a key may be idle")


def check_empty(window: Aligned) -> None:
    """Raise an error if a window's `empty` and `idle` make no sense."""
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
    """The `empty` and `idle` arguments in a window's repr."""
    if window.empty is None:
        return ""
    idle = "" if window.idle is None else f", idle={duration_text(window.idle)!r}"
    return f", empty={window.empty!r}{idle}"
