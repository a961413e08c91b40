"""Small pushes into streams whose windows events make.  Batches of plain events of which each row
counts go in without the steps that judge and convert rows; other batches take these steps."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.engine.test_event_streams import (
    ONE_OF_EACH,
    SESSIONS,
    TRAILING,
    WINDOWS,
    events,
    last_ones,
    name,
    query,
)

import sash
from sash.engine.event_stream import EventStream
from sash.testing.queries import differences, replay, rows_of
from sash.testing.streams import STREAMS, batches
from thinning import FULL, STAGE

#: Ready operators, of which the first two do not commute.
SELECT = {
    "first": sash.first("x"),
    "last": sash.last("n"),
    "many": sash.count(),
    "total": sash.sum("i"),
    "who": sash.arg_max("s", "x"),
}
MODES = [(window, "final") for window in WINDOWS]
MODES += [(window, "live") for window in (*TRAILING, *SESSIONS[:-1])]
#: Kinds of streams, each with a lateness by which some rows are late and many are not.
LATENESS = dict.fromkeys(STREAMS, "3 seconds")
LATENESS |= {"in order": "0 seconds", "gaps": "0 seconds", "before 1970": "1 day"}
del LATENESS["all late"]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows of each push that goes in at once."""
    rows: list[int] = []
    entered = EventStream._entered

    def noted(self: Any, batch: Any, judged: Any) -> Any:
        rows.append(len(judged.times))
        return entered(self, batch, judged)

    monkeypatch.setattr(EventStream, "_entered", noted)
    return rows


def plain(kind: str, count: int) -> pa.Table:
    """A stream of types that need no conversion, in dicts too."""
    return events(kind, count).drop_columns(["w"])


def pushed(s: Any, given: list[Any]) -> list[Any]:
    """All rows that a stream emits."""
    made = []
    for batch in given:
        made.append(s.push(batch))
        s._check()
    made.append(s.close())
    s._check()
    tables = [pa.table(part) for part in made]
    return [row for table in tables if table.num_columns for row in rows_of(table)]


def chosen(i: int) -> list[tuple[int, str]]:
    """A seed and a kind of stream, others for each stage."""
    made = [(i + j, [*LATENESS][(i + 3 * j) % len(LATENESS)]) for j in range(3)]
    return made if FULL else [made[(i + STAGE) % 3]]


@pytest.mark.plain
@pytest.mark.parametrize(("window", "mode"), MODES, ids=repr)
def test_rows_are_those_of_the_judge_and_of_other_batches(
    window: Any, mode: Any, at_once: list[int]
) -> None:
    q = query(window=window, select=SELECT)
    for seed, kind in chosen([*MODES].index((window, mode))):
        tables = [*batches(plain(kind, 40), seed=seed, least=1, most=3)]
        source, given = random.Random(seed), []
        for i, table in enumerate(tables):
            shape = source.choice(("dicts", "dict", "table")) if i else "table"
            if shape == "table":
                given.append(table)
            else:
                rows = table.to_pylist()
                given += [rows] if shape == "dicts" else rows
        s, other = (q.stream(lateness=LATENESS[kind], mode=mode) for _ in range(2))
        rows = pushed(s, given)
        assert s._reader is not None
        assert at_once
        del at_once[:]
        as_tables = [b if isinstance(b, pa.Table) else of(b, tables[0].schema) for b in given]
        unnoted = [b.to_batches()[0] for b in as_tables]
        assert repr(pushed(other, unnoted)) == repr(rows)
        assert not at_once
        assert (s.counts, s.delays) == (other.counts, other.delays)
        assert late_rows(s) == late_rows(other)
        expected, late = replay(q, as_tables, LATENESS[kind])
        expected.sort(key=lambda row: name(q, row))
        assert not differences(q, expected, last_ones(q, rows, live=mode == "live"))
        assert [row["n"] for row in s.late.to_pylist()] == [row["n"] for row, _ in late]


def late_rows(s: Any) -> list[Any]:
    """The late rows; the order of their columns is that of a batch."""
    return [repr(sorted(row.items())) for row in s.late.to_pylist()]


