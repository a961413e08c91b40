"""A store in a folder of this machine: RocksDB, by the package rocksdict.

RocksDB locks the folder, so one process at a time has the store, and windows in it share the one
`Store` object.  The lock goes with the process, also if it is killed.

A write that is durable is one entry of RocksDB's log, which is flushed to the disk.  Others go into
the log too if they are small.  A large one does not, because that would write its bytes twice, nor
does any after it, so that a kill loses the last writes and none before them.  The next durable
write first has RocksDB put into files what is not in the log.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from .contract import Store, StoreError

__all__ = ["RocksStore", "rocksdb"]

_CACHE = 32 << 20
#: Records from this size on lie beside the tree that RocksDB keeps in order, so that their bytes
#: are not copied each time it is.
_BLOB = 1024
#: A write of so many bytes is not put into the log, unless it is durable.
_LOGGED = 1 << 18


class RocksStore(Store):
    """Records in a folder; made by `sash.stores.rocksdb`."""

    def __init__(self, path: str, cache: int) -> None:
        self.path = path
        try:
            import rocksdict
        except ImportError:
            raise ImportError(
                "a store on RocksDB needs the package rocksdict: pip install 'sash[rocksdb]'"
            ) from None
        self._batches: Any = rocksdict.WriteBatch
        self._db: Any = None
        self._closed = False
        self._durable = rocksdict.WriteOptions()
        self._durable.sync = True
        self._unlogged = rocksdict.WriteOptions()
        self._unlogged.disable_wal = True
        self._ahead_of_log = False  # whether there were writes that are not in the log
        self._writing = Lock()
        self._waiting = 0  # bytes that were written since files were last begun
        self._most_waiting = cache // 8
        # records have checksums of their own, which cover their keys; with those of RocksDB a page
        # takes ten times as long.  `get` of several keys has only the options that are set here.
        unverified = rocksdict.ReadOptions()
        unverified.set_verify_checksums(False)
        with self._errors("cannot be opened"):
            os.makedirs(path, exist_ok=True)
            self._db = rocksdict.Rdict(path, _options(rocksdict, cache))
            self._db.set_read_options(unverified)

    def __repr__(self) -> str:
        return f"the RocksDB store {self.path!r}"

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if isinstance(error, StoreError):
                raise
            said, hint = str(error), ""
            if "lock" in said.lower() and ("/LOCK" in said or "unavailable" in said):
                said = "another process, or another store object of this one, has it open"
                hint = "; one at a time can: share the object, or end the other process"
            elif "No space left" in said:
                hint = "; make room, open the store again, and go on from the last sync()"
            elif "losed" in said:
                said = "it is closed"
                hint = "; open it again with sash.stores.rocksdb(…)"
            raise StoreError(f"{self!r} {what}: {said}{hint}") from None

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        with self._errors("cannot be read"):
            if not keys:
                return []
            return list(self._db.get(list(keys)))

    def put_many(self, records: Mapping[bytes, bytes]) -> None:
        self.write(records)

    def delete_many(self, keys: Iterable[bytes]) -> None:
        self.write({}, keys)

    def write(
        self, puts: Mapping[bytes, bytes], deletes: Iterable[bytes] = (), *, durable: bool = False
    ) -> None:
        batch = self._batches(raw_mode=True)
        for key, data in puts.items():
            batch.put(key, data)
        for key in deletes:
            batch.delete(key)
        size = batch.size_in_bytes()
        with self._errors("cannot be written"), self._writing:
            if durable and self._ahead_of_log:
                self._db.flush()
                self._ahead_of_log, self._waiting = False, 0
            elif self._waiting + size > self._most_waiting:
                # a write that waits for files keeps all threads of Python waiting, this does not
                self._db.flush(wait=False)
                self._waiting = 0
            self._waiting += size
            if durable:
                self._db.write(batch, self._durable)
            elif self._ahead_of_log or size >= _LOGGED:
                self._ahead_of_log = True
                self._db.write(batch, self._unlogged)
            else:
                self._db.write(batch)

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        with self._errors("cannot be read"):
            for key, data in self._db.items(from_key=prefix):
                if not key.startswith(prefix):
                    return
                yield key, data

    def close(self) -> None:
        """Close the folder, so that another process can open it."""
        if not self._closed:
            self._closed = True
            with self._errors("cannot be closed"):
                self._db.close()


def _options(rocksdict: Any, cache: int) -> Any:
    """Options under which RocksDB takes little more memory than `cache` bytes: half for what was
    read, half for what is not written into files yet."""
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_compression_type(rocksdict.DBCompressionType.none())
    options.set_write_buffer_size(cache // 4)  # of which `write` fills a half
    options.set_max_write_buffer_number(3)
    options.set_db_write_buffer_size(max(cache // 2, 1 << 18))
    options.set_max_total_wal_size(2 * cache)
    options.set_max_open_files(256)
    options.set_keep_log_file_num(2)
    options.set_max_background_jobs(2)
    options.set_enable_blob_files(True)
    options.set_min_blob_size(_BLOB)
    options.set_blob_file_size(16 << 20)
    options.set_enable_blob_gc(True)
    blocks = rocksdict.BlockBasedOptions()
    blocks.set_block_cache(rocksdict.Cache(cache // 2))
    blocks.set_cache_index_and_filter_blocks(True)
    blocks.set_bloom_filter(10, False)
    options.set_block_based_table_factory(blocks)
    return options


def rocksdb(path: str | os.PathLike[str], *, cache: int = _CACHE) -> RocksStore:
    """A store in a folder, which is made if it is not there.

    `cache` is about how many bytes of memory RocksDB may use, for what it has read and for what it
    has not written into files yet.

    >>> import sash, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sash.stores.rocksdb(folder.name) as store:
    ...     store.put_many({b"a": b"1"})
    >>> with sash.stores.rocksdb(folder.name) as store:
    ...     store.get_many([b"a", b"b"])
    [b'1', None]
    >>> folder.cleanup()
    """
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise TypeError(f"a RocksDB store is in a folder, such as 'state/windows', not in {path!r}")
    if isinstance(cache, bool) or not isinstance(cache, int) or cache < 1 << 20:
        raise ValueError(f"cache is a number of bytes, from a million on, not {cache!r}")
    return RocksStore(str(Path(path)), cache)
