"""The arrays of a kernel's call live as long as the call, and no longer."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from sash import operators as ops
from sash.aggregators import TwoStacksLite
from sash.kernels.columns import read
from sash.kernels.core import BufferCore, ObjectCore
from sash.kernels.slots import BUSY


def core(*types: type) -> BufferCore | ObjectCore:
    window = TwoStacksLite(ops.sum.of(*types) if types else ops.sum)
    return window._core


@pytest.mark.usefixtures("only_new")
@pytest.mark.parametrize("types", [(), (int,)], ids=["objects", "buffer"])
def test_a_call_owns_its_arrays(types: tuple[type, ...]) -> None:
    made = core(*types)
    with made.call() as call:
        call.integers(np.arange(3))
        call.columns(read(np.arange(3), 1))
        space, _ = call.space(4)
        call.outputs(3)
        assert len(space) == 4
        kept = [weakref.ref(x) for x in call._kept if isinstance(x, np.ndarray)]
        gc.collect()
        assert all(ref() is not None for ref in kept)
    del space
    gc.collect()
    assert all(ref() is None for ref in kept)
    assert len(kept) == (2 if types else 0)


@pytest.mark.parametrize("types", [(), (int,)], ids=["objects", "buffer"])
def test_answers_are_what_the_kernel_gave(types: tuple[type, ...]) -> None:
    made = core(*types)
    made.resize(8, [])
    with made.call() as call:
        table = read(np.array([1, 2, 3]), 1)
        made.run.slide(made.m, call.columns(table), call.outputs(3), 0, 3, 2)
        got = call.answers("numpy")
    assert list(got) == [1, 3, 5]


def test_an_error_in_the_middle_of_a_change_ends_the_core() -> None:
    made = core(int)
    with pytest.raises(OverflowError, match="row 3: too much; the window holds"), made.call() as c:
        raise c.at_row(OverflowError("too much"), 3)
    assert callable(made.run.slide)
    made.header[BUSY] = 1
    with pytest.raises(OverflowError, match=r"^too much$"), made.call() as c:
        raise c.at_row(OverflowError("too much"), 3)
    with pytest.raises(RuntimeError, match="not sound any more"):
        assert made.run.slide
