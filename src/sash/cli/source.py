"""Find the files of a job's source, their format and their columns, without Spark."""

from __future__ import annotations

import glob
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ..query.names import did_you_mean
from .ddl import read_ddl
from .formats import check_format, own_columns
from .job import Job, is_remote

__all__ = ["LOCAL_FORMATS", "Files", "find"]

#: Endings of file names, and their formats.
_ENDINGS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
    ".avro": "avro",
}
#: Formats whose files do not have the types of their columns, or not for a stream of Spark.
_UNTYPED = ("csv", "json", "xml", "avro")
LOCAL_FORMATS = ("parquet", "csv", "json")
_PACKED = (".gz", ".bz2", ".zst")


@dataclass(frozen=True)
class Files:
    """The files and columns of a source."""

    format: str
    place: str | None  # the path for Spark; None for a source without a path
    files: tuple[Path, ...]  # in order of name; empty if they are on another machine
    schema: pa.Schema | None  # None if only Spark can know it


def find(job: Job) -> Files:
    """Find the source's files and columns; raises an error that names the key."""
    source = job.tables.source
    check_format(job)
    said = None if source.ddl is None else read_ddl(source.ddl)
    if source.path is None:
        assert source.format is not None
        said = own_columns(source) if said is None else said
        _check_time(job, said)
        return Files(source.format.lower(), None, (), said)
    place = job.place(source.path)
    if is_remote(place):
        return Files(_format(job, [Path(source.path)]), place, (), said)
    files = _listed(job, place)
    format_ = _format(job, files)
    if said is None and format_ == "parquet":
        said = _of_parquet(job, files)
    elif said is None and format_ in _UNTYPED:
        raise job.problem(
            f'{format_.upper()} files do not tell the types of their columns: add schema = "…" to '
            '[source], such as schema = "ts timestamp, origin string, delay double"',
            "source",
        )
    _check_time(job, said)
    return Files(format_, place, tuple(files), said)


def _check_time(job: Job, columns: pa.Schema | None) -> None:
    """Refuse a time column that the source does not have."""
    time = job.tables.source.time
    if columns is not None and time not in columns.names:
        raise job.problem(
            f"source.time: there is no column {time!r}; the source has: "
            f"{', '.join(columns.names)}{did_you_mean(time, columns.names)}",
            "source",
            "time",
        )


def _listed(job: Job, place: str) -> list[Path]:
    """List the files of a path, which may be a file, a folder or a pattern."""
    path = Path(place)
    if path.is_dir():
        inside = [p for p in path.iterdir() if not p.name.startswith(("_", "."))]
        folders = [p for p in inside if p.is_dir()]
        if folders:
            raise job.problem(
                f"source.path: {place} has folders in it ({folders[0].name}), and files are read "
                f"from one folder; write a pattern such as {place}/*/*.parquet",
                "source",
                "path",
            )
        found = inside
    else:
        found = [Path(p) for p in glob.glob(place) if Path(p).is_file()]
    if not found and not (path.is_dir() and job.tables.source.ddl):
        what = "there are no files in" if path.is_dir() else "there is no file or folder"
        raise job.problem(f"source.path: {what} {place}", "source", "path")
    return sorted(found)


def _format(job: Job, files: list[Path]) -> str:
    """The given format, or the format that follows from the file names."""
    source = job.tables.source
    if source.format is not None:
        return source.format.lower()
    told = {_ending(file) for file in files}
    formats = {_ENDINGS.get(ending) for ending in told}
    if len(formats) == 1 and None not in formats:
        return str(formats.pop())
    if len(formats) > 1:
        raise job.problem(
            f"source.path: its files have several endings ({', '.join(sorted(told))}); name those "
            'of one format, such as path = "folder/*.parquet"',
            "source",
            "path",
        )
    raise job.problem(
        "source.path: the format cannot be told from the names of its files; add format = "
        '"parquet", "csv" or "json"',
        "source",
        "path",
    )


def _ending(file: Path) -> str:
    ending = file.suffix.lower()
    return file.with_suffix("").suffix.lower() if ending in _PACKED else ending


def _of_parquet(job: Job, files: list[Path]) -> pa.Schema:
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(files[0])
    except (pa.ArrowException, OSError) as error:
        raise job.problem(
            f"source.path: {files[0]} is no Parquet file: {error}", "source", "path"
        ) from None
