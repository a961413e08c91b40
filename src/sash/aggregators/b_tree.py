"""A classic B-tree with aggregates: the baseline of the finger B-tree's paper.

    order      any; values of one time are combined as they arrive
    operator   any associative
    time       O(log n) an insert or evict, wherever; no combine a query
    space      as `fiba`
    paper      Tangwongsan, Hirzel, Schneider: Optimal and general out-of-order sliding-window
               aggregation (VLDB 2019), section 3.1

The nodes and their rebalancing are those of `fiba`.  There are no fingers and no spines: each
search starts at the root, each node holds the aggregate of all entries below it, and each
change updates the aggregates up to the root.
"""

from __future__ import annotations

from .fiba import FUNCTIONS
from .tree_window import TreeWindow

__all__ = ["BTree"]


class BTree(TreeWindow):
    """Out-of-order aggregation in a B-tree without fingers.

    >>> from sash.operators import max
    >>> window = BTree(max)
    >>> for time, value in [(10, 7), (30, 2), (20, 5)]:
    ...     window.insert(time, value)
    >>> window.evict(10)
    >>> window.query()
    5
    """

    _name = "b_tree"
    _functions = FUNCTIONS
    _fingers = 0
