"""Times that are whole numbers, which count microseconds since 1970.

A column of seconds or milliseconds since 1970 is as legal, and its windows lie in January 1970;
nanoseconds are out of range.  So `suspect` recognises such a column by three signs together: all
its numbers would be dates of today in that unit; the query's windows last whole seconds; and the
numbers do not begin and end at whole seconds themselves, as a counter of microseconds that someone
made up does.  Whoever counts seconds on purpose has windows of a few thousand microseconds.
"""

from __future__ import annotations

import warnings

import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.outside import level_outside
from ..query.query import Query
from ..windows import Aligned, Driven, Merging, Ticked
from ..windows.contract import LATEST, UTC, Sized, Span

__all__ = ["lasts_seconds", "suspect", "warn_of_whole"]

_SECOND = 1_000_000
#: From 2001 to 2049, in seconds; in other units, times the factor.  As microseconds these are 25
#: minutes of the first hour of 1970, or 17 of its days.
_FROM, _TO = 10**9, 5 * 10**9 // 2
_UNITS = {"s": ("seconds", 1), "ms": ("milliseconds", 10**3), "ns": ("nanoseconds", 10**9)}


def lasts_seconds(query: Query) -> bool:
    """True if a query's windows last some whole number of seconds."""
    window = query.window
    if window.clock is not UTC:  # days or months of a calendar
        return True
    length: int | str | None = None
    if isinstance(window, Sized):
        length = window.length
    elif isinstance(window, Aligned):
        length = window.cycle.longest
    elif isinstance(window, Merging):
        length = window.reach
    elif isinstance(window, Ticked):
        length = window.tick
    elif isinstance(window, Driven) and isinstance(window.keeps, Span):
        length = window.keeps.older
    return isinstance(length, int) and length > 0 and length % _SECOND == 0


def suspect(query: Query, given: pa.DataType, least: int, greatest: int) -> str:
    """Say that times between these two look like seconds or milliseconds; an empty text if they do
    not.

    >>> import sash
    >>> q = sash.Query(time="t", window=sash.tumbling("1 hour"), select={"n": sash.count()})
    >>> suspect(q, pa.int64(), 5, 10), suspect(q, pa.int64(), 1_770_000_000, 1_770_086_400)[:46]
    ('', "the times in column 't' look like seconds sinc")
    """
    unit = _unit_of(least, greatest) if pa.types.is_integer(given) else ""
    if not unit or not lasts_seconds(query):
        return ""
    if least < LATEST if unit == "ns" else least % _SECOND == greatest % _SECOND == 0:
        return ""
    return (
        f"the times in column {query.time!r} look like {_UNITS[unit][0]} since 1970, and sash "
        "reads whole numbers as microseconds: make them timestamps first (Arrow: "
        f"cast(pyarrow.timestamp({unit!r})), pandas: to_datetime(…, unit={unit!r}), Polars: "
        f"from_epoch(…, time_unit={unit!r}), for one event: numpy.datetime64(…, {unit!r})); or, if "
        "they are microseconds, cast them to timestamp('us')"
    )


def _unit_of(least: int, greatest: int) -> str:
    """The unit in which times between these two are dates of today; else empty."""
    for unit, (_, factor) in _UNITS.items():
        if _FROM * factor <= least <= greatest < _TO * factor:
            return unit
    return ""


def warn_of_whole(query: Query, table: pa.Table, *, first: bool = False) -> None:
    """Warn if the times of a table, or of a stream's `first` batch, look like another unit than
    microseconds.  Over a table, times beyond the range are an error by themselves."""
    column = table.column(query.time) if query.time in table.column_names else pa.nulls(0)
    if not pa.types.is_integer(column.type) or len(column) == column.null_count:
        return
    one = column[0].as_py()
    if one is not None and not _unit_of(one, one):
        return  # without a pass over the column
    ends = pc.min_max(column).as_py()
    if ends["max"] >= LATEST and not first:
        return
    if text := suspect(query, column.type, ends["min"], ends["max"]):
        warnings.warn(text, RuntimeWarning, stacklevel=level_outside())
