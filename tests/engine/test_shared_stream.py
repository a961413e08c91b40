"""`share({…}).stream` against a stream of each query alone, push by push."""

from __future__ import annotations

import copy
import random
import threading
from collections.abc import Iterable, Iterator
from itertools import pairwise, product
from operator import add
from typing import Any, Literal

import pandas
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.state import pyramid, shared_pyramids
from sash.state.pyramid import Pyramid, PyramidFailed
from sash.state.trace import tracing
from sash.testing import counting
from sash.testing.fuzz.streams import SELECTS
from sash.testing.queries import differences, rows_of
from sash.testing.streams import WINDOWS, batches, stream
from shared_sets import FEW, drawn
from trouble import interrupted

ADDED = ("reason", "missed", "missed_start", "missed_end")


def query(window: Any, select: Any, **more: Any) -> sash.Query:
    return sash.Query(**{"time": "t", "by": ["k"], "window": window, "select": select} | more)


def compare(
    queries: dict[str, sash.Query], parts: Iterable[Any], *, restore: bool = False, **settings: Any
) -> sash.SharedStream:
    """Push batches into a shared stream and into one for each query, and compare all that they
    give: results, late rows, counts."""
    shared = sash.share(queries)
    together = shared.stream(**settings)
    alone = {name: q.stream(**settings) for name, q in queries.items()}
    for i, part in enumerate(parts):
        same_results(queries, together.push(part), {n: s.push(part) for n, s in alone.items()})
        together._check()
        if restore and i % 3 == 1:
            together = sash.SharedStream.from_bytes(together.to_bytes(), shared)
        elif restore and i % 3 == 2:
            together = copy.copy(together)
    same_late(together.late, {name: s.late for name, s in alone.items()})
    same_results(queries, together.close(), {name: s.close() for name, s in alone.items()})
    assert together.counts == {name: s.counts for name, s in alone.items()}
    return together


def same_results(
    queries: dict[str, sash.Query], made: dict[str, Any], alone: dict[str, Any]
) -> None:
    assert list(made) == list(queries)
    for name, right in alone.items():
        for field, other in zip(made[name].schema, right.schema, strict=True):
            # of an operator of one's own, only answers tell the type
            assert field == other or pa.types.is_null(other.type), name
        assert not differences(queries[name], rows_of(right), made[name]), name
        if "revision" in right.column_names:
            assert made[name]["revision"].to_pylist() == right["revision"].to_pylist(), name


