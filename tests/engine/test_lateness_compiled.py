"""The kernel behind `sash.lateness` compiled: examples worked out by hand."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

import sash

pytestmark = pytest.mark.once


def found(window: sash.windows.Window, times: list[int], allowance: int) -> tuple[int, int]:
    q = sash.Query(time="t", window=window, select={"n": sash.count()})
    (row,) = sash.lateness(pa.table({"t": times}), q, allowances=[allowance]).to_pylist()
    assert row["allowance"] == timedelta(microseconds=allowance)
    return row["late"], row["kept"]


def test_a_row_that_would_join_a_closed_session_is_late() -> None:
    # 100 and 120 are a session that ends at 140; 200 moves the watermark to 141, which closes it;
    # 125 would still reach the watermark, but joins it; 141 begins a session of its own
    assert found(sash.session(20), [100, 120, 200, 125, 141], 59) == (1, 2)
    assert found(sash.session(20), [100, 120, 200, 125, 141], 60) == (0, 2)


def test_slices_and_rows_that_wait() -> None:
    times = [1, 12, 8, 25, 3, 31]
    assert [found(sash.tumbling(10), times, a) for a in (0, 5, 25)] == [(2, 1), (1, 2), (0, 4)]
    assert [found(sash.rows(2), times, a) for a in (0, 22)] == [(2, 1), (0, 4)]
