"""Compare random operations on aggregators with the oracle.

Steps on an in-order window:

    ("insert", value)   ("evict", n)   ("query",)   ("slide", values, size)   ("bytes",)

and on a timed window those of `sash.testing.disorder`, and ("bytes",). "bytes" replaces the window
by one restored from its own bytes.
"""

from __future__ import annotations

import pprint
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from ... import aggregators, operators
from ...operators.contract import Operator
from ..disorder import timed_replay, timed_windows
from ..oracle import agrees
from ..schedules import Step, value_source
from .cases import Case
from .shrink import smallest

__all__ = ["IN_ORDER", "OPERATORS", "TIMED", "WindowCase"]

#: Operators by their source text: partials of every shape, some that do not commute.
OPERATORS = (
    "operators.sum.of(int)",
    "operators.sum",
    "operators.max.of(float)",
    "operators.mean.of(float)",
    "operators.stddev.of(float)",
    "operators.last.of(int)",
    "operators.arg_max.of(int, float)",
    "operators.first_n(3).of(int)",
    "operators.count_min(4, 2).of(int)",
    "operators.together(operators.sum, operators.first).of(int)",
    "operators.concat",
    "operators.collect",
)

IN_ORDER = (
    "Recalc({})",
    "TwoStacks({})",
    "TwoStacksLite({})",
    "Daba({})",
    "DabaLite({})",
    "FlatFatFifo({})",
    "BInt({})",
    "FlatFit({})",
    "LogMta({})",
    "Amta({})",
    "SubtractOnEvict({})",
)

#: Whether times must come in order, and whether the oldest must leave first.
TIMED = {
    "Fiba({})": (False, False),
    "Fiba({}, min_arity=2)": (False, False),
    "BTree({}, min_arity=2)": (False, False),
    "Reactive({})": (True, False),
    "Timed(DabaLite({}))": (True, True),
    "Timed(Amta({}))": (True, True),
}

_NAMES: dict[str, Any] = {**vars(aggregators), "operators": operators}


@dataclass(frozen=True)
class WindowCase(Case):
    """Steps on one window."""

    window: str
    operator: str
    steps: tuple[Step, ...]
    check: bool = True  # check the structure after each step

    @classmethod
    def draw(cls, source: Random) -> WindowCase:
        name = source.choice((*IN_ORDER, *TIMED))
        fitting = list(OPERATORS)
        if name == "SubtractOnEvict({})":
            fitting = [o for o in OPERATORS if _operator(o).inverse is not None]
        chosen = source.choice(fitting)
        value = value_source(_operator(chosen))
        size = round(2 ** source.uniform(0, 8))
        if name in TIMED:
            steps = _timed_steps(source, value, size, *TIMED[name])
        else:
            steps = _steps(source, value, size)
        return cls(name, chosen, tuple(steps), check=source.random() < 0.3)

    @property
    def operations(self) -> int:
        return sum(_weight(step) for step in self.steps)

    def problem(self) -> str | None:
        operator = _operator(self.operator)
        window = eval(self.window.format(self.operator), dict(_NAMES))
        try:
            if self.window in TIMED:
                held, got = _replay_timed(window, operator, self.steps, self.check)
            else:
                held, got = _replay(window, operator, self.steps, self.check)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        for values, answer in zip(held, got, strict=True):
            if not agrees(operator, values, answer):
                return f"{answer!r} is not the answer over {values!r}"
        return None

    def smaller(self, fails: Callable[[WindowCase], bool]) -> WindowCase:
        timed = self.window in TIMED

        def made(steps: list[Step]) -> WindowCase:
            return replace(self, steps=tuple(steps))

        def fail(steps: list[Step]) -> bool:
            return (timed or _possible(steps)) and fails(made(steps))

        single = [one for step in self.steps for one in _singles(step)]
        steps = single if fail(single) else list(self.steps)
        return made(smallest(steps, fail))

    def as_test(self) -> str:
        steps = pprint.pformat(list(self.steps), width=96, compact=True).replace("\n", "\n    ")
        return (
            "def test_found_by_fuzzing() -> None:\n"
            "    from sash.testing.fuzz import WindowCase\n\n"
            f"    steps = {steps}\n"
            f"    case = WindowCase({self.window!r}, {self.operator!r}, tuple(steps))\n"
            "    assert case.problem() is None\n"
        )


def _operator(text: str) -> Operator:
    made: Operator = eval(text, dict(_NAMES))
    return made


def _weight(step: Step) -> int:
    """The number of operations in a step."""
    return max(len(step[1]), 1) if step[0] in ("slide", "bulk_insert") else 1


def _singles(step: Step) -> list[Step]:
    """Split a step into several smaller steps."""
    if step[0] == "bulk_insert":
        return [("insert", t, v) for t, v in zip(step[1], step[2], strict=True)]
    return [step]


# In order


