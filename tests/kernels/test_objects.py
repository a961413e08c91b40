"""Kernels rewritten for Python lists."""

from __future__ import annotations

import ast
import traceback

import pytest

import sash
from sash import aggregators
from sash.aggregators import TwoStacksLite
from sash.kernels import objects, slots
from sash.kernels.chains import chains
from sash.kernels.slots import get, put

FIELD = 3
KERNELS = {
    kind._kernel.name: kind._kernel
    for kind in vars(aggregators).values()
    if isinstance(getattr(kind, "_kernel", None), sash.kernels.program.Kernel)
}


def double(m, x):  # type: ignore[no-untyped-def]
    return x + x


def note(m, x):  # type: ignore[no-untyped-def]
    put(m, FIELD, get(m, FIELD) + x)
    return get(m, FIELD)


def sign(m, x):  # type: ignore[no-untyped-def]
    if x < 0:
        return -1
    x -= x
    return x + 1


def ask_sign(m, x):  # type: ignore[no-untyped-def]
    y = x + 1
    return sign(m, y)


def twice(m, x):  # type: ignore[no-untyped-def]
    return double(m, note(m, x))


def shadow(m, FIELD):  # type: ignore[no-untyped-def]
    return note(m, FIELD)


def wrong(m):  # type: ignore[no-untyped-def]
    return put(m, FIELD, 1)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("one", [True, False])
def test_no_primitive_is_left_in_a_rewritten_kernel(kernel: object, one: bool) -> None:
    functions = chains(own=kernel.own) + kernel.functions  # type: ignore[attr-defined]
    tree = ast.parse(objects.rewritten(functions, one))
    calls = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call)}  # type: ignore[attr-defined]
    primitives = {n for n in vars(slots) if n.islower() and callable(getattr(slots, n))}
    primitives -= {f.__name__ for f in functions}
    assert {"get", "combine", "set_item"} <= primitives
    assert calls & primitives <= {"combine", "inverse", "lift", "lower"}


def test_what_is_computed_once_stays_so_and_names_stay_apart() -> None:
    functions = (double, note, sign, ask_sign, twice, shadow)
    run = objects.bind("made up", functions, {}, sash.operators.max)
    m = objects.ObjectMemory(1, None, link=False)
    assert run["twice"](m, 5) == 10
    assert m.header[FIELD] == 5
    assert [run["ask_sign"](m, x) for x in (-2, -1, 4)] == [-1, 1, 1]
    assert run["shadow"](m, 7) == 12
    assert m.header[FIELD] == 12


def test_a_statement_has_no_value() -> None:
    with pytest.raises(SyntaxError, match=r"put\(m, FIELD, 1\) is a statement"):
        objects.rewritten((wrong,), True)


def test_a_traceback_shows_the_rewritten_line() -> None:
    window = TwoStacksLite(sash.operators.max)
    window.insert(1)
    with pytest.raises(TypeError) as raised:
        window.insert("a")
    shown = "".join(traceback.format_exception(raised.value))
    assert "m.slots[BACK] = combine(m.slots[BACK], m.slots[at])" in shown
