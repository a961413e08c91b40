"""The table of workloads: what is timed, against whom, and what is promised."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import bottleneck
import numpy as np
import pandas as pd
import polars as pl

from sash import aggregators, operators

from .aggregates import aggregates
from .any_order import any_order
from .bulk_eviction import bulk_eviction
from .first_results import first_results
from .lateness import latenesses
from .many_keys import many_keys
from .many_sizes import many_sizes
from .out_of_order import out_of_order
from .page import page
from .processes import first_slide, import_sash, setting
from .queries import queries
from .shared import shared_queries
from .small_pushes import small_pushes
from .statements import statements
from .stores import stores
from .streaming import streaming
from .streams import citi_bike
from .text_streams import text_streams
from .users_operators import (
    CEILING,
    own_max,
    own_sum,
    saturating_max,
    saturating_max_by_hand,
)
from .windows import windows
from .workload import Bound, Contender, Workload

__all__ = ["table"]

SMALL, LARGE = 1 << 10, 1 << 20
ROUNDS = 20_000

AT_ONCE = ("TwoStacksLite", "DabaLite", "FlatFit")
TREES = ("FlatFatFifo", "BInt")  # which take the logarithm of the window, for information
OTHERS = ("TwoStacks", "Daba", *TREES)

AS_FAST = (
    Bound(1.0, "bottleneck", or_equal=True),
    Bound(0.6, "Polars"),
    Bound(0.4, "pandas"),
)
BOUNDS = {
    "TwoStacksLite": AS_FAST,
    "DabaLite": AS_FAST,
    "FlatFit": (Bound(1.8, "bottleneck"),),
}
#: How many threads slide over an array, and of bottleneck's time at most so much.
THREADS = (("one thread", 1, 0.30), ("two threads", 2, 0.20))
NO_SLOWER = (Bound(1.0, "Polars", or_equal=True), Bound(1.0, "pandas", or_equal=True))


def table(rows: int, *, quick: bool) -> list[Workload]:
    """All workloads, those in order over this many rows; quick ones have smaller windows."""
    x = np.random.default_rng(0).standard_normal(rows)
    return [
        _max(x, SMALL),
        _max(x, LARGE),
        _flat(x),
        _user_operator(x),
        *_ready(rows),
        _moments(x, "mean", "rolling_mean", "mean"),
        _moments(x, "stddev", "rolling_std", "std", alone=(Bound(12e-9, or_equal=True),)),
        _arg_max(x),
        _round(),
        _import(),
        _second_process(),
        *first_results(),
        *many_sizes(quick=quick),
        *bulk_eviction(rows, quick=quick),
        *out_of_order(x, quick=quick),
        *queries(rows, quick=quick),
        *any_order(quick=quick),
        *windows(quick=quick),
        *aggregates(quick=quick),
        *streaming(quick=quick),
        *small_pushes(quick=quick),
        *text_streams(quick=quick),
        *shared_queries(quick=quick),
        *many_keys(quick=quick),
        *statements(quick=quick),
        *latenesses(quick=quick),
        *stores(quick=quick),
        *page(quick=quick),
        *citi_bike(),
    ]


def _is_there(name: str) -> bool:
    return hasattr(aggregators, name)


def _missing(*names: str) -> tuple[str, ...]:
    return tuple(name for name in names if not _is_there(name))


def _slide(
    name: str,
    operator: Any,
    values: Any,
    size: int,
    answer: Callable[[Any], Any] | None = np.asarray,
    bounds: tuple[Bound, ...] = (),
    peer: str | None = None,
    slow: bool = False,
) -> Contender:
    """An aggregator of ours sliding over all values."""
    make = getattr(aggregators, name)
    few = tuple(v[:16] for v in values) if isinstance(values, tuple) else values[:16]
    return Contender(
        run=lambda: make(operator).slide(values, size),
        first=lambda: make(operator).slide(few, 4),
        kernel=f"{name} of {operator.name}",
        answer=answer,
        bounds=bounds,
        peer=peer,
        slow=slow,
    )


def _in_threads(
    operator: Any, x: Any, size: int, threads: int, bounds: tuple[Bound, ...] = ()
) -> Contender:
    """Two stacks with a number of threads."""

    def run() -> Any:
        with setting("SASH_THREADS", threads):
            return aggregators.TwoStacksLite(operator).slide(x, size)

    return Contender(run=run, answer=np.asarray, bounds=bounds)


def _in_words(size: int) -> str:
    return f"{size:,}" if size < LARGE else f"2^{size.bit_length() - 1}"


def _max(x: Any, size: int) -> Workload:
    polars_x, pandas_x = pl.Series(x), pd.Series(x)
    return Workload(
        name=f"max-{_in_words(size).replace(',', '')}",
        title=f"max of {len(x):,} float64, window {_in_words(size)}",
        units=len(x),
        ours={
            name: _slide(
                name, operators.max, x, size, bounds=BOUNDS.get(name, ()), slow=name in TREES
            )
            for name in AT_ONCE + OTHERS
            if _is_there(name)
        }
        | {
            f"TwoStacksLite, {said}": _in_threads(
                operators.max, x, size, n, (Bound(most, "bottleneck", or_equal=True),)
            )
            for said, n, most in THREADS
        },
        peers={
            "bottleneck": _peer(lambda: bottleneck.move_max(x, size, min_count=1)),
            "Polars": _peer(lambda: polars_x.rolling_max(window_size=size, min_samples=1)),
            "pandas": _peer(lambda: pandas_x.rolling(size, min_periods=1).max()),
        },
        missing=_missing(*AT_ONCE, *OTHERS),
    )


def _peer(run: Callable[[], Any], answer: Callable[[Any], Any] = np.asarray) -> Contender:
    return Contender(run=run, answer=answer)


def _flat(x: Any) -> Workload:
    """A large window against a small one, each aggregator against itself."""
    there = [name for name in AT_ONCE if _is_there(name)]
    return Workload(
        name="flat",
        title=f"max of {len(x):,} float64, window {_in_words(LARGE)} against {_in_words(SMALL)}",
        units=len(x),
        ours={
            name: _slide(
                name,
                operators.max,
                x,
                LARGE,
                answer=None,
                bounds=(Bound(1.3, f"{name}, {_in_words(SMALL)}", or_equal=True),),
                peer=f"{name}, {_in_words(SMALL)}",
            )
            for name in there
        },
        peers={
            f"{name}, {_in_words(SMALL)}": _slide(name, operators.max, x, SMALL, answer=None)
            for name in there
        },
        missing=_missing(*AT_ONCE),
    )


def _ready(rows: int) -> list[Workload]:
    """Ready operators of integers beside one's own, which know neither nulls nor overflow, on one
    core, where memory holds up neither."""
    values = np.random.default_rng(0).integers(-(10**9), 10**9, rows)
    made = []
    for name, own, most in (("sum", own_sum, 1.3), ("max", own_max, 1.1)):
        ready = getattr(operators, name).of("int64")
        bounds = (Bound(most, "one's own", or_equal=True),)
        made.append(
            Workload(
                name=f"ready-{name}",
                title=f"{name} of {rows:,} int64, window {_in_words(SMALL)}, one thread, beside a "
                "user's",
                units=rows,
                ours={name: _in_threads(ready, values, SMALL, 1, bounds)},
                peers={"one's own": _in_threads(own, values, SMALL, 1)},
            )
        )
    return made


def _user_operator(x: Any) -> Workload:
    """A user's lambdas with a tuple partial against the built-in max."""
    there = [name for name in AT_ONCE if _is_there(name)]
    written = {"": saturating_max, ", by hand": saturating_max_by_hand}
    return Workload(
        name="user-operator",
        title=f"a user's saturating max against the built-in, {len(x):,} float64, "
        f"window {_in_words(SMALL)}",
        units=len(x),
        ours={
            f"{name}{how}": _slide(
                name,
                operator,
                x,
                SMALL,
                bounds=(Bound(1.5, f"{name}, built-in", or_equal=True),),
                peer=f"{name}, built-in",
            )
            for name in there
            for how, operator in written.items()
        },
        peers={
            f"{name}, built-in": _slide(
                name, operators.max, x, SMALL, answer=lambda r: np.minimum(r, CEILING)
            )
            for name in there
        },
        missing=_missing(*AT_ONCE),
    )


