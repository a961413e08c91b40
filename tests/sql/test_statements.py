"""Statements of SQL: which query each form becomes, and the rows of statements built from queries
that are drawn at random."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.engine.test_engines import flights

import sash
from sash.testing.queries import answers, rows_of
from sash.testing.streams import stream
from sash.windows import Window, duration_text

OVER = "OVER (PARTITION BY k ORDER BY ts {})"
HOUR = "INTERVAL '1' HOUR"

#: A text and the query that it becomes.
FORMS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # Spark
    (
        "SELECT k, window.start, count(*) AS n FROM t GROUP BY k, window(ts, '3 hours', '1 "
        "minute')",
        {},
        {"by": ("k",), "window": sash.sliding("3 hours", "1 minute")},
    ),
    (
        "select WINDOW, max(x) from t group by window(ts, '1 hour')",
        {},
        {"window": sash.tumbling("1 hour")},
    ),
    (
        "SELECT max(x) FROM t GROUP BY window(ts, INTERVAL 1 HOUR, '5 minutes', '90 seconds'), k",
        {},
        {"by": ("k",), "window": sash.sliding("1 hour", "5 minutes", offset="90 seconds")},
    ),
    (
        "SELECT max(x) FROM t GROUP BY session_window(ts, '5 minutes')",
        {},
        {"window": sash.session("5 minutes")},
    ),
    (
        "SELECT max(x) FROM t GROUP BY session_window(ts, gap)",
        {},
        {"window": sash.session("gap")},
    ),
    (
        "SELECT max(x) FROM t GROUP BY window(ts, '1 month', '1 day')",
        {"timezone": "Europe/Berlin"},
        {"window": sash.sliding("1 month", "1 day", timezone="Europe/Berlin")},
    ),
    (
        "SELECT max(x) FROM t GROUP BY window(ts, '1 hour')",
        {"timezone": "Europe/Berlin"},
        {"window": sash.tumbling("1 hour")},
    ),
    # Flink
    (
        "SELECT max(x) FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' "
        "MINUTES)) GROUP BY window_start, window_end",
        {},
        {"window": sash.sliding("10 minutes", "5 minutes")},
    ),
    (
        "SELECT max(x) FROM TABLE(HOP(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL "
        "'10' MINUTE, SLIDE => INTERVAL '5' MINUTE, OFFSET => INTERVAL '1' MINUTE)) AS w GROUP BY "
        "w.window_end, w.window_start, w.k",
        {},
        {"by": ("k",), "window": sash.sliding("10 minutes", "5 minutes", offset="1 minute")},
    ),
    (
        f"SELECT max(x) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), {HOUR})) GROUP BY window_start, "
        "window_end",
        {},
        {"window": sash.tumbling("1 hour")},
    ),
    (
        "SELECT max(x) FROM TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '2' MINUTES, "
        f"{HOUR})) GROUP BY window_start, window_end",
        {},
        {"window": sash.cumulate("1 hour", "2 minutes")},
    ),
    (
        f"SELECT max(x) FROM TABLE(SESSION(TABLE t PARTITION BY k, j, DESCRIPTOR(ts), {HOUR})) "
        "GROUP BY k, j, window_start, window_end",
        {},
        {"by": ("k", "j"), "window": sash.session("1 hour")},
    ),
    # the standard
    (
        f"SELECT max(x) {OVER.format(f'RANGE BETWEEN {HOUR} PRECEDING AND CURRENT ROW')} FROM t",
        {},
        {"by": ("k",), "window": sash.trailing("1 hour")},
    ),
    (
        "SELECT max(x) OVER w FROM t WINDOW w AS (ORDER BY ts RANGE BETWEEN INTERVAL '3' HOUR "
        "PRECEDING AND INTERVAL '30' MINUTE PRECEDING)",
        {},
        {"window": sash.trailing("150 minutes", delay="30 minutes")},
    ),
    (
        "SELECT max(x) OVER (w RANGE INTERVAL 1 HOUR 30 MINUTES PRECEDING EXCLUDE CURRENT ROW) "
        "FROM t WINDOW w AS (PARTITION BY k ORDER BY ts)",
        {},
        {"by": ("k",), "window": sash.trailing("90 minutes", exclude="row")},
    ),
    (
        f"SELECT max(x) {OVER.format(f'RANGE {HOUR} PRECEDING EXCLUDE GROUP')} FROM t",
        {},
        {"by": ("k",), "window": sash.trailing("1 hour", exclude="group")},
    ),
    (
        f"SELECT max(x) {OVER.format(f'RANGE {HOUR} PRECEDING EXCLUDE NO OTHERS')} FROM t",
        {},
        {"by": ("k",), "window": sash.trailing("1 hour")},
    ),
    (
        f"SELECT max(x) {OVER.format('RANGE UNBOUNDED PRECEDING EXCLUDE TIES')} FROM t",
        {},
        {"by": ("k",), "window": sash.lifetime(exclude="ties")},
    ),
    (f"SELECT max(x) {OVER.format('')} FROM t", {}, {"by": ("k",), "window": sash.lifetime()}),
    (
        "SELECT max(x) OVER (ORDER BY ts, n ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) FROM t",
        {},
        {"window": sash.rows(10), "tie": "n"},
    ),
    # CQL
    (
        "SELECT max(x) FROM calls [RANGE 24 HOURS SLIDE 1 MINUTE]",
        {"time": "ts"},
        {"window": sash.sliding("24 hours", "1 minute")},
    ),
    (
        "SELECT IStream(max(x) AS m) FROM calls [Range 24 Hours Slide 1 Minute] GROUP BY k",
        {"time": "ts"},
        {"by": ("k",), "window": sash.sliding("24 hours", "1 minute"), "emit": "changes"},
    ),
    (
        "SELECT max(x) FROM t GROUP BY window(TS, '1 hour')",
        {"time": "ts"},
        {"time": "TS", "window": sash.tumbling("1 hour")},
    ),
    (
        "ISTREAM(SELECT max(x) AS m FROM calls [RANGE 1 DAY SLIDE 1 HOUR])",
        {"time": "ts"},
        {"window": sash.sliding("1 day", "1 hour"), "emit": "changes"},
    ),
    (
        "SELECT max(x) FROM calls [ROWS 100 SLIDE 10]",
        {"time": "ts"},
        {"window": sash.rows(100, every=10)},
    ),
    (
        "SELECT k, max(x) FROM calls [PARTITION BY k ROWS 100] GROUP BY k",
        {"time": "ts"},
        {"by": ("k",), "window": sash.rows(100)},
    ),
]


@pytest.mark.parametrize(("text", "given", "wanted"), FORMS)
def test_each_form_becomes_the_query_that_python_would_make(
    text: str, given: dict[str, Any], wanted: dict[str, Any]
) -> None:
    found = sash.sql(text, **given).query
    wanted = {"time": "ts", "by": (), "tie": None, "emit": "all"} | wanted
    assert {name: getattr(found, name) for name in wanted} == wanted


CHANGES = "SELECT ISTREAM({}) FROM t [RANGE 3 MICROSECONDS SLIDE 1 MICROSECOND] GROUP BY k {}"


@pytest.mark.parametrize(
    ("listed", "rest"),
    [
        ("k, max(x) AS m", "HAVING count(*) > 0"),
        ("k, max(x) - max(x) AS m", ""),
        ("k, count(*) > 0 AS m", ""),
        ("k, max(x) AS m", "ORDER BY min(x)"),
    ],
)
def test_istream_lists_each_aggregate_that_it_computes(listed: str, rest: str) -> None:
    with pytest.raises(sash.SqlError, match="not in the list by itself"):
        sash.sql(CHANGES.format(listed, rest), time="ts")


def test_istream_emits_what_has_changed() -> None:
    table = {"ts": [0, 1, 2, 3, 4], "k": ["a"] * 5, "x": [5, 1, 1, 1, 1]}
    for listed, rest in (("k, max(x) AS m", ""), ("upper(k) AS u, max(x) AS m", "HAVING m > 0")):
        found = sash.sql(CHANGES.format(listed, rest), time="ts").run(table)
        assert found["m"].to_pylist() == [5, 1]


#: Aggregates in SQL and in Python.
AGGREGATES: list[tuple[str, Any]] = [
    ("count(*)", sash.count()),
    ("count(1)", sash.count()),
    ("count(x)", sash.count("x")),
    ("count(DISTINCT x)", sash.count_distinct("x")),
    ("max_by(k, x)", sash.arg_max("k", by="x")),
    ("arg_max(k, x)", sash.arg_max("k", by="x")),
    ("ArgMin(k, x)", sash.arg_min("k", by="x")),
    ("MaxCount(x)", sash.max_count("x")),
    ("avg(x)", sash.mean("x")),
    ("stddev(x)", sash.stddev("x")),
    ("stddev_pop(x)", sash.population_stddev("x")),
    ("var_samp(x)", sash.variance("x")),
    ("first(x)", sash.first("x")),
    ("first_value(x) IGNORE NULLS", sash.first("x", ignore_nulls=True)),
    ("last(x IGNORE NULLS)", sash.last("x", ignore_nulls=True)),
    ("first(x, true)", sash.first("x", ignore_nulls=True)),
    ("last_value(x) RESPECT NULLS", sash.last("x")),
    ("first_n(x, 3)", sash.first_n("x", 3)),
    ("array_agg(x)", sash.collect("x")),
    ("collect_set(x)", sash.collect_distinct("x")),
    ("collect_list(DISTINCT x)", sash.collect_distinct("x")),
    ("min(DISTINCT x)", sash.min("x")),
    ("percentile_approx(x, 0.9)", sash.quantiles("x", 0.9)),
    ("approx_count_distinct(x)", sash.hll("x")),
    ("median(x)", sash.median("x")),
    ("percentile(x, 0.9)", sash.quantile("x", 0.9)),
    ("percentile_cont(0.9) WITHIN GROUP (ORDER BY x)", sash.quantile("x", 0.9)),
    ("mode(x)", sash.mode("x")),
    ("corr(x, k)", sash.correlation("x", "k")),
    ("covar_samp(x, k)", sash.covariance("x", "k")),
    ("bool_or(x)", sash.any("x")),
    ("every(x)", sash.all("x")),
    ("bit_xor(x)", sash.bit_xor("x")),
    ("skewness(x)", sash.skewness("x")),
]


@pytest.mark.parametrize(("text", "wanted"), AGGREGATES)
def test_aggregates_have_their_names_in_sql(text: str, wanted: sash.Aggregate) -> None:
    found = sash.sql(f"SELECT {text} AS a FROM t GROUP BY window(ts, '1 hour')").query.select["a"]
    assert (repr(found), found.operator.skips) == (repr(wanted), wanted.operator.skips)


def test_filter_is_a_condition_of_the_aggregate() -> None:
    table = {"ts": list(range(12)), "k": ["a", "b", "a"] * 4, "x": list(range(12))}
    text = (
        "SELECT count(*) AS n, count(*) FILTER (WHERE x > 3) AS some, sum(x * 2) FILTER (WHERE "
        "k = 'a' AND 12 / x > 2) AS s, first(x) FILTER (WHERE x > 5) AS f FROM t WHERE x > 0 "
        "GROUP BY window(ts, '1 hour')"
    )
    s = sash.sql(text)
    assert s.run(table).to_pylist() == [{"n": 11, "some": 8, "s": 20, "f": 6}]
    stream = s.stream()
    for i in range(12):
        stream.push({name: column[i] for name, column in table.items()})
    assert stream.close().to_pylist() == [{"n": 11, "some": 8, "s": 20, "f": 6}]


def test_what_filter_leaves_out_cannot_fail() -> None:
    text = (
        "SELECT sum(10 / x) FILTER (WHERE x <> 0) AS s, count(*) FILTER (WHERE ok) AS n FROM t "
        "GROUP BY window(ts, '1 hour')"
    )
    table = {"ts": [1, 2, 3], "x": [0, 5, 2], "ok": [True, None, False]}
    assert sash.sql(text).run(table).to_pylist() == [{"s": 7.0, "n": 1}]
    with pytest.raises(sash.SqlError, match="division by zero"):
        sash.sql(text.replace("WHERE x <> 0", "WHERE x >= 0")).run(table)
    with pytest.raises(sash.SqlError, match="this is bigint, and a condition is boolean"):
        sash.sql(text.replace("WHERE ok", "WHERE x")).run(table)


def test_an_operator_of_ones_own_is_called_by_its_name() -> None:
    spread = sash.operator(
        identity=(float("inf"), float("-inf")),
        lift=lambda x: (x, x),
        combine=lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
        lower=lambda a: a[1] - a[0],
        name="spread",
    )
    text = "SELECT Spread(x) AS s FROM t GROUP BY window(ts, '10 microseconds')"
    found = sash.sql(text, operators={"spread": spread}).run(
        {"ts": [1, 2, 13], "x": [1.0, 5.0, 2.0]}
    )
    assert found["s"].to_pylist() == [4.0, 0.0]
    with pytest.raises(sash.SqlError, match="there is no function spread"):
        sash.sql(text)


# Statements that are built from queries drawn at random


def interval(micros: int) -> str:
    return f"INTERVAL '{micros}' MICROSECOND"


def drawn(rng: random.Random) -> tuple[Window, str, str]:
    """A window, the FROM and the rest of a statement that asks for it; {keys} and {n} are to be
    filled in."""
    every = rng.choice([1, 3, 7, 40]) * 250_000
    size = every * rng.randint(1, 5) + rng.choice([0, 130_000])
    offset = rng.choice([0, 0, 100_000])
    kind = rng.choice(["spark", "flink", "cql", "tumble", "cumulate", "session", "flink_session"])
    bounds = "GROUP BY {keys}window_start, window_end"
    sliding = sash.sliding(size, every, offset)
    if kind == "spark":
        lengths = f"'{duration_text(size)}', '{duration_text(every)}'"
        lengths += f", '{duration_text(offset)}'" if offset else ""
        return sliding, "t", f"GROUP BY {{keys}}window(t, {lengths})"
    if kind == "flink":
        more = f", {interval(offset)}" if offset else ""
        function = f"HOP(TABLE t, DESCRIPTOR(t), {interval(every)}, {interval(size)}{more})"
        return sliding, f"TABLE({function})", bounds
    if kind == "cql":
        brackets = f"[RANGE {size} MICROSECONDS SLIDE {every} MICROSECONDS]"
        return sash.sliding(size, every), f"t {brackets}", "{group}"
    if kind == "tumble":
        function = f"TUMBLE(TABLE t, DESCRIPTOR(t), SIZE => {interval(size)})"
        return sash.tumbling(size), f"TABLE({function})", bounds
    if kind == "cumulate":
        function = f"CUMULATE(TABLE t, DESCRIPTOR(t), {interval(every)}, {interval(every * 4)})"
        return sash.cumulate(every * 4, every), f"TABLE({function})", bounds
    if kind == "session":
        gap = duration_text(every)
        return sash.session(every), "t", f"GROUP BY session_window(t, '{gap}'){{behind}}"
    function = f"SESSION(TABLE t{{partition}}, DESCRIPTOR(t), {interval(every)})"
    return sash.session(every), f"TABLE({function})", bounds


SELECTED = {
    "many": ("count(*)", sash.count()),
    "total": ("sum(i)", sash.sum("i")),
    "most": ("max(x)", sash.max("x")),
    "mean": ("avg(x)", sash.mean("x")),
    "who": ("max_by(s, x)", sash.arg_max("s", by="x")),
    "last": ("last(n)", sash.last("n")),
}


def filled(text: str, by: list[str]) -> str:
    listed = ", ".join(by)
    return text.format(
        keys="".join(f"{k}, " for k in by),
        behind="".join(f", {k}" for k in by),
        group=f"GROUP BY {listed}" if by else "",
        partition=f" PARTITION BY {listed}" if by else "",
    )


@pytest.mark.parametrize("seed", range(24))
def test_a_statement_built_from_a_query_has_its_rows(seed: int) -> None:
    rng = random.Random(seed)
    window, source, rest = drawn(rng)
    by = rng.choice([[], ["k"], ["k", "f"]])
    names = rng.sample(list(SELECTED), 3)
    select = {name: SELECTED[name][1] for name in names}
    where = rng.choice([None, None, "i > 0"])
    emit = "changes" if "[" in source and rng.random() < 0.5 else "all"
    q = sash.Query(
        time="t",
        by=by,
        window=window,
        select=select,
        where=pc.field("i") > 0 if where else None,
        emit=emit,  # type: ignore[arg-type]
    )
    items = [*by, *(f"{SELECTED[name][0]} AS {name}" for name in names)]
    if "window(" not in rest:
        items += ["window_start", "window_end"]
    else:
        word = "session_window" if "session" in rest else "window"
        items += [f"{word}.start AS window_start", f"{word}.end AS window_end"]
    rng.shuffle(items)
    listed = ", ".join(items)
    listed = f"ISTREAM({listed})" if emit == "changes" else listed
    condition = f" WHERE {where}" if where else ""
    text = filled(f"SELECT {listed} FROM {source}{condition} {rest}", by)
    table = stream("disorder", 80, seed=seed)
    ours = sash.sql(text, time="t" if "[" in source else None).run(table)
    theirs = q.run(table)
    assert sorted(ours.column_names) == sorted(theirs.column_names)
    assert ours.num_rows > 0
    assert str(rows_of(ours.select(theirs.column_names))) == str(rows_of(theirs)), text


@pytest.mark.parametrize("seed", range(16))
def test_a_statement_with_over_has_the_rows_of_its_query(seed: int) -> None:
    rng = random.Random(seed)
    size, delay = rng.choice([500_000, 2_000_000]), rng.choice([0, 0, 300_000])
    exclude = None if delay else rng.choice([None, "row", "group", "ties"])
    words = {None: "", "row": " EXCLUDE CURRENT ROW", "group": " EXCLUDE GROUP"}
    words["ties"] = " EXCLUDE TIES"
    order, tie, window = "t", None, None
    kind = rng.choice(["range", "lifetime", "rows"])
    end = f"{interval(delay)} PRECEDING" if delay else "CURRENT ROW"
    if kind == "range":
        frame = f"RANGE BETWEEN {interval(size + delay)} PRECEDING AND {end}{words[exclude]}"
        window = sash.trailing(size, exclude=exclude, delay=delay)  # type: ignore[arg-type]
    elif kind == "lifetime":
        frame = f"RANGE BETWEEN UNBOUNDED PRECEDING AND {end}{words[exclude]}"
        window = sash.lifetime(exclude=exclude, delay=delay)  # type: ignore[arg-type]
    else:
        count = rng.randint(1, 5)
        frame, tie = f"ROWS BETWEEN {count - 1} PRECEDING AND CURRENT ROW", "n"
        order, window = "t, n", sash.rows(count)
    by = rng.choice([[], ["k"]])
    names = rng.sample(list(SELECTED), 3)
    q = sash.Query(
        time="t", by=by, window=window, select={n: SELECTED[n][1] for n in names}, tie=tie
    )
    partition = "PARTITION BY k " if by else ""
    items = ", ".join(f"{SELECTED[n][0]} OVER w AS {n}" for n in names)
    text = f"SELECT *, {items} FROM t WINDOW w AS ({partition}ORDER BY {order} {frame})"
    table = stream("disorder", 80, seed=seed)
    theirs = q.run(table)
    ours = sash.sql(text).run(table)
    assert ours.column_names == [*table.column_names, *names]
    assert str(rows_of(ours)) == str(rows_of(theirs.select(ours.column_names))), text


def test_what_is_selected_is_what_comes_out_in_order_and_of_the_same_kind() -> None:
    polars = pytest.importorskip("polars")
    table = pa.table({"ts": [1, 2, 13], "k": ["b", "a", "b"], "x": [1, 5, 2]})
    text = "SELECT sum(x) AS s, k, window.end FROM t GROUP BY k, window(ts, '10 microseconds')"
    wanted = [{"s": 5, "k": "a", "end": 10}, {"s": 1, "k": "b", "end": 10}]
    wanted.append({"s": 2, "k": "b", "end": 20})
    found = sash.sql(text).run(table)
    assert found.to_pylist() == wanted
    assert sash.sql(text).run(table.to_pandas()).to_dict("records") == wanted
    assert sash.sql(text).run(polars.from_arrow(table)).to_dicts() == wanted


def test_names_are_found_whatever_their_case_and_with_the_tables_name() -> None:
    table = {"TS": [1, 2], "Key": ["a", "b"], "x": [1, 2]}
    text = "SELECT u.KEY, max(U.x) AS m FROM t AS u GROUP BY u.key, window(t.ts, '1 hour')"
    assert sash.sql(text).run(table).to_pylist() == [{"KEY": "a", "m": 1}, {"KEY": "b", "m": 2}]


def test_a_column_may_be_spelt_in_several_ways() -> None:
    text = "SELECT sum(x + 1) AS n FROM t WHERE X > 1 GROUP BY window(TS, '10 microseconds')"
    table = {"ts": [1, 2, 3, 12], "x": [1, 2, 3, 4]}
    wanted = [{"n": 7}, {"n": 5}]
    assert sash.sql(text).run(table).to_pylist() == wanted
    stream = sash.sql(text).stream()
    found = [stream.push(pa.table(table)), stream.close()]
    assert [row for part in found for row in part.select(["n"]).to_pylist()] == wanted


def test_order_by_and_limit_are_as_on_spark() -> None:
    table = {
        "ts": [1] * 5,
        "k": ["a", "b", "c", "d", "e"],
        "x": [2.0, None, float("nan"), 7.0, 2.0],
    }
    table["x"] = pa.array(table["x"])
    text = "SELECT k, max(x) AS m FROM t GROUP BY k, window(ts, '1 hour') ORDER BY {}"

    def keys(order: str) -> str:
        return "".join(sash.sql(text.format(order)).run(pa.table(table))["k"].to_pylist())

    assert keys("m, k DESC") == "beadc"
    assert keys("m DESC, 1") == "cdaeb"
    assert keys("m NULLS LAST, k") == "aedcb"
    assert keys("-m NULLS FIRST, k LIMIT 3") == "bda"
    assert keys("upper(k) DESC LIMIT 2") == "ed"


def test_group_by_takes_aliases_and_numbers_and_expressions() -> None:
    table = {"ts": [1, 2, 3], "k": ["a", "A", "b"], "x": [1, 2, 3]}
    wanted = [{"u": "A", "s": 3}, {"u": "B", "s": 3}]
    for key in ("u", "1", "upper(k)"):
        text = f"SELECT upper(k) AS u, sum(x) AS s FROM t GROUP BY {key}, window(ts, '1 hour')"
        assert sash.sql(text).run(table).to_pylist() == wanted
    text = "SELECT upper(k) AS x, sum(x) AS s FROM t GROUP BY x, window(ts, '1 hour')"
    with pytest.raises(sash.SqlError, match="a column of the table and an alias"):
        sash.sql(text.replace("sum(x) AS s", "count(*) AS s")).run(table)


def test_having_takes_aliases_and_a_session_its_gap_from_a_column() -> None:
    text = (
        "SELECT k, count(*) AS n FROM t GROUP BY k, window(ts, '1 hour') HAVING n > 1 AND k <> ''"
    )
    assert sash.sql(text).run({"ts": [1, 2, 3], "k": ["a", "b", "b"]}).to_pylist() == [
        {"k": "b", "n": 2}
    ]
    text = "SELECT count(*) AS n FROM t GROUP BY session_window(ts, gap)"
    found = sash.sql(text).run({"ts": [1, 5, 20], "gap": [5, 2, 2]})
    assert found["n"].to_pylist() == [2, 1]


def test_equal_aggregates_and_conditions_are_computed_once() -> None:
    text = (
        "SELECT max(x + 1) AS a, max(X+1) AS b, max(x + 1) / 2 AS c FROM t "
        "GROUP BY window(ts, '1 hour') HAVING max(x + 1) > 0"
    )
    s = sash.sql(text)
    assert list(s.query.select) == ["a"]
    assert list(s.before) == ["x + 1"]
    assert s.run({"ts": [1], "x": [1]}).to_pylist() == [{"a": 2, "b": 2, "c": 1.0}]


def test_a_column_that_is_called_like_an_expression_is_not_lost() -> None:
    table = {"ts": [1, 2], "x": [1, 5], "x + 1": [7, 8]}
    text = "SELECT *, max({}) OVER (ORDER BY ts) AS m FROM t"
    with pytest.raises(sash.SqlError, match=r"the table has a column called x \+ 1"):
        sash.sql(text.format("x + 1")).run(table)
    found = sash.sql(text.format("x+1")).run(table)
    assert found.column_names == ["ts", "x", "x + 1", "m"]
    assert found["m"].to_pylist() == [2, 6]


def test_rows_that_where_leaves_out_cannot_fail() -> None:
    text = "SELECT sum(10 / x) AS s FROM t WHERE x <> 0 GROUP BY window(ts, '1 hour')"
    assert sash.sql(text).run({"ts": [1, 2], "x": [0, 5]}).to_pylist() == [{"s": 2.0}]


FLIGHTS: list[tuple[str, Window]] = [
    (
        "FROM TABLE(HOP(TABLE f, DESCRIPTOR(t), INTERVAL '50' MINUTE, INTERVAL '3' HOUR)) GROUP BY "
        "origin, window_start, window_end",
        sash.sliding("3 hours", "50 minutes"),
    ),
    (
        "FROM TABLE(CUMULATE(TABLE f, DESCRIPTOR(t), INTERVAL '2' HOUR, INTERVAL '1' DAY)) GROUP "
        "BY origin, window_start, window_end",
        sash.cumulate("1 day", "2 hours"),
    ),
    (
        "FROM TABLE(SESSION(TABLE f PARTITION BY origin, DESCRIPTOR(t), INTERVAL '15' MINUTE)) "
        "GROUP BY origin, window_start, window_end",
        sash.session("15 minutes"),
    ),
    (
        "FROM f [RANGE 3 HOURS SLIDE 50 MINUTES] GROUP BY origin",
        sash.sliding("3 hours", "50 minutes"),
    ),
]


@pytest.mark.parametrize(("rest", "window"), FLIGHTS)
def test_flinks_and_cqls_words_equal_the_oracle_on_flights(rest: str, window: Any) -> None:
    table = flights(800)
    select = {"n": sash.count(), "known": sash.count("delay"), "worst": sash.max("delay")}
    q = sash.Query(time="t", by=["origin"], window=window, select=select)
    text = (
        "SELECT origin, window_start, window_end, count(*) AS n, count(delay) AS known, max(delay) "
        f"AS worst {rest}"
    )
    ours = sash.sql(text, time="t" if "[" in rest else None).run(table)
    assert rows_of(ours) == answers(q, table)
    assert ours.num_rows > 15


def test_several_sizes_are_over() -> None:
    text = (
        "SELECT count(*) OVER (w RANGE INTERVAL '1' HOUR PRECEDING) AS hour, count(*) OVER w AS "
        "ever, sum(x) OVER (w RANGE INTERVAL '24' HOUR PRECEDING) - max(x) OVER (w RANGE INTERVAL "
        "'1' HOUR PRECEDING) AS less FROM t WINDOW w AS (PARTITION BY k ORDER BY ts)"
    )
    q = sash.sql(text).query
    hour, ever, total, most = q.select.values()
    assert q.window == sash.trailing("1 hour")
    assert (hour, ever) == (sash.count(), sash.count().over(sash.lifetime()))
    assert (total, most) == (sash.sum("x").over("24 hours"), sash.max("x"))


def test_statements_share_a_table() -> None:
    table = stream("disorder", 80, plain=True)
    grouped = "SELECT k, sum(i / 2) AS s, window.end AS e FROM t {} GROUP BY k, window(t, '{}')"
    given: dict[str, Any] = {
        "fast": sash.sql(grouped.format("", "2 seconds")),
        "slow": sash.sql(grouped.format("", "10 seconds")),
        "some": sash.sql(grouped.format("WHERE i > 0", "10 seconds")),
        "each": sash.sql("SELECT *, count(*) OVER (PARTITION BY k ORDER BY t) AS up FROM t"),
        "plain": sash.Query(time="t", window=sash.trailing(10**6), select={"m": sash.count()}),
    }
    shared = sash.share(given)
    found = shared.run(table)
    for name, one in given.items():
        assert str(rows_of(found[name])) == str(rows_of(one.run(table))), name
    assert shared.plan.bundle_of("fast").names == ("fast", "slow")
    assert shared.explain(table).bundles[0].names == ("fast", "slow")
    assert shared.explain(data=table).bundles[0].measured is not None


def test_statements_that_share_a_table_compute_one_column_under_a_name() -> None:
    text = "SELECT sum(2*x){} AS s FROM t WHERE x > 1 GROUP BY window(ts, '10 microseconds')"
    given = {"a": sash.sql(text.format("")), "b": sash.sql(text.format(" FILTER (WHERE x > 1)"))}
    table = {"ts": [1, 2, 3], "x": [1, 2, 3]}
    shared = sash.share(given)
    for call in (lambda: shared.run(table), lambda: shared.explain(table)):
        with pytest.raises(ValueError, match="'a' and 'b' compute different columns"):
            call()
    s = shared.stream()
    s.push(pa.table(table))
    assert {n: t["s"].to_pylist() for n, t in s.close().items()} == {"a": [10], "b": [10]}


def test_a_statement_explains_its_query() -> None:
    s = sash.sql("SELECT sum(x * 2) AS s FROM t GROUP BY window(ts, '6 min', '2 min')")
    table = {"ts": [1, 2], "x": [1, 2]}
    assert "sliding('6 minutes', '2 minutes')" in str(s.explain(table))
    assert "sliding('6 minutes', '2 minutes')" in str(s.explain())
    assert str(s.explain(data=table))


# The Reactive Aggregator and NEXMark


def test_the_reactive_aggregators_query() -> None:
    """Its section 2.1: the longest call of the last 24 hours, how many were as long, and whose the
    first was, whenever that changes."""
    text = (
        "SELECT IStream(Max(len) AS mxl, MaxCount(len) AS num, ArgMax(caller, len) AS who) "
        "FROM Calls [Range 24 Hours Slide 1 Minute]"
    )
    minute = 60_000_000
    calls = {
        "ts": [0, minute, 2 * minute, 3 * minute],
        "len": [3.0, 7.5, 7.5, 2.0],
        "caller": ["Ann", "Bob", "Cid", "Dan"],
    }
    found = rows_of(sash.sql(text, time="ts").run(calls))
    day = [
        {"mxl": 3.0, "num": 1, "who": "Ann"},
        {"mxl": 7.5, "num": 1, "who": "Bob"},
        {"mxl": 7.5, "num": 2, "who": "Bob"},
    ]
    assert found[:3] == day
    assert found[3:] == [{"mxl": 7.5, "num": 1, "who": "Cid"}, {"mxl": 2.0, "num": 1, "who": "Dan"}]


#: NEXMark's queries in Flink's words (of 5 and 7 the inner SELECT), and the query of each.
NEXMARK = {
    5: (
        "SELECT auction, count(*) AS num, window_start AS starttime, window_end AS endtime "
        "FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' "
        "SECOND)) GROUP BY auction, window_start, window_end",
        ["auction"],
        sash.sliding("10 seconds", "2 seconds"),
        {"num": sash.count()},
    ),
    7: (
        "SELECT MAX(price) AS maxprice, window_end AS `dateTime` FROM TABLE(TUMBLE(TABLE bid, "
        "DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND)) GROUP BY window_start, window_end",
        [],
        sash.tumbling("10 seconds"),
        {"maxprice": sash.max("price")},
    ),
    11: (
        "SELECT bidder, count(*) AS bid_count, window_start AS starttime, window_end AS endtime "
        "FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(`dateTime`), INTERVAL '10' "
        "SECOND)) GROUP BY bidder, window_start, window_end",
        ["bidder"],
        sash.session("10 seconds"),
        {"bid_count": sash.count()},
    ),
    12: (
        "SELECT bidder, count(*) AS bid_count, window_start AS starttime, window_end AS endtime "
        "FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND)) "
        "GROUP BY bidder, window_start, window_end",
        ["bidder"],
        sash.tumbling("10 seconds"),
        {"bid_count": sash.count()},
    ),
}


@pytest.mark.parametrize("number", NEXMARK)
def test_nexmark(number: int) -> None:
    text, by, window, select = NEXMARK[number]
    rng = random.Random(number)
    bids = pa.table(
        {
            "dateTime": pa.array(sorted(rng.randrange(90_000_000) for _ in range(300))),
            "auction": [rng.randrange(5) for _ in range(300)],
            "bidder": [rng.randrange(20) for _ in range(300)],
            "price": [rng.randrange(1000) for _ in range(300)],
        }
    )
    q = sash.Query(time="dateTime", by=by, window=window, select=select)
    ours = rows_of(sash.sql(text).run(bids))
    names = {"starttime": "window_start", "endtime": "window_end"}
    if number == 7:
        names = {"dateTime": "window_end"}
    ours = [{names.get(n, n): v for n, v in row.items()} for row in ours]
    theirs = [{n: row[n] for n in ours[0]} for row in answers(q, bids)]
    assert ours == theirs
