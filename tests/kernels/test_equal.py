"""Kernels share the functions in which they are equal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import sash
from sash import operators as ops
from sash.aggregators import TwoStacksLite
from sash.kernels.cache import in_memory
from sash.kernels.equal import share
from sash.kernels.program import jit_enabled

pytestmark = pytest.mark.skipif(not jit_enabled(), reason="about compiled code: SASH_JIT=0")

TEXT = """
from numba import njit
from sash.kernels.native import entry, inline, linked

FIELD = 3

@linked
def field(m):
    return m + FIELD

@linked
def other(m):
    return m + 5

@linked
def twice(m):
    return later(field(m))

@linked
def later(m):
    return m + m

@linked
def down(m):
    if m > 0:
        return down(m - 1)
    return 0

@entry
def answer(m):
    return twice(m) + other(m)
"""
NAMES = ("field", "other", "twice", "later", "down", "answer")


def module(text: str) -> ModuleType:
    made = in_memory("equal", text, {})
    share(vars(made))
    return made


def alike(a: ModuleType, b: ModuleType) -> set[str]:
    return {name for name in NAMES if getattr(a, name) is getattr(b, name)}


def test_equal_functions_are_one() -> None:
    first, second = module(TEXT), module(TEXT)
    # what calls itself, and what Python calls, is each module's own
    assert alike(first, second) == {"field", "other", "twice", "later"}
    assert first.answer(2) == second.answer(2) == 17
    share(vars(second))
    assert alike(first, second) == {"field", "other", "twice", "later"}


@pytest.mark.parametrize(
    ("old", "new", "same", "answer"),
    [
        ("FIELD = 3", "FIELD = 4", {"other", "later"}, 19),
        ("FIELD = 3", "FIELD = 3.0", {"other", "later"}, 17),
        ("FIELD = 3", "FIELD = True", {"other", "later"}, 13),
        ("m + 5", "m + 6", {"field", "twice", "later"}, 18),
        ("m + 5", "m + 5.0", {"field", "twice", "later"}, 17),
        ("m + m", "m - m", {"field", "other"}, 7),
        ("@linked\ndef later", "@inline\ndef later", {"field", "other"}, 17),
        ("m > 0", "m > 1", {"field", "other", "twice", "later"}, 17),
    ],
)
def test_what_differs_anywhere_below_is_not_shared(
    old: str, new: str, same: set[str], answer: float
) -> None:
    first, second = module(TEXT), module(TEXT.replace(old, new))
    assert alike(first, second) == same
    assert (first.answer(2), second.answer(2)) == (17, answer)


@pytest.mark.parametrize(
    ("old", "one", "other", "apart"),
    [
        ("FIELD = 3", "FIELD = 0.0", "FIELD = -0.0", "field"),
        ("FIELD = 3", "FIELD = (1,)", "FIELD = (1.0,)", "field"),
        ("FIELD = 3", "FIELD = (0.0,)", "FIELD = (-0.0,)", "field"),
        ("def later(m)", "def later(m, k=2)", "def later(m, k=3)", "later"),
    ],
)
def test_values_that_python_takes_for_equal_may_differ(
    old: str, one: str, other: str, apart: str
) -> None:
    assert apart not in alike(module(TEXT.replace(old, one)), module(TEXT.replace(old, other)))


def test_kernels_of_two_operators_share_what_does_not_depend_on_them() -> None:
    values = np.array([1.0, 4.0, 2.0, 0.0, 1.0])
    windows = [TwoStacksLite(op.of("float64")) for op in (ops.max, ops.min)]
    windows.append(TwoStacksLite(sash.operator(identity=0.0, lift=lambda x: x, combine=min)))
    runs = [window._core.program.run for window in windows]
    assert [w.slide(values, 2).tolist() for w in windows[:2]] == [[1, 4, 4, 2, 1], [1, 1, 2, 0, 0]]
    for run in runs:
        share(vars(run))
    assert runs[0].slot is runs[1].slot
    assert runs[0].combine is not runs[1].combine
    assert runs[0].flip is not runs[1].flip


CODE = """
import sys
import numpy as np
from sash import operators as ops
from sash.aggregators import TwoStacksLite
for name in sys.argv[1:]:
    window = TwoStacksLite(getattr(ops, name).of("int64"))
    print(name, *window.slide(np.array([3, 1, 2]), 2).tolist())
"""


def test_a_process_needs_one_of_the_kernels_that_another_compiled_together(tmp_path: Path) -> None:
    def said(*operators: str) -> list[str]:
        env = os.environ | {"SASH_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", CODE, *operators]
        return subprocess.check_output(command, env=env, text=True).splitlines()

    assert said("max", "min") == ["max 3 3 2", "min 3 1 1"]
    compiled = {*tmp_path.rglob("*.nbc")}
    assert compiled
    assert said("min") == ["min 3 1 1"]
    assert said("max") == ["max 3 3 2"]
    assert {*tmp_path.rglob("*.nbc")} == compiled
