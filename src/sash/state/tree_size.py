"""The sizes of a forest's trees."""

from __future__ import annotations

from collections.abc import Sequence

from ..aggregators.forest import RECORD
from ..aggregators.nodes import SLOTS
from ..aggregators.tree_window import _arity_for
from ..kernels.layout import words_of
from ..kernels.slots import HEADER
from ..operators.contract import Operator

__all__ = ["FEWEST", "forest_bytes", "leaf_entries", "node_words", "tree_bytes"]

FEWEST = 16  # a forest has records for at least this many keys


def leaf_entries(operator: Operator) -> int:
    """The number of entries that a node has room for."""
    return 2 * _arity_for(operator)


def node_words(entries: int, width: int) -> tuple[int, int]:
    """The words of a leaf and of an inner node, which have room for `entries` entries of `width`
    words each."""
    leaf = 2 + entries + width * (entries + 2)
    return leaf, leaf + (1 + width) * (entries + 1)


def tree_bytes(operator: Operator, entries: int) -> int:
    """The approximate bytes of a key with this many entries: its record, and nodes that are half
    full, as they are if events come in order.

    >>> from sash.operators import sum
    >>> [tree_bytes(sum.of(float), n) for n in (1, 1000)]
    [352, 41280]
    """
    most = leaf_entries(operator)
    leaf, inner = node_words(most, _width(operator))
    words, held = RECORD, most // 2 + 1
    nodes = 1 if entries < most else -(-entries // held)
    words += nodes * leaf
    while nodes > 1:
        nodes = -(-nodes // held)
        words += nodes * inner
    return 8 * words


def forest_bytes(operator: Operator, entries: Sequence[int]) -> int:
    """The approximate bytes of a forest; `entries` has the number of entries of each key."""
    records = max(FEWEST, 1 << max(len(entries) - 1, 0).bit_length())
    fixed = HEADER + SLOTS * _width(operator) + RECORD * (records - len(entries))
    return 8 * fixed + sum(tree_bytes(operator, many) for many in entries)


def _width(operator: Operator) -> int:
    return 1 if operator.shape == "object" else words_of(operator)
