"""Writes docs/performance.md from the figures that are kept in benchmarks/figures.

    python tools/performance.py            write the page
    python tools/performance.py --check    say whether the page is up to date

`python -m benchmarks --save` and `python -m benchmarks.spark --save` keep figures.  A section of
the page answers one question; `performance_sections.py` says which workloads belong to it, and what
belongs to none comes at the end, so that nothing that was measured is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from benchmarks import figures as kept  # noqa: E402
from benchmarks.report import (  # noqa: E402
    Figure,
    amount,
    as_markdown,
    missed,
    ratio,
    rows,
    verdict,
)
from performance_sections import SECTIONS, SPARK_PARTS, TEXT, UNMEASURED, Part, Section  # noqa: E402

PAGE = ROOT / "docs" / "performance.md"


def page() -> str:
    """The whole page."""
    machines, figures, spark = _kept()
    head = [TEXT, *_measured(machines, figures, spark), *_bounds(figures, spark)]
    known = [part for section in SECTIONS for part in section.parts]
    others = [f for f in figures if not any(_matches(f, part) for part in known)]
    rest = Section("Other workloads", (Part("", tuple(f["name"] for f in others)),))
    shown = [_section(section, figures) for section in (*SECTIONS, *([rest] if others else []))]
    return "\n\n".join([*head, *filter(None, shown), *_spark(spark)]) + "\n"


def _kept() -> tuple[list[dict[str, str]], list[Figure], dict[str, Any]]:
    """The machines that the figures of workloads refer to, these, and the parts on Spark."""
    tables, spark = kept.load("tables-and-windows"), kept.load("spark")
    return (
        tables.get("machines", []),
        list(tables.get("figures", {}).values()),
        spark.get("parts", {}),
    )


def _measured(
    machines: Sequence[dict[str, str]], figures: Sequence[Figure], spark: dict[str, Any]
) -> list[str]:
    """Where figures come from: each machine with its commits, and the load meanwhile."""
    found: dict[str, dict[str, list[float]]] = {}
    each = [("tables, streams and windows", machines[f["machine"]], f) for f in figures]
    each += [("Spark", part["machine"], part) for part in spark.values()]
    for what, machine, of in each:
        said = ", ".join(f"{key} {value}" for key, value in machine.items())
        loads = found.setdefault(said, {}).setdefault(f"{what} at commit {of['commit']}", [])
        loads += of["load_average"] if "load_average" in of else [of["load"]]
    lines = [
        f"Measured on {machine}: "
        + "; ".join(
            f"{what}, load average {min(loads):.1f} to {max(loads):.1f}"
            for what, loads in commits.items()
        )
        + "."
        for machine, commits in found.items()
    ]
    return lines or ["No figures have been kept yet."]


def _bounds(figures: Sequence[Figure], spark: dict[str, Any]) -> list[str]:
    """How many bounds hold, and the list of those that do not."""
    every = [line for part in spark.values() for line in part["lines"] if line["most"] is not None]
    lines = [line for line in every if line["value"] is not None]
    unknown = [line for line in every if line["value"] is None]
    misses = [f"`{line.replace(':', '`:', 1)}" for line in missed(figures)]
    misses += [
        f"Spark: {line['name'].strip()}: {_number(line)}, wanted ≤ {line['most']:.3g}"
        for line in lines
        if line["value"] > line["most"]
    ]
    misses += [f"Spark: {line['name'].strip()}: {line['unit']}" for line in unknown]
    bounds = sum(len(figure["bounds"]) for figure in figures) + len(every)
    said = [f"{bounds - len(misses)} of {bounds} bounds hold."] if bounds else []
    if misses:
        said = [f"{said[0]} Missed:", "\n".join(f"- {line}" for line in misses)]
    return ["## Bounds that are missed", *said, UNMEASURED]


def _matches(figure: Figure, part: Part) -> bool:
    return any(fnmatchcase(figure["name"], name) for name in part.names)


def _section(section: Section, figures: Sequence[Figure]) -> str:
    """A section; empty if nothing of it was measured."""
    parts = [_part(part, figures) for part in section.parts]
    if not any(parts):
        return ""
    text = [section.text] if section.text else []
    return "\n\n".join([f"## {section.title}", *text, *filter(None, parts)])


def _part(part: Part, figures: Sequence[Figure]) -> str:
    """A part: workloads with one contender of ours in one table, each of the others in its own."""
    found = [_only(figure, part) for figure in figures if _matches(figure, part)]
    if not found:
        return ""
    lean = [f for f in found if len(f["ours"]) == 1 and not f["columns"]]
    lean = lean if len(lean) > 1 else []
    blocks = [f"### {part.title}"] if part.title else []
    blocks += [part.text] if part.text else []
    blocks += [as_markdown(_side_by_side(lean))] if lean else []
    for figure in found:
        if figure not in lean:
            blocks += [f"{figure['title'][0].upper()}{figure['title'][1:]}:"]
            blocks += [as_markdown(rows(figure))]
    return "\n\n".join(blocks)


def _only(figure: Figure, part: Part) -> Figure:
    """A figure with those peers alone that a part shows."""
    if part.peers is None:
        return figure
    peers = [peer for peer in figure["peers"] if peer in part.peers]
    bounds = [b for b in figure["bounds"] if b["peer"] is None or b["peer"] in part.peers]
    return {**figure, "peers": peers, "bounds": bounds}


def _side_by_side(figures: Sequence[Figure]) -> list[list[str]]:
    """A row for each workload.  Peers have a column each where workloads have the same ones."""
    alike = all(figure["peers"] == figures[0]["peers"] for figure in figures)
    heads = list(figures[0]["peers"]) if alike else ["beside"]
    units = {figure["unit"] for figure in figures}
    unit = f"per {units.pop()}" if len(units) == 1 else "takes"
    firsts = any(figure["first_call"] for figure in figures)
    table = [["", unit, *(["first call"] if firsts else []), *heads]]
    for figure in figures:
        ((name, _),) = figure["ours"].items()
        takes = f"{amount(figure, figure['best'][name])} {verdict(figure, name, None)}".rstrip()
        takes += f" per {figure['unit']}" if unit == "takes" else ""
        first = [amount(figure, figure["first_call"][name]) if figure["first_call"] else ""]
        cells = [
            f"{amount(figure, figure['best'][peer])}, {ratio(figure, name, peer)}"
            for peer in figure["peers"]
        ]
        if not alike:
            cells = ["; ".join(f"{p}: {cell}" for p, cell in zip(figure["peers"], cells))]
        table.append([figure["title"], takes, *(first if firsts else []), *cells])
    return table


def _spark(parts: dict[str, Any]) -> list[str]:
    """Spark's parts, a table each."""
    if not parts:
        return []
    blocks = [SPARK_PARTS[""]]
    for name, part in parts.items():
        head, lines = SPARK_PARTS.get(name, name), part["lines"]
        table = _crossed(lines) if all(line.get("cell") for line in lines) else _listed(lines)
        rough = " (Small sizes: rough.)" if part["quick"] else ""
        blocks += [f"### {head}", f"{part['title']}{rough}", as_markdown(table)]
    return blocks


