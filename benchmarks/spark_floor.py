"""The least that Spark's Python can do, which nothing written in Python can be faster than.

Workers import this module, and so it imports what all of Spark's workers have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

__all__ = ["Empty", "counted"]


def counted(batches: Iterator[Any]) -> Iterator[Any]:
    """The number of rows of a task: the least that Python can do with them."""
    import pyarrow as pa

    yield pa.record_batch({"rows": pa.array([sum(batch.num_rows for batch in batches)])})


class Empty(StatefulProcessor):
    """One get and one put: the least that a stateful operator in Python can do."""

    def init(self, handle: Any) -> None:
        self._state = handle.getValueState("state", "n long")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        import pandas as pd

        known = self._state.get()
        n = sum(len(frame) for frame in rows) + (known[0] if known else 0)
        self._state.update((n,))
        yield pd.DataFrame({"bucket": [key[0]], "n": [n]})

    def close(self) -> None:
        """Nothing is kept."""
