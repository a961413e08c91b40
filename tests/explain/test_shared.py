"""What `explain` says of several queries that share what they can."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest

import sash
from sash import state
from sash.explain.bundles import in_shared_records
from sash.state import shared_pyramids
from sash.testing.fuzz.streams import SELECTS
from sash.testing.streams import WINDOWS, stream

SAMPLE = stream("disorder", 150, plain=True)


def query(window: Any, select: str = "numbers", **more: Any) -> sash.Query:
    more = {"by": ["k"]} | more
    return sash.Query(time="t", window=window, select=SELECTS[select], **more)


def test_flat_fit_example_1() -> None:
    """Slides of 2 and 4: the composite slide is 4, with two slices; ranges 6 and 8 read 3 and 4."""
    queries = {"fast": query(sash.sliding(6, 2)), "daily": query(sash.sliding(8, 4))}
    (bundle,) = sash.share(queries).explain(SAMPLE).bundles
    assert (bundle.slide, bundle.slices, bundle.common) == (4, 2, 1)
    assert bundle.held == {"fast": 3, "daily": 4}
    assert bundle.shared["count()"] == ("fast.many", "daily.many")
    assert bundle.drawing[2:] == (
        "[-----------)               fast",
        "    [-----------)",
        "[---------------)           daily",
        "        [---------------)",
    )


def test_how_a_bundle_runs_and_what_it_keeps() -> None:
    """Over a table in two stacks for each query, or a pyramid; over a stream in one tree, which
    keeps the slices of the longest window: 4, and one for late events."""
    queries = {"fast": query(sash.sliding(6, 2)), "daily": query(sash.sliding(8, 4))}
    (bundle,) = sash.share(queries).explain(SAMPLE).bundles
    assert bundle.kept.entry_bytes == 8 * 7
    assert "two stacks" in bundle.steps[1].what
    assert bundle.costs.per_event == bundle.costs.per_row == 1
    more = queries | {"third": query(sash.tumbling(10))}
    assert "pyramid" in str(sash.share(more).explain())
    found = sash.share(queries).stream(lateness=2).explain(SAMPLE)
    (bundle,) = found.bundles
    assert bundle.kept.entries == 4 + 1
    assert bundle.kept.bytes > 0
    assert "finger B-tree" in bundle.steps[1].what
    assert "many windows fall due" in str(found)
    given = bundle.steps, bundle.kept, bundle.costs
    steps, _, _ = in_shared_records(*given, "a store", "a batch")
    assert [step.what for step in steps][::3] == [bundle.steps[0].what, bundle.steps[-1].what]
    assert "many windows fall due" not in str(sash.share(queries).stream(mode="live").explain())
    assert "about 1 an event" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["bundles"][0]["kept"]["entries"] == 5


def test_what_shares_the_intake_only_is_said_and_why() -> None:
    queries = {
        "a": query(sash.tumbling("5 s")),
        "b": query(sash.tumbling("5 s"), by=[]),
        "c": query(sash.rows(3)),
    }
    for found in (
        sash.share(queries).explain(SAMPLE),
        sash.share(queries).stream(lateness="1 s").explain(SAMPLE),
    ):
        text = str(found)
        assert "keys are none here and k there, so it shares the intake only" in text
        assert "events make the windows of rows(3)" in text
        assert list(found.queries) == ["a", "b", "c"]
        assert len(json.loads(json.dumps(found.to_dict()))["bundles"]) == 3


def test_warnings_have_the_name_of_their_query() -> None:
    queries = {"a": query(sash.sliding("1 day", "1 s")), "b": query(sash.tumbling("1 s"))}
    (warning,) = sash.share(queries).explain().warnings
    assert warning.startswith("a: one lone event")


@pytest.mark.plain
@pytest.mark.parametrize("seed", range(6))
def test_a_sample_takes_at_most_what_is_expected(seed: int) -> None:
    source = random.Random(seed)
    windows = source.sample([w for w in WINDOWS if w != sash.tumbling(1)], source.randint(2, 5))
    queries = {f"q{i}": query(window) for i, window in enumerate(windows)}
    (bundle,) = sash.share(queries).explain(data=SAMPLE).bundles
    assert bundle.expected is not None
    assert bundle.measured is not None
    apart = [sash.share({"q": q}).run(SAMPLE)["q"].num_rows for q in queries.values()]
    assert bundle.measured.rows == sum(apart)
    assert 1 <= bundle.expected.combines / bundle.measured.combines <= 1.5


@pytest.mark.plain
def test_events_are_combined_once_for_many_queries() -> None:
    """A query more takes what its slices and rows take, and not its events."""
    sample = stream("disorder", 600, plain=True)
    spent = []
    for many in (2, 10):
        queries = {f"q{i}": query(sash.tumbling("2 minutes"), by=[]) for i in range(many)}
        (bundle,) = sash.share(queries).explain(data=sample).bundles
        assert bundle.measured is not None
        spent.append(bundle.measured.combines)
    assert spent[0] > 550
    assert spent[1] - spent[0] < 100


@pytest.mark.plain
@pytest.mark.parametrize("mode", ["final", "live"])
@pytest.mark.parametrize("seed", range(3))
def test_a_stream_of_a_sample_takes_about_what_is_expected(seed: int, mode: Any) -> None:
    source = random.Random(seed)
    windows = source.sample([w for w in WINDOWS if w != sash.tumbling(1)], source.randint(2, 5))
    queries = {f"q{i}": query(window) for i, window in enumerate(windows)}
    sample = stream("disorder", 400, plain=True)
    streaming = sash.share(queries).stream(lateness="3 s", mode=mode)
    (bundle,) = streaming.explain(data=sample, batch=50).bundles
    assert bundle.expected is not None
    assert bundle.measured is not None
    assert 1 / 2 <= bundle.expected.combines / bundle.measured.combines <= 2
    emitted = dict.fromkeys(queries, 0)
    for at in range(0, 400, 50):
        for name, rows in streaming.push(sample.slice(at, 50)).items():
            emitted[name] += rows.num_rows
    for name, rows in streaming.close().items():
        emitted[name] += rows.num_rows
    assert bundle.measured.rows == sum(emitted.values())
    assert "slices of" in str(streaming.explain(data=sample, batch=50))


@pytest.mark.plain
@pytest.mark.parametrize(("keys", "batch"), [(3, 1500), (1, 500), (6, 3000)])
def test_what_pyramids_take_is_near_what_is_expected(
    keys: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 queries without common edges, which have three rows for each slice."""
    monkeypatch.setattr(shared_pyramids, "_WORTH", 100)
    answered = []
    real = state.shared.windows_due
    monkeypatch.setattr(state.shared, "windows_due", lambda *a: answered.append(a) or real(*a))
    queries = {f"q{i}": query(sash.sliding(i * (1 + i % 2), i)) for i in range(20, 40)}
    source = random.Random(1)
    times = sorted(source.randrange(1500) for _ in range(3000))
    columns = {c: [source.randrange(100) for _ in times] for c in SAMPLE.column_names}
    sample = pa.table(columns | {"t": times, "k": [source.randrange(keys) for t in times]})
    streaming = sash.share(queries).stream(lateness=5)
    (bundle,) = streaming.explain(data=sample, batch=batch).bundles
    assert answered
    assert bundle.expected is not None
    assert bundle.measured is not None
    assert 1 / 2 <= bundle.expected.combines / bundle.measured.combines <= 2


