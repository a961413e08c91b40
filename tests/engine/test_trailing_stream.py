"""Streams with a window for each event; `test_event_streams` judges their rows."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash


def query(**given: Any) -> sash.Query:
    return sash.Query(**{"time": "t", "by": []} | given)


@pytest.mark.parametrize("closed", ["both", "left", "right", "none"])
@pytest.mark.parametrize("size", [1, 2**60])
@pytest.mark.parametrize("mode", ["final", "live"])
def test_the_least_and_the_greatest_size(closed: Any, size: int, mode: Any) -> None:
    q = query(by=[], window=sash.trailing(size, closed=closed), select={"sum": sash.sum("x")})
    events = {"t": [1, 2, 3, 3], "x": [1, 2, 4, 8]}
    s = q.stream(mode=mode, lateness=5)
    made = [s.push(events), s.close()]
    s._check()
    assert [x for part in made for x in part["sum"].to_pylist()] == q.run(events)["sum"].to_pylist()


def test_rows_come_out_in_the_order_of_their_arrival() -> None:
    q = query(by=[], window=sash.trailing(10), select={"all": sash.collect("x")})
    s = q.stream(lateness=5)
    given = [{"t": 7, "x": "a"}, {"t": 3, "x": "b"}, {"t": 9, "x": "c"}]
    assert s.push(given).to_pylist() == [
        {"t": 3, "x": "b", "window_start": -7, "window_end": 3, "all": ["b"]}
    ]
    found = s.push({"t": 20, "x": "d"})
    assert found["all"].to_pylist() == [["b", "a"], ["b", "a", "c"]]
    assert found["x"].to_pylist() == ["a", "c"]


def test_columns_that_a_batch_lacks_or_adds() -> None:
    q = query(by=[], window=sash.trailing(10), select={"sum": sash.sum("x")})
    s = q.stream(lateness=100)
    s.push({"t": [1], "x": [1], "more": ["a"]})
    s.push({"t": [2], "x": [2]})  # lacks one that is only kept
    s.push([{"t": 3, "x": 3}])
    s.push({"t": [4], "x": [4], "more": ["b"], "other": [1]})
    with pytest.raises(KeyError, match="the query reads column 'x', which is not there"):
        s.push({"t": [5], "more": ["c"]})
    found = s.close()
    assert found.column_names == ["t", "x", "more", "window_start", "window_end", "sum"]
    assert found["more"].to_pylist() == ["a", None, None, "b"]
    assert found["sum"].to_pylist() == [1, 3, 6, 10]


def test_a_late_event_is_kept_with_the_window_it_missed() -> None:
    q = query(by=[], window=sash.trailing(10), select={"all": sash.collect("x")})
    s = q.stream()
    s.push({"t": 20, "x": "a"})
    s.push({"t": 19, "x": "b"})
    assert s.push({"t": None, "x": "c"}).num_rows == 0
    late = s.take_late()
    assert late["x"].to_pylist() == ["b", "c"]
    assert late["missed_start"].to_pylist() == [9, None]
    assert late["missed_end"].to_pylist() == [19, None]
    assert late["reason"].to_pylist()[0].startswith("its time is before the watermark")
    assert s.close()["all"].to_pylist() == [["a"]]


def test_columns_that_the_query_does_not_read_decide_nothing() -> None:
    q = query(by=[], window=sash.trailing(10), select={"sum": sash.sum("x")})
    for where in (None, pc.field("i") > 0):
        s = dataclasses.replace(q, where=where).stream(lateness=100)
        s.push([{"t": 1, "x": 1, "i": 1, "more": 7, "none": None}])
        s.push([{"t": 2, "x": 2, "i": 1, "more": "no number", "none": "text"}])
        s.push(pa.table({"t": [3], "x": [3], "i": [1], "more": ["no number"], "none": ["more"]}))
        s.push(pa.table({"t": [4], "x": [4], "i": [1], "more": [[1]], "none": [None]}))
        s.push(iter([{"t": 5, "x": "no number", "i": 1, "more": "no number"}]))
        s.push([{"t": 6, "x": 6, "i": "no number", "more": 8}])
        found = s.close()
        late = [5] if where is None else [5, 6]
        assert s.late["t"].to_pylist() == late
        assert found["sum"].to_pylist() == [1, 3, 6, 10, 16][: 6 - len(late)]
        assert found["more"].to_pylist() == [7, None, None, None, 8][: 6 - len(late)]
        assert found["none"].to_pylist() == [None, "text", "more", None, None][: 6 - len(late)]
    s = dataclasses.replace(q, where=pc.field("i") > 0).stream()
    with pytest.raises(TypeError, match="column 'i' has nothing but nulls"):
        s.push([{"t": 1, "x": 1, "i": None}])


def test_a_column_may_have_any_name() -> None:
    q = query(by=[], window=sash.trailing(10), select={"sum": sash.sum("x")})
    for mode in ("final", "live"):
        s = q.stream(lateness=5, mode=mode)
        s.push({"t": [1, 2], "x": [1, 2], "__revision": ["a", "b"]})
        again = sash.Stream.from_bytes(s.to_bytes(), q)
        late = {"t": [1], "x": [4], "__revision": ["c"]}
        assert again.push(late) == s.push(late)
        assert again.close() == s.close()


def test_a_row_that_lift_refuses_is_late() -> None:
    root = sash.operator(
        identity=0.0, lift=lambda x: 1.0 / x, combine=lambda a, b: a + b, name="inverses"
    )
    q = query(by=[], select={"y": sash.aggregate(root, "s")}, window=sash.trailing(10))
    s = q.stream(lateness=5, schema=pa.schema({"t": pa.int64(), "s": pa.string()}))
    s.push([{"t": 1, "s": None}, {"t": 2, "s": "x"}])
    assert s.late["t"].to_pylist() == [2]
