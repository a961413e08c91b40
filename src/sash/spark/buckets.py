"""Which bucket a row's key belongs to, and what the bucket is called.

Spark sends a group to the partition that the hash of its key says, so that buckets called 0, 1,
2, … would fall as dice do: some partitions get three, some none.  They are called by numbers whose
hashes end so that any likely number of partitions gets its share.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ..kernels.columns import Array
from ..query.query import Query
from .types import normal, quoted

__all__ = ["bucket_of", "how_many", "names"]

_MOST = 4096  # buckets
_MOST_BY_DEFAULT = 256
_CYCLE = 2**6 * 3**2 * 5**2 * 7  # what all likely numbers of partitions divide
_SEED = 42  # of Spark's hash


def how_many(df: DataFrame, asked: int | None) -> int:
    """The number of buckets: a bucket for each partition of a shuffle, unless it is said."""
    if asked is not None:
        if isinstance(asked, int) and 0 < asked <= _MOST:
            return asked
        raise ValueError(f"buckets is a number from 1 to {_MOST:,}, not {asked!r}")
    partitions = df.sparkSession.conf.get("spark.sql.shuffle.partitions", "200")
    return max(1, min(int(partitions or 200), _MOST_BY_DEFAULT))


def bucket_of(query: Query, schema: StructType, buckets: int, *more: Column) -> Column:
    """The name of the bucket that a row's key belongs to."""
    keys = [normal(quoted(k), schema[k].dataType, k) for k in query.by]
    number = F.pmod(F.xxhash64(*keys, *more, F.lit(0)), F.lit(buckets)).cast("int")
    return F.element_at(F.array(*map(F.lit, names(buckets))), number + F.lit(1))


@cache
def names(buckets: int) -> tuple[int, ...]:
    """What buckets are called: the first numbers whose hashes leave 0, 1, 2, … divided by
    `_CYCLE`."""
    numbers = np.arange(16 * _CYCLE)[::-1]
    first = np.full(_CYCLE, -1)
    first[_spark_hash(numbers) % _CYCLE] = numbers  # of several, the last counts
    assert (first[:_MOST] >= 0).all()
    return tuple(first[:buckets].tolist())


def _spark_hash(numbers: Array) -> Array:
    """Spark's hash of an int, which is Murmur3 in 32 bits, as a signed number."""
    with np.errstate(over="ignore"):
        k = _turn(numbers.astype(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        h = _turn(np.uint32(_SEED) ^ k, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        h ^= np.uint32(4)
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            h = (h ^ h >> np.uint32(shift)) * np.uint32(factor)
        h ^= h >> np.uint32(16)
    signed: Array = h.astype(np.int32).astype(np.int64)
    return signed


def _turn(x: Array, by: int) -> Array:
    turned: Array = x << np.uint32(by) | x >> np.uint32(32 - by)
    return turned
