"""Files for rows that a task cannot hold in memory.

Spark ends a Python worker in the middle of a task when it needs no more rows, as `show` and `limit`
do.  So the files have no name: the operating system removes them with the process, however it ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from typing import Any

import pyarrow as pa

__all__ = ["RowFile"]


class RowFile:
    """Rows in a file in one of Spark's own folders: first all are written, then they are read."""

    def __init__(self, schema: pa.Schema) -> None:
        self._folder = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or None
        with self._explained():
            self._file = TemporaryFile(dir=self._folder)  # noqa: SIM115
            self._writer: Any = pa.ipc.new_stream(self._file, schema)

    def write(self, table: pa.Table) -> None:
        """Add rows."""
        with self._explained():
            self._writer.write_table(table)

    def read(self) -> Any:
        """All rows, as an Arrow reader of batches.  The file can be read again."""
        with self._explained():
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            self._file.seek(0)
        return pa.ipc.open_stream(self._file)

    def close(self) -> None:
        """Remove the file."""
        self._writer = None
        with suppress(OSError):  # rows that are not written yet need not be
            self._file.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say in an error of the file system what to do."""
        try:
            yield
        except OSError as error:
            raise OSError(
                error.errno,
                "a task has more rows than it holds in memory, and cannot write them to a file in "
                f"{self._folder or 'the folder for temporary files'} ({error.strerror or error}); "
                "make room there, or set Spark's spark.local.dir to another folder before it "
                "starts",
            ) from error
