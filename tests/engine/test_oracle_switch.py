"""`SASH_ORACLE=1` answers by brute force, and says the same as the engine."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import sash
from sash.engine.oracle import OracleStream
from sash.testing.queries import differences, rows_of
from sash.testing.streams import WINDOWS, batches, stream

SELECT = {
    "n": sash.count(),
    "top": sash.max("x"),
    "when": sash.max("w"),
    "total": sash.sum("i"),
    "all": sash.collect("s"),
}


def query(window: Any, **more: Any) -> sash.Query:
    return sash.Query(time="t", by=["k"], window=window, select=SELECT, **more)


@pytest.mark.parametrize("window", WINDOWS[:5], ids=str)
def test_a_run_and_a_stream_say_the_same(window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = stream("disorder", 60, seed=3)
    parts = list(batches(table, seed=2, most=15))
    for emit, mode in (("all", "final"), ("changes", "final"), ("all", "live")):
        q = query(window, emit=emit)
        results = {}
        for switch in ("0", "1"):
            monkeypatch.setenv("SASH_ORACLE", switch)
            s = q.stream(lateness="3 seconds", mode=mode)
            assert isinstance(s, OracleStream) == (switch == "1")
            emitted = [s.push(part) for part in parts]
            results[switch] = (q.run(table), emitted, s.close(), s.late, s.counts)
        ours, brute = results["0"], results["1"]
        assert ours[0].schema == brute[0].schema
        assert not differences(q, rows_of(brute[0]), ours[0])
        for mine, theirs in zip([*ours[1], ours[2]], [*brute[1], brute[2]], strict=True):
            assert mine.schema == theirs.schema
            assert not differences(q, rows_of(theirs), mine)
            if mode == "live":
                assert mine["revision"].to_pylist() == theirs["revision"].to_pylist()
        assert str(rows_of(ours[3])) == str(rows_of(brute[3]))
        assert ours[4] == brute[4]


def test_it_is_independent_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """With everything of the engine broken, brute force still answers."""
    import sash.engine.lifecycle
    import sash.windows.contract

    def broken(*_: Any, **__: Any) -> Any:
        raise AssertionError("the engine was asked")

    monkeypatch.setenv("SASH_ORACLE", "1")
    for name in ("start", "end", "first", "last"):
        monkeypatch.setattr(sash.windows.contract.Cycle, name, broken)
    monkeypatch.setattr(sash.engine.lifecycle.Lifecycle, "process", broken)
    q = sash.Query(time="t", window=sash.sliding(4, 2), select={"n": sash.count()})
    assert q.run(pa.table({"t": [1, 2, 6]}))["n"].to_pylist() == [1, 2, 1, 1, 1]
    s = q.stream()
    s.push({"t": [1, 2, 6]})
    assert s.close()["n"].to_pylist() == [1, 1]