def _moments(
    x: Any, ours: str, in_polars: str, in_pandas: str, alone: tuple[Bound, ...] = ()
) -> Workload:
    """A moment against Polars and pandas; `alone` are the bounds of one thread."""
    polars_x, pandas_x = pl.Series(x), pd.Series(x)
    operator = getattr(operators, ours)
    return Workload(
        name=ours,
        title=f"{ours} of {len(x):,} float64, window {_in_words(SMALL)}",
        units=len(x),
        ours={
            name: _slide(
                name, operator, x, SMALL, bounds=NO_SLOWER if name == "TwoStacksLite" else ()
            )
            for name in ("TwoStacksLite", "DabaLite")
        }
        | {"TwoStacksLite, one thread": _in_threads(operator, x, SMALL, 1, alone)},
        peers={
            "Polars": _peer(lambda: getattr(polars_x, in_polars)(window_size=SMALL, min_samples=1)),
            "pandas": _peer(lambda: getattr(pandas_x.rolling(SMALL, min_periods=1), in_pandas)()),
        },
    )


def _arg_max(x: Any) -> Workload:
    """Where the greatest value is.  Neither Polars nor pandas has it: rolling max, which does
    less, is their nearest."""
    polars_x, pandas_x = pl.Series(x), pd.Series(x)
    positions = np.arange(len(x))
    also = ("DabaLite",)
    return Workload(
        name="arg_max",
        title=f"arg_max of {len(x):,} float64, window {_in_words(SMALL)} "
        "(Polars and pandas have none: their max)",
        units=len(x),
        ours={
            name: _slide(
                name,
                operators.arg_max,
                (positions, x),
                SMALL,
                answer=lambda r: x[r],
                bounds=NO_SLOWER if name == "TwoStacksLite" else (),
            )
            for name in ("TwoStacksLite", *also)
            if _is_there(name)
        },
        peers={
            "Polars": _peer(lambda: polars_x.rolling_max(window_size=SMALL, min_samples=1)),
            "pandas": _peer(lambda: pandas_x.rolling(SMALL, min_periods=1).max()),
            "bottleneck": _peer(
                lambda: bottleneck.move_argmax(x, SMALL, min_count=1),
                # It counts back from the youngest row.
                answer=lambda r: x[positions - r.astype(np.int64)],
            ),
        },
        missing=_missing(*also),
    )


