"""`Stream.shared`: a shared stream that goes on where a stream of one query stands."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import sash
from sash.kernels.program import jit_enabled
from sash.testing.fuzz.streams import SELECTS
from sash.testing.queries import differences, rows_of
from sash.testing.streams import WINDOWS, batches, stream

EVENT_WINDOWS = [
    sash.trailing("3 seconds"),
    sash.rows(3),
    sash.session("2 seconds"),
    sash.window(keep=sash.rows(3), every="2 seconds"),
]


def query(window: Any, select: Any, **more: Any) -> sash.Query:
    return sash.Query(**{"time": "t", "by": ["k"], "window": window, "select": select} | more)


def goes_on(q: sash.Query, parts: list[Any], at: int, **settings: Any) -> sash.SharedStream:
    """Share a stream after some batches, and compare it with a stream that goes on alone."""
    alone = q.stream(**settings)
    for part in parts[:at]:
        alone.push(part)
    together = alone.shared("q")
    together._check()
    assert together.time == alone.time
    assert together.watermark == alone.watermark
    for i, part in enumerate(parts[at:]):
        same(q, together.push(part)["q"], alone.push(part))
        together._check()
        if i == 1:
            shared = sash.share({"q": q})
            together = sash.SharedStream.from_bytes(together.to_bytes(), shared)
    late = together.late.drop_columns(["queries"])
    assert repr(late.to_pylist()) == repr(alone.late.to_pylist())  # NaN is not equal to itself
    assert together.late_dropped == alone.late_dropped
    assert together.counts["q"] == alone.counts
    assert together.delays["q"] == alone.delays
    same(q, together.close()["q"], alone.close())
    return together


def same(q: sash.Query, made: pa.Table, right: pa.Table) -> None:
    assert not differences(q, rows_of(right), made)
    if "revision" in right.column_names:
        assert made["revision"].to_pylist() == right["revision"].to_pylist()


def cut(kind: str, seed: int) -> tuple[list[Any], int]:
    parts = list(batches(stream(kind, 50, seed=seed), seed=seed, most=12))
    return parts, random.Random(seed).randrange(len(parts))


@pytest.mark.thin
@pytest.mark.parametrize("mode", ["final", "live", "early", "changes"])
@pytest.mark.parametrize("select", ["numbers", "in order"] if jit_enabled() else SELECTS)
@pytest.mark.parametrize("kind", ["disorder", "ties", "keys come and go"])
def test_aligned_windows_go_on(kind: str, select: str, mode: str) -> None:
    settings: dict[str, Any] = {"mode": "live" if mode in ("live", "early") else "final"}
    settings |= {"early": mode == "early", "lateness": "4 seconds"}
    for i, window in enumerate(WINDOWS):
        parts, at = cut(kind, random.Random(f"{kind} {mode} {select} {i}").randrange(1000))
        q = query(window, SELECTS[select], emit="changes" if mode == "changes" else "all")
        goes_on(q, parts, at, **settings)


@pytest.mark.thin
@pytest.mark.parametrize("window", EVENT_WINDOWS, ids=repr)
@pytest.mark.parametrize("kind", ["disorder", "ties"])
def test_windows_that_events_make_go_on(kind: str, window: Any) -> None:
    parts, at = cut(kind, 7)
    goes_on(query(window, {"many": sash.count(), "most": sash.max("x")}), parts, at, lateness=4)


@pytest.mark.plain
def test_several_sizes_and_empty_windows_go_on() -> None:
    parts, at = cut("gaps", 3)
    select = {"n": sash.count(), "more": sash.count().over("9 seconds"), "x": sash.max("x")}
    goes_on(query(sash.sliding("3 seconds", "1 second"), select), parts, at, lateness="2 seconds")
    empty = sash.tumbling("2 seconds", empty="zero", idle="1 minute")
    goes_on(query(empty, {"n": sash.count()}), parts, at, lateness="2 seconds")


@pytest.mark.plain
def test_before_the_first_batch() -> None:
    q = query(sash.tumbling(10), {"n": sash.count()})
    s = q.stream(lateness=5)
    s.advance(3)
    both = s.shared("q")
    assert (both.time, both.watermark) == (s.time, s.watermark)
    rows = [{"t": 1, "k": "a"}, {"t": 12, "k": "a"}]
    assert both.push(rows)["q"].num_rows == s.push(rows).num_rows
    assert both.close()["q"].to_pylist() == s.close().to_pylist()


@pytest.mark.thin
@pytest.mark.parametrize("kind", ["disorder", "ties", "gaps"])
def test_queries_join_what_the_stream_holds(kind: str) -> None:
    """An added query emits what it would have emitted, had it been there from the start."""
    select = {"n": sash.count(), "x": sash.max("x"), "word": sash.min("s")}
    if jit_enabled():  # of aggregates whose kernels are there
        select = {"n": sash.count(), "x": sash.max("x"), "m": sash.mean("x"), "i": sash.sum("i")}
    long = query(sash.sliding("8 seconds", "2 seconds"), select)
    fewer = select if jit_enabled() else {"x": select["x"], "n": select["n"]}
    short = query(sash.sliding("4 seconds", "2 seconds"), fewer)
    for seed in range(4):
        parts, at = cut(kind, seed)
        s, alone = long.stream(lateness="3 seconds"), short.stream(lateness="3 seconds")
        for part in parts[:at]:
            s.push(part)
            alone.push(part)
        together = s.shared("long")
        together.add("short", short, since="held")
        together.add("new", short)
        for part in parts[at:]:
            made = together.push(part)
            same(short, made["short"], alone.push(part))
            same(long, made["long"], s.push(part))
        together.remove("new")
        made = together.close()
        same(short, made["short"], alone.close())
        same(long, made["long"], s.close())


@pytest.mark.plain
def test_the_stream_itself_stays() -> None:
    q = query(sash.tumbling(10), {"n": sash.count()}, by=[])
    s = q.stream()
    s.push([{"t": 3}])
    both = s.shared("q")
    both.push([{"t": 4}])
    assert both.close()["q"]["n"].to_pylist() == [2]
    assert s.close()["n"].to_pylist() == [1]


@pytest.mark.plain
def test_what_cannot_be_shared_says_why() -> None:
    q = query(sash.tumbling(10), {"n": sash.count()}, by=[])
    s = q.stream(store=sash.stores.memory(), name="hits")
    with pytest.raises(ValueError, match=r"in a store, and cannot be shared; start another"):
        s.shared("q")
    s = q.stream()
    s.close()
    with pytest.raises(ValueError, match="this stream is closed"):
        s.shared("q")
