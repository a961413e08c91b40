"""Shortens the garbage collection of Python workers, which Spark uses for many tasks.

After each task Spark's daemon collects garbage, and looks through all objects of the worker, also
those of its modules: that takes 70 ms if numba and pandas are loaded, on a core for which tasks of
the next stage wait.
"""

from __future__ import annotations

import gc
import sys

__all__ = ["settle"]

_loaded = 0  # the number of modules at the last call of `settle`


def settle() -> None:
    """Exclude all present objects from garbage collection, if modules have been loaded since the
    last call: modules stay for good.  Python still frees excluded objects that are in no cycle."""
    global _loaded
    if len(sys.modules) != _loaded:
        _loaded = len(sys.modules)
        gc.freeze()
