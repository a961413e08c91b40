"""What `explain` says of a query, and what a sample takes beside what was expected."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.explain import Explanation
from sash.testing.fuzz.streams import SELECTS
from sash.testing.streams import DRIVEN, WINDOWS, stream

SAMPLE = stream("disorder", 250, plain=True)
#: Windows of every kind, of which a sample of some minutes has enough.
ALIGNED = [w for w in WINDOWS if w not in (sash.tumbling(1), sash.sliding("1 day", "2 hours"))]
BY_EVENTS = [
    *(DRIVEN[i] for i in (0, 2, 4, 6, 7, 9)),
    sash.trailing("9 seconds"),
    sash.trailing("9 seconds", exclude="row"),
    sash.trailing("9 seconds", exclude="ties"),
    sash.lifetime(),
    sash.lifetime(exclude="row"),
    sash.session("3 seconds"),
    sash.window(keep=sash.rows(4), every="2 seconds"),
]


def query(window: Any, select: str = "numbers", **more: Any) -> sash.Query:
    return sash.Query(time="t", by=["k"], window=window, select=SELECTS[select], **more)


def ratio(found: Explanation, what: str) -> float:
    """What was expected, over what was measured."""
    assert found.expected is not None
    assert found.measured is not None
    return float(getattr(found.expected, what)) / max(getattr(found.measured, what), 1)


# Expected and measured


@pytest.mark.plain
@pytest.mark.parametrize("select", SELECTS)
@pytest.mark.parametrize("window", ALIGNED, ids=repr)
def test_a_table_takes_what_is_expected(window: Any, select: str) -> None:
    found = query(window, select).explain(data=SAMPLE)
    assert ratio(found, "rows") == 1
    assert 1 <= ratio(found, "combines") <= 1.4
    if select != "objects":
        assert 0.5 <= ratio(found, "most_bytes") <= 1.01


@pytest.mark.plain
@pytest.mark.parametrize("window", BY_EVENTS, ids=repr)
def test_a_table_of_windows_that_events_make_takes_at_most_what_is_expected(window: Any) -> None:
    assert 1 <= ratio(query(window).explain(data=SAMPLE), "combines") <= 4


@pytest.mark.plain
@pytest.mark.parametrize("select", SELECTS)
@pytest.mark.parametrize("window", ALIGNED, ids=repr)
def test_a_stream_takes_what_is_expected_within_a_factor_of_two(window: Any, select: str) -> None:
    late = "10 seconds"
    found = query(window, select).stream(lateness=late).explain(data=SAMPLE, batch=40)
    assert found.measured is not None
    assert found.measured.events == SAMPLE.num_rows
    assert ratio(found, "rows") == ratio(found, "most_entries") == 1
    assert 0.5 <= ratio(found, "combines") <= 2
    assert 0.5 <= ratio(found, "most_bytes") <= 2


@pytest.mark.plain
@pytest.mark.parametrize("mode", ["final", "live"])
@pytest.mark.parametrize("window", [sash.sliding("10 s", "2 s"), sash.trailing("9 s")], ids=repr)
def test_a_live_stream_too(window: Any, mode: Any) -> None:
    late = "10 seconds"
    found = query(window).stream(lateness=late, mode=mode).explain(data=SAMPLE, batch=40)
    assert 0.4 <= ratio(found, "combines") <= 2.5


@pytest.mark.plain
@pytest.mark.parametrize("late", [0, 300])
def test_live_windows_that_are_far_more_than_events(late: int) -> None:
    """Nearly all combines are those of the rows."""
    sample = pa.table({"t": [(i * 7919) % 4000 for i in range(300)]}).sort_by("t")
    q = sash.Query(time="t", window=sash.sliding(1000, 1), select={"n": sash.count()})
    found = q.stream(lateness=late, mode="live").explain(data=sample, batch=30)
    assert found.measured is not None
    assert found.measured.rows > 10 * found.measured.events
    assert 0.5 <= ratio(found, "combines") <= 2


@pytest.mark.plain
@pytest.mark.parametrize("window", BY_EVENTS, ids=repr)
def test_a_stream_of_windows_that_events_make_is_near_what_is_expected(window: Any) -> None:
    found = query(window).stream(lateness="3 seconds").explain(data=SAMPLE, batch=40)
    assert 0.4 <= ratio(found, "combines") <= 2.5


@pytest.mark.plain
@pytest.mark.parametrize("rows", [0, 1])
def test_a_sample_may_be_small(rows: int) -> None:
    q, sample = query(sash.sliding("10 s", "2 s")), SAMPLE.slice(0, rows)
    for found in (q.explain(data=sample), q.stream().explain(data=sample)):
        assert found.measured is not None
        assert (found.measured.events, found.measured.rows) == (rows, 5 * rows)


@pytest.mark.plain
def test_a_stream_of_rows_that_cannot_be_used_and_with_a_condition() -> None:
    """Rows without a time are late, and a condition leaves rows out; batches are as they were."""
    times = [t if i % 7 else None for i, t in enumerate(SAMPLE["t"].to_pylist())]
    sample = SAMPLE.set_column(0, "t", pa.array(times, SAMPLE.schema.field("t").type))
    q = query(sash.sliding("10 s", "2 s"), where=pc.field("i") > 0)
    found = q.stream(lateness="10 s").explain(data=sample, batch=40)
    assert found.measured is not None
    chosen = [i > 0 for i in SAMPLE["i"].to_pylist()]
    assert found.measured.events == sum(
        t is not None and some for t, some in zip(times, chosen, strict=True)
    )
    assert ratio(found, "rows") == ratio(found, "most_entries") == 1
    assert 0.5 <= ratio(found, "combines") <= 2


@pytest.mark.plain
def test_the_state_of_a_full_window_is_what_is_said_before() -> None:
    """A stream with an event in each slice holds as many entries as `kept` says, at most."""
    times = [i * 1_000_000 for i in range(300)]
    sample = pa.table({"t": times, "x": [1.0] * 300})
    q = sash.Query(time="t", window=sash.sliding("60 s", "1 s"), select={"s": sash.sum("x")})
    found = q.stream(lateness="30 s").explain(data=sample, batch=1)
    assert found.measured is not None
    assert found.kept.entries is not None
    assert found.kept.bytes is not None
    assert found.measured.most_entries == found.kept.entries
    assert 0.5 <= found.measured.most_bytes / found.kept.bytes <= 2


@pytest.mark.plain
@pytest.mark.parametrize(("mode", "span"), [("final", 20), ("live", 50)])
def test_a_live_trailing_stream_keeps_the_times_of_its_lateness_too(mode: Any, span: int) -> None:
    """An event every second: there is an entry for each second that is said to be kept."""
    sample = pa.table({"t": [i * 1_000_000 for i in range(200)]})
    q = sash.Query(time="t", window=sash.trailing("20 s"), select={"n": sash.count()})
    found = q.stream(lateness="30 s", mode=mode).explain(data=sample, batch=1)
    assert found.measured is not None
    assert f"each distinct time of the last {span} seconds" in found.kept.words
    assert span <= found.measured.most_entries <= span + 1


@pytest.mark.plain
@pytest.mark.parametrize("exclude", [None, "row", "ties"])
def test_a_lifetime_keeps_one_partial_a_key(exclude: Any) -> None:
    found = query(sash.lifetime(exclude=exclude)).stream().explain(data=SAMPLE, batch=40)
    assert found.kept.entries == 1
    assert "one partial a key" in found.kept.words
    assert found.measured is not None
    assert found.measured.most_entries <= len(set(SAMPLE["k"].to_pylist()))


# Which way, and why


@pytest.mark.plain
def test_the_steps_that_a_sample_took_are_named() -> None:
    many = sash.Query(time="t", window=sash.tumbling("5 s"), select={"n_": sash.count()})
    first = sash.Query(time="t", window=sash.tumbling("5 s"), select={"n_": sash.first("x")})
    in_order = SAMPLE.sort_by("t")
    assert many.explain(data=SAMPLE).taken[0].startswith("rows combined by place")
    assert many.explain(data=in_order).taken == ("rows in order",)
    assert first.explain(data=SAMPLE).taken == ("rows sorted by key and time",)
    assert "sorted" in first.explain(SAMPLE).steps[0].what
    assert "sorted" not in many.explain(SAMPLE).steps[0].what


@pytest.mark.parametrize(
    ("window", "held", "slices", "lengths", "slicing"),
    [
        (sash.sliding("1 hour", "1 minute"), 60, 60, (60_000_000,), "panes"),
        (sash.sliding(5, 2), 3, 5, (1, 1), "pairs"),
        (sash.sliding(7, 3), 3, 5, (1, 2), "pairs"),
        (sash.tumbling(5), 1, 1, (5,), "panes"),
        (sash.cumulate(6, 2), 3, 3, (2,), "panes"),
        (sash.sliding("1 month", "1 day", timezone="Europe/Berlin"), 31, 31, None, "panes"),
        (sash.trailing(5), None, None, None, None),
    ],
)
def test_windows_and_slices_are_counted(
    window: Any, held: Any, slices: Any, lengths: Any, slicing: Any
) -> None:
    found = query(window).explain().windows
    assert (found.per_event, found.slices, found.lengths, found.slicing) == (
        held,
        slices,
        lengths,
        slicing,
    )


def test_the_slices_are_drawn() -> None:
    """Windows of 5 every 2: they end at odd times, and start at even ones."""
    assert list(query(sash.sliding("5 min", "2 min")).explain().windows.drawing) == [
        "0   1   2   3   4   5   6   7   8   9  min",
        "|   |   |   |   |   |   |   |   |   |   edges; a slice is what lies between two",
        "[-------------------)",
        "        [-------------------)",
        "                [-------------------)",
    ]
    long = query(sash.sliding("1 hour", "1 minute")).explain().windows.drawing
    assert long[2] == "[---------------------⋯--------------)"


@pytest.mark.parametrize(
    ("window", "drawn"),
    [
        (sash.trailing("1 hour", closed="right"), r"\(-+\]   .* over 1 hour up to it"),
        (sash.trailing("1 hour", exclude="row"), r"\[-+\)   .* up to it, without itself"),
        (sash.lifetime(delay="1 hour"), r"\[-+\]   x   .* over all events up to 1 hour before it"),
    ],
    ids=repr,
)
def test_the_ends_of_a_trailing_window_are_drawn(window: Any, drawn: str) -> None:
    *_, line = query(window).explain().windows.drawing
    assert re.fullmatch(drawn, line.strip())


@pytest.mark.parametrize("window", [*WINDOWS, *DRIVEN, *BY_EVENTS], ids=repr)
def test_every_window_is_drawn_and_fits_a_page(window: Any) -> None:
    for found in (query(window).explain(SAMPLE), query(window).stream().explain(SAMPLE)):
        text = str(found)
        assert repr(window)[:20] in text
        drawn = max(len(line) for line in found.windows.drawing)
        assert drawn <= 130
        assert json.loads(json.dumps(found.to_dict()))["windows"]["kind"] == window.kind


def test_aggregates_that_share_a_partial_are_named() -> None:
    (numbers,) = query(sash.tumbling(5)).explain(SAMPLE).partials
    assert numbers.runs == "compiled"
    assert numbers.names == ("many", "total", "most", "mean")
    select = {"a": sash.sum("x"), "b": sash.mean("x"), "c": sash.max("x")}
    q = sash.Query(time="t", window=sash.tumbling(5), select=select)
    (shared,) = q.explain(SAMPLE).partials
    assert shared.shares == {"a": "b"}
    assert (shared.words, shared.bytes) == (3, 24)


def test_without_a_schema_what_depends_on_types_is_left_open() -> None:
    found = query(sash.tumbling(5)).explain()
    assert found.partials[0].runs == "unknown"
    assert "give a schema or a table" in str(found)


def test_types_come_from_a_schema_or_from_a_table_of_any_kind() -> None:
    q = query(sash.tumbling(5))
    wanted = q.explain(SAMPLE.schema).partials
    frame = SAMPLE.to_pandas()
    late = frame.assign(x=[None] * 240 + [1.0] * 10).astype({"x": object})
    for table in (SAMPLE, frame, late, SAMPLE.to_reader().read_next_batch()):
        assert q.explain(table).partials == wanted


# Warnings


def warned(found: Explanation, text: str) -> bool:
    return any(text in warning for warning in found.warnings)


def test_a_lone_event_in_very_many_windows_is_warned_of() -> None:
    window = sash.sliding("1 day", "1 second")
    assert warned(query(window).explain(), "each of 86,400 windows")
    assert not query(window, emit="changes").explain().warnings
    assert not query(sash.sliding("1 hour", "1 minute")).explain().warnings


def test_order_without_a_tie_is_warned_of() -> None:
    window = sash.tumbling(5)
    assert warned(query(window, "in order").explain(SAMPLE), "first, last, own depend on the order")
    assert not query(window, "in order", tie="n").explain(SAMPLE).warnings
    assert not query(window).explain(SAMPLE).warnings


def test_a_lateness_that_keeps_much_state_is_warned_of() -> None:
    q = query(sash.sliding("1 minute", "1 second"))
    found = q.stream(lateness="1 day").explain()
    assert warned(found, "keeps 86,460 slices a key, where windows need 60")
    assert not q.stream(lateness="30 seconds").explain().warnings


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (sash.trailing("1 minute"), "events of the last 1 day, where windows hold those of 1 minu"),
        (sash.window(keep="1 minute", every=sash.rows(5)), "windows hold those of 1 minute"),
        (sash.session("1 minute"), "time of the last 1 day, where sessions need those of 1 minute"),
    ],
    ids=repr,
)
def test_a_lateness_that_is_longer_than_windows_that_events_make(window: Any, text: str) -> None:
    q = query(window)
    found = q.stream(lateness="1 day").explain()
    assert warned(found, "a lateness of 1 day keeps")
    assert warned(found, text)
    assert not q.stream(lateness="30 seconds").explain().warnings
    assert not q.stream().explain().warnings


def test_windows_without_a_length_and_longer_sizes_are_not_compared_with_the_lateness() -> None:
    for window in (sash.lifetime(), sash.rows(3), sash.session("i")):
        assert not query(window).stream(lateness="1 day").explain().warnings
    select = {"n": sash.count(), "week": sash.count().over("7 days")}
    q = sash.Query(time="t", window=sash.trailing("1 minute"), select=select)
    assert not q.stream(lateness="1 day").explain().warnings


def test_python_objects_are_warned_of() -> None:
    q = query(sash.tumbling(5), "objects", tie="n")
    found = query(sash.tumbling(5), "objects").stream().explain(SAMPLE)
    assert warned(found, "all runs in plain Python")
    assert [partial.runs for partial in found.partials] == ["compiled", "python"]
    assert "labels" in found.partials[0].why
    assert "s has text" in found.partials[1].why
    # over a whole table text is read by number, and lists are ranges of rows
    assert not q.explain(SAMPLE).warnings


def test_a_quantile_depends_on_no_order() -> None:
    select = {"middle": sash.median("x"), "n": sash.count()}
    found = sash.Query(time="t", window=sash.tumbling(5), select=select).explain(SAMPLE)
    assert not found.warnings
    assert "ranges of rows" in str(found)
    assert "order of events" not in str(found)


def test_what_cannot_run_is_refused_as_it_would_be() -> None:
    with pytest.raises(ValueError, match="lifetime"):
        query(sash.lifetime()).stream(mode="live").explain()
    with pytest.raises(KeyError, match="not there"):
        query(sash.tumbling(5)).explain(SAMPLE.drop_columns(["x"]))
    with pytest.raises(ValueError, match="at least one row"):
        query(sash.tumbling(5)).stream().explain(data=SAMPLE, batch=0)


@pytest.mark.parametrize("lateness", ["0 seconds", "20 hours", "30 days"])
@pytest.mark.parametrize("made", [sash.first("x"), sash.sum("x")], ids=["first", "sum"])
@pytest.mark.parametrize("window", [sash.sliding("3 hours", "1 minute"), sash.tumbling("1 hour")])
def test_no_combines_are_expected_less_than_none(window: Any, made: Any, lateness: str) -> None:
    """If the order of events matters, nobody knows how many entries a window will have."""
    q = sash.Query(time="t", by=["k"], window=window, select={"a": made})
    for mode in ("final", "live"):
        costs = q.stream(lateness=lateness, mode=mode).explain({"t": [1], "k": [1], "x": [1]}).costs
        assert min(costs.per_event, costs.per_entry, costs.per_row) >= 0
        assert "-" not in costs.words
