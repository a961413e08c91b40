"""The embedded run: events into slices, slices into windows, windows into results.

batch    a query over a whole table
passes   one operator's pass over groups of events or slices
sweep    its kernel
keys     key columns as small integers
tables   tables as they come from users, and results on their way back
"""
