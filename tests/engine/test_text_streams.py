"""Streams over values that are neither numbers nor times: compiled, with labels for values."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sash
from sash.engine.stream import Stream
from sash.state import labels
from sash.tables import dictionaries
from sash.testing.queries import answers, differences, rows_of
from sash.testing.stored import open_stream
from sash.testing.streams import batches

from .test_text import KINDS, LABELLED, events, select

WINDOWS = {
    "sliding": sash.sliding(20, 5),
    "trailing": sash.trailing(9),
    "rows": sash.rows(4),
    "lifetime": sash.lifetime(exclude="ties"),
    "others": sash.trailing(9, exclude="row"),
    "ticks": sash.window(keep=sash.rows(6), every=5),
    "session": sash.session(3),
}
#: A type of values, windows, a mode, and where the state is.
CASES = [
    *((kind, "sliding", "final", "memory") for kind in KINDS if kind != "text"),
    *((kind, "sliding", "final", "tiles") for kind in KINDS),
    *(("text", window, "final", "memory") for window in WINDOWS),
    *(("text", window, "final", "tiles") for window in WINDOWS if window != "sliding"),
    *(("text", window, "live", "memory") for window in ("sliding", "trailing", "session")),
    *(("text", window, "live", "tiles") for window in ("sliding", "trailing", "session")),
]


@pytest.fixture
def swept(monkeypatch: Any) -> None:
    """Values that no partial holds are dropped at every step."""
    monkeypatch.setattr(labels.Labels, "grown", lambda self: True)


def last_rows(given: list[pa.Table], mode: str) -> list[dict[str, Any]]:
    """The last row of each window that is not withdrawn, by its event or its key and start."""
    rows = [row for table in given for row in rows_of(table)]
    if mode == "final":
        return rows
    last = {row.get("a", (row["k"], row["window_start"])): row for row in rows}
    return [row for row in last.values() if not row.get("deleted")]


@pytest.mark.plain
@pytest.mark.parametrize(("kind", "window", "mode", "state"), CASES)
def test_rows_are_those_of_brute_force(
    kind: str, window: str, mode: str, state: str, swept: None
) -> None:
    check_rows(kind, window, mode, state)


@pytest.mark.once
@pytest.mark.parametrize(
    ("window", "state"), [("sliding", "memory"), ("sliding", "tiles"), ("session", "memory")]
)
def test_compiled_rows_are_those_of_brute_force(window: str, state: str, swept: None) -> None:
    check_rows("text", window, "final", state, LABELLED)


@pytest.mark.plain
@pytest.mark.parametrize("window", ["sliding", "session"])
def test_labels_that_are_used_up_are_given_anew(window: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(dictionaries, "_TOP", 1 << 15)
    monkeypatch.setattr(dictionaries, "_BITS", 4)
    anew = []
    keep = dictionaries.Ranked.keep
    monkeypatch.setattr(dictionaries.Ranked, "keep", lambda *a: anew.append(a[2]) or keep(*a))
    texts = pa.array([f"{i * 7919 % 997:03}" for i in range(60)])
    table = events("text", 60).set_column(3, "v", texts)
    q = sash.Query(time="t", by=["k"], window=WINDOWS[window], select=select("text"))
    s = q.stream(lateness=100)
    given = []
    for i in range(0, 60, 6):
        given.append(s.push(table.slice(i, 6)))
        s.state_size()  # all that is noted is taken in
    given.append(s.close())
    assert not differences(q, answers(q, table), last_rows(given, "final"), ordered=False)
    assert sum(more is not None for more in anew) > 2


def check_rows(kind: str, window: str, mode: str, state: str, picks: Any = None) -> None:
    """Push a stream in parts, copies of it from the middle on, and compare all rows."""
    table = events(kind, 60).append_column("a", pa.array(range(60)))
    q = sash.Query(time="t", by=["k"], window=WINDOWS[window], select=picks or select(kind))
    # a small lateness, so that events settle, and are held, before the stream is closed
    table = table.take(pc.sort_indices(table, [("t", "ascending")]))
    s = open_stream(state, q, lateness=3, mode=mode)
    given, copies = [], []
    for i, part in enumerate(batches(table, least=1, most=15)):
        given.append(s.push(part))
        s.state_size()  # all that is noted is taken in
        s._check()
        for copy in copies:
            assert rows_of(copy.push(part)) == rows_of(given[-1])
        if i == 3:
            assert all(g.labelled and g.operator.shape != "object" for g in s._plan.groups)
            if state == "memory":
                copies = [deepcopy(s), Stream.from_bytes(s.to_bytes(), q)]
    given.append(s.close())
    assert not differences(q, answers(q, table), last_rows(given, mode), ordered=False)
    for copy in copies:
        assert rows_of(copy.close()) == rows_of(given[-1])


@pytest.mark.plain
def test_questions_are_answered_with_values() -> None:
    q = sash.Query(time="t", by=["k"], window=sash.sliding(20, 5), select=select("text"))
    s = q.stream(lateness=100)
    s.push({"t": 3, "k": "p", "x": 1.0, "v": "b"})
    s.push({"t": 4, "k": "p", "x": None, "v": "a"})
    found = s.query("p", 0, 5)
    assert [found[name] for name in ("first", "last", "who", "least", "most")] == [*"babab"]
    assert s.query("q", 0, 5)["least"] is None


@pytest.mark.plain
def test_questions_to_a_store_about_keys_without_events() -> None:
    q = sash.Query(time="t", by=["k"], window=sash.trailing(9), select=select("text"))
    s = open_stream("tiles", q, lateness=3)
    s.push({"t": 3, "k": "p", "x": 1.0, "v": "b"})
    found = [s.query(key, at=5) for key in "pq"]
    assert [[one[name] for name in ("last", "who", "least")] for one in found] == [
        ["b", "b", "b"],
        [None, None, None],
    ]


@pytest.mark.plain
def test_a_dictionary_lets_go(monkeypatch: Any) -> None:
    monkeypatch.setattr(labels, "_FEW", 20)
    picks = {"least": sash.min("v"), "last": sash.last("v")}
    q = sash.Query(time="t", by=["k"], window=sash.sliding(8, 4), select=picks)
    s = q.stream()
    sizes, kept = [], []
    for start in range(0, 600, 6):
        rows = [
            {"t": t, "k": t % 3, "v": f"text {t * 7919 % 997}"} for t in range(start, start + 6)
        ]
        found = rows_of(s.push(rows))
        assert s.state_size()["keys"] == 3  # all that is noted is taken in
        (forest,) = s._state._grove.forests
        sizes.append(len(forest._labels))
        kept.append(s.state_size()["bytes"])
        assert all(row["last"] == f"text {t * 7919 % 997}" for row in found for t in [last(row)])
    s._check()
    assert max(sizes) < 150
    assert max(sizes[50:]) <= max(sizes[:50])
    assert max(kept[50:]) <= max(kept[:50])
    assert s.close().num_rows


def last(row: dict[str, Any]) -> int:
    """The last time of a window that has an event at each, a third of which have the key."""
    return max(t for t in range(row["window_start"], row["window_end"]) if t % 3 == row["k"])


@pytest.mark.plain
def test_a_sum_that_leaves_int64_leaves_the_text() -> None:
    picks = {"total": sash.sum("i"), "who": sash.last("v"), "least": sash.min("v")}
    q = sash.Query(time="t", window=sash.tumbling(10), select=picks)
    s = q.stream()
    s.push([{"t": 1, "i": 2**62, "v": "a"}, {"t": 2, "i": 2**62, "v": "b"}])
    s.push({"t": 3, "i": 2**62, "v": "c"})
    with pytest.warns(RuntimeWarning, match="total"):
        (row,) = s.close().to_pylist()
    assert [row[name] for name in picks] == [None, "c", "a"]


@pytest.mark.plain
def test_operators_of_ones_own_have_partials_of_their_own() -> None:
    own = sash.operator(identity=0, lift=lambda x: x, combine=lambda a, b: a + b)
    picks = {"own": sash.aggregate(own, "t"), "who": sash.last("v"), "n": sash.count()}
    q = sash.Query(time="t", window=sash.tumbling(10), select=picks)
    s = q.stream()
    s.push([{"t": 1, "v": "a"}, {"t": 2, "v": "b"}])
    assert [group.names for group in s._plan.groups] == [("n", "own"), ("who",)]
    assert rows_of(s.close())[0]["who"] == "b"


@pytest.mark.plain
def test_questions_while_labels_are_given_anew(monkeypatch: Any) -> None:
    """Each is answered from what waits and what is held, whose labels may change under it."""
    monkeypatch.setattr(dictionaries, "_TOP", 1 << 15)
    monkeypatch.setattr(dictionaries, "_BITS", 4)
    picks = {"least": sash.min("v"), "last": sash.last("v").over(4)}
    q = sash.Query(time="t", window=sash.trailing(12), select=picks)
    s, held = q.stream(lateness=5), []
    for i in range(300):
        held.append((i, f"{i * 7919 % 997:03}"))
        s.push({"t": i, "v": held[-1][1]})
        found = s.query(at=i)
        assert found["least"] == min(v for t, v in held if t >= i - 12)
        assert found["last"] == held[-1][1]


@pytest.mark.plain
def test_dates_that_python_lacks() -> None:
    far = pa.array([4_000_000, 3, None], pa.date32())
    q = sash.Query(time="t", window=sash.tumbling(10), select={"most": sash.max("d")})
    s = q.stream()
    s.push(pa.table({"t": [1, 2, 3], "d": far}))
    assert s.close()["most"].cast(pa.int32()).to_pylist() == [4_000_000]
