"""What one would write without sash: a stateful operator that groups by key and keeps each key's
slices in its own state, with the windows computed anew from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor

__all__ = ["per_key"]


def per_key(df: DataFrame, size: int, every: int) -> DataFrame:
    """The maximum of x over windows of `size` seconds every `every` seconds, per key."""
    rows = df.select("k", F.unix_timestamp("ts").alias("t"), "x")
    return rows.groupBy("k").transformWithStateInPandas(
        statefulProcessor=_Maxima(size, every),
        outputStructType="k int, start long, worst double",
        outputMode="Append",
        timeMode="EventTime",
    )


class _Maxima(StatefulProcessor):
    def __init__(self, size: int, every: int) -> None:
        self._size, self._every = size, every

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._slices = handle.getMapState("slices", "at long", "worst double")
        self._next = handle.getValueState("next", "start long")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        frame = pd.concat(rows)
        worst = frame.groupby(frame["t"] // self._every * self._every)["x"].max()
        for at, x in worst.items():
            old = self._slices.getValue((at,))
            self._slices.updateValue((at,), (x if old is None else max(x, old[0]),))
        if not self._next.exists():
            self._next.update((int(worst.index.min()) - self._size + self._every,))
        yield from self._fire(key, timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        yield from self._fire(key, timerValues)

    def _fire(self, key: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        until = timerValues.getCurrentWatermarkInMs() // 1000 - self._size
        (start,) = self._next.get()
        found = []
        if start <= until:
            slices = {k[0]: v[0] for k, v in self._slices.iterator()}
            while start <= until:
                inside = [x for at, x in slices.items() if start <= at < start + self._size]
                if inside:
                    found.append((key[0], start, np.max(inside)))
                start += self._every
            for at in slices:
                if at < start:
                    self._slices.removeKey((at,))
            self._next.update((start,))
        self._handle.registerTimer((start + self._size) * 1000)
        yield pd.DataFrame(found, columns=["k", "start", "worst"])

    def close(self) -> None:
        pass
