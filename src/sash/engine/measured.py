"""Find unusable values in the columns that the windows of a stream measure."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..state.measures import values_of
from ..tables.arrow import flat
from ..windows import Driven, Ticked, Window
from ..windows.contract import Change

__all__ = ["unmeasurable"]

#: The difference of two whole numbers that are nearer to 0 than this fits int64.
_FARTHEST = 2**62


def unmeasurable(window: Window, table: pa.Table) -> dict[int, str]:
    """Reasons by row for values whose change cannot be measured.  Only a row's own value decides,
    so that no row can make others unusable."""
    assert isinstance(window, Driven | Ticked)
    given = (window.keeps, window.fires if isinstance(window, Driven) else None)
    reasons: dict[int, str] = {}
    for change in {m.column: m for m in given if isinstance(m, Change)}.values():
        column = flat(table.column(change.column))
        if pa.types.is_uint64(column.type):
            beyond = pa.scalar(_FARTHEST, pa.uint64())
            column = pc.min_element_wise(column, beyond, skip_nulls=False)
        values, there = values_of(change, column)
        if values.dtype == np.float64:
            continue
        far = there & ((values >= _FARTHEST) | (values <= -_FARTHEST))
        why = f"column {change.column!r}: changes are measured of values between -2**62 and 2**62"
        reasons |= dict.fromkeys(np.flatnonzero(far).tolist(), why)
    return reasons
