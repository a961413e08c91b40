"""How late rows come: what streams count is what the definition says."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash.engine.delays import BOUNDS, BUCKETS, delay_counts
from sash.engine.lifecycle import Lifecycle, Progress
from sash.query.plan import make_plan
from sash.state.memory import ForestState
from sash.testing.stored import STATES, open_stream
from sash.testing.streams import batches, stream
from sash.windows import Window

pytestmark = pytest.mark.plain

SECOND = 1_000_000
WINDOWS: list[Window] = [
    sash.sliding("10 seconds", "2 seconds"),
    sash.trailing("5 seconds"),
    sash.rows(3),
    sash.session("2 seconds"),
]


def counted(times: list[list[int]]) -> list[int]:
    """The histogram by its definition, of the times of each push."""
    made = [0] * (BUCKETS + 1)
    newest = None
    for push in times:
        for time in push:
            late = 0 if newest is None else newest - time
            place = 0
            while place < BUCKETS and late > (0 if place == 0 else SECOND * 2 ** (place - 1)):
                place += 1
            made[place] += 1
        newest = max([*push, *([] if newest is None else [newest])])
    return made


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_streams_count_what_the_definition_says(window: Window, state: str) -> None:
    q = sash.Query(time="t", by=["k"], window=window, select={"n2": sash.count()})
    table = stream("disorder", 60, plain=True)
    for lateness in (0, 100 * SECOND):
        s = open_stream(state, q, lateness=lateness)
        pushes = list(batches(table, seed=3))
        for push in pushes:
            s.push(push)
        assert s.delays == counted([push["t"].cast(pa.int64()).to_pylist() for push in pushes])


def test_each_small_push_is_a_batch_and_all_of_it_is_saved() -> None:
    q = sash.Query(time="t", window=sash.tumbling("1 hour"), select={"n": sash.count()})
    times = [1000, 1010, 1003, 1009, 1100, 1000, 1036]
    s = q.stream()
    for t in times:
        s.push({"t": t * SECOND})
    expected = counted([[t * SECOND] for t in times])
    assert s.delays == expected
    assert sash.Stream.from_bytes(s.to_bytes(), q).delays == expected


def test_queries_that_share_a_stream() -> None:
    select = {"n": sash.count()}
    small, large = (
        sash.Query(time="t", window=sash.tumbling(size * SECOND), select=select) for size in (5, 10)
    )
    trail = sash.Query(time="t", window=sash.trailing(SECOND), select={"m": sash.count()})
    s = sash.share({"small": small, "trail": trail, "large": large}).stream()
    pushes = [[10, 20], [18], [12, 30, 11], [29]]
    for push in pushes:
        s.push([{"t": t * SECOND} for t in push])
    expected = counted([[t * SECOND for t in push] for push in pushes])
    assert s.delays == {"small": expected, "trail": expected, "large": expected}
    again = sash.SharedStream.from_bytes(s.to_bytes(), sash.share(s.queries))
    assert again.delays == s.delays


def test_rows_that_cannot_be_used_are_not_counted() -> None:
    for window in (sash.tumbling(10), sash.rows(2)):
        q = sash.Query(time="t", window=window, select={"n": sash.count()})
        s = q.stream()
        s.push(pa.table({"t": [5 * SECOND, None]}))
        s.push(pa.table({"t": [None, 2 * SECOND]}))
        assert (s.counts["late"], s.delays[:4], sum(s.delays)) == (3, [1, 0, 0, 1], 2)


def test_the_bounds_of_buckets_are_theirs() -> None:
    for i, bound in enumerate(BOUNDS.tolist()):
        for late, place in ((bound, i), (bound + 1, i + 1)):
            assert delay_counts(np.array([-late]), 0).tolist().index(1) == place
    assert len(delay_counts(np.array([], dtype=np.int64), None)) == BUCKETS + 1
    weighed = delay_counts(np.array([0, -SECOND]), 0, weights=np.array([5, 7]))
    assert weighed[:3].tolist() == [5, 7, 0]


def test_where_the_caller_moves_the_watermark_it_tells_stream_time() -> None:
    q = sash.Query(time="t", window=sash.tumbling(SECOND), select={"n": sash.count()})
    table = pa.table({"t": [20 * SECOND, 17 * SECOND]})
    plan = make_plan(q, table.schema)
    lifecycle = Lifecycle(plan, mode="final", behind=5 * SECOND)
    progress, state = Progress(watermark=0), ForestState(plan)
    outcome = lifecycle.process(progress, state, table, watermark=16 * SECOND)
    assert outcome.delays[:5].tolist() == [0, 1, 0, 1, 0]  # stream time was 21 seconds
