"""A bucket's micro-batch in portions of its keys: the rows, metrics and records of the micro-batch
in one piece, with all that comes held, and with all in files."""

from __future__ import annotations

import errno
import random
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sash

pytest.importorskip("pyspark")
import sash.spark.arrivals
import sash.spark.micro_batch
import sash.spark.packer
import sash.state.keyed
from sash.engine.bundles import bundle_alone
from sash.spark import row_files
from sash.spark.buckets import PAYLOAD
from sash.spark.packer import Packer, SharedPacker
from sash.spark.payload_slices import Unpacker
from sash.spark.payloads import Buckets, packed_rows
from sash.spark.processor import METRICS
from sash.spark.shared_bucket import LaneArrivals
from sash.state import portions

from .test_processor import SCHEMA, Handle, processor, travels

SECOND = 1_000_000
BATCHES, MISSED = 9, 5


def lift(n: int) -> int:
    if n > 1000:
        raise ValueError("too large")
    return n


largest = sash.operator(
    identity=0, lift=lift, combine=max, commutative=True, name="largest", compile=False
)
NUMBERS = {"rows": sash.count(), "sum": sash.sum("n"), "most": sash.max("n")}
IN_ORDER = {"all": sash.collect("id"), "largest": sash.aggregate(largest, "n", returns=pa.int64())}


def query(window: Any, select: Any = None, **more: Any) -> sash.Query:
    return sash.Query(time="t", by=["k"], window=window, select=select or NUMBERS, **more)


SLIDING = sash.sliding("6 seconds", "2 seconds")
ALIGNED = {
    "final": (query(SLIDING, IN_ORDER), "final", "never"),
    "slices": (query(SLIDING), "final", "always"),
    "slices, live": (query(SLIDING), "live", "always"),
    # rows that lift refuses come with times far ahead
    "live": (query(SLIDING, IN_ORDER), "live", "never"),
    "changes": (query(SLIDING, emit="changes"), "final", "never"),
    "changes, live": (query(SLIDING, emit="changes"), "live", "always"),
    "empty": (query(sash.tumbling("2 seconds", empty="zero", idle="1 minute")), "final", "never"),
    "sizes": (query(SLIDING, {"n": sash.count(), "m": sash.max("n").over("12 seconds")}), "live",
              "never"),
    "sizes, slices": (query(SLIDING, {"n": sash.count(), "m": sash.max("n").over("12 seconds")}),
                      "final", "always"),
}  # fmt: skip
BY_EVENTS = {
    "trailing": (query(sash.trailing("5 seconds"), IN_ORDER), "live", "never"),
    "rows": (query(sash.rows(3)), "final", "never"),
    "session": (query(sash.session("2 seconds"), IN_ORDER), "live", "never"),
    "session, final": (query(sash.session("2 seconds")), "final", "never"),
    "ticks": (query(sash.window(keep="5 seconds", every="2 seconds")), "final", "never"),
}
CASES = ALIGNED | BY_EVENTS


def events(source: random.Random, number: int) -> pa.Table:
    """A micro-batch: rows of 40 keys, in no order, some late, some that cannot be used."""
    rows = []
    for i in range(source.choice((0, 40, 80, 120))):
        late = source.choice((0, 0, 0, 2, 5, 30))
        at: int | None = (1000 + 3 * number - late) * SECOND + source.randrange(3) * SECOND
        n = source.randrange(1000)
        if source.random() < 0.03:
            at = None
        elif source.random() < 0.05:
            at, n = at + 10**9 * SECOND, 5000
        rows.append({"t": at, "k": f"{source.randrange(40)}", "n": n, "id": 1000 * number + i})
    plain = pa.schema([SCHEMA.field(0).with_type(pa.int64()), *list(SCHEMA)[1:]])
    return pa.Table.from_pylist(rows, schema=plain).cast(SCHEMA)


class Counting(Handle):
    """State that counts how often each record is written in a micro-batch."""

    def __init__(self) -> None:
        super().__init__()
        self.puts: Counter[bytes] = Counter()

    def getMapState(self, *names: Any) -> Any:
        plain = super().getMapState(*names)

        def put(key: Any, value: Any) -> None:
            self.puts[key[0]] += 1
            plain.updateValue(key, value)

        return SimpleNamespace(getValue=plain.getValue, updateValue=put, removeKey=plain.removeKey)


