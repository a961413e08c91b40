"""Three sizes in one row, every hour: a card's payments in the last hour and in the last day, and
their sum over thirty days. The query runs over a table and over a stream."""

import pandas as pd

import sash

payments = pd.DataFrame(
    [
        ("2024-05-01 10:05", "a", 40),
        ("2024-05-01 10:40", "a", 15),
        ("2024-05-02 09:30", "a", 99),
        ("2024-05-02 09:50", "b", 20),
        ("2024-05-20 12:10", "a", 70),
    ],
    columns=["ts", "card", "amount"],
)
payments["ts"] = pd.to_datetime(payments["ts"])

features = sash.Query(
    time="ts",
    by=["card"],
    window=sash.sliding("1 hour", "1 hour"),
    select={
        "n_1h": sash.count(),
        "n_24h": sash.count().over("24 hours"),
        "spent_30d": sash.sum("amount").over("30 days"),
    },
)
print(features.run(payments).to_string(index=False))

stream = features.stream(lateness="1 hour")
parts = [stream.push(payments[:3]), stream.push(payments[3:]), stream.close()]
print(pd.concat(parts).to_string(index=False))