def same_late(made: pa.Table, alone: dict[str, pa.Table]) -> None:
    """The late rows that name a query are those of its own stream."""
    for name, right in alone.items():
        own = [row for row in rows_of(made) if name in row["queries"]]
        for row in own:
            del row["queries"]
        wanted = [{key: row[key] for key in own[0]} for row in rows_of(right)] if own else []
        assert len(own) == right.num_rows, name
        assert repr(own) == repr(wanted), name


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is due is answered from pyramids, however few windows and slices there are."""
    for name, value in {"_WORTH": 0, "_SLICES": 2**40, "_EMPTY": 1000}.items():
        monkeypatch.setattr(shared_pyramids, name, value)
    with tracing() as trace:
        yield
    assert "from a pyramid" in "".join(trace.steps)


@pytest.mark.thin
@pytest.mark.parametrize("mode", ["final", "live", "early", "changes"])
@pytest.mark.parametrize("kind", ["disorder", "ties", "gaps", "keys come and go"])
def test_all_windows_together(kind: str, mode: str) -> None:
    emit = "changes" if mode == "changes" else "all"
    settings: dict[str, Any] = {"mode": "live" if mode in ("live", "early") else "final"}
    settings |= {"early": mode == "early", "lateness": "4 seconds"}
    queries = {
        f"{name} {i}": query(window, select, emit=emit)
        for i, window in enumerate(WINDOWS[1:5] + WINDOWS[7:8])
        for name, select in (("numbers", SELECTS["numbers"]), ("few", FEW))
        if i % 2 or name == "numbers"
    }
    seed = random.Random(f"{kind} {mode}").randrange(1000)
    parts = batches(stream(kind, 50, seed=seed), seed=seed, most=20)
    compare(queries, parts, restore=True, **settings)


@pytest.mark.thin
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("mode", ["final", "changes"])
@pytest.mark.parametrize("kind", ["disorder", "ties", "gaps", "keys come and go"])
def test_all_windows_from_pyramids(kind: str, mode: str) -> None:
    test_all_windows_together(kind, mode)


@pytest.mark.plain
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("select", ["in order", "objects"])
def test_what_has_an_order_from_pyramids(select: str) -> None:
    test_what_has_an_order_and_what_is_no_number(select, "final")


@pytest.mark.plain
@pytest.mark.usefixtures("eager")
def test_windows_of_every_kind_from_pyramids() -> None:
    test_windows_of_every_kind_side_by_side()


@pytest.mark.plain
@pytest.mark.usefixtures("eager")
def test_every_cutting_from_pyramids() -> None:
    test_every_cutting_of_a_few_events()


@pytest.mark.plain
@pytest.mark.usefixtures("eager")
def test_queries_come_and_go_from_pyramids() -> None:
    test_queries_come_and_go("final")


@pytest.mark.plain
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("emit", ["all", "changes"])
def test_windows_that_are_listed_a_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch, emit: Literal["all", "changes"]
) -> None:
    """A pyramid answers some of the queries at a time, of which only one wants changes, or some
    have no rows to tell the type of their answers."""
    monkeypatch.setattr(pyramid, "_LISTED", 0)
    monkeypatch.setattr(pyramid, "_LISTED_PER_SLICE", 0)
    every = sash.operator(identity=(), lift=lambda x: (x,), combine=add, lower=list)
    select = {"all": sash.aggregate(every, "n"), "total": sash.sum("i")}
    queries = {
        "short": query(sash.sliding("3 seconds", "2 seconds"), select),
        "some": query(sash.sliding("9 seconds", "2 seconds"), select, emit=emit),
        "day": query(sash.tumbling("1 day"), select),
    }
    compare(queries, batches(stream("disorder", 40), most=20), lateness="2 seconds")


@pytest.mark.plain
@pytest.mark.parametrize("select", ["in order", "objects"])
@pytest.mark.parametrize("mode", ["final", "live"])
def test_what_has_an_order_and_what_is_no_number(select: str, mode: str) -> None:
    queries = {f"{i}": query(window, SELECTS[select]) for i, window in enumerate(WINDOWS[1:4])}
    queries["first alone"] = query(WINDOWS[0], dict([*SELECTS[select].items()][:1]))
    parts = batches(stream("disorder", 50), most=12)
    compare(queries, parts, mode=mode, lateness="3 seconds", restore=select == "in order")


@pytest.mark.plain
def test_windows_of_every_kind_side_by_side() -> None:
    select = SELECTS["numbers"]
    zone = {"timezone": "America/Havana"}
    zero: dict[str, Any] = {"empty": "zero", "idle": "20 seconds"}
    queries = {
        "sliding": query(sash.sliding("7 seconds", "3 seconds"), select),
        "changes": query(sash.sliding("60 seconds", "1 second"), FEW, emit="changes"),
        "trailing": query(sash.trailing("5 seconds"), select),
        "session": query(sash.session("2 seconds"), select),
        "rows": query(sash.rows(4), select),
        "day": query(sash.tumbling("1 day", **zone), select),
        "week": query(sash.sliding("7 days", "1 day", **zone), select),
        "empty": query(sash.tumbling("5 seconds", **zero), {"n": sash.count()}),
        "all keys": query(sash.sliding("7 seconds", "3 seconds"), select, by=[]),
        "some": query(sash.tumbling("3 seconds"), select, where=pc.field("i") > 0),
        "some too": query(sash.tumbling("5 seconds"), select, where=pc.field("i") > 0),
    }
    parts = batches(stream("gaps", 80), most=15)
    together = compare(queries, parts, lateness="2 seconds", restore=True)
    assert [member.names for member in together._members] == [
        ("sliding", "changes", "empty"),
        ("trailing",),
        ("session",),
        ("rows",),
        ("day", "week"),
        ("all keys",),
        ("some", "some too"),
    ]


@pytest.mark.once
def test_two_hundred_queries_of_random_windows() -> None:
    source = random.Random(5)
    queries = {}
    for i in range(200):
        every = source.choice((2, 3, 5, 7, 11, 13, 17)) * source.choice((1_000_000, 333_333))
        size = every * source.randint(1, 4) + source.choice((0, 0, 777_777))
        # the aggregates of all windows together, whose kernel is there
        queries[f"q{i}"] = query(sash.sliding(size, every), FEW if i else SELECTS["numbers"])
    compare(queries, batches(stream("disorder", 40), most=25), lateness="2 seconds")


@pytest.mark.plain
@pytest.mark.parametrize("mode", ["final", "live"])
@pytest.mark.parametrize("seed", range(4))
def test_generated_sets(seed: int, mode: str) -> None:
    table = stream(("disorder", "ties", "keys come and go")[seed % 3], 50, seed=seed)
    parts = batches(table, seed=seed, most=15)
    compare(drawn(seed, mode), parts, lateness="2 seconds", mode=mode, restore=seed % 2 == 0)


@pytest.mark.plain
def test_every_cutting_of_a_few_events() -> None:
    """Sliding beside trailing beside sessions; what is late depends on the cutting."""
    queries = {
        "sliding": query(sash.sliding(7, 3), {"n": sash.count()}),
        "other": query(sash.sliding(10, 4), {"n": sash.count()}),
        "trailing": query(sash.trailing(5), {"n": sash.count()}),
        "session": query(sash.session(2), {"n": sash.count()}),
    }
    table = pa.table({"t": [3, 9, 4, 14, 8, 21], "k": [*"abaaba"]})
    for cuts in product((False, True), repeat=table.num_rows - 1):
        ends = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), table.num_rows]
        parts = [table.slice(low, high - low) for low, high in pairwise(ends)]
        compare(queries, parts, lateness=4)


@pytest.mark.plain
def test_events_one_by_one_are_noted_first() -> None:
    queries = {
        "fast": query(sash.sliding(20, 10), {"n": sash.count()}),
        "slow": query(sash.tumbling(30), {"n": sash.count(), "sum": sash.sum("i")}),
    }
    source = random.Random(3)
    events = [{"t": t + source.randint(-9, 9), "k": "ab"[t % 2], "i": t} for t in range(0, 300, 3)]
    together = compare(queries, events, lateness=8)
    assert together.counts["fast"]["rows"] == 100


@pytest.mark.plain
def test_pandas_goes_in_and_comes_back() -> None:
    pandas = pytest.importorskip("pandas")
    q = query(sash.tumbling(10), {"n": sash.count()}, by=[])
    s = sash.share({"q": q, "each": query(sash.trailing(5), {"n": sash.count()}, by=[])}).stream()
    made = s.push(pandas.DataFrame({"t": [1, 2, 11]}))
    assert made["q"]["n"].tolist() == [2]
    assert made["each"]["n"].tolist() == [1, 2]
    assert s.advance(15)["q"].columns.tolist() == made["q"].columns.tolist()
    rest = sash.SharedStream.from_bytes(s.to_bytes(), sash.share(s.queries)).close()
    assert rest["q"]["n"].tolist() == s.close()["q"]["n"].tolist() == [1]


@pytest.mark.plain
def test_another_set_of_queries_is_refused() -> None:
    n = {"n": sash.count()}
    fast, slow = query(sash.tumbling(10), n), query(sash.tumbling(20), n)
    data = sash.share({"fast": fast, "slow": slow}).stream().to_bytes()
    with pytest.raises(ValueError, match="slow is not there any more; other is new"):
        sash.SharedStream.from_bytes(data, sash.share({"fast": fast, "other": slow}))
    with pytest.raises(ValueError, match=r"fast: window was tumbling\('10 microseconds'\) and is"):
        sash.SharedStream.from_bytes(data, sash.share({"fast": slow, "slow": slow}))
    with pytest.raises(ValueError, match=r"these bytes hold a Stream \d"):
        sash.SharedStream.from_bytes(fast.stream().to_bytes(), sash.share({"fast": fast}))


@pytest.mark.plain
def test_what_a_stream_cannot_do_names_the_query() -> None:
    q = query(sash.tumbling(10), {"n": sash.count()})
    rows = query(sash.rows(3), {"n": sash.count()})
    with pytest.raises(ValueError, match="query 'rows': what these windows hold"):
        sash.share({"q": q, "rows": rows}).stream(mode="live")
    s = sash.share({"q": q, "rows": rows}).stream()
    with pytest.raises(ValueError, match="column 'queries' of their own"):
        s.push({"t": 1, "k": "a", "queries": 3})
    with pytest.raises(KeyError, match="query 'q' reads column 'k'"):
        s.push(pa.table({"t": [1]}))
    with pytest.raises(ValueError, match=r"query 'rows': rows\(3\) keeps all columns"):
        s.push(pa.table({"t": [1], "k": ["a"], "n": [1]}))
    assert s.push({"t": 1, "k": "a"})["q"].num_rows == 0  # nothing was changed


@pytest.mark.plain
def test_a_column_that_late_rows_have_is_refused_in_any_kind_of_batch() -> None:
    q, text = counted(sash.tumbling(10)), "SELECT count(*) AS n FROM t GROUP BY window(t, '10 us')"
    for shared in ({"q": q}, {"q": q, "r": counted(sash.trailing(5), m=sash.count())}):
        for made in (sash.share(shared), sash.share({"q": sash.sql(text)})):
            s = made.stream()
            frame = pandas.DataFrame({"t": [30], "queries": [1]})
            for batch in (frame, polars.from_pandas(frame), iter([{"t": 30, "queries": 1}])):
                with pytest.raises(ValueError, match="column 'queries' of their own"):
                    s.push(batch)
            s.push([{"t": 30}])
            s.push([{"t": 3}])
            assert s.late["queries"].to_pylist() == [[name] for name in s.queries]


@pytest.mark.plain
def test_an_event_is_inserted_once_for_all_queries() -> None:
    """Lifts and combines while nothing is due are those of one query, however many share."""

    def cost(many: int) -> tuple[int, int, int]:
        counted = counting(sash.operators.max.of(int))
        chosen = {"m": sash.aggregate(counted.operator, "i")}
        every = [10 * (n + 1) for n in range(many)]
        queries = {f"q{n}": query(sash.sliding(2 * n, n), chosen) for n in every}
        s = sash.share(queries).stream(lateness=10**6)
        counted.reset()
        for t in range(0, 900, 30):
            s.push(pa.table({"t": [t, t + 1, t + 7], "k": ["a"] * 3, "i": [1, 2, 3]}))
        return counted.lifts, counted.combines, s.state_size()["slices"]

    one, many = cost(1), cost(40)
    assert many == one
    assert one[0] == 90
    assert one[2] == 30


@pytest.mark.plain
def test_slices_kept_are_those_of_the_longest_window() -> None:
    n = {"n": sash.count()}
    long = query(sash.sliding(300, 10), n)
    others = {f"q{s}": query(sash.sliding(s, 10), n) for s in range(10, 300, 30)}
    together = sash.share({"long": long, **others}).stream()
    alone = long.stream()
    for t in range(0, 600, 5):
        event = {"t": t, "k": "a"}
        together.push(event)
        alone.push(event)
    assert together.state_size()["slices"] == alone.state_size()["slices"] == 30


@pytest.mark.plain
def test_a_key_that_no_window_holds_leaves() -> None:
    n = {"n": sash.count()}
    queries = {"fast": query(sash.tumbling(10), n), "slow": query(sash.sliding(40, 10), n)}
    s = sash.share(queries).stream()
    for t in range(0, 1000, 10):
        s.push({"t": t, "k": f"key {t}"})
    assert s.state_size()["keys"] <= 6


@pytest.mark.plain
@pytest.mark.parametrize("mode", ["final", "live"])
def test_queries_come_and_go(mode: str) -> None:
    """A query that is added gives what it would give alone from then on; or, with what is held,
    what it would give had it been there from the start.  Others do not notice."""
    select = SELECTS["numbers"]
    settings: dict[str, Any] = {"mode": mode, "lateness": "2 seconds"}
    queries = {
        "long": query(sash.sliding("20 seconds", "1 second"), select),
        "gone": query(sash.sliding("7 seconds", "3 seconds"), {**select, "own": sash.min("i")}),
        "rows": query(sash.trailing("3 seconds"), select),
    }
    more = {
        "held": query(
            sash.sliding("6 seconds", "2 seconds"), {"m": sash.count(), "total": sash.sum("i")}
        ),
        "now": query(sash.sliding("6 seconds", "2 seconds"), {"m": sash.count()}),
        "each": query(sash.trailing("1 second"), {"m": sash.count()}),
    }
    together = sash.share(queries).stream(**settings)
    alone = {name: q.stream(**settings) for name, q in queries.items()}
    alone["held"] = more["held"].stream(**settings)
    known = dict(queries)
    for i, part in enumerate(batches(stream("disorder", 90), most=12)):
        made = together.push(part)
        right = {name: s.push(part) for name, s in alone.items()}
        same_results(known, made, {name: right[name] for name in known})
        together._check()
        if i == 3:
            together.add("held", more["held"], since="held")
            together.add("now", more["now"])
            together.add("each", more["each"], since="now")
            alone |= {name: more[name].stream(**settings) for name in ("now", "each")}
            known |= {name: more[name] for name in ("held", "now", "each")}
        if i == 6:
            together.remove("gone")
            together.remove("each")
            del known["gone"], known["each"]
        if i in (5, 8):
            with_gone = sash.share(known | {"gone": queries["gone"]})
            together = sash.SharedStream.from_bytes(together.to_bytes(), with_gone)
            assert list(together.queries) == list(known)
    assert i > 9
    made = together.close()
    same_results(known, made, {name: alone[name].close() for name in known})


@pytest.mark.plain
def test_what_cannot_be_added_says_why() -> None:
    n = {"n": sash.count()}
    s = sash.share({"q": query(sash.sliding(20, 10), n)}).stream()
    s.push({"t": 3, "k": "a", "i": 1})
    with pytest.raises(ValueError, match="slices are not cut at all edges of"):
        s.add("odd", query(sash.tumbling(15), n), since="held")
    with pytest.raises(ValueError, match=r"m = max\('i'\) has no partial"):
        s.add("max", query(sash.tumbling(10), {"m": sash.max("i")}), since="held")
    with pytest.raises(ValueError, match="events make the windows"):
        s.add("each", query(sash.trailing(10), n), since="held")
    with pytest.raises(ValueError, match="there is, or was, a query 'q' already"):
        s.add("q", query(sash.tumbling(10), n))
    with pytest.raises(ValueError, match="is the only query"):
        s.remove("q")
    with pytest.raises(KeyError, match="there is no query 'r' here"):
        s.remove("r")


@pytest.mark.plain
def test_the_reason_is_that_of_the_bundle_that_comes_nearest() -> None:
    n = {"n": sash.count()}
    keyed, whole = query(sash.sliding(20, 10), n), query(sash.tumbling(10), n, by=[])
    s = sash.share({"keyed": keyed, "whole": whole}).stream()
    s.push({"t": 3, "k": "a", "i": 1})
    with pytest.raises(ValueError, match=r"holds \(m = max\('i'\) has no partial\)"):
        s.add("max", query(sash.tumbling(10), {"m": sash.max("i")}), since="held")


@pytest.mark.plain
@pytest.mark.parametrize("mode", ["final", "live"])
def test_partials_of_each_time_serve_queries_without_order(mode: Any) -> None:
    """Also with edges that no other query has."""
    order = {"n": sash.count(), "last": sash.last("n")}
    first = query(sash.sliding("20 seconds", "4 seconds"), order)
    more = {"n": sash.count(), "long": sash.count().over("13 seconds")}
    joined = query(sash.sliding("7 seconds", "3 seconds"), more)
    parts = list(batches(stream("disorder", 60), most=12))
    together = sash.share({"first": first}).stream("3 seconds", mode)
    alone = joined.stream("3 seconds", mode)
    together.push(parts[0])
    alone.push(parts[0])
    together.add("joined", joined, since="held")
    queries = {"first": first, "joined": joined}
    for i, part in enumerate(parts[1:]):
        right = alone.push(part)
        assert not differences(joined, rows_of(right), together.push(part)["joined"])
        if i == 1:
            together = sash.SharedStream.from_bytes(together.to_bytes(), sash.share(queries))
        if i == 2:
            together.remove("first")
    assert not differences(joined, rows_of(alone.close()), together.close()["joined"])


def counted(window: Any, **select: sash.Aggregate) -> sash.Query:
    return sash.Query(time="t", window=window, select=select or {"n": sash.count()})


def shown(made: dict[str, Any]) -> dict[str, Any]:
    return {name: table.to_pylist() for name, table in made.items()}


@pytest.mark.plain
def test_a_quiet_push_after_queries_have_changed() -> None:
    for since in (None, "held"):
        s = sash.share({n: counted(sash.sliding(20, 10)) for n in "qr"}).stream(lateness=5)
        s.push([{"t": 3}, {"t": 13}])
        if since:
            s.add("z", counted(sash.sliding(20, 10)), since="held")
        else:
            s.remove("q")
        assert all(not rows for rows in shown(s.push([{"t": 14}])).values())
        assert [row["n"] for row in shown(s.close())["r"]] == [1, 3, 2]


@pytest.mark.plain
def test_a_query_joins_after_another_was_taken_away() -> None:
    s = sash.share({"q": counted(sash.tumbling(10)), "r": counted(sash.tumbling(20))}).stream()
    s.push([{"t": 3}])
    s.remove("r")
    s.add("z", counted(sash.tumbling(10)), since="held")
    made = shown(s.push([{"t": 33}]))
    assert made["q"] == made["z"]
    assert len(made["z"]) == 1


@pytest.mark.plain
def test_a_query_joins_also_the_keys_that_no_batch_touches() -> None:
    """Its window ends before the next window of the queries that were there."""
    n = {"n": sash.count()}
    short = query(sash.tumbling(3), n)
    s, alone = sash.share({"q": query(sash.sliding(7, 3), n)}).stream(), short.stream()
    for part in ([{"t": 1, "k": "x"}, {"t": 1, "k": "y"}], [{"t": 2, "k": "x"}]):
        s.push(part)
        alone.push(part)
    s.add("short", short, since="held")
    for t in (3, 10):
        made = s.push([{"t": t, "k": "y"}])["short"].to_pylist()
        assert made == alone.push([{"t": t, "k": "y"}]).to_pylist()


@pytest.mark.plain
@pytest.mark.parametrize("before", ["now", "gone"])
def test_a_query_does_not_reach_into_what_a_lifetime_has_merged(before: str) -> None:
    ever = {"n": sash.count(), "ever": sash.count().over(sash.lifetime())}
    queries = {"q": query(sash.tumbling(10), ever), "r": query(sash.tumbling(10), FEW)}
    s = sash.share(queries).stream()
    first = [{"t": t, "k": "x", "i": 1, "x": 1.0} for t in range(46)]
    s.push(first)
    for event in first:
        s.push({**event, "t": event["t"] + 46})
    if before == "gone":
        s.remove("q")
    with pytest.raises(ValueError, match="what lies before 90 is one partial, for a lifetime"):
        s.add("long", query(sash.tumbling(50), {"n": sash.count()}), since="held")
    again = sash.SharedStream.from_bytes(s.to_bytes(), sash.share(queries))
    with pytest.raises(ValueError, match="what lies before 90 is one partial, for a lifetime"):
        again.add("long", query(sash.tumbling(50), {"n": sash.count()}), since="held")
    s.add("short", query(sash.tumbling(10), {"n": sash.count()}), since="held")
    assert s.push({"t": 100, "k": "x", "i": 1, "x": 1.0})["short"]["n"].to_pylist() == [2]


@pytest.mark.plain
@pytest.mark.parametrize("change", ["add", "remove"])
def test_an_interrupt_while_queries_change_leaves_a_sound_stream_or_none(change: str) -> None:
    """Ctrl-C between any two steps: all of it is done or nothing, or the stream refuses."""
    n = {"n": sash.count()}
    short = query(sash.tumbling(3), n)

    def started() -> sash.SharedStream:
        s = sash.share({"q": query(sash.sliding(7, 3), n), "short": short}).stream(lateness=2)
        for part in ([{"t": 1, "k": "x"}, {"t": 1, "k": "y"}], [{"t": 2, "k": "x"}]):
            s.push(part)
        return s

    def changed(s: sash.SharedStream) -> None:
        if change == "add":
            s.add("again", short, since="held")
        else:
            s.remove("short")

    def rest(s: sash.SharedStream) -> list[Any]:
        return [*(shown(s.push([{"t": t, "k": "y"}])) for t in (3, 12)), shown(s.close())]

    whole = started()
    changed(whole)
    right = [rest(started()), rest(whole)]
    ends = set()
    for file in ("shared_stream.py", "bundle_stream.py", "members.py", "state/shared.py"):
        s = started()
        with interrupted(0, file) as lines:
            changed(s)
        for line in range(1, lines[0] + 1, 2):
            s = started()
            with pytest.raises(KeyboardInterrupt), interrupted(line, file):
                changed(s)
            if s._turns.broken:
                with pytest.raises(RuntimeError, match="not sound any more"):
                    rest(s)
                ends.add(2)
            else:
                ends.add(right.index(rest(s)))
    assert ends >= {0, 2}


@pytest.mark.plain
def test_queries_change_before_the_first_push() -> None:
    s = sash.share({"q": counted(sash.tumbling(10))}).stream()
    s.add("z", counted(sash.tumbling(10), sum=sash.sum("x")), since="held")
    s.push(pa.table({"t": [1, 2], "x": [5, 6]}))
    assert [row["sum"] for row in shown(s.close())["z"]] == [11]
    s = sash.share(
        {"q": counted(sash.tumbling(10)), "z": counted(sash.tumbling(10), sum=sash.sum("x"))}
    ).stream()
    s.remove("z")
    s.push(pa.table({"t": [1, 2]}))
    assert [row["n"] for row in shown(s.close())["q"]] == [2]
    live = sash.share({"q": counted(sash.tumbling(10))}).stream(mode="live")
    changes = sash.Query(
        time="t", window=sash.tumbling(10), select={"n": sash.count()}, emit="changes"
    )
    with pytest.raises(ValueError, match="emit='changes'"):
        live.add("z", changes, since="held")


@pytest.mark.plain
def test_a_snapshot_after_all_queries_of_a_bundle_are_gone() -> None:
    queries = {"q": counted(sash.tumbling(10)), "r": counted(sash.tumbling(20))}
    queries["z"] = counted(sash.trailing(3), m=sash.count())
    s = sash.share(queries).stream()
    s.push([{"t": 3}])
    s.remove("r")
    s.remove("q")
    again = sash.SharedStream.from_bytes(s.to_bytes(), sash.share({"z": queries["z"]}))
    assert shown(again.close()) == shown(s.close())


@pytest.mark.plain
def test_a_batch_that_one_query_refuses_stops_nothing() -> None:
    queries = {"a": counted(sash.tumbling(10)), "b": counted(sash.trailing(5), sum=sash.sum("x"))}
    text = pa.table({"t": [2], "x": ["y"]})
    for refused in ([{"t": 2}], pa.table({"t": [2]}), text, pa.table({"t": [2], "sum": [1]})):
        s = sash.share(queries).stream()
        with pytest.raises((KeyError, TypeError, ValueError)):
            s.push(refused)
        s.push([{"t": 3, "x": 3}])
        assert [row["sum"] for row in shown(s.close())["b"]] == [3]


@pytest.mark.plain
def test_a_shared_stream_answers_as_of_a_time() -> None:
    queries = {"q": counted(sash.tumbling(10)), "z": counted(sash.trailing(3))}
    s = sash.share(queries).stream(lateness=5)
    s.push([{"t": 3}])
    assert s.query("z", at=4) == {"n": 1}
    with pytest.raises(ValueError, match="asks for the time up to a moment"):
        s.query("q", at=4)


@pytest.mark.plain
def test_late_rows_have_the_windows_of_their_query() -> None:
    """Two queries with the same windows, one of which reaches further back."""
    window, over = sash.tumbling(10), sash.count().over(30)
    queries = {
        "a": sash.Query(time="t", window=window, select={"n": sash.count()}),
        "b": sash.Query(time="t", window=window, select={"n": sash.count(), "m": over}),
    }
    shared, alone = sash.share(queries).stream(), {n: q.stream() for n, q in queries.items()}
    for batch in ([{"t": 3}, {"t": 12}], [{"t": 4}]):
        shared.push(batch)
        for one in alone.values():
            one.push(batch)
    late = {row["queries"][0]: row["reason"] for row in shared.late.to_pylist()}
    assert late == {name: one.late["reason"][0].as_py() for name, one in alone.items()}
    assert len(set(late.values())) == 2


@pytest.mark.plain
def test_trees_and_pyramids_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pushes of many rows are answered from pyramids, those of few from trees, of one state."""
    monkeypatch.setattr(shared_pyramids, "_WORTH", 200)
    windows = [sash.sliding(size * every, every) for size in (1, 3) for every in (7, 10, 13)]
    queries = {f"{i}": query(w, FEW) for i, w in enumerate(windows)}
    source = random.Random(1)
    events = [
        {"t": i // 4 + source.randint(0, 9), "k": "abcd"[i % 4], "i": i, "x": i / 7}
        for i in range(3000)
    ]
    ends = [0, 1000, 1004, 1010, 2000, 2001, 3000]
    parts = [pa.Table.from_pylist(events[low:high]) for low, high in pairwise(ends)]
    with tracing() as trace:
        compare(queries, parts, lateness=10, restore=True)
    assert "from a pyramid" in "".join(trace.steps)


@pytest.mark.plain
def test_an_answer_of_a_pyramid_that_does_not_exist_is_null(
    request: pytest.FixtureRequest,
) -> None:
    """The others of its row do, and the warning names the column as its query does."""
    request.getfixturevalue("eager")
    big = pa.table({"t": [1, 2, 11, 25], "x": [2**62, 2**62, 1, 1]})
    queries = {
        "short": query(sash.tumbling(1), {"sum": sash.sum("x")}, by=[]),
        "long": query(sash.tumbling(10), {"all": sash.sum("x"), "n": sash.count()}, by=[]),
    }
    stream = sash.share(queries).stream()
    with pytest.warns(RuntimeWarning, match="all: "):
        made = stream.push(big)
    assert made["long"]["all"].to_pylist() == [None, 1]
    assert made["long"]["n"].to_pylist() == [2, 1]
    assert made["short"]["sum"].to_pylist() == [2**62, 2**62, 1]


@pytest.mark.plain
@pytest.mark.usefixtures("eager")
def test_what_cannot_be_combined_is_left_to_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pyramid combines slices that no window holds together; should `combine` raise there, trees
    answer what is due."""
    answers = Pyramid.answers
    failed: list[Pyramid] = []

    def sometimes(self: Pyramid, *asked: Any) -> Any:
        failed.append(self)
        if len(failed) % 2:
            raise PyramidFailed("combine raised")
        return answers(self, *asked)

    monkeypatch.setattr(Pyramid, "answers", sometimes)
    test_all_windows_together("disorder", "final")
    assert len(failed) > 3


@pytest.mark.parametrize(
    "empty",
    [
        [],
        pandas.DataFrame(),
        pandas.DataFrame(columns=["t", "k"]),
        pandas.DataFrame({"t": [], "k": []}, dtype=float),
    ],
    ids=["no events", "no columns", "no types", "floats"],
)
def test_the_first_batch_may_be_empty_and_have_no_types(empty: Any) -> None:
    n = {"n": sash.count()}
    q = sash.Query(time="t", by=["k"], window=sash.tumbling(10), select=n)
    each = sash.Query(time="t", by=["k"], window=sash.rows(2), select=n)
    s = sash.share({"q": q, "each": each}).stream()
    found = s.push(empty)
    assert {name: len(table) for name, table in found.items()} == {"q": 0, "each": 0}
    assert all(type(table) is type(empty) or empty == [] for table in found.values())
    s.push(pandas.DataFrame({"t": [1, 2], "k": ["a", "a"]}))
    assert [len(table) for table in s.close().values()] == [1, 1]
    with pytest.raises(KeyError, match="query 'q' reads column 'k', which is not there"):
        sash.share({"q": q, "each": each}).stream().push(pandas.DataFrame(columns=["t"]))


@pytest.mark.parametrize("made_of", ["queries", "statements"])
def test_what_a_stream_says_of_itself_waits_for_its_turn(made_of: str) -> None:
    """Another thread may be in the middle of a push, or adding a query."""
    q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
    other: Any = sash.sql("SELECT count(*) AS n FROM e GROUP BY window(t, '7 microseconds')")
    s: Any = sash.share({"a": q, "b": q if made_of == "queries" else other}).stream(lateness=5)
    s.push([{"t": 12}, {"t": 30}, {"t": 1}])
    reads = {
        "counts": lambda: s.counts,
        "time": lambda: s.time,
        "watermark": lambda: s.watermark,
        "delays": lambda: s.delays,
        "late": lambda: s.late.num_rows,
        "state": s.state_size,
    }
    for name, read in reads.items():
        found: list[Any] = []
        thread = threading.Thread(target=lambda read=read, found=found: found.append(read()))
        with s._turns.between():
            thread.start()
            thread.join(0.2)
            assert not found, f"{name} does not wait"
        thread.join(10)
        assert found == [read()]
