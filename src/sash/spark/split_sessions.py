"""Sessions of a table in which one key has many rows: several tasks find the sessions of one key.

sash cuts time into stretches, and a task works on one stretch of a key.  A session that no event
outside of its stretch can touch is a result.  The rows of the other sessions, which are at most the
first and the last of a stretch, go on to a task for their key, which finds their sessions.  Results
travel with them unchanged.

    stretches      |----------------- 1 ----------------|---------------- 2 -----
    events          xx x    xx xxx     x    xxx xx    xx x   xxx      xx
    results                [ s ]     [s]   [  s  ]          [ s ]    [s]
    rows that go on [ s ]                            [  s   ]

A task works on portions of its stretches, and then of its keys (`portions`).
With a gap in a column, an event reaches as far as it says, and where sessions have a greatest size,
where one ends goes by all before it: then a key's rows stay together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from ..engine.sessions import session_results, sessions_and_rest
from ..kernels.columns import Array
from ..query.plan import Plan, make_plan
from ..query.query import Query
from ..state.measures import Spans
from ..tables.arrow import one_array
from ..windows import Merging
from ..windows.contract import LATEST
from .arithmetic import SPARK, in_range
from .buckets import key_columns, key_hash, sent_by
from .portions import EVENTS, InPortions, Portions
from .results import as_results, result_fields
from .shipping import shipped
from .types import arrow_schema, micros, quoted

__all__ = ["has_hot_key", "sessions_at_gaps", "splits"]

_STRETCH, _HOME = "__sash_stretch", "__sash_home"  # of a row, and the hash of its key
_ROW = "__sash_row"  # of a session that is not found yet
_LEAST = 3_600_000_000  # microseconds in a stretch
_GAPS = 64  # in a stretch, so that most sessions lie within one
_SAMPLE = 10_000  # rows


def splits(query: Query) -> bool:
    """True if several tasks can find the sessions of one key."""
    window = query.window
    if not isinstance(window, Merging) or window.longest is not None:
        return False
    return isinstance(window.reach, int) and _length(window.reach) < LATEST


def _length(gap: int) -> int:
    """The length of a stretch, in microseconds."""
    return max(_GAPS * gap, _LEAST)


def has_hot_key(df: DataFrame, query: Query, buckets: int) -> bool:
    """True if one key has more than a bucket's share of the first rows of a table."""
    if buckets == 1 or not query.by:
        return buckets > 1
    keys = key_columns(query, df.schema)
    first = df.select(F.xxhash64(*keys).alias("key")).limit(_SAMPLE)
    counts = first.groupBy("key").count().agg(F.max("count"), F.sum("count")).first()
    assert counts is not None
    most, rows = counts
    return most is not None and most * buckets > rows


def sessions_at_gaps(df: DataFrame, plan: Plan, tasks: int | None) -> DataFrame:
    """The sessions of a DataFrame, found stretch by stretch."""
    query, schema = plan.query, df.schema
    assert isinstance(query.window, Merging)
    assert isinstance(query.window.reach, int)
    length = _length(query.window.reach)
    names = df.columns if query.where is not None else list(query.columns)
    time = micros(quoted(query.time), schema[query.time].dataType)
    # an unusable time goes to stretch 0, whose task raises
    stretch = F.coalesce(SPARK.div(F.when(in_range(time), time), length), F.lit(0).cast("long"))
    tagged = df.select(*[quoted(n) for n in names], stretch.alias(_STRETCH))
    keys = key_columns(query, schema)
    plain = [quoted(n).alias(f"column_{i}") for i, n in enumerate(names)]
    tagged = tagged.select(
        *plain,
        _STRETCH,
        key_hash(keys).alias(_HOME),
    )
    result = result_fields(plan, schema)
    read = [field.name for field in plan.schema]
    row = StructType(
        [StructField(f"column_{i}", schema[name].dataType) for i, name in enumerate(read)]
    )
    between = StructType(
        [
            *(StructField(f.name, f.dataType) for f in result),
            StructField(_ROW, row),
            StructField(_HOME, LongType()),
        ]
    )
    whole = _Stretch(query, [*names, _STRETCH, _HOME], read, length, result, between)
    rest = _Rest(replace(query, where=None), read, result)
    at = len(names)
    first = InPortions(Portions([at, at + 1], EVENTS, 0), whole)
    then = InPortions(Portions([len(between) - 1], EVENTS, 0), rest)
    places = [F.col(_STRETCH), F.col(_HOME)]
    found = sent_by(tagged, places, tasks).mapInArrow(shipped(first), between)
    return sent_by(found, places[1:], tasks).mapInArrow(shipped(then), result)


class _Stretch:
    """The work of a task of the first shuffle: find the sessions in stretches of keys."""

    def __init__(
        self,
        query: Query,
        names: list[str],
        read: list[str],
        length: int,
        result: StructType,
        between: StructType,
    ) -> None:
        # the hash of a key goes with it through the sessions
        self._query = replace(query, by=(*query.by, _HOME, _STRETCH))
        self._names, self._read, self._length = names, read, length
        self._result, self._between = result, between

    def __call__(self, table: pa.Table) -> pa.Table:
        table = table.rename_columns(self._names)
        plan = make_plan(self._query, table.schema)
        made, rows = sessions_and_rest(plan, table, self._touched)
        between = arrow_schema(self._between)
        results = as_results(made, self._result)
        columns = [results.column(name) for name in results.column_names]
        row = between.field(_ROW).type
        columns += [pa.nulls(made.num_rows, row), made.column(_HOME)]
        found = pa.table(columns, names=between.names).cast(between)
        kept = [one_array(rows.column(name)) for name in self._read]
        structs = pa.StructArray.from_arrays(kept, names=[f.name for f in row])
        nulls = [pa.nulls(rows.num_rows, f.type) for f in list(between)[:-2]]
        rest = pa.table([*nulls, structs, rows.column(_HOME)], names=between.names)
        return pa.concat_tables([found, rest.cast(between)])

    def _touched(self, keys: list[pa.Array], found: Spans) -> Array:
        """Mark the sessions that an event of another stretch may touch."""
        begins = (np.asarray(keys[-1]) * self._length)[found.groups]
        gap = self._query.window.reach  # type: ignore[attr-defined]
        touched: Array = (found.starts - gap < begins) | (found.ends >= begins + self._length)
        return touched


class _Rest:
    """The work of a task of the second shuffle: pass results on, and find the sessions of the other
    rows."""

    def __init__(self, query: Query, names: list[str], result: StructType) -> None:
        self._query, self._names, self._result = query, names, result

    def __call__(self, table: pa.Table) -> pa.Table:
        rows = one_array(table.column(_ROW))
        wanted = arrow_schema(self._result)
        found = table.filter(rows.is_null()).select(wanted.names).cast(wanted)
        rest = rows.filter(rows.is_valid())
        if not len(rest):
            return found
        given = pa.table(rest.flatten(), names=self._names)
        made = session_results(make_plan(self._query, given.schema), given)
        return pa.concat_tables([found, as_results(made, self._result)])