def _round() -> Workload:
    """insert, evict and query called one by one from Python."""
    under = (Bound(2e-6),)

    def rounds(name: str, operator: Any) -> Contender:
        @cache
        def window() -> Any:
            # Made by the warm-up: compiling it now would take from other workloads' first calls.
            made = getattr(aggregators, name)(operator)
            for i in range(SMALL):
                made.insert(float(i))
            return made

        def run() -> Any:
            insert, evict, query = window().insert, window().evict, window().query
            for _ in range(ROUNDS):
                insert(1.5)
                evict()
                query()

        return Contender(run=run, bounds=under)

    ties = {"typed": operators.max.of(float), "untyped": operators.max}
    return Workload(
        name="round",
        title=f"one round of insert, evict, query from Python, window {_in_words(SMALL)}",
        unit="round",
        units=ROUNDS,
        ours={
            f"{name}, {tie}": rounds(name, operator)
            for name in AT_ONCE
            if _is_there(name)
            for tie, operator in ties.items()
        },
        peers={},
        missing=_missing(*AT_ONCE),
    )


def _import() -> Workload:
    return Workload(
        name="import",
        title="import sash in a new process",
        unit="process",
        told=True,
        ours={"import sash": Contender(run=import_sash, bounds=(Bound(0.4),))},
        peers={},
    )


def _second_process() -> Workload:
    """The first slide of a process, with the kernel built by an earlier one; numba has been
    imported before the clock starts."""
    under = (Bound(0.3),)
    ours = {
        f"{name}, {which}": Contender(
            run=lambda name=name, which=which: first_slide(name, which),
            first=lambda name=name, which=which: first_slide(name, which, anew=True),
            kernel=f"{name} of {which}, in a process of its own",
            bounds=under,
        )
        for name in AT_ONCE
        if _is_there(name)
        for which in ("max", "user's")
    }
    return Workload(
        name="second-process",
        title="the first slide of a process whose kernel is in the cache",
        unit="process",
        told=True,
        calls=1,
        ours=ours,
        peers={},
        missing=_missing(*AT_ONCE),
    )