SIZES = {
    "n": sash.count(),
    "long": sash.count().over("31 seconds"),
    "ever": sash.sum("i").over(sash.lifetime()),
}


@pytest.mark.plain
def test_a_sample_of_several_sizes_is_counted() -> None:
    """Over a table at most what is expected, on a stream within a factor of two; and the state is
    that of the longest size."""
    sized = sash.Query(time="t", by=["k"], window=sash.sliding("6 s", "2 s"), select=SIZES)
    found = sized.explain(data=SAMPLE)
    assert found.expected is not None
    assert found.measured is not None
    assert found.measured.rows == sized.run(SAMPLE).num_rows
    assert 1 <= found.expected.combines / found.measured.combines <= 2
    assert "at most 4.8 a slice (the queues of 3 sizes) and 1 a row and size" in found.costs.words
    assert found.windows.slices == 6
    assert found.windows.drawing[2].split()[-3:] == ["over", "6", "seconds"]
    assert found.partials[0].shares == {"long": "n"}
    sample = stream("disorder", 400, plain=True)
    for mode in ("final", "live"):
        streaming = sized.stream(lateness="3 s", mode=mode)
        found = streaming.explain(data=sample, batch=50)
        assert found.expected is not None
        assert found.measured is not None
        assert 1 / 2 <= found.expected.combines / found.measured.combines <= 2
        most = 0
        for at in range(0, 400, 50):
            streaming.push(sample.slice(at, 50))
            most = max(most, streaming.state_size()["slices"])
        assert found.measured.most_entries == most
        # slices of a second: 31 in the longest size, and 3 for the lateness
        assert found.kept.entries == 34
        assert (
            "the last 31 seconds, the longest size, in one copy, and one partial of all before"
            in (found.kept.words)
        )


