"""Keys of types that take some care: one zero, one NaN, and the type that they came in."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash.engine.stream import Stream
from sash.state.key_hash import hash_keys
from sash.tables import keys
from sash.tables import threads as threads_module
from sash.tables.keys import by_group_and_number, key_codes, repeated


def query() -> sash.Query:
    return sash.Query(time="t", by=["k"], window=sash.tumbling(10), select={"n": sash.count()})


def both(keys: pa.Array) -> list[dict[str, Any]]:
    """What a run gives for these keys; a stream, fed row by row and restored, gives the same."""
    table = pa.table({"t": list(range(1, 10))[: len(keys)] or [], "k": keys})
    q = query()
    run = q.run(table)
    s = q.stream(lateness=100)
    for i in range(len(keys)):
        s.push(table[i : i + 1])
        s = Stream.from_bytes(s.to_bytes(), q)
    made = s.close()
    assert made["k"].type == run["k"].type
    assert repr(made.to_pylist()) == repr(run.to_pylist())
    return [{"k": row["k"], "n": row["n"]} for row in run.to_pylist()]


@pytest.mark.plain
@pytest.mark.parametrize("kind", ["int8", "uint8", "int64", "uint64"])
def test_whole_numbers_that_are_near_each_other(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the first rows have all of them or not, and where they begin."""
    monkeypatch.setattr(keys, "BLOCK", 8)
    for values in ([0, 1, 2, 3] * 10, [5, 6, 7] * 10, [0, 1] * 10 + [2, 9], [3] + [100, 101] * 9):
        given = np.array(values, dtype=kind)
        before = given.copy()
        codes, (found,) = key_codes([pa.array(given)], len(given))
        distinct, places = np.unique(given, return_inverse=True)
        assert found.to_pylist() == distinct.tolist()
        assert found.type == pa.array(given).type
        assert codes.tolist() == places.tolist()
        assert given.tolist() == before.tolist()


