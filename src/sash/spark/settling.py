"""Python workers that are used again, task by task.

After each task Spark's daemon looks for garbage among all objects of the worker, also those of its
modules: 70 ms where numba and pandas are loaded, on a core that the next stage's tasks wait for.
"""

from __future__ import annotations

import gc
import sys

__all__ = ["settle"]

_loaded = 0  # modules when this was called last


def settle() -> None:
    """Leave what is there out of the search for garbage, if more modules have been loaded since the
    last time: they stay for good.  Objects in no cycle are freed all the same."""
    global _loaded
    if len(sys.modules) != _loaded:
        _loaded = len(sys.modules)
        gc.freeze()
