"""Aggregators of Spark's shape as operators."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st

import sash
from sash.engine.identity import fingerprint
from sash.operators.aggregator import from_aggregator
from sash.testing import laws
from sash.testing.queries import answers, differences
from sash.testing.stored import open_stream


class Mean:
    """A mean with the count of nulls; all of it changes its buffers."""

    commutative = True

    @property
    def zero(self) -> list[Any]:
        return [0, 0, 0]

    def reduce(self, buffer: list[Any], x: int | None) -> list[Any]:
        if x is None:
            buffer[2] += 1
        else:
            buffer[0] += 1
            buffer[1] += x
        return buffer

    def merge(self, a: list[Any], b: list[Any]) -> list[Any]:
        for i, value in enumerate(b):
            a[i] += value
        b.clear()
        return a

    def finish(self, buffer: list[Any]) -> Any:
        count, total, nulls = buffer
        buffer.clear()
        return None if not count else total / count + nulls


class Names:
    """The values in order; a set is no plain value."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def zero(self) -> Any:
        return {"seen": set(), "all": []}

    def reduce(self, buffer: Any, x: Any, y: Any) -> Any:
        buffer["seen"].add(x)
        buffer["all"].append(f"{x}{self.mark}{y}")
        return buffer

    def merge(self, a: Any, b: Any) -> Any:
        a["seen"] |= b["seen"]
        a["all"] += b["all"]
        return a

    def finish(self, buffer: Any) -> Any:
        return ", ".join(buffer["all"])


class Encoded(Names):
    def encode(self, buffer: Any) -> bytes:
        return "\n".join(buffer["all"]).encode()

    def decode(self, data: bytes) -> Any:
        return {"seen": set(), "all": data.decode().split("\n") if data else []}


TABLE = pa.table({"t": [1, 2, 3, 12, 14], "x": [1, None, 5, 2, 8], "s": list("abcde")})


def query(**select: sash.Aggregate) -> sash.Query:
    return sash.Query(time="t", window=sash.sliding(20, 10), select=select)


def joined(*given: pa.Table) -> pa.Table:
    """All rows; where there are none, answers have no type."""
    return pa.concat_tables(given, promote_options="permissive")


def test_aggregators_obey_the_laws() -> None:
    laws(from_aggregator(Mean(), 1), st.none() | st.integers(-9, 9), max_examples=30)
    pairs = st.tuples(st.none() | st.sampled_from("ab"), st.integers(0, 3))
    laws(from_aggregator(Names("-"), 2), pairs, max_examples=30)


def test_tables_and_streams_and_stores() -> None:
    q = query(mean=sash.aggregate(Mean(), "x"), names=sash.aggregate(Encoded("-"), "s", "x"))
    right = answers(q, TABLE)
    assert [row["mean"] for row in right] == [4.0, 5.0, 5.0]
    assert right[0]["names"] == "a-1, b-None, c-5"
    assert not differences(q, right, q.run(TABLE))
    for state in ("memory", "tiles"):
        s = open_stream(state, q, lateness=100)
        given = [s.push(TABLE.slice(i, 2)) for i in range(0, 5, 2)]
        assert not differences(q, right, joined(*given, s.close()), ordered=False)
    again = sash.Stream.from_bytes(q.stream(schema=TABLE.schema).to_bytes(), q)
    assert not differences(q, right, joined(again.push(TABLE), again.close()))


def test_one_that_takes_a_tuple() -> None:
    class Pairs(Names):
        def reduce(self, buffer: Any, row: Any) -> Any:  # type: ignore[override]
            return super().reduce(buffer, *row)

    q = query(names=sash.aggregate(Pairs("+"), "s", "x"))
    assert q.run(TABLE)["names"][0].as_py() == "a+1, b+None, c+5"


def test_buffers_that_are_no_plain_values_stay_in_memory() -> None:
    q = query(names=sash.aggregate(Names("-"), "s", "x"))
    assert q.run(TABLE)["names"][0].as_py() == "a-1, b-None, c-5"
    s = q.stream()
    s.push(TABLE)
    with pytest.raises(TypeError, match="encode"):
        s.to_bytes()
    with pytest.raises(TypeError, match="encode"):
        open_stream("tiles", q).push(TABLE)


def test_another_aggregator_is_another_query() -> None:
    marks = [query(n=sash.aggregate(Encoded(mark), "s", "x")) for mark in ("-", "-", "+")]
    first, same, other = map(fingerprint, marks)
    assert first == same != other


def test_what_is_no_aggregator_is_refused() -> None:
    with pytest.raises(TypeError, match="zero, reduce, merge and finish"):
        sash.aggregate(Mean, "x")
    with pytest.raises(TypeError, match="zero, reduce, merge and finish"):
        sash.aggregate(object(), "x")
