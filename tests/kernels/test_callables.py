"""Operators of whatever can be called: built-in functions, ufuncs, partials, methods, objects."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import operator
import warnings
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash.aggregators import TwoStacksLite
from sash.kernels.callables import plain
from sash.kernels.program import InterpretedWarning, jit_enabled
from sash.operators.together import together


class Level(enum.IntEnum):
    LOW = 2
    HIGH = 5


class Line(NamedTuple):
    slope: float
    start: float

    def at(self, x: float) -> float:
        return self.start + self.slope * x


class Scale:
    """A callable object, and one with a method, that numba does not know."""

    def __init__(self, by: float) -> None:
        self.by = by

    def __call__(self, x: float) -> float:
        return self.by * x

    def larger(self, a: float, b: float) -> float:
        return max(a, b)


FLOOR = Level.LOW


def scaled(by: float, x: float, *, plus: float = 0.0) -> float:
    return by * x + plus


def power(x: float, n: int = 2) -> float:
    return x**n  # type: ignore[no-any-return]


COMPILED: dict[str, dict[str, Any]] = {
    "builtins": {"identity": 0.0, "lift": float, "combine": max, "lower": math.sqrt},
    "no lift": {"identity": 0, "combine": operator.add, "inverse": operator.sub},
    "ufuncs": {"identity": -math.inf, "lift": np.negative, "combine": np.maximum},
    "partial": {
        "identity": 0.0,
        "lift": functools.partial(scaled, 2.0, plus=1.0),
        "combine": functools.partial(min),
    },
    "default": {"identity": 0.0, "lift": power, "combine": operator.add},
    "keyword": {"identity": 1.0, "lift": lambda x, *, k=3: x * k, "combine": operator.add},
    "method": {"identity": 0.0, "lift": Line(0.5, 1.0).at, "combine": max},
    "enum": {
        "identity": 0,
        "lift": lambda x: 1 if x > FLOOR else 0,
        "combine": lambda a, b: min(a + b, Level.HIGH.value),
    },
}
VALUES = [3, 1, 4, 1, 5, 9, 2, 6]


@pytest.mark.parametrize("name", COMPILED)
def test_a_lift_of_one_column_reads_one(name: str) -> None:
    assert sash.operator(**COMPILED[name]).skips == (True,)


def test_what_can_be_called_is_compiled() -> None:
    parts = [sash.operator(**given, name=name) for name, given in COMPILED.items()]
    both = together(*parts).of(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        window = TwoStacksLite(both)
        got = window.slide(VALUES, 3)
    assert window._core.program.mode == ("compiled" if jit_enabled() else "checked")
    lower = together(*parts).lower
    assert lower is not None
    for i, row in enumerate(got):
        held = VALUES[max(0, i - 2) : i + 1]
        assert row == pytest.approx(lower(together(*parts).fold(held)))


@pytest.mark.skipif(not jit_enabled(), reason="about what numba refuses: SASH_JIT=0")
@pytest.mark.parametrize(
    ("role", "given"),
    [
        ("lift", {"lift": Scale(2.0)}),
        ("combine", {"combine": Scale(2.0).larger}),
        ("lift", {"lift": functools.partial(Scale(3.0))}),
        ("lower", {"lower": str}),
        ("combine", {"combine": {}.get}),
    ],
)
def test_what_numba_refuses_runs_in_plain_python_with_a_warning(
    role: str, given: dict[str, Any]
) -> None:
    name = f"{role} {next(iter(given.values()))}"
    op = sash.operator(**{"identity": 0.0, "combine": max, **given}, name=name)
    with pytest.warns(InterpretedWarning, match=f"numba refused its {role} of") as seen:
        window = TwoStacksLite(op.of(float))
    assert [warning.filename for warning in seen] == [__file__]
    assert window._core.program.mode == "objects"
    if given.get("combine") == {}.get:
        return
    assert window.slide([1.0, 3.0, 2.0], 2) == TwoStacksLite(op).slide([1.0, 3.0, 2.0], 2)


def test_a_ufunc_combines_vectors_into_out() -> None:
    def mark(out: Any, x: int) -> None:
        out[x % 3] = x

    op = sash.operator(identity=np.zeros(3, dtype=np.int64), lift=mark, combine=np.maximum)
    got = TwoStacksLite(op.of(int)).slide(np.array([3, 1, 4]), 2)
    assert np.asarray(got).tolist() == [[3, 0, 0], [3, 1, 0], [0, 4, 0]]
    assert op.fold([3, 1, 4]).tolist() == [3, 4, 0]


def test_a_vector_needs_a_lift() -> None:
    with pytest.raises(TypeError, match=r"identity is an array: give a lift\(out, x\)"):
        sash.operator(identity=np.zeros(3), combine=np.maximum)


def test_columns_are_parameters_without_a_default() -> None:
    def reads(lift: Any) -> int:
        return len(sash.operator(identity=0.0, lift=lift, combine=max).skips)

    assert reads(operator.mul) == reads(np.hypot) == reads(lambda x, y, z=1: x) == 2
    assert reads(lambda x=0: x) == reads(lambda *xs: xs[0]) == reads(bool) == reads(abs) == 1
    with pytest.raises(TypeError, match="at least one column"):
        reads(lambda *, x: x)


def test_plain_functions_are_left_as_they_are() -> None:
    assert plain(operator.itemgetter(0), 1)((7, 8)) == 7
    assert plain(power, 2) is power
    assert plain(power, 1) is not power
    assert plain(power, 1)(3) == 9


@dataclasses.dataclass
class Times:
    """A callable that cannot be hashed, and equals others that do the same."""

    by: float

    def __call__(self, x: float) -> float:
        return self.by * x


class Thrice(Times):
    def __init__(self) -> None:
        super().__init__(3.0)


def test_queries_and_streams_take_what_can_be_called() -> None:
    table = pa.table({"t": [1, 2, 3], "x": [2.0, 4.0, 3.0]})
    given: dict[str, dict[str, Any]] = {
        "largest": {"identity": -math.inf, "combine": max},
        "twice": {"identity": 0.0, "lift": Times(2.0), "combine": operator.add},
        "again": {"identity": 0.0, "lift": Times(2.0), "combine": operator.add},
        "thrice": {"identity": 0.0, "lift": Thrice(), "combine": np.maximum},
    }
    select = {
        name: sash.aggregate(sash.operator(**of, name=name, commutative=True, compile=False), "x")
        for name, of in given.items()
    }
    query = sash.Query(time="t", window=sash.tumbling(10), select=select)
    wanted = {"largest": 4.0, "twice": 18.0, "again": 18.0, "thrice": 12.0}
    (row,) = query.run(table).to_pylist()
    assert {name: row[name] for name in wanted} == wanted
    stream = query.stream()
    stream.push(table.slice(0, 2))
    stream.push(table.slice(2))
    (row,) = stream.close().to_pylist()
    assert {name: row[name] for name in wanted} == wanted


def test_a_snapshot_knows_what_is_called() -> None:
    def query(**given: Any) -> sash.Query:
        given = {"identity": 0.0, "combine": max, "compile": False, **given}
        op = sash.operator(**given, name="mine")
        select = {"m": sash.aggregate(op, "x")}
        return sash.Query(time="t", window=sash.tumbling(10), select=select)

    doubled = {"lift": functools.partial(scaled, 2.0)}
    stream = query(**doubled).stream()
    stream.push({"t": [1], "x": [2.0]})
    data = stream.to_bytes()
    again = sash.Stream.from_bytes(data, query(lift=functools.partial(scaled, 2.0)))
    assert again.close()["m"].to_pylist() == [4.0]
    for other in ({"lift": functools.partial(scaled, 3.0)}, {**doubled, "combine": np.fmax}):
        with pytest.raises(ValueError, match=r"m: (lift|combine)"):
            sash.Stream.from_bytes(data, query(**other))


def test_an_operator_made_anew_has_the_constants_of_today() -> None:
    """A module of settings may change between two, though the bytecode is the same."""
    settings = ModuleType("settings")
    window = []
    for limit in (10, 100):
        settings.LIMIT = limit  # type: ignore[attr-defined]
        own = sash.operator(
            identity=0, lift=lambda x: min(x, settings.LIMIT), combine=lambda a, b: a + b
        )
        window.append(TwoStacksLite(own).slide(np.array([5, 50, 500]), 3).tolist())
    assert window == [[5, 15, 25], [5, 55, 155]]
