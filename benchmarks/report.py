"""Measurements as plain data, and plain data as a table for the eye and as Markdown.

A *figure* is the plain data of one workload, as JSON keeps it: whatever shows figures shows those
of this run and those of a file alike.  Times are seconds a unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .measure import Measured

__all__ = ["Figure", "as_figure", "as_markdown", "as_text", "missed", "rows", "summary"]

Figure = dict[str, Any]


def as_figure(measured: Measured) -> Figure:
    """One workload as plain data."""
    work = measured.workload
    return {
        "name": work.name,
        "title": work.title,
        "unit": work.unit,
        "measure": work.measure,
        "ours": {name: contender.peer for name, contender in work.ours.items()},
        "peers": list(work.peers),
        "missing": list(work.missing),
        "best": {name: min(times) for name, times in measured.times.items()},
        "times": measured.times,
        "columns": {name: dict(zip(work.columns, of)) for name, of in measured.columns.items()},
        "first_call": measured.first,
        "bounds": [
            {
                "contender": v.contender,
                "peer": v.bound.peer,
                "sign": v.bound.sign,
                "limit": v.bound.limit,
                "value": v.value,
                "holds": v.holds,
            }
            for v in measured.verdicts()
        ],
    }


def as_text(figure: Figure) -> str:
    """One workload's table, aligned."""
    table = rows(figure)
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    lines = [f"{figure['name']}: {figure['title']}"]
    for name, *cells in table:
        aligned = [cell.rjust(width) for cell, width in zip(cells, widths[1:])]
        lines.append("  " + "   ".join([name.ljust(widths[0]), *aligned]).rstrip())
    return "\n".join([*lines, *_notes(figure)])


def as_markdown(table: Sequence[Sequence[str]]) -> str:
    """A table's head and rows in Markdown."""
    head, *others = table
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in others)])


def missed(figures: Sequence[Figure]) -> list[str]:
    """A sentence on each bound that does not hold."""
    lines = []
    for figure in figures:
        for bound in figure["bounds"]:
            if not bound["holds"]:
                against = f" of {bound['peer']}" if bound["peer"] else ""
                lines.append(
                    f"{figure['name']}: {bound['contender']} takes {value(figure, bound)}{against},"
                    f" wanted {bound['sign']} {_limit(figure, bound)}"
                )
    return lines


def summary(figures: Sequence[Figure]) -> str:
    """How many bounds hold, and which do not."""
    bounds = [bound for figure in figures for bound in figure["bounds"]]
    held = sum(bound["holds"] for bound in bounds)
    lines = [f"{held} of {len(bounds)} bounds hold"]
    return "\n".join([*lines, *(f"MISS {line}" for line in missed(figures))])


def rows(figure: Figure) -> list[list[str]]:
    """The table's head and rows: ours with ratios to each peer, then the peers."""
    # Contenders that each have a peer of their own share one column for the ratio to it.
    own = all(figure["ours"].values())
    peers, first = figure["peers"], figure["first_call"]
    heads = ["to its peer"] if own else [f"to {peer}" for peer in peers]
    absolute = any(bound["peer"] is None for bound in figure["bounds"])
    firsts = ["first call"] if first else []
    values = next(iter(figure["columns"].values()), {f"per {figure['unit']}": 0.0})
    table = [["", *values, *firsts, *heads, *(["bound"] if absolute else [])]]
    for name, peer in figure["ours"].items():
        cells = [ratio(figure, name, each) for each in ([peer] if own else peers)]
        if absolute:
            cells.append(verdict(figure, name, None))
        table.append([name, *_values(figure, name), *_first(figure, name), *cells])
    for name in peers:
        cells = [*_values(figure, name), *_first(figure, name)]
        table.append([name, *cells, *[""] * (len(table[0]) - 1 - len(cells))])
    return table


def ratio(figure: Figure, name: str, peer: str) -> str:
    """What a contender takes to a peer, and the verdict if there is a bound."""
    best = figure["best"]
    found = best[name] / best[peer]
    return f"{found:.{2 if found >= 0.1 else 3}f} {verdict(figure, name, peer)}".rstrip()


def verdict(figure: Figure, name: str, peer: str | None) -> str:
    """The bound of a contender and whether it holds; empty if there is none."""
    for bound in figure["bounds"]:
        if (bound["contender"], bound["peer"]) == (name, peer):
            said = "PASS" if bound["holds"] else "MISS"
            return f"({bound['sign']} {_limit(figure, bound)} {said})"
    return ""


def value(figure: Figure, bound: dict[str, Any]) -> str:
    """What was measured against a bound."""
    return f"{bound['value']:.3f}" if bound["peer"] else amount(figure, bound["value"])


def amount(figure: Figure, value: float) -> str:
    """A time or a number of bytes in the unit that suits it, or a plain number."""
    return {"seconds": _time, "bytes": _bytes, "number": "{:.3g}".format}[figure["measure"]](value)


def _limit(figure: Figure, bound: dict[str, Any]) -> str:
    return f"{bound['limit']:.3g}" if bound["peer"] else amount(figure, bound["limit"])


def _notes(figure: Figure) -> list[str]:
    missing = figure["missing"]
    return [f"  not in sash.aggregators, so left out: {', '.join(missing)}"] if missing else []


def _values(figure: Figure, name: str) -> list[str]:
    values = figure["columns"].get(name, {"": figure["best"][name]}).values()
    return [amount(figure, each) for each in values]


def _first(figure: Figure, name: str) -> list[str]:
    first = figure["first_call"]
    return [_time(first[name]) if name in first else ""] if first else []


def _bytes(value: float) -> str:
    return f"{value / 1e6:.1f} MB" if value >= 1e5 else f"{value:.1f} bytes"


def _time(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.2f} {unit}"
    return f"{seconds / 1e-9:.1f} ns"
