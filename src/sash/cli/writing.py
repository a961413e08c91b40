"""Write the micro-batches of a job on Spark: the functions for `foreachBatch`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .check import Ready
from .errors import RunError
from .formats import options_on_spark
from .job import is_remote
from .report import Watcher
from .results import BATCH, as_emitted, as_late, read_batch
from .sinks import RESULTS

__all__ = ["Show", "check_free", "shares", "written", "written_together"]

Show = Callable[[str, Any], None]
Write = Callable[[Any, int], None]


def shares(ready: Ready, *, remote: bool) -> bool:
    """True if queries may share a streaming query.  A sink with a Spark format takes the results of
    one query, and so does the console of a Spark Connect server."""
    path, format = ready.job.tables.sink.path, ready.job.tables.sink.format
    return path is not None or (format == "console" and not remote)


def check_free(path: str, checkpoint: str | None) -> None:
    """Refuse a folder with results of a run with another checkpoint."""
    if is_remote(path):
        return
    if (Path(path) / RESULTS).exists():
        raise RunError(
            f"{path} holds {RESULTS} of a run with --local; give the job another path, or remove it"
        )
    if checkpoint is None or is_remote(checkpoint) or Path(checkpoint).exists():
        return
    if any(Path(path).glob(f"{BATCH}=*")):
        raise RunError(
            f"{path} holds results of another run, whose checkpoint is not {checkpoint}; give the "
            "job another path, or remove them"
        )


def written(out: Any, ready: Ready, name: str, watch: Watcher, show: Show, *, remote: bool) -> Any:
    """A stream writer for one query's results, and for its late rows."""
    import sash.spark

    job, sink = ready.job, ready.job.tables.sink
    path, late = job.sinks()[name], job.late_sinks()[name]
    if path is not None:
        write = sash.spark.upsert(path, late=late)
        if _wants(watch, path, remote=remote):
            write = _told(write, {name: (path, late)}, watch)
        return out.writeStream.foreachBatch(write)
    options = options_on_spark(job, sink.options, name)
    if sink.format == "console" and not remote:
        return out.writeStream.foreachBatch(_parted(late, _shown(name, show)))
    assert sink.format is not None
    if late is None:
        return out.writeStream.format(sink.format).options(**options)

    def append(batch: Any, number: int) -> None:
        batch.write.format(sink.format).options(**options).mode("append").save()

    return out.writeStream.foreachBatch(_parted(late, append))


def written_together(made: Any, ready: Ready, watch: Watcher, show: Show, *, remote: bool) -> Any:
    """A stream writer for several queries that share a streaming query from
    `sash.spark.together`."""
    job = ready.job
    paths, lates = job.sinks(), job.late_sinks()
    given, kept, mode = made.given, made.kept, made.mode  # without `out`, which stays on the driver

    def write(batch: Any, number: int) -> None:
        from sash.spark.sink import overwrite
        from sash.spark.together import parts

        with _once(batch) as rows:
            for part in parts(rows, given, kept, mode):
                late, path = lates[part.name], paths[part.name]
                if late is not None and part.late is not None:
                    overwrite(part.late, late, number)
                if path is not None:
                    overwrite(part.results, path, number)
                else:
                    _shown(part.name, show)(part.results, number)

    places = {name: (path, lates[name]) for name in given if (path := paths[name]) is not None}
    if places and _wants(watch, *(path for path, _ in places.values()), remote=remote):
        return made.out.writeStream.foreachBatch(_told(write, places, watch))
    return made.out.writeStream.foreachBatch(write)


def _wants(watch: Watcher, *paths: str, remote: bool) -> bool:
    """True if a watcher wants the written rows, and this process can read them."""
    return watch.wants_rows and not remote and not any(map(is_remote, paths))


def _told(write: Write, places: Mapping[str, tuple[str, str | None]], watch: Watcher) -> Write:
    """A function for foreachBatch that passes the written rows of each query to a watcher."""

    def tell(batch: Any, number: int) -> None:
        write(batch, number)
        for name, (path, late) in places.items():
            missed = None if late is None else read_batch(late, number)
            watch.rows(name, as_emitted(read_batch(path, number)), as_late(missed))

    return tell


def _shown(name: str, show: Show) -> Write:
    """A function for foreachBatch that shows rows on the console."""

    def print_rows(batch: Any, number: int) -> None:
        rows = batch.toArrow()
        if rows.num_rows:
            show(f"{name}, batch {number}", rows)

    return print_rows


def _parted(late: str | None, write: Write) -> Write:
    """A function for foreachBatch that writes results, and late rows to a path."""
    if late is None:
        return write

    def part(batch: Any, number: int) -> None:
        import sash.spark
        from sash.spark.sink import overwrite

        with _once(batch) as rows:
            results, missed = sash.spark.split(rows)
            overwrite(missed, late, number)
            write(results, number)

    return part


@contextmanager
def _once(batch: Any) -> Iterator[Any]:
    """Cache a micro-batch, so that Spark computes it once for several uses."""
    rows = batch.persist()
    try:
        yield rows
    finally:
        rows.unpersist()
