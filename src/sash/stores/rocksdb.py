"""A store in a folder of this machine: RocksDB, by the package rocksdict.

RocksDB locks the folder, so one process at a time can open the store, and all windows in it share
one `Store` object.  The lock goes with the process, also if it is killed.

What a kill loses.  A durable write is one entry of RocksDB's log, which RocksDB flushes to the disk
before the write returns.  A small write that is not durable goes into the log too.  A large one
skips the log, because the log would write its bytes a second time; so do all later writes into the
same column family, until a durable write first has RocksDB put them into files.  So in each family
a kill loses the last writes and none before them.  Between the families it may lose a page and keep
a record of the other family that was written after the page.  Nothing depends on that: a durable
write keeps all that its root needs, and what came after the root, `open` deletes or puts back.  For
a window those are pages alone, and for a stream records of the other family alone.

Records that come and go in order, such as pages, have a column family of their own.  The pages of
one window leave whole files behind, which RocksDB removes.  In the other family RocksDB copies what
lives out of files with much that was replaced, all the time; for a window of 2^25 values that took
as long as all the rest.  Where windows share a store, one page of a slow window keeps a whole file
of a fast one, so when more than half of these files is dead, a thread has RocksDB copy what lives
(`_Collector`).
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import takewhile
from operator import gt
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from .contract import QUEUE, Store, StoreError

__all__ = ["RocksStore", "rocksdb"]

_CACHE = 32 << 20
#: RocksDB keeps records from this size on beside its sorted files, so that it does not copy their
#: bytes each time it sorts.
_BLOB = 1024
_QUEUES = "queues"  # the column family of records that come and go in order
#: A write of so many bytes skips the log, unless it is durable.
_LOGGED = 1 << 18
#: The collector lets up to so many dead bytes be.
_GARBAGE = 32 << 20
_OFTEN = 8 << 20  # bytes written until the collector looks again, which takes some 50 µs


class RocksStore(Store):
    """Records in a folder; made by `sash.stores.rocksdb`."""

    def __init__(self, path: str, cache: int, repair: bool) -> None:
        self.path = path
        try:
            import rocksdict
        except ImportError:
            raise ImportError(
                "a store on RocksDB needs the package rocksdict: pip install 'sash[rocksdb]'"
            ) from None
        self._batches: Any = rocksdict.WriteBatch
        self._closed = False
        self._durable = rocksdict.WriteOptions()
        self._durable.sync = True
        self._unlogged = rocksdict.WriteOptions()
        self._unlogged.disable_wal = True
        self._writing = Lock()
        self._most_waiting = cache // 8
        # Pages have checksums of their own, which cover their keys and in which life of a window
        # they were written; with those of RocksDB a page takes ten times as long.  Other records
        # are replaced, and their checksums do not cover that there is no newer one.  `get` of
        # several keys has only the options that are set here.
        unverified = rocksdict.ReadOptions()
        unverified.set_verify_checksums(False)
        with self._errors("cannot be opened", repair=not repair):
            os.makedirs(path, exist_ok=True)
            blocks = rocksdict.Cache(cache // 2)
            options = [_options(rocksdict, cache, blocks, queue=queue) for queue in (False, True)]
            if not repair:
                # else a log with a flipped bit is read up to there, and the last syncs are lost
                # without a word
                mode = rocksdict.DBRecoveryMode.tolerate_corrupted_tail_records()
                options[0].set_wal_recovery_mode(mode)
            db: Any = rocksdict.Rdict(path, options[0], {_QUEUES: options[1]})
            queues = _Family(db.get_column_family(_QUEUES), db.get_column_family_handle(_QUEUES))
            self._families = (_Family(db), queues)
            queues.db.set_read_options(unverified)
        wholly = rocksdict.CompactOptions()
        wholly.set_bottommost_level_compaction(
            rocksdict.BottommostLevelCompaction.force_optimized()
        )
        wholly.set_exclusive_manual_compaction(False)
        self._collector = _Collector(queues.db, wholly)

    def __repr__(self) -> str:
        return f"the RocksDB store {self.path!r}"

    @contextmanager
    def _errors(self, what: str, *, repair: bool = False) -> Iterator[None]:
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
            elif repair and "Corruption" in said:
                hint = (
                    "; if the machine failed while it was being written, give repair=True, which "
                    "reads its log up to the damage: a sync() behind that is lost"
                )
            elif "losed" in said:
                said = "it is closed"
                hint = "; open it again with sash.stores.rocksdb(…)"
            raise StoreError(f"{self!r} {what}: {said}{hint}") from None

    def _family(self, key: bytes) -> _Family:
        return self._families[key.startswith(QUEUE)]

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        found: dict[bytes, bytes | None] = {}
        with self._errors("cannot be read"):
            for family in self._families:
                mine = [key for key in keys if self._family(key) is family]
                if mine:
                    found.update(zip(mine, family.db.get(mine), strict=True))
        return [found[key] for key in keys]

    def put_many(self, records: Mapping[bytes, bytes]) -> None:
        self.write(records)

    def delete_many(self, keys: Iterable[bytes]) -> None:
        self.write({}, keys)

    def write(
        self, puts: Mapping[bytes, bytes], deletes: Iterable[bytes] = (), *, durable: bool = False
    ) -> None:
        with self._errors("cannot be written"), self._writing:
            self._check_open()  # a key without the handle of its family would go to the other one
            batch, sizes = self._batches(raw_mode=True), dict.fromkeys(self._families, 0)
            for key, data in puts.items():
                family = self._family(key)
                batch.put(key, data, *family.handle)
                sizes[family] += len(key) + len(data)
            for key in deletes:
                family = self._family(key)
                batch.delete(key, *family.handle)
                sizes[family] += len(key)
            for family, size in sizes.items():
                family.prepare(size, self._most_waiting, durable=durable)
            self._collector.look(sizes[self._families[1]])
            written = [family for family, size in sizes.items() if size]
            large = sum(sizes.values()) >= _LOGGED
            if durable:
                self._families[0].db.write(batch, self._durable)
            elif large or any(family.ahead_of_log for family in written):
                for family in written:
                    family.ahead_of_log = True
                self._families[0].db.write(batch, self._unlogged)
            else:
                self._families[0].db.write(batch)

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        families = [self._family(prefix)] if prefix else self._families
        with self._errors("cannot be read"):
            found = (family.db.items(from_key=prefix) for family in families)
            for key, data in heapq.merge(*found):
                if not key.startswith(prefix):
                    return
                yield key, data

    def keys_in(self, ranges: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
        keys: list[bytes] = []
        with self._errors("cannot be read"):
            for low, high in ranges:
                families = [self._family(low)] if low[:1] == high[:1] else self._families
                found = (family.db.keys(from_key=low) for family in families)
                keys += takewhile(partial(gt, high), heapq.merge(*found))
        return keys

    def close(self) -> None:
        """Close the folder, so that another process can open it; also if this raises, because what
        was written could not be put into files."""
        with self._errors("cannot be closed"), self._writing, ExitStack() as families:
            if not self._closed:
                self._collector.wait()
                self._closed = True
                for family in self._families:
                    family.handle = ()  # which would keep the folder
                    families.callback(family.db.close)

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("closed")


class _Family:
    """A column family: RocksDB keeps its records in files of their own, but can write several
    families in one step."""

    def __init__(self, db: Any, *handle: Any) -> None:
        self.db, self.handle = db, handle
        self.ahead_of_log = False  # whether some writes are neither in the log nor in files
        self._waiting = 0  # bytes written since RocksDB last began a file

    def prepare(self, size: int, most: int, *, durable: bool) -> None:
        """Have RocksDB write files, or begin them, before a write of so many bytes."""
        if durable and self.ahead_of_log:
            self.db.flush()
            self.ahead_of_log, self._waiting = False, 0
        elif size and self._waiting + size > most:
            # a write that waits for files keeps all threads of Python waiting, this does not
            self.db.flush(wait=False)
            self._waiting = 0
        self._waiting += size


class _Collector:
    """Copies the live records in order out of files that are dead for the most part.

    It copies no more than it frees, so in all it never copies more than was written.
    """

    def __init__(self, db: Any, wholly: Any) -> None:
        self._db, self._wholly = db, wholly
        self._thread: Thread | None = None
        self._unseen = _OFTEN  # bytes that were written since it last looked

    def look(self, size: int) -> None:
        """Note that so many bytes were written, and collect in the background if much is dead."""
        self._unseen += size
        if self._unseen < _OFTEN or (self._thread is not None and self._thread.is_alive()):
            return
        self._unseen = 0
        dead = self._db.property_int_value("rocksdb.live-blob-file-garbage-size") or 0
        if dead > _GARBAGE and 2 * dead > self._db.property_int_value(
            "rocksdb.live-blob-file-size"
        ):
            # no daemon, because one that is in RocksDB when the process ends would break it off
            self._thread = Thread(target=_collect, args=(self._db, self._wholly))
            self._thread.start()

    def wait(self) -> None:
        """Wait until nothing is being collected."""
        if self._thread is not None:
            self._thread.join()


def _collect(db: Any, wholly: Any) -> None:
    with suppress(Exception):  # nothing depends on it, and what is wrong, the next write says
        try:
            db.set_options(
                {
                    "enable_blob_garbage_collection": "true",
                    "blob_garbage_collection_age_cutoff": "1.0",
                }
            )
            db.compact_range(None, None, wholly)
        finally:
            db.set_options({"enable_blob_garbage_collection": "false"})


def _options(rocksdict: Any, cache: int, found: Any, *, queue: bool) -> Any:
    """Options under which RocksDB takes little more memory than `cache` bytes: half for what was
    read, half for what is not written into files yet."""
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_compression_type(rocksdict.DBCompressionType.none())
    options.set_write_buffer_size(cache // 4)  # of which `write` fills a half
    options.set_max_write_buffer_number(5 if queue else 3)  # so that few pages wait for a disk
    options.set_db_write_buffer_size(max(cache // 2, 1 << 18))
    options.set_max_total_wal_size(2 * cache)
    options.set_max_open_files(256)
    options.set_keep_log_file_num(2)
    options.set_max_background_jobs(8)  # of which two write files, one while the other waits
    options.set_enable_blob_files(True)
    options.set_min_blob_size(_BLOB)
    options.set_blob_file_size(16 << 20)
    options.set_enable_blob_gc(not queue)
    blocks = rocksdict.BlockBasedOptions()
    blocks.set_block_cache(found)
    blocks.set_cache_index_and_filter_blocks(True)
    blocks.set_bloom_filter(10, False)
    options.set_block_based_table_factory(blocks)
    return options


def rocksdb(
    path: str | os.PathLike[str], *, cache: int = _CACHE, repair: bool = False
) -> RocksStore:
    """A store in a folder, which is made if it is not there.

    `cache` is about how many bytes of memory RocksDB may use, for what it has read and for what it
    has not written into files yet.

    A folder whose log is damaged is refused.  If the machine failed, the disk may have some of the
    bytes that were on their way, and not others before them; no `sync` that was completed is among
    them.  `repair=True` reads the log up to the damage, and forgets what comes after it.  If the
    damage is of another kind, such as a flipped bit, each window and stream goes back to its last
    `sync` before that.

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
    if not isinstance(repair, bool):
        raise TypeError(f"repair is True or False, not {repair!r}")
    return RocksStore(str(Path(path)), cache, repair)
