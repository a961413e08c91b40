"""What a stream says of itself in one line."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

import sash

pytestmark = pytest.mark.plain

Q = sash.Query(
    time="t",
    by=["k"],
    window=sash.tumbling("1 hour"),
    select={"n": sash.count(), "m": sash.max("x")},
)
TEXT = "SELECT k, 2 * max(x) AS m FROM events GROUP BY k, window(t, '1 hour')"
ROWS = [
    {"t": datetime(2026, 3, 1, hour, tzinfo=UTC), "k": "a", "x": i}
    for i, hour in enumerate((10, 11, 9))
]


def test_a_stream_of_a_query() -> None:
    s = Q.stream(lateness="5 minutes")
    head = "<sash.Stream of tumbling('1 hour') by k, final, lateness 5 minutes; rows: "
    assert repr(s) == f"{head}0 in, 0 late, 0 out>"
    s.push(ROWS[0])
    s.push(ROWS[1])
    s.push(ROWS[2])
    time = "stream time 2026-03-01 11:00:00+00:00"
    assert repr(s) == f"{head}3 in, 1 late, 0 out; {time}>"
    noted = Q.stream(lateness="5 minutes")
    noted.push(ROWS[0])
    noted.push(ROWS[0])
    assert noted._pending is not None
    assert noted._pending.count == 1
    assert "rows: 2 in, 0 late" in repr(noted)
    assert noted._pending.count == 1, "it inserts nothing"
    s.close()
    assert repr(s) == f"{head}3 in, 1 late, 2 out; closed>"
    assert len(repr(s).splitlines()) == 1


def test_a_stream_in_a_store_and_one_that_cannot_go_on() -> None:
    s = Q.stream(mode="live", store=sash.stores.memory(), name="hits")
    s.push(pa.table({"t": [3_600_000_000], "k": ["a"], "x": [1]}))
    head = "<sash.Stream of tumbling('1 hour') by k, live, lateness 0 seconds, 'hits' in the store"
    assert repr(s) == f"{head} in memory; rows: 1 in, 0 late, 0 out; stream time 3600000000>"
    s.release()
    assert repr(s) == f"{head} in memory; rows: 1 in, 0 late, 0 out; not usable any more>"


def test_shared_streams() -> None:
    names = [*"abcde"]
    s = sash.share(dict.fromkeys(names, Q)).stream()
    s.push(ROWS)
    counts = "; ".join(f"{name}: 3 in, 0 late, 2 out" for name in "abc")
    assert repr(s) == (
        "<sash.SharedStream of a, b, c and 2 more, final, lateness 0 seconds; "
        f"{counts}; stream time 2026-03-01 11:00:00+00:00>"
    )


@pytest.mark.parametrize("many", [False, True])
def test_streams_of_statements(many: bool) -> None:
    statement = sash.sql(TEXT)
    s: Any = sash.share({"a": statement, "q": Q}).stream() if many else statement.stream()
    s.push(ROWS)
    s.close()
    if many:
        counts = "; ".join(f"{name}: 3 in, 0 late, 3 out" for name in "aq")
        says = f"SharedSqlStream of a, q, final, lateness 0 seconds; {counts}"
    else:
        text = repr(TEXT[:59] + "…")
        says = f"SqlStream of {text}, final, lateness 0 seconds; rows: 3 in, 0 late, 3 out"
    assert repr(s) == f"<sash.{says}; closed>"


@pytest.mark.parametrize("kind", ["query", "shared", "statement", "statements"])
def test_it_waits_for_no_turn(kind: str) -> None:
    """A debugger may ask while another thread pushes."""
    statement = sash.sql(TEXT)
    made: dict[str, Any] = {
        "query": Q,
        "shared": sash.share({"q": Q}),
        "statement": statement,
        "statements": sash.share({"s": statement, "q": Q}),
    }
    s = made[kind].stream()
    s.push(ROWS)
    turns = s._stream._turns if kind == "statement" else s._turns
    said: list[str] = []
    with turns.lock:
        thread = threading.Thread(target=lambda: said.append(repr(s)))
        thread.start()
        thread.join(5)
    assert said == [repr(s)]


def test_a_stream_that_was_never_made() -> None:
    for kind in (sash.Stream._for(Q), sash.SharedStream, sash.SqlStream, sash.SharedSqlStream):
        assert repr(object.__new__(kind)).startswith("<sash.")
