"""Queries on Spark: a DataFrame in, a DataFrame out.

session     a Spark session with all that sash needs
aggregate   the results of a query over a bounded or streaming DataFrame
way         how a query runs over a table, and why
split       parts results from rows that missed windows
upsert      a sink for `foreachBatch` that keeps revisions, whatever is replayed
latest      the last revision of each window kept by it
compact     the same, written to another place
"""

from .packages import check_packages as _check_packages

_check_packages()  # before what needs them is imported

from .frames import aggregate, way  # noqa: E402
from .session import session  # noqa: E402
from .sink import compact, latest, split, upsert  # noqa: E402

__all__ = ["aggregate", "compact", "latest", "session", "split", "upsert", "way"]
