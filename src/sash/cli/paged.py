"""The live page of a job: what a run reports goes into the page's feed."""

from __future__ import annotations

import pyarrow as pa

from ..page import Batch, Feed, Heat, serve
from ..query.plan import make_plan
from ..query.query import Query
from ..windows import duration
from .check import Ready
from .errors import RunError
from .explained import explained
from .report import Report, State, Watcher

__all__ = ["PageWatcher"]


class PageWatcher(Watcher):
    """Serves the page of a run on 127.0.0.1, with the first query of the job."""

    wants_rows = True

    def __init__(self, ready: Ready, port: int) -> None:
        self._name = next(iter(ready.queries))
        query, schema = ready.queries[self._name], ready.source.schema
        heat = None
        if schema is not None and isinstance(query, Query):  # SQL has columns of its own
            heat = Heat.of(query, _results(query, schema, ready.mode))
        several = len(ready.queries) > 1
        self._feed = Feed(
            f"{ready.job.name}: {self._name}" if several else ready.job.name,
            explain=_explained(ready, self._name),
            allowance=duration(ready.job.tables.source.lateness),
            heat=heat,
        )
        try:
            self._served = serve(self._feed, port=port)
        except OSError as error:
            raise RunError(f"no page can be served on port {port}: {error.strerror}") from None
        self.url: str = self._served.url

    def batch(self, report: Report) -> None:
        if report.query != self._name:
            return
        self._feed.batch(
            Batch(
                at=report.at,
                seconds=report.seconds,
                rows=report.rows_in,
                watermark=report.watermark,
                late=report.late,
                corrections=report.corrections,
                emitted=report.rows_out,
                state_bytes=report.state_bytes,
                lateness=report.lateness,
            )
        )

    def rows(self, query: str, emitted: pa.Table | None, late: pa.Table | None) -> None:
        if query != self._name:
            return
        if emitted is not None:
            self._feed.emitted(emitted)
        if late is not None:
            self._feed.late(late)

    def state(self, state: State, why: str = "") -> None:
        if state == "failed":
            self._feed.failed(why)
        elif state in ("ended", "stopped"):
            self._feed.ended("stopped by Ctrl-C" if state == "stopped" else "")
        else:
            self._feed.state(state)
            self._feed.note(why)

    def close(self) -> None:
        """The page stays, with its last state, until it is stopped."""

    def stop(self) -> None:
        """Take the page away."""
        self._served.close()


def _explained(ready: Ready, name: str) -> str:
    """How the query runs, in words, as far as that is known without Spark."""
    if ready.source.schema is None:
        return ""
    return str(dict(explained(ready, local=True))[name])


def _results(query: Query, schema: pa.Schema, mode: str) -> pa.Schema:
    """The columns that the query's results have."""
    plan = make_plan(query, schema)
    time = plan.time_type
    fields = [schema.field(name) for name in query.by]
    fields += [pa.field("window_start", time), pa.field("window_end", time)]
    fields += [pa.field(name, plan.types[name] or pa.float64()) for name in query.select]
    return pa.schema([*fields, *([pa.field("revision", pa.int64())] if mode == "live" else [])])
