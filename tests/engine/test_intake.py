"""What is pushed into a stream: types that do not fit, times of any unit, columns of any kind."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.engine.failures import CombineFailed
from sash.engine.stream import Stream
from sash.tables.intake import is_utf8

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
        ({"a": 1}, {"a": 2, "b": None}, {"a": 1, "b": 2}),
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
    s.push(pa.table({"t": [6], "w": pa.array([2**62 + 1], us)}))  # beyond the dates of Python
    assert s.late["t"].to_pylist() == [3, 5, 6]
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
    assert s.counts["emitted"] == 3


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


# What is counted, and what is late


def test_a_row_that_cannot_be_used_is_late_whatever_where_says() -> None:
    s = stream(
        {"t": 1, "x": 5},
        [{"t": 2, "x": 0}, {"t": 3, "x": "much"}, {"t": 4, "x": 6}],
        where=pc.field("x") > 1,
        select={"m": sash.max("x")},
    )
    assert s.counts == {"rows": 3, "counted": 2, "late": 1, "partly_late": 0, "emitted": 0}
    assert s.late["t"].to_pylist() == [3]


def test_a_row_is_late_once() -> None:
    s = query(window=sash.sliding(30, 10), select={"m": sash.max("u")}).stream()
    s.push({"t": [21], "u": pa.array([1], pa.uint64())})
    s.push({"t": [4, 5], "u": pa.array([2**63, 3], pa.uint64())})
    assert s.late["t"].to_pylist() == [4, 5]
    assert s.late["missed"].to_pylist() == [0, 2]
    assert s.counts == {"rows": 3, "counted": 2, "late": 1, "partly_late": 1, "emitted": 0}


def test_a_batch_that_fails_as_a_whole_changes_nothing() -> None:
    def combined(a: Any, b: Any) -> Any:
        if len(a + b) > 2:
            raise ValueError("too many")
        return a + b

    few = sash.operator(
        identity=(), lift=lambda x: (x,), combine=combined, compile=False, name="few"
    )
    s = query(window=sash.sliding(20, 10), select={"few": sash.aggregate(few, "x")}).stream()
    s.push({"t": [11], "x": [1]})
    with pytest.raises(
        CombineFailed, match="few raised ValueError: too many, in the window from 0"
    ):
        s.push({"t": [None, 3, 12, 12, 12], "x": [1, 2, 3, 4, 5]})
    assert s.counts == {"rows": 1, "counted": 1, "late": 0, "partly_late": 0, "emitted": 0}
    assert s.late.num_rows == 0


@pytest.mark.parametrize("name", ["reason", "missed", "missed_start", "missed_end"])
def test_columns_that_late_rows_have_of_their_own_are_refused(name: str) -> None:
    s = query().stream()
    with pytest.raises(ValueError, match=f"rename or leave out the batch's column '{name}'"):
        s.push({"t": 1, name: "mine"})
    assert s.push({"t": 1}).num_rows == 0


# Batches of all kinds


def test_nothing_can_be_pushed_first() -> None:
    s = query(where=pc.field("t") > 0).stream()
    assert s.push([]).num_rows == 0
    with pytest.raises(TypeError, match="must hold timestamps"):
        s.push([{}])
    s.push({"t": 1})
    with pytest.raises(ValueError, match="cannot be used"):
        s.push(pa.table({}))
    assert s.close()["n"].to_pylist() == [1]


def test_a_column_of_mixed_types_matters_only_if_it_is_read() -> None:
    events = [{"t": 1, "x": 1}, {"t": 2, "x": "a"}]
    assert stream(events).close()["n"].to_pylist() == [2]
    with pytest.raises(TypeError, match="column 'x' has values of no common Arrow type"):
        stream(events, select={"m": sash.max("x")})


def test_half_a_character_matters_only_if_it_is_read() -> None:
    s = stream({"t": 20, "s": "x"}, {"t": 1, "s": "\ud800"}, {"t": 25, "s": "\ud800"})
    assert s.counts["counted"] == 3
    s = stream({"t": 20, "s": "x"}, {"t": -200, "s": "\ud800"})  # a late row has all its columns
    assert s.late["s"].to_pylist() == ["\\ud800"]


def test_where_may_read_a_field_that_only_some_events_have() -> None:
    for where in (pc.field("x") > 1, pc.field("x").isin([2, 3])):
        q = query(where=where)
        s = q.stream()
        s.push([{"t": 1, "x": 2}])
        s.push({"t": 2})
        s = Stream.from_bytes(s.to_bytes(), q)
        s.push([{"t": 3}, {"t": 4}])
        s.push({"t": 5, "x": 3})
        assert s.close()["n"].to_pylist() == [2]
    with pytest.raises(ValueError, match="cannot be used"):
        stream({"t": 1}, where=where)


def test_a_refused_first_batch_does_not_tell_the_types() -> None:
    s = query(where=pc.field("x") > 1).stream()
    with pytest.raises(ValueError, match="cannot be used"):
        s.push({"t": datetime(2020, 1, 1), "y": 2})
    s.push({"t": 1, "x": 2})
    assert s.counts == {"rows": 1, "counted": 1, "late": 0, "partly_late": 0, "emitted": 0}


def test_any_column_can_have_a_number_for_each_row() -> None:
    s = stream({"t": [1, 2], "row number": [7, 8], "x": [1, 2]}, where=pc.field("x") > 1)
    assert s.counts["rows"] == 1


def test_lists_in_a_dictionary() -> None:
    coded = pa.DictionaryArray.from_arrays([0, 1, 0], pa.array([[1], [2]]))
    table = pa.table({"t": [1, 2, 3], "k": coded})
    for _ in range(2):
        s = stream(table, table, by=["k"], select={"n": sash.count(), "l": sash.last("k")})
        assert s.close().select(["k", "n"]).to_pylist() == [{"k": [1], "n": 4}, {"k": [2], "n": 2}]


def test_polars_with_nested_text() -> None:
    frame = pl.DataFrame({"t": [1, 2], "l": [["a"], ["b", None]], "s": [{"z": "x"}, {"z": "y"}]})
    q = query(by=["l"], select={"s": sash.last("s"), "all": sash.collect("l")})
    s = q.stream()
    s.push(frame)
    for made in (q.run(frame), s.close()):
        assert made["l"].to_list() == [["a"], ["b", None]]
        assert made["s"].to_list() == [{"z": "x"}, {"z": "y"}]
        assert made["all"].to_list() == [[["a"]], [["b", None]]]
    schema = frame.to_arrow(compat_level=pl.CompatLevel.newest()).schema
    assert pa.types.is_string_view(schema.field("l").type.value_type)
    s = q.stream(schema=schema)
    s.push([{"t": 1, "l": ["a"], "s": {"z": "x"}}])
    s.push(frame)
    assert s.close()["all"].to_list() == [[["a"], ["a"]], [["b", None]]]


# Names


@pytest.mark.parametrize("where", [None, pc.field("on")])
def test_an_event_with_a_misspelt_column_is_late(where: Any) -> None:
    q = query(select={"m": sash.max("x")}, where=where)
    s = q.stream()
    s.push([{"t": 1, "x": 3, "on": True, "note": "a"}, {"t": 2, "xx": 4, "on": True}])
    s.push({"t": 3, "xx": 9, "on": True})
    s = sash.Stream.from_bytes(s.to_bytes(), q)
    s.push([{"t": 4, "X": 9, "on": True}, {"t": 5, "on": True}, {"t": 6, "note": "b"}])
    s.push({"t": 7, "x": 1, "on": True, "more": 2})  # nothing is missing that is read
    assert s.late["t"].to_pylist() == [2, 3, 4]
    assert "column 'x' is not there, and 'xx' is no column" in s.late["reason"][0].as_py()
    assert s.counts["counted"] == 4 - (where is not None)
    if where is not None:
        s.push({"t": 8, "x": 1, "om": True})
        assert s.late["t"].to_pylist()[-1] == 8
    assert s.close()["m"].to_pylist() == [3]


def test_the_columns_of_a_schema_are_known() -> None:
    schema = pa.schema({"t": pa.int64(), "x": pa.int64()})
    s = query(select={"m": sash.max("x")}).stream(schema=schema)
    s.push([{"t": 1}, {"t": 2, "y": 3}, {"t": 3, "x": 1}])
    assert s.late["t"].to_pylist() == [2]


# Types


def test_decimals_into_a_stream_of_integers() -> None:
    for decimals in (
        [{"t": 2, "x": Decimal(7)}, {"t": 3, "x": Decimal("7.5")}, {"t": 4, "x": Decimal(2**63)}],
        pa.table({"t": [2, 3, 4], "x": pa.array([Decimal(7), Decimal("7.5"), Decimal(2**63)])}),
    ):
        s = stream({"t": 1, "x": 5}, decimals, select={"m": sash.max("x")})
        assert s.late["t"].to_pylist() == [3, 4]
        assert s.close()["m"].to_pylist() == [7]


def test_a_map_comes_as_a_dict_or_as_pairs() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    q = query(select={"last": sash.last("m"), "all": sash.collect("m")})
    s = q.stream(schema=pa.schema({"t": pa.int64(), "m": kind}))
    s.push([{"t": 1, "m": {"a": 1}}, {"t": 2, "m": [("b", 2)]}, {"t": 3, "m": {"a": 1.5}}])
    s.push({"t": 4, "m": {"c": 3, "d": None}})
    assert s.late["t"].to_pylist() == [3]
    maps = [[("a", 1)], [("b", 2)], [("c", 3), ("d", None)]]
    found = sash.Stream.from_bytes(s.to_bytes(), q).close()
    assert found.select(["last", "all"]).to_pylist() == [{"last": maps[-1], "all": maps}]
    assert found["last"].type == kind


def test_an_enum_of_polars_is_text() -> None:
    frame = pl.DataFrame({"t": [1, 2, 13], "e": ["b", "a", "b"]}).with_columns(
        pl.col("e").cast(pl.Enum(["b", "a"]))
    )
    q = query(by=["e"], select={"most": sash.max("e"), "n": sash.count()})
    right = [("a", "a", 1), ("b", "b", 1), ("b", "b", 1)]
    assert q.run(frame).select("e", "most", "n").rows() == right
    s = q.stream()
    assert s.push(frame).select("e", "most", "n").rows() == right[:2]


def test_a_where_that_is_no_condition_says_so() -> None:
    for use in (
        lambda q: q.run({"t": [1], "x": [2.5]}),
        lambda q: q.stream().push({"t": 1, "x": 2.5}),
    ):
        with pytest.raises(
            ValueError, match=r"where, x, is no condition.*double.*field\('x'\) > 0"
        ):
            use(query(where=pc.field("x")))


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_text_is_told_from_bytes_wherever_it_lies(kind: pa.DataType) -> None:
    text = pa.string() if kind == pa.binary() else pa.large_string()
    values = [b"plain", b"", None, "é".encode(), b"\xff", b"plain"]
    column = pa.Array.from_buffers(text, len(values), pa.array(values, kind).buffers())
    for first in range(len(values) + 1):
        for last in range(first, len(values) + 1):
            wanted = b"\xff" not in values[first:last]
            assert is_utf8(column.slice(first, last - first)) == wanted, (first, last)


@pytest.mark.plain
@pytest.mark.parametrize("window", [W, sash.trailing(5), sash.session(5), sash.rows(2)], ids=str)
def test_a_batch_without_rows_may_come_before_all_types_are_known(window: sash.Window) -> None:
    """A poll that found nothing: in pandas, a column of text without rows has no type."""
    import pandas as pd

    q = sash.Query(time="t", by=["k"], window=window, select={"n": sash.count()})
    events = pd.DataFrame({"t": [1, 2, 12], "k": ["a", "b", "a"]})
    polled, s = q.stream(), q.stream()
    assert isinstance(polled.push(events[:0]), pd.DataFrame)
    found = [pd.concat([one.push(events), one.close()]) for one in (polled, s)]
    assert found[0].equals(found[1])
    assert polled.counts == s.counts
    with pytest.raises(KeyError, match="column 'k', which is not there; the batch has: t, kk"):
        q.stream().push(events[:0].rename(columns={"k": "kk"}))


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (np.int8(1), 300),
        (np.uint64(3), -4),
        (np.float32(1.5), 0.1),
        (np.float16(0.5), 1e10),
        (np.bool_(True), False),
    ],
)
def test_a_number_of_numpy_has_the_type_of_pythons(first: Any, later: Any) -> None:
    """Its own would be the column's for all later events."""
    q = sash.Query(time="t", by=["k"], window=sash.tumbling(10), select={"m": sash.last("x")})
    s = q.stream()
    s.push({"t": np.int8(1), "k": np.int8(2), "x": first})
    s.push({"t": 2, "k": 2000, "x": later})
    assert not s.late.num_rows
    assert s.close()["m"].to_pylist() == [first.item(), later]
    assert s._plan is not None
    assert [f.type for f in s._plan.keys] == [pa.int64()]
    length = pa.array([np.timedelta64(3, "ns")]).type
    s = q.stream()
    s.push({"t": 1, "k": 2, "x": np.timedelta64(3, "ns")})
    assert s.close()["m"].type == length


def test_streams_are_made_by_queries_and_statements() -> None:
    q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
    with pytest.raises(TypeError, match=r"write query\.stream\(lateness=…\) instead of"):
        sash.Stream(q)  # type: ignore[abstract]
    text = "SELECT count(*) AS n FROM e GROUP BY window(t, '1 hour')"
    for given in (text, sash.sql(text)):
        with pytest.raises(TypeError, match=r"write sash\.sql\(text\)\.stream\(lateness=…\)"):
            sash.SqlStream(given)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"runs what sash\.share gave, not"):
        sash.SharedSqlStream(q)  # type: ignore[arg-type]
