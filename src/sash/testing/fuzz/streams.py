"""Compare random queries over streams with brute force.

A case has rows, their batches, and the source text of a query.  The stream's state is in memory or
in a store, and the case restores the stream from its bytes after some batches.
"""

from __future__ import annotations

import math
import pprint
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pyarrow as pa

import sash

from ...engine.stream import Stream
from ...query import Query
from ..queries import answers, differences, replay, rows_of
from ..stored import STATES, open_stream
from .cases import Case
from .shrink import smallest

__all__ = ["SELECTS", "StreamCase"]

Row = dict[str, Any]

#: The difference between the two latest values: a user's operator that does not commute.
_step_up = sash.operator(
    identity=(0, 0, 0),
    lift=lambda x: (1, 0, x),
    combine=lambda a, b: a if b[0] == 0 else b if b[0] > 1 else (min(a[0] + 1, 2), a[2], b[2]),
    lower=lambda a: a[2] - a[1],
    name="step_up",
)

#: Sets of aggregates: words, words in order, objects.
SELECTS: dict[str, dict[str, sash.Aggregate]] = {
    "numbers": {
        "many": sash.count(),
        "total": sash.sum("i"),
        "most": sash.max("x"),
        "mean": sash.mean("x"),
    },
    "in order": {
        "first": sash.first("x"),
        "last": sash.last("n"),
        "own": sash.aggregate(_step_up, "n"),
    },
    "objects": {
        "all": sash.collect("s"),
        "who": sash.arg_max("s", by="x"),
        "least": sash.min("s"),
    },
}

