"""Statements over streams: the rows of the table, over every cutting; rows that an expression fails
for are late; live revisions that HAVING rejects are deleted."""

from __future__ import annotations

import warnings
from typing import Any

import pandas
import polars
import pyarrow as pa
import pytest

import sash
from sash.sql.stream import with_known
from sash.testing.queries import rows_of
from sash.testing.streams import stream

SLIDING = (
    "SELECT upper(k) AS u, window.start AS s, sum(i / 2) AS halves, count(*) * 2 AS twice FROM t "
    "WHERE i <> 40 GROUP BY upper(k), window(t, '10 seconds', '4 seconds') HAVING count(*) > 1"
)
SESSION = (
    "SELECT k, session_window.end AS e, max(x) AS m FROM t GROUP BY k, "
    "session_window(t, '2 seconds')"
)
TRAILING = (
    "SELECT n, i + 1 AS more, count(*) OVER w AS many FROM t WHERE i >= 0 WINDOW w AS (PARTITION "
    "BY k ORDER BY t RANGE BETWEEN INTERVAL '3' SECOND PRECEDING AND CURRENT ROW)"
)


def bag(tables: list[Any]) -> list[str]:
    return sorted(str(row) for table in tables for row in rows_of(table))


@pytest.mark.parametrize("text", [SLIDING, SESSION, TRAILING])
@pytest.mark.parametrize("cut", ["batches", "dicts", "polars", "store"])
def test_a_stream_has_the_rows_of_the_table(text: str, cut: str) -> None:
    table = stream("disorder", 60, plain=True)
    statement = sash.sql(text)
    store: Any = {"store": sash.stores.memory(), "name": "s"} if cut == "store" else {}
    made = statement.stream(lateness="1 day", schema=table.schema, **store)
    if cut in ("dicts", "store"):
        parts: list[Any] = [table.slice(i, 7).to_pylist() for i in range(0, 60, 7)]
    elif cut == "polars":
        polars = pytest.importorskip("polars")
        parts = [polars.from_arrow(table.slice(i, 20)) for i in range(0, 60, 20)]
    else:
        parts = [table.slice(0, 11), table.slice(11, 1), table.slice(12, 0), table.slice(12)]
    found = []
    for i, part in enumerate(parts):
        found.append(made.push(part))
        if i == 1 and cut == "store":
            made.sync()
            made.push(table.slice(30, 7))  # which is lost
            made.release()
            made = statement.stream(lateness="1 day", **store)
        elif i == 1:
            made = sash.SqlStream.from_bytes(made.to_bytes(), statement)
    found.append(made.close())
    tables = [pa.table(t) if not isinstance(t, pa.Table) else t for t in found]
    assert bag(tables) == bag([statement.run(table)]) != []
    assert made.counts["late"] == made.late.num_rows == 0


def test_a_stored_stream_remembers_the_types_of_its_columns_and_refuses_others() -> None:
    store = sash.stores.memory()
    text = "SELECT k, max(x + 1) AS m FROM t GROUP BY k, window(ts, '5 microseconds')"
    s = sash.sql(text).stream(store=store, name="s")
    s.push({"ts": 1, "k": "a", "x": 1.5})
    assert s.query("a") == {"m": 2.5}
    s.sync()
    s.release()
    other = sash.sql(text.replace("max", "min"))
    with pytest.raises(ValueError, match="a stream of another query"):
        other.stream(store=store, name="s")
    with pytest.raises(ValueError, match="timezone=None, and cannot go on with timezone='UTC'"):
        sash.sql(text, timezone="UTC").stream(store=store, name="s")
    s = sash.sql(text + " HAVING max(x + 1) > 0").stream(store=store, name="s")
    s.push({"ts": 2, "k": None, "x": None})  # of no type by itself
    assert s.explain().place.startswith("Query.stream, in a store")
    assert s.close().to_pylist() == [{"k": "a", "m": 2.5}]


def test_a_row_that_an_expression_fails_for_is_late_with_its_reason() -> None:
    text = (
        "SELECT k, sum(10 / x) AS s FROM t WHERE CAST(y AS int) > 0 "
        "GROUP BY k, window(ts, '10 microseconds')"
    )
    made = sash.sql(text).stream()
    rows = [
        {"ts": 1, "k": "a", "x": 2, "y": "1"},
        {"ts": 2, "k": "a", "x": 0, "y": "1"},
        {"ts": 3, "k": "a", "x": 0, "y": "0"},
        {"ts": 4, "k": "a", "x": 5, "y": "one"},
    ]
    assert made.push(rows).num_rows == 0
    assert made.push(pa.table({"ts": [25], "k": ["a"], "x": [1], "y": ["7"]})).to_pylist() == [
        {"k": "a", "s": 5.0}
    ]
    late = made.take_late()
    assert late.column_names[:4] == ["ts", "k", "x", "y"]
    assert dict(zip(late["ts"].to_pylist(), late["reason"].to_pylist(), strict=True)) == {
        2: "10 / x: division by zero",
        4: "CAST(y AS int) > 0: CAST: 'one' is no int",
    }
    assert made.counts["late"] == 2
    assert made.counts["rows"] == 4
    assert made.late.num_rows == 0


