"""Queries on Spark: a DataFrame in, a DataFrame out.

aggregate   the results of a query over a bounded or streaming DataFrame
split       parts results from rows that missed windows
upsert      a sink for `foreachBatch` that keeps revisions, whatever is replayed
latest      the last revision of each window kept by it
compact     the same, written to another place
"""

from .frames import aggregate
from .sink import compact, latest, split, upsert

__all__ = ["aggregate", "compact", "latest", "split", "upsert"]
