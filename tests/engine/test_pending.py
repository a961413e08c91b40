"""Events that are noted first: no one can tell, but by the clock."""

from __future__ import annotations

import copy
import random
import warnings
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sash
from sash.engine.lifecycle import Lifecycle
from sash.engine.pending import MOST
from sash.testing.fuzz.streams import SELECTS
from sash.testing.queries import rows_of
from sash.testing.streams import STREAMS, WINDOWS, stream
from thinning import FULL

pytestmark = pytest.mark.plain

START = datetime(2026, 3, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    {
        "t": pa.timestamp("us", "UTC"),
        "n": pa.int64(),
        "k": pa.string(),
        "i": pa.int64(),
        "x": pa.float64(),
    }
)
SELECT = SELECTS["numbers"] | {"last": sash.last("n")}


def query(**more: Any) -> sash.Query:
    given = {"window": sash.sliding("10 seconds", "2 seconds"), "select": SELECT, **more}
    return sash.Query(time="t", by=["k"], **given)


def seen(s: Any) -> Any:
    """What a stream says of itself."""
    return s.counts, s.time, s.watermark


def pushed(rows: list[dict[str, Any]], schema: pa.Schema, source: random.Random) -> list[Any]:
    """Rows in small batches: events, lists of them, tables."""
    made: list[Any] = []
    at = 0
    while at < len(rows):
        some = rows[at : at + source.choice((1, 1, 2, 5, 20))]
        at += len(some)
        as_table = pa.Table.from_pylist(some, schema=schema)
        made.append(source.choice((some, as_table)) if len(some) > 1 else some[0])
    return made


