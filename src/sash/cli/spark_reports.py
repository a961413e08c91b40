"""Turn the progress of a streaming query into reports of its micro-batches."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from ..engine.late import ALL_CLOSED, SOME_CLOSED
from .report import Report

__all__ = ["UNUSABLE", "Reports"]

UNUSABLE = "it could not be used"
_METRICS = "sash"  # the name under which `aggregate` observes them


class Reports:
    """Reads the new progress of a streaming query, which belongs to one query or to several."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._last = -1
        self._moved = time.monotonic()
        self.batches = 0
        self.watermark: int | None = None
        self.open_windows = dict.fromkeys(names, 0)

    def standstill(self) -> float:
        """The seconds since the watermark last moved."""
        return time.monotonic() - self._moved

    def new(self, query: Any) -> Iterator[Report]:
        """The reports of the micro-batches since the last call, one for each query."""
        last = query.lastProgress
        if last is None or last.batchId <= self._last:
            return
        for progress in query.recentProgress:
            if progress.batchId > self._last:
                self._last = progress.batchId
                yield from self._reports(progress.batchId, json.loads(progress.json))

    def _reports(self, number: int, said: dict[str, Any]) -> Iterator[Report]:
        metrics = dict(said.get("observedMetrics", {}).get(_METRICS) or {})
        self.batches += 1
        watermark = metrics.get("watermark")
        called = watermark is not None  # a micro-batch without rows may call no bucket
        watermark = (watermark if called else _watermark(said)) or None  # 0 until there is one
        if watermark is not None and watermark != self.watermark:
            self.watermark, self._moved = watermark, time.monotonic()
        each = metrics.get("queries") or [metrics] * len(self._names)
        lateness = tuple(metrics["lateness"]) if metrics.get("lateness") else None
        for name, own in zip(self._names, each, strict=True):
            if called:
                self.open_windows[name] = own.get("open_windows", 0)
            unusable = own.get("rows_unusable", 0)
            late = {
                ALL_CLOSED: own.get("rows_late", 0) - unusable,
                SOME_CLOSED: own.get("rows_partly_late", 0),
                UNUSABLE: unusable,
            }
            yield Report(
                query=name,
                batch=number,
                rows_in=own.get("rows_in", said.get("numInputRows", 0)),
                rows_out=own.get("rows_out", 0),
                seconds=said.get("durationMs", {}).get("triggerExecution", 0) / 1000,
                corrections=own.get("corrections", 0),
                late={why: rows for why, rows in late.items() if rows},
                watermark=self.watermark,
                state_bytes=_state_bytes(said.get("stateOperators", [])),
                open_windows=self.open_windows[name],
                lateness=lateness if name == self._names[0] else None,  # the first query counts it
            )


def _watermark(said: dict[str, Any]) -> int | None:
    """Spark's own watermark of a micro-batch, in microseconds."""
    text = said.get("eventTime", {}).get("watermark")
    return None if text is None else int(datetime.fromisoformat(text).timestamp() * 1000) * 1000


def _state_bytes(operators: list[dict[str, Any]]) -> int | None:
    """The bytes of the state of all operators, on disk and in memory."""
    if not operators:
        return None
    total = 0
    for operator in operators:
        total += operator.get("memoryUsedBytes", 0)
        total += operator.get("customMetrics", {}).get("rocksdbSstFileSize", 0)
    return total
