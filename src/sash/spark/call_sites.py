"""Builds Spark expressions without recording their call sites.

For each expression, PySpark makes five calls to the JVM to record the line of the program that
built it, for error messages.  For sash's expressions that is a line of sash, which tells a user
nothing; and two of three calls that a query over a small table made were of this kind.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from pyspark.errors import utils

__all__ = ["without_call_sites"]

P = ParamSpec("P")
T = TypeVar("T")

#: PySpark's cache of the setting `spark.python.sql.dataFrameDebugging.enabled`; None until PySpark
#: has asked for it.
_KEPT = "_enable_debugging_cache"


def without_call_sites(function: Callable[P, T]) -> Callable[P, T]:
    """Make `function` build expressions without recording call sites.  Afterwards the cache is
    empty, and PySpark asks for the setting again: so two threads that do this at once leave no
    wrong value.  If PySpark has no such cache, `function` stays as it is."""
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
