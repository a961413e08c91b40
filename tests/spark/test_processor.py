"""What runs on an executor, without Spark: its calls, timers and state as Spark has them.

Spark calls a bucket when it has rows, or when one of its timers is not after the watermark, and
refuses rows whose event time is not after the watermark of the batch before.
"""

from __future__ import annotations

import dataclasses
import pickle
import random
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash.engine.identity import fingerprint
from sash.query.plan import make_plan
from sash.state.key_hash import hash_keys
from sash.testing.queries import differences, replay, rows_of

pytest.importorskip("pyspark")
from pyspark import cloudpickle
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

import sash.spark.micro_batch
import sash.state.keyed
from sash.spark.buckets import BUCKET, PAYLOAD
from sash.spark.micro_batch import check_same
from sash.spark.packer import Packer
from sash.spark.processor import Output, Processor, Work
from sash.spark.shipping import shipped
from sash.spark.state import KEY, VALUE
from sash.spark.streaming import _Shape
from sash.spark.types import arrow_schema
from sash.windows import Driven, Ticked
from thinning import first_of

SCHEMA = pa.schema(
    [
        ("t", pa.timestamp("us", "UTC")),
        ("k", pa.string()),
        ("n", pa.int64()),
        ("id", pa.int64()),
    ]
)


class Handle:
    """State and timers of one bucket."""

    def __init__(self) -> None:
        self.state: dict[Any, Any] = {}
        self.timers: set[int] = set()

    def getMapState(self, *_: Any) -> Any:
        def forget(key: Any) -> None:
            self.state.pop(key, None)

        return SimpleNamespace(
            getValue=self.state.get, updateValue=self.state.__setitem__, removeKey=forget
        )

    def registerTimer(self, at: int) -> None:
        self.timers.add(at)

    def deleteTimer(self, at: int) -> None:
        self.timers.discard(at)


def travels(query: sash.Query) -> tuple[str, ...]:
    """The columns of rows on their way to the operator."""
    return tuple(SCHEMA.names) if isinstance(query.window, Driven) else tuple(query.columns)


def processor(
    query: sash.Query, mode: Any, handle: Handle, trust: tuple[str, ...] = ()
) -> Processor:
    rows = pa.schema([SCHEMA.field(name) for name in travels(query)])
    shape = _Shape(make_plan(query, SCHEMA), from_arrow_schema(SCHEMA), travels(query), mode, True)
    made = arrow_schema(StructType(shape.travelling()))
    output = Output(tuple(made.names), tuple(made.types), tuple(shape.kept), True)
    started = Processor(Work(query, rows, mode, 1, output, trust))
    started.init(handle)
    return started


def packed(query: sash.Query, table: pa.Table) -> Iterator[Any]:
    packer = Packer(query, tuple(table.column_names), travels(query), (0,), 1)
    for batch in packer(iter(table.to_batches())):
        yield batch.to_pandas()[[PAYLOAD]]


@dataclasses.dataclass
class Ran:
    """What a bucket did in micro-batches: the last row of each window, in which micro-batches it
    came, how many rows were late, and the watermark of the last micro-batch."""

    batches: list[pa.Table]
    rows: dict[Any, Any] = dataclasses.field(default_factory=dict)
    again: bool = False  # some window came more than once
    late: int = 0
    watermark: int = 0

    def take(self, query: sash.Query, frame: Any) -> None:
        names = travels(query) if isinstance(query.window, Driven) else query.by
        self.late += int(frame["reason"].notna().sum())
        for row in frame[frame["end"].notna()].to_dict("records"):
            made = {name: row[f"kept_{i}"] for i, name in enumerate(names)}
            start = None if row["start"] != row["start"] else row["start"]
            made |= {"window_start": start, "window_end": row["end"]}
            made |= {name: row[f"value_{i}"] for i, name in enumerate(query.select)}
            place = made["k"], made.get("id", start if self.by_start(query) else row["end"])
            self.again |= place in self.rows
            assert row.get("revision", 0) >= self.rows.get(place, row).get("revision", 0)
            self.rows[place] = made | {n: row[n] for n in ("revision", "deleted") if n in row}

    @staticmethod
    def by_start(query: sash.Query) -> bool:
        """True if a window is known by its start; a window at a tick by its end."""
        return not isinstance(query.window, Ticked)