@pytest.mark.plain
@pytest.mark.parametrize("stream", [False, True])
def test_a_sample_of_queries_that_share_the_intake_only_is_counted_too(stream: bool) -> None:
    queries = {"a": query(sash.tumbling("2 s")), "b": query(sash.session("2 s"))}
    shared = sash.share(queries)
    found = (shared.stream(lateness="3 s") if stream else shared).explain(data=SAMPLE)
    for bundle in found.bundles:
        (name,) = bundle.names
        alone = queries[name].stream(lateness="3 s") if stream else queries[name]
        assert (
            bundle.measured == found.queries[name].measured == alone.explain(data=SAMPLE).measured
        )
        assert bundle.measured is not None
    assert str(found).count("events of the sample made") == 2


@pytest.mark.plain
def test_sizes_of_a_month_fit_a_page() -> None:
    sizes = {f"n{size}": sash.count().over(size) for size in ("1 h", "24 h", "7 d", "30 d", "90 s")}
    found = sash.Query(time="t", window=sash.sliding("1 h", "1 min"), select=sizes).explain()
    assert max(map(len, found.windows.drawing)) <= 130
    assert found.windows.slices == 120
    assert json.loads(json.dumps(found.to_dict()))["windows"]["lengths"] == [30_000_000] * 2


@pytest.mark.plain
def test_slices_are_counted_though_the_composite_slide_is_huge() -> None:
    windows = {"a": sash.sliding(3_000_009, 1_000_003), "b": sash.sliding(1_999_966, 999_983)}
    queries = {name: query(window) for name, window in windows.items()}
    (bundle,) = sash.share(queries).stream(lateness="1 s").explain().bundles
    assert bundle.slices is None
    assert bundle.kept is not None
    many = []
    for n in range(-2, 62):
        low, high = windows["a"].start(n), windows["a"].end(n) + 1_000_000
        edges = {windows[w].start(i) for w in windows for i in range(-5, 80)}
        many.append(1 + sum(low < edge < high for edge in edges))
    assert bundle.kept.entries == max(many)


@pytest.mark.plain
def test_a_running_stream_says_which_queries_share_now() -> None:
    """With the columns that it has seen; a query that sees only the events from now on does not
    share the slices of the others."""
    n = {"n": sash.count()}

    def counts(size: int) -> sash.Query:
        return sash.Query(time="t", by=["k"], window=sash.tumbling(size), select=n)

    s = sash.share({"short": counts(10), "gone": counts(40)}).stream()
    assert s.explain().bundles[0].kept.bytes is None
    s.push({"t": [1, 2], "k": ["a", "b"]})
    assert s.explain().bundles[0].kept.bytes > 0
    s.add("held", counts(20), since="held")
    s.add("new", counts(20))
    s.remove("gone")
    held, new = s.explain({"t": [1], "k": ["a"]}, data={"t": [1], "k": ["a"]}).bundles
    assert (held.names, held.measured.rows) == (("short", "held"), 2)
    assert held.held == {"short": 1, "held": 2}
    assert (new.names, new.measured.rows) == (("new",), 1)
    assert new.why == "'new' and 'short' began at different times and hold different events"


@pytest.mark.plain
def test_a_shared_stream_in_a_store_says_so() -> None:
    """Also with a `tie`, which a stream in memory refuses."""
    sample = {"t": [1, 2], "k": ["a", "b"], "o": [1, 0]}
    for select, tie in (({"n": sash.count()}, None), ({"last": sash.last("o")}, "o")):
        windows = {"short": sash.tumbling(10), "long": sash.tumbling(20), "rows": sash.rows(3)}
        shared = sash.share(
            {
                name: sash.Query(time="t", by=["k"], window=window, select=select, tie=tie)
                for name, window in windows.items()
            }
        )
        s = shared.stream(5, store=sash.stores.memory(), name="s")
        found = s.explain(data=sample)
        assert found.place == "over a stream in a store, mode='final'"
        both, alone = found.bundles
        assert "records in the store" in both.steps[1].what
        assert "sync" in both.steps[-1].what
        assert both.kept.bytes is None
        assert both.measured.rows == 4
        assert alone.measured.rows == 2
        assert found.queries["rows"].place.startswith("Query.stream, in a store")
        s.push(sample)
        assert s.explain().bundles[0].steps == both.steps
