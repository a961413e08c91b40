"""Measurements as a table for the eye, a Markdown table, and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .measure import Measured, Verdict
from .workload import Workload

__all__ = ["as_json", "as_markdown", "as_text", "summary"]


def as_text(measured: Measured) -> str:
    """One workload's table, aligned."""
    rows = _rows(measured)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [f"{measured.workload.name}: {measured.workload.title}"]
    for name, *cells in rows:
        aligned = [cell.rjust(width) for cell, width in zip(cells, widths[1:])]
        lines.append("  " + "   ".join([name.ljust(widths[0]), *aligned]).rstrip())
    lines += _notes(measured)
    return "\n".join(lines)


def as_markdown(machine: dict[str, str], done: Sequence[Measured]) -> str:
    """The whole run as Markdown."""
    lines = [", ".join(f"{key} {value}" for key, value in machine.items()) + ".", ""]
    for measured in done:
        head, *rows = _rows(measured)
        lines += [f"### {measured.workload.title}", ""]
        lines += ["| " + " | ".join(head) + " |"]
        lines += ["|---" + "|---:" * (len(head) - 1) + "|"]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
        lines += ["", *_notes(measured)] if _notes(measured) else []
        lines += [""]
    return "\n".join([*lines, summary(done), ""])


def as_json(machine: dict[str, str], settings: dict[str, Any], done: Sequence[Measured]) -> Any:
    """The whole run as plain data; times are seconds a unit."""
    return {
        "machine": machine,
        "settings": settings,
        "workloads": [
            {
                "name": m.workload.name,
                "title": m.workload.title,
                "unit": m.workload.unit,
                "ours": list(m.workload.ours),
                "peers": list(m.workload.peers),
                "missing": list(m.workload.missing),
                "times": m.times,
                "columns": {
                    name: dict(zip(m.workload.columns, m.columns[name])) for name in m.columns
                },
                "first_call": m.first,
                "bounds": [
                    {
                        "contender": v.contender,
                        "peer": v.bound.peer,
                        "sign": v.bound.sign,
                        "limit": v.bound.limit,
                        "value": v.value,
                        "holds": v.holds,
                    }
                    for v in m.verdicts()
                ],
            }
            for m in done
        ],
    }


def summary(done: Sequence[Measured]) -> str:
    """How many bounds hold, and which do not."""
    verdicts = [(m.workload, v) for m in done for v in m.verdicts()]
    missed = [(work, v) for work, v in verdicts if not v.holds]
    lines = [f"{len(verdicts) - len(missed)} of {len(verdicts)} bounds hold"]
    for work, v in missed:
        name = work.name
        against = f" of {v.bound.peer}" if v.bound.peer else ""
        lines.append(
            f"MISS {name}: {v.contender} takes {_value(work, v)}{against}, "
            f"wanted {v.bound.sign} {_limit(work, v)}"
        )
    return "\n".join(lines)


def _rows(measured: Measured) -> list[list[str]]:
    """The table's head and rows: ours with ratios to each peer, then the peers."""
    work = measured.workload
    # Contenders that each have a peer of their own share one column for the ratio to it.
    own = all(c.peer for c in work.ours.values())
    heads = ["to its peer"] if own else [f"to {peer}" for peer in work.peers]
    absolute = any(bound.peer is None for c in work.ours.values() for bound in c.bounds)
    firsts = ["first call"] if measured.first else []
    values = list(work.columns or [f"per {work.unit}"])
    rows = [["", *values, *firsts, *heads, *(["bound"] if absolute else [])]]
    verdicts: dict[tuple[str, str | None], Verdict] = {
        (v.contender, v.bound.peer): v for v in measured.verdicts()
    }
    for name, contender in work.ours.items():
        peers = [contender.peer] if own else list(work.peers)
        cells = [_ratio(measured, name, str(p), verdicts.get((name, p))) for p in peers]
        if absolute:
            cells.append(_verdict(work, verdicts.get((name, None))))
        rows.append([name, *_values(measured, name), *_first(measured, name), *cells])
    for name in work.peers:
        cells = [*_values(measured, name), *_first(measured, name)]
        rows.append([name, *cells, *[""] * (len(rows[0]) - 1 - len(cells))])
    return rows


def _notes(measured: Measured) -> list[str]:
    missing = measured.workload.missing
    return [f"  not in sash.aggregators, so left out: {', '.join(missing)}"] if missing else []


def _values(measured: Measured, name: str) -> list[str]:
    values = measured.columns.get(name, [measured.best(name)])
    return [_amount(measured.workload, value) for value in values]


def _ratio(measured: Measured, name: str, peer: str, verdict: Verdict | None) -> str:
    ratio = f"{measured.ratio(name, peer):.2f}"
    return f"{ratio} {_verdict(measured.workload, verdict)}" if verdict else ratio


def _verdict(work: Workload, verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    said = "PASS" if verdict.holds else "MISS"
    return f"({verdict.bound.sign} {_limit(work, verdict)} {said})"


def _limit(work: Workload, verdict: Verdict) -> str:
    limit = verdict.bound.limit
    return f"{limit:.3g}" if verdict.bound.peer else _amount(work, limit)


def _value(work: Workload, verdict: Verdict) -> str:
    return f"{verdict.value:.3f}" if verdict.bound.peer else _amount(work, verdict.value)


def _first(measured: Measured, name: str) -> list[str]:
    if not measured.first:
        return []
    return [_time(measured.first[name]) if name in measured.first else ""]


def _amount(work: Workload, value: float) -> str:
    return f"{value:.1f} bytes" if work.in_bytes else _time(value)


def _time(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.2f} {unit}"
    return f"{seconds / 1e-9:.1f} ns"
