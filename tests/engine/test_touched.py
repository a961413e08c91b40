"""What a batch reads and writes goes by what it touches, not by how many keys are in state."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash.kernels.program import jit_enabled
from sash.state import layout
from sash.testing.stored import TileStream

HOUR = 3_600_000_000
ROWS = 10


def touched(keys: int) -> list[tuple[int, int]]:
    """Records and bytes moved by batches of ten rows, of ten keys, with so many keys in state."""
    q = sash.Query(time="t", by=["k"], window=sash.tumbling("1 hour"), select={"n": sash.count()})
    s = TileStream(q, lateness="1 day")
    s.push(pa.table({"t": np.zeros(keys, np.int64), "k": np.arange(keys)}))
    found = []
    for batch in range(5):
        at = (np.arange(ROWS) * (keys // ROWS) + 7 * batch) % keys
        s.store.reset()
        s.push(pa.table({"t": np.full(ROWS, HOUR // 2), "k": at}))
        found.append((s.store.records, s.store.bytes))
    return found


@pytest.mark.skipif(not jit_enabled(), reason="a million keys take minutes with SASH_JIT=0")
def test_ten_rows_cost_no_more_with_a_million_keys_in_state() -> None:
    """Each row costs at most its part, read and written, and a node of the index on the way to it;
    with few keys, rows share parts.  The root of the index comes on top."""
    cost = {keys: touched(keys) for keys in (1_000, 100_000, 1_000_000)}
    print(cost)
    for found in cost.values():
        for records, moved in found:
            assert records <= 3 * ROWS + 1
            assert moved <= ROWS * 2 * layout.PAGE
    most = {keys: np.max(found, axis=0) for keys, found in cost.items()}
    assert (most[1_000_000] <= 1.5 * most[100_000]).all(), cost