def packed(q: sash.Query, table: pa.Table, combines: Any) -> Iterator[pd.DataFrame]:
    sized = (q.several and bundle_alone(q)) or None
    names = tuple(table.column_names)
    packer = Packer(q, names, travels(q), (0,), 1, combines, sized)
    for batch in packer(iter(table.to_batches(max_chunksize=16))):
        yield batch.to_pandas()[[PAYLOAD]]


def run(case: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[int], Counter[bytes]]:
    """What comes out of each micro-batch, in how many frames, and how often at most a record was
    written in one."""
    q, mode, combines = CASES[case]
    source, handle = random.Random(case), Counting()
    out, frames, most = [], [], Counter[bytes]()
    mark = 0
    for number in range(BATCHES):
        table = events(source, number)
        timers = SimpleNamespace(getCurrentWatermarkInMs=lambda at=mark: at)
        at = number + (number >= MISSED)  # one micro-batch was missed
        monkeypatch.setattr(sash.spark.micro_batch, "_batch_id", lambda at=at: at)
        handle.puts.clear()
        step = processor(q, mode, handle)  # nothing is carried over but state
        made = list(step.handleInputRows((0,), packed(q, table, combines), timers))
        if number != MISSED:  # in which the bucket catches up first
            most |= handle.puts
        frames.append(len(made))
        rows = pd.concat(made)
        counts = rows[rows["metric"].notna()]
        told = dict(zip(counts["metric"].tolist(), counts["amount"].tolist(), strict=True))
        # where events make the windows, open ones are counted about
        about = ["state_records", "state_bytes", *["open_windows"] * (case in BY_EVENTS)]
        moving = [METRICS.index(name) for name in about]
        results = rows[rows["metric"].isna()].to_dict("records")
        out.append((sorted(map(str, results)), {k: v for k, v in told.items() if k not in moving}))
        mark = max(mark, (1000 + 3 * number - 4) * 1000)
    return out, frames, most


