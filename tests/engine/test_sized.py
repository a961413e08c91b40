"""Several sizes in one row of sliding windows, against brute force."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import sash
from sash.engine.oracle import OracleStream
from sash.testing.fuzz.streams import SELECTS
from sash.testing.queries import answers, differences, rows_of
from sash.testing.streams import batches, stream

LIFETIME = sash.lifetime()
SIZES: dict[str, Any] = {"short": "700 ms", "odd": "4.1 seconds", "long": "31 seconds"}


def sized(select: dict[str, sash.Aggregate], **sizes: Any) -> dict[str, sash.Aggregate]:
    """Aggregates over the query's own size, and over others."""
    made = dict(select)
    for size, given in sizes.items():
        made |= {f"{name}_{size}": chosen.over(given) for name, chosen in select.items()}
    return made


def query(window: Any, select: Any, **more: Any) -> sash.Query:
    return sash.Query(**{"time": "t", "by": ["k"], "window": window, "select": select} | more)


@pytest.mark.parametrize("select", SELECTS)
@pytest.mark.parametrize("kind", ["disorder", "gaps"])
def test_a_table(kind: str, select: str) -> None:
    table = stream(kind, 60)
    for window in (sash.sliding("5 seconds", "2 seconds"), sash.tumbling("3 seconds", offset=7)):
        q = query(window, sized(SELECTS[select], ever=LIFETIME, **SIZES))
        assert not differences(q, answers(q, table), q.run(table))


def test_only_changes_and_only_other_sizes() -> None:
    table = stream("gaps", 60)
    select = {"n": sash.count().over("20 seconds"), "all": sash.collect("i").over(LIFETIME)}
    for emit in ("all", "changes"):
        q = query(sash.sliding("5 seconds", "1 second"), select, emit=emit)
        assert not differences(q, answers(q, table), q.run(table))


def test_beside_other_queries() -> None:
    table = stream("disorder", 60)
    one = query(sash.sliding("5 seconds", "2 seconds"), sized(SELECTS["numbers"], **SIZES))
    two = query(sash.tumbling("7 seconds"), SELECTS["numbers"])
    made = sash.share({"one": one, "two": two}).run(table)
    assert len(sash.share({"one": one, "two": two}).plan.bundles) == 1
    for name, q in (("one", one), ("two", two)):
        assert not differences(q, answers(q, table), made[name])


def both(q: sash.Query, **settings: Any) -> tuple[Any, Any]:
    """A stream of a query, and one by brute force."""
    return q.stream(**settings), OracleStream._for(q)(q, **settings)


def same(q: sash.Query, made: pa.Table, right: pa.Table) -> None:
    assert not differences(q, rows_of(right), made)
    if "revision" in right.column_names:
        assert made["revision"].to_pylist() == right["revision"].to_pylist()


@pytest.mark.parametrize("mode", ["final", "live", "early", "changes"])
@pytest.mark.parametrize("select", ["numbers", "in order", "objects"])
def test_a_stream(select: str, mode: str) -> None:
    settings: dict[str, Any] = {"mode": "live" if mode in ("live", "early") else "final"}
    settings |= {"early": mode == "early", "lateness": "2 seconds"}
    sizes = SIZES | ({"ever": LIFETIME} if select == "numbers" else {})
    q = query(
        sash.sliding("5 seconds", "2 seconds"),
        sized(SELECTS[select], **sizes),
        emit="changes" if mode == "changes" else "all",
    )
    for kind in ("disorder", "gaps"):
        stream_of, by_force = both(q, **settings)
        for i, part in enumerate(batches(stream(kind, 50), most=12)):
            same(q, stream_of.push(part), by_force.push(part))
            stream_of._check()
            if i == 3 and select == "numbers":
                stream_of = sash.Stream.from_bytes(stream_of.to_bytes(), q)
        assert repr(rows_of(stream_of.late)) == repr(rows_of(by_force.late))
        same(q, stream_of.close(), by_force.close())
        assert stream_of.counts == by_force.counts


def test_a_lifetime_keeps_one_entry_for_what_is_behind_all_other_windows() -> None:
    select = {"n": sash.count(), "day": sash.count().over(100), "ever": sash.count().over(LIFETIME)}
    q = query(sash.tumbling(10), select)
    s = q.stream()
    for t in range(0, 3000, 5):
        s.push({"t": t, "k": "a"})
    assert s.state_size()["slices"] <= 12
    assert s.close().to_pylist()[-1] == {
        "k": "a", "window_start": 2990, "window_end": 3000, "n": 2, "day": 20, "ever": 600,
    }  # fmt: skip
    ordered = query(sash.tumbling(10), {"first": sash.first("t").over(LIFETIME)})
    with pytest.raises(ValueError, match="a late event belongs into its middle"):
        ordered.stream()


def test_a_stream_beside_other_queries() -> None:
    one = query(sash.sliding("5 seconds", "2 seconds"), sized(SELECTS["numbers"], **SIZES))
    two = query(sash.tumbling("7 seconds"), SELECTS["numbers"])
    together = sash.share({"one": one, "two": two}).stream(lateness="2 seconds")
    alone = {"one": one.stream(lateness="2 seconds"), "two": two.stream(lateness="2 seconds")}
    for part in batches(stream("disorder", 60), most=15):
        made = together.push(part)
        for name, q in (("one", one), ("two", two)):
            same(q, made[name], alone[name].push(part))
    assert len(together._members) == 1


def test_an_event_that_changes_a_longer_window_alone() -> None:
    """The query's own windows between two events are empty, so they are not emitted again."""
    q = query(sash.tumbling(10), {"n": sash.count(), "who": sash.mode("name").over(100)})
    stream_of, by_force = both(q, mode="live", lateness=500)
    for t in (5, 85, 200, 15, 50):
        event = [{"t": t, "k": "a", "name": "xy"[t % 2]}]
        same(q, stream_of.push(event), by_force.push(event))
    same(q, stream_of.close(), by_force.close())
