"""How far back the windows of an event reach, if they are spans of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels.columns import Array
from ..query.plan import Plan
from ..windows import Driven, Trailing
from ..windows.contract import Span
from .measures import held_in_time

__all__ = ["Reach"]

_FAR = 2**61  # before and after all times


@dataclass(frozen=True)
class Reach:
    """The windows of an event at time t: each holds the times from `t - older` up to but not
    including `t - younger`.  `olders` has the longest window first; None stands for all times since
    the beginning.  If there is such a window, `merges` is True, and a key's events before all other
    windows become one entry."""

    olders: tuple[int | None, ...]
    younger: int
    merges: bool

    @classmethod
    def of(cls, plan: Plan) -> Reach:
        """The windows of a plan's query."""
        window, over = plan.query.window, plan.groups[0].over
        assert isinstance(window, Driven)
        assert isinstance(window.keeps, Span)
        spans = [window.keeps]
        if over is not None:
            assert isinstance(window, Trailing)
            spans = [window.of_length(size).keeps for size in over.sizes]
        olders = tuple(span.older for span in spans)
        # the row of a lifetime window has the time of the key's oldest event
        merges = None in (window.keeps.older, *olders)
        return cls(olders, window.keeps.younger, merges)

    @property
    def longest(self) -> int:
        """How far back the longest window reaches."""
        return _FAR if self.olders[0] is None else self.olders[0]

    @property
    def finite(self) -> int | None:
        """How far back the longest window reaches that is not a lifetime; None if there is none."""
        return next((older for older in self.olders if older is not None), None)

    def edge(self, watermark: int | None) -> int:
        """The time before which events from the watermark on need no entries, or need all of them
        as one entry."""
        if watermark is None:
            return -_FAR
        back = [self.finite or 0, *([self.younger] if self.merges else [])]
        return max(watermark - max(back), -_FAR)

    def first_held(self, times: Array, bounds: Array) -> Array:
        """For each row of groups, which are in order of time, the first row of each of its windows;
        -1 for a window that holds all rows since the beginning."""
        made = np.full((len(times), len(self.olders)), -1)
        for i, older in enumerate(self.olders):
            if older is not None:
                made[:, i] = held_in_time(Span(older, self.younger), times, bounds)[0]
        return made

    def lows(self, times: Array) -> Array:
        """For each of these times, the first time of each of its windows."""
        made = np.full((len(times), len(self.olders)), -_FAR)
        for i, older in enumerate(self.olders):
            if older is not None:
                made[:, i] = times - older
        return made