def run_bucket(
    query: sash.Query, mode: str, source: random.Random, monkeypatch: pytest.MonkeyPatch
) -> tuple[Ran, int]:
    """Micro-batches of one bucket as Spark has them, and the lateness, in milliseconds."""
    handle, now, lateness = Handle(), 1_000_000, source.randint(0, 6)
    ran = Ran([])
    before, mark = 0, 0
    for number in range(60):
        # some micro-batches have no rows, and then no task that packs
        rows = source.random() < 0.7
        count = source.choice((0, 0, 1, 3)) if rows else 0
        now += source.choice((0, 1, 1, 2, 30)) if rows else 0
        at = [(now - source.randint(0, 9)) * 1000 for _ in range(count)]
        table = pa.table(
            {
                "t": pa.array(at, pa.int64()),
                "k": [source.choice("ab") for _ in at],
                "n": pa.array([source.randrange(100) for _ in at], pa.int64()),
                "id": pa.array([10 * number + i for i, _ in enumerate(at)], pa.int64()),
            }
        ).cast(SCHEMA)
        # all the stream's rows move the watermark, some of them are of this bucket
        other = pa.array([now * 1000] if rows else [], pa.int64()).cast(SCHEMA.field("t").type)
        others = {"t": other, "k": ["other"] * rows, "n": [0] * rows, "id": [0] * rows}
        ran.batches.append(pa.concat_tables([table, pa.table(others).cast(SCHEMA)]))
        timers = SimpleNamespace(getCurrentWatermarkInMs=lambda at=mark: at)
        monkeypatch.setattr(sash.spark.micro_batch, "_batch_id", lambda at=number: at)
        step = processor(query, mode, handle)  # nothing is carried over but state
        frames = []
        if rows:
            frames += list(step.handleInputRows((0,), packed(query, table), timers))
        for timer in sorted(t for t in handle.timers if t <= mark):
            info = SimpleNamespace(getExpiryTimeInMs=lambda at=timer: at)
            frames += list(step.handleExpiredTimer((0,), timers, info))
            handle.timers.discard(timer)
        for frame in frames:
            stamps = frame["event_time"].astype("int64")
            if frame["event_time"].dtype.unit == "ns":
                stamps //= 1000
            assert (stamps > before * 1000).all(), "Spark would refuse it"
            ran.take(query, frame)
        before, mark = mark, max(mark, now - lateness) if rows else mark
    ran.watermark = before * 1000
    return ran, lateness


