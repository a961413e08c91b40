"""Measurements as a table for the eye, a Markdown table, and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .measure import Measured, Verdict

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
    verdicts = [(m.workload.name, v) for m in done for v in m.verdicts()]
    missed = [(name, v) for name, v in verdicts if not v.holds]
    lines = [f"{len(verdicts) - len(missed)} of {len(verdicts)} bounds hold"]
    for name, v in missed:
        against = f" of {v.bound.peer}" if v.bound.peer else ""
        lines.append(
            f"MISS {name}: {v.contender} takes {_value(v)}{against}, "
            f"wanted {v.bound.sign} {_limit(v)}"
        )
    return "\n".join(lines)


def _rows(measured: Measured) -> list[list[str]]:
    """The table's head and rows: ours with ratios to each peer, then the peers."""
    work = measured.workload
    # Contenders that each have a peer of their own share one column for the ratio to it.
    own = any(bound.peer for c in work.ours.values() for bound in c.bounds) and all(
        len({b.peer for b in c.bounds}) == 1 for c in work.ours.values()
    )
    heads = ["to its peer"] if own else [f"to {peer}" for peer in work.peers]
    absolute = any(bound.peer is None for c in work.ours.values() for bound in c.bounds)
    firsts = ["first call"] if measured.first else []
    rows = [["", f"per {work.unit}", *firsts, *heads, *(["bound"] if absolute else [])]]
    verdicts: dict[tuple[str, str | None], Verdict] = {
        (v.contender, v.bound.peer): v for v in measured.verdicts()
    }
    for name, contender in work.ours.items():
        peers = [contender.bounds[0].peer] if own else list(work.peers)
        cells = [_ratio(measured, name, str(p), verdicts.get((name, p))) for p in peers]
        if absolute:
            cells.append(_verdict(verdicts.get((name, None))))
        rows.append([name, _time(measured.best(name)), *_first(measured, name), *cells])
    for name in work.peers:
        cells = [_time(measured.best(name)), *_first(measured, name)]
        rows.append([name, *cells, *[""] * (len(rows[0]) - 1 - len(cells))])
    return rows


def _notes(measured: Measured) -> list[str]:
    missing = measured.workload.missing
    return [f"  not in sash.aggregators, so left out: {', '.join(missing)}"] if missing else []


def _ratio(measured: Measured, name: str, peer: str, verdict: Verdict | None) -> str:
    ratio = f"{measured.ratio(name, peer):.2f}"
    return f"{ratio} {_verdict(verdict)}" if verdict else ratio


def _verdict(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    said = "PASS" if verdict.holds else "MISS"
    return f"({verdict.bound.sign} {_limit(verdict)} {said})"


def _limit(verdict: Verdict) -> str:
    return f"{verdict.bound.limit:g}" if verdict.bound.peer else _time(verdict.bound.limit)


def _value(verdict: Verdict) -> str:
    return f"{verdict.value:.3f}" if verdict.bound.peer else _time(verdict.value)


def _first(measured: Measured, name: str) -> list[str]:
    if not measured.first:
        return []
    return [_time(measured.first[name]) if name in measured.first else ""]


def _time(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.2f} {unit}"
    return f"{seconds / 1e-9:.1f} ns"
