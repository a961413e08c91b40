"""Queries on Spark: a DataFrame in, a DataFrame out.

session     a Spark session with the settings that sash needs
aggregate   the results of a query over a batch or streaming DataFrame
at          the values of a query as of given moments
explain     how a query runs, why, and what it costs
sql         the results of an SQL statement over Spark's tables and views
way         how a query runs over a table, and why
split       separates results from rows that missed windows
upsert      a sink for `foreachBatch` that keeps each revision once, whatever Spark replays
latest      the last revision of each window that `upsert` has kept
compact     writes these last revisions to another path
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .packages import check_packages as _check_packages

_check_packages()  # before any import that needs the packages

if TYPE_CHECKING:
    from .as_of import at
    from .explaining import explain
    from .frames import aggregate, way
    from .sessions import session
    from .sink import compact, latest, split, upsert
    from .statements import sql

__all__ = [
    "aggregate",
    "at",
    "compact",
    "explain",
    "latest",
    "session",
    "split",
    "sql",
    "upsert",
    "way",
]

#: The module of each public name.  A Python worker imports this package too, and needs none of
#: them.
_PLACES = {
    "aggregate": "frames",
    "at": "as_of",
    "explain": "explaining",
    "way": "frames",
    "session": "sessions",
    "compact": "sink",
    "latest": "sink",
    "split": "sink",
    "sql": "statements",
    "upsert": "sink",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_PLACES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
