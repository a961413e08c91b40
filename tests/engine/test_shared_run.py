"""`share({…}).run` against each query alone."""

from __future__ import annotations

import dataclasses
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.engine import coarser, pyramids
from sash.query.conditions import Condition
from sash.slicing.factors import factors_of
from sash.state.trace import tracing
from sash.testing.counting import counting
from sash.testing.fuzz.streams import SELECTS
from sash.testing.queries import differences, rows_of
from sash.testing.streams import WINDOWS, stream
from shared_sets import FEW, drawn

BOTH = {"numbers": SELECTS["numbers"], "few": FEW}


def same(shared: sash.Shared, table: pa.Table) -> None:
    """The results are those of each query alone; floats up to rounding."""
    made = shared.run(table)
    assert list(made) == list(shared.queries)
    for name, query in shared.queries.items():
        alone = query.run(table)
        assert made[name].schema == alone.schema, name
        assert not differences(query, rows_of(alone), made[name]), name


def query(window: Any, select: Any, **more: Any) -> sash.Query:
    return sash.Query(**{"time": "t", "by": ["k"], "window": window, "select": select} | more)


@pytest.mark.parametrize("kind", ["disorder", "ties", "gaps", "before 1970"])
def test_all_windows_together(kind: str) -> None:
    queries = {
        f"{name} {i}": query(window, select, emit=("all", "changes")[i % 2])
        for i, window in enumerate(WINDOWS)
        for name, select in BOTH.items()
    }
    shared = sash.share(queries)
    assert len(shared.plan.bundles) == 1
    same(shared, stream(kind, 80))


@pytest.mark.plain
@pytest.mark.parametrize("select", ["in order", "objects"])
def test_what_has_an_order_and_what_is_no_number(select: str) -> None:
    queries = {f"{i}": query(window, SELECTS[select]) for i, window in enumerate(WINDOWS[1:5])}
    queries["first alone"] = query(WINDOWS[0], dict([*SELECTS[select].items()][:1]))
    for kind in ("disorder", "ties"):
        same(sash.share(queries), stream(kind, 60))


@pytest.mark.plain
def test_windows_of_every_kind_side_by_side() -> None:
    select = SELECTS["numbers"]
    zone = {"timezone": "America/Havana"}
    queries = {
        "sliding": query(sash.sliding("7 seconds", "3 seconds"), select),
        "cumulate": query(sash.cumulate("6 seconds", "2 seconds"), select),
        "trailing": query(sash.trailing("5 seconds"), select),
        "session": query(sash.session("2 seconds"), select),
        "rows": query(sash.rows(4), select),
        "day": query(sash.tumbling("1 day", **zone), select),
        "week": query(sash.sliding("7 days", "1 day", **zone), select),
        "empty": query(sash.tumbling("5 seconds", empty="zero"), {"n": sash.count()}),
        "all keys": query(sash.sliding("7 seconds", "3 seconds"), select, by=[]),
        "some": query(sash.tumbling("3 seconds"), select, where=pc.field("i") > 0),
        "some too": query(sash.tumbling("5 seconds"), select, where=pc.field("i") > 0),
        "in order": query(sash.tumbling("5 seconds"), SELECTS["in order"]),
    }
    shared = sash.share(queries)
    bundles = [bundle.names for bundle in shared.plan.bundles]
    assert bundles == [
        ("sliding", "cumulate", "empty"),
        ("trailing",),
        ("session",),
        ("rows",),
        ("day", "week"),
        ("all keys",),
        ("some", "some too"),
        ("in order",),
    ]
    said = [bundle.why for bundle in shared.plan.bundles]
    assert "events make" in said[1]
    assert "calendar" in said[4]
    assert "keys are none here" in said[5]
    assert "`where`" in said[6]
    assert "order" in said[7]
    same(shared, stream("gaps", 100))


@pytest.mark.once
@pytest.mark.parametrize("by_pyramid", [False, True])
def test_two_hundred_queries_of_random_windows(
    by_pyramid: bool, request: pytest.FixtureRequest
) -> None:
    if by_pyramid:
        request.getfixturevalue("eager")
    source = random.Random(5)
    queries = {}
    for i in range(200):
        every = source.choice((2, 3, 5, 7, 11, 13, 17)) * source.choice((1_000_000, 333_333))
        size = every * source.randint(1, 4) + source.choice((0, 0, 777_777))
        queries[f"q{i}"] = query(sash.sliding(size, every), BOTH["few"])
    shared = sash.share(queries)
    assert shared.plan.bundles[0].composite.slices is None
    with tracing() as trace:
        same(shared, stream("disorder", 40))
    assert ("from a pyramid" in "".join(trace.steps)) == by_pyramid
    one, four = (shared.run(stream("gaps", 300), threads=n) for n in (1, 4))
    assert all(repr(rows_of(one[name])) == repr(rows_of(four[name])) for name in queries)


