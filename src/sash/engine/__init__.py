"""The embedded run: events into slices, slices into windows, windows into results.

batch      a query over a whole table
passes     one operator's pass over groups of events or slices
sweep      its kernel
stream     a query over a stream of batches
forests    its state for one operator: a forest of slices
closing    its kernel
intake     what is pushed, in the types of the query
late       rows that missed windows or could not be used
live_keys  keys that are in the state
revisions  what is remembered of rows that were given
snapshots  streams as bytes
keys       key columns as small integers
tables     tables as they come from users, and results on their way back
"""