@pytest.mark.parametrize("mode", ["final", "live"])
@pytest.mark.parametrize("kind", list(STREAMS))
def test_no_one_can_tell(kind: str, mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each result, count and late row, and what comes of asking, copying and saving in between."""
    batches = 0
    process = Lifecycle.process

    def counting(*given: Any, **named: Any) -> Any:
        nonlocal batches
        batches += 1
        return process(*given, **named)

    monkeypatch.setattr(Lifecycle, "process", counting)
    whole = fewer = 0
    turn = list(STREAMS).index(kind)
    for seed, window in enumerate(WINDOWS):
        if (seed + turn) % 3 and not FULL:
            continue  # each window meets every third kind of stream
        source = random.Random(f"{kind} {mode} {seed}")
        table = stream(kind, 60, seed=seed)
        rows = table.to_pylist()
        emit = source.choice(("all", "changes")) if mode == "final" else "all"
        q = query(window=window, emit=emit)
        late = source.choice((0, "4 seconds", "1 day"))
        noting, plain = (q.stream(lateness=late, mode=mode, schema=table.schema) for _ in range(2))
        for batch in pushed(rows, table.schema, source):
            batches = 0
            found = noting.push(batch)
            fewer += batches
            expected = plain.push(batch)
            whole += 1
            plain._pending = None
            assert found.schema == expected.schema
            assert repr(rows_of(found)) == repr(rows_of(expected))
            assert seen(noting) == seen(plain)
            match source.randrange(20):
                case 0:
                    assert repr(noting.late.to_pylist()) == repr(plain.late.to_pylist())
                case 1:
                    assert repr(noting.query("b")) == repr(plain.query("b"))
                case 2:
                    noting = copy.deepcopy(noting)
                case 3:
                    noting = sash.Stream.from_bytes(noting.to_bytes(), q)
                case 4 if plain.time is not None:
                    moved = noting.advance(plain.time)
                    assert repr(rows_of(moved)) == repr(rows_of(plain.advance(plain.time)))
                case 5:
                    assert noting.state_size()["slices"] == plain.state_size()["slices"]
        assert repr(rows_of(noting.close())) == repr(rows_of(plain.close()))
        assert seen(noting) == seen(plain)
    assert fewer < whole or kind == "bursts", "most batches are noted first"


def events(count: int) -> list[dict[str, Any]]:
    at = (START + timedelta(milliseconds=i) for i in range(count))
    return [{"t": t, "k": "a", "n": i, "i": i, "x": 1.0} for i, t in enumerate(at)]


def noted(s: Any) -> int:
    return 0 if s._pending is None else int(s._pending.count)


def test_what_is_noted_is_the_callers_no_more() -> None:
    s = query().stream()
    first, *rest = events(30)
    s.push(first)
    changing = dict(rest[0])
    s.push(changing)
    changing["i"] = 10**6
    numbers = np.arange(5)
    table = pa.table({name: [e[name] for e in rest[1:6]] for name in first})
    s.push(table.set_column(3, "i", pa.array(numbers)))
    numbers[:] = 10**6
    assert noted(s) == 6
    assert s.query("a")["total"] == first["i"] + rest[0]["i"] + sum(range(5))
    assert noted(s) == 0


def test_events_of_other_types_and_late_ones_go_their_way_at_once() -> None:
    s = query().stream(lateness="1 second")
    first, second, *rest = events(12)
    s.push(first)
    odd: list[dict[str, Any]] = [
        second | {"i": 2**70},
        second | {"i": "one"},
        second | {"x": True},
        second | {"t": None},
        second | {"t": START.replace(tzinfo=None)},
        {name: value for name, value in second.items() if name != "i"} | {"j": 1},
        second | {"t": START - timedelta(days=1)},
    ]
    for event in odd:
        s.push(rest[0])
        before = s.counts["rows"]
        assert noted(s) == 1
        s.push(event)
        assert noted(s) == 0
        assert s.counts["rows"] == before + 1
    s.push(second | {"x": None, "k": None, "more": "x"})
    assert noted(s) == 1
    with pytest.raises(ValueError, match="late rows have a column 'reason'"):
        s.push(second | {"reason": "x"})
    s.close()
    with pytest.raises(ValueError, match="this stream is closed"):
        s.push(second)


def test_many_events_are_a_batch_of_their_own() -> None:
    q = query(window=sash.sliding("1 hour", "10 minutes"), select={"n": sash.count()})
    s = q.stream()
    for event in events(40):
        s.push(event)
    most = 0
    for i in range(0, 2 * MOST, 1000):
        start = START.timestamp() + 1
        s.push(pa.table({"t": pa.array([int(start * 1e6) + i] * 1000, S), "k": ["a"] * 1000}))
        most = max(most, noted(s))
    assert MOST - 1000 <= most < MOST
    assert s.query("a") == {"n": 40 + 1000 * len(range(0, 2 * MOST, 1000))}


S = pa.timestamp("us", "UTC")


def test_operators_that_may_refuse_a_value_are_asked_at_once() -> None:
    picky = sash.operator(identity=0, lift=lambda x: 1 // x, combine=lambda a, b: a + b)
    q = query(select={"own": sash.aggregate(picky, "i")})
    s = q.stream()
    for event in events(3):
        s.push(event)
    assert (s.counts["late"], noted(s)) == (1, 0)
    both = query(where=pa.compute.field("i") > 1).stream()
    for event in events(4):
        both.push(event)
    assert (both.counts["rows"], noted(both)) == (2, 0)


def test_a_batch_that_fails_leaves_what_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    s = query().stream()
    for event in events(10):
        s.push(event)
    last = events(1)[0] | {"t": START + timedelta(hours=1)}
    assert noted(s) == 9
    with monkeypatch.context() as patched:
        patched.setattr(s._lifecycle, "_take_in", lambda *_: 1 / 0)
        for call in (lambda: s.push(last), s.state_size):
            with pytest.raises(ZeroDivisionError):
                call()
    assert noted(s) == 9
    assert s.counts["rows"] == 10
    assert sum(row["many"] for row in s.push(last).to_pylist()) == 5 * 10
    assert (noted(s), s.counts["counted"]) == (0, 11)


def test_what_arrow_refuses_is_late_and_not_noted() -> None:
    odd = timezone(timedelta(hours=1, seconds=30))
    for wrong in ({"k": "\ud800"}, {"t": START.replace(tzinfo=odd)}):
        first, second, third = events(3)
        s = query().stream(lateness="2 hours", schema=SCHEMA)
        s.push(first)
        s.push(second | wrong)
        s.push(third)
        assert noted(s) == 1
        assert s.counts["late"] == 1
        assert sum(row["many"] for row in s.close().to_pylist()) == 5 * 2
    text = pa.array([b"ok", b"\xff"]).cast(pa.binary()).view(pa.string())
    table = pa.Table.from_pylist(events(2), schema=SCHEMA).set_column(2, "k", text)
    for window in (sash.sliding("10 seconds", "2 seconds"), sash.session(5), sash.rows(2)):
        s = query(window=window).stream(schema=SCHEMA)
        s.push(events(1)[0])
        s.push(table)
        assert "no text in UTF-8" in s.take_late()["reason"][0].as_py()
        s.close()


def test_nanoseconds_are_in_order_within_a_batch_only() -> None:
    at = pa.timestamp("ns")
    q = sash.Query(time="t", window=sash.tumbling("1 second"), select={"last": sash.last("x")})
    for asks in (True, False):
        s = q.stream()
        for nanos, x in ((100, 0), (500, 1), (300, 2)):
            s.push(pa.table({"t": pa.array([nanos], at), "x": [x]}))
            if asks:
                s.to_bytes()
        assert s.close()["last"].to_pylist() == [2]


#: Times of numpy and pandas, by the type that a first event with them gives the column.
STAMPS = {
    "us": lambda t: pd.Timestamp(t).as_unit("us"),
    "us, tz=UTC": lambda t: pd.Timestamp(t, tz="UTC").as_unit("us"),
    "us, tz=Asia/Tokyo": lambda t: pd.Timestamp(t, tz="UTC").tz_convert("Asia/Tokyo").as_unit("us"),
    "ns": lambda t: pd.Timestamp(t).as_unit("ns"),
    "ns, tz=UTC": lambda t: pd.Timestamp(t, tz="UTC").as_unit("ns"),
    "s": lambda t: np.datetime64(t, "s"),
    "ms": lambda t: np.datetime64(t, "ms"),
}
STAMPS |= {f"numpy {unit}": lambda t, unit=unit: np.datetime64(t, unit) for unit in ("us", "ns")}


@pytest.mark.parametrize("reads", [False, True], ids=["", "reads times"])
@pytest.mark.parametrize("kind", list(STAMPS))
def test_times_of_numpy_and_pandas_are_noted(kind: str, reads: bool) -> None:
    """What comes out is what comes of the same times in a table."""
    starts = [datetime(2026, 3, 1, 0, 0, i) for i in (0, 1, 3, 2, 9, 4)]
    rows = [{"t": STAMPS[kind](t), "k": "a", "x": float(i)} for i, t in enumerate(starts)]
    select = {"many": sash.count(), "all": sash.collect("x")}
    select |= {"newest": sash.max("t")} if reads else {}
    q = sash.Query(time="t", by=["k"], window=sash.tumbling("1 minute"), select=select)
    s, plain = q.stream(), q.stream()
    for row in rows:
        s.push(row)
    assert noted(s) == len(rows) - 1
    assert f"[{kind.removeprefix('numpy ')}]" in str(s._plan.schema.field("t").type)
    for row in rows:
        plain.push(pa.Table.from_pylist([row], schema=s._plan.schema.remove_metadata()))
        plain._pending = None
    assert seen(s) == seen(plain)
    found, expected = s.close(), plain.close()
    assert found.equals(expected)
    assert found["all"].to_pylist() == [[0.0, 1.0, 3.0, 2.0, 5.0, 4.0]]


def test_values_of_numpy_are_noted() -> None:
    kinds: dict[str, list[Any]] = {
        "k": [np.str_("a"), "a", None, np.str_("é")],
        "i": [np.int64(1), np.int8(-2), np.uint64(3), 4],
        "x": [np.float64(0.5), np.float32(0.25), 2, np.int16(3)],
        "f": [np.float32(0.5), np.float16(0.25), 0.1, 7],
        "b": [np.bool_(True), False, np.True_, None],
    }
    select = {f"{name}s": sash.collect(name) for name in kinds}
    q = sash.Query(time="t", by=["k"], window=sash.tumbling(10), select=select)
    first = {"t": np.int64(0), "k": "a", "i": 0, "x": 0.0, "f": np.float32(0), "b": True}
    schema = pa.table({name: [value] for name, value in first.items()}).schema
    s, plain = q.stream(schema=schema), q.stream(schema=schema)
    s.push(first)
    plain.push(first)
    plain._pending = None
    for i in range(4):
        event = {"t": (np.int32, int, np.uint8, np.int64)[i](i)}
        event |= {name: values[i] for name, values in kinds.items()}
        s.push(event)
        plain.push(event)
    assert noted(s) == 4
    assert seen(s) == seen(plain)
    assert s.close().equals(plain.close())


def test_values_that_would_change_are_not_noted() -> None:
    odd: list[dict[str, Any]] = [
        {"i": np.float64(1.5)},
        {"i": np.uint64(2**64 - 1)},
        {"i": np.timedelta64(1, "s")},
        {"x": 2**53 + 1},
        {"x": np.int64(2**53 + 1)},
        {"x": np.str_("1.0")},
        {"f": 1e300},
        {"f": 2**24 + 1},
        {"k": np.str_("\ud800")},
        {"t": np.datetime64("NaT", "us")},
        {"t": pd.NaT},
        {"t": np.datetime64("2026-03-01", "D")},
        {"t": pd.Timestamp("2026-03-01")},
        {"t": np.datetime64("2026-03-01", "us")},
    ]
    q = sash.Query(
        time="t",
        by=["k"],
        window=sash.tumbling("1 hour"),
        select={name: sash.last(name) for name in "ixf"},
    )
    first = {"t": START, "k": "a", "i": 0, "x": 0.0, "f": np.float32(0)}
    schema = pa.table({name: [value] for name, value in first.items()}).schema
    for wrong in odd:
        s, plain = (q.stream(lateness="1 day", schema=schema) for _ in range(2))
        for one in (s, plain):
            one.push(first)
            plain._pending = None
            one.push(first | wrong)
        assert noted(s) == 0, wrong
        assert seen(s) == seen(plain)
        assert repr(s.late.to_pylist()) == repr(plain.late.to_pylist())
        assert repr(s.close().to_pylist()) == repr(plain.close().to_pylist())


@pytest.mark.parametrize("kind", [pd.Timestamp, lambda n: np.datetime64(n, "ns")])
def test_nanoseconds_of_events_are_as_in_tables(kind: Any) -> None:
    """They order the events of one push, and picked values keep them."""
    ticks = [5_100, 5_900, 5_500, -300, -900]
    rows = [{"t": kind(n), "x": i} for i, n in enumerate(ticks)]
    table = pa.table({"t": pa.array(ticks, pa.timestamp("ns")), "x": range(5)})
    select = {"all": sash.collect("x")}
    for more in ({}, {"newest": sash.max("t")}):
        q = sash.Query(time="t", window=sash.tumbling(10), select=select | more)
        at_once, one_by_one, tables = (q.stream(lateness=100) for _ in range(3))
        first = q.stream(lateness=100)
        for one, given in ((at_once, rows), (first, table)):
            one.push(rows[:1])
            one.push(given)
            assert noted(one) == 0, "5,900 comes before 5,500"
        assert at_once.close().equals(first.close())
        for i, row in enumerate(rows):
            one_by_one.push(row)
            tables.push(table.slice(i, 1))
            tables._pending = None
        # behind a microsecond there is only their arrival
        assert noted(one_by_one) == (0 if more else 4)
        found = one_by_one.close()
        assert found.equals(tables.close())
        assert found["all"].to_pylist() == [[3, 4], [0, 1, 2]]


@pytest.mark.parametrize("as_table", [False, True])
def test_nanoseconds_in_order_are_noted(as_table: bool) -> None:
    q = sash.Query(time="t", window=sash.tumbling(100), select={"all": sash.collect("x")})
    s, plain = q.stream(lateness=100), q.stream(lateness=100)
    parts = [[1000], [2000, 3000], [4001], [5000, 5001], [9001, 7999, 7999, 9002], [6002, 6001]]
    for i, ticks in enumerate(parts):
        at, x = pa.array(ticks, pa.timestamp("ns")), list(range(i * 10, i * 10 + len(ticks)))
        table = pa.table({"t": at, "x": x})
        rows = [{"t": np.datetime64(n, "ns"), "x": x} for n, x in zip(ticks, x, strict=True)]
        s.push(table if as_table else rows)
        plain.push(table)
        plain._pending = None
        assert noted(s) == (0, 2, 3, 5, 9, 0)[i]
    assert seen(s) == seen(plain)
    assert s.close().equals(plain.close())


def test_times_of_numpy_from_texts_of_any_length() -> None:
    texts = ["2026-03-01T10:00", "2026-03-01T10", "2026-03-01T10:00:01", "2026-03-01T10:00:00.5"]
    rows: list[Any] = [{"t": np.datetime64(text), "x": i} for i, text in enumerate(texts)]
    rows.append({"t": np.datetime64("NaT"), "x": 9})
    q = sash.Query(time="t", window=sash.tumbling("1 hour"), select={"all": sash.collect("x")})
    s, at_once = q.stream(lateness="1 hour"), q.stream(lateness="1 hour")
    for row in rows[:-1]:
        s.push(row)
    assert noted(s) == 3
    at_once.push(rows)
    assert at_once.late["reason"].to_pylist() == ["its time is null"]
    found = s.close()
    assert found.equals(at_once.close())
    assert found["all"].to_pylist() == [[0, 1, 3, 2]]
    with pytest.raises(TypeError, match=r"the time column 't' has type date32.*datetime\.combine"):
        q.stream().push({"t": np.datetime64("2026-03-01"), "x": 1})
    with pytest.raises(TypeError, match=r"some times are beyond those of datetime64\[ns\]"):
        q.stream().push([{"t": np.datetime64(*t), "x": 1} for t in ((0, "ns"), ("3000", "s"))])


def test_null_of_pandas_is_null() -> None:
    q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count("x")})
    s = q.stream()
    s.push([{"t": 1, "x": pd.NA}, {"t": 2, "x": 3}, {"t": pd.NaT, "x": 3}])
    assert s.late["reason"].to_pylist() == ["its time is null"]
    assert s.close()["n"].to_pylist() == [1]


def test_an_interrupt_while_an_event_is_noted_stops_the_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    s = query().stream()
    first, second, third = events(3)
    s.push(first)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(s._pending, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            s.push(second)
    with pytest.raises(RuntimeError, match="KeyboardInterrupt stopped this stream"):
        s.push(third)


@pytest.mark.parametrize("window", [sash.tumbling(10), sash.rows(2), sash.session(5)])
def test_a_warning_of_late_rows_may_be_an_error(window: Any) -> None:
    q = sash.Query(time="t", window=window, select={"many": sash.count()})
    s = q.stream(keep_late=1)
    s.push({"t": [1, 100]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="keeps 1 late rows"):
            s.push({"t": [1, 2]})
    assert (s.counts["late"], s.late_dropped, s.late.num_rows) == (2, 1, 1)
    again = sash.Stream.from_bytes(s.to_bytes(), q)
    assert again.late_dropped == 1
    with pytest.warns(RuntimeWarning, match="2 older ones"):
        again.push({"t": [3]})


@pytest.mark.parametrize("aware", [False, True])
@pytest.mark.parametrize("window", [sash.tumbling("1 hour"), sash.trailing("1 hour")])
def test_times_besides_the_events_time_are_noted(window: Any, aware: bool) -> None:
    """A time of another zone is noted; one without a zone among times with one, and the other way
    round, is not."""
    zone = UTC if aware else None
    begins = datetime(2026, 3, 1, 12, tzinfo=zone)
    select = {"last": sash.max("seen"), "kept": sash.collect("seen"), "n": sash.count()}
    q = sash.Query(time="t", by=["k"], window=window, select=select)
    s, plain = q.stream(lateness="1 day"), q.stream(lateness="1 day")
    other = begins.astimezone(timezone(timedelta(hours=2))) if aware else begins
    seen_at = [begins, begins - timedelta(days=40_000), None, other, begins + timedelta(seconds=1)]
    events = [
        {"t": begins + timedelta(minutes=i), "k": begins, "seen": at}
        for i, at in enumerate(seen_at)
    ]
    odd = {"t": begins, "k": begins, "seen": begins.replace(tzinfo=None if aware else UTC)}
    made = {"noted": list[str](), "plain": list[str]()}
    for i, event in enumerate([*events, odd]):
        quick = i > 0 and event is not odd
        assert (_reader_of(s).read(event) is not None) == quick if i else True
        vars(plain).update({n: None for n in ("_pending", "_reader") if n in vars(plain)})
        made["noted"].append(str(s.push(event).to_pylist()))
        made["plain"].append(str(plain.push(event).to_pylist()))
    assert made["noted"] == made["plain"]
    assert s.close().equals(plain.close())
    assert repr(s.late.to_pylist()) == repr(plain.late.to_pylist())


def _reader_of(stream: Any) -> Any:
    return stream._pending or stream._reader