@pytest.mark.parametrize("mode", ["final", "live"])
def test_timers_close_windows_and_no_row_is_before_the_watermark(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in first_of(range(16), 8):
        source = random.Random(seed)
        unit = source.choice((250, 1000))  # windows of parts of milliseconds, too
        size = source.randint(1, 12)
        # an end a moment after a millisecond is where the watermark comes nearest
        window = sash.sliding(
            size * unit, source.randint(1, size) * unit, source.choice((0, 1, 1, 500))
        )
        query = sash.Query(time="t", by=["k"], window=window, select={"n": sash.collect("n")})
        ran, lateness = run_bucket(query, mode, source, monkeypatch)
        assert mode == "live" or not ran.again
        right, missed = replay(query, ran.batches, lateness * 1000, behind=1)
        right = [r for r in right if r["k"] != "other" and r["window_end"] <= ran.watermark]
        made = [row for row in ran.rows.values() if row["window_end"] <= ran.watermark]
        assert not differences(query, right, made, ordered=False), seed
        assert ran.late == len(missed)


BY_EVENTS = [
    (lambda size: sash.trailing(size), "final"),
    (lambda size: sash.trailing(size, closed="left"), "live"),
    (lambda size: sash.lifetime(closed="left"), "final"),
    (lambda size: sash.session(size), "final"),
    (lambda size: sash.session(size), "live"),
    (lambda size: sash.rows(3, every=2), "final"),
    (lambda size: sash.window(keep=sash.delta("n", 40), every=5 * size), "final"),
]


def settled(row: Any, ran: Ran, lost: set[int]) -> bool:
    """True if a tick is emitted by now: an event of its key is behind it, or it is the first behind
    the last of them."""
    events = [r for batch in ran.batches for r in rows_of(batch) if r["k"] == row["k"]]
    times = [r["t"] for r in events if r["t"] < ran.watermark and r["id"] not in lost]
    return any(t >= row["window_end"] for t in times) or (row["k"], row["window_end"]) in ran.rows


@pytest.mark.parametrize(("window", "mode"), BY_EVENTS)
def test_the_same_for_windows_that_events_make(
    window: Any, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sash.state.keyed, "PAGE", 1)  # a part for each key
    for seed in range(2):
        source = random.Random(seed)
        size = source.randint(1, 12) * source.choice((250, 1000)) + source.choice((0, 1))
        select = {"all": sash.collect("n"), "rows": sash.count()}
        query = sash.Query(time="t", by=["k"], window=window(size), select=select)
        ran, lateness = run_bucket(query, mode, source, monkeypatch)
        assert mode == "live" or not ran.again
        right, missed = replay(query, ran.batches, lateness * 1000, behind=1)
        at = "t" if isinstance(query.window, Driven) else "window_end"
        right = [r for r in right if r["k"] != "other" and r[at] < ran.watermark]
        if isinstance(query.window, Ticked):
            lost = {row["id"] for row, _ in missed}
            right = [row for row in right if settled(row, ran, lost)]
        kept = (row for row in ran.rows.values() if not row.get("deleted"))
        made = [row for row in kept if row[at] < ran.watermark]
        ids = [sorted(rows, key=lambda row: row.get("id", 0)) for rows in (right, made)]
        assert not differences(query, *ids, ordered="id" in made[0]), seed
        assert ran.late == len(missed)


def test_rows_are_packed_as_they_are_and_every_bucket_is_called() -> None:
    query = sash.Query(time="t", by=["k"], window=sash.tumbling(10), select={"n": sash.count("n")})
    table = pa.table({"t": [3, 1, 2], "k": ["d", "b", "d"], "n": [None, 5, 6]})

    def packed_by(query: sash.Query, batches: list[Any]) -> list[pa.RecordBatch]:
        names = ("t", "k", "n")
        return list(Packer(query, names, query.columns, (70, 80, 90), 3)(iter(batches)))

    called, batch = packed_by(query, table.to_batches())
    assert called.to_pylist() == [{BUCKET: b, PAYLOAD: b""} for b in (70, 80, 90)]
    of_b, of_d = ((70, 80, 90)[hash_keys([pa.array([k])], 1)[0] % 3] for k in "bd")
    assert of_b != of_d
    rows = {
        row[BUCKET]: rows_of(pa.ipc.open_stream(row[PAYLOAD]).read_all())
        for row in batch.to_pylist()
    }
    b, d = [{"t": 1, "n": 5}], [{"t": 3, "n": None}, {"t": 2, "n": 6}]
    assert rows == {of_b: [r | {"k": "b"} for r in b], of_d: [r | {"k": "d"} for r in d]}
    # where a condition leaves out some rows of a task, or all
    some = dataclasses.replace(query, where=pa.compute.field("n") > 5)
    assert packed_by(some, table.to_batches())[1].column(0).to_pylist() == [of_d]
    none = dataclasses.replace(query, where=pa.compute.field("n") > 99)
    assert len(packed_by(none, table.to_batches())) == 1
    # also where no rows come, as after an operator that emits none in this micro-batch
    assert len(packed_by(query, [])) == 1


def test_a_driver_asks_which_state_there_is_without_sash() -> None:
    """Spark starts a process for that before the first micro-batch, and waits for it."""
    query = sash.Query(time="t", by=["k"], window=sash.tumbling(10), select={"n": sash.max("n")})
    sent = cloudpickle.dumps(processor(query, "final", Handle()))
    code = f"""
import pickle, sys
pickle.loads({sent!r}).init(type("Handle", (), dict(getMapState=lambda *_: print(*_))))
print([m for m in ("numba", "numpy", "pandas", "pyarrow", "sash") if m in sys.modules])
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    asked, loaded = told.stdout.splitlines()
    assert asked == f"records {KEY} {VALUE}", told.stderr
    assert loaded == "[]"


def test_a_worker_packs_rows_without_what_works_on_them() -> None:
    """The first micro-batch waits for the imports of a new worker."""
    query = sash.Query(time="t", by=["k"], window=sash.tumbling(10), select={"n": sash.max("n")})
    sent = cloudpickle.dumps(
        shipped(Packer(query, ("t", "k", "n"), query.columns, (0,), 1, "auto"))
    )
    code = f"""
import pickle, sys
import pyarrow as pa
rows = pa.table({{"t": [3, 1], "k": ["a", "b"], "n": [1, 2]}}).to_batches()
print(sum(batch.num_rows for batch in pickle.loads({sent!r})(iter(rows))))
loaded = ("numba", "sash.engine.lifecycle", "sash.kernels.core", "sash.state.scan")
print([m for m in loaded if m in sys.modules])
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout.splitlines() == ["2", "[]"], told.stderr


def test_a_processor_works_as_it_arrives() -> None:
    query = sash.Query(time="t", by=["k"], window=sash.tumbling(10), select={"n": sash.max("n")})
    handle = Handle()
    made = pickle.loads(cloudpickle.dumps(processor(query, "final", handle)))
    made.init(handle)
    timers = SimpleNamespace(getCurrentWatermarkInMs=lambda: 0)
    table = pa.table({"t": [3], "k": ["a"], "n": [1], "id": [0]}).cast(SCHEMA)
    assert len(list(made.handleInputRows((0,), packed(query, table), timers))) == 1
    (timer,) = handle.timers
    timers = SimpleNamespace(getCurrentWatermarkInMs=lambda: timer + 1)
    info = SimpleNamespace(getExpiryTimeInMs=lambda: timer)
    (frame,) = made.handleExpiredTimer(key=(0,), timerValues=timers, expiredTimerInfo=info)
    assert frame["value_0"].dropna().tolist() == [1]
    made.close()


def test_windows_before_1970_close_with_the_first_watermark() -> None:
    query = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count("n")})
    handle, millis = Handle(), [0]
    timers = SimpleNamespace(getCurrentWatermarkInMs=lambda: millis[0])
    made = processor(query, "final", handle)
    table = pa.table({"t": [-100_000_000], "k": ["a"], "n": [1], "id": [0]}).cast(SCHEMA)
    list(made.handleInputRows((0,), packed(query, table), timers))
    assert handle.timers == {1}
    millis[0] = 5_000
    info = SimpleNamespace(getExpiryTimeInMs=lambda: 1)
    frames = list(made.handleExpiredTimer((0,), timers, info))
    assert sum(f["start"].notna().sum() for f in frames) == 1
    assert len(handle.state) == 1, "but for the progress all is gone"


