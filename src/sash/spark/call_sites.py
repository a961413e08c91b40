"""Expressions without the places where they were written.

PySpark asks the JVM five things for each expression that is written, to note which line of the
program it stands in, for messages of errors.  For ours that is a line of sash, which tells a user
nothing; and of the calls that a small table's query makes, they were two in three.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from pyspark.errors import utils

__all__ = ["without_call_sites"]

P = ParamSpec("P")
T = TypeVar("T")

#: What PySpark keeps of the setting `spark.python.sql.dataFrameDebugging.enabled`, once it has
#: asked for it; None until then.
_KEPT = "_enable_debugging_cache"


def without_call_sites(function: Callable[P, T]) -> Callable[P, T]:
    """A function that writes expressions without their places.  Afterwards PySpark asks for the
    setting anew: so of two threads none undoes what the other one found.  A PySpark that is built
    otherwise notes all places."""
    if not hasattr(utils, _KEPT):
        return function

    @wraps(function)
    def quick(*args: P.args, **kwargs: P.kwargs) -> T:
        setattr(utils, _KEPT, False)
        try:
            return function(*args, **kwargs)
        finally:
            setattr(utils, _KEPT, None)

    return quick
