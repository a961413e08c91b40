"""Values that are neither numbers nor times, over whole tables: compiled, by number."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import sash
from sash.kernels.program import jit_enabled
from sash.query.plan import make_plan
from sash.testing.queries import answers, differences

DAY = date(2024, 2, 28)
#: A type, and values of it of which some are equal.
KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["", "b", "a", "é", "ab", "z\u0301", "\U0001f600", "\uffff"]),
    "encoded": (pa.dictionary(pa.int8(), pa.string()), ["UA", "AA", "B6"]),
    "bytes": (pa.binary(), [b"", b"\xff", b"a", b"\x00"]),
    "decimal": (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("-0.25"), Decimal(0), Decimal(10)]),
    "date": (pa.date32(), [DAY, DAY + timedelta(1), DAY + timedelta(2)]),
    "duration": (pa.duration("us"), [timedelta(0), timedelta(seconds=-1), timedelta(days=9)]),
    "struct": (pa.struct({"x": pa.int64()}), [{"x": 1}, {"x": None}, {"x": -2}]),
}


def events(kind: str, count: int, seed: int = 7) -> pa.Table:
    source = random.Random(seed)
    type_, pool = KINDS[kind]
    values = [source.choice([*pool, None]) for _ in range(count)]
    if pa.types.is_dictionary(type_):
        column = pa.array(values, type_.value_type).dictionary_encode().cast(type_)
    else:
        column = pa.array(values, type_)
    return pa.table(
        {
            "t": pa.array([source.randrange(60) for _ in range(count)], pa.int64()),
            "k": [source.choice("pq") for _ in range(count)],
            "x": pa.array([source.choice([1.5, 2.0, None]) for _ in range(count)], pa.float64()),
            "v": column,
        }
    )


def select(kind: str) -> dict[str, Any]:
    made = {
        "n": sash.count(),
        "first": sash.first("v"),
        "last": sash.last("v", ignore_nulls=True),
        "who": sash.arg_max("v", by="x"),
    }
    if kind != "struct":
        made |= {
            "least": sash.min("v"),
            "most": sash.max("v"),
            "often": sash.max_count("v"),
            "when": sash.arg_min("x", by="v"),
        }
    return made


#: What streams compile: some of the picks, which run on the kernels of SELECTS["objects"].
LABELLED = {"who": sash.arg_max("v", by="x"), "least": sash.min("v")}


@pytest.mark.parametrize(
    # structs have a kernel of their own, as they have no order
    "kind",
    [*list(KINDS)[:-1], pytest.param("struct", marks=pytest.mark.plain)],
)
@pytest.mark.parametrize("count", [0, 1, 80])
def test_answers_are_those_of_brute_force_and_compiled(kind: str, count: int) -> None:
    table = events(kind, count)
    windows = [sash.sliding(20, 5), *([sash.trailing(9)] if kind == "text" else [])]
    for window in windows:
        q = sash.Query(time="t", by=["k"], window=window, select=select(kind))
        assert not differences(q, answers(q, table), q.run(table))
        (group,) = make_plan(q, table.schema, whole=True).groups
        assert group.operator.shape != "object"
    given = table.schema.field("v").type
    wanted = given.value_type if pa.types.is_dictionary(given) else given
    assert q.run(table).schema.field("first").type == wanted


@pytest.mark.plain
def test_what_has_no_order_in_arrow_is_compared_as_objects() -> None:
    table = events("struct", 80)
    picks = {"most": sash.max("v"), "when": sash.arg_min("x", by="v"), "who": sash.first("v")}
    q = sash.Query(time="t", by=["k"], window=sash.sliding(20, 5), select=picks)
    assert not differences(q, answers(q, table), q.run(table))
    names = [group.names for group in make_plan(q, table.schema, whole=True).groups]
    assert sorted(names) == [("when", "most"), ("who",)]


def test_a_stream_keeps_the_values_themselves() -> None:
    table = events("text", 80)
    picks = LABELLED if jit_enabled() else select("text")
    q = sash.Query(time="t", by=["k"], window=sash.sliding(20, 5), select=picks)
    s = q.stream(lateness=100)
    rows = [*s.push(table.slice(0, 40)).to_pylist(), *s.push(table.slice(40)).to_pylist()]
    rows += s.close().to_pylist()
    assert not differences(q, answers(q, table), rows, ordered=False)


def test_decimals_that_arrow_cannot_number() -> None:
    small = pa.array([Decimal("1.5"), Decimal("-2.5")], pa.decimal32(5, 2))
    q = sash.Query(time="t", window=sash.tumbling(10), select={"m": sash.max("x")})
    assert q.run(pa.table({"t": [1, 2], "x": small}))["m"].to_pylist() == [Decimal("1.50")]
