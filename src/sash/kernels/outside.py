"""Where the code is that called into sash, for warnings: the same line of sash is reached over
more or fewer calls."""

from __future__ import annotations

import sys

__all__ = ["level_outside"]

_SASH = __name__.partition(".")[0] + "."


def level_outside() -> int:
    """The `stacklevel` with which a warning of the caller names the line that called into sash."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_SASH):
        level, frame = level + 1, frame.f_back
    return level
