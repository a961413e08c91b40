"""One call at a time, and none on a window that a call left half changed."""

from __future__ import annotations

import asyncio
import copy
import os
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sash
from sash import aggregators
from sash import operators as ops
from sash.aggregators import (
    Amta,
    BTree,
    Cbix,
    DabaLite,
    Fiba,
    FlatFat,
    LogMta,
    Reactive,
    SubtractOnEvict,
    Timed,
    TwoStacksLite,
)
from sash.aggregators.guard import Guarded
from sash.aggregators.in_order import InOrder
from sash.aggregators.level_window import LevelWindow
from sash.policies import at_most
from trouble import Trap, alarms, in_threads, interrupted, refusal

IN_ORDER: list[type[InOrder]] = [
    made
    for made in (getattr(aggregators, name) for name in aggregators.__all__)
    if isinstance(made, type) and issubclass(made, InOrder) and made is not InOrder
]


def listing(trap: Trap, *, commutes: bool = False) -> sash.Operator:
    """The values in a window as a tuple: what is lost, doubled or out of order shows."""

    def lift(x: int) -> tuple[int, ...]:
        trap()
        return (x,)

    def combine(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
        trap()
        return tuple(sorted(a + b)) if commutes else a + b

    def lower(a: tuple[int, ...]) -> list[int]:
        trap()
        return list(a)

    def inverse(total: tuple[int, ...], old: tuple[int, ...]) -> tuple[int, ...]:
        trap()
        return total[len(old) :]

    return sash.operator(
        identity=(),
        lift=lift,
        combine=combine,
        lower=lower,
        inverse=None if commutes else inverse,
        commutative=commutes,
        encode=lambda a: repr(a).encode(),
        decode=lambda b: tuple(eval(b)),
        compile=False,
        name="listing",
    )


Held = list[int]
States = Callable[[Held], list[Held]]

#: A call, and what a window may hold if it breaks off: from all before it to all after it.
Scene = tuple[Callable[[Any], Any], States]


def prefixes(count: int) -> States:
    return lambda h: [h[k:] for k in range(count + 1)]


def slid(values: Held, size: int, *, evicts_after: bool = False) -> States:
    """Row by row; a row is inserted after the evictions that make room for it, or before."""

    def states(h: Held) -> list[Held]:
        found, now = [list(h)], list(h)
        for value in values:
            if not evicts_after:
                while len(now) >= size:
                    now = now[1:]
                    found.append(now)
            now = [*now, value]
            found.append(now)
            while len(now) > size:
                now = now[1:]
                found.append(now)
        return found

    return states


def grown(values: Held) -> States:
    return lambda h: [h + values[:k] for k in range(len(values) + 1)]


def same(h: Held) -> list[Held]:
    return [h]


IN_ORDER_SCENES: dict[str, Scene] = {
    "insert": (lambda w: w.insert(100), grown([100])),
    "evict": (lambda w: w.evict(), prefixes(1)),
    "query": (lambda w: w.query(), same),
    "slide": (lambda w: w.slide([100, 101, 102], 6), slid([100, 101, 102], 6)),
    "copy": (copy.copy, same),
    "to_bytes": (lambda w: w.to_bytes(), same),
}
LEVEL_SCENES: dict[str, Scene] = {
    "bulk_evict 2": (lambda w: w.bulk_evict(2), prefixes(2)),
    "bulk_evict 5": (lambda w: w.bulk_evict(5), prefixes(5)),
}
POLICY_SCENES: dict[str, Scene] = {
    "enforce": (lambda w: w.enforce(), prefixes(4)),
    "slide": (lambda w: w.slide([100, 101]), slid([100, 101], 5, evicts_after=True)),
}
#: Over windows that hold value v at time 10 v.
TIMED_SCENES: dict[str, Scene] = {
    "insert": (lambda w: w.insert(1000, 100), grown([100])),
    "evict": (lambda w: w.evict(w.oldest()), prefixes(1)),
    "query": (lambda w: w.query(), same),
    "bulk_insert": (lambda w: w.bulk_insert([1000, 1010], [100, 101]), grown([100, 101])),
    "bulk_evict": (lambda w: w.bulk_evict(w.oldest() + 20), prefixes(3)),
    "slide": (
        lambda w: w.slide([1000, 1010], [100, 101], count=7),
        lambda h: slid([100, 101], 7)(h) + slid([100, 101], 7, evicts_after=True)(h),
    ),
}
TREE_SCENES: dict[str, Scene] = {
    "insert late": (lambda w: w.insert(w.oldest() - 5, 100), lambda h: [h, [100, *h]]),
    "insert between": (lambda w: w.insert(w.oldest() + 5, 100), lambda h: [h, [h[0], 100, *h[1:]]]),
    "evict inside": (lambda w: w.evict(w.oldest() + 20), lambda h: [h, h[:2] + h[3:]]),
    "range": (lambda w: w.query(w.oldest() + 10, 10_000), same),
}
CBIX_SCENES: dict[str, Scene] = {
    "insert": (lambda w: w.insert(w.youngest(), 100), grown([100])),
    "insert late": (lambda w: w.insert(w.oldest(), 100), grown([100])),
    "insert young": (
        lambda w: w.insert(w.youngest() + 2, 100),
        lambda h: [h, *(h[k:] for k in range(3)), *([*h[k:], 100] for k in range(3))],
    ),
    "advance": (lambda w: w.advance(w.youngest() + 3), prefixes(3)),
    "query": (lambda w: w.query(), same),
    "slide": (
        lambda w: w.slide([w.youngest() + 1, w.youngest() + 2], [100, 101]),
        lambda h: [[*h[k:], *more] for k in range(4) for more in ([], [100], [100, 101])],
    ),
}


def filled(kind: Any, op: sash.Operator, size: int) -> Any:
    """A window with some values that have left, and so many that are there."""
    if kind is Cbix:
        window = Cbix(op, 12, 3)
        for v in range(size):
            window.insert(v, v)
        return window
    if isinstance(kind, type) and issubclass(kind, InOrder):
        window = kind(op)
        for v in range(size + 3):
            window.insert(v)
            if v < 3:
                window.evict()
            window.query()
        return window
    window = kind(op)
    for v in range(size + 3):
        window.insert(10 * v, v)
    window.bulk_evict(20)
    return window


def policed(kind: Any) -> Callable[..., Any]:
    return lambda op: kind(op, policy=at_most(5))


def timed(kind: Any) -> Callable[..., Any]:
    return lambda op: Timed(kind(op))


KINDS: dict[str, tuple[Any, dict[str, Scene]]] = {
    **{k.__name__: (k, IN_ORDER_SCENES) for k in IN_ORDER if not issubclass(k, LevelWindow)},
    **{k.__name__: (k, IN_ORDER_SCENES | LEVEL_SCENES) for k in (Amta, LogMta)},
    "Timed DabaLite": (timed(DabaLite), TIMED_SCENES),
    "Timed Amta": (timed(Amta), TIMED_SCENES),
    "Reactive": (Reactive, TIMED_SCENES | {"evict inside": TREE_SCENES["evict inside"]}),
    "Fiba": (lambda op: Fiba(op, min_arity=2), TIMED_SCENES | TREE_SCENES),
    "BTree": (lambda op: BTree(op, min_arity=2), TIMED_SCENES | TREE_SCENES),
    "Cbix": (Cbix, CBIX_SCENES),
}


def window_of(name: str, trap: Trap, size: int) -> Any:
    kind, _ = KINDS[name]
    return filled(kind, listing(trap, commutes=kind is Cbix), size)


def judge(window: Any, allowed: list[Held]) -> bool:
    """Whether a window goes on with something that it may hold; else it must refuse all calls."""
    if (why := refusal(window.query)) != "":
        assert why in ("in use", "not sound")
        uses = [lambda: len(window), window.to_bytes, lambda: copy.copy(window)]
        uses += [
            lambda: window.insert(7) if isinstance(window, InOrder) else window.insert(9000, 7)
        ]
        assert all(refusal(use) == why for use in uses)
        assert type(window).__name__ in repr(window)
        return False
    held = window.query()
    assert held in allowed
    window._check()
    if isinstance(window, Cbix):
        window.insert(window.youngest() or 11, 200)
        assert window.query() == sorted([*held, 200])
        return True
    for v in range(200, 210):
        window.insert(v) if isinstance(window, InOrder) else window.insert(10 * v, v)
        held = [*held, v]
        if v % 3:
            window.evict() if isinstance(window, InOrder) else window.evict(window.oldest())
            held = held[1:]
        assert window.query() == held
    window._check()
    return True


@pytest.mark.parametrize("name", KINDS)
def test_an_operator_that_raises_at_any_call(name: str) -> None:
    """At the nth call of lift, combine, lower or inverse, for each n."""
    for scene, (act, states) in KINDS[name][1].items():
        for size in (5, 8, 9):
            trap = Trap()
            window = window_of(name, trap, size)
            held = window.query()
            trap.calls = 0
            act(copy.copy(window))
            for n in range(trap.calls):
                for error in (ValueError, KeyboardInterrupt):
                    broken = copy.copy(window)
                    trap.after, trap.error = n, error
                    with pytest.raises(error):
                        act(broken)
                    trap.after = None
                    sound = judge(broken, states(held))
                    if scene == "query" and name not in ("FlatFit",):
                        assert sound


@pytest.mark.parametrize("kind", IN_ORDER)
@pytest.mark.parametrize("size", [1, 3, 8])  # 8 is a capacity too, so that a ring is full
def test_a_slide_that_raises_goes_on_where_it_was(kind: Any, size: int) -> None:
    values, trap = list(range(3 * size + 2)), Trap()
    op = listing(trap)
    refused = 0
    for n in range(12 * len(values)):
        window = kind(op)
        trap.after = n
        with suppress(ValueError):
            window.slide(values, size)
        trap.after = None
        if refusal(window.query):
            refused += 1
            continue
        window._check()
        held = window.query()
        if not held:  # which values were in it cannot be told
            continue
        done = held[-1] + 1
        assert held == values[done - len(held) : done]
        answers = window.slide(values[done:], size)
        expected = [values[max(0, i - size + 1) : i + 1] for i in range(done, len(values))]
        assert answers == expected
    assert refused < n / 2


@pytest.mark.parametrize("name", KINDS)
def test_an_interrupt_at_any_line(name: str) -> None:
    """Before any line of a call, its kernel's as well as those around it."""
    source, broken, sound = random.Random(name), 0, 0
    for act, states in KINDS[name][1].values():
        size = source.choice((5, 8))
        window = window_of(name, Trap(), size)
        held = window.query()
        made = copy.copy(window)
        with interrupted(0) as lines:
            act(made)
        points = range(1, lines[0] + 1)
        for n in sorted(source.sample(points, min(len(points), 25))):
            made = copy.copy(window)
            with pytest.raises(KeyboardInterrupt), interrupted(n):
                act(made)
            if judge(made, states(held)):
                sound += 1
            else:
                broken += 1
    assert sound
    assert broken


@pytest.mark.parametrize("kind", [Amta, LogMta])
def test_a_policy_that_is_interrupted(kind: Any) -> None:
    trap, source, broken = Trap(), random.Random(3), 0
    window = kind(listing(trap), policy=at_most(5))
    for v in range(9):
        window.insert(v)
    held = window.query()
    for act, states in POLICY_SCENES.values():
        trap.calls = 0
        made = copy.copy(window)
        with interrupted(0) as lines:
            act(made)
        calls = trap.calls
        for n in range(calls):
            made = copy.copy(window)
            trap.after, trap.error = n, ValueError
            with pytest.raises(ValueError, match="here"):
                act(made)
            trap.after = None
            judge(made, states(held))
        for n in sorted(source.sample(range(1, lines[0] + 1), 40)):
            made = copy.copy(window)
            with pytest.raises(KeyboardInterrupt), interrupted(n):
                act(made)
            broken += not judge(made, states(held))
    assert broken


def test_a_tree_of_locations_that_is_interrupted() -> None:
    """Rows before the one that broke off are replaced, or the tree refuses further use."""
    trap = Trap()
    tree = FlatFat(listing(trap), list(range(6)))
    allowed = [[10, 11, 12][:k] + list(range(k, 6)) for k in range(4)]

    def look(tree: FlatFat) -> bool:
        if (why := refusal(tree.aggregate)) != "":
            assert why in ("in use", "not sound")
            return False
        assert tree.aggregate() in allowed
        tree._check()
        return True

    made = copy.copy(tree)
    trap.calls = 0
    with interrupted(0) as lines:
        made.update([0, 1, 2], [10, 11, 12])
    calls, found = trap.calls, set()
    for n in range(calls):
        made, trap.after = copy.copy(tree), n
        with pytest.raises(ValueError, match="here"):
            made.update([0, 1, 2], [10, 11, 12])
        trap.after = None
        assert look(made) or n >= 3  # a value that is refused never breaks it
    for n in range(1, lines[0] + 1):
        made = copy.copy(tree)
        with pytest.raises(KeyboardInterrupt), interrupted(n):
            made.update([0, 1, 2], [10, 11, 12])
        found.add(look(made))
    assert found == {True, False}


class Waiting:
    """An operator's function that waits until it is told to go on."""

    def __init__(self) -> None:
        self.there, self.go = threading.Event(), threading.Event()
        self.waits = False

    def __call__(self) -> None:
        if self.waits:
            self.waits = False
            self.there.set()
            assert self.go.wait(20)


def calls_of(window: Any) -> list[Callable[[], Any]]:
    """Every public call of a window."""
    given: dict[str, tuple[Any, ...]] = {
        "insert": (7,) if isinstance(window, InOrder) else (9000, 7),
        "evict": () if isinstance(window, InOrder) else (30,),
        "slide": ([7], 3) if isinstance(window, InOrder) else ([9000], [7]),
        "bulk_insert": ([9000], [7]),
        "bulk_evict": (1,),
        "advance": (9000,),
        "update": ([0], [7]),
        "prefix": (1,),
        "suffix": (1,),
        "range": (0, 1),
        "queries": ([1],),
    }
    apart = {"from_bytes", "operator", "policy", "fifo", "partitions", "checkpoints", "min_arity"}
    apart |= {"open", "release", "sync"}  # of windows in a store
    names = [n for n in dir(window) if not n.startswith("_") and n not in apart]
    found = [lambda n=n: getattr(window, n)(*given.get(n, ())) for n in names]
    if not isinstance(window, FlatFat):
        found.append(lambda: len(window))
    if isinstance(window, Fiba | BTree):
        found.append(lambda: list(window))
    return [*found, lambda: copy.copy(window), lambda: copy.deepcopy(window)]


@pytest.mark.parametrize("name", [*KINDS, "FlatFat", "policy"])
def test_a_window_in_use_refuses_every_call_of_another_thread(name: str) -> None:
    waiting: Any = Waiting()
    op = listing(waiting, commutes=name == "Cbix")
    if name == "FlatFat":
        window: Any = FlatFat(op, list(range(8)))
        first: Callable[[], Any] = lambda: window.update([1], [9])  # noqa: E731
    elif name == "policy":
        window = Amta(op, policy=at_most(5))
        first = lambda: window.insert(3)  # noqa: E731
    else:
        window = filled(KINDS[name][0], op, 8)
        timed = not isinstance(window, InOrder)
        first = lambda: window.insert(*(11 if name == "Cbix" else 100,) * timed, 8)  # noqa: E731
    waiting.waits = True
    thread = threading.Thread(target=first)
    thread.start()
    assert waiting.there.wait(20)
    refused = calls_of(window)
    assert len(refused) > 6
    for call in refused:
        with pytest.raises(sash.InUse, match="in the middle of a call"):
            call()
    assert "in use" in repr(window) or name in ("Cbix", "FlatFat")
    other = filled(Fiba, listing(Trap()), 3)  # a different one is used side by side
    assert other.query() == [3, 4, 5]
    waiting.go.set()
    thread.join(20)
    window._check()
    calls_of(window)[-1]()


@pytest.mark.parametrize("name", KINDS)
def test_an_operator_that_calls_back_is_refused(name: str) -> None:
    back = Trap()
    window = window_of(name, back, 8)
    for call in (window.query, lambda: KINDS[name][1]["insert"][0](window)):
        held, back.act = window.query(), window.query
        with pytest.raises(sash.InUse):
            call()
        if not judge_quietly(window, held):
            break


def judge_quietly(window: Any, held: Held) -> bool:
    """Whether a window is as it was; else it refuses further use."""
    if (why := refusal(window.query)) != "":
        assert why == "not sound"
        return False
    return bool(window.query() == held)


COMPILED: list[Callable[[], Any]] = [
    lambda: TwoStacksLite(ops.sum.of(int)),
    lambda: DabaLite(ops.sum.of(int)),
    lambda: Amta(ops.sum.of(int)),
    lambda: Fiba(ops.sum.of(int), min_arity=2),
    lambda: Timed(DabaLite(ops.sum.of(int))),
]
OBJECTS: list[Callable[[], Any]] = [
    *(lambda kind=kind: kind(ops.collect) for kind in IN_ORDER if kind is not SubtractOnEvict),
    lambda: SubtractOnEvict(ops.sum.of(int)),
    lambda: Fiba(ops.collect, min_arity=2),
    lambda: BTree(ops.collect, min_arity=2),
    lambda: Reactive(ops.collect),
    lambda: Timed(Amta(ops.collect)),
    lambda: Cbix(ops.sum, 20, 4),
]


@pytest.mark.parametrize("make", [*OBJECTS, *COMPILED])
def test_threads_on_one_window(make: Callable[[], Any]) -> None:
    """Each call is done whole or refused, so that the window holds as many as were not."""
    window, done, errors = make(), [0, 0, 0], []
    timed = not isinstance(window, InOrder)
    clock = iter(range(10**9))

    def work(me: int) -> None:
        source = random.Random(me)
        for _ in range(150):
            try:
                what = source.random()
                if what < 0.5:
                    window.insert(next(clock) if timed else 1, 1) if timed else window.insert(1)
                    done[me] += 1
                elif what < 0.7 and not timed:
                    window.evict()
                    done[me] -= 1
                else:
                    window.query()
            except (sash.InUse, IndexError):
                continue
            except ValueError as error:  # a time that another thread has passed
                if not any(said in str(error) for said in ("older than", "it has expired")):
                    errors.append(error)
            except BaseException as error:
                errors.append(error)

    in_threads(3, work)
    assert not errors
    if not isinstance(window, Cbix):
        assert len(window) == sum(done)
    window._check()


def test_asyncio_threads_take_turns() -> None:
    window = DabaLite(ops.collect)

    async def both() -> list[Any]:
        for value in range(4):
            await asyncio.to_thread(window.insert, value)
        return await asyncio.gather(*(asyncio.to_thread(lambda: 1) for _ in range(2)))

    asyncio.run(both())
    assert window.query() == [0, 1, 2, 3]


def test_a_child_process_uses_its_copy() -> None:
    """One that was idle at the fork works; one that another thread was using is refused."""
    waiting: Any = Waiting()
    idle, busy = DabaLite(ops.sum), DabaLite(listing(waiting))
    idle.insert(3)
    waiting.waits = True
    thread = threading.Thread(target=busy.insert, args=(1,))
    thread.start()
    assert waiting.there.wait(20)
    child = os.fork()
    if not child:
        code = 1
        try:
            idle.insert(4)
            try:
                busy.query()
            except sash.InUse as error:
                code = 0 if idle.query() == 7 and "forked" in str(error) else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    waiting.go.set()
    thread.join(20)
    assert os.waitstatus_to_exitcode(status) == 0
    assert busy.query() == [1]


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
def test_signals_at_random(error: type[BaseException]) -> None:
    """Also from a handler that raises an Exception, which an operator's function might have."""

    source, hits = random.Random(4), 0
    names = [n for n in KINDS if n != "Cbix"]
    with alarms(error) as alarm:
        for i in range(150):
            window = window_of(names[i % len(names)], Trap(), 8)
            timed, held = not isinstance(window, InOrder), window.query()
            steps: list[list[int]] = [held]
            try:
                alarm.ring(source.uniform(1e-5, 4e-4))
                for v in range(1000, 1060):
                    steps = [held, [*held, v]]
                    window.insert(10 * v, v) if timed else window.insert(v)
                    held = [*held, v]
                    steps = [held, held[1:]]
                    window.evict(window.oldest()) if timed else window.evict()
                    held = held[1:]
                alarm.rest()
            except error:
                alarm.rest()
                hits += 1
            if (why := refusal(window.query)) != "":
                assert why in ("in use", "not sound")
                continue
            assert window.query() in steps
            window._check()
    assert hits > 20


@pytest.mark.plain
@pytest.mark.parametrize(
    "make", [Fiba, BTree, Reactive, lambda op: Timed(DabaLite(op)), lambda op: Cbix(op, 9)]
)
def test_a_missing_time_changes_nothing(make: Callable[[Any], Any]) -> None:
    for op in (ops.sum, ops.sum.of(int)):
        window = make(op)
        window.insert(3, 5)
        for time in (pd.NaT, np.datetime64("NaT"), float("nan")):
            with pytest.raises((ValueError, TypeError), match=r"missing \(NaT\)|is no time"):
                window.insert(time, 1)
            with pytest.raises((ValueError, TypeError)):
                window.bulk_insert([3, time], [1, 2])
        with pytest.raises(ValueError, match="missing"):
            window.bulk_insert(pd.Series([pd.Timestamp(4), pd.NaT]), [1, 2])
        with pytest.raises(OverflowError):
            window.insert(2**63, 1)
        window._check()
        assert (window.query(), len(window), window.youngest()) == (5, 1, 3)


def test_what_is_guarded() -> None:
    """All aggregators share one mechanism."""
    for name in aggregators.__all__:
        made = getattr(aggregators, name)
        if isinstance(made, type) and name != "Choice":
            assert issubclass(made, Guarded)
