"""One lifecycle, and its callers in this process.

lifecycle   what is late, due, emitted again, unchanged, closed; for every stream
late        late rows: which they are, and why
failures    which aggregate, key and window a failing `combine` belongs to
run         a query over a whole table
stream      a query over a stream of batches
results     emitted windows as a table
snapshots   streams as bytes
identity    a query's fingerprint: state of another one is refused
supported   what each way to run a query refuses
oracle      runs and streams by brute force: SASH_ORACLE=1
"""
