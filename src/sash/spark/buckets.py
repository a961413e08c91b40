"""Assigns keys to buckets, and names the buckets.

A checkpoint works only with its own number of buckets, and with its own number of partitions.
Spark stores the number of partitions in the checkpoint: a restarted stream runs with it, whatever
the session's settings are now.  So if the user does not choose the number of buckets, each task
derives it from the number of partitions that the query really has.

Spark sends a group to a partition by the hash of its key.  With the names 0, 1, 2, … the buckets
would fall on partitions at random: three on some, none on others.  So buckets get names whose
hashes spread them evenly over any likely number of partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ..kernels.columns import Array
from ..query.query import Query
from .types import normal, quoted

__all__ = [
    "BUCKET",
    "PAYLOAD",
    "bucket_names",
    "bucket_of",
    "check_buckets",
    "for_batch",
    "for_stream",
    "key_columns",
    "key_hash",
    "sent_by",
]

#: The columns of packed rows: the name of a bucket, and its payload.
BUCKET, PAYLOAD = "bucket", "payload"

_MOST = 4096  # buckets
_MOST_BY_DEFAULT = 64
_PARTITIONS = "spark.sql.shuffle.partitions"
#: The settings from which a task learns the number of partitions of its query's state.  Spark 4.3
#: has a setting for state alone.
_STATE_PARTITIONS = ("spark.sql.streaming.internal.stateStore.partitions", _PARTITIONS)
_SPARKS_DEFAULT = "200"
_CYCLE = 2**6 * 3**2 * 5**2 * 7  # all likely numbers of partitions divide this
_SEED = 42  # of Spark's hash


def check_buckets(asked: int | None) -> None:
    """Raise if this is no valid number of buckets; None is valid."""
    if asked is not None and not (isinstance(asked, int) and 0 < asked <= _MOST):
        raise ValueError(f"buckets is a number from 1 to {_MOST:,}, not {asked!r}")


def for_batch(df: DataFrame, asked: int | None) -> int:
    """The number of buckets of a table: as asked, or else one for each partition of a shuffle."""
    return asked or _one_each(df.sparkSession.conf.get(_PARTITIONS, _SPARKS_DEFAULT))


def for_stream(asked: int | None) -> int:
    """The number of buckets of a stream, in one of its tasks: as asked, or else one for each
    partition of its state, whose number never changes during the life of a checkpoint."""
    context = TaskContext.get()
    if asked is not None or context is None:
        return asked or _one_each(None)
    said = [context.getLocalProperty(name) for name in _STATE_PARTITIONS]
    return _one_each(next(filter(None, said), None))


def _one_each(partitions: str | None) -> int:
    return max(1, min(int(partitions or _SPARKS_DEFAULT), _MOST_BY_DEFAULT))


def key_columns(query: Query, schema: StructType) -> list[Column]:
    """The columns of a row's key, normalised so that equal keys have equal bits."""
    return [normal(quoted(k), schema[k].dataType, k) for k in query.by]


def key_hash(keys: Sequence[Column]) -> Column:
    """A hash of a row's key, the same for equal keys."""
    return F.xxhash64(*keys, F.lit(0))


def sent_by(df: DataFrame, keys: Sequence[Column], tasks: int | None) -> DataFrame:
    """Rows sent to tasks, all of a key to one.  Where no number of tasks is given, Spark puts small
    ones together."""
    return df.repartition(*keys) if tasks is None else df.repartition(tasks, *keys)


def bucket_of(keys: Sequence[Column], buckets: int) -> Column:
    """The name of the bucket of a row's key."""
    number = F.pmod(key_hash(keys), F.lit(buckets)).cast("int")
    return F.element_at(F.array(*map(F.lit, bucket_names(buckets))), number + F.lit(1))


@cache
def bucket_names(buckets: int = _MOST_BY_DEFAULT) -> tuple[int, ...]:
    """The names of buckets: the first name is the least number whose hash leaves 0 when divided by
    `_CYCLE`, the second one leaves 1, and so on.  The names of fewer buckets are the first of the
    names of more."""
    numbers = np.arange(16 * _CYCLE)[::-1]
    first = np.full(_CYCLE, -1)
    first[_spark_hash(numbers) % _CYCLE] = numbers  # falling numbers: the last, least one stays
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
