"""Schedules of in-order operations, for an aggregator and the oracle.

A schedule is a list of steps:

    ("insert", value)   insert a value at the young end
    ("evict", n)        evict the n oldest values; the window holds at least n
    ("query",)          ask for the answer over the window

Each kind of schedule exists twice: as a plain generator with a seed (`schedule`), which is quick
and the same on every machine, and among the examples of a hypothesis strategy (`schedules`), which
shrinks.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..operators.contract import Operator

__all__ = [
    "KINDS",
    "Step",
    "draw_value",
    "replay",
    "schedule",
    "schedules",
    "windows",
]

#: ("insert", value), ("evict", n) or ("query",).
Step = tuple[Any, ...]

#: The kinds of schedule; the generator of each says what it tests.
KINDS = ("fill", "steady", "sawtooth", "drain", "bulk", "ties", "negatives", "empties")

#: Few values of each type, so that ties are frequent, including values that often break things.
#: Floats are dyadic, so that their sums are exact in any order.
POOLS: dict[str, tuple[Any, ...]] = {
    "int64": (0, 1, 1, 2, 3, -1, -2, 5, -7, 12, 40),
    "float64": (0.0, -0.0, 1.0, 1.0, 2.5, -0.25, -3.0, 7.75, 24.0, math.nan, math.inf, -math.inf),
    "bool": (False, True),
    "timestamp": (0, 1, 1, 60_000_000, -1, -86_400_000_000, 1_700_000_000_000_000),
    "number": (0, 1, 1, 2, -1, -4, 1.0, -0.0, 2.5, -0.25, math.nan, math.inf, -math.inf),
    "plain": (0, 1, 1, 2, -1, -4, 1.0, -0.0, 2.5, -0.25),
    "text": ("", "a", "a", "b", "ab", "ba", "é"),
}

#: The column contents for ready operators that do not take numbers.
_COLUMNS = {
    "all": ("bool",),
    "any": ("bool",),
    "bit_and": ("int64",),
    "bit_or": ("int64",),
    "bit_xor": ("int64",),
    "ewm": ("number", "timestamp"),
    "longest_run": ("timestamp", "number"),
    "m4": ("timestamp", "number"),
}

_NULLS = 8  # one value in so many is null


def column_kinds(operator: Operator) -> tuple[str, ...]:
    """The pool of values for each column: that of its type if the operator is tied to types;
    otherwise numbers, or strings if the operator takes no numbers."""
    if operator.types and "object" not in operator.types:
        return operator.types
    if operator.parts:
        kinds = ["number"] * len(operator.skips)
        for part in operator.parts:
            for column, kind in zip(part.columns, column_kinds(part.operator), strict=True):
                if kind != "number":
                    kinds[column] = kind
        return tuple(kinds)
    width = len(operator.skips)
    known = _COLUMNS.get(operator.ready)
    given = operator.types or ("object",) * width
    for kind in ("number", "plain", "text"):
        wanted = known or (kind,) * width
        kinds = [w if t == "object" else t for t, w in zip(given, wanted, strict=True)]
        samples = list(zip(*(POOLS[k] * 14 for k in kinds)))[:14]
        try:
            operator.fold([row[0] if width == 1 else row for row in samples])
        except Exception:  # any error means that the operator does not take these values
            continue
        return tuple(kinds)
    return ("number",) * width


def draw_value(operator: Operator, source: random.Random) -> Any:
    """Draw a value for an operator: often one drawn before, and now and then null.

    >>> from sash.operators import max
    >>> [draw_value(max.of(int), random.Random(seed)) for seed in range(5)]
    [-2, 12, None, 12, 3]
    """
    return value_source(operator)(source)


def value_source(operator: Operator) -> Callable[[random.Random], Any]:
    """`draw_value` for many values of one operator."""
    pools = [POOLS[kind] for kind in column_kinds(operator)]

    def draw(source: random.Random) -> Any:
        row = tuple(
            None if source.randrange(_NULLS) == 0 else source.choice(pool) for pool in pools
        )
        return row if len(row) > 1 else row[0]

    return draw


def schedule(
    kind: str,
    values: Operator | Callable[[random.Random], Any] | None = None,
    *,
    size: int = 12,
    seed: int = 0,
) -> list[Step]:
    """A schedule of one of the `KINDS`, the same for the same seed.

    `values` is an operator, for which the schedule draws values, or a function that draws a value
    from a `random.Random`; without it, values are small integers.  `size` is the approximate number
    of values in the full window.

    >>> schedule("drain", size=2)
    [('query',), ('insert', -2), ('query',), ('insert', 12), ('query',),
     ('evict', 1), ('query',), ('evict', 1), ('query',)]
    """
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is no kind of schedule; give one of {', '.join(KINDS)}")
    if size < 1:
        raise ValueError(f"a window holds at least one value, so size cannot be {size}")
    source = random.Random(f"{kind} {seed}")
    if values is None:
        draw: Callable[[random.Random], Any] = lambda r: r.randint(-20, 20)  # noqa: E731
    elif isinstance(values, Operator):
        draw = value_source(values)
    else:
        draw = values
    made = _Maker(source, draw)
    _GENERATORS[kind](made, size)
    return made.steps


class _Maker:
    """Collects steps, and knows how full the window is."""

    def __init__(self, source: random.Random, draw: Callable[[random.Random], Any]) -> None:
        self.source = source
        self.draw = draw
        self.steps: list[Step] = [("query",)]
        self.held = 0

    def insert(self, value: Any) -> None:
        self.steps.append(("insert", value))
        self.held += 1

    def put(self, n: int = 1) -> None:
        for _ in range(n):
            self.insert(self.draw(self.source))

    def evict(self, n: int = 1) -> None:
        n = min(n, self.held)
        if n:
            self.steps.append(("evict", n))
            self.held -= n

    def query(self) -> None:
        self.steps.append(("query",))


def _fill(m: _Maker, size: int) -> None:
    """Only grow the window, through several resizings."""
    for _ in range(3 * size):
        m.put()
        m.query()


def _steady(m: _Maker, size: int) -> None:
    """Fill the window, then evict one and insert one, until a structure has wrapped around several
    times."""
    m.put(size)
    for _ in range(4 * size):
        m.query()
        m.evict()
        m.put()
    m.query()


def _sawtooth(m: _Maker, size: int) -> None:
    """Grow to the full size and shrink to about a third, again and again."""
    for _ in range(4):
        while m.held < size:
            m.put()
            m.query()
        low = m.source.randint(0, max(size // 3, 1))
        while m.held > low:
            m.evict()
            m.query()


def _drain(m: _Maker, size: int) -> None:
    """Grow, then shrink to empty one by one, with a query at each step."""
    for _ in range(size):
        m.put()
        m.query()
    while m.held:
        m.evict()
        m.query()


def _bulk(m: _Maker, size: int) -> None:
    """Insert many, evict many, and query only now and then."""
    for _ in range(6):
        m.put(m.source.randint(1, 3 * size))
        m.query()
        m.evict(m.source.randint(1, max(m.held, 1)))
        m.query()


def _ties(m: _Maker, size: int) -> None:
    """Use hardly more than two different values."""
    few = [m.draw(m.source) for _ in range(2)]
    for _ in range(4 * size):
        m.insert(m.source.choice(few))
        if m.held > size:
            m.evict()
        m.query()


def _negatives(m: _Maker, size: int) -> None:
    """Use only values below zero, falling at first: they expose an identity of 0."""

    def below(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(below(x) for x in value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        return -1 - abs(value)

    inserted = sorted((below(m.draw(m.source)) for _ in range(size)), key=_falling)
    inserted += [below(m.draw(m.source)) for _ in range(2 * size)]
    for value in inserted:
        m.insert(value)
        if m.held > size:
            m.evict()
        m.query()


def _falling(value: Any) -> float:
    return -value if isinstance(value, int | float) and value == value else 0.0


def _empties(m: _Maker, size: int) -> None:
    """Empty the window and fill it again, with one value and with many."""
    for n in (1, size, 1, 2, size // 2 + 1, 1):
        m.put(n)
        m.query()
        if m.source.random() < 0.5:
            m.evict(n)
        while m.held:
            m.evict()
            m.query()
        m.query()
    m.put()
    m.query()


_GENERATORS: dict[str, Callable[[_Maker, int], None]] = {
    "fill": _fill,
    "steady": _steady,
    "sawtooth": _sawtooth,
    "drain": _drain,
    "bulk": _bulk,
    "ties": _ties,
    "negatives": _negatives,
    "empties": _empties,
}


def schedules(values: Any = None, *, max_runs: int = 8, max_size: int = 12) -> Any:
    """A hypothesis strategy of schedules: runs of inserts, evictions and rounds.

    `values` is a strategy of values, an operator, or nothing for small integers.  A failing
    schedule shrinks to few steps with simple values.

    >>> from hypothesis import find
    >>> find(schedules(), lambda steps: any(step[0] == "evict" for step in steps))
    [('insert', 0), ('query',), ('evict', 1), ('query',)]
    """
    from .laws import need_hypothesis, values_of

    st = need_hypothesis().strategies
    if values is None:
        values = st.integers(-20, 20)
    elif isinstance(values, Operator):
        values = values_of(values)
    some = st.lists(values, min_size=1, max_size=max_size)
    share = st.sampled_from(("one", "all", "half", "all but one"))
    run = st.one_of(
        st.tuples(st.just("put"), some),
        st.tuples(st.just("take"), share),
        st.tuples(st.just("slide"), some),
        st.tuples(st.just("fill"), some),
        st.tuples(st.just("drain"), st.just(None)),
    )
    return st.lists(run, min_size=1, max_size=max_runs).map(_steps)


def _steps(runs: list[tuple[str, Any]]) -> list[Step]:
    """The steps of a list of runs; evictions are limited to the contents of the window."""
    m = _Maker(random.Random(0), lambda source: None)
    m.steps.clear()
    for what, given in runs:
        if what == "put":
            for value in given:
                m.insert(value)
        elif what == "take":
            part = {"one": 1, "all": m.held, "half": m.held // 2, "all but one": m.held - 1}
            m.evict(max(part[given], 0))
        elif what == "drain":
            while m.held:
                m.evict()
                m.query()
        else:
            for value in given:
                if what == "slide":
                    m.evict()
                m.insert(value)
                m.query()
        if not m.steps or m.steps[-1] != ("query",):
            m.query()
    return m.steps


def windows(steps: Sequence[Step]) -> list[list[Any]]:
    """The raw values in the window at each query of a schedule, oldest first.

    >>> windows([("insert", 5), ("query",), ("insert", 6), ("evict", 1), ("query",)])
    [[5], [6]]
    """
    held: list[Any] = []
    made: list[list[Any]] = []
    for step in steps:
        if step[0] == "insert":
            held.append(step[1])
        elif step[0] == "evict":
            if step[1] > len(held):
                raise ValueError(f"{step[1]} values cannot leave a window that holds {len(held)}")
            del held[: step[1]]
        else:
            made.append(list(held))
    return made


class InOrderWindow(Protocol):
    """The methods of an aggregator that `replay` needs."""

    def insert(self, value: Any, /) -> None: ...
    def evict(self) -> None: ...
    def query(self) -> Any: ...


def replay(
    aggregator: InOrderWindow,
    steps: Sequence[Step],
    *,
    after: Callable[[], None] | None = None,
) -> list[Any]:
    """Run a schedule on an aggregator; returns its answer to each query.

    If a query raises OverflowError, the error takes the place of the answer.  `replay` calls
    `after` after every step; pass the aggregator's `_check`.

    >>> from sash.aggregators.two_stacks_lite import TwoStacksLite
    >>> from sash.operators import sum
    >>> steps = [("insert", 5), ("query",), ("insert", 6), ("evict", 1), ("query",)]
    >>> replay(TwoStacksLite(sum), steps)
    [5, 6]
    """
    answers: list[Any] = []
    for step in steps:
        if step[0] == "insert":
            aggregator.insert(step[1])
        elif step[0] == "evict":
            for _ in range(step[1]):
                aggregator.evict()
        else:
            try:
                answers.append(aggregator.query())
            except OverflowError as error:
                answers.append(error)
        if after is not None:
            after()
    return answers
