"""Finds the line of code that called into sash, for warnings.

The number of calls between that line and the warning varies.
"""

from __future__ import annotations

import sys

__all__ = ["level_outside"]

_SASH = __name__.partition(".")[0] + "."


def level_outside() -> int:
    """The `stacklevel` with which the caller's warning points to the line that called into sash."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_SASH):
        level, frame = level + 1, frame.f_back
    return level