_SCHEMA = pa.schema(
    {
        "t": pa.timestamp("us", "UTC"),
        "n": pa.int64(),
        "k": pa.string(),
        "x": pa.float64(),
        "i": pa.int64(),
        "s": pa.string(),
        "b": pa.bool_(),
    }
)
_HOUR = 3_600_000_000
#: Sizes and slides of calendar windows, for short and for long streams; and time zones with clock
#: changes of every kind since 2023, when many streams begin.
_DAYS = ("'1 day', '1 day'", "'7 days', '2 days'", "'1 week', '1 week'", "'1 month', '1 day'")
_MONTHS = ("'1 month', '1 month'", "'1 quarter', '1 month'", "'2 months', '2 weeks'")
_ZONES = ("America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "America/Havana")
_FLOATS = (0.0, -0.0, 1.0, 1.0, 2.5, -0.25, 24.0, math.nan, math.inf, -math.inf, None)
_INTEGERS = (0, 1, 1, 2, -1, -7, 40, 2**40, None)
_TEXT = ("", "x", "x", "yy", "é", None)
_MARKS = (True, False, False, None)
_KEYS = ("a", "b", "b", "c", None)


@dataclass(frozen=True)
class StreamCase(Case):
    """A stream of rows, cut into batches."""

    window: str
    select: str
    rows: tuple[Row, ...]
    cuts: tuple[int, ...]  # the number of rows of each batch
    by: tuple[str, ...] = ("k",)
    lateness: int = 0
    mode: str = "final"
    emit: str = "all"
    state: str = "memory"
    restored: tuple[int, ...] = ()  # batches after which the stream is restored from its bytes
    over: tuple[int | None, ...] = ()  # more window sizes in each row, None for a lifetime

    @classmethod
    def draw(cls, source: Random) -> StreamCase:
        count = round(2 ** source.uniform(0, 6.5))
        unit = source.choice((1, 1000, 1_000_000, _HOUR))
        span = unit * source.choice((1, 4, count, 10 * count, 1000 * count))
        rows = []
        now = source.choice((0, -span, 1_700_000_000_000_000))
        back = source.choice((0, span // 8 + 1, span))
        for n in range(count):
            now += round(2 * span / count * source.random())
            t: int | None = now - source.randint(0, back)
            if source.random() < 0.01:
                t = source.choice((None, 2**62, -(2**62)))
            pools = {"k": _KEYS, "x": _FLOATS, "i": _INTEGERS, "s": _TEXT, "b": _MARKS}
            rows.append({"t": t, "n": n} | {c: source.choice(p) for c, p in pools.items()})
        most = source.choice((1, 3, 10, count))
        cuts: list[int] = []
        while sum(cuts) < count:
            cuts.append(source.randint(0 if most > 1 else 1, most))
        restored = [i for i in range(len(cuts)) if source.random() < 0.1]
        case = cls(
            window=_window(source, span, unit),
            select=source.choice(list(SELECTS)),
            rows=tuple(rows),
            cuts=tuple(cuts),
            by=source.choice((("k",), ("k",), (), ("k", "i"))),
            lateness=source.choice((0, unit, span // 4, 2 * span)),
            mode=source.choice(("final", "live")),
            restored=tuple(restored),
        )
        if source.random() < 0.5:
            window, lives = _window_of_events(source, span)
            over = _sizes(source, window, span)
            mode, state = case.mode if lives else "final", source.choice(STATES)
            return replace(case, window=window, mode=mode, over=over, state=state)
        case = replace(case, state=source.choice(STATES))
        if case.mode == "live":
            return case
        if source.random() < 0.3:
            idle = source.choice((1, span // 20 + 1, span))
            return replace(case, window=f"{case.window[:-1]}, empty='zero', idle={idle})")
        return replace(case, emit=source.choice(("all", "all", "changes")))

    @property
    def operations(self) -> int:
        return len(self.rows)

    @property
    def query(self) -> Query:
        """The query, from its text."""
        select = dict(SELECTS[self.select])
        for size in self.over:
            given = sash.lifetime() if size is None else size
            select |= {f"{n} {size}": a.over(given) for n, a in SELECTS[self.select].items()}
        return sash.Query(
            time="t",
            by=list(self.by),
            window=eval(self.window, {"sash": sash}),
            select=select,
            emit=self.emit,  # type: ignore[arg-type]
        )

    def batches(self) -> list[pa.Table]:
        """The rows, cut."""
        table = pa.Table.from_pylist(list(self.rows), schema=_SCHEMA)
        ends = [sum(self.cuts[: i + 1]) for i in range(len(self.cuts))]
        return [table.slice(end - n, n) for end, n in zip(ends, self.cuts, strict=True)]

    def problem(self) -> str | None:
        try:
            return self._stream_problem() or self._run_problem()
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def _stream_problem(self) -> str | None:
        query, batches = self.query, self.batches()
        rows, late = replay(query, batches, self.lateness)
        s: Any = open_stream(self.state, query, lateness=self.lateness, mode=self.mode)
        emitted: list[Row] = []
        for i, batch in enumerate(batches):
            closed = s.watermark
            made = rows_of(s.push(batch))
            if self.mode == "final" and closed is not None:
                overdue = [row for row in made if self._was_due(query, row, closed)]
                if overdue:
                    return f"{overdue[0]} was due before batch {i}, at {closed}"
            emitted += made
            s._check()
            if i in self.restored and self.state == "memory":
                s = Stream.from_bytes(s.to_bytes(), query)
        emitted += rows_of(s.close())
        last: dict[Any, Row] = {}
        driven = isinstance(query.window, sash.windows.Driven)
        for row in emitted:
            key = (*(repr(row[k]) for k in query.by), row["window_start"], row["window_end"])
            if driven:
                key = (row["n"],)
            elif isinstance(query.window, sash.windows.Session):
                # the start identifies a session; but with gaps in a column and a greatest size,
                # nothing identifies it
                key = (len(last),) if query.window.cuts_peers else key[:-1]
            wanted = last[key]["revision"] + 1 if key in last else 0
            if self.mode == "live" and row["revision"] != wanted:
                return f"revision {row['revision']} of {key} where {wanted} is right"
            if self.mode == "final" and key in last:
                return f"window {key} was emitted twice"
            last[key] = row
        made = [row for row in last.values() if not row.get("deleted")]
        if driven:
            made, rows = (sorted(part, key=lambda row: row["n"]) for part in (made, rows))
        wrong = differences(query, rows, made, ordered=driven)
        if wrong:
            return "; ".join(wrong)
        aligned = query.window.kind == "aligned"  # elsewhere, a late event misses at most one
        found = [(row["n"], row["missed"] * aligned) for row in rows_of(s.late)]
        right = [(row["n"], len(missed)) for row, missed in late]
        if found != right:
            return f"late rows and windows missed are {found} where {right} is right"
        counts = s.counts
        if counts["rows"] != counts["counted"] + counts["late"] or counts["rows"] != len(self.rows):
            return f"counts are {counts} of {len(self.rows)} rows"
        return None

    def _was_due(self, query: Query, row: Row, watermark: int) -> bool:
        """True if a stream had to emit a row by this watermark.  A stream emits the windows that
        fill a gap only with the row that ends the gap."""
        window = query.window
        if isinstance(window, sash.windows.Driven):
            return bool(row["t"] < watermark)
        if isinstance(window, sash.windows.Session):
            return bool(row["window_end"] < watermark)
        if not isinstance(window, sash.windows.Aligned) or window.empty:
            return False
        return bool(row["window_end"] <= watermark)

    def _run_problem(self) -> str | None:
        query = self.query
        usable = [r for r in self.rows if r["t"] is not None and abs(r["t"]) < 2**60]
        table = pa.Table.from_pylist(usable, schema=_SCHEMA)
        wrong = differences(query, answers(query, table), query.run(table))
        return "run: " + "; ".join(wrong) if wrong else None

    def smaller(self, fails: Callable[[StreamCase], bool]) -> StreamCase:
        case: StreamCase = self
        simpler: tuple[dict[str, Any], ...] = (
            {"restored": ()},
            {"by": ()},
            {"cuts": (len(self.rows),), "restored": ()},
            {"mode": "final"},
            {"state": "memory"},
            {"over": ()},
        )
        for change in simpler:
            tried = replace(case, **change)
            if fails(tried):
                case = tried
        # each row with the number of its batch
        numbered = [(i, row) for i, row in zip(case._batch_of_rows(), case.rows, strict=True)]
        kept = smallest(numbered, lambda rows: fails(case._with(rows)))
        case = case._with(kept)
        plain = {"x": 1.0, "i": 1, "s": "x", "k": "a"}
        for at in range(len(case.rows)):
            for name, value in plain.items():
                row = {**case.rows[at], name: value}
                tried = replace(case, rows=(*case.rows[:at], row, *case.rows[at + 1 :]))
                if fails(tried):
                    case = tried
        return case

    def _batch_of_rows(self) -> list[int]:
        return [i for i, n in enumerate(self.cuts) for _ in range(n)][: len(self.rows)]

    def _with(self, numbered: list[tuple[int, Row]]) -> StreamCase:
        cuts = [0] * len(self.cuts)
        for i, _ in numbered:
            cuts[i] += 1
        return replace(self, rows=tuple(row for _, row in numbered), cuts=tuple(cuts))

    def as_test(self) -> str:
        rows = pprint.pformat(list(self.rows), width=96, sort_dicts=False).replace("\n", "\n    ")
        names = ("by", "lateness", "mode", "emit", "state", "restored", "over")
        more = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return (
            "def test_found_by_fuzzing() -> None:\n"
            "    from math import inf, nan\n\n"
            "    from sash.testing.fuzz import StreamCase\n\n"
            f"    rows = {rows}\n"
            f"    case = StreamCase(\n        {self.window!r}, {self.select!r}, tuple(rows), "
            f"{self.cuts!r},\n        {more},\n    )\n"
            "    assert case.problem() is None\n"
        )


def _window_of_events(source: Random, span: int) -> tuple[str, bool]:
    """Draw a driven window or a session, and whether it can be live."""
    size = max(span // source.choice((1, 3, 20, 60)), 1)
    if source.random() < 0.25:
        longest = source.choice(("", "", f", max_size={3 * size}"))
        gap = source.choice((size, size, "'i'"))
        return f"sash.session({gap}{longest})", not (longest and gap == "'i'")
    if source.random() < 0.4:
        more = source.choice(
            ("", "", ", closed='left'", f", delay={size}", ", exclude='row'", ", exclude='ties'")
        )
        live = "row" not in more and "ties" not in more
        if source.random() < 0.3:
            return f"sash.lifetime({more[2:]})", False
        return f"sash.trailing({size}{more})", live
    many = source.choice((1, 2, 3, 7))
    column = source.choice(("'x', 2.5", "'i', 2"))
    measures = (f"{size}", f"sash.rows({many})", f"sash.delta({column})", "sash.punctuated('b')")
    if source.random() < 0.15:
        # each policy compiles its own kernel, so the choice is small
        rules = ("at_most(3)", "since_maximum('x')", "at_most_span(1000, 't')")
        return f"sash.policies.{source.choice(rules)}", False
    keep = source.choice(measures)
    # with this shortest tick, there are not many more ticks than rows
    every = source.choice((f"{max(span // 20, 1)}", *measures[1:]))
    if keep == measures[0] and every.isdigit():
        every = measures[1]
    return f"sash.window(keep={keep}, every={every})", False


def _sizes(source: Random, window: str, span: int) -> tuple[int | None, ...]:
    """Draw more sizes of trailing windows."""
    if not window.startswith(("sash.trailing", "sash.lifetime")):
        return ()
    sizes = (max(span // 40, 1), max(span // 3, 1), 2 * span, None)
    return tuple(source.sample(sizes, source.randint(0, 2)))


def _window(source: Random, span: int, unit: int) -> str:
    """Draw an aligned window such that each row is in at most a few hundred windows."""
    if unit == _HOUR and source.random() < 0.7:
        zone = source.choice(_ZONES)
        sizes = _DAYS if span < 100 * 24 * unit else _MONTHS
        return f"sash.sliding({source.choice(sizes)}, timezone={zone!r})"
    every = max(span // source.choice((1, 3, 20, 60)), 1)
    size = every * source.choice((1, 1, 2, 3, 10, 60))
    if source.random() < 0.4:
        size += source.randint(0, every - 1)  # a slide that does not divide the size
    offset = source.choice((0, 0, unit, -every // 3))
    if source.random() < 0.25:
        return f"sash.cumulate({every * source.randint(1, 12)}, {every}, offset={offset})"
    if size == every:
        return f"sash.tumbling({size}, offset={offset})"
    return f"sash.sliding({size}, {every}, offset={offset})"
