"""Sends work to Spark's Python workers, which may lack packages that it needs.

Pickle sends a function of a package by its name.  A worker without the package only says "No module
named 'sash'", at the end of a long trace.  So work travels in a parcel with a small function, which
pickle sends by its code.  On the worker, this function looks for missing packages and says what to
do about them, and only then unpickles the work.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

__all__ = ["parcel", "shipped"]

#: The packages that a worker imports for any work.
NEEDED = ("sash", "numpy", "numba", "pyarrow", "pandas", "google.protobuf")


def shipped(work: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wrap work in a function that travels to workers in a parcel."""
    sent = _Sent(work)
    return lambda rows: sent(rows)  # Spark counts the arguments of functions


class _Sent:
    """Stands for the work on the driver.  A worker that unpickles it gets the work itself."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self._work = work

    def __call__(self, rows: Any) -> Any:
        return self._work(rows)

    def __reduce__(self) -> Any:
        return parcel(self._work)


def parcel(work: Any, unopened: Callable[[Callable[[], Any]], Any] | None = None) -> Any:
    """The result of `__reduce__` for the work.

    With `unopened`, the parcel arrives as what this function returns, which gets a function that
    opens the parcel: so a process that does not need the work does not import sash.  `unopened`
    travels by its code, and needs no module of sash.

    The parcel contains the path of sash too, for processes that do not know of `--py-files`.
    """
    packed = cloudpickle.dumps(work)  # type: ignore[no-untyped-call]
    version = sys.modules["sash"].__version__
    return _arrive, (str(Path(__file__).parents[2]), version, NEEDED, packed, unopened)


def _arrive(place: str, version: str, needed: tuple[str, ...], packed: bytes, unopened: Any) -> Any:
    """Check the worker's packages, and unpickle the work, or leave that to `unopened`."""
    import pickle
    import sys
    from importlib import import_module
    from importlib.util import find_spec

    def there(name: str) -> bool:
        try:
            return find_spec(name) is not None
        except ModuleNotFoundError:  # its parent package is missing
            return False

    if not there("sash"):
        sys.path.append(place)
    missing = [name for name in needed if not there(name)]
    if missing:
        raise ModuleNotFoundError(
            f"the Python of Spark's workers, {sys.executable}, has no {', '.join(missing)}: set "
            "PYSPARK_PYTHON, before Spark starts, to a Python that has sash and what it needs (pip "
            "install 'sash[spark]'); on a cluster install it on every node, or send a packed "
            "environment with spark.archives"
        )

    def opened() -> Any:
        import_module("sash.query")
        sash = sys.modules["sash"]
        try:
            if sash.__version__ != version:
                raise ImportError(f"this is version {version}, that one {sash.__version__}")
            work = pickle.loads(packed)
        except (AttributeError, ImportError) as error:
            if sash.__version__ == version and "sash" not in str(error):
                raise  # the error is about the user's code
            raise ImportError(
                f"the workers' sash, {sash.__file__}, is not the one of the driver ({error}); "
                "install the same on both"
            ) from None
        import_module("sash.spark.settling").settle()
        return work

    return opened() if unopened is None else unopened(opened)


_arrive.__module__ = "__main__"  # so pickle sends its code, and not its name in sash
