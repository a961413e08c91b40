"""Work on its way to Spark's Python workers, which may lack what it needs.

A function of a package is pickled by its name, and a worker without the package says no more than
"No module named 'sash'", at the end of a long trace.  So work travels in a parcel: a small function
that is sent as it is, looks for what is missing, says what to do, and only then unpickles the work.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

__all__ = ["parcel", "shipped"]

#: What a worker imports to do any work.
NEEDED = ("sash", "numpy", "numba", "pyarrow", "pandas", "google.protobuf")


def shipped(work: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that does the work, and is sent to workers in a parcel."""
    sent = _Sent(work)
    return lambda rows: sent(rows)  # Spark counts the arguments of functions


class _Sent:
    """Stands for the work on the driver, and becomes it where it is unpickled."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self._work = work

    def __call__(self, rows: Any) -> Any:
        return self._work(rows)

    def __reduce__(self) -> Any:
        return parcel(self._work)


def parcel(work: Any, *, call: bool = False) -> tuple[Any, tuple[Any, ...]]:
    """What `__reduce__` returns for the work, or with `call` for what it returns.

    It names the place of sash too: Spark starts one process beside the driver that does not know
    of `--py-files`.
    """
    packed = cloudpickle.dumps(work)  # type: ignore[no-untyped-call]
    version = sys.modules["sash"].__version__
    return _arrive, (str(Path(__file__).parents[2]), version, NEEDED, packed, call)


def _arrive(place: str, version: str, needed: tuple[str, ...], packed: bytes, call: bool) -> Any:
    """Unpickle the work, by a sash that can be found."""
    import pickle
    import sys
    from importlib import import_module
    from importlib.util import find_spec

    def there(name: str) -> bool:
        try:
            return find_spec(name) is not None
        except ModuleNotFoundError:  # what it would be in is not there
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
    import_module("sash.query")
    sash = sys.modules["sash"]
    try:
        if sash.__version__ != version:
            raise ImportError(f"this is version {version}, that one {sash.__version__}")
        work = pickle.loads(packed)
    except (AttributeError, ImportError) as error:
        if sash.__version__ == version and "sash" not in str(error):
            raise  # about something of the user's
        raise ImportError(
            f"the workers' sash, {sash.__file__}, is not the one of the driver ({error}); "
            "install the same on both"
        ) from None
    import_module("sash.spark.settling").settle()
    return work() if call else work


_arrive.__module__ = "__main__"  # so it is sent as it is, and not by its name in sash
