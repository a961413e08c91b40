"""Slicing: cut events into slices, before any aggregator sees them.

edges        the edges of aligned windows, numbered
slices       kernel functions for windows and slices by number
cut          the kernel that cuts events into slices
techniques   panes, pairs and Cutty, from their definitions
factors      extra windows, from which the windows of queries are computed
"""
