"""Top talkers of a network log: who sent the most in the last minute, every ten seconds."""

import numpy as np
import pandas as pd

import sash

random = np.random.default_rng(1)
flows = pd.DataFrame(
    {
        "ts": pd.Timestamp("2024-05-01") + pd.to_timedelta(random.uniform(0, 300, 20_000), "s"),
        "host": random.zipf(1.6, 20_000) % 50,
        "bytes": random.integers(64, 1500, 20_000),
    }
)
sent = sash.Query(
    time="ts",
    by=["host"],
    window=sash.sliding("1 minute", "10 seconds"),
    select={"bytes": sash.sum("bytes"), "flows": sash.count()},
)
by_host = sent.run(flows)
top = by_host.sort_values(["window_end", "bytes"], ascending=[True, False])
top = top.groupby("window_end").head(3)
print(top[["window_end", "host", "bytes", "flows"]].head(9).to_string(index=False))
