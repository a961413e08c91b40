"""The embedded run: events into slices, slices into windows, windows into results.

batch       a query over a whole table
passes      one operator's pass over groups of events or slices
sweep       its kernel
answers     answers in the types of the result
stream      a query over a stream of batches
forests     its state for one operator: a forest of slices
closing     its kernel
intake      what is pushed, in the types of the query
late        rows that missed windows or could not be used
live_keys   keys that are in the state
given       what is remembered of rows that were given
snapshots   streams as bytes
bucket      keys whose state lives in a store: what one batch does to it
tile_tree   a visit to that state: slices in, windows out
tile_store  what all its tiles have in common, and where they are kept
tiles       tiles as arrays and as bytes
runs        folds over runs of partials
revisions   how often windows in a store were given
before      the closed window that the next one is compared with
identity    what a query is, as text
keys        key columns as small integers
tables      tables as they come from users, and results on their way back
"""
