"""The windows of many queries over the same slices, from one pyramid of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.columns import Array
from ..kernels.core import ObjectCore, make_core
from ..query.plan import Group
from ..slicing.slices import specify
from ..windows import Aligned
from .answers import Apart, Sources, answers_apart
from .contract import Slices
from .pyramid_kernel import CHUNK, PYRAMID
from .scan import Out, Windows, partials_handle
from .scan_kernel import ANSWERS, CHANGES, GROUP, MADE

__all__ = ["Pyramid", "PyramidFailed"]


class PyramidFailed(RuntimeError):
    """`combine` raised while a pyramid was built, maybe of slices that no window holds together."""


class Pyramid:
    """A pyramid over the slices of one group of aggregates; it does not change once it is made, so
    that threads may ask it at the same time."""

    def __init__(self, group: Group, slices: Slices, at: int) -> None:
        self._slices, self._partials = slices, slices.partials[at]
        core = make_core(PYRAMID, group.operator, 1)
        bounds = [slices.bounds]
        while (np.diff(bounds[-1]) > CHUNK).any():
            chunks = -(-np.diff(bounds[-1]) // CHUNK)
            bounds.append(np.concatenate([[0], np.cumsum(chunks)]))
        tops = np.cumsum([0, *(int(b[-1]) for b in bounds)])
        self._places = np.concatenate([b[:-1] + n for b, n in zip(bounds, tops[:-1], strict=True)])
        room, count = int(tops[-1]), len(slices.bounds) - 1
        objects = isinstance(core, ObjectCore)
        self._ups, self._downs = (
            [None] * room if objects else np.empty((room, core.width), np.int64) for _ in range(2)
        )
        level = self._partials
        for i, (own, top) in enumerate(zip(bounds, tops[:-1].tolist(), strict=True)):
            if i:
                level = _whole_chunks(self._ups, bounds[i - 1], int(tops[i - 1]))
            held = [partials_handle(core, a) for a in (level, self._ups, self._downs)]
            (_, at), (_, ups), (_, downs) = held
            with core.call() as call:
                try:
                    core.run.build_level(core.m, at, call.integers(own), count, top, ups, downs)
                except Exception as error:
                    raise PyramidFailed(f"combine raised {error!r}") from error
            del held

    def windows(
        self,
        group: Group,
        window: Aligned,
        types: dict[str, Any],
        wanted: tuple[Array, Array],
        sources: Sources,
        *,
        changes: bool,
    ) -> Windows:
        """The windows from first[k] to last[k] of key k, which are `wanted`."""
        core = make_core(PYRAMID, group.operator, 1)
        header = core.header
        specify(header, window)
        header[CHANGES] = changes
        shown = window.clock.reading(self._slices.starts)
        kept = [core.integers(a) for a in (self._places, shown, self._slices.bounds, *wanted)]
        held = [partials_handle(core, a) for a in (self._partials, self._ups, self._downs)]
        out = Out.of(core, kept[1], kept[2], wanted, changes=changes)
        header[GROUP] = header[MADE] = header[ANSWERS] = 0
        given = *(h for _, h in held), *(h for _, h in kept), len(wanted[0])
        apart: dict[int, Apart] = {}
        made = -1
        while made < 0:
            try:
                made = core.run.windows_of_pyramid(core.m, *given, *out.handles)
            except Exception:
                if not core.get(ANSWERS):
                    raise
                apart[core.get(MADE) - 1] = answers_apart(core, group, core.get(ANSWERS) - 1)
                header[ANSWERS] = 0
        del held, kept
        return out.windows(group, types, made, apart, sources)


def _whole_chunks(ups: Any, bounds: Array, at: int) -> Any:
    """The chunks of a level as slices of the next one: each is what goes up to its last slice."""
    counts = np.diff(bounds)
    chunks = -(-counts // CHUNK)
    owners = np.repeat(np.arange(len(counts)), chunks)
    number = np.arange(len(owners)) - np.repeat(np.cumsum(chunks) - chunks, chunks)
    last = at + bounds[owners] + np.minimum((number + 1) * CHUNK, counts[owners]) - 1
    return [ups[i] for i in last.tolist()] if isinstance(ups, list) else ups[last]
