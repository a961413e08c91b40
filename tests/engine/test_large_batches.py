"""Large batches take passes of kernels in place of many calls of numpy, with the same results."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash.engine import passes
from sash.engine.delays import BOUNDS, delay_counts
from sash.engine.passes import spans_of, survey
from sash.slicing.edges import cuts_of
from sash.state import parted_forest, slice_order
from sash.state.slice_order import SliceOrder
from sash.tables import keys, texts, threads
from sash.tables.arrow import times_of
from sash.tables.keys import by_group_and_number, key_codes
from sash.tables.texts import KnownTexts
from sash.testing.stored import open_stream
from sash.windows import Aligned
from sash.windows.contract import LATEST, UTC

SECOND = 1_000_000
WINDOWS: list[Aligned] = [
    sash.sliding(30, 10, offset=-3),
    sash.sliding(7, 3, offset=1),
    sash.tumbling("1 day", timezone="Europe/Berlin"),
    sash.cumulate(12, 4),
]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows are a large batch, and 16 of them are a piece."""
    for module in (passes, slice_order, texts):
        monkeypatch.setattr(module, "MANY", 4)
    monkeypatch.setattr(parted_forest, "MANY", 64)
    monkeypatch.setattr(threads, "PIECE", 16)


@pytest.mark.plain
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("came", [None, -50 * SECOND, 0, 3 * SECOND, 2**59])
def test_a_survey_finds_what_single_passes_find(came: int | None) -> None:
    source = np.random.default_rng(3)
    at_bounds = (0 if came is None else came) - np.concatenate([BOUNDS, BOUNDS + 1, [-7]])
    for times in (source.integers(-9 * SECOND, 9 * SECOND, 50), at_bounds, np.array([5, 5, 5, 5])):
        for column in (
            pa.array(times),
            pa.array(times).cast(pa.timestamp("us")),
            pa.array(times)[1:],
        ):
            seen = survey(column, came)
            plain = times_of(column)[0]
            if len(column) < 4:
                assert seen is None
                continue
            assert seen is not None
            assert seen.times.tolist() == plain.tolist()
            assert (seen.least, seen.greatest) == (plain.min(), plain.max())
            assert seen.delays.tolist() == delay_counts(plain, came).tolist()


@pytest.mark.plain
@pytest.mark.usefixtures("few")
def test_a_survey_leaves_times_that_need_care_to_others() -> None:
    whole = [3, 1, 4, 1, 5]
    assert survey(pa.array(whole), 2) is not None
    assert survey(pa.array(whole), np.array(whole)) is None
    assert survey(pa.array([*whole, None]), 2) is None
    assert survey(pa.array(whole[:3]), 2) is None
    for kind in (pa.timestamp("ns"), pa.timestamp("s"), pa.uint64(), pa.int32()):
        assert survey(pa.array(whole).cast(kind), 2) is None
    for far in (LATEST, -LATEST, 2**63 - 1, -(2**63)):
        assert survey(pa.array([*whole, far]), 2) is None
        inside = far - 1 if far > 0 else far + 1
        assert (survey(pa.array([*whole, inside]), 2) is None) == (abs(far) > LATEST)
    berlin = sash.tumbling("1 day", timezone="Europe/Berlin").clock
    for end in berlin.limits:
        assert survey(pa.array([*whole, end]), 2, UTC) is not None
        assert survey(pa.array([*whole, end]), 2, berlin) is None


@pytest.mark.plain
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_spans_of_many_windows(window: Aligned) -> None:
    numbers = np.array([-3, 0, 7, 8, 200, 3])
    for some in (numbers, numbers[:2]):
        starts, ends = spans_of(window, some)
        assert starts.tolist() == window.start(some).tolist()
        assert ends.tolist() == window.end(some).tolist()


@pytest.mark.plain
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("window", [w for w in WINDOWS if w.clock is UTC], ids=repr)
def test_rows_in_order_of_key_and_slice(window: Aligned) -> None:
    """Of all keys, or of some; some keys have no rows."""
    source, edges = np.random.default_rng(8), cuts_of(window)
    for rows in (4, 60):
        codes, times = source.integers(0, 7, rows), source.integers(-40, 40, rows)
        order = SliceOrder.of(codes, times, edges)
        assert order is not None
        for low, high in ((0, 9), (2, 5), (6, 7)):
            own = np.flatnonzero((codes >= low) & (codes < high))
            found = order.rows(low, high, len(own) + 99)
            assert found is not None
            at, bounds = by_group_and_number(codes[own] - low, high - low, edges.number(times[own]))
            assert found[0][: len(own)].tolist() == own[at].tolist()
            assert found[1][: len(own)].tolist() == times[own[at]].tolist()
            assert found[2].tolist() == bounds.tolist()
        far = np.append(times[1:], 10**9)
        wide = SliceOrder.of(codes, far, edges)
        assert wide is not None
        assert wide.rows(0, 9, rows) is None  # too many slices
    assert SliceOrder.of(codes[:3], times[:3], edges) is None


TEXTS = ["", "a", "ab", "seventy", "eight888", "nine nine", "ü" * 11, "ü" * 11 + "v", "\0", "\0\0"]


