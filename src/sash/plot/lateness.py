"""Draw the cost of each allowed lateness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..tables.arrow import as_arrow
from .look import COLORS, duration_ticks, new_figure, plain_axes, short_duration

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..kernels.columns import Array

__all__ = ["lateness"]

_COLUMNS = ("allowance", "rows", "late", "partly_late", "kept")


def lateness(found: Any) -> Figure:
    """Draw the table of `sash.lateness`.  The upper chart shows the share of rows that would miss
    some or all of their windows at each allowed lateness, the lower chart how much the stream would
    keep.

    >>> import pyarrow as pa, sash
    >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
    >>> came = pa.table({"t": [1, 12, 8, 25, 3, 31]})
    >>> figure = sash.plot.lateness(sash.lateness(came, q))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['rows, %', 'kept at most']
    """
    table = as_arrow(found)
    missing = [name for name in _COLUMNS if name not in table.column_names]
    if missing:
        raise ValueError(
            f"this table has no column {missing[0]!r}; give what sash.lateness(…) returns"
        )
    allowed, rows, late, partly, kept = (_numbers(table, name) for name in _COLUMNS)
    if not len(allowed):
        raise ValueError("the table has no allowance to draw; give at least one")
    allowed = allowed / 1e6
    share = 100 / max(1, int(rows[0]))
    figure = new_figure(7.5, 5)
    above, below = figure.subplots(2, sharex=True, height_ratios=[3, 2])
    above.fill_between(allowed, 0, late * share, color=COLORS[1], alpha=0.85, linewidth=0)
    above.fill_between(
        allowed, late * share, (late + partly) * share, color=COLORS[5], alpha=0.6, linewidth=0
    )
    above.plot(allowed, (late + partly) * share, color=COLORS[1], marker="o", markersize=3.5)
    _name_areas(above, late, partly)
    above.set_ylabel("rows, %")
    above.set_ylim(0, max(1e-9, float((late + partly).max()) * share * 1.12))
    below.plot(allowed, kept, color=COLORS[0], marker="o", markersize=3.5)
    below.fill_between(allowed, 0, kept, color=COLORS[0], alpha=0.15, linewidth=0)
    below.set_ylabel("kept at most")
    below.set_ylim(0, max(1, int(kept.max())) * 1.12)
    below.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    below.set_xlabel("allowed lateness")
    _time_axis(below, allowed)
    for axes in (above, below):
        plain_axes(axes)
    said = _headline(allowed, (late + partly) * share, int(rows[0]))
    above.set_title(said, fontsize=11, loc="left")
    return figure


def _numbers(table: pa.Table, name: str) -> Array:
    column = table.column(name).combine_chunks()
    if pa.types.is_duration(column.type):
        column = column.cast(pa.duration("us"))
    return np.asarray(column.cast(pa.int64()))


def _name_areas(axes: Any, late: Array, partly: Array) -> None:
    """Label the coloured areas that exist."""
    from matplotlib.patches import Patch

    named = [
        Patch(color=color, alpha=alpha, label=label)
        for there, color, alpha, label in (
            (partly.any(), COLORS[5], 0.6, "miss some windows"),
            (late.any(), COLORS[1], 0.85, "miss all windows"),
        )
        if there
    ]
    if named:
        axes.legend(handles=named, frameon=False, loc="upper right")


def _time_axis(axes: Any, allowed: Array) -> None:
    """Set a logarithmic time axis, with 0 at the left."""
    positive = allowed[allowed > 0]
    if not len(positive):
        axes.set_xticks([0], ["0"])
        return
    axes.set_xscale("symlog", linthresh=float(positive.min()), linscale=0.4)
    ticks = [0.0, *duration_ticks(float(positive.min()), float(positive.max()))]
    if len(ticks) < 3:
        ticks = [0.0, *np.unique(positive[[0, -1]]).tolist()]
    axes.set_xticks(ticks, [short_duration(t) for t in ticks])
    axes.minorticks_off()
    axes.set_xlim(-0.08 * float(positive.min()), float(positive.max()) * 1.15)


def _headline(allowed: Array, missing: Array, rows: int) -> str:
    """The headline: the cost of not waiting, and two better choices."""
    if not missing[0] > 0:
        return f"no row of {rows:,} would miss a window, even if the stream waits for none"
    said = f"{missing[0]:.3g} % of {rows:,} rows would miss windows if the stream waited for none"
    ways: dict[float, str] = {}
    for most, text in ((0.1, "{} loses at most 0.1 %"), (0.0, "{} loses none")):
        enough = np.flatnonzero(missing <= most)
        if len(enough):
            at = float(allowed[enough[0]])
            ways[at] = text.format(short_duration(at))
    return "\n".join([said, *([";  ".join(ways.values())] if ways else [])])
