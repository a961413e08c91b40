"""Windows of one size, one after the other: sliding windows whose slide is their size.

tumbling("4 min")      0         4         8         12   min
                       [---------)[--------)[---------)
"""

from __future__ import annotations

from datetime import tzinfo
from typing import Any, overload

from .calendars import Calendar
from .empty import Empty
from .sliding import Sliding, sliding

__all__ = ["tumbling"]


@overload
def tumbling(
    size: Any,
    offset: Any = 0,
    timezone: None = None,
    empty: Empty | None = None,
    idle: Any = None,
) -> Sliding: ...
@overload
def tumbling(
    size: Any,
    offset: Any = 0,
    *,
    timezone: str | tzinfo,
    empty: Empty | None = None,
    idle: Any = None,
) -> Calendar: ...


def tumbling(
    size: Any,
    offset: Any = 0,
    timezone: str | tzinfo | None = None,
    empty: Empty | None = None,
    idle: Any = None,
) -> Sliding | Calendar:
    """Windows of one size, one after the other; with a `timezone`, the days, weeks, months,
    quarters or years of the zone's calendar.  `empty` and `idle` work as in `sliding`.

    >>> tumbling("1 day", offset="6 hours")
    tumbling('1 day', offset='6 hours')
    >>> tumbling("1 day", timezone="America/New_York")
    tumbling('1 day', timezone='America/New_York')
    """
    if timezone is None:
        return sliding(size, size, offset, empty=empty, idle=idle)
    return sliding(size, size, offset, timezone=timezone, empty=empty, idle=idle)
