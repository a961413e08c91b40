"""Streams of windows that events drive; `test_event_streams` judges their rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import sash

pytestmark = pytest.mark.plain


def stream_of(window: Any, select: Any = None, **given: Any) -> Any:
    q = sash.Query(time="t", window=window, select=select or {"all": sash.collect("x")})
    return q.stream(**given)


def test_rows_come_out_in_the_order_of_their_arrival() -> None:
    s = stream_of(sash.rows(2), lateness=5)
    s.push([{"t": 7, "x": "a"}, {"t": 3, "x": "b"}, {"t": 9, "x": "c"}])
    found = s.push({"t": 20, "x": "d"})
    assert found["x"].to_pylist() == ["a", "c"]
    assert found["all"].to_pylist() == [["b", "a"], ["a", "c"]]
    assert found["window_start"].to_pylist() == [3, 7]


def test_late_events_are_in_no_window() -> None:
    s = stream_of(sash.rows(2))
    s.push({"t": [20], "x": ["a"]})
    s.push({"t": [19, None, 21], "x": ["b", "c", "d"]})
    late = s.take_late()
    assert late["x"].to_pylist() == ["b", "c"]
    assert late["missed_end"].to_pylist() == [19, None]
    assert late["reason"].to_pylist()[0].startswith("its time is before the watermark")
    assert s.close()["all"].to_pylist() == [["a", "d"]]


def test_an_event_goes_only_when_it_is_the_oldest() -> None:
    """An event that differs by more stays behind one that does not, in whatever batches."""
    given = [0, 9, 1, 8, 2, 20]
    table = pa.table({"t": range(6), "x": given})
    q = sash.Query(time="t", window=sash.delta("x", 8), select={"all": sash.collect("x")})
    right = q.run(table)["all"].to_pylist()
    assert [9, 1, 8, 2] in right
    s = q.stream()
    found = [x for i in range(6) for x in s.push(table.slice(i, 1))["all"].to_pylist()]
    assert found + s.close()["all"].to_pylist() == right


@pytest.mark.parametrize(
    "window",
    [sash.delta("x", 0.5, every=3.5), sash.window(keep=sash.rows(2), every=sash.punctuated("m"))],
    ids=repr,
)
def test_measured_columns_may_be_dictionaries(window: Any) -> None:
    table = pa.table({"t": [1, 2, 3, 4], "x": [1, 5, None, 1], "m": [None, True, False, True]})
    q = sash.Query(time="t", window=window, select={"all": sash.collect("t")})
    right = q.run(table)["all"].to_pylist()
    coded = pa.table({n: table[n].dictionary_encode() if n != "t" else table[n] for n in "txm"})
    s = q.stream()
    found = s.push(coded)["all"].to_pylist()
    assert found + s.close()["all"].to_pylist() == right == q.run(coded)["all"].to_pylist()


@pytest.mark.parametrize("window", [sash.delta("x", 5, every=2), sash.delta("x", 3)], ids=repr)
def test_nulls_at_the_beginning_are_as_the_first_value(window: Any) -> None:
    values = [None, None, 7, None, 8, 9, 10, None, 2]
    table = pa.table({"t": range(9), "x": pa.array(values, pa.int64()), "n": range(9)})
    q = sash.Query(time="t", window=window, select={"all": sash.collect("n")})
    s = q.stream()
    found = [x for i in range(9) for x in s.push(table.slice(i, 1))["all"].to_pylist()]
    assert found + s.close()["all"].to_pylist() == q.run(table)["all"].to_pylist()


@pytest.mark.parametrize(
    ("window", "column", "message"),
    [
        (sash.delta("y", 1), ["a"], r"'y' of a delta has type string; it must hold numbers"),
        (sash.punctuated("y"), [1], r"column of marks 'y' has type int64; it must hold bools"),
        (sash.window(keep=sash.delta("y", 1), every=9), ["a"], "it must hold numbers"),
        (sash.window(keep=5, every=sash.punctuated("y")), [1], "it must hold bools"),
    ],
    ids=repr,
)
def test_columns_that_cannot_be_measured(window: Any, column: Any, message: str) -> None:
    s = stream_of(window, {"many": sash.count()})
    with pytest.raises(TypeError, match=message):
        s.push({"t": [1], "y": column})


@pytest.mark.parametrize(
    "window", [sash.delta("x", 3), sash.window(keep=sash.rows(9), every=sash.delta("x", 3))]
)
def test_values_without_a_difference_are_late(window: Any) -> None:
    """It goes by the value alone: one row does not make others late."""
    low = -(2**63)
    s = stream_of(window, {"many": sash.count()}, lateness=9)
    s.push({"t": [1, 2], "x": [low, 0]})
    s.push({"t": [3, 4], "x": [2**62 - 1, 1 - 2**62]})
    assert s.late["t"].to_pylist() == [1]
    assert "between -2**62 and 2**62" in s.take_late()["reason"][0].as_py()
    found = s.close()
    assert found["t"].to_pylist() == (
        [2, 3, 4] if isinstance(window, sash.windows.Delta) else [3, 4]
    )
    unsigned = stream_of(window, {"many": sash.count()}, lateness=9)
    unsigned.push(pa.table({"t": [1, 2], "x": pa.array([2**63, 1], pa.uint64())}))
    assert "between -2**62" in unsigned.late["reason"][0].as_py()


def test_a_row_that_a_policy_refuses_is_late() -> None:
    odd = sash.policy(
        lambda total, old: total - old > 2,
        over=sash.operator(
            identity=0, lift=lambda x: int(x), combine=lambda a, b: a + b, name="digits"
        ),
        columns="x",
    )
    s = stream_of(odd, lateness=9)
    s.push({"t": [1, 2, 3], "x": ["1", "one", "2"]})
    assert s.late["x"].to_pylist() == ["one"]
    assert s.close()["all"].to_pylist() == [["1"], ["1", "2"]]


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_a_value_that_is_no_number_does_not_stay_in_a_sum_for_ever(odd: float) -> None:
    q = sash.Query(
        time="t",
        window=sash.policies.at_most_sum(3, column="x"),
        select={"all": sash.collect("t")},
    )
    table = pa.table({"t": range(5), "x": [2.0, odd, None, 1.0, 2.5]})
    right = [[0], [], [2], [2, 3], [4]]
    assert q.run(table)["all"].to_pylist() == right
    s = q.stream()
    found = [x for i in range(5) for x in s.push(table.slice(i, 1))["all"].to_pylist()]
    assert found + s.close()["all"].to_pylist() == right


def test_the_ticks_of_a_gap_are_emitted_when_an_event_closes_it() -> None:
    s = stream_of(sash.window(keep=sash.rows(2), every=10))
    assert s.push({"t": [3, 12], "x": ["a", "b"]})["window_end"].to_pylist() == [10]
    assert s.advance(15).num_rows == 0
    assert s.advance(47)["window_end"].to_pylist() == [20]
    assert s.push({"t": [48], "x": ["c"]}).num_rows == 0
    found = s.push({"t": [49], "x": ["d"]})  # the one before is settled
    assert found["window_end"].to_pylist() == [30, 40]
    last = s.close()
    assert (last["window_end"].to_pylist(), last["all"].to_pylist()) == ([50], [["c", "d"]])
    s = stream_of(sash.window(keep=sash.rows(2), every=10))
    s.push({"t": [3], "x": ["a"]})
    s.push({"t": [30], "x": ["b"]})
    s.push({"t": [29], "x": ["c"]})
    assert s.late["missed_end"].to_pylist() == [30]


def test_the_clock_does_not_run_from_a_mark_to_the_next_event() -> None:
    """Centuries may lie between the two; and where it would fire too often, the error says so."""
    window = sash.window(keep=sash.punctuated("last"), every=10)
    events = {"t": [3, 12, 30, 2**59, 2**59 + 19], "x": list("abcde"), "last": [0, 0, 1, 0, 0]}
    table = pa.table(events | {"last": pa.array(events["last"]).cast(pa.bool_())})
    q = sash.Query(time="t", window=window, select={"all": sash.concat("x")})
    found = q.run(table)
    ends = [10, 20, 30, 2**59 + 2, 2**59 + 12, 2**59 + 22]
    assert found["window_end"].to_pylist() == ends
    assert found["all"].to_pylist() == ["a", "ab", "ab", "d", "d", "de"]
    for most in (1, 5):
        s = q.stream()
        parts = [s.push(table.slice(i, most)) for i in range(0, 5, most)]
        assert pa.concat_tables([*parts, s.close()]).equals(found)
    q = sash.Query(time="t", window=sash.window(keep=sash.rows(2), every=1), select=q.select)
    for run in (q.run, q.stream().push):
        with pytest.raises(MemoryError, match=r"fires every 1 microsecond fires up to 576,"):
            run(table)