@pytest.mark.plain
@pytest.mark.parametrize("many", [3, 35, 40, 4_000], ids="{} of each".format)
@pytest.mark.parametrize("threads", [1, 3])
def test_pairs_of_keys(many: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer pairs than rows, as many or far more: by a table, by one with gaps, or by sorting."""
    monkeypatch.setattr(keys, "BLOCK", 8)
    monkeypatch.setattr(threads_module, "PIECE", 16)
    source = np.random.default_rng(many)
    a, b = source.integers(0, many, (2, 1_500))
    texts = pa.array([f"{i:05}" for i in a])
    codes, found = key_codes([texts, pa.array(b)], len(a), threads)
    pairs = sorted({(f"{i:05}", int(j)) for i, j in zip(a, b, strict=True)})
    assert list(zip(*(f.to_pylist() for f in found), strict=True)) == pairs
    assert [pairs[c] for c in codes] == list(zip(texts.to_pylist(), b.tolist(), strict=True))


@pytest.mark.plain
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("piece", [32, 10_000])
def test_texts_that_two_threads_sort(
    kind: pa.DataType, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The distinct texts of one piece or of several, which may have the same."""
    monkeypatch.setattr(keys, "_MANY_TEXTS", 2)
    monkeypatch.setattr(threads_module, "PIECE", piece)
    source = np.random.default_rng(4)
    for distinct in (1, 2, 3, 300, 2_000):
        texts = [f"{i * 7919 % 10_007:x}" for i in range(distinct)]
        for more in ([], [None], ["", "é", "\U0001f600", None]):
            given = [*texts, *more]
            at = np.append(np.arange(len(given)), source.integers(0, len(given), 500))
            column = pa.array([given[i] for i in at], kind)
            codes, (found,) = key_codes([column], len(column), 2)
            there = sorted((x for x in set(given) if x is not None), key=str.encode)
            assert found.to_pylist() == [None] * (None in given) + there
            assert found.take(pa.array(codes)).equals(column)


@pytest.mark.plain
@pytest.mark.parametrize("kind", ["int8", "uint8", "int64", "uint64"])
@pytest.mark.parametrize("block", [4, 100])
def test_least_and_greatest(kind: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces that are longer or shorter than what stays in the cache."""
    monkeypatch.setattr(threads_module, "BLOCK", block)
    ends = np.iinfo(kind)
    values = np.random.default_rng(5).integers(ends.min, ends.max, 300, kind, endpoint=True)
    for some in (values, values[::3], values[:1], np.append(values, [ends.min, ends.max])):
        assert threads_module.extremes(some) == (min(some.tolist()), max(some.tolist()))


@pytest.mark.plain
@pytest.mark.parametrize("span", [1, 20, 100_000])
def test_rows_in_order_of_key_and_number(span: int) -> None:
    """Few keys and numbers, in one sort, or many; some keys have no rows."""
    source = np.random.default_rng(span)
    for rows in (0, 1, 500):
        codes, numbers = source.integers(0, 7, rows), source.integers(-5, span, rows)
        found, bounds = by_group_and_number(codes, 9, numbers)
        expected = sorted(range(rows), key=lambda i: (codes[i], numbers[i]))
        assert found.tolist() == expected
        assert bounds.tolist() == [int((codes < key).sum()) for key in range(10)]


@pytest.mark.plain
@pytest.mark.parametrize("threads", [1, 3])
def test_keys_repeated_for_their_rows(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads_module, "PIECE", 4)
    whole = pa.array([3, 1, 4, 1, 5, 9])
    kinds = [pa.int64(), pa.uint64(), pa.int8(), pa.float64(), pa.timestamp("us", "UTC")]
    columns = [whole.cast(kind) for kind in [*kinds, pa.string(), pa.decimal128(21, 2)]]
    columns += [pa.array([3, None, 4, 1, 5, 9]), pa.array([[1], [], None, [2], [3], [4]])]
    columns += [whole.slice(1), whole.slice(0, 0)]
    for counts in ([2, 0, 9, 1, 0, 7], [0] * 6, [30, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 1]):
        for column in columns:
            own = counts[: len(column)]
            (made,) = repeated([column], np.cumsum(own, dtype=np.int64), threads)
            expected = [x for x, n in zip(column.to_pylist(), own, strict=True) for _ in range(n)]
            assert made.type == column.type
            assert made.to_pylist() == expected


def test_structs_with_fields_that_are_never_null() -> None:
    kind = pa.struct([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    found = both(pa.array([{"a": 1, "b": "x"}, {"a": 1, "b": "x"}, None], kind))
    assert [row["n"] for row in found] == [1, 2]


def test_structs_and_lists_of_dictionaries() -> None:
    coded = pa.array(["b", "a", "b"]).dictionary_encode()
    found = both(pa.StructArray.from_arrays([coded], names=["c"]))
    assert found == [{"k": {"c": "a"}, "n": 1}, {"k": {"c": "b"}, "n": 2}]
    found = both(pa.ListArray.from_arrays([0, 1, 2, 3], coded))
    assert found == [{"k": ["a"], "n": 1}, {"k": ["b"], "n": 2}]


def test_lists_have_one_zero_and_one_nan() -> None:
    found = both(pa.array([[0.0], [-0.0], [np.nan], [-np.nan]]))
    assert repr(found) == repr([{"k": [0.0], "n": 2}, {"k": [np.nan], "n": 2}])
    found = both(pa.array([[{"a": -0.0}], [{"a": 0.0}]]))
    assert repr(found) == repr([{"k": [{"a": 0.0}], "n": 2}])


def test_a_dictionary_whose_indices_are_used_up() -> None:
    values = pa.array([f"{i:03}" for i in range(128)])
    keys = pa.DictionaryArray.from_arrays(pa.array([127, None, 0], pa.int8()), values)
    assert both(keys) == [{"k": None, "n": 1}, {"k": "000", "n": 1}, {"k": "127", "n": 1}]


def test_types_that_arrow_has_no_order_for() -> None:
    low, high = uuid.UUID(int=1), uuid.UUID(int=2)
    found = both(pa.array([high.bytes, low.bytes, None, high.bytes], pa.uuid()))
    assert found == [{"k": None, "n": 1}, {"k": low, "n": 1}, {"k": high, "n": 2}]
    spans = pa.array([(1, 2, 3), (0, 2, 3), (1, 2, 3)], pa.month_day_nano_interval())
    assert [row["n"] for row in both(spans)] == [1, 2]
    decimals = pa.array([2, 1, 2], pa.int64()).cast(pa.decimal128(20, 0)).cast(pa.decimal32(5, 1))
    assert [row["n"] for row in both(decimals)] == [1, 2]


def test_half_a_key_is_never_kept() -> None:
    from sash.state.key_numbers import KeyNumbers

    keys = KeyNumbers([pa.int64()])
    with pytest.raises(pa.ArrowInvalid):
        keys.add([pa.array(["a"])], 1)
    assert len(keys) == keys.most == 0


@pytest.mark.plain
@pytest.mark.parametrize("values", [["a", "b", None], [1.5, float("nan"), None], [1, 2, None]])
def test_keys_that_come_again_have_the_same_numbers_until_they_are_removed(values: Any) -> None:
    from sash.state.key_numbers import KeyNumbers

    column = pa.array(values)
    keys = KeyNumbers([column.type])
    for _ in range(2):
        assert keys.add([column], 3).tolist() == [0, 1, 2]
    assert keys.add([column.slice(0, 2)], 2).tolist() == [0, 1]
    assert keys.add([column], 3).tolist() == [0, 1, 2]
    keys.remove(np.array([1]))
    assert keys.add([column], 3).tolist() == [0, 3, 2]
    others = keys.add([pa.array(range(20)).cast(column.type)], 20)
    keys.remove(np.setdiff1d(others, [0, 2, 3]))
    again = keys.add([column], 3)
    assert again.tolist() == [0, 3, 2]
    kept = keys.compact()
    assert kept is not None
    assert kept[keys.add([column], 3)].tolist() == again.tolist()
    restored = KeyNumbers([column.type])
    assert restored.add([column], 3).tolist() == [0, 1, 2]
    restored.restore(keys.table())
    assert restored.add([column], 3).tolist() == keys.add([column], 3).tolist()


def test_a_key_of_another_type_is_not_asked_for() -> None:
    s = query().stream()
    s.push({"t": 1, "k": "a"})
    with pytest.raises(TypeError, match="a key is of type string, and 5 is not"):
        s.query(5)
    s = query().stream()
    s.push({"t": 1, "k": 1})
    with pytest.raises(TypeError, match=r"a key is of type int64, and 1\.7 is not"):
        s.query(1.7)
    assert s.query(1.0) == {"n": 1}


def test_maps_with_the_same_entries_are_one_key() -> None:
    kind = pa.map_(pa.string(), pa.float64())
    maps: list[Any] = [[("a", 1.0), ("b", 0.0)], [("b", -0.0), ("a", 1.0)], None, [("a", 1.0)], []]
    found = both(pa.array(maps, kind))
    assert [(row["k"], row["n"]) for row in found] == [
        (None, 1),
        ([], 1),
        ([("a", 1.0)], 1),
        ([("a", 1.0), ("b", 0.0)], 2),
    ]
    nested = pa.array([{"l": [m]} for m in maps], pa.struct({"l": pa.list_(kind)}))
    assert [row["n"] for row in both(nested)] == [1, 1, 1, 2]
    s = query().stream(schema=pa.schema({"t": pa.int64(), "k": kind}))
    s.push([{"t": 1, "k": {"a": 1, "b": 2}}, {"t": 2, "k": {"b": 2, "a": 1}}])
    assert s.query({"b": 2, "a": 1}) == {"n": 2}


_MAP = pa.map_(pa.string(), pa.float64())
_ONE_WAY, _OTHER_WAY = [("a", 1.0), ("b", 0.0)], [("b", -0.0), ("a", 1.0)]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.5, -0.0, 0.0, np.nan, -np.nan, None], from_pandas=False),
        pa.array([1, None, 1, 2], pa.int8()),
        pa.array(["", "x", "x" * 300, None]),
        pa.array(["b", "a", None, "b"]).dictionary_encode(),
        pa.array([Decimal("1.50"), Decimal("1.5"), None], pa.decimal128(21, 2)),
        pa.array([{"x": -0.0}, {"x": 0.0}, None, {"x": None}]),
        pa.array([[0.0], [-0.0], [], None, [np.nan]]),
        pa.array([_ONE_WAY, _OTHER_WAY, None, []], _MAP),
        pa.array([{"m": _ONE_WAY}, {"m": _OTHER_WAY}], pa.struct({"m": _MAP})),
        pa.array([[_ONE_WAY], [_OTHER_WAY]], pa.list_(_MAP)),
    ],
    ids=lambda column: str(column.type)[:20],
)
def test_equal_keys_have_equal_hashes(column: pa.Array) -> None:
    """The hash of a row's key is that of the key that stands for it, so that all rows of a key go
    to one bucket however they come."""
    codes, keys = key_codes([column], len(column))
    of_rows, of_keys = hash_keys([column], len(column)), hash_keys(keys, len(keys[0]))
    assert of_rows.tolist() == of_keys[codes].tolist()
    assert len(set(of_keys.tolist())) == len(of_keys)
