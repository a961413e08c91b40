"""Sets of queries to share, as they come: co-prime slides, equal windows, windows that events make,
other keys, conditions, several sizes in a row."""

from __future__ import annotations

import random
from typing import Any

import pyarrow.compute as pc

import sash
from sash.kernels.program import jit_enabled

__all__ = ["FEW", "drawn"]

#: Aggregates for queries beside others with SELECTS["numbers"], which are without one of them.
#: Compiled they are two of those: they share their kernels.
FEW: dict[str, sash.Aggregate] = {"total": sash.sum("i"), "sum": sash.sum("x")}
if jit_enabled():
    FEW = {"many": sash.count(), "most": sash.max("x")}

COUNT = {"many": sash.count(), "total": sash.sum("i")}
SIZES = COUNT | {
    "long": sash.count().over("31 seconds"),
    "ever": sash.sum("i").over(sash.lifetime()),
}


def drawn(seed: int, mode: str = "final") -> dict[str, sash.Query]:
    """Up to nine queries, for a table or for a stream in a mode."""
    source = random.Random(seed)

    def query(window: Any, select: Any = COUNT, **more: Any) -> sash.Query:
        return sash.Query(**{"time": "t", "by": ["k"], "window": window, "select": select} | more)

    made: dict[str, sash.Query] = {}
    for i, every in enumerate(source.sample((2, 3, 5, 7, 11, 13), source.randint(2, 4))):
        slide = every * source.choice((1_000_000, 333_333))
        size = slide * source.randint(1, 4) + source.choice((0, 777_777))
        emit = source.choice(("all", "changes" if mode == "final" else "all"))
        made[f"sliding {i}"] = query(sash.sliding(size, slide), emit=emit)
    made["equal"] = query(made["sliding 0"].window)
    if source.random() < 0.5:
        made["sizes"] = query(sash.sliding("6 seconds", "2 seconds"), SIZES)
    if source.random() < 0.5:
        made["some"] = query(sash.tumbling("4 seconds"), where=pc.field("i") > 0)
    if source.random() < 0.5:
        made["all keys"] = query(sash.tumbling("3 seconds"), by=[])
    made["trailing"] = query(sash.trailing("5 seconds"))
    made["session"] = query(sash.session("2 seconds"))
    names = [*made]
    source.shuffle(names)
    return {name: made[name] for name in names}
