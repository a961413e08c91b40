"""The result of `explain`: how a query runs, why, and its cost, as data and as text."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

__all__ = [
    "Costs",
    "Counts",
    "Explanation",
    "Kept",
    "Partial",
    "Step",
    "Windows",
    "entry_lines",
    "plain",
]

_WIDTH = 100  # of a line, in characters
_INDENT = 13  # of the text after a label


@dataclass(frozen=True)
class Windows:
    """The windows: how many windows hold one event, how many slices the longest window has, the
    lengths of the slices in microseconds, the technique that cuts them, and a drawing.  A field is
    None if it depends on the events or on a calendar."""

    window: str
    kind: Literal["aligned", "driven", "merging"]
    per_event: int | None
    slices: int | None
    lengths: tuple[int, ...] | None
    slicing: Literal["panes", "pairs", "cutty"] | None
    words: tuple[str, ...]
    drawing: tuple[str, ...]


@dataclass(frozen=True)
class Partial:
    """Aggregates that run as one operator: how they run, the words and bytes of one partial of all
    of them (None for Python objects), and for each aggregate that shares another's partial, the
    other one's name."""

    names: tuple[str, ...]
    runs: Literal["compiled", "python", "ranges", "unknown"]
    words: int | None
    bytes: int | None
    shares: dict[str, str]
    ordered: tuple[str, ...]  # the aggregates that depend on the order of events
    why: str


@dataclass(frozen=True)
class Step:
    """A step of the algorithm, and why it is chosen."""

    what: str
    why: str


@dataclass(frozen=True)
class Kept:
    """The state: what an entry is, how many entries a key has, and the bytes of one entry and of
    all entries of a key.  A field is None if it depends on the events."""

    entry: str
    entries: int | None
    entry_bytes: int | None
    bytes: int | None
    words: str


@dataclass(frozen=True)
class Costs:
    """The expected combines for each event, for each entry of the state (such as a slice), and for
    each emitted row."""

    per_event: float
    per_entry: float
    per_row: float
    words: str

    def combines(self, counts: Counts) -> float:
        """The expected combines for these numbers of events, entries and rows."""
        return (
            self.per_event * counts.events
            + self.per_entry * counts.entries
            + self.per_row * counts.rows
        )


@dataclass(frozen=True)
class Counts:
    """The counts of a sample: its events, the entries (such as slices) that they make, the emitted
    rows, the combines of one partial, and the largest number of entries, and of bytes, in the state
    at one time."""

    events: int
    entries: int
    rows: int
    combines: float
    most_entries: int
    most_bytes: int


@dataclass(frozen=True)
class Explanation:
    """How a query runs, and why: the result of `Query.explain`, `Stream.explain` and
    `sash.spark.explain`.

    `str()` returns it in words, with a drawing; `to_dict()` returns it as data.

    >>> import pyarrow as pa, sash
    >>> q = sash.Query(
    ...     time="t", window=sash.sliding("6 min", "2 min"), select={"n": sash.count()}
    ... )
    >>> found = q.explain(pa.schema({"t": pa.timestamp("us")}))
    >>> found.windows.slices, found.windows.per_event, found.kept.entry_bytes
    (3, 3, 16)
    >>> found.warnings
    ()
    """

    query: str
    place: str
    windows: Windows
    partials: tuple[Partial, ...]
    steps: tuple[Step, ...]
    kept: Kept
    costs: Costs
    warnings: tuple[str, ...]
    expected: Counts | None = None
    measured: Counts | None = None
    taken: tuple[str, ...] = ()  # the steps that the sample took

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data: dicts, lists, text and numbers.

        >>> import sash
        >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
        >>> q.explain().to_dict()["windows"]["slices"]
        1
        """
        made = plain(dataclasses.asdict(self))
        assert isinstance(made, dict)
        return made

    def __str__(self) -> str:
        lines = [f"{self.query}", f"runs by {self.place}", ""]
        lines += entry_lines("windows", self.windows.words)
        lines += ["", *(f"{' ' * _INDENT}{line}" for line in self.windows.drawing), ""]
        for i, partial in enumerate(self.partials):
            lines += entry_lines("aggregates" if not i else "", _partial_words(partial))
        for i, step in enumerate(self.steps):
            lines += entry_lines("how" if not i else "", (f"{step.what}: {step.why}",))
        lines += entry_lines("state", (self.kept.words,))
        lines += entry_lines("combines", (self.costs.words,))
        for i, warning in enumerate(self.warnings):
            lines += entry_lines("warnings" if not i else "", (f"! {warning}",))
        if self.measured is not None:
            lines += ["", *self._measured()]
        return "\n".join(line.rstrip() for line in lines)

    def _measured(self) -> list[str]:
        """The table of expected and measured counts."""
        assert self.measured is not None
        assert self.expected is not None
        rows = [("", "expected", "measured")]
        for name, label in _LABELS.items():
            pair = (getattr(self.expected, name), getattr(self.measured, name))
            rows.append((label, f"{round(pair[0]):,}", f"{round(pair[1]):,}"))
        for label, per in (("combines an event", "events"), ("combines a row", "rows")):
            shares = [c.combines / max(getattr(c, per), 1) for c in (self.expected, self.measured)]
            rows.append((label, f"{shares[0]:,.2f}", f"{shares[1]:,.2f}"))
        wide = [max(len(row[i]) for row in rows) for i in range(3)]
        table = [
            f"{' ' * _INDENT}{a:<{wide[0]}}  {b:>{wide[1]}}  {c:>{wide[2]}}" for a, b, c in rows
        ]
        return [*entry_lines("sample", (f"it took: {', '.join(self.taken)}",)), *table]


_RUNS = {
    "compiled": "compiled",
    "python": "in Python",
    "ranges": "ranges of rows",
    "unknown": "not known yet",
}
_LABELS = {
    "events": "events",
    "entries": "entries made",
    "rows": "rows emitted",
    "combines": "combines",
    "most_entries": "most entries kept",
    "most_bytes": "most bytes kept",
}


def _partial_words(partial: Partial) -> tuple[str, ...]:
    size = "" if partial.bytes is None else f", {partial.bytes:,} bytes a partial"
    lines = [f"{', '.join(partial.names)}: {_RUNS[partial.runs]}{size}; {partial.why}"]
    lines += [f"{name} shares the partial of {owner}" for name, owner in partial.shares.items()]
    if partial.ordered:
        verb = "depend" if len(partial.ordered) > 1 else "depends"
        lines.append(f"{', '.join(partial.ordered)} {verb} on the order of events")
    return tuple(lines)


def entry_lines(label: str, texts: tuple[str, ...]) -> list[str]:
    """Texts after a label, broken into lines."""
    lines: list[str] = []
    for text in texts:
        at = ""
        for word in text.split():
            if at and _INDENT + len(at) + 1 + len(word) > _WIDTH:
                lines.append(at)
                at = f"  {word}"
            else:
                at = f"{at} {word}" if at else word
        lines.append(at)
    heads = [label, *[""] * (len(lines) - 1)]
    return [f"{head:<{_INDENT}}{line}" for head, line in zip(heads, lines, strict=True)]


def plain(value: Any) -> Any:
    """Convert the fields of a dataclass to dicts, lists, text and numbers."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value
