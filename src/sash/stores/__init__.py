"""Bytes by key: where state lives that does not fit into, or must outlive, this process.

contract   what a store does, and the records of one window in it
sealed     the one format of its records: version, checksum, place
journal    changes that a kill undoes, back to the last `sync`
memory     a store in a dict
rocksdb    a store in a folder
redis      a store in a server
"""

from .contract import Claimed, Store, StoreError
from .memory import MemoryStore, memory
from .redis import redis
from .rocksdb import rocksdb
from .sealed import Damaged

__all__ = [
    "Claimed",
    "Damaged",
    "MemoryStore",
    "Store",
    "StoreError",
    "memory",
    "redis",
    "rocksdb",
]
