"""The judge of queries, judged by examples worked out by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import pyarrow as pa
import pytest

import sash
from sash.testing.queries import answers, differences, replay, rows_of
from sash.testing.streams import STREAMS, WINDOWS, batches, stream


def query(window: object = None, **more: object) -> sash.Query:
    given = {"time": "t", "select": {"xs": sash.collect("x")}, "window": window} | more
    return sash.Query(**given)  # type: ignore[arg-type]


def starts(rows: list[dict[str, object]]) -> list[object]:
    return [row["window_start"] for row in rows]


def test_windows_that_hold_an_event_are_listed_one_by_one() -> None:
    #   sliding(5, 2)     -4  -2   0   2   4
    #                              .   *            7 is in [3..8) if offset 1
    q = query(sash.sliding(5, 2))
    assert starts(answers(q, [{"t": 4, "x": 1}])) == [0, 2, 4]
    assert starts(answers(q, [{"t": 5, "x": 1}])) == [2, 4]
    assert starts(answers(q, [{"t": -1, "x": 1}])) == [-4, -2]
    assert starts(answers(query(sash.sliding(5, 2, offset=1)), [{"t": 5, "x": 1}])) == [1, 3, 5]


def test_maps_with_the_same_entries_are_one_key() -> None:
    maps = [[("a", 0.0), ("b", math.nan)], [("b", math.nan), ("a", -0.0)], [], None]
    table = pa.table(
        {
            "t": [1, 2, 3, 4],
            "x": [1, 2, 3, 4],
            "m": pa.array(maps, pa.map_(pa.string(), pa.float64())),
        }
    )
    q = query(sash.tumbling(9), by=["m"])
    rows = answers(q, table)
    assert sorted(row["xs"] for row in rows) == [[1, 2], [3], [4]]
    assert not differences(q, rows, q.run(table), ordered=False)


def test_events_are_folded_by_time_then_tie_then_arrival() -> None:
    rows = [
        {"t": 3, "x": "late", "o": 1},
        {"t": 1, "x": "c", "o": 9},
        {"t": 1, "x": "b", "o": 2},
        {"t": 1, "x": "d", "o": None},
        {"t": 1, "x": "e", "o": 9},
    ]
    (by_arrival,) = answers(query(sash.tumbling(10)), rows)
    assert by_arrival["xs"] == ["c", "b", "d", "e", "late"]
    (by_tie,) = answers(query(sash.tumbling(10), tie="o"), rows)
    assert by_tie["xs"] == ["b", "c", "e", "d", "late"]


def test_keys_are_equal_as_in_spark_and_in_order() -> None:
    keys = [1.0, math.nan, None, -0.0, 0.0, -math.nan, None]
    rows = [{"t": 1, "x": i, "k": k} for i, k in enumerate(keys)]
    found = answers(query(sash.tumbling(10), by=["k"]), rows)
    assert [row["xs"] for row in found] == [[2, 6], [3, 4], [0], [1, 5]]
    assert math.copysign(1, found[1]["k"]) == 1


def test_changes_are_against_the_window_before_only() -> None:
    q = query(sash.tumbling(10), select={"m": sash.max("x")}, emit="changes")
    rows = [{"t": t, "x": x} for t, x in ((1, 5), (12, 5), (25, 6), (38, 6), (55, 6), (61, None))]
    # 10 is like 0, 30 like 20; before 50 comes nothing
    assert starts(answers(q, rows)) == [0, 20, 50, 60]
    rows = [{"t": t, "x": math.nan} for t in (1, 12)]
    assert starts(answers(q, rows)) == [0]


def test_late_events_count_in_the_windows_that_are_still_open() -> None:
    q = query(sash.sliding(10, 5))
    cut = [
        [{"t": 3, "x": "a"}, {"t": 17, "x": "b"}],  # the watermark becomes 15
        [{"t": 6, "x": "c"}, {"t": None, "x": "d"}, {"t": 2**60, "x": "e"}],
        [],
        [{"t": 40, "x": "f"}, {"t": 14, "x": "g"}],  # within one batch nothing is late
        [{"t": 16, "x": "h"}],
    ]
    rows, late = replay(q, cut, lateness=2)
    assert [(row["window_start"], row["xs"]) for row in rows] == [
        (-5, ["a"]),
        (0, ["a"]),
        (10, ["g", "b"]),
        (15, ["b"]),
        (35, ["f"]),
        (40, ["f"]),
    ]
    assert [(row["x"], missed) for row, missed in late] == [
        ("c", [(0, 10), (5, 15)]),
        ("d", []),
        ("e", []),
        ("g", [(5, 15)]),
        ("h", [(10, 20), (15, 25)]),
    ]


@pytest.mark.parametrize("kind", STREAMS)
def test_enough_lateness_makes_a_stream_a_table(kind: str) -> None:
    events = stream(kind)
    for window in WINDOWS[:5]:
        q = query(window, by=["k"])
        rows, late = replay(q, batches(events), lateness="1 day")
        assert not late
        assert not differences(q, answers(q, events), rows)


def test_streams_are_what_they_say() -> None:
    for kind in STREAMS:
        events = stream(kind, 300)
        assert str(events) == str(stream(kind, 300))
        assert events.num_rows == 300
        x = rows_of(events)
        assert any(row["x"] is None for row in x)
        assert any(row["x"] is not None and math.isnan(row["x"]) for row in x)
        calm = stream(kind, 300, plain=True)
        assert all(column.null_count == 0 for column in calm.columns)
        assert all(math.isfinite(v) for c in "xf" for v in calm[c].to_pylist())
    with pytest.raises(ValueError, match="'calm' is no kind of stream; give one of in order, "):
        stream("calm")


def test_rows_of_any_table() -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    table = pa.table(
        {
            "window": pa.array(
                [{"start": 1_000, "end": 2_000}],
                pa.struct([("start", pa.timestamp("ns")), ("end", pa.timestamp("ns", "UTC"))]),
            ),
            "x": pa.array([[1.5, None]]),
            "at": pa.array([-1], pa.timestamp("s")),
        }
    )
    expected = [{"window_start": 1, "window_end": 2, "x": [1.5, None], "at": -1_000_000}]
    assert rows_of(table) == rows_of(table.to_batches()[0]) == expected
    assert rows_of(polars.from_arrow(table)) == expected
    assert rows_of(pandas.DataFrame({"t": pandas.to_datetime([5]), "x": [math.nan]})) == [
        {"t": Fraction(5, 1000), "x": None}
    ]


def test_differences_are_told() -> None:
    q = query(sash.tumbling(10), select={"m": sash.mean("x"), "g": sash.max("x")}, by=["k"])
    rows = [{"t": 1, "x": 0.1, "k": "a"}, {"t": 2, "x": 0.2, "k": "b"}]
    right = answers(q, rows)
    assert differences(q, right, right) == []
    assert differences(q, right, right[::-1], ordered=False) == []
    (told,) = differences(q, right, right[:1])
    assert told == "there are 1 rows where 2 are right"
    off = [{**row, "m": row["m"] + 1e-15, "g": row["g"] + 1e-15} for row in right]
    assert [t.split(":")[-1] for t in differences(q, right, off[:1] + right[1:])] == [
        " g is 0.100000000000001 where 0.1 is right"
    ]
    assert "is right" in differences(q, right, right[::-1])[0]


def test_aggregates_of_other_sizes_end_with_the_query_s_window_and_add_no_rows() -> None:
    #   ends      4    8    12   16          sizes 4, 2, 9, and all
    #   events  1   4 7           14
    rows = [{"t": t, "x": t} for t in (1, 7, 4, 14)]
    xs = sash.collect("x")
    select = {"own": xs, "short": xs.over(2), "long": xs.over(9), "ever": xs.over(sash.lifetime())}
    found = answers(query(sash.tumbling(4), select=select), rows)
    assert [(r["window_end"], *(r[name] for name in select)) for r in found] == [
        (4, [1], [], [1], [1]),
        (8, [4, 7], [7], [1, 4, 7], [1, 4, 7]),
        (16, [14], [14], [7, 14], [1, 4, 7, 14]),
    ]
    filled = answers(query(sash.tumbling(4, empty="zero"), select=select), rows)
    assert [filled[2][name] for name in select] == [[], [], [4, 7], [1, 4, 7]]


def test_aggregates_of_other_sizes_trail_the_event() -> None:
    rows = [{"t": t, "x": t} for t in (1, 8, 4, 8, 9)]
    xs = sash.collect("x")
    select = {"own": xs, "long": xs.over(7), "short": xs.over(1), "ever": xs.over(sash.lifetime())}

    def held(window: sash.Trailing) -> list[list[object]]:
        return [[row[n] for n in select] for row in answers(query(window, select=select), rows)]

    assert held(sash.trailing(4))[1:3] == [
        [[4, 8, 8], [1, 4, 8, 8], [8, 8], [1, 4, 8, 8]],
        [[1, 4], [1, 4], [4], [1, 4]],
    ]
    assert held(sash.trailing(4, closed="none", delay=1))[4] == [[], [4], [], [1, 4]]
    assert held(sash.trailing(4, exclude="group"))[1] == [[4], [1, 4], [], [1, 4]]


def test_a_late_event_counts_where_a_longer_aggregate_of_an_open_window_reaches_it() -> None:
    xs = sash.collect("x")
    q = query(sash.tumbling(4), select={"own": xs, "long": xs.over(9)})
    batches = [[{"t": 1, "x": 1}, {"t": 9, "x": 9}], [{"t": 2, "x": 2}, {"t": 5, "x": 5}]]
    found, late = replay(q, batches)
    assert [(r["window_end"], r["own"], r["long"]) for r in found] == [
        (4, [1], [1]),
        (12, [9], [5, 9]),
    ]
    assert [(row["t"], missed) for row, missed in late] == [(2, [(0, 4), (4, 8)]), (5, [(4, 8)])]
