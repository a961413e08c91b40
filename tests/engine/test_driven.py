"""Windows that events drive, over tables, against brute force."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.engine.test_run import OWN

import sash
from sash import policies
from sash.testing.queries import answers, differences
from sash.testing.streams import DRIVEN, STREAMS, stream

SECOND = 1_000_000
#: Each policy has a kernel of its own, and a few compiled ones will do.
PLAIN = os.environ.get("SASH_JIT") == "0"

WINDOWS = (
    sash.trailing("5 seconds"),
    sash.trailing("5 seconds", closed="left"),
    sash.trailing("2 seconds", closed="right"),
    sash.trailing("2 seconds", closed="none"),
    sash.trailing("5 seconds", exclude="row"),
    sash.trailing("3 seconds", exclude="group"),
    sash.trailing("5 seconds", exclude="ties", closed="right"),
    sash.trailing("4 seconds", delay="2 seconds"),
    sash.trailing("4 seconds", delay="2 seconds", closed="none"),
    sash.trailing("1 day"),
    sash.trailing(1),
    sash.lifetime(),
    sash.lifetime(closed="left"),
    sash.lifetime(exclude="row"),
    sash.lifetime(exclude="ties"),
    sash.lifetime(delay="3 seconds"),
    *DRIVEN,
)

POLICIES = (
    policies.at_most(3),
    policies.at_most(0),
    policies.at_most_sum(6, column="small"),
    policies.at_most_span(3 * SECOND, column="t"),
    policies.since_maximum(column="x"),
    policies.since_longest_run(column="i"),
    policies.limited_by("small"),
    policies.any_of(policies.at_most(4), policies.since_maximum(column="x")),
    policies.any_of(policies.at_most_sum(9, "small"), policies.at_most_span(2 * SECOND, "t")),
    sash.policy(
        lambda total, old: total - old >= 3,
        over=sash.operators.count.ignore_nulls(),
        columns="i",
        name="three_known",
    ),
)

#: Compiled, and on objects; both with an operator that does not commute.
SELECT = {
    "rows": sash.count(),
    "top": sash.max("x"),
    "mean": sash.mean("x"),
    "who": sash.arg_max("n", "x"),
    "newest": sash.last("i"),
    "all": sash.collect("n"),
}


def check(events: Any, **given: Any) -> pa.Table:
    """Run a query over events, judge it, and return its result."""
    q = sash.Query(**{"time": "t", "window": WINDOWS[0], "select": SELECT} | given)
    found = q.run(events)
    assert not differences(q, answers(q, events), found)
    return found


@pytest.mark.thin
@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_on_every_stream_and_window(kind: str, window: Any) -> None:
    check(stream(kind, 50), window=window, by=["k"])


@pytest.mark.thin
@pytest.mark.parametrize("kind", ["ties", "disorder", "gaps"])
@pytest.mark.parametrize("policy", POLICIES if PLAIN else POLICIES[2:5], ids=repr)
def test_policies_as_windows(kind: str, policy: Any) -> None:
    events = stream(kind, 50)
    small = [None if i % 11 == 5 else i * 7 % 5 for i in range(50)]
    events = events.append_column("small", pa.array(small, pa.int64()))
    check(events, window=policy, by=["k"])
    check(events, window=policy, tie="n")


@pytest.mark.plain
def test_the_columns_of_a_policy() -> None:
    events = {"t": [1, 2, 3], "x": [5, 4, 3], "y": [1, 1, 1]}

    def held(policy: Any, **select: Any) -> Any:
        q = sash.Query(time="t", window=policy, select=select)
        return q.run(events)["held"].to_pylist()

    # the one column that is selected, its place among them, its name
    assert held(policies.at_most_sum(7), held=sash.collect("x")) == [[5], [4], [4, 3]]
    both = {"held": sash.collect("x"), "other": sash.sum("y")}
    assert held(policies.at_most_sum(2, column=1), **both) == [[5], [5, 4], [4, 3]]
    assert held(policies.at_most_sum(2, column="y"), held=sash.collect("x"))[2] == [4, 3]
    assert held(policies.at_most(2), held=sash.count()) == [1, 2, 2]
    with pytest.raises(ValueError, match=r"reads 1 column\(s\), and the aggregates read 2; name"):
        held(policies.at_most_sum(7), **both)
    with pytest.raises(
        ValueError, match="reads the selected column number 3, and the selected columns are x"
    ):
        held(policies.at_most_sum(7, column=3), held=sash.collect("x"))
    with pytest.raises(TypeError, match=r"by its name, and columns have names in a sash\.Query"):
        sash.aggregators.Amta(sash.operators.max, policy=policies.at_most_sum(2, column="y"))


@pytest.mark.parametrize(
    ("window", "column", "message"),
    [
        (sash.delta("y", 1), ["a"], r"'y' of a delta has type string; it must hold numbers"),
        (sash.punctuated("y"), [1], r"column of marks 'y' has type int64; it must hold bools"),
    ],
    ids=["delta", "punctuated"],
)
def test_columns_that_cannot_be_measured(window: Any, column: Any, message: str) -> None:
    q = sash.Query(time="t", window=window, select={"many": sash.count()})
    with pytest.raises(TypeError, match=message):
        q.run({"t": [1], "y": column})
    with pytest.raises(KeyError, match="the query reads column 'y', which is not there"):
        q.run({"t": [1]})
    far = {"t": [1, 2], "y": [-(2**62) - 1, 2**62]}
    if column == ["a"]:
        with pytest.raises(OverflowError, match="column 'y' are too far apart for int64"):
            q.run(far)


def test_all_columns_and_the_order_of_the_table_are_kept() -> None:
    events = stream("disorder", 60, plain=True)
    for window in (WINDOWS[0], WINDOWS[4]):
        found = check(events, window=window, by=["k"])
        assert found.select(events.column_names) == events
        assert found.column_names == [
            *events.column_names,
            "window_start",
            "window_end",
            *SELECT,
        ]


@pytest.mark.parametrize("by", [[], ["f"], ["k", "b"]], ids=repr)
def test_keys(by: list[str]) -> None:
    check(stream("ties"), by=by)
    check(stream("ties"), by=by, window=WINDOWS[4])


@pytest.mark.parametrize("tie", ["n", "x", "s"])
def test_ties_are_in_the_order_of_a_column(tie: str) -> None:
    events = stream("ties")
    backwards = events.take(np.arange(events.num_rows)[::-1])
    for window in (WINDOWS[0], WINDOWS[4], WINDOWS[6], sash.rows(3)):
        check(backwards, by=["k"], tie=tie, window=window)


def test_rows_that_do_not_satisfy_where_are_no_events() -> None:
    events = stream("disorder")
    for window in (WINDOWS[0], WINDOWS[4], sash.rows(3, every=2)):
        found = check(events, where=pc.field("i") > 0, by=["k"], window=window)
        assert 0 < found.num_rows < events.num_rows
    assert check(events, where=pc.field("i") > 2**50).num_rows == 0


def test_an_empty_table_gives_an_empty_result() -> None:
    for window in WINDOWS:
        assert check(stream("ties").slice(0, 0), by=["k"], window=window).num_rows == 0


def test_tables_in_chunks_and_in_order() -> None:
    events = stream("disorder")
    parts = pa.concat_tables([events.slice(i, 7) for i in range(0, 120, 7)])
    check(parts.slice(5, 50), by=["k"])
    for names in ("kt", "tk", "t"):
        check(events.sort_by([(name, "ascending") for name in names]), by=["k"])


@pytest.mark.parametrize(
    "window", [WINDOWS[0], WINDOWS[4], WINDOWS[6], WINDOWS[13], sash.rows(4)], ids=repr
)
def test_operators_of_the_users_own(window: Any) -> None:
    select = {name: sash.aggregate(op, "i") for name, op in OWN.items()}
    for kind in ("disorder", "ties"):
        check(stream(kind, 60), by=["k"], select=select, window=window)


def test_every_kind_of_table_comes_back() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    events = stream("ties", 30, plain=True)
    q = sash.Query(time="t", by=["k"], window=WINDOWS[0], select=SELECT)
    for table in (events.to_pandas(), pl.from_arrow(events), events):
        found = q.run(table)
        assert type(found) is type(table)
        assert not differences(q, answers(q, events), found)
    indexed = pd.DataFrame({"t": [3, 1], "x": [1.0, 2.0]}, index=["a", "b"])
    one = sash.Query(time="t", window=WINDOWS[0], select={"top": sash.max("x")})
    assert one.run(indexed)["top"].tolist() == [2.0, 2.0]


def test_each_row_is_lifted_once_however_long_the_window() -> None:
    from sash.testing.counting import counting

    events = {"t": list(range(400)), "x": [str(i % 7) for i in range(400)]}
    for size in (5, 50, 10_000):
        counted = counting(sash.operators.concat)
        q = sash.Query(
            time="t",
            window=sash.trailing(size),
            select={"all": sash.aggregate(counted.operator, "x")},
        )
        q.run(events)
        assert counted.combines <= 3 * 400, size
        assert counted.lifts == 400


def test_a_name_that_an_event_has_already_is_refused() -> None:
    window = sash.trailing(5)
    with pytest.raises(ValueError, match=r"keeps all columns of its events, .* 'x' twice"):
        sash.Query(time="t", window=window, select={"x": sash.max("x")})
    q = sash.Query(time="t", window=window, select={"top": sash.max("x")})
    with pytest.raises(ValueError, match="so the result would have 'top' twice"):
        q.run({"t": [1], "x": [1.0], "top": [2]})
    with pytest.raises(ValueError, match="so the result would have 'window_end' twice"):
        q.run({"t": [1], "x": [1.0], "window_end": [2]})


def test_an_answer_that_does_not_exist_names_its_event() -> None:
    events = {"t": [1, 2, 3], "k": ["a", "b", "b"], "x": [2**62, 2**62, 2**62]}
    q = sash.Query(time="t", by=["k"], window=sash.trailing(5), select={"all": sash.sum("x")})
    with pytest.raises(OverflowError, match=r"all: .* in the window of the event at 3 of k = b"):
        q.run(events)


@pytest.mark.parametrize("window", [WINDOWS[0], WINDOWS[11], sash.rows(3)], ids=repr)
def test_changes_are_refused(window: Any) -> None:
    changes = sash.Query(time="t", window=window, select={"top": sash.max("x")}, emit="changes")
    with pytest.raises(ValueError, match="windows that are aligned to the clock have one"):
        changes.run({"t": [1], "x": [1.0]})


def test_the_oracle_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    events = stream("ties", 40)
    for window in (WINDOWS[0], WINDOWS[13], sash.rows(3, every=2)):
        q = sash.Query(time="t", by=["k"], window=window, select=SELECT, where=pc.field("i") < 40)
        found = q.run(events)
        monkeypatch.setenv("SASH_ORACLE", "1")
        again = q.run(events)
        monkeypatch.delenv("SASH_ORACLE")
        assert again.schema == found.schema
        assert not differences(q, answers(q, events), again)
        same = ["window_start", "window_end", "rows", "who", "all"]
        assert again.select(same) == found.select(same)


def test_pandas_columns_keep_their_types() -> None:
    """Integers with nulls do not become floats, which cannot hold them all."""
    import pandas as pd

    ids = pd.array([2**53 + 1, None], dtype="Int64")
    frame = pd.DataFrame({"t": [1, 2], "id": ids, "s": pd.array(["a", None], dtype="string")})
    q = sash.Query(time="t", window=sash.trailing(5), select={"n": sash.count()})
    made = q.run(frame)
    assert made["id"].dtype == "Int64"
    assert made["s"].dtype == "string"
    assert made["id"][0] == 2**53 + 1


@pytest.mark.parametrize("by_brute_force", [False, True])
def test_rows_of_pandas_keep_their_index(
    by_brute_force: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a result can be assigned to the frame, which may be a filtered or sorted one."""
    import pandas as pd

    if by_brute_force:
        monkeypatch.setenv("SASH_ORACLE", "1")
    index = pd.Index([5, 3, 9, 7], name="id")
    frame = pd.DataFrame({"t": [3, 1, 4, 9], "x": [30, 10, 40, 90]}, index=index)
    select = {"sum": sash.sum("x")}
    q = sash.Query(time="t", window=sash.trailing(2), select=select)
    own = frame.index.copy()
    assert frame.assign(sum=q.run(frame)["sum"])["sum"].tolist() == [40, 10, 70, 90]
    assert q.run(frame).index.equals(own)
    some = sash.Query(
        time="t", window=sash.rows(2, every=2), select=select, where=pc.field("x") != 40
    )
    assert some.run(frame)["sum"].to_dict() == {5: 40}
    assert sash.share({"q": q, "some": some}).run(frame)["some"]["sum"].to_dict() == {5: 40}
    if not by_brute_force:
        assert q.at(frame, frame[["t"]], time="t")["sum"].to_dict() == {5: 40, 3: 10, 9: 70, 7: 90}


def test_an_enum_of_polars_stays_one() -> None:
    pl = pytest.importorskip("polars")
    kind = pl.Enum(["low", "high"])
    frame = pl.DataFrame({"t": [2, 1], "e": pl.Series(["high", None], dtype=kind)})
    q = sash.Query(time="t", window=sash.rows(2), select={"n": sash.count()})
    for table in (frame, frame.lazy()):
        assert q.run(table).select("t", "e").equals(frame)
        assert q.run(table).schema["e"] == kind


def test_a_delta_over_the_whole_range_of_integers() -> None:
    q = sash.Query(time="t", window=sash.delta("x", 3), select={"n": sash.count()})
    low = -(2**63)
    table = pa.table({"t": [1, 2, 3], "x": pa.array([low, None, low + 3], pa.int64())})
    assert not differences(q, answers(q, table), q.run(table))
