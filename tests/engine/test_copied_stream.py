"""A copy of a stream goes on by itself."""

from __future__ import annotations

import copy
from typing import Any

import pyarrow as pa
import pytest

import sash
from sash.testing.fuzz.streams import SELECTS

SELECT = {
    **SELECTS["numbers"],
    "all": sash.collect("i"),
    "own": sash.aggregate(
        sash.operator(identity=(), lift=lambda x: (x,), combine=lambda a, b: a + b), "i"
    ),
}


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("more", [{}, {"mode": "live", "early": True}], ids=str)
def test_both_go_on_as_if_they_were_alone(make: Any, more: Any) -> None:
    q = sash.Query(time="t", by=["k"], window=sash.sliding(8, 4), select=SELECT)
    batches = [
        pa.table(
            {"t": [i, i + 3, 9 * i], "k": ["a", None, "b"], "i": [i, 2 * i, 3], "x": [i / 2, -i, 0]}
        )
        for i in range(12)
    ]
    alone = q.stream(lateness=3, **more)
    right = [alone.push(batch) for batch in batches] + [alone.close()]
    s = q.stream(lateness=3, **more)
    for i, batch in enumerate(batches):
        other = make(s)
        assert other.push(batch).equals(right[i])
        other.close()
        assert s.push(batch).equals(right[i])
        s._check()
    assert s.late.equals(alone.late)
    assert s.counts == {**alone.counts, "emitted": s.counts["emitted"]}
    assert s.close().equals(right[-1])