@pytest.mark.plain
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["string", "large_string"])
def test_texts_known_from_earlier_batches(
    kind: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them or some, in any order, from any row on; and texts that are not known."""
    source, known = np.random.default_rng(2), [KnownTexts(), KnownTexts()]
    names = pa.array([*TEXTS, *(f"key {i}" for i in range(30))], kind)
    whole = pa.concat_arrays([names] * 4)
    key_codes([whole, whole], len(whole), threads, known)
    plain = keys._codes
    for trial in range(12):
        some = source.permutation(len(names))[: len(names) if trial % 3 else 20]
        own = names.take(pa.array(source.choice(some, 90))).slice(trial % 4)
        other = names.take(pa.array(source.choice(some, 90))).slice(trial % 4)
        for given in ([own], [own, other]):
            expected, found = key_codes(given, len(own))
            with monkeypatch.context() as patch:
                patch.setattr(keys, "_codes", None)  # the column is not numbered anew
                codes, distinct = key_codes(given, len(own), threads, known[: len(given)])
            assert codes.tolist() == expected.tolist()
            assert [one.to_pylist() for one in distinct] == [one.to_pylist() for one in found]
            assert [one.type for one in distinct] == [one.type for one in found]
    assert keys._codes is plain
    for more in ("new", None, "a longer one than all others: " + 40 * "x"):
        given = pa.concat_arrays([whole, pa.array([more], kind)])
        expected, (found,) = key_codes([given], len(given))
        codes, (distinct,) = key_codes([given], len(given), threads, known[:1])
        assert codes.tolist() == expected.tolist()
        assert distinct.equals(found)
    few = pa.array(["a"] * 9, kind)  # hardly any of the known ones
    assert known[1].codes(few) is None
    assert key_codes([few], 9, threads, known[1:])[1][0].to_pylist() == ["a"]


@pytest.mark.plain
@pytest.mark.usefixtures("few")
def test_ever_other_texts_are_kept_ever_more_seldom() -> None:
    known, kept = KnownTexts(), 0
    for batch in range(64):
        given = pa.array([f"{batch} of many {i % 3}" for i in range(30)])
        assert known.codes(given) is None
        before = known._known
        known.learn(given.unique(), 30)
        kept += known._known is not before
    assert kept == 7  # batches 0, 1, 3, 7, 15, 31 and 63
    assert copy.deepcopy(known)._known is None


def events(rows: int, seed: int, late: int) -> pa.Table:
    source = np.random.default_rng(seed)
    times = seed * 40 + source.integers(0, 60, rows) - late * source.integers(0, 2, rows) * 90
    names = pa.array(["p", "q", "", None, "long " * 9, *map(str, range(40))])
    some = 5 if seed % 2 else 45
    at = source.integers(0, some, rows)
    at[at == 3] = 3 if seed == 2 else 4  # one batch has a null key
    return pa.table(
        {
            "t": pa.array(times, pa.int64()),
            "k": names.take(pa.array(at)),
            "x": pa.array(source.choice([1.5, -2.0, 0.25, 1e17, np.nan], rows)),
            "i": pa.array(source.integers(-9, 9, rows), mask=source.random(rows) < 0.2),
        }
    )


@pytest.mark.parametrize("mode", ["final", "live"])
@pytest.mark.parametrize("by", [["k"], ["k", "i"], []], ids=repr)
@pytest.mark.parametrize("window", [WINDOWS[1]], ids=repr)
def test_streams_emit_what_they_emit_for_small_batches(
    window: Any, by: list[str], mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also late rows, counts and delays; with late rows or without; in one thread or several."""
    select = {"n": sash.count("i"), "total": sash.sum("x"), "most": sash.max("x")}
    q = sash.Query(time="t", by=by, window=window, select=select)
    made: dict[tuple[bool, str], Any] = {}
    for large in (False, True):
        for module in (passes, slice_order, texts):
            monkeypatch.setattr(module, "MANY", 4 if large else 10**9)
        for many in ("1", "3"):
            monkeypatch.setenv("SASH_THREADS", many)
            monkeypatch.setattr(parted_forest, "MANY", 64)
            s = open_stream("memory", q, lateness=50, mode=mode)
            found: list[Any] = []
            for seed in range(1, 7):
                found.append(s.push(events(150, seed, late=seed == 5)).to_pydict())
            found += [s.take_late().to_pydict(), s.counts, s.delays, s.close().to_pydict()]
            made[large, many] = repr(found)
    assert s.counts["late"] > 0
    assert len(set(made.values())) == 1


def test_a_row_that_lift_refuses_is_late_in_a_large_batch_too(few: None) -> None:
    def lift(x: float) -> float:
        if x < 0:
            raise ValueError("less than nothing")
        return x

    op = sash.operator(identity=0.0, lift=lift, combine=lambda a, b: a + b, commutative=True)
    q = sash.Query(time="t", window=sash.tumbling(10), select={"total": sash.aggregate(op, "x")})
    s = q.stream()
    s.push({"t": list(range(8)), "x": [1.0, 2, -3, 4, 5, 6, 7, 8]})
    assert s.late["reason"].to_pylist() == ["less than nothing"]
    assert s.close()["total"].to_pylist() == [33.0]
