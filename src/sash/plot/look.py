"""The common parts of the pictures: figures, colours, axes of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLORS", "duration_ticks", "new_figure", "plain_axes", "short_duration"]

#: Colours that people with any colour vision can tell apart (Okabe and Ito), dark ones first.
COLORS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#e69f00",
    "#000000",
    "#a6761d",
)

_UNITS = (("day", 86_400), ("h", 3_600), ("min", 60), ("s", 1), ("ms", 1e-3), ("µs", 1e-6))
_NICE = (
    *(k * 10**p for p in range(-6, 0) for k in (1, 2, 5)),
    *(1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 43_200),
    *(k * 86_400 * 10**p for p in range(5) for k in (1, 2, 5)),
)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "pictures are drawn by matplotlib, which is not installed: pip install 'sash[plots]'"
        ) from None
    return Figure(figsize=(width, height), dpi=120, layout="constrained")


def plain_axes(axes: Any) -> None:
    """Remove lines and ticks that carry no information."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e7eb", linewidth=0.8)
    axes.set_axisbelow(True)


def short_duration(seconds: float) -> str:
    """A length of time in few characters.

    >>> [short_duration(s) for s in (0, 0.25, 90, 7200, 86_400 * 3)]
    ['0', '250 ms', '1.5 min', '2 h', '3 days']
    """
    for unit, size in _UNITS:
        if seconds >= size:
            shown = f"{seconds / size:.3g}"
            return f"{shown} {unit}{'s' if unit == 'day' and shown != '1' else ''}"
    return "0"


def duration_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Lengths of time between two, as people write them, at most so many.

    >>> duration_ticks(20, 4000)
    [30, 60, 120, 300, 600, 1800, 3600]
    """
    within = [t for t in _NICE if low <= t <= high]
    return within[:: -(-len(within) // most)] if within else []
