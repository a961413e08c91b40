"""The lifecycle of streams, and the ways to run a query in this process.

lifecycle   which rows are late, which windows are due, emitted again, unchanged or closed
late        late rows, with the reason of each
passes      the times of a large batch, and the spans of many windows, in one pass each
failures    find the aggregate, key and window at which `combine` raised
run         a query over a whole table
stream      a query over a stream of batches
results     emitted windows as a table
snapshots   streams as bytes
identity    a query's fingerprint, by which sash refuses the state of another query
supported   what each way to run a query refuses
oracle      runs and streams by brute force: SASH_ORACLE=1
"""