def own(combine: Any, **more: Any) -> sash.Query:
    given = {"identity": 0, "lift": lambda x: x, "combine": combine, "name": "own"} | more
    return sash.Query(
        time="t",
        window=sash.tumbling(10),
        select={"spread": sash.aggregate(sash.operator(**given), "n", returns=pa.int64())},
    )


def among(*numbers: int) -> sash.Query:
    where = pa.compute.field("n").isin([*range(50), *numbers])
    select = {"n": sash.count("n")}
    return sash.Query(time="t", window=sash.tumbling(10), select=select, where=where)


def skipping(ignore: bool) -> sash.Query:
    select = {"n": sash.first("n", ignore_nulls=ignore)}
    return sash.Query(time="t", window=sash.tumbling(10), select=select)


def plus(more: Any) -> Any:
    return lambda a, b: a + b + more


def reading(table: Any) -> Any:
    return lambda a, b: a + b + table[0]


def with_globals(**names: Any) -> Any:
    """A combine with a global `limit` and a helper `add`."""
    given = {"add": lambda a, b: a + b, "limit": 3} | names
    exec("def combine(a, b): return min(add(a, b), limit)", given)
    return given["combine"]


def plain(a: Any, b: Any) -> Any:
    return a + b


CHANGED = [
    (own(lambda a, b: a ^ b), own(lambda a, b: a | b), "spread: combine differs"),
    (own(plus(1)), own(plus(2)), "spread: combine differs"),
    (own(with_globals()), own(with_globals(limit=4)), "spread: combine differs"),
    (own(with_globals()), own(with_globals(add=lambda a, b: b)), "spread: combine differs"),
    (own(reading(np.zeros(2))), own(reading(np.ones(2))), "spread: combine differs"),
    (own(plain), own(plain, identity=1), "spread: identity was 0 and is 1"),
    (own(plain), own(plain, commutative=True), "spread: commutative was no and is yes"),
    (among(1, 60, *range(80, 90)), among(1, 61, *range(80, 90)), "where was "),
    (skipping(True), skipping(False), "n: nulls was skipped and is kept"),
]


