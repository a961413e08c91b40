"""Bytes by key: where state lives that does not fit into, or must outlive, this process.

contract   what a store does
sealed     the one format of its records: version, checksum, place
memory     a store in a dict
"""

from .contract import Store
from .memory import MemoryStore

__all__ = ["MemoryStore", "Store"]
