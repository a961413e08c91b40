"""Queries on Spark: a DataFrame in, a DataFrame out.

session     a Spark session with all that sash needs
aggregate   the results of a query over a bounded or streaming DataFrame
at          the values of a query as of moments of one's choosing
explain     how a query runs, why, and what it costs
sql         the results of a statement of SQL over Spark's tables and views
way         how a query runs over a table, and why
split       parts results from rows that missed windows
upsert      a sink for `foreachBatch` that keeps revisions, whatever is replayed
latest      the last revision of each window kept by it
compact     the same, written to another place
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .packages import check_packages as _check_packages

_check_packages()  # before what needs them is imported

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

#: Where the names are: a Python worker imports this package too, and needs none of them.
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