def in_portions(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(sash.spark.packer, "_MANY", 32)  # several values in a micro-batch
    monkeypatch.setattr(portions, "MOST", most)
    monkeypatch.setattr(sash.spark.micro_batch, "_FRAME", 1)
    monkeypatch.setattr(sash.spark.arrivals, "_NEWEST", 2)
    monkeypatch.setattr(sash.state.keyed, "PAGE", 1000)
    monkeypatch.setattr(portions, "PAGE", 1000)


@pytest.mark.parametrize("case", CASES)
def test_portions_are_as_good_as_one_piece(
    case: str, monkeypatch: pytest.MonkeyPatch, files: list[Any]
) -> None:
    whole, frames, _ = run(case, monkeypatch)
    assert sum(len(rows) for rows, _ in whole) > 100
    assert max(frames) == 1
    in_portions(monkeypatch, 200 if case in BY_EVENTS else 30)
    held, frames, most = run(case, monkeypatch)
    assert held == whole
    assert max(frames) > 2
    # a record of slices or rows is written once in a micro-batch, however many portions it has
    assert {times for name, times in most.items() if name[1:2] in (b"p", b"t")} == {1}
    monkeypatch.setattr(sash.spark.arrivals, "_BYTES", 1)
    monkeypatch.setattr(sash.spark.arrivals, "_CHUNK", 3000)
    assert run(case, monkeypatch)[0] == whole
    assert files
    assert all(file.closed for file in files)


class Both:
    """The state of two buckets of a task; calls are of the state of the bucket `now`."""

    def __init__(self) -> None:
        self.each, self.now = (Handle(), Handle()), 0

    def getMapState(self, *_: Any) -> Any:
        def state() -> dict[Any, Any]:
            return self.each[self.now].state

        return SimpleNamespace(
            getValue=lambda key: state().get(key),
            updateValue=lambda key, value: state().__setitem__(key, value),
            removeKey=lambda key: state().pop(key, None),
        )

    def registerTimer(self, at: int) -> None:
        self.each[self.now].registerTimer(at)

    def deleteTimer(self, at: int) -> None:
        self.each[self.now].deleteTimer(at)


def both(case: str, shared: bool, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The rows of the micro-batches of a large and a small bucket, of one processor or of two."""
    q, mode, combines = CASES[case]
    source, handle, mark, out = random.Random(case), Both(), 0, []
    for number in range(7):
        monkeypatch.setattr(sash.spark.micro_batch, "_batch_id", lambda at=number: at)
        one = processor(q, mode, handle)
        for bucket, keys in enumerate((400, 12)):
            handle.now = bucket
            rows = []
            for i in range(source.choice((40, 80))):
                late = source.choice((0, 0, 0, 2, 5))
                at = (1000 + 3 * number - late + source.randrange(3)) * SECOND
                key = f"{bucket}.{source.randrange(keys)}"
                rows.append(
                    {"t": at, "k": key, "n": source.randrange(1000), "id": 1000 * number + i}
                )
            plain = pa.schema([SCHEMA.field(0).with_type(pa.int64()), *list(SCHEMA)[1:]])
            table = pa.Table.from_pylist(rows, schema=plain).cast(SCHEMA)
            timers = SimpleNamespace(getCurrentWatermarkInMs=lambda at=mark: at)
            step = one if shared else processor(q, mode, handle)
            made = pd.concat(step.handleInputRows((bucket,), packed(q, table, combines), timers))
            results = made[made["metric"].isna()].dropna(axis=1, how="all")
            out.append(sorted(map(str, results.to_dict("records"))))
        mark = max(mark, (1000 + 3 * number - 4) * 1000)
    return out


@pytest.mark.parametrize("case", ["final", "live", "rows"])
def test_buckets_of_one_task(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The portions of a bucket are those of its own index, whatever bucket came before."""
    in_portions(monkeypatch, 200 if case in BY_EVENTS else 30)
    assert both(case, True, monkeypatch) == both(case, False, monkeypatch)


@pytest.mark.parametrize("lanes", [1, 2, 5, 100])
def test_lanes_share_the_files_that_are_open(
    lanes: int, monkeypatch: pytest.MonkeyPatch, files: list[Any]
) -> None:
    """A process may have 1,024 files, more than a hundred lanes with 64 files each."""
    q = query(SLIDING)
    table = pa.table({"t": range(5000), "k": [f"{i}" for i in range(5000)], "n": range(5000)})
    table = table.cast(pa.schema([SCHEMA.field(name) for name in table.column_names]))
    buckets = Buckets(np.zeros(1, dtype=np.int32))
    (value,) = packed_rows(q, table, buckets).column(PAYLOAD).to_pylist()
    monkeypatch.setattr(sash.spark.arrivals, "_BYTES", 1)
    each = [sash.spark.arrivals.Arrivals(Unpacker(table.schema, q), lanes) for _ in range(lanes)]
    for lane in each:
        lane.add(value)
    assert lanes / 2 <= len(files) <= max(lanes, 64)
    for lane in each:
        lane.coming()
        parts = [lane.among(slots) for slots in ((0, 9), (10, 99), (100, 255))]
        assert all(isinstance(part, pa.Table) and part.num_rows for part in parts)
        assert pa.concat_tables(parts).sort_by("t").equals(table)
        lane.close()
    assert all(file.closed for file in files)


def test_columns_of_lanes_lie_where_arrow_wants_them() -> None:
    """A lane's rows stay in the payload that came, and Arrow's own code takes aligned buffers."""
    q = query(SLIDING)
    table = pa.table({"t": range(50), "k": [f"{i}" for i in range(50)], "n": range(50)})
    table = table.cast(pa.schema([SCHEMA.field(name) for name in table.column_names]))
    names = tuple(table.column_names)
    packer = SharedPacker(tuple(Packer(q, names, names, (0,), 1) for _ in range(2)))
    arrivals = LaneArrivals([Unpacker(table.schema, q)] * 2)
    for batch in packer(iter(table.to_batches())):
        for payload in filter(None, batch.to_pandas()[PAYLOAD]):
            arrivals.add(payload)
    assert list(arrivals.lanes) == [0, 1]
    for lane in arrivals.lanes.values():
        rows = lane.whole()
        assert isinstance(rows, pa.Table)
        assert rows.equals(table)
        chunks = [chunk for column in rows.columns for chunk in column.chunks]
        buffers = [buffer for chunk in chunks for buffer in chunk.buffers() if buffer]
        assert len(buffers) > 3
        assert [buffer.address % 8 for buffer in buffers] == [0] * len(buffers)


class Full(BytesIO):
    """A file on a disk without room."""

    def write(self, data: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_file_that_cannot_be_written_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    schema = pa.schema([("n", pa.int64())])
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/gone")
    with pytest.raises(
        FileNotFoundError, match=r"/gone \(No such file .* set Spark's spark.local.dir"
    ):
        row_files.RowFile(schema)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    monkeypatch.setattr(row_files, "TemporaryFile", lambda dir: Full())
    full = row_files.RowFile(schema)
    with pytest.raises(OSError, match=rf"a file in {tmp_path} \(No space left on device\)"):
        full.write(pa.table({"n": range(100_000)}, schema))
    full.close()