def _steps(source: Random, value: Callable[[Random], Any], size: int) -> list[Step]:
    """Draw phases in which the window grows, keeps its size, shrinks or jumps."""
    steps: list[Step] = []
    held = 0
    for _ in range(source.randint(1, 5)):
        grows = source.choice((0.9, 0.5, 0.5, 0.3, 0.1))
        asks = source.choice((1.0, 0.3, 0.05))
        for _ in range(source.randint(1, 2 * size)):
            if held and source.random() > grows:
                n = min(held, source.choice((1, 1, 1, 1, 2, source.randint(1, held))))
                steps.append(("evict", n))
                held -= n
            else:
                steps.append(("insert", value(source)))
                held += 1
            if source.random() < asks:
                steps.append(("query",))
        if source.random() < 0.3:
            most = source.randint(1, 2 * size)
            values = [value(source) for _ in range(source.randint(0, 2 * size))]
            steps.append(("slide", values, most))
            held = _after_slide(held, len(values), most)
        if source.random() < 0.2:
            steps.append(("bytes",))
        steps.append(("query",))
    return steps


def _after_slide(held: int, values: int, most: int) -> int:
    return min(held + values, most) if values else held


def _possible(steps: list[Step]) -> bool:
    """True if the steps never evict more values than the window holds."""
    held = 0
    for step in steps:
        if step[0] == "evict":
            held -= step[1]
        elif step[0] == "insert":
            held += 1
        elif step[0] == "slide":
            held = _after_slide(held, len(step[1]), step[2])
        if held < 0:
            return False
    return True


def _replay(
    window: Any, operator: Operator, steps: tuple[Step, ...], check: bool
) -> tuple[list[list[Any]], list[Any]]:
    """The values behind each answer, and the answers."""
    raw: list[Any] = []
    held: list[list[Any]] = []
    got: list[Any] = []
    for step in steps:
        if step[0] == "insert":
            window.insert(step[1])
            raw.append(step[1])
        elif step[0] == "evict":
            for _ in range(step[1]):
                window.evict()
            del raw[: step[1]]
        elif step[0] == "query":
            got.append(_answer(window))
            held.append(list(raw))
        elif step[0] == "slide":
            several = len(operator.skips) > 1
            values = tuple(map(list, zip(*step[1]))) if several and step[1] else step[1]
            if several and not step[1]:
                values = tuple([] for _ in operator.skips)
            answers = window.slide(values, step[2])
            for i, x in enumerate(step[1]):
                raw.append(x)
                del raw[: max(len(raw) - step[2], 0)]
                held.append(list(raw))
                got.append(answers[i])
        else:
            window = type(window).from_bytes(window.to_bytes(), operator)
        assert len(window) == len(raw), f"{len(window)} values where {len(raw)} are right"
        if check:
            window._check()
    return held, got


def _answer(window: Any) -> Any:
    try:
        return window.query()
    except OverflowError as error:
        return error


# With times


def _timed_steps(
    source: Random, value: Callable[[Random], Any], size: int, in_order: bool, oldest: bool
) -> list[Step]:
    """Draw insertions near a moving time, evictions, and queries of ranges."""
    steps: list[Step] = []
    now, back = 0, 0 if in_order else source.choice((0, 1, 4, 30, 1000))
    held: list[int] = []
    for _ in range(source.randint(1, 6 * size)):
        what = source.random()
        if what < 0.5 or not held:
            now += source.choice((0, 1, 1, 2, 9))
            t = now - source.randint(0, back)
            steps.append(("insert", t, value(source)))
            held.append(t)
        elif what < 0.6:
            times = [now + source.randint(-back, 3 if back else 0) for _ in range(size)]
            if in_order:
                times = sorted(now + source.randint(0, size) for _ in range(size))
            now = max(now, *times)
            steps.append(("bulk_insert", times, [value(source) for _ in times]))
            held += times
        elif what < 0.75:
            t = min(held) if oldest else source.choice((min(held), source.choice(held), now + 1))
            steps.append(("evict", t))
            held = [x for x in held if x != t]
        elif what < 0.8:
            t = sorted(held)[min(len(held) - 1, int(len(held) * source.random() ** 3))]
            steps.append(("bulk_evict", t))
            held = [x for x in held if x > t]
        elif what < 0.82:
            steps.append(("bytes",))
        elif what < 0.9 and not oldest:
            lo, hi = sorted((source.choice(held) + source.randint(-2, 2), source.choice(held)))
            steps.append(("query", lo, hi))
        else:
            steps.append(("query",))
    steps.append(("query",))
    return steps


def _replay_timed(
    window: Any, operator: Operator, steps: tuple[Step, ...], check: bool
) -> tuple[list[list[Any]], list[Any]]:
    got: list[Any] = []
    for step in steps:
        if step[0] == "bytes":
            if isinstance(window, aggregators.Timed):
                empty = type(window.fifo)(operator)
                window = aggregators.Timed.from_bytes(window.to_bytes(), empty)
            else:
                window = type(window).from_bytes(window.to_bytes(), operator)
        else:
            got += timed_replay(window, [step])
        if check:
            window._check()
    return timed_windows([step for step in steps if step[0] != "bytes"]), got
