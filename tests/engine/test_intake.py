"""What is pushed into a stream: types that do not fit, times of any unit, columns of any kind."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sash

W = sash.tumbling(10)
COUNT = {"n": sash.count()}


def query(**given: Any) -> sash.Query:
    return sash.Query(**{"time": "t", "window": W, "select": COUNT} | given)


def stream(*batches: Any, **given: Any) -> Any:
    """A stream with these batches in it."""
    s = query(**given).stream(lateness=100)
    for batch in batches:
        s.push(batch)
    return s


# Values that do not fit


def test_a_value_that_does_not_fit_is_late_and_not_truncated() -> None:
    s = stream(
        {"t": 0, "x": 20}, {"t": 1, "x": 20.9}, {"t": 1, "x": 22.0}, select={"m": sash.max("x")}
    )
    s.push(pa.table({"t": [2.7, 3.0], "x": [21.9, 21.0]}))
    assert s.late["reason"].to_pylist() == [
        "column 'x': 20.9 is no int64",
        "column 't': 2.7 is no int64",
    ]
    assert s.late["x"].to_pylist() == [None, 21.9]
    assert s.close()["m"].to_pylist() == [22]


@pytest.mark.parametrize(
    ("first", "fits", "misfit"),
    [
        (1, 2.0, 1.7),
        (date(2020, 1, 1), date(2020, 1, 2), datetime(2020, 1, 1, 5)),
        (True, False, 5),
        ([1], [2.0], [1.5]),
        ({"a": 1}, {"a": 2.0}, {"a": 1.5}),
    ],
)
def test_no_key_falls_under_another(first: Any, fits: Any, misfit: Any) -> None:
    kind = pa.array([first]).type
    for one in (True, False):
        s = stream({"t": 1, "k": first}, by=["k"])
        for key in (fits, misfit):
            s.push({"t": 2, "k": key} if one else pa.table({"t": [2], "k": pa.array([key])}))
        assert s.late["reason"].to_pylist() == [f"column 'k': {misfit!r} is no {kind}"]
        assert s.close()["n"].to_pylist() == [1, 1]


def test_values_of_a_finer_unit_fit_if_nothing_is_lost() -> None:
    ms, us = (pa.timestamp(unit) for unit in ("ms", "us"))
    s = stream(
        pa.table({"t": [1], "w": pa.array([5], ms)}),
        pa.table({"t": [2, 3], "w": pa.array([7_000, 8_001], us)}),
        [
            {"t": 4, "w": datetime(1970, 1, 1, 0, 0, 0, 9_000)},
            {"t": 5, "w": np.datetime64(1, "us")},
        ],
        select={"all": sash.collect("w")},
    )
    assert s.late["t"].to_pylist() == [3, 5]
    assert s.close()["all"].cast(pa.list_(pa.int64())).to_pylist() == [[5, 7, 9]]


def test_numbers_that_fit_another_type_are_taken() -> None:
    s = stream(
        pa.table({"t": [1], "x": pa.array([0.5], pa.float32())}),
        [{"t": 2, "x": 0.1}, {"t": 3, "x": 7}, {"t": 4, "x": 1e300}],
        select={"n": sash.count("x")},
    )
    assert s.late["t"].to_pylist() == [4]
    assert s.close()["n"].to_pylist() == [3]
    decimals = stream(
        pa.table({"t": [1], "k": pa.array([1], pa.decimal128(5, 1))}),
        pa.table({"t": [2, 3], "k": [1, 123456]}),
        pa.table({"t": [4, 5], "k": [1.5, 1.55]}),
        by=["k"],
    )
    assert decimals.late["t"].to_pylist() == [3, 5]
    assert decimals.close()["n"].to_pylist() == [2, 1]


def test_nested_values_come_in_any_shape() -> None:
    kind = pa.struct({"a": pa.int64(), "m": pa.map_(pa.string(), pa.float64())})
    s = query(by=["k"]).stream(schema=pa.schema({"t": pa.int64(), "k": kind}))
    s.push([{"t": 1, "k": (1, [("x", 2)])}, {"t": 2, "k": (1.5, None)}, {"t": 3, "k": None}])
    assert s.late["t"].to_pylist() == [2]
    assert s.close()["k"].to_pylist() == [None, {"a": 1, "m": [("x", 2.0)]}]


# Times of another unit or kind


def test_times_of_another_unit_are_read_in_their_own() -> None:
    q = query(window=sash.tumbling("500 ms"))
    s = q.stream()
    s.push(pa.table({"t": pa.array([0], pa.timestamp("s"))}))
    s.push(pa.table({"t": pa.array([700_000], pa.timestamp("us"))}))
    s.push({"t": np.datetime64(1_700_000_001, "ns")})
    s.push(
        [{"t": np.datetime64(1_700_000_001, "ns")}, {"t": datetime(1970, 1, 1, 0, 0, 2)}, {"t": 5}]
    )
    assert s.time == 2_000_000
    assert s.late["reason"].to_pylist() == ["column 't': 5 is no timestamp[s]"]
    assert s.counts["given"] == 3


def test_timestamps_and_integers_are_not_mixed() -> None:
    ns = pa.table({"t": pa.array([5_000], pa.timestamp("ns"))})
    whole = pa.table({"t": [5]})
    for first, second in ((ns, whole), (whole, ns)):
        s = stream(first)
        with pytest.raises(TypeError, match=r"'t' has type .*; the batches before had"):
            s.push(second)
        assert s.counts["rows"] == 1
        assert s.close()["n"].to_pylist() == [1]


def test_a_time_that_is_a_value_too_has_to_fit_as_one() -> None:
    s = stream(
        pa.table({"t": pa.array([0], pa.timestamp("s"))}),
        pa.table({"t": pa.array([1_000_000, 1_500_000], pa.timestamp("us"))}),
        select={"last": sash.last("t")},
        window=sash.tumbling("10 s"),
    )
    assert s.late["reason"].to_pylist() == [
        "column 't': datetime.datetime(1970, 1, 1, 0, 0, 1, 500000) is no timestamp[s]"
    ]
    assert s.close()["last"].to_pylist() == [datetime(1970, 1, 1, 0, 0, 1)]


def test_a_time_beyond_int64_is_out_of_range() -> None:
    table = pa.table({"t": pa.array([3, 2**63 + 1, None], pa.uint64())})
    s = stream(table)
    assert s.late["reason"].to_pylist() == ["its time is out of range", "its time is null"]
    with pytest.raises(ValueError, match=r"row 1: its time, in column 't', is 9223372036854775809"):
        query().run(table)