def feed(query: sash.Query, handle: Handle, trust: tuple[str, ...] = ()) -> None:
    timers = SimpleNamespace(getCurrentWatermarkInMs=lambda: 0)
    table = pa.table({"t": [5], "k": ["a"], "n": [1], "id": [0]}).cast(SCHEMA)
    started = processor(query, "final", handle, trust)
    list(started.handleInputRows((0,), packed(query, table), timers))


@pytest.mark.parametrize(("first", "second", "said"), CHANGED)
def test_state_of_a_query_that_looks_the_same_is_refused(
    first: sash.Query, second: sash.Query, said: str
) -> None:
    handle = Handle()
    for _ in range(2):
        feed(first, handle)
    with pytest.raises(ValueError, match=rf"another query, .*\({said}"):
        feed(second, handle)
    stream = first.stream()
    stream.push(pa.table({"t": [5], "k": ["a"], "n": [1], "id": [0]}).cast(SCHEMA))
    with pytest.raises(ValueError, match=rf"another query \({said}"):
        type(stream).from_bytes(stream.to_bytes(), second)


def test_trusted_state_becomes_the_new_querys() -> None:
    first, second, _ = CHANGED[3]
    handle = Handle()
    feed(first, handle)
    feed(second, handle, trust=("spread",))
    feed(second, handle)
    with pytest.raises(ValueError, match="spread: combine differs"):
        feed(first, handle)
    for other in (own(plain, commutative=True), own(lambda a, b: a / b)):
        with pytest.raises(ValueError, match=r"\((spread: commutative|partials) was "):
            feed(other, handle, trust=("spread",))


def test_a_query_that_travels_is_the_same_query() -> None:
    for query, _, _ in CHANGED:
        assert fingerprint(pickle.loads(cloudpickle.dumps(query))) == fingerprint(query)


def test_state_of_an_older_version_is_refused_by_its_version() -> None:
    with pytest.raises(ValueError, match="state of version 1, and this sash reads 4"):
        check_same({"state version": "1", "functions": "Python 3.11: 12"}, {})


def test_damaged_progress_is_refused() -> None:
    query = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count("n")})
    handle = Handle()
    timers = SimpleNamespace(getCurrentWatermarkInMs=lambda: 0)
    table = pa.table({"t": [5], "k": ["a"], "n": [1], "id": [0]}).cast(SCHEMA)
    list(processor(query, "final", handle).handleInputRows((0,), packed(query, table), timers))
    ((at, (data,)),) = [(k, v) for k, v in handle.state.items() if k == (b"progress",)]
    handle.state[at] = (data.replace(b'rows":1', b'rows":2'),)
    with pytest.raises(ValueError, match="damaged"):
        list(processor(query, "final", handle).handleInputRows((0,), packed(query, table), timers))