def of(batch: Any, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(batch if isinstance(batch, list) else [batch], schema)


@pytest.mark.parametrize("window", ONE_OF_EACH, ids=repr)
def test_a_snapshot_and_questions_between_small_pushes(window: Any, at_once: list[int]) -> None:
    q = query(window=window, select=SELECT)
    given = plain("disorder", 60).to_pylist()
    schema = plain("disorder", 60).schema
    s, whole = (q.stream(lateness="2 seconds", schema=schema) for _ in range(2))
    made: list[list[Any]] = [[], []]
    for i, event in enumerate(given):
        if i % 9 == 8:
            s = sash.Stream.from_bytes(s.to_bytes(), q)
        if i % 4 == 3:
            sizes = [one.state_size() for one in (s, whole)]
            assert len({(size["keys"], size["slices"]) for size in sizes}) == 1
        for rows, one in zip(made, (s, whole), strict=True):
            found = one.push(event)
            rows += rows_of(found) if found.num_columns else []
    assert repr(made[0]) == repr(made[1])
    assert len(at_once) > 20
    assert repr(rows_of(s.close())) == repr(rows_of(whole.close()))
    assert (s.counts, s.delays) == (whole.counts, whole.delays)
    with pytest.raises(ValueError, match="closed"):
        s.push(given[-1] | {"t": given[-1]["t"].replace(year=2100)})


@pytest.mark.plain
@pytest.mark.parametrize("kind", ["us", "ns", "s", "Timestamp"])
@pytest.mark.parametrize("window", ONE_OF_EACH, ids=repr)
def test_values_of_numpy_and_pandas_go_in_at_once(
    window: Any, kind: str, at_once: list[int]
) -> None:
    """They give the rows that tables of the same values give."""
    q = query(window=window, select=SELECT)
    table = plain("disorder", 30)
    unit = pa.timestamp("us" if kind == "Timestamp" else kind)
    schema = table.schema.set(table.schema.get_field_index("t"), pa.field("t", unit))
    rows = table.to_pylist()
    for row in rows:
        time = row["t"].replace(tzinfo=None, microsecond=0)
        row["t"] = pd.Timestamp(time) if kind == "Timestamp" else np.datetime64(time, kind)
        row["n"] = np.int64(row["n"])
        row["x"] = row["x"] if row["x"] is None else np.float64(row["x"])
    s, other = (q.stream(lateness="3 seconds") for _ in range(2))
    found = pushed(s, [of(rows[:5], schema), *rows[5:]])
    assert len(at_once) > 10
    del at_once[:]
    unnoted = [of(rows[:5], schema), *(of(row, schema).to_batches()[0] for row in rows[5:])]
    assert repr(pushed(other, unnoted)) == repr(found)
    assert not at_once
    assert (s.counts, s.delays) == (other.counts, other.delays)


@pytest.mark.parametrize("wrong", ["a", 2**70, True, [1]], ids=repr)
def test_an_event_of_another_type_is_late(wrong: Any) -> None:
    q = query(window=TRAILING[0], select=SELECT)
    s = q.stream(lateness="1 day")
    s.push(plain("in order", 5))
    event = plain("in order", 6).to_pylist()[-1]
    before = s.counts["counted"]
    s.push(event | {"i": wrong})
    assert (s.counts["counted"], s.counts["late"]) == (before, 1)
    s.push(event)
    assert s.counts["counted"] == before + 1


@pytest.mark.parametrize(
    "window", [TRAILING[0], sash.window(keep="5 seconds", every=sash.rows(2))], ids=repr
)
def test_a_watermark_without_events_lets_entries_go(window: Any) -> None:
    s = query(window=window, select=SELECT).stream()
    s.push(plain("in order", 20))
    newest = plain("in order", 20)["t"][-1].as_py()
    for micros in (1, 2, 3):
        s.advance(newest + timedelta(microseconds=micros))
    assert s.state_size()["slices"] > 0
    s.advance(newest + timedelta(seconds=6))
    assert s.state_size()["slices"] == 0


@pytest.mark.plain
@pytest.mark.parametrize(
    "window", [sash.tumbling(10), sash.trailing(10), sash.session(3)], ids=repr
)
def test_the_user_may_write_over_the_memory_of_one_row(window: Any) -> None:
    times, keys = np.zeros(1, np.int64), np.zeros(1, np.int64)
    batch = pa.record_batch({"t": pa.array(times), "k": pa.array(keys)})
    q = query(window=window, select={"n": sash.count()})
    s, other = q.stream(), q.stream()
    made: list[list[Any]] = [[], []]
    for times[0], keys[0] in [(1, 5), (2, 6), (3, 5), (4, 7), (5, 6), (6, 6)]:
        copied = pa.record_batch({name: batch[name].to_pylist() for name in ("t", "k")})
        for rows, one, given in zip(made, (s, other), (batch, copied), strict=True):
            rows += one.push(given).to_pylist()
    assert made[0] + s.close().to_pylist() == made[1] + other.close().to_pylist()
