"""What threads have, and make, that work on the sessions of some keys each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..kernels.columns import Array
from ..query.plan import Plan
from ..tables.answers import concat_all
from ..windows import tumbling
from .folds import Folds
from .live_sessions import Withdrawn
from .measures import Spans
from .scan import Scan

__all__ = ["Kit", "Worked", "joined"]


@dataclass
class Kit:
    """What works on partials, for each group of aggregates: a scan, which cuts events into distinct
    times, and lowers partials, each as a window of its own; and what combines partials."""

    scans: list[Scan]
    folds: list[Folds]

    @classmethod
    def of(cls, plan: Plan) -> Kit:
        return cls(
            [Scan(group, tumbling(1), plan.types) for group in plan.groups],
            [Folds(group.operator) for group in plan.groups],
        )


@dataclass
class Worked:
    """What a step makes of the sessions of some keys: the sessions, those that are asked for and
    those that are closed; answers by name, and those that lack some, and why; how many parts each
    key has left, and these; and in live mode the revision of each, and those that are withdrawn."""

    found: Spans
    asked: Array
    closed: Array
    values: dict[str, pa.Array]
    failed: dict[int, str]
    counts: Array
    columns: list[Array]
    revisions: Array | None
    withdrawn: Withdrawn | None


def joined(parts: Sequence[Worked], pieces: Sequence[tuple[int, int]]) -> Worked:
    """What threads made of ranges of the keys, one after the other."""
    if len(parts) == 1:
        return parts[0]

    def whole(column: Callable[[Worked], Array]) -> Array:
        return np.concatenate([column(part) for part in parts])

    rows = np.cumsum([0, *(int(part.asked.sum()) for part in parts)]).tolist()
    groups = [part.found.groups + first for part, (first, _) in zip(parts, pieces, strict=True)]
    found = Spans(
        np.concatenate(groups),
        whole(lambda part: part.found.starts),
        whole(lambda part: part.found.ends),
        parts[0].found.frames,  # which are of the rows of a piece
    )
    values = {n: concat_all([part.values[n] for part in parts]) for n in parts[0].values}
    failed = {
        first + row: why
        for first, part in zip(rows, parts, strict=False)
        for row, why in part.failed.items()
    }
    columns = [
        np.concatenate([part.columns[i] for part in parts]) for i in range(len(parts[0].columns))
    ]
    asked, closed = whole(lambda part: part.asked), whole(lambda part: part.closed)
    counts = whole(lambda part: part.counts)
    return Worked(found, asked, closed, values, failed, counts, columns, None, None)
