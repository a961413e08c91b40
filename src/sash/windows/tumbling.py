"""Windows of one size, one after the other: sliding windows whose slide is their size.

tumbling("4 min")      0         4         8         12   min
                       [---------)[--------)[---------)
"""

from __future__ import annotations

from typing import Any

from .sliding import Sliding, sliding

__all__ = ["tumbling"]


def tumbling(size: Any, offset: Any = 0) -> Sliding:
    """Windows of a size, one after the other.

    >>> tumbling("1 day", offset="6 hours")
    tumbling('1 day', offset='6 hours')
    """
    return sliding(size, size, offset)
