"""Ready operators as JSON, so that a window in a store can be opened without its operator."""

from __future__ import annotations

import json
from typing import Any

from ..operators.contract import Operator
from ..operators.pickling import _remade

__all__ = ["recipe_of", "remade"]


def recipe_of(operator: Operator) -> dict[str, Any] | None:
    """How an operator is made again, None for one of the user's own."""
    if not operator.ready:
        return None
    made = {
        "name": operator.ready,
        "parameters": list(operator.parameters),
        "skips": list(operator.skips),
        "types": list(operator.types),
    }
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
    given = recipe["parameters"], recipe["skips"], recipe["types"]
    return _remade(recipe["name"], *(tuple(some) for some in given))
