"""`Query.run` against brute force, on streams with all that makes them hard."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.testing.queries import answers, differences
from sash.testing.streams import STREAMS, WINDOWS, stream


def check(events: Any, **given: Any) -> pa.Table:
    """Run a query over events, judge it, and give what it gave."""
    q = sash.Query(**{"time": "t", "window": WINDOWS[1]} | given)
    found = q.run(events)
    assert not differences(q, answers(q, events), found)
    return found


#: Told from numbers; few kernels, as each takes a while to compile.
TYPED = {
    "n": sash.count(),
    "max": sash.max("x"),
    "mean": sash.mean("x"),
    "who": sash.arg_max("n", "x"),
    "last": sash.last("i"),
}
COMMON = {"n": sash.count(), "max": sash.max("x")}
ORDER = {"all": sash.collect("n")}

NUMBERS = {
    "count": sash.count("x"),
    "sum": sash.sum("x"),
    "squares": sash.sum_of_squares("x"),
    "product": sash.product("x"),
    "min": sash.min("x"),
    "max": sash.max("x"),
    "span": sash.span("x"),
    "mean": sash.mean("x"),
    "geometric": sash.geometric_mean("x"),
    "variance": sash.variance("x"),
    "stddev": sash.stddev("x"),
    "pvariance": sash.population_variance("x"),
    "pstddev": sash.population_stddev("x"),
    "min_count": sash.min_count("x"),
    "max_count": sash.max_count("x"),
    "arg_min": sash.min_by("w", "x"),
    "arg_max": sash.max_by("b", by="x"),
    "first": sash.first("x"),
    "last": sash.last("x"),
    "first_some": sash.first("x", ignore_nulls=True),
    "m4": sash.m4("t", "x"),
    "run": sash.longest_run("t", "x"),
    "line": sash.linear_regression("i", "x"),
    "bloom": sash.bloom("x", bits=64, hashes=2),
    "count_min": sash.count_min("x", width=8, depth=2),
}
OTHERS = {
    "isum": sash.sum("i"),
    "imean": sash.mean("i"),
    "imax": sash.max("i"),
    "isd": sash.stddev("i"),
    "bsum": sash.sum("b"),
    "bmin": sash.min("b"),
    "wmax": sash.max("w"),
    "wspan": sash.span("w"),
    "wlast": sash.last("w"),
}
OBJECTS = {
    "collect": sash.collect("s"),
    "times": sash.collect("w"),
    "distinct": sash.collect_distinct("x"),
    "concat": sash.concat("s"),
    "how_many": sash.count_distinct("i"),
    "max": sash.max("s"),
    "first": sash.first("s"),
    "who": sash.arg_min("s", by="x"),
    "first_n": sash.first_n("s", n=2),
    "last_n": sash.last_n("i", n=2),
    "nth": sash.nth_youngest("x", i=2),
    "m4": sash.m4("t", "s"),
}


@pytest.mark.thin
@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_on_every_stream_and_window(kind: str, window: Any) -> None:
    many = window.last(0) - window.first(0) + 1
    events = stream(kind, 40 if many > 10 else 80, plain=window.size > 10**9)
    check(events, window=window, by=["k"], select=TYPED | ORDER)


@pytest.mark.thin
@pytest.mark.parametrize("select", [NUMBERS, OTHERS, OBJECTS], ids=["numbers", "others", "objects"])
@pytest.mark.parametrize("kind", ["disorder", "ties", "gaps"])
def test_every_operator(kind: str, select: Any) -> None:
    check(stream(kind, 60), by=["k"], select=select, window=WINDOWS[2])


def test_sketches() -> None:
    pytest.importorskip("datasketches")
    select = {
        "about": sash.hll("s"),
        "quantiles": sash.quantiles("x", at=(0.0, 0.5, 1.0)),
        "top": sash.top_k("s", k=2),
    }
    check(stream("ties", 60), by=["k"], select=select, window=WINDOWS[2])


@pytest.mark.plain
@pytest.mark.parametrize("by", [[], ["f"], ["k", "f"], ["b", "w", "i", "s"]], ids=repr)
@pytest.mark.parametrize("kind", ["bursts", "keys come and go"])
def test_keys_of_any_type(kind: str, by: list[str]) -> None:
    check(stream(kind), by=by, select=ORDER)


@pytest.mark.plain
def test_keys_that_are_structs_lists_and_dictionaries() -> None:
    events = stream("disorder")
    k = events["k"].combine_chunks()
    struct = pa.StructArray.from_arrays(
        [events["f"].combine_chunks(), k], names=["f", "k"], mask=pc.equal(k, "a").fill_null(False)
    )
    pairs = [None if x is None else [x, None, -0.0] for x in events["f"].to_pylist()]
    events = events.append_column("struct", struct)
    events = events.append_column("list", pa.array(pairs))
    events = events.append_column("coded", k.dictionary_encode())
    doubled = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2] * 30), list("bab"))
    events = events.append_column("doubled", doubled)
    events = events.append_column("half", events["f"].cast(pa.float16()))
    for by in ("struct", "list", "coded", "doubled", "half"):
        found = check(events, by=[by], select=ORDER)
        assert found[by].type == (pa.string() if by in ("coded", "doubled") else events[by].type)


@pytest.mark.thin
@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("window", [*WINDOWS[:4], WINDOWS[5], *WINDOWS[7:]], ids=repr)
def test_changes(kind: str, window: Any) -> None:
    events = stream(kind, 50)
    check(events, by=["k"], window=window, select=TYPED, emit="changes")


@pytest.mark.plain
def test_changes_of_one_lone_event_are_one_row() -> None:
    # 1 hour every second: it is in 3,600 windows, all alike
    table = {"t": [5_000_000, 90_000_000_000], "x": [1.0, 1.0]}
    window = sash.sliding("1 hour", "1 second")
    q = sash.Query(time="t", window=window, select=COMMON, emit="changes")
    found = q.run(table)
    assert found["window_start"].to_pylist() == [-3_594_000_000, 86_401_000_000]
    assert not differences(q, answers(q, table), found)


@pytest.mark.plain
@pytest.mark.parametrize("tie", ["n", "x", "s", "w", "coded"])
def test_ties_are_in_the_order_of_a_column(tie: str) -> None:
    events = stream("ties")
    backwards = events.take(np.arange(events.num_rows)[::-1])
    coded = backwards["s"].combine_chunks().dictionary_encode()
    backwards = backwards.append_column("coded", coded)
    found = check(backwards, by=["k"], tie=tie, select=ORDER)
    if tie == "n":
        assert not differences(
            sash.Query(time="t", by=["k"], window=WINDOWS[1], select=ORDER),
            answers(sash.Query(time="t", by=["k"], window=WINDOWS[1], select=ORDER), events),
            found,
        )


@pytest.mark.plain
def test_rows_that_do_not_satisfy_where_are_no_events() -> None:
    events = stream("disorder")
    select = COMMON
    found = check(events, where=pc.field("i") > 0, by=["k"], select=select)  # null is not above 0
    assert 0 < sum(found["n"].to_pylist()) < 5 * events.num_rows
    nothing = check(events, where=pc.field("i") > 2**50, by=["k"], select=select)
    assert nothing.num_rows == 0


def test_an_empty_table_gives_an_empty_result() -> None:
    empty = stream("ties").slice(0, 0)
    for by in ([], ["k"], ["k", "f"]):
        found = check(empty, by=by, select=TYPED | ORDER)
        assert found.num_rows == 0
        assert found.column_names == [*by, "window_start", "window_end", *TYPED, *ORDER]


def test_tables_in_many_chunks() -> None:
    events = stream("disorder")
    parts = pa.concat_tables([events.slice(i, 7) for i in range(0, 120, 7)])
    assert parts["x"].num_chunks > 1
    check(parts, by=["k"], select=TYPED | ORDER)
    check(parts.slice(5, 50), by=["k"], select=TYPED | ORDER)


def test_keys_in_long_runs() -> None:
    events = stream("disorder", plain=True)
    events = events.append_column("run", pa.array([7] * 50 + [3] * 40 + [7] * 30))
    check(events, by=["run"], select=TYPED | ORDER)
    check(events, by=["run", "k"], select=TYPED | ORDER)


def test_rows_in_order_already_are_taken_as_they_are() -> None:
    events = stream("disorder")
    events = events.filter(pc.is_valid(pc.field("k")))
    for first in ("kt", "tk", "k", "nk"):  # by key and time; by time; by key; neither
        given = events.sort_by([(name, "ascending") for name in (*first, "n")])
        check(given, by=["k"], select=TYPED | ORDER)
        check(given, by=["k"], select=TYPED | ORDER, tie="n")


# Operators of the user's own


def _most(out: Any, a: Any, b: Any) -> None:
    for i in range(2):
        out[i] = max(a[i], b[i])


def _pair(out: Any, x: Any) -> None:
    out[0] = x
    out[1] = -x


OWN = {
    # scalar; does not commute, but associates: the last one, unless it is zero
    "scalar": sash.operator(
        identity=0, lift=lambda x: x, combine=lambda a, b: b if b != 0 else a, name="recent"
    ),
    "tuple": sash.operator(
        identity=(0, 0.0),
        lift=lambda x: (1, 1.0 * x),
        combine=lambda a, b: (a[0] + b[0], a[1] * 0.5 ** b[0] + b[1]),
        lower=lambda a: a[1] if a[0] > 1 else None,
        name="decayed",
        equal=lambda a, b: a == b,
    ),
    "struct": sash.operator(
        identity=(0, 0),
        lift=lambda x: (1, x),
        combine=lambda a, b: (a[0] + b[0], b[1] if b[0] else a[1]),
        lower=lambda a: (a[0], a[1]),
        fields=["rows", "newest"],
        name="newest",
    ),
    "vector": sash.operator(
        identity=np.full(2, -(2**62), dtype=np.int64), lift=_pair, combine=_most, name="ends"
    ),
    "object": sash.operator(
        identity="",
        lift=lambda x: f"{x},",
        combine=lambda a, b: a + b,
        lower=lambda a: a.strip(","),
        name="text",
    ),
}


@pytest.mark.parametrize("kind", ["disorder", "gaps"])
def test_operators_of_the_users_own(kind: str) -> None:
    select = {name: sash.aggregate(op, "i") for name, op in OWN.items()}
    check(stream(kind), by=["k"], select=select | ORDER, window=WINDOWS[2])


@pytest.mark.filterwarnings("ignore::sash.InterpretedWarning")
def test_an_operator_that_numba_refuses_runs_in_plain_python() -> None:
    odd = sash.operator(
        identity=0,
        lift=lambda x: int(str(x)[-1:]),
        combine=lambda a, b: max(a, b, *(i for i in range(0))),
        name="odd",
    )
    check(stream("ties"), by=["k"], select={"v": sash.aggregate(odd, "i"), "n": sash.count()})


def test_a_query_can_be_run_again() -> None:
    q = sash.Query(time="t", window=WINDOWS[1], by=["k"], select=TYPED | ORDER)
    one, two = stream("ties"), stream("gaps", 30)
    for events in (one, two, one):
        assert not differences(q, answers(q, events), q.run(events))
