"""Checks that the packages that `sash.spark` needs are installed."""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["check_packages"]

_NEEDED = ("pyspark", "pandas", "google.protobuf")
_OLDEST = (4, 1)


def check_packages() -> None:
    """Raise if a package is missing, or is too old."""
    missing = [name for name in _NEEDED if not _is_there(name)]
    if missing:
        raise ModuleNotFoundError(
            f"sash on Spark needs {', '.join(missing)}, which this Python does not have: pip "
            "install 'sash[spark]'"
        )
    import pyspark

    if tuple(int(part) for part in pyspark.__version__.split(".")[:2]) < _OLDEST:
        raise ImportError(
            f"sash needs PySpark {_OLDEST[0]}.{_OLDEST[1]} or newer, and this is "
            f"{pyspark.__version__}: pip install 'sash[spark]'"
        )


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False
