"""Pickle operators: pickle a ready operator as its name, parameters and types.

Its functions are closures, which pickle refuses.  Unpickling returns the object that the process
already has under that name, with its kernels.  An operator of your own is pickled as its functions,
so these must be importable (or the pickler must be cloudpickle).
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .contract import Operator, Part, _join

__all__: list[str] = []


def _reduced(operator: Operator) -> tuple[Any, ...]:
    """The call with which pickle rebuilds the operator."""
    if operator.ready:
        return _remade, (operator.ready, operator.parameters, operator.skips, operator.types)
    if operator.parts:
        columns, rule = len(operator.skips), operator.rule
        return _rejoined, (operator.parts, columns, operator.name, operator.types, rule)
    return copyreg.__newobj__, (Operator,), operator.__getstate__()  # type: ignore[attr-defined]


def _remade(
    name: str, parameters: tuple[Any, ...], skips: tuple[bool, ...], types: tuple[str, ...]
) -> Operator:
    """The ready operator of this process, by name."""
    made: Any = getattr(import_module("sash.operators"), name)
    if not isinstance(made, Operator):
        made = made(*parameters)
    if made.skips != skips:
        made = made.ignore_nulls()
    tied: Operator = made.of(*types) if types else made
    return tied


def _rejoined(
    parts: tuple[Part, ...],
    columns: int,
    name: str,
    types: tuple[str, ...],
    rule: Callable[[Any, Any], bool] | None,
) -> Operator:
    """Join several operators into one."""
    return _join(parts, columns, name=name, types=types, rule=rule)


copyreg.pickle(Operator, _reduced)
