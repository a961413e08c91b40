"""A window with a policy: the last payments of a card that add up to at most 1,000."""

import pyarrow as pa

import sash

payments = pa.table(
    {
        "ts": pa.array(range(0, 8 * 60_000_000, 60_000_000), pa.timestamp("us")),
        "card": ["a", "a", "b", "a", "a", "b", "a", "a"],
        "amount": [400, 300, 900, 250, 500, 200, 50, 990],
    }
)
recent = sash.Query(
    time="ts",
    by=["card"],
    window=sash.policies.at_most_sum(1000, column="amount"),
    select={"payments": sash.count(), "spent": sash.sum("amount"), "largest": sash.max("amount")},
)
for row in recent.run(payments).select(["card", "amount", "payments", "spent"]).to_pylist():
    print(row)
