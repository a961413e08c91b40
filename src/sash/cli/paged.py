"""The live page of a job: pass a run's reports to the page's feed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ..engine.results import result_schema
from ..page import Batch, Feed, Heat, serve
from ..query.plan import make_plan
from ..query.query import Query
from ..windows import duration
from .check import Ready
from .errors import RunError
from .explained import explained
from .report import Report, State, Watcher

if TYPE_CHECKING:
    from ..sql.cells import Cells

__all__ = ["PageWatcher"]


class PageWatcher(Watcher):
    """Serves the page of a run on 127.0.0.1; it shows the first query of the job."""

    wants_rows = True

    def __init__(self, ready: Ready, port: int) -> None:
        self._name = next(iter(ready.queries))
        heat, self._cells = _heat(ready, self._name)
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
        if emitted is not None and emitted.num_columns:
            self._feed.emitted(emitted if self._cells is None else self._cells.table(emitted))
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
        """Leave the page up, with its last state, until `stop`."""

    def stop(self) -> None:
        """Stop serving the page."""
        self._served.close()


def _explained(ready: Ready, name: str) -> str:
    """Explain how the query runs, as far as that is known without Spark."""
    if ready.source.schema is None:
        return ""
    return str(dict(explained(ready, local=True))[name])


def _heat(ready: Ready, name: str) -> tuple[Heat | None, Cells | None]:
    """The heat map of a query's results, and the function that turns rows of SQL into its cells."""
    from ..sql.cells import Cells

    given, schema = ready.queries[name], ready.source.schema
    if schema is None:
        return None, None
    if isinstance(given, Query):
        plan = make_plan(given, schema)
        return Heat.of(given, result_schema(plan, schema, ready.mode)), None
    cells = Cells.of(given._planned, given.tie(schema, "Query.stream", ready.mode).rows)
    if cells is None:
        return None, None
    return Heat(list(cells.keys), cells.value), cells
