"""Ready operators, and several of them together, as JSON, so that a window in a store can be opened
without its operator."""

from __future__ import annotations

import json
from typing import Any

from ..operators.contract import Operator, Part
from ..operators.pickling import _rejoined, _remade

__all__ = ["recipe_of", "remade"]


def recipe_of(operator: Operator) -> dict[str, Any] | None:
    """How an operator is made again, None for one of the user's own."""
    made: dict[str, Any] = {"name": operator.name, "types": list(operator.types)}
    if operator.ready:
        made |= {
            "name": operator.ready,
            "parameters": list(operator.parameters),
            "skips": list(operator.skips),
        }
    elif operator.parts and operator.rule is None:
        parts = [
            [recipe_of(part.operator), list(part.columns), part.shares, part.where]
            for part in operator.parts
        ]
        if any(part[0] is None for part in parts):
            return None
        made |= {"parts": parts, "columns": len(operator.skips)}
    else:
        return None
    try:
        return made if json.loads(json.dumps(made)) == made else None
    except TypeError:
        return None


def remade(recipe: dict[str, Any] | None, what: str) -> Operator:
    """The operator of a recipe."""
    if recipe is None:
        raise TypeError(
            f"{what} needs the operator that the window was made with, as it is not a ready one"
        )
    types = tuple(recipe["types"])
    if "parts" in recipe:
        parts = [
            Part(remade(made, what), tuple(columns), shares, where)
            for made, columns, shares, where in recipe["parts"]
        ]
        return _rejoined(tuple(parts), recipe["columns"], recipe["name"], types, None)
    return _remade(recipe["name"], tuple(recipe["parameters"]), tuple(recipe["skips"]), types)