def test_a_result_that_an_expression_fails_for_has_null_with_a_warning() -> None:
    text = "SELECT 1 / sum(x) AS s FROM t GROUP BY window(ts, '10 microseconds')"
    made = sash.sql(text).stream(lateness=100)
    made.push([{"ts": 1, "x": 0}, {"ts": 12, "x": 4}])
    with pytest.warns(RuntimeWarning, match="1 row.* null instead: division by zero"):
        assert made.close().to_pylist() == [{"s": None}, {"s": 0.25}]


def test_what_having_rejects_cannot_fail_and_a_having_that_fails_is_told() -> None:
    text = (
        "SELECT k, sum(x) / sum(z) AS r FROM t GROUP BY k, window(ts, '10 microseconds') "
        "HAVING sum(z) <> 0"
    )
    rows = [{"ts": 1, "k": "a", "x": 3, "z": 2}, {"ts": 2, "k": "b", "x": 3, "z": 0}]
    wanted = [{"k": "a", "r": 1.5}]
    assert sash.sql(text).run(pa.Table.from_pylist(rows)).to_pylist() == wanted
    made = sash.sql(text).stream()
    made.push(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert made.close().to_pylist() == wanted
    made = sash.sql(text.replace("sum(z) <> 0", "sum(x) / sum(z) > 0")).stream()
    made.push(rows)
    says = "1 row.* no value for HAVING, and are left out: division by zero"
    with pytest.warns(RuntimeWarning, match=says) as caught:
        assert made.close().to_pylist() == wanted
    assert len(caught) == 1


def test_live_revisions_that_having_rejects_are_marked_deleted() -> None:
    text = (
        "SELECT k, window.start AS s, window.end AS e, count(*) AS n FROM t "
        "GROUP BY k, window(ts, '10 microseconds') HAVING count(*) < 3"
    )
    made = sash.sql(text).stream(lateness=100, mode="live")
    first = made.push([{"ts": 1, "k": "a"}, {"ts": 2, "k": "a"}, {"ts": 11, "k": "b"}])
    assert first.to_pylist() == [
        {"k": "a", "s": 0, "e": 10, "n": 2, "revision": 0, "deleted": False}
    ]
    again = made.push([{"ts": 3, "k": "a"}, *[{"ts": 12, "k": "b"}] * 3, {"ts": 25, "k": "c"}])
    assert again.to_pylist() == [
        {"k": "a", "s": 0, "e": 10, "n": 3, "revision": 1, "deleted": True}
    ], "and the first revision of b's window is left out"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT count(*) AS n FROM t GROUP BY k, window(ts, '1 hour')", "lacks k, the window's"),
        (
            "SELECT k, window.start, count(*) AS n FROM t GROUP BY k, window(ts, '1 hour')",
            "lacks the window's end",
        ),
    ],
)
def test_live_mode_needs_keys_and_bounds(text: str, says: str) -> None:
    sash.sql(text).stream()
    with pytest.raises(sash.SqlError, match=says):
        sash.sql(text).stream(mode="live")
    whole = text.replace("SELECT", "SELECT window, k AS key,").replace(" k, window.start,", "")
    sash.sql(whole).stream(mode="live")


def test_live_mode_needs_the_events_columns_with_over() -> None:
    over = "sum(x) OVER (PARTITION BY k ORDER BY ts RANGE INTERVAL '1' HOUR PRECEDING) AS s"
    made = sash.sql(f"SELECT ts, {over} FROM t").stream(mode="live")
    with pytest.raises(sash.SqlError, match="it lacks k, x: write SELECT"):
        made.push({"ts": 1, "k": "a", "x": 1})
    made = sash.sql(f"SELECT *, {over} FROM t").stream(mode="live")
    assert made.push({"ts": 1, "k": "a", "x": 1}).to_pylist() == [
        {"ts": 1, "k": "a", "x": 1, "s": 1, "revision": 0}
    ]


def test_order_by_and_limit_are_for_tables() -> None:
    text = "SELECT count(*) AS n FROM t GROUP BY window(ts, '1 hour')"
    with pytest.raises(sash.SqlError, match="ORDER BY is for tables"):
        sash.sql(f"{text} ORDER BY n").stream()
    with pytest.raises(sash.SqlError, match="LIMIT is for tables"):
        sash.sql(f"{text} LIMIT 3").stream()


@pytest.mark.parametrize("shown", ["*", "ts, K"])
def test_events_are_taken_whatever_the_case_of_their_columns(shown: str) -> None:
    over = "count(*) OVER (PARTITION BY K ORDER BY ts) AS n"
    made = sash.sql(f"SELECT {shown}, {over} FROM t").stream()
    found = [made.push({"ts": t, "k": "a", "x": 1}) for t in (1, 2, 3)]
    counts = [n for table in (*found, made.close()) for n in table["n"].to_pylist()]
    assert counts == [1, 2, 3]
    grouped = "SELECT k, count(*) AS n FROM t GROUP BY k, window(TS, '1 hour')"
    made = sash.sql(grouped).stream()
    for t in (1, 2, 3):
        made.push({"ts": t, "k": "a", "x": 1})
    assert made.close().to_pylist() == [{"k": "a", "n": 3}]


