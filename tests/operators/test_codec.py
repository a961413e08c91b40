"""Values as bytes, and operators over columns of all kinds of values."""

from __future__ import annotations

import uuid
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sash
from sash.engine.stream import Stream
from sash.operators.codec import decode_value, encode_value

VALUES = [
    Decimal("1.50"),
    date(2020, 1, 2),
    datetime(2020, 1, 2, 3, 4, 5, 6),
    time(3, 4, 5, 6),
    timedelta(-3, 4, 5),
    timedelta.max,
    uuid.UUID(int=7),
]
TIMES = [np.datetime64(-1_500, "ns"), np.datetime64(5, "us"), np.datetime64(5, "s")]


@pytest.mark.parametrize("value", VALUES + TIMES, ids=repr)
def test_a_value_comes_back(value: Any) -> None:
    assert decode_value(encode_value([value])) == [value]


def test_what_would_lose_something_is_refused() -> None:
    for finer in (pd.Timedelta(1, "ns"), pd.Timestamp(1, unit="ns")):
        with pytest.raises(TypeError, match="has no bytes form"):
            encode_value(finer)
    with pytest.raises(TypeError, match="has no bytes form"):
        encode_value(time(1, tzinfo=datetime.now().astimezone().tzinfo))


@pytest.mark.parametrize("value", [v for v in VALUES if v != timedelta.max], ids=repr)
def test_snapshots_of_operators_over_such_columns(value: Any) -> None:
    select = {"max": sash.max("x"), "first": sash.first("x"), "n": sash.count_distinct("x")}
    if not isinstance(value, uuid.UUID):  # of which Arrow makes no lists
        select["all"] = sash.collect("x")
    q = sash.Query(time="t", window=sash.tumbling(10), select=select)
    s = q.stream()
    s.push(pa.table({"t": [1, 2], "x": pa.array([value, None])}))
    (row,) = Stream.from_bytes(s.to_bytes(), q).close().to_pylist()
    assert row["max"] == row["first"] == value
    assert row["n"] == 1
    assert row.get("all", [value]) == [value]


def test_a_list_that_arrow_cannot_make_is_refused_at_once() -> None:
    q = sash.Query(time="t", window=sash.tumbling(10), select={"all": sash.collect("x")})
    with pytest.raises(TypeError, match="answers cannot be made list<"):
        q.stream(schema=pa.schema({"t": pa.int64(), "x": pa.uuid()}))