def _listed(lines: Sequence[dict[str, Any]]) -> list[list[str]]:
    """A row for each line."""
    rows = [[line["name"].strip(), _number(line), _bound(line)] for line in lines]
    return [["", "measured", "bound"], *rows]


def _crossed(lines: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Lines by their rows and columns."""
    heads = list(dict.fromkeys(line["cell"][1] for line in lines))
    cells: dict[str, dict[str, str]] = {}
    for line in lines:
        row, column = line["cell"]
        bound = f" ({_bound(line)})" if line["most"] is not None else ""
        cells.setdefault(row, {})[column] = f"{_number(line)}{bound}"
    return [["", *heads], *([row, *(cells[row].get(head, "") for head in heads)] for row in cells)]


def _bound(line: dict[str, Any]) -> str:
    value, most = line["value"], line["most"]
    if most is None:
        return ""
    return f"≤ {most:.3g} {'PASS' if value is not None and value <= most else 'MISS'}"


def _number(line: dict[str, Any]) -> str:
    value = line["value"]
    if value is None:
        return str(line["unit"])
    return f"{f'{value:.2f}' if value >= 0.1 else f'{value:.2g}'} {line['unit']}".strip()


if __name__ == "__main__":
    text = page()
    if sys.argv[1:] == ["--check"]:
        same = PAGE.exists() and PAGE.read_text() == text
        print(f"{PAGE.name} is up to date" if same else f"{PAGE.name} differs: run this script")
        sys.exit(not same)
    PAGE.write_text(text)
