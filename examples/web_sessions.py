"""Sessions of a web log: clicks of a visitor that are at most half an hour apart."""

import pandas as pd

import sash

log = pd.DataFrame(
    [
        ("2024-05-01 09:58", "ann", "/", 120),
        ("2024-05-01 10:02", "bob", "/prices", 340),
        ("2024-05-01 10:05", "ann", "/prices", 95),
        ("2024-05-01 10:31", "ann", "/order", 410),  # 26 minutes later: the same session
        ("2024-05-01 11:40", "ann", "/", 101),  # more than half an hour later: another one
        ("2024-05-01 10:20", "bob", "/", 88),  # rows may come in any order
    ],
    columns=["ts", "visitor", "page", "milliseconds"],
)
log["ts"] = pd.to_datetime(log["ts"])

sessions = sash.Query(
    time="ts",
    by=["visitor"],
    window=sash.session("30 minutes"),
    select={
        "clicks": sash.count(),
        "entry": sash.first("page"),
        "exit": sash.last("page"),
        "slowest": sash.max("milliseconds"),
    },
)
print(sessions.run(log).to_string(index=False))
