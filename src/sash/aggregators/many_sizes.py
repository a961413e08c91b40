"""Windows that answer over any number of their youngest values, and over many such sizes at once.

FlatFIT's max-multi-query: at each slide, all sizes from the window's own down to 1.  Sizes are
asked longest first, whatever order they are given in: what FlatFIT combines for a longer one it
reuses for the shorter ones, so that all n sizes take n - 1 combines.  (Shortest first takes half as
many again.)

An algorithm has `youngest(m, size)`, the slot with the aggregate of so many of the youngest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernels.columns import Array, read
from ..kernels.program import Kernel
from ..kernels.slots import END, START, Columns, Memory, Outputs, get, item, lower
from .guard import alone
from .in_order import InOrder, check_size, evict, insert, kernel

__all__ = ["ManySizes", "kernel_of_sizes"]


def youngest(m: Memory, size: int) -> int:
    """The slot with the aggregate of this many of the youngest elements (declared here, made by
    each algorithm)."""
    return 0


def ask_youngest(m: Memory, outputs: Outputs, row: int, size: int) -> None:
    """The answer over this many of the youngest."""
    lower(m, youngest(m, size), outputs, row)


def answer_sizes(m: Memory, outputs: Outputs, row: int, sizes: Any, count: int) -> None:
    """The answers over several sizes, which fall, from a row of the outputs on; of fewer elements
    than a size, over all there are."""
    held = get(m, END) - get(m, START)
    for i in range(count):
        lower(m, youngest(m, min(item(sizes, i), held)), outputs, row + i)


def ask_sizes(m: Memory, outputs: Outputs, sizes: Any, count: int) -> None:
    """The answers over several sizes, which fall; none is more than there are elements."""
    answer_sizes(m, outputs, 0, sizes, count)


def slide_sizes(
    m: Memory, columns: Columns, outputs: Outputs, rows: int, sizes: Any, count: int
) -> None:
    """For each row: make room, insert, answer over several sizes, which fall."""
    longest = item(sizes, 0)
    for row in range(rows):
        while get(m, END) - get(m, START) >= longest:
            evict(m)
        insert(m, columns, row)
        answer_sizes(m, outputs, row * count, sizes, count)


def kernel_of_sizes(
    name: str, *functions: Any, entries: tuple[str, ...] = (), **shape: Any
) -> Kernel:
    """The kernel of an algorithm that has `youngest`, and maybe a way of its own to answer several
    sizes."""
    own = any(function.__name__ == answer_sizes.__name__ for function in functions)
    return kernel(
        name,
        *functions,
        *(() if own else (answer_sizes,)),
        ask_youngest,
        ask_sizes,
        slide_sizes,
        entries=("ask_sizes", "slide_sizes", *entries),
        brief=("ask_youngest",),
        **shape,
    )


class ManySizes(InOrder):
    """A first-in, first-out window with answers over any number of its youngest values.

    >>> from sash.aggregators import FlatFit, Recalc
    >>> issubclass(FlatFit, ManySizes), issubclass(Recalc, ManySizes)
    (True, True)
    """

    def query(self, size: int | None = None) -> Any:
        """The answer over the `size` youngest values; over all of them if none is given."""
        if size is None:
            return super().query()
        return self._query(size)

    @alone
    def _query(self, size: int) -> Any:
        core = self._core
        core.run.ask_youngest(core.m, core.answer, 0, self._held(size))
        return core.read()

    def _held(self, size: int) -> int:
        """A number of values that there are."""
        whole, held = check_size(size), self._length()
        if whole > held:
            raise ValueError(f"size must be from 1 to the {held} values held, not {size}")
        return whole

    @alone
    def queries(self, sizes: Sequence[int]) -> list[Any]:
        """The answers over several sizes, in one call, asked longest first, which shares the most
        work."""
        falling, places = _falling(sizes)
        if not len(falling):
            return []
        self._held(int(falling[0]))
        core = self._core
        with core.call() as call:
            outputs = call.outputs(len(falling))
            core.run.ask_sizes(core.m, outputs, call.integers(falling), len(falling))
            found = call.answers("list")
        return [found[place] for place in places]

    def slide(self, values: Any, size: int | Sequence[int]) -> Any:
        """Insert each value in turn, with at most `size` in the window, and answer after each.

        With several sizes, the window holds the longest, and there are answers over each: a list
        with the answers of each size, in the order of the sizes; or one array with a row for each
        size, if sizes and answers are numpy arrays.

        `values` is a numpy array, an Arrow array or a list (for several columns a tuple of
        them); answers come back in the same kind.

        >>> from sash.aggregators import FlatFit
        >>> from sash.operators import max
        >>> FlatFit(max).slide([9, 3, 5, 1], [1, 3])
        [[9, 3, 5, 1], [9, 9, 9, 5]]
        """
        if isinstance(size, Sequence | np.ndarray) and not isinstance(size, str):
            return self._slide_sizes(values, size)
        return super().slide(values, size)

    @alone
    def _slide_sizes(self, values: Any, sizes: Sequence[int]) -> Any:
        falling, places = _falling(sizes)
        many = len(falling)
        if not many:
            raise ValueError("slide needs a size, or several; an empty list was given")
        table = read(values, len(self._given.skips))
        self._tie(table)
        core, length = self._core, self._length()
        self._reserve(max(length, min(int(falling[0]), length + table.rows)))
        before = core.get(END)
        with core.call(table.rows) as call:
            columns, outputs = call.columns(table), call.outputs(table.rows * many)
            given = call.integers(falling)
            try:
                core.run.slide_sizes(core.m, columns, outputs, table.rows, given, many)
            except OverflowError as error:
                raise call.at_row(error, core.get(END) - before - 1) from None
            finally:
                self._shrink()
            found = call.answers(table.kind)
        if isinstance(sizes, np.ndarray) and type(found) is np.ndarray and found.ndim == 1:
            return _rows(found.reshape(table.rows, many).T, places)
        return [_every(found, place, many) for place in places.tolist()]


def _falling(sizes: Any) -> tuple[Array, Array]:
    """Different sizes, longest first, and the place of each one given."""
    given = np.asarray(sizes) if isinstance(sizes, range | np.ndarray) else None
    if given is None or given.ndim != 1 or given.dtype.kind != "i" or (given < 1).any():
        given = np.array([check_size(size) for size in sizes], dtype=np.int64)
    rising, places = np.unique(given.astype(np.int64), return_inverse=True)
    return np.ascontiguousarray(rising[::-1]), len(rising) - 1 - places


def _rows(answers: Array, places: Array) -> Array:
    """The rows at these places; a view, where that can be."""
    steps = np.diff(places)
    if len(places) == len(answers) and (steps == 1).all():
        return answers
    if len(places) == len(answers) and (steps == -1).all():
        return answers[::-1]
    return answers[places]


def _every(answers: Any, first: int, step: int) -> Any:
    """Every so many of answers: of a list, an array, Arrow's, or a tuple with a column for each
    field."""
    if isinstance(answers, tuple):
        return tuple(_every(column, first, step) for column in answers)
    if hasattr(answers, "take") and not isinstance(answers, np.ndarray):  # of Arrow
        return answers.take(np.arange(first, len(answers), step))
    return answers[first::step]
