"""Events into slices, before any aggregator sees them.

slices   the edges of sliding windows, and the partial of the events between two
"""
