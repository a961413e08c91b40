"""Find the aggregate, key and window at which `combine` raised, or the aggregate and the values at
which `lift` raised.

A stream stops when `combine` raises, because it cannot keep partials that do not combine.  The
message must say where to look.  An error in a step names its place itself (`StepFailed`).  If
cutting a batch into slices fails, this module folds the batch's rows once more in plain Python, one
aggregate and key at a time, until a fold fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan, column_type
from ..state.contract import StepFailed
from ..tables.arrow import as_time, flat, time_text
from ..tables.keys import by_group, key_codes
from ..tables.order import in_time

__all__ = [
    "CombineFailed",
    "for_query",
    "key_text",
    "name_failure",
    "name_step_failure",
    "noting_failure",
    "window_text",
]

#: How many rows are lifted in plain Python, at most, to find the one for which `lift` raised.
_LOOKED = 1_000_000


@contextmanager
def for_query(name: str) -> Iterator[None]:
    """Name the query in an error about it; a query that is alone has no name."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        text = error.args[0] if error.args else error
        raise type(error)(f"query {name!r}: {text}" if name else text) from None


@contextmanager
def noting_failure(plan: Plan, table: pa.Table) -> Iterator[None]:
    """Note on an error which function of which aggregate raised it, and for which values: an error
    of a compiled function says neither.  For tables; a row of a stream for which `lift` raised is
    late."""
    try:
        yield
    except Exception as error:
        note = None if getattr(error, "__notes__", None) else _failure_of_function(plan, table)
        if note is not None:
            error.add_note(note)
        raise


def _failure_of_function(plan: Plan, table: pa.Table) -> str | None:
    """The first aggregate of a user of which a function raises in plain Python, and the values:
    `lift` of a row, `combine` of two neighbouring rows, and once more, `lower` of those two."""
    for name, chosen in plan.query.select.items():
        if chosen.operator.ready or chosen.where is not None:
            continue
        columns = list(chosen.columns)
        kinds = [column_type(plan.schema.field(c).type) for c in columns]
        operator = chosen.operator.of(*kinds)
        lift, combine = operator.python_lift(), operator.python_combine()
        lower, before = operator.python_lower(), operator.identity
        for batch in table.select(columns).slice(0, _LOOKED).to_batches(max_chunksize=65_536):
            for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                given = ", ".join(f"{c} = {v!r}" for c, v in zip(columns, values, strict=True))
                what = "lift"
                try:
                    made = lift(values if len(values) > 1 else values[0])
                    what, given = "combine", f"the partials {before!r} and {made!r}"
                    both = combine(before, made)
                    given = f"the partials {both!r} and {made!r}"
                    combine(both, made)
                    what, given = "lower", f"the partial {both!r}"
                    lower(both)
                except Exception as found:
                    return f"{what} of {name} raised {type(found).__name__}: {found}, for {given}"
                before = made
    return None


class CombineFailed(RuntimeError):
    """An operator's `combine` raised, so a batch cannot be inserted."""


def name_failure(plan: Plan, table: pa.Table, times: Array, error: Exception) -> Exception:
    """The error to raise for a batch in which `combine` raised; the error itself if no fold in
    plain Python fails."""
    query = plan.query
    codes, keys = key_codes([flat(table.column(c)) for c in query.by], len(times))
    rows, bounds = by_group(codes, len(keys[0]) if keys else 1, in_time(times))
    for name, chosen in query.select.items():
        columns = [flat(table.column(c)).to_pylist() for c in chosen.columns or (query.time,)]
        kinds = [column_type(plan.schema.field(c).type) for c in chosen.columns or (query.time,)]
        operator = chosen.operator.of(*kinds)
        combine, lift = operator.python_combine(), operator.python_lift()
        for k in range(len(bounds) - 1):
            total = operator.identity
            for row in rows[bounds[k] : bounds[k + 1]].tolist():
                value = tuple(c[row] for c in columns)
                try:
                    total = combine(total, lift(value if len(value) > 1 else value[0]))
                except Exception as found:
                    what = f"combine of {name} raised {type(found).__name__}: {found}"
                    window = query.aligned.first(int(times[row]))
                    return _failure(plan, what, keys, k, window, broken=False)
    return error


def name_step_failure(plan: Plan, error: StepFailed, *, broken: bool) -> CombineFailed:
    """The error to raise for a step in which `combine` raised; `broken` is true if the state cannot
    be used any more."""
    return _failure(plan, str(error), error.keys, error.code, error.window, broken=broken)


def _failure(
    plan: Plan, what: str, keys: list[pa.Array], code: int, window: int, *, broken: bool
) -> CombineFailed:
    whose = key_text(plan, keys, code)
    then = "the batch was not inserted"
    if broken:
        then = (
            "part of the batch is in, so the stream cannot be used any more: make a new one, or "
            "restore one from its bytes"
        )
    where = f"in the window {window_text(plan, window)}{whose and ' of ' + whose}"
    return CombineFailed(f"{what}, {where}; {then}")


def key_text(plan: Plan, keys: list[pa.Array], code: int) -> str:
    """A key as a person would write it."""
    pairs = zip(plan.query.by, keys, strict=False)
    return ", ".join(f"{name} = {column[code]}" for name, column in pairs)


def window_text(plan: Plan, number: int) -> str:
    """A window as a person would write it."""
    window = plan.query.aligned
    edges: Any = np.array([window.start(number), window.end(number)])
    start, end = as_time(edges, plan.time_type)
    return f"from {time_text(start)} to {time_text(end)}"
