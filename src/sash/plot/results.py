"""Draw a query's results: a line for each key, and the corrections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..query.query import Query
from ..tables.arrow import as_arrow, flat, times_of
from ..tables.keys import key_codes
from ..windows import Aligned
from .look import COLORS, new_figure, plain_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..kernels.columns import Array

__all__ = ["KEYS", "results"]

#: The largest number of keys in a picture.
KEYS = len(COLORS)


def results(table: Any, query: Query, value: str | None = None, *, keys: int = KEYS) -> Figure:
    """Draw one value of a query's results over the ends of its windows, with a line for each of the
    largest keys, at most 8.

    The results come from `Query.run`, or are all rows that a live stream has emitted, in order.  A
    line ends where windows are missing, which hold no event.  For a live stream, a line shows each
    window's last revision, and a thin stroke goes from the first revision to the last.  `value`
    names the value to draw; the default is the first selected value that is a number.

    >>> import pyarrow as pa, sash
    >>> q = sash.Query(time="t", by=["k"], window=sash.tumbling(10), select={"n": sash.count()})
    >>> made = q.run(pa.table({"t": [1, 2, 15], "k": ["a", "b", "a"]}))
    >>> figure = sash.plot.results(made, q)
    >>> [line.get_label() for line in figure.axes[0].get_lines()]
    ['a', 'b']
    """
    if not isinstance(query, Query):
        raise TypeError(f"results are of a sash.Query, not {query!r}")
    if not 1 <= keys <= KEYS:
        raise ValueError(f"a picture shows 1 to {KEYS} keys, not {keys}")
    given = as_arrow(table)
    value = _value(given, query, value)
    rows = _Rows(given, query, value)
    figure = new_figure(9, 4.5)
    axes = figure.subplots()
    shown = rows.largest(keys)
    corrected = 0
    for key, color in zip(shown, COLORS, strict=False):
        corrected += _draw(axes, rows, key, color, query)
    plain_axes(axes)
    axes.set_ylabel(value)
    axes.yaxis.set_major_formatter(lambda number, _: f"{number:,.6g}")
    axes.set_xlabel("end of the window")
    if rows.dates:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    if query.by and shown:
        axes.legend(
            title=", ".join(query.by), frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0)
        )
    axes.set_title(_title(rows, query, len(shown), corrected), fontsize=11, loc="left")
    return figure


def _value(table: pa.Table, query: Query, value: str | None) -> str:
    """The name of the value to draw."""
    numbers = [
        name
        for name in query.select
        if name in table.column_names and _is_number(table.schema.field(name).type)
    ]
    if value is None and numbers:
        return numbers[0]
    if value in numbers:
        return value
    said = "none is a number" if value is None else f"{value!r} is no number among them"
    raise ValueError(
        f"these results have the values {', '.join(query.select)}, and {said}; draw one of: "
        f"{', '.join(numbers) or 'none'}"
    )


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


class _Rows:
    """The rows of results, by key and window, with the first and the last revision of each
    window."""

    def __init__(self, table: pa.Table, query: Query, value: str) -> None:
        for name in (*query.by, "window_start", "window_end"):
            if name not in table.column_names:
                raise ValueError(
                    f"these results have no column {name!r}; give those of query.run(table), or "
                    "what query.stream(…) emitted"
                )
        many = table.num_rows
        codes, found = key_codes([flat(table.column(name)) for name in query.by], many)
        self.names = [
            ", ".join("null" if part is None else str(part) for part in key)
            for key in zip(*(column.to_pylist() for column in found), strict=True)
        ] or ["all rows"]
        ends = flat(table.column("window_end"))
        self.dates = pa.types.is_timestamp(ends.type)
        starts, at = times_of(flat(table.column("window_start")))[0], times_of(ends)[0]
        numbers = pc.cast(flat(table.column(value)), pa.float64(), safe=False)
        values = numbers.to_numpy(zero_copy_only=False)
        revisions = np.zeros(many, dtype=np.int64)
        if "revision" in table.column_names:
            revisions = np.asarray(flat(table.column("revision")))
        # a driven window has a row for each event, so events of one time have separate rows
        single = np.arange(many) if "revision" not in table.column_names else np.zeros(many, int)
        order = np.lexsort((revisions, single, starts, codes))
        groups = np.stack([codes, starts, single])[:, order]
        heads = np.flatnonzero(np.append(True, (groups[:, 1:] != groups[:, :-1]).any(axis=0)))
        heads = heads[:many]
        lasts = np.append(heads[1:], many)[: len(heads)] - 1
        first, last = order[heads], order[lasts]
        if "deleted" in table.column_names:
            gone = np.asarray(flat(table.column("deleted")))[last]
            first, last = first[~gone], last[~gone]
        self.codes, self.ends = codes[last], at[last]
        self.first, self.last = values[first], values[last]
        self.revised = revisions[last] > 0

    def largest(self, keys: int) -> list[int]:
        """The numbers of the keys with the largest sums of absolute values, in the order of
        keys."""
        sizes = np.bincount(self.codes, np.abs(np.nan_to_num(self.last)), len(self.names))
        there = np.flatnonzero(np.bincount(self.codes, minlength=len(self.names)))
        order = there[np.argsort(-sizes[there], kind="stable")]
        return sorted(order[:keys].tolist())

    def times(self, at: Array) -> Array:
        """Times as matplotlib takes them."""
        return at.astype("datetime64[us]") if self.dates else at


def _gaps(ends: Array, query: Query) -> Array:
    """The rows before which windows are missing that hold no event of the key: a line across them
    would show values that do not exist."""
    if not isinstance(query.window, Aligned) or query.emit == "changes":
        return np.array([], dtype=np.int64)
    numbers = query.window.first(ends - 1)
    return np.flatnonzero(np.diff(numbers) > 1) + 1


def _draw(axes: Any, rows: _Rows, key: int, color: str, query: Query) -> int:
    """Draw a key's line; returns the number of its corrected windows."""
    own = np.flatnonzero(rows.codes == key)
    own = own[np.argsort(rows.ends[own], kind="stable")]
    at, last = rows.times(rows.ends[own]), rows.last[own]
    few = "o" if len(own) <= 60 else ""
    gaps = _gaps(rows.ends[own], query)
    x, y = np.insert(at, gaps, at[gaps]), np.insert(last, gaps, np.nan)
    axes.plot(x, y, color=color, label=rows.names[key], linewidth=1.4, marker=few, markersize=3)
    bounds = np.concatenate([[0], gaps, [len(own)]])
    alone = bounds[:-1][np.diff(bounds) == 1]  # windows without neighbours, which no line shows
    if len(alone) and not few:
        axes.plot(at[alone], last[alone], color=color, linestyle="", marker="o", markersize=2)
    revised = rows.revised[own]
    if revised.any():
        before = rows.first[own][revised]
        axes.vlines(at[revised], before, last[revised], color=color, linewidth=1, alpha=0.5)
        axes.scatter(
            at[revised], before, s=14, facecolors="none", edgecolors=color, linewidths=0.9, zorder=3
        )
    return int(revised.sum())


def _title(rows: _Rows, query: Query, shown: int, corrected: int) -> str:
    many = len(np.unique(rows.codes))
    said = [f"{query.window!r}"]
    if shown < many:
        said.append(f"the {shown} largest of {many:,} keys")
    if corrected:
        said.append(f"{corrected:,} windows corrected (○ as first emitted)")
    return "   ".join(said)
