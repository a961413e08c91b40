"""A query tied to a table: who shares a partial, and the types of results."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash.kernels.program import specialise
from sash.query.plan import Plan, make_plan
from sash.query.registry import REGISTRY
from sash.state.scan_kernel import SCAN
from sash.testing.queries import answers, differences
from sash.testing.streams import stream

SCHEMA = stream("in order", 1).schema


def plan(schema: pa.Schema = SCHEMA, **select: sash.Aggregate) -> Plan:
    return make_plan(sash.Query(time="t", window=sash.tumbling("7 s"), select=select), schema)


def words(made: Plan) -> int:
    (group,) = made.groups
    layout = specialise(SCAN, group.operator).layout
    assert layout is not None
    return layout.words


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ((sash.mean("x"),), 2),
        ((sash.sum("x"), sash.count("x"), sash.mean("x"), sash.mean("x")), 2),
        ((sash.sum("x"), sash.sum("x")), 1),
        ((sash.count("i"), sash.mean("i"), sash.sum("i")), 3),
        ((sash.stddev("x"), sash.variance("x"), sash.population_stddev("x"), sash.count("x")), 3),
        ((sash.max("i"), sash.max("i")), 2),
        ((sash.count(), sash.count()), 1),
        # other columns, other nulls, other functions
        ((sash.sum("i"), sash.sum("x")), 3 + 1),
        ((sash.count(), sash.count("x"), sash.mean("x")), 1 + 2),
        ((sash.aggregate(sash.operators.count, "x"), sash.mean("x")), 1 + 2),
        ((sash.max("x"), sash.min("x")), 2),
        ((sash.first("x"), sash.first("x", ignore_nulls=True)), 6),
        ((sash.product("x"), sash.mean("x")), 4),
    ],
)
def test_aggregates_that_can_share_a_partial_do(
    select: tuple[sash.Aggregate, ...], expected: int
) -> None:
    assert words(plan(**{f"v{i}": chosen for i, chosen in enumerate(select)})) == expected


def test_a_user_operator_of_a_known_name_shares_nothing_it_should_not() -> None:
    def lift(x: float) -> float:
        return x

    def add(a: float, b: float) -> float:
        return a + b

    mine = sash.operator(identity=0.0, lift=lift, combine=add, name="sum")
    halved = dataclasses.replace(mine, lower=lambda a: a / 2, name="count")
    made = plan(a=sash.aggregate(mine, "x"), b=sash.aggregate(halved, "x"), c=sash.mean("x"))
    assert words(made) == 1 + 2
    events = stream("ties", plain=True)
    assert not differences(made.query, answers(made.query, events), made.query.run(events))


def test_shared_partials_are_combined_once() -> None:
    calls = {"lift": 0, "combine": 0}

    def lift(x: Any) -> Any:
        calls["lift"] += 1
        return (x,)

    def combine(a: Any, b: Any) -> Any:
        calls["combine"] += 1
        return a + b

    def events_of(*lowers: Any) -> dict[str, int]:
        # two operators that are lifted and combined alike
        one = sash.operator(identity=(), lift=lift, combine=combine, lower=list, compile=False)
        many = [dataclasses.replace(one, lower=f) for f in lowers]
        select = {f"v{i}": sash.aggregate(op, "n") for i, op in enumerate(many)}
        q = sash.Query(time="t", window=sash.sliding("9 s", "2 s"), by=["k"], select=select)
        calls.update(lift=0, combine=0)
        q.run(events)
        return dict(calls)

    events = stream("disorder")
    assert events_of(list) == events_of(list, len, lambda a: a[-1])
    assert calls["lift"] == events.num_rows


def test_sharing_leaves_answers_as_they_are() -> None:
    together = {
        "n": sash.count("x"),
        "sum": sash.sum("x"),
        "mean": sash.mean("x"),
        "sd": sash.stddev("x"),
        "var": sash.population_variance("x"),
        "isum": sash.sum("i"),
        "imean": sash.mean("i"),
        "in": sash.count("i"),
    }
    for kind in ("ties", "gaps"):
        events = stream(kind)
        window = sash.sliding("9 s", "2 s")
        q = sash.Query(time="t", window=window, by=["k"], select=together)
        found = q.run(events)
        assert not differences(q, answers(q, events), found)
        for name, chosen in together.items():
            alone = sash.Query(time="t", window=window, by=["k"], select={name: chosen})
            assert str(alone.run(events)[name]) == str(found[name]), name


def test_what_is_selected_in_another_order_runs_on_the_same_kernels() -> None:
    mine = sash.operator(identity=0, combine=max, name="max")
    other = sash.operator(identity=0, combine=min, name="max")
    select = {
        "top": sash.max("x"),
        "who": sash.arg_max("i", by="x"),
        "n": sash.count(),
        "mine": sash.aggregate(mine, "i"),
        "other": sash.aggregate(other, "i"),
        "all": sash.collect("i"),
        "some": sash.collect("x"),
    }
    there, back = plan(**select), plan(**dict(reversed(select.items())))
    assert [a.operator for a in there.groups] == [b.operator for b in back.groups]
    assert [a.columns for a in there.groups] == [b.columns for b in back.groups]
    assert list(there.types) == list(reversed(back.types)) == list(select)


def test_a_sum_has_one_zero_wherever_it_is_told_from() -> None:
    table = pa.table({"t": [1], "x": [-0.0]})
    for select in ({"s": sash.sum("x")}, {"s": sash.sum("x"), "m": sash.mean("x")}):
        q = sash.Query(time="t", window=sash.tumbling(10), select=select)
        (found,) = q.run(table)["s"].to_pylist()
        assert np.copysign(1.0, found) == 1.0
    (group,) = plan(s=sash.sum("x"), m=sash.mean("x")).groups
    told = group.operator.parts[group.names.index("s")].operator
    assert np.copysign(1.0, told.python_lower()(told.lift(-0.0))) == 1.0


# Types

KINDS = [
    pa.int8(), pa.int32(), pa.int64(), pa.uint16(), pa.uint64(), pa.float32(), pa.float64(),
    pa.bool_(), pa.string(), pa.large_string(), pa.binary(), pa.date32(), pa.timestamp("s"),
    pa.timestamp("ms", "UTC"), pa.timestamp("ns", "Europe/Berlin"), pa.time64("us"),
    pa.decimal128(20, 2), pa.duration("us"),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_values_keep_the_type_of_their_column(kind: pa.DataType) -> None:
    x = pa.array([1, 2, None, 3, 1], pa.int32())
    if pa.types.is_binary(kind) or pa.types.is_large_string(kind):
        x = x.cast(pa.string())
    elif pa.types.is_temporal(kind) and not pa.types.is_date(kind):
        x = x.cast(pa.int64())
    table = pa.table({"t": [1, 2, 3, 14, 15], "x": x.cast(kind)})
    q = sash.Query(
        time="t",
        window=sash.sliding(10, 5),
        select={
            "max": sash.max("x"),
            "first": sash.first("x"),
            "who": sash.arg_min("x", by="t"),
            "all": sash.collect("x"),
            "two": sash.first_n("x", n=2),
            "n": sash.count("x"),
            "distinct": sash.count_distinct("x"),
            "points": sash.m4("t", "x"),
        },
    )
    found = q.run(table)
    assert not differences(q, answers(q, table), found)
    for name in ("max", "first", "who"):
        assert found[name].type == kind
    for name in ("all", "two"):
        assert found[name].type == pa.list_(kind)
    for name in ("n", "distinct"):
        assert found[name].type == pa.int64()
    assert found["points"].type.field("max").type == kind
    assert found["points"].type.field("max_time").type == pa.int64()


@pytest.mark.parametrize("kind", [t for t in KINDS[:8] if t != pa.bool_()] + [pa.bool_()], ids=str)
def test_numbers_have_the_types_that_spark_gives_them(kind: pa.DataType) -> None:
    x = pa.array([1, 0, None, 1], pa.int8()).cast(kind)
    table = pa.table({"t": [1, 2, 3, 14], "x": x})
    q = sash.Query(
        time="t",
        window=sash.tumbling(10),
        select={
            "sum": sash.sum("x"),
            "span": sash.span("x"),
            "mean": sash.mean("x"),
            "sd": sash.stddev("x"),
            "line": sash.linear_regression("t", "x"),
            "run": sash.longest_run("t", "x"),
        },
    )
    found = q.run(table)
    assert not differences(q, answers(q, table), found)
    whole = pa.float64() if pa.types.is_floating(kind) else pa.int64()
    assert found["sum"].type == found["span"].type == whole
    assert found["mean"].type == found["sd"].type == pa.float64()
    assert found["line"].type == pa.struct(
        [(n, pa.float64()) for n in ("slope", "intercept", "r2")]
    )
    names = ("start", "end", "interval", "length")
    assert found["run"].type == pa.struct([(n, pa.int64()) for n in names])


def test_answers_that_are_structs_and_lists_have_named_fields() -> None:
    pytest.importorskip("datasketches")
    table = pa.table({"t": [1, 2, 14], "s": ["a", "b", None], "x": [1.0, 2.0, 3.0]})
    q = sash.Query(
        time="t",
        window=sash.tumbling(10),
        select={
            "q": sash.quantiles("x", at=(0.5, 1.0)),
            "top": sash.top_k("s", k=2),
            "about": sash.hll("s"),
        },
    )
    found = q.run(table)
    assert not differences(q, answers(q, table), found)
    assert found["q"].type == pa.struct([("q0.5", pa.float64()), ("q1", pa.float64())])
    assert found["top"].to_pylist()[0] == [{"item": "a", "count": 1}, {"item": "b", "count": 1}]
    assert found["about"].type == pa.float64()


def test_types_do_not_depend_on_there_being_rows() -> None:
    events = stream("ties")
    select = {
        "max": sash.max("w"),
        "all": sash.collect("s"),
        "sum": sash.sum("i"),
        "m4": sash.m4("t", "x"),
    }
    q = sash.Query(time="t", window=sash.tumbling("5 s"), by=["k", "f"], select=select)
    full, empty = q.run(events), q.run(events.slice(0, 0))
    assert empty.num_rows == 0
    assert empty.schema == full.schema


def test_what_an_operator_returns_can_be_said() -> None:
    spread = sash.operator(
        identity=(), lift=lambda x: (x,), combine=lambda a, b: a + b, lower=set, compile=False
    )
    given = pa.list_(pa.int16())
    q = sash.Query(
        time="t",
        window=sash.tumbling(10),
        select={"v": sash.aggregate(dataclasses.replace(spread, lower=sorted), "x", returns=given)},
    )
    found = q.run(pa.table({"t": [1, 2], "x": [2, 1]}))
    assert found["v"].type == given
    assert found["v"].to_pylist() == [[1, 2]]


def test_columns_that_cannot_be_read_are_named() -> None:
    with pytest.raises(KeyError, match="the query reads column 'z', which is not there; the table"):
        plan(v=sash.max("z"))
    near = pa.schema([("t", pa.int64()), ("delay", pa.int64())])
    with pytest.raises(KeyError, match="the table has: t, delay; did you mean 'delay'"):
        plan(near, v=sash.max("dely"))
    twice = pa.schema([("t", pa.int64()), ("x", pa.int64()), ("x", pa.int64())])
    with pytest.raises(KeyError, match="column 'x', which is there more than once"):
        plan(twice, v=sash.max("x"))
    with pytest.raises(TypeError, match=r"v = sum\('s'\): sum takes numbers.*'s' has string"):
        plan(v=sash.sum("s"))
    money = pa.schema([("t", pa.int64()), ("d", pa.decimal128(9, 2))])
    with pytest.raises(TypeError, match=r"'d' has decimal128\(9, 2\).*cast decimals to numbers"):
        plan(money, v=sash.sum_of_squares("d"))
    with pytest.raises(
        TypeError, match=r"time column 't' has type string; it must hold .*pandas: to_datetime"
    ):
        plan(pa.schema([("t", pa.string()), ("x", pa.int64())]), v=sash.max("x"))


def test_what_is_picked_comes_first_and_what_it_is_picked_by_second() -> None:
    table = pa.table({"t": [1, 2, 3], "carrier": ["UA", "AA", "B6"], "delay": [3.5, 9.0, 5.0]})
    picked = {
        "worst": sash.arg_max("carrier", "delay"),
        "also_worst": sash.max_by("carrier", by="delay"),
        "best": sash.arg_min("carrier", by="delay"),
        "also_best": sash.min_by("carrier", "delay"),
        "when": sash.max_by("t", "delay"),
    }
    q = sash.Query(time="t", window=sash.tumbling(10), select=picked)
    found = q.run(table)
    assert found.select(list(picked)).to_pylist() == [
        {"worst": "AA", "also_worst": "AA", "best": "UA", "also_best": "UA", "when": 2}
    ]
    assert found["worst"].type == pa.string()
    assert found["when"].type == pa.int64()


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (sash.sum("s"), r"sum takes numbers and decimals \(column 's' has string\); cast text"),
        (sash.span("s"), r"span takes numbers, decimals, times, dates and lengths of time"),
        (sash.sum_of_squares("d"), r"takes numbers .*; cast decimals to numbers first"),
        (sash.quantiles("s"), "quantiles takes numbers and decimals"),
        (sash.longest_run("s", "s"), "longest_run takes numbers, decimals, times"),
        (sash.concat("d"), "concat takes text, bytes and lists"),
        (sash.top_k("d", 2), "top_k takes text"),
        (sash.max("m"), "maps have no order"),
        (sash.arg_min("s", by="m"), "maps have no order"),
    ],
    ids=repr,
)
def test_a_column_of_the_wrong_type_is_named_before_any_work(chosen: Any, message: str) -> None:
    kinds = {"s": pa.string(), "d": pa.decimal128(5, 2), "m": pa.map_(pa.string(), pa.int64())}
    schema = pa.schema({"t": pa.int64(), **kinds})
    q = sash.Query(time="t", window=sash.tumbling(10), select={"v": chosen})
    with pytest.raises(TypeError, match=message):
        make_plan(q, schema)
    with pytest.raises(TypeError, match=message):
        q.stream(schema=schema)


def test_every_ready_operator_says_what_it_takes() -> None:
    """What a plan lets through, a run and a stream can do: no ready operator fails on a type it
    accepts.  These types run on Python objects, so nothing is compiled."""
    columns = {
        "s": pa.array(["b", None, "a"]),
        "raw": pa.array([b"b", None, b"a"]),
        "l": pa.array([[1, None], None, []], pa.list_(pa.int64())),
        "st": pa.array([{"a": None}, None, {"a": 1}], pa.struct({"a": pa.int64()})),
        "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "d": pa.array([1, None, 2], pa.int8()).cast(pa.decimal128(9, 2)),
        "day": pa.array([1, None, 2], pa.date32()),
        "long": pa.array([1, None, 2], pa.duration("ms")),
        "clock": pa.array([1, None, 2], pa.time32("s")),
    }
    table = pa.table({"t": [1, 2, 13], **columns})
    given: dict[str, tuple[Any, ...]] = {"bloom": (64,), "count_min": (8, 2), "top_k": (2,)}
    given |= dict.fromkeys(("first_n", "last_n", "nth_youngest"), (2,))
    given |= {"quantile": (0.5,), "ewm": (1000,)}
    accepted = 0
    for column in columns:
        given |= dict.fromkeys(("arg_max", "arg_min", "m4", "longest_run"), (column,))
        pairs = ("linear_regression", "covariance", "population_covariance", "correlation")
        given |= dict.fromkeys(pairs, (column,))
        for name in REGISTRY:
            plain = name.removeprefix("exact_")
            more = {} if plain == name else {"exact": True}
            chosen = getattr(sash, plain)(column, *given.get(name, ()), **more)
            q = sash.Query(time="t", window=sash.tumbling(10), select={"v": chosen})
            try:
                make_plan(q, table.schema)
            except TypeError:
                continue
            accepted += 1
            made = q.run(table)
            s = q.stream(lateness=100)
            s.push(table)
            assert s.late.num_rows == 0
            assert s.close()["v"].to_pylist() == made["v"].to_pylist(), chosen
    assert accepted > 150