@pytest.mark.plain
@pytest.mark.parametrize("by_pyramid", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_generated_sets(seed: int, by_pyramid: bool, request: pytest.FixtureRequest) -> None:
    if by_pyramid:
        request.getfixturevalue("eager")
    kind = ("disorder", "ties", "gaps")[seed % 3]
    same(sash.share(drawn(seed)), stream(kind, 90, seed=seed))


def test_equal_aggregates_have_one_partial() -> None:
    one = query(sash.tumbling(10), {"n": sash.count(), "mean": sash.mean("x")})
    two = query(sash.sliding(10, 5), {"many": sash.count(), "sum": sash.sum("x")})
    (bundle,) = sash.share({"one": one, "two": two}).plan.bundles
    assert bundle.aggregates["count()"] == (("one", "n"), ("two", "many"))
    assert len(bundle.aggregates) == 3


def test_kinds_of_tables_come_back() -> None:
    pandas = pytest.importorskip("pandas")
    q = query(sash.tumbling(10), {"n": sash.count()}, by=[])
    other = query(sash.trailing(10), {"n": sash.count()}, by=[])
    made = sash.share({"q": q, "other": other}).run(pandas.DataFrame({"t": [1, 2, 11]}))
    assert made["q"]["n"].tolist() == [2, 1]
    assert made["other"]["n"].tolist() == [1, 2, 3]


@pytest.mark.plain
def test_an_answer_that_does_not_exist_names_its_query() -> None:
    big = {"t": [1, 2], "x": [2**62, 2**62]}
    q = query(sash.tumbling(10), {"sum": sash.sum("x")}, by=[])
    shared = sash.share({"long": q, "short": query(sash.tumbling(1), {"n": sash.count()}, by=[])})
    with pytest.raises(OverflowError, match="query 'long': sum"):
        shared.run(big)


def test_what_cannot_be_shared_is_refused() -> None:
    q = query(sash.tumbling(10), {"n": sash.count()})
    with pytest.raises(TypeError, match="a name and a query"):
        sash.share([q])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"must be a sash\.Query"):
        sash.share({"q": 3})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="one time column"):
        sash.share({"q": q, "r": query(sash.tumbling(10), {"n": sash.count()}, time="u")})
    with pytest.raises(KeyError, match="query 'r': the query reads column 'y'"):
        sash.share({"q": q, "r": query(sash.tumbling(10), {"n": sash.sum("y")})}).run(
            {"t": [1], "k": ["a"]}
        )


@pytest.mark.plain
def test_aggregates_with_conditions_of_their_own() -> None:
    some = {
        "n": sash.count(),
        "up": dataclasses.replace(sash.count(), where=Condition.of(pc.field("i") > 0)),
        "sum_up": dataclasses.replace(sash.sum("i"), where=Condition.of(pc.field("i") > 0)),
    }
    queries = {
        "all": query(sash.tumbling("5 seconds"), some),
        "up": query(sash.sliding("6 seconds", "2 seconds"), {"m": some["up"]}),
        "n": query(sash.tumbling("3 seconds"), {"m": sash.count(), "s": sash.sum("i")}),
    }
    same(sash.share(queries), stream("disorder", 60))


#: Windows of which some are best computed from those of ten seconds, which nobody asked for.
NESTED = {
    "fine": sash.sliding("7 seconds", "1 second"),
    "half": sash.tumbling("30 seconds"),
    "short": sash.sliding("20 seconds", "10 seconds"),
    "long": sash.sliding("60 seconds", "20 seconds"),
    "moved": sash.sliding("20 seconds", "10 seconds", offset="5 seconds"),
}


@pytest.mark.parametrize("select", ["numbers", "in order", "objects"])
def test_factor_windows_change_nothing(monkeypatch: pytest.MonkeyPatch, select: str) -> None:
    monkeypatch.setattr(coarser, "_WORTH", 0)
    folded: list[Any] = []
    real = coarser._folded
    monkeypatch.setattr(coarser, "_folded", lambda *a: folded.append(a[-1]) or real(*a))
    queries = {n: query(w, SELECTS[select], by=[]) for n, w in NESTED.items()}
    queries["changes"] = query(NESTED["long"], SELECTS[select], by=[], emit="changes")
    same(sash.share(queries), stream("disorder", 120))
    assert sash.tumbling("10 seconds") in folded


