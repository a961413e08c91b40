"""Tables of any kind in, the same kind out; times of any kind; and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.tables.arrow import as_given
from sash.testing.queries import answers, differences, rows_of
from sash.testing.streams import stream

SELECT = {"n": sash.count(), "max": sash.max("x"), "who": sash.last("s")}


def query(**given: Any) -> sash.Query:
    return sash.Query(
        **{"time": "t", "window": sash.sliding("7 s", "3 s"), "by": ["k"], "select": SELECT} | given
    )


# Kinds of tables


def test_pandas_in_pandas_out() -> None:
    import pandas as pd

    events = stream("disorder").to_pandas()
    events.index = events.index[::-1]  # not to be taken for anything
    q = query()
    found = q.run(events)
    assert isinstance(found, pd.DataFrame)
    assert list(found.columns) == ["k", "window_start", "window_end", "n", "max", "who"]
    assert not differences(q, answers(q, events), found)


@pytest.mark.plain
def test_integers_with_nulls_in_pandas_are_not_rounded() -> None:
    """pandas turns integers with nulls into floats; such a float would be another key or sum."""
    import pandas as pd

    large = 2**53 + 1
    events = pd.DataFrame({"t": [1, 2, 3], "k": pd.array([large, None, large + 1], "Int64")})
    q = query(window=sash.tumbling(10), select={"n": sash.count()})
    keys = [pd.NA, large, large + 1]
    found = q.run(events)["k"]
    assert found.isna().tolist() == [True, False, False]
    assert found.tolist()[1:] == keys[1:]
    before = query(by=[], window=sash.trailing(10, exclude="row"), select={"sum": sash.sum("x")})
    values = pd.DataFrame({"t": [1, 2, 3], "x": [large, 2, 3]})
    assert before.run(values)["sum"].tolist()[1:] == [large, large + 2]
    stream = before.stream()
    stream.push(values)
    assert stream.close()["sum"].tolist() == [large + 2]
    held = {"two": sash.first_n("x", 2), "least": sash.m4("t", "x")}
    found = query(by=[], window=sash.tumbling(10), select=held).run(
        pd.DataFrame({"t": [1, 2, 12], "x": pd.array([large, None, None], "Int64")})
    )
    assert list(found["two"][0]) == [large, None]
    assert found["least"].tolist()[0]["min"] == large
    parts = pa.chunked_array([pa.array([large]), pa.array([None], pa.int64())])
    assert as_given(pa.table({"x": parts}), "pandas")["x"][0] == large
    small = before.run(values.assign(x=[-(2**53), 2, 3]))["sum"]
    assert small.dtype == np.float64  # as pandas has it
    assert small.tolist()[1:] == [-(2**53), 2 - 2**53]


@pytest.mark.plain
def test_nan_in_pandas_is_null_and_elsewhere_a_number() -> None:
    import pandas as pd
    import polars as pl

    q = query(by=[], select={"n": sash.count("x"), "max": sash.max("x")})
    columns: dict[str, Any] = {"t": [1, 2, 3], "x": [1.0, np.nan, 2.0]}
    assert rows_of(q.run(pd.DataFrame(columns)))[0]["max"] == 2.0
    assert rows_of(q.run(pd.DataFrame(columns)))[0]["n"] == 2
    for made in (pl.DataFrame(columns), pa.table(columns)):
        (row, *_) = rows_of(q.run(made))
        assert row["n"] == 3
        assert np.isnan(row["max"])


def test_only_what_a_query_reads_is_converted() -> None:
    import pandas as pd

    events = pd.DataFrame({"t": [1, 2], "x": [1.0, 2.0], "odd": [1, "mixed"]})  # Arrow refuses odd
    q = query(by=[], select={"n": sash.count(), "m": sash.max("x")})
    assert list(q.run(events)["m"]) == [2, 2, 2]
    with pytest.raises(KeyError, match="reads column 'z', which is not there; the table has: t, x"):
        query(by=[], select={"m": sash.max("z")}).run(events[["t", "x"]])


def test_categories_are_keys_and_values() -> None:
    import pandas as pd

    events = stream("ties").to_pandas()
    events["k"] = events["k"].astype("category")
    events["s"] = events["s"].astype(pd.CategoricalDtype(["yy", "x", "é", "", "not there"]))
    q = query()
    assert not differences(q, answers(q, events), q.run(events))


def test_polars_in_polars_out() -> None:
    import polars as pl

    events = pl.from_arrow(stream("disorder"))
    q = query()
    for given in (events, events.lazy(), events.with_columns(pl.col("k").cast(pl.Categorical))):
        found = q.run(given)
        assert isinstance(found, pl.DataFrame)
        assert not differences(q, answers(q, events), found)


@pytest.mark.plain
def test_a_polars_frame_of_python_objects_is_refused() -> None:
    """Polars hands over the addresses of objects: equal ones would be two keys."""
    import polars as pl

    objects = pl.Series([complex(1, 2), complex(1, 2)], dtype=pl.Object)
    events = pl.DataFrame({"t": [1, 2], "k": ["a", "a"], "o": objects, "x": [1, 2]})
    plain = query(select={"n": sash.count()})
    assert plain.run(events)["n"].to_list() == plain.run(events.drop("o"))["n"].to_list()
    says = "column 'o' of the Polars frame holds Python objects"
    each = query(window=sash.trailing(3), select={"n": sash.count()})
    with pytest.raises(TypeError, match=says):
        query(by=["o"], select={"n": sash.count()}).run(events)
    for refused in (each.run, each.stream().push, plain.stream().push):
        for frame in (events, events.lazy()):
            with pytest.raises(TypeError, match=says):
                refused(frame)
    wide = events.drop("o").with_columns(pl.col("x").cast(pl.Int128))
    assert plain.run(wide).equals(plain.run(events))
    with pytest.raises(TypeError, match=r"Arrow does not take this Polars frame.*x Int128"):
        each.run(wide)
    for odd in (events["x"], pl.Series([1])):
        with pytest.raises(TypeError, match=r"not polars\.series\.series\.Series"):
            plain.run(odd)


@pytest.mark.plain
def test_a_lazy_frame_is_collected(recwarn: pytest.WarningsRecorder) -> None:
    import polars as pl

    events = pl.DataFrame({"t": [1, 2], "k": ["a", "a"]})
    q = query(select={"n": sash.count()}, window=sash.tumbling(10))
    shared = sash.share({"q": q, "r": query(by=[], select={"n": sash.count()})})
    assert q.run(events.lazy()).equals(q.run(events))
    for s in (q.stream(), shared.stream()):
        s.push(events.lazy())
    assert not recwarn.list


def test_arrow_and_what_speaks_its_interface() -> None:
    events = stream("disorder", 60)
    q = query()
    expected = answers(q, events)

    class Speaks:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return events.__arrow_c_stream__(requested_schema)

    given = [
        events,
        events.to_batches()[0],
        dict(zip(events.column_names, events.columns)),
        Speaks(),
    ]
    for table in given:
        found = q.run(table)
        assert isinstance(found, pa.Table)
        assert not differences(q, expected, found)
    with pytest.raises(TypeError, match="a table is a pandas or Polars DataFrame, an Arrow table,"):
        q.run(np.zeros(2))
    with pytest.raises(TypeError, match=r"a dict of columns.*not list; pyarrow.Table.from_pylist"):
        q.run([{"t": 1}])
    with pytest.raises(TypeError, match=r"not str; read the file first, with pyarrow.parquet"):
        q.run("events.parquet")


def test_views_and_runs_are_what_they_stand_for() -> None:
    events = stream("disorder", 60)
    views = events.set_column(8 - 1, "s", events["s"].cast(pa.string_view()))
    runs = pc.run_end_encode(events["k"].combine_chunks())
    views = views.set_column(2, "k", runs)
    q = query()
    assert not differences(q, answers(q, events), q.run(views))


# Times


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_every_unit(unit: str, zone: str | None) -> None:
    events = stream("before 1970", 60)
    micros = events["t"].cast(pa.int64())
    ticks = {"s": pc.divide(micros, 10**6), "ms": pc.divide(micros, 1000), "us": micros}
    # of nanoseconds, some that are no whole microseconds
    ticks["ns"] = pc.add(pc.multiply(micros, 1000), pc.subtract(events["n"], 30))
    times = ticks[unit].cast(pa.int64()).cast(pa.timestamp(unit, zone))
    table = events.set_column(0, "t", times)
    q = query()
    found = q.run(table)
    assert found["window_start"].type == found["window_end"].type == pa.timestamp("us", zone)
    assert not differences(q, answers(q, table), found)


def test_nanoseconds_are_floored_before_1970_too() -> None:
    times = pa.array([-1, -1000, -1001, 999], pa.timestamp("ns"))
    q = query(window=sash.tumbling(1), by=[], select={"n": sash.count()})
    found = rows_of(q.run({"t": times}))
    assert [(row["window_start"], row["n"]) for row in found] == [(-2, 1), (-1, 2), (0, 1)]


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.uint32()], ids=str)
def test_times_that_are_integers_stay_integers(kind: pa.DataType) -> None:
    table = {"t": pa.array([0, 5, 9, 12], kind), "x": [1.0, 2.0, 3.0, 4.0]}
    q = query(window=sash.sliding(6, 4), by=[], select={"n": sash.count(), "m": sash.max("x")})
    found = q.run(table)
    assert found["window_start"].type == pa.int64()
    assert not differences(q, answers(q, table), found)


def test_times_of_pandas_with_and_without_a_zone() -> None:
    import pandas as pd

    select = {"n": sash.count(), "m": sash.max("x")}
    q = query(by=[], select=select, window=sash.tumbling("1 hour"))
    naive = pd.DataFrame(
        {"t": pd.to_datetime(["2013-01-01 05:15", "2013-01-01 06:05"]), "x": [1.0, 2.0]}
    )
    found = q.run(naive)
    assert found["window_start"].tolist() == [
        pd.Timestamp("2013-01-01 05:00"),
        pd.Timestamp("2013-01-01 06:00"),
    ]
    aware = naive.assign(t=naive["t"].dt.tz_localize("Asia/Kolkata"))  # 5:30 from UTC
    found = q.run(aware)
    # windows are of the hour in UTC, and told in the zone of the table
    assert str(found["window_start"].dt.tz) == "Asia/Kolkata"
    assert found["window_start"].iloc[0] == pd.Timestamp("2013-01-01 04:30", tz="Asia/Kolkata")


@pytest.mark.plain
def test_values_that_are_times_keep_their_zone() -> None:
    at = datetime(2020, 2, 2, tzinfo=UTC)
    table = pa.table({"t": [1], "w": pa.array([at], pa.timestamp("ms", "Europe/Berlin"))})
    found = query(by=[], select={"w": sash.max("w")}).run(table)
    assert found["w"].type == table["w"].type
    assert found["w"][0].as_py() == at


# Refusals


@pytest.mark.plain
def test_a_column_in_the_index_of_pandas_is_named() -> None:
    import pandas as pd

    events = pd.DataFrame({"t": pd.to_datetime(["2024-05-01", "2024-05-02"]), "k": ["a", "b"]})
    q = query(window=sash.trailing("1 day"), select={"n": sash.count()})
    says = "reads column '{}', which is in the index of the frame; make it a column first: "
    for name in ("t", "k"):
        frame, match = events.set_index(name), says.format(name)
        calls = [q.run, q.stream().push, sash.share({"q": q}).run]
        calls += [lambda f: q.at(f, events, time="t"), lambda f: q.at(events, f, time="t")]
        calls += [lambda f: sash.lateness(f, query(select={"n": sash.count()}))]
        for call in calls:
            with pytest.raises(KeyError, match=match):
                call(frame)
    with pytest.raises(KeyError, match=says.format("t")):
        q.run(events.set_index(["t", "k"]))
    unnamed = events.set_index("t").rename_axis(None)
    with pytest.raises(KeyError, match=r"frame.rename_axis\('t'\).reset_index\(\)"):
        q.run(unnamed)
    assert len(q.run(unnamed.rename_axis("t").reset_index())) == 2


def test_missing_columns_and_wrong_types() -> None:
    events = stream("ties")
    with pytest.raises(KeyError, match="column 'z', which is not there; the table has: t, n, k"):
        query(by=["z"]).run(events)
    with pytest.raises(TypeError, match="the time column 's' has type string"):
        query(time="s").run(events)
    with pytest.raises(
        KeyError, match=r"column '\*', which is not there.*; sash\.count\(\), without"
    ):
        query(select={"n": sash.count("*")}).run(events)
    for unfit, how in (
        (pa.array([0.5]), r"if these are seconds, in pandas: to_datetime\(…, unit='s'\)"),
        (pa.array([1], pa.date32()), r"Polars: cast\(polars\.Datetime\)"),
        (pa.array(["a"]), r"Polars: str\.to_datetime"),
    ):
        with pytest.raises(TypeError, match=f"it must hold timestamps.*{how}"):
            query(by=[], select={"n": sash.count()}).run(pa.table({"t": unfit}))
    empty = pa.table({"t": [1], "x": pa.nulls(1)})
    with pytest.raises(TypeError, match=r"'x' has null.; all its values are null, so it has no ty"):
        query(by=[], select={"s": sash.sum("x")}).run(empty)
    with pytest.raises(TypeError, match=r"m = mean\('s'\): mean takes numbers.*'s' has string"):
        query(select={"m": sash.mean("s")}).run(events)
    lost = r"where, \(z > 0\), cannot be used on this table: there is no column 'z'; the table ha"
    with pytest.raises(ValueError, match=lost):
        query(where=pc.field("z") > 0).run(events)
    listed = events.append_column("l", pa.array([[1]] * events.num_rows))
    with pytest.raises(TypeError, match=r"the tie column 'l' has type list.*which has no order"):
        query(tie="l").run(listed)


def test_times_that_cannot_be_used_are_an_error_before_any_work() -> None:
    q = query(by=[], select={"n": sash.count()})
    with pytest.raises(ValueError, match=r"row 1: its time, in column 't', is null \(1 such row"):
        q.run({"t": [1, None, 3]})
    with pytest.raises(
        ValueError, match=r"row 0: .* is 1152921504606846976, out of range \(2 such"
    ):
        q.run({"t": [2**60, 3, -(2**62)]})
    far = pa.table({"t": pa.array([2**45], pa.timestamp("s"))})
    with pytest.raises(ValueError, match=r"row 0: its time, in column 't', is .*, out of range"):
        q.run(far)
    # at the very limit all is well
    most = 2**60 - 1
    widest = sash.Query(time="t", window=sash.sliding(2**60, 2**59, 5), select={"n": sash.count()})
    for asked in (q, widest):
        for t in (most, -most):
            found = asked.run({"t": [t]})
            assert not differences(asked, answers(asked, {"t": [t]}), found)


@pytest.mark.plain
def test_a_sum_that_leaves_int64_names_key_and_window() -> None:
    big = 2**62
    table = {"t": [1, 12, 13, 27], "k": ["a", "b", "b", "b"], "i": [big, big, big, 1]}
    q = query(select={"s": sash.sum("i")}, window=sash.tumbling(10))
    with pytest.raises(
        OverflowError, match=r"^s: the sum leaves int64 in the window from 10 to 20 of k = b$"
    ):
        q.run(table)
    # the mean has no such limit, and neither has a sum that comes back
    assert query(select={"m": sash.mean("i")}, window=q.window).run(table)["m"][1].as_py() == big
    back = {**table, "i": [big, big, big, -big], "t": [1, 12, 13, 14]}
    assert q.run(back)["s"].to_pylist() == [big, big]
    objects = query(select={"s": sash.sum("i"), "l": sash.collect("i")}, window=q.window, by=[])
    timed = {**table, "t": pa.array([1, 12, 13, 27], pa.timestamp("us", "UTC"))}
    with pytest.raises(OverflowError, match=r"leaves int64 in the window from 1970-01-01 00:00:00"):
        objects.run(timed)


@pytest.mark.plain
def test_an_integer_that_does_not_fit_int64_is_an_error() -> None:
    table = {"t": [1], "u": pa.array([2**63], pa.uint64())}
    with pytest.raises(OverflowError, match=r"'u': 9223372036854775808 does.*cast the col"):
        query(by=[], select={"m": sash.max("u")}).run(table)
    counted = query(by=[], select={"n": sash.count("u")}, window=sash.tumbling(10))
    assert (
        counted.run({"t": [1, 2], "u": pa.array([2**63, None], pa.uint64())})["n"][0].as_py() == 1
    )
