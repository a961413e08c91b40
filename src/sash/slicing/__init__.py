"""Events into slices, before any aggregator sees them.

edges        the edges of aligned windows, numbered
slices       windows and slices by number, as kernel words
cut          events into slices
techniques   panes, pairs and Cutty, from their definitions
factors      windows that no one asked for, from which others are computed
"""
