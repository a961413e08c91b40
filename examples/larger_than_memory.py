"""A window larger than memory: a stream keeps a day of every sensor in RocksDB, and the next
process continues the stream."""

import tempfile

import numpy as np
import pyarrow as pa

import sash
import sash.stores

day = sash.Query(
    time="ts",
    by=["sensor"],
    window=sash.sliding("1 day", "1 hour"),
    select={"n": sash.count(), "highest": sash.max("value")},
)
folder = tempfile.mkdtemp()
random = np.random.default_rng(3)
for half in (range(24), range(24, 30)):  # stands for two processes, one after the other
    with sash.stores.rocksdb(folder) as store:
        stream = day.stream(lateness="10 minutes", store=store, name="sensors")
        for hour in half:
            times = hour * 3_600_000_000 + np.sort(random.integers(0, 3_600_000_000, 200))
            sensors, values = random.integers(0, 5, 200), random.normal(size=200)
            due = stream.push(pa.table({"ts": times, "sensor": sensors, "value": values}))
        stream.sync()  # the next process continues from here
print(due.select(["sensor", "n", "highest"]).slice(0, 3).to_pylist())
