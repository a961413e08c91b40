"""Quantiles, moments, bits and the like in queries: against brute force, pandas and DuckDB."""

from __future__ import annotations

import math
import random
from contextlib import suppress
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.state import quantiles
from sash.testing.queries import answers, differences, replay
from sash.testing.stored import STATES, open_stream
from sash.testing.streams import batches, stream

from .test_engines import flights

COMPILED = {
    "cov": sash.covariance("x", "i"),
    "pop": sash.population_covariance("x", "i"),
    "corr": sash.correlation("x", "n"),
    "skew": sash.skewness("x"),
    "kurt": sash.kurtosis("i"),
    "slow": sash.ewm("x", "3 seconds"),
    "any": sash.any("b"),
    "all": sash.all("b"),
    "or": sash.bit_or("i"),
    "and": sash.bit_and("i"),
    "xor": sash.bit_xor("i"),
    "moved": sash.change("x"),
    "when": sash.change("w"),
    "sum": sash.sum("x", exact=True),
    "mean": sash.mean("i", exact=True),
}
OBJECTS = {
    "median": sash.median("x"),
    "high": sash.quantile("i", 0.9),
    "mode": sash.mode("s"),
    "often": sash.mode("x"),
}
WINDOWS = (sash.sliding("7 seconds", "3 seconds"), sash.trailing("5 seconds"), sash.rows(4))


def query(window: Any, select: Any, **more: Any) -> sash.Query:
    return sash.Query(**{"time": "t", "by": ["k"], "window": window, "select": select} | more)


@pytest.mark.plain
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_tables_have_the_rows_of_brute_force(window: Any) -> None:
    select = COMPILED | OBJECTS
    if not isinstance(window, sash.Rows):
        select |= {"a_second": sash.rate("x"), "rows_a_second": sash.rate()}
    q, table = query(window, select), stream("disorder", 80)
    assert not differences(q, answers(q, table), q.run(table))


@pytest.mark.plain
@pytest.mark.parametrize(
    "window",
    [
        sash.trailing("5 seconds", exclude="row"),
        sash.trailing("4 seconds", closed="none", delay="1 second"),
        sash.session("2 seconds"),
        sash.window(keep=sash.rows(3), every="4 seconds"),
        sash.rows(50, every=3),
        sash.cumulate("6 seconds", "2 seconds"),
    ],
    ids=str,
)
def test_quantiles_over_frames_of_every_kind(window: Any) -> None:
    """With conditions, nulls, NaN and infinities, over pieces of a few rows."""
    some = pc.field("s") == "x"
    select = {
        "low": sash.quantile("x", 0.1),
        "some": sash.median("x", where=some),
        "top": sash.quantile("i", 1),
        "flags": sash.median("b"),
    }
    q = query(window, select)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantiles, "_LEAST", 1)
        for kind in ("disorder", "ties"):
            table = stream(kind, 120)
            assert not differences(q, answers(q, table), q.run(table))


@pytest.mark.plain
@pytest.mark.parametrize("state", STATES)
def test_streams_have_the_rows_of_brute_force(state: str) -> None:
    q = query(WINDOWS[0], COMPILED | OBJECTS | {"a_second": sash.rate("i")})
    parts = list(batches(stream("disorder", 70), seed=1, most=20))
    rows, _ = replay(q, parts, "4 seconds")
    s = open_stream(state, q, lateness="4 seconds")
    given = [s.push(part) for part in parts]
    assert not differences(q, rows, pa.concat_tables([*given, s.close()]), ordered=False)


@pytest.mark.once
def test_compiled() -> None:
    q, table = query(WINDOWS[0], COMPILED | {"a_second": sash.rate("i")}), stream("ties", 200)
    assert not differences(q, answers(q, table), q.run(table))


@pytest.mark.parametrize("window", [sash.session(5), sash.rows(3), sash.lifetime()], ids=str)
def test_a_rate_needs_windows_of_one_length(window: Any) -> None:
    with pytest.raises(ValueError, match=r"sash.rate divides by the length of a window"):
        query(window, {"r": sash.rate("x")})


def test_exact_quantiles_are_refused_for_a_lifetime() -> None:
    q = query(sash.lifetime(), {"m": sash.median("x")})
    with pytest.raises(ValueError, match=r"use sash.quantiles"):
        q.run(stream("ties", 3))
    with pytest.raises(ValueError, match=r"use sash.quantiles"):
        q.stream()


