"""The kernel words for windows and slices against the windows' own methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash import operators
from sash.kernels.core import make_core
from sash.kernels.program import Kernel
from sash.kernels.slots import Memory, item, set_item
from sash.slicing.edges import edges_of
from sash.slicing.slices import (
    SLICES,
    fields_from,
    first_window,
    last_window,
    slice_of,
    slices_held,
    specify,
    window_end,
    window_start,
)
from sash.windows import Aligned, Cumulate, Sliding
from sash.windows.contract import Cycle
from sash.windows.months import Months


def say(m: Memory, numbers: Any, count: int, out: Any) -> None:
    """Every word about every number, as a window's or as a time."""
    for i in range(count):
        n = item(numbers, i)
        set_item(out, 6 * i, window_start(m, n))
        set_item(out, 6 * i + 1, window_end(m, n))
        set_item(out, 6 * i + 2, first_window(m, n))
        set_item(out, 6 * i + 3, last_window(m, n))
        start, end = slice_of(m, n)
        set_item(out, 6 * i + 4, start)
        set_item(out, 6 * i + 5, end)


def say_kernel(first: int) -> Kernel:
    return Kernel(f"say{first}", (*SLICES, say), ("say",), constants=fields_from(first))


OPERATORS = {"compiled or checked": operators.max.of("int64"), "objects": operators.collect}

windows = st.one_of(
    st.integers(1, 40).flatmap(
        lambda size: st.builds(
            Sliding, st.just(size), st.integers(1, size), offset=st.integers(-50, 50)
        )
    ),
    st.integers(1, 9).flatmap(
        lambda step: st.builds(
            Cumulate, st.integers(1, 9).map(lambda n: n * step), st.just(step), st.integers(-50, 50)
        )
    ),
)


@pytest.mark.parametrize("first", [4, 15])
@pytest.mark.parametrize("operator", OPERATORS.values(), ids=list(OPERATORS))
@given(windows, st.integers(-(2**59), 2**59))
def test_kernel_words_say_what_windows_do(
    first: int, operator: Any, window: Aligned, far: int
) -> None:
    core = make_core(say_kernel(first), operator, 1)
    specify(core.header, window, first)
    numbers = np.concatenate([np.arange(-60, 60), far + np.arange(-3, 4)])
    if window.cycle.length > 1:
        numbers[120:] //= 64  # as numbers of windows they must not be beyond all times
    kept, at = core.integers(numbers)
    out, at_out = core.integers(np.zeros(6 * len(numbers), dtype=np.int64))
    core.run.say(core.m, at, len(numbers), at_out)
    said = np.asarray(out, dtype=np.int64).reshape(-1, 6).T
    del kept
    edges = edges_of(window)
    start = edges.time(edges.number(numbers))
    end = edges.time(edges.number(numbers) + 1)
    right = (window.start, window.end, window.first, window.last)
    for found, method in zip(said[:4], right, strict=True):
        assert found.tolist() == method(numbers).tolist()
    assert said[4].tolist() == start.tolist()
    assert said[5].tolist() == end.tolist()


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=list(OPERATORS))
@given(
    st.sampled_from([1, 2, 3, 12]),
    st.integers(1, 28),
    st.integers(0, 9),
    st.integers(-700_000, 2_900_000),
)
def test_kernel_words_for_windows_of_months(
    operator: Any, months: int, days: int, offset: int, day: int
) -> None:
    monthly = Months.of(months, day=7, days=days, offset=offset)

    class Monthly(Aligned):
        cycle = monthly  # type: ignore[assignment]

    core = make_core(say_kernel(4), operator, 1)
    specify(core.header, Monthly())
    numbers = np.concatenate([7 * day + np.arange(-220, 220), day // days + np.arange(-40, 40)])
    kept, at = core.integers(numbers)
    out, at_out = core.integers(np.zeros(6 * len(numbers), dtype=np.int64))
    core.run.say(core.m, at, len(numbers), at_out)
    said = np.asarray(out, dtype=np.int64).reshape(-1, 6).T
    del kept
    right = (monthly.start, monthly.end, monthly.first, monthly.last)
    for found, method in zip(said[:4], right, strict=True):
        assert found.tolist() == method(numbers).tolist()
    assert said[4].tolist() == (numbers // 7 * 7).tolist()
    held, some = slices_held(Monthly()), numbers[-80:]
    assert ((monthly.end(some + 1) - monthly.start(some)) // 7 <= held).all()


@given(windows)
def test_how_many_slices_windows_hold_at_most(window: Aligned) -> None:
    edges, held = edges_of(window), slices_held(window)
    for n in range(-20, 20):
        assert edges.number(window.end(n + 1)) - edges.number(window.start(n)) <= held


def test_more_than_two_cuts_a_cycle_are_refused() -> None:
    class Odd(Aligned):
        cycle = Cycle(length=10, shortest=3, longest=7, step=4)  # type: ignore[assignment]

    with pytest.raises(ValueError, match="kernels cut at one or two edges a cycle"):
        specify([0] * 24, Odd())