def test_factor_windows_save_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of a second, and windows that end at whole minutes, but one."""
    counted = counting(sash.operators.sum.of(int))
    select = {"sum": sash.aggregate(counted.operator, "x")}
    windows = [sash.sliding("5 seconds", "1 second")]
    windows += [sash.sliding(f"{n} minutes", "1 minute") for n in (2, 3, 5, 7, 10, 20)]
    events = pa.table({"t": np.arange(3000) * 1_000_000, "x": np.ones(3000, np.int64)})
    shared = sash.share({f"{i}": query(w, select, by=[]) for i, w in enumerate(windows)})
    found = factors_of(tuple(windows), Fraction(1, 1_000_000))
    assert found is not None
    assert found.added == (sash.tumbling("1 minute"),)
    combines = []
    for worth in (0, 2**62):
        monkeypatch.setattr(coarser, "_WORTH", worth)
        counted.reset()
        same_rows = shared.run(events)["3"]
        combines.append(counted.combines)
        assert same_rows["sum"].to_pylist()[20] == 300
    saved = (found.apart - found.cost) * 3_000_000_000
    assert combines[1] - combines[0] == pytest.approx(float(saved), rel=0.15)
    said = shared.explain()
    assert "tumbling('1 minute') is added, from events" in said.bundles[0].factors
    assert "computed from coarser ones" in str(said)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries are answered from pyramids, however few slices there are."""
    for name, value in {"_WORTH": 0, "QUERIES": 1, "_WINDOWS": 12}.items():
        monkeypatch.setattr(pyramids, name, value)


@pytest.mark.plain
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("kind", ["disorder", "ties", "gaps", "before 1970"])
@pytest.mark.parametrize("select", ["numbers", "in order", "objects"])
def test_pyramids_change_nothing(select: str, kind: str) -> None:
    windows = [*WINDOWS, sash.sliding("91 seconds", "3 seconds"), sash.sliding("200 s", "100 s")]
    queries = {
        f"{i}": query(window, SELECTS[select], emit=("all", "changes")[i % 2])
        for i, window in enumerate(windows)
    }
    with tracing() as trace:
        same(sash.share(queries), stream(kind, 150))
    assert "from a pyramid" in "".join(trace.steps)


@pytest.mark.plain
def test_a_pyramid_takes_few_combines_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """6,000 slices, of which three queries have windows of 600.  A scan takes 2 a slice; a pyramid
    2 a slice and level to build, and for a window of 600 at most 2 a level, of which it has four,
    and 7 between."""
    counted = counting(sash.operators.sum.of(int))
    select = {"sum": sash.aggregate(counted.operator, "x")}
    windows = {f"{n}": sash.sliding(600 + n, 600) for n in (0, 1, 2)}
    windows["each"] = sash.tumbling(1)
    events = pa.table({"t": np.arange(6000), "x": np.ones(6000, np.int64)})
    shared = sash.share({name: query(w, select, by=[]) for name, w in windows.items()})
    combines = []
    for worth in (0, 2**62):
        monkeypatch.setattr(pyramids, "_WORTH", worth)
        counted.reset()
        made = shared.run(events)
        assert made["0"]["sum"].to_pylist() == [600] * 10
        assert made["2"]["sum"].to_pylist() == [2, *[602] * 9, 600]
        combines.append(counted.combines)
    rows = sum(made[name].num_rows for name in ("0", "1", "2"))
    by_pyramid = 2 * 6000 * (1 + 1 / 8 + 1 / 64 + 1 / 512) + rows * (2 * 4 + 7)
    by_scan = 3 * 2 * 6000 + rows
    assert combines[1] - combines[0] == pytest.approx(by_scan - by_pyramid, rel=0.1)


@pytest.mark.plain
@pytest.mark.usefixtures("eager")
def test_a_pyramid_whose_slices_cannot_be_combined_is_not_built() -> None:
    """No two windows hold what `combine` refuses to combine."""

    def near(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        if a[0] < 0 or b[0] < 0:
            return b if a[0] < 0 else a
        if b[1] - a[0] > 20:
            raise ArithmeticError("too far")
        return a[0], b[1]

    span = sash.operator(
        identity=(-1, -1), lift=lambda x: (x, x), combine=near, lower=lambda p: p[1] - p[0]
    )
    select = {"span": sash.aggregate(span, "x")}
    table = {"t": [*range(40)], "x": [*range(40)]}
    queries = {f"{n}": query(sash.tumbling(n), select, by=[]) for n in (2, 3, 5)}
    made = sash.share(queries).run(pa.table(table))
    assert made["5"]["span"].to_pylist() == [4] * 8


@pytest.mark.plain
@pytest.mark.usefixtures("eager")
def test_an_answer_of_a_pyramid_that_does_not_exist_names_its_query() -> None:
    test_an_answer_that_does_not_exist_names_its_query()