def test_a_mean_that_forgets_goes_by_the_times_of_its_query() -> None:
    q = query(WINDOWS[0], {"m": sash.ewm("x", "1 second"), "n": sash.ewm("x", 5, time="w")})
    assert q.select["m"].columns == ("x", "t")
    assert q.select["n"].columns == ("x", "w")
    with pytest.raises(ValueError, match="goes by the times of a query"):
        sash.ewm("x", 5).answer({"x": [1.0]})
    with pytest.raises(ValueError, match="a half-life is a length of time"):
        sash.ewm("x", "-1 second")


# Decimals


def decimals(precision: int, scale: int, count: int = 90) -> pa.Table:
    """Decimals of a type: small ones, and the greatest of both signs."""
    most = 10**precision - 1
    whole = [0, 1, -1, 5, most, -most, most // 3, -(most // 7), None]
    values = [whole[(7 * n + n // 9) % len(whole)] for n in range(count)]
    kind = pa.decimal128(precision, scale)
    made = [
        None if v is None else Decimal((v < 0, tuple(map(int, str(abs(v)))), -scale))
        for v in values
    ]
    return pa.table({"t": [(n * 37) % 50 for n in range(count)], "d": pa.array(made, kind)})


DECIMALS = {
    "sum": sash.sum("d"),
    "mean": sash.mean("d"),
    "top": sash.max("d"),
    "last": sash.last("d"),
    "who": sash.arg_min("d", by="t"),
    "moved": sash.change("d"),
}


@pytest.mark.plain
@pytest.mark.parametrize(("precision", "scale"), [(5, 2), (18, 4), (18, 0), (19, 3), (28, 0)])
def test_decimals_are_added_up_exactly_in_sparks_types(precision: int, scale: int) -> None:
    q = query(sash.sliding(20, 5), DECIMALS, by=[])
    table = decimals(precision, scale)
    right, made = answers(q, table), q.run(table)
    assert not differences(q, right, made)
    assert made.schema.field("sum").type == pa.decimal128(min(precision + 10, 38), scale)
    assert made.schema.field("mean").type == pa.decimal128(precision + 4, scale + 4)
    assert made.schema.field("top").type == pa.decimal128(precision, scale)
    s = q.stream(lateness=100)
    given = [s.push(table.slice(i, 11)) for i in range(0, 90, 11)]
    got = pa.concat_tables([*given, s.close()], promote_options="permissive")
    assert not differences(q, right, got, ordered=False)


@pytest.mark.once
def test_quantiles_compiled() -> None:
    q = query(sash.rows(40), {"median": sash.median("x"), "high": sash.quantile("i", 0.9)})
    table = stream("disorder", 300)
    assert not differences(q, answers(q, table), q.run(table))


@pytest.mark.once
def test_decimals_compiled() -> None:
    few = {name: DECIMALS[name] for name in ("sum", "mean")}
    for precision in (5, 18):
        q, table = query(sash.sliding(20, 5), few, by=[]), decimals(precision, 2)
        assert not differences(q, answers(q, table), q.run(table))


@pytest.mark.plain
@pytest.mark.parametrize("precision", [15, 38])
def test_decimals_are_the_closest_floats_where_answers_are_floats(precision: int) -> None:
    """As on Spark; half of what Arrow casts from decimal(15, 5) is not the closest."""
    source = random.Random(precision)
    digits = [source.randrange(-(10**precision) + 1, 10**precision) for _ in range(60)]
    values = [Decimal(n).scaleb(-5, Context(prec=40)) for n in digits]
    table = pa.table({"t": range(60), "d": pa.array(values, pa.decimal128(precision, 5))})
    table = table.append_column("x", pa.array([float(v) for v in values]))

    def select(column: str) -> dict[str, sash.Aggregate]:
        both = (sash.correlation, sash.covariance, sash.linear_regression)
        alone = (sash.stddev, sash.skewness, sash.kurtosis, sash.median, sash.rate)
        made = {str(i): of(column, "t") for i, of in enumerate(both)}
        return made | {of.__name__: of(column) for of in alone}

    for window in (sash.sliding(4, 2), sash.trailing(1)):
        q, floats = query(window, select("d"), by=[]), query(window, select("x"), by=[])
        found, right = q.run(table), floats.run(table)
        assert found.select(list(q.select)).equals(right.select(list(q.select)))
        s = q.stream(store=sash.stores.memory(), name="s")
        rows = [s.push(table.slice(i, 20)) for i in (0, 20, 40)]
        assert not differences(q, answers(q, table), pa.concat_tables([*rows, s.close()]))


@pytest.mark.plain
@pytest.mark.parametrize("scale", [0, 10, 38])
def test_decimals_of_all_digits_fit(scale: int) -> None:
    """Whatever the precision of the decimal context, which rounds what is not copied."""
    most = Decimal((0, (9,) * 38, -scale))
    values = pa.array([most, most.copy_negate(), most], pa.decimal128(38, scale))
    q = sash.Query(time="t", window=sash.tumbling(10), select={"s": sash.sum("d")})
    table = pa.table({"t": [1, 2, 3], "d": values})
    assert q.run(table)["s"].to_pylist() == [most]


def test_a_decimal_of_too_many_digits_is_an_error() -> None:
    table = pa.table({"t": [1, 2], "d": pa.array([Decimal(10**38 - 1)] * 2, pa.decimal128(38, 0))})
    q = query(sash.tumbling(10), {"s": sash.sum("d")}, by=[])
    with pytest.raises(OverflowError, match="s: it has more digits than its type"):
        q.run(table)
    s = q.stream()
    s.push(table)
    with pytest.warns(RuntimeWarning, match="it has more digits than its type"):
        assert s.close()["s"].to_pylist() == [None]


# Exact sums over windows of every kind

CANCELLING = (1e308, 1.0, -1e308, 0.1, 3.3, 1e16, -1e16, 5e-324, None)


@pytest.mark.plain
@pytest.mark.parametrize(
    "window",
    [
        sash.sliding("7 seconds", "3 seconds"),
        sash.cumulate("6 seconds", "2 seconds"),
        sash.trailing("5 seconds"),
        sash.rows(7),
        sash.session("2 seconds"),
        sash.window(keep=sash.rows(5), every="4 seconds"),
    ],
    ids=str,
)
def test_exact_sums_are_those_of_the_window_s_values(window: Any) -> None:
    """From a table in any order, and from a stream by any cutting, correctly rounded: what
    `math.fsum` gives, where it does not overflow on its way."""
    table = stream("disorder", 60)
    source = random.Random(5)
    values = pa.array([source.choice(CANCELLING) for _ in range(60)], pa.float64())
    table = table.append_column("z", values)
    select = {
        "all": sash.collect("z"),
        "sum": sash.sum("z", exact=True),
        "mean": sash.mean("z", exact=True),
    }
    q = query(window, select)
    s = q.stream(lateness="100 days")
    pushed = [s.push(part) for part in batches(table, seed=2, most=20)]
    shuffled = table.take(pa.array(source.sample(range(60), 60)))
    emitted = pa.concat_tables([*pushed, s.close()], promote_options="permissive")
    summed = 0
    for made in (q.run(table), emitted, query(window, select, tie="n").run(shuffled)):
        for row in made.to_pylist():
            held = [x for x in row["all"] if x is not None]
            if not held:
                assert row["sum"] is row["mean"] is None
                continue
            exact = sum(map(Fraction, held), Fraction(0))
            assert row["mean"] == float(exact / len(held))
            with suppress(OverflowError):
                assert row["sum"] == float(exact) == math.fsum(held)
                summed += 1
    assert summed > 50


# Other engines, over real flights


@pytest.mark.plain
def test_against_duckdb() -> None:
    """Delays have nulls; a window that has no delay, or one value alone, has no spread."""
    duckdb = pytest.importorskip("duckdb")
    given = flights(1500)
    given = given.append_column(
        "x", pa.array([None if d is None else d / 4 for d in given["delay"].to_pylist()])
    )
    select = {
        "median": sash.median("delay"),
        "high": sash.quantile("x", 0.9),
        "cov": sash.covariance("x", "row"),
        "pop": sash.population_covariance("x", "row"),
        "corr": sash.correlation("x", "row"),
        "kurt": sash.kurtosis("x"),
        "bits": sash.bit_xor("delay"),
        "either": sash.bit_or("delay"),
        "both": sash.bit_and("delay"),
        "late": sash.count(where=pc.field("delay") > 15),
        "sum_late": sash.sum("x", where=pc.field("delay") > 15, exact=True),
        "often": sash.mode("origin"),
        "moved": sash.change("row"),
        "a_second": sash.rate("delay"),
        "any_late": sash.any("late"),
        "all_late": sash.all("late"),
    }
    given = given.append_column("late", pc.greater(given["delay"], 15))
    q = sash.Query(
        time="t", by=["origin"], window=sash.tumbling("1 hour"), select=select, tie="row"
    )
    ours = q.run(given)
    theirs = duckdb.sql(
        """SELECT median(delay) AS median, quantile_cont(x, 0.9) AS high,
                  covar_samp(x, row) AS cov, covar_pop(x, row) AS pop,
                  CASE WHEN stddev_pop(x) > 0 THEN corr(x, row) END AS corr,
                  CASE WHEN var_pop(x) > 0 THEN kurtosis_pop(x) END AS kurt,
                  bit_xor(delay) AS bits, bit_or(delay) AS either, bit_and(delay) AS "both",
                  count(*) FILTER (delay > 15) AS late, fsum(x) FILTER (delay > 15) AS sum_late,
                  mode(origin) AS often, last(row ORDER BY t, row) - first(row ORDER BY t, row)
                  AS moved, sum(delay) / 3600 AS a_second,
                  bool_or(late) AS any_late, bool_and(late) AS all_late
           FROM given GROUP BY origin, time_bucket(INTERVAL 1 HOUR, t)
           ORDER BY origin, time_bucket(INTERVAL 1 HOUR, t)"""
    ).arrow()
    theirs = theirs.read_all() if hasattr(theirs, "read_all") else theirs
    assert ours.num_rows == theirs.num_rows > 90
    for name in select:
        pairs = zip(ours[name].to_pylist(), theirs[name].to_pylist(), strict=True)
        for mine, other in pairs:
            assert (mine is None) == (other is None), name
            if isinstance(mine, str | bool | None):
                assert mine == other, name
            else:
                assert math.isclose(mine, other, rel_tol=1e-9, abs_tol=1e-9), name


@pytest.mark.plain
def test_a_mean_that_forgets_against_pandas() -> None:
    pd = pytest.importorskip("pandas")
    given = flights(600)
    q = sash.Query(
        time="t", window=sash.rows(10_000), select={"slow": sash.ewm("delay", "2 hours")}
    )
    frame = given.to_pandas().sort_values("t", kind="stable")
    right = frame["delay"].ewm(halflife=pd.Timedelta("2h"), times=frame["t"]).mean()
    ours = q.run(given).to_pandas().set_index("row")["slow"].loc[frame["row"]]
    # pandas repeats the mean where a delay is null, as the window here has it
    assert ours.to_numpy() == pytest.approx(right.to_numpy(), rel=1e-9, nan_ok=True)


@pytest.mark.plain
def test_against_pandas() -> None:
    """Windows of a time up to each flight; those without a delay have none of a value."""
    pytest.importorskip("pandas")
    given = flights(700)
    delays = given["delay"].cast(pa.float64())
    given = given.append_column("x", delays).sort_by([("t", "ascending"), ("row", "ascending")])
    select = {
        "median": sash.median("x"),
        "low": sash.quantile("x", 0.25),
        "cov": sash.covariance("x", "row"),
        "sum": sash.sum("x", exact=True),
        "mean": sash.mean("x", exact=True),
    }
    window = sash.trailing("20 minutes", closed="right")
    made = sash.Query(time="t", window=window, select=select).run(given).to_pandas()
    frame = given.to_pandas().set_index("t")
    peers = frame.index.duplicated(keep="last")  # pandas leaves out what comes later in the table
    rolled = frame["x"].rolling("20min", min_periods=1)
    right = {
        "median": rolled.median(),
        "low": rolled.quantile(0.25),
        "cov": rolled.cov(frame["row"].astype(float).where(frame["x"].notna())),
        "sum": rolled.sum(),
        "mean": rolled.mean(),
    }
    for name, values in right.items():
        mine, other = made[name].to_numpy(float)[~peers], values.to_numpy()[~peers]
        assert mine == pytest.approx(other, rel=1e-9, abs=1e-9, nan_ok=True), name
