"""A short window against a long one: find when a service is much slower than in the last hour."""

import numpy as np
import pandas as pd

import sash

random = np.random.default_rng(2)
seconds = np.sort(random.uniform(0, 7200, 5_000))
slow = (seconds > 5_400) & (seconds < 5_700)  # five bad minutes
calls = pd.DataFrame(
    {
        "ts": pd.Timestamp("2024-05-01") + pd.to_timedelta(seconds, "s"),
        "service": random.choice(["pay", "search"], 5_000),
        "ms": random.gamma(2, 50, 5_000) * np.where(slow, 8, 1),
    }
)


def mean_of(size):
    window = sash.trailing(size)
    query = sash.Query(time="ts", by=["service"], window=window, select={"mean": sash.mean("ms")})
    return query.run(calls)["mean"]


calls["minute"], calls["hour"] = mean_of("1 minute"), mean_of("1 hour")
alarms = calls[calls["minute"] > 3 * calls["hour"]]
print(alarms.groupby("service")["ts"].agg(["min", "max"]).astype("datetime64[s]"))
