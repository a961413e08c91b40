"""The oracle of operators: compute each ready operator's answer from its definition.

It shares no code with the operators: no `lift`, `combine` or `lower`, no aggregator.  It computes
an answer from the raw list of values, and in exact fractions where rounding could matter.  Speed
does not matter here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from ..operators.contract import Operator
from .definitions import DEFINITIONS
from .promises import PROMISES
from .slack import SLACK

__all__ = ["agrees", "answer"]


def answer(
    operator: Operator,
    values: Sequence[Any],
    *,
    definition: Callable[[list[Any]], Any] | None = None,
) -> Any:
    """The answer of a ready operator over a list of values, by definition.

    None is null, and rows of several columns are tuples.  For an operator of your own, `definition`
    is a function that computes the answer from the values without skipped nulls.  `answer` raises
    OverflowError if the answer does not fit int64.

    >>> from sash.operators import arg_max, max, mean, sum, together
    >>> answer(mean, [1, None, 4])
    2.5
    >>> answer(arg_max, [("a", 1), ("b", 7), ("c", 7)])
    'b'
    >>> answer(together(sum, max, columns=[0, 1]), [(1, 5), (2, None)])
    (3, 5)
    >>> answer(max, [3, 9], definition=lambda xs: xs[-1])
    9
    """
    if definition is not None:
        return definition(_kept(operator, values))
    if operator.parts:
        return tuple(
            answer(p.operator, _columns(operator, values, p.columns)) for p in operator.parts
        )
    name, parameters = _parameters(operator)
    if name not in DEFINITIONS:
        known = "; it can be judged by agrees(…)" if name in PROMISES else ""
        raise TypeError(
            f"the oracle has no definition of {operator!r}{known}; give definition=, a function "
            "from the list of values to the answer"
        )
    return DEFINITIONS[name](_kept(operator, values), *parameters)


def agrees(
    operator: Operator,
    values: Sequence[Any],
    got: Any,
    *,
    definition: Callable[[list[Any]], Any] | None = None,
) -> bool:
    """True if an answer is right.

    Sums, means and the like may differ by rounding, NaN equals NaN, null equals only null, and
    everything else is exact; a sketch must keep its error bound.  If the query raised an
    OverflowError, pass the error as `got`.

    >>> from sash.operators import max, sum
    >>> agrees(sum, [0.1, 0.2], 0.3), agrees(max, [0.1, 0.2], 0.3)
    (True, False)
    >>> agrees(sum, [2**63 - 1, 1], OverflowError("the sum leaves int64"))
    True
    """
    if definition is None and operator.parts:
        return _agrees_in_parts(operator, values, got)
    name, parameters = _parameters(operator)
    if definition is None and name in PROMISES:
        return PROMISES[name](operator, _kept(operator, values), got, *parameters)
    try:
        expected = answer(operator, values, definition=definition)
    except OverflowError:
        return isinstance(got, OverflowError)
    if definition is not None:
        return _equal(expected, got, 1e-9, 0.0)
    if name not in SLACK:
        return _equal(expected, got, 0.0, 0.0)
    return _equal(expected, got, 1e-9, SLACK[name](_kept(operator, values)))


def _agrees_in_parts(operator: Operator, values: Sequence[Any], got: Any) -> bool:
    if isinstance(got, OverflowError):
        return any(
            _overflows(p.operator, _columns(operator, values, p.columns)) for p in operator.parts
        )
    if not isinstance(got, tuple) or len(got) != len(operator.parts):
        return False
    return all(
        agrees(p.operator, _columns(operator, values, p.columns), x)
        for p, x in zip(operator.parts, got, strict=True)
    )


def _overflows(operator: Operator, values: Sequence[Any]) -> bool:
    if not operator.parts and _parameters(operator)[0] not in DEFINITIONS:
        return False
    try:
        answer(operator, values)
    except OverflowError:
        return True
    return False


# The input of the definitions


def _parameters(operator: Operator) -> tuple[str, tuple[Any, ...]]:
    """A ready operator's name and its numeric parameters: `first_n` and 3 for `first_n(3)`."""
    numbers = (x for x in operator.parameters if isinstance(x, int | float))
    return operator.ready, tuple(numbers)


def _columns(operator: Operator, values: Sequence[Any], columns: tuple[int, ...]) -> list[Any]:
    """The columns of each row that one operator of several reads."""
    rows = [(v,) for v in values] if len(operator.skips) == 1 else list(values)
    picked = [tuple(row[c] for c in columns) for row in rows]
    return [row[0] for row in picked] if len(columns) == 1 else picked


def _kept(operator: Operator, values: Sequence[Any]) -> list[Any]:
    """The rows without skipped nulls, as values of the operator's types."""
    width = len(operator.skips)
    made: list[Any] = []
    for value in values:
        row = (value,) if width == 1 else tuple(value)
        if any(skip and x is None for skip, x in zip(operator.skips, row, strict=True)):
            continue
        if operator.types:
            row = tuple(_as(t, x) for t, x in zip(operator.types, row, strict=True))
        made.append(row[0] if width == 1 else row)
    return made


def _as(type_: str, value: Any) -> Any:
    if value is None or type_ == "object":
        return value
    if type_ == "timestamp":
        return _micros(value)
    return {"int64": int, "float64": float, "bool": bool}[type_](value)


def _micros(value: Any) -> Any:
    """A time as microseconds since 1970; any other value unchanged."""
    if isinstance(value, np.datetime64):
        micros = value.astype("M8[us]")
        return int(micros.astype(np.int64)) - bool(micros > value)
    if isinstance(value, datetime):
        at = value if value.tzinfo else value.replace(tzinfo=UTC)
        since = at - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return value


def _equal(expected: Any, got: Any, relative: float, absolute: Any) -> bool:
    """True if an answer is the expected one; `absolute` may have a tolerance for each field."""
    if expected is None or got is None or isinstance(got, BaseException):
        return expected is None and got is None
    if isinstance(got, np.ndarray):
        got = got.tolist()
    if isinstance(expected, list | tuple):
        if not isinstance(got, list | tuple) or len(expected) != len(got):
            return False
        bounds = absolute if isinstance(absolute, tuple) else (absolute,) * len(got)
        return all(_equal(e, g, relative, b) for e, g, b in zip(expected, got, bounds, strict=True))
    expected, got = _micros(expected), _micros(got)
    if expected != expected or got != got:
        return bool(expected != expected and got != got)
    if expected == got:
        return True
    if not isinstance(expected, float) or not isinstance(got, int | float):
        return False
    if math.isinf(expected) or math.isinf(got):
        return False
    return math.isclose(expected, got, rel_tol=relative, abs_tol=absolute)
