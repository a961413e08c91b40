"""Nanoseconds: picked values keep them; of times they only put events in order."""

from __future__ import annotations

import pyarrow as pa

import sash
from sash.testing.queries import answers, differences

NS = pa.timestamp("ns", "UTC")
TICKS = [1_500, 1_200, 1_999, -1, 2_500, 11_001, 1_200]
TABLE = pa.table(
    {
        "t": pa.array(TICKS, NS),
        "x": [1, 2, 3, 4, 5, 6, 7],
        "d": pa.array(TICKS, pa.duration("ns")),
        "clock": pa.array([abs(x) for x in TICKS], pa.time64("ns")),
        "l": pa.array([[x, None] for x in TICKS], pa.list_(NS)),
        "s": pa.array([{"a": x} for x in TICKS], pa.struct({"a": pa.timestamp("ns")})),
        "m": pa.array([[("k", x)] for x in TICKS], pa.map_(pa.string(), NS)),
    }
)
#: Compiled ones are few, as each takes its time to compile; `s` keeps the others on objects.
SELECT = {
    "least": sash.min("t"),
    "first": sash.first("t"),
    "span": sash.span("t"),
    "last_d": sash.last("d"),
    "most_s": sash.max("s"),
    "most_l": sash.max("l"),
    "last_m": sash.last("m"),
    "by": sash.arg_max("t", by="s"),
    "four": sash.m4("t", "s"),
    "all": sash.collect("t"),
    "clocks": sash.last_n("clock", 2),
    "xs": sash.collect("x"),
    "distinct": sash.count_distinct("t"),
}
QUERY = sash.Query(time="t", window=sash.tumbling(10), select=SELECT)


def test_picked_values_keep_every_nanosecond() -> None:
    found = QUERY.run(TABLE).combine_chunks()
    assert not differences(QUERY, answers(QUERY, TABLE), found)
    assert found["least"].type == NS
    assert found["least"].cast(pa.int64()).to_pylist() == [-1, 1_200, 11_001]
    for name, column in {"last_d": "d", "most_s": "s", "most_l": "l", "last_m": "m"}.items():
        assert found[name].combine_chunks().equals(TABLE[column].combine_chunks().take([3, 4, 5]))
    assert found["clocks"].type == pa.list_(pa.time64("ns"))
    assert found["xs"].to_pylist() == [[4], [2, 7, 1, 3, 5], [6]]
    assert found["distinct"].to_pylist() == [1, 4, 1]


def test_what_is_measured_is_in_microseconds() -> None:
    assert QUERY.run(TABLE)["span"].to_pylist() == [0, 1, 0]


def test_a_stream_has_them_too() -> None:
    found = QUERY.run(TABLE).combine_chunks()
    s = QUERY.stream(lateness=100)
    assert s.push(TABLE).num_rows == 0
    again = sash.Stream.from_bytes(s.to_bytes(), QUERY)
    assert s.close().equals(found)
    assert again.close().equals(found)


def test_nanoseconds_come_before_ties() -> None:
    table = pa.table({"t": pa.array([2, 2, 1], NS), "tie": [2, 1, 3], "x": [*"abc"]})
    q = sash.Query(time="t", window=sash.tumbling(10), select={"xs": sash.collect("x")}, tie="tie")
    assert q.run(table)["xs"].to_pylist() == [["c", "b", "a"]]
    assert not differences(q, answers(q, table), q.run(table))