def test_a_stream_tells_how_far_it_is() -> None:
    made = sash.sql("SELECT count(*) AS n FROM t GROUP BY window(ts, '10 microseconds')").stream(
        lateness=5
    )
    assert made.push([{"ts": 3}, {"ts": 12}]).num_rows == 0
    assert (made.time, made.watermark, made.late_dropped) == (12, 7, 0)
    assert made.advance(10).to_pylist() == [{"n": 1}]
    assert made.state_size()["keys"] == 1
    made.push({"ts": 4})
    assert made.late["ts"].to_pylist() == [4]


FRAME = pandas.DataFrame({"t": [1, 6_000_000], "k": ["a", "a"], "i": [1, 2], "n": [1, 2]})
FRAME["x"] = [0.5, 1.5]
MORE = sash.Query(time="t", window=sash.rows(2), select={"many": sash.count()})


def streams(text: str) -> dict[str, Any]:
    """A statement by itself, beside one that computes the same, and beside queries."""
    one, alike = sash.sql(text), sash.sql(text.replace("count(*)", "1 * count(*)"))
    both = sash.share({"a": one, "b": alike})
    return {"alone": one, "beside": both, "mixed": sash.share({"a": one, "q": MORE})}


def first_of(found: Any) -> Any:
    """The rows of the first statement."""
    return found["a"] if isinstance(found, dict) else found


@pytest.mark.parametrize("how", ["alone", "beside", "mixed"])
@pytest.mark.parametrize("text", [SLIDING, SESSION, TRAILING])
def test_a_restored_stream_gives_the_kind_that_was_pushed(text: str, how: str) -> None:
    made = streams(text)[how]
    for given in (FRAME, polars.from_pandas(FRAME), pa.table(FRAME), pa.table(FRAME).to_pylist()):
        s = made.stream(lateness="1 minute")
        s.push(given)
        again = type(s).from_bytes(s.to_bytes(), made)
        twice = type(s).from_bytes(again.to_bytes(), made)
        expected = first_of(s.close())
        assert type(expected) is type(given) or isinstance(given, list)
        for restored in (again, twice):
            found = first_of(restored.close())
            assert type(found) is type(expected)
            assert bag([found]) == bag([expected]) != []


def test_a_stored_stream_gives_the_kind_that_was_pushed() -> None:
    statement, store = sash.sql(SLIDING), sash.stores.memory()
    s = statement.stream(store=store, name="s", lateness="1 minute")
    s.push(FRAME)
    s.sync()
    s.release()
    s = statement.stream(store=store, name="s", lateness="1 minute")
    assert isinstance(s.close(), pandas.DataFrame)


def test_bytes_from_before_the_kind_was_in_them() -> None:
    statement = sash.sql(SLIDING)
    s = statement.stream()
    s.push(FRAME)
    old = with_known(s._intake.known, s._stream.to_bytes())
    again = sash.SqlStream.from_bytes(old, statement)
    assert isinstance(again.push(FRAME), pandas.DataFrame)


EMPTY: dict[str, Any] = {
    "no events": [],
    "no columns": pandas.DataFrame(),
    "pandas": pandas.DataFrame(columns=[*FRAME.columns]),
    "floats": pandas.DataFrame({name: [] for name in FRAME.columns}, dtype=float),
    "polars": polars.DataFrame({name: [] for name in FRAME.columns}),
    "arrow": pa.table({name: pa.nulls(0) for name in FRAME.columns}),
}


@pytest.mark.parametrize("how", ["alone", "beside", "mixed"])
@pytest.mark.parametrize("text", [SLIDING, SESSION, TRAILING])
@pytest.mark.parametrize("empty", list(EMPTY))
def test_the_first_batches_may_be_empty_and_have_no_types(empty: str, text: str, how: str) -> None:
    given, made = EMPTY[empty], streams(text)[how]
    s, plain = made.stream(lateness="1 minute"), made.stream(lateness="1 minute")
    for _ in range(2):
        found = first_of(s.push(given))
        assert len(found) == 0
        assert type(found) is type(given) or isinstance(given, list)
    s.push(FRAME)
    plain.push(FRAME)
    assert bag([first_of(s.close())]) == bag([first_of(plain.close())]) != []


@pytest.mark.parametrize("how", ["alone", "beside", "mixed"])
def test_an_empty_batch_without_a_column_is_refused(how: str) -> None:
    s = streams(SLIDING)[how].stream()
    with pytest.raises(sash.SqlError, match="column i is not there"):
        s.push(EMPTY["pandas"].drop(columns="i"))
    s.push(FRAME)
