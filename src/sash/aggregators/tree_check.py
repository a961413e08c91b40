"""Check that a B-tree of times and partials is sound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..kernels.slots import HEADER
from ..operators.contract import same
from .nodes import (
    BARE,
    DROPPED,
    FEW,
    FREE_INNER,
    FREE_LEAVES,
    LEAF,
    ON_LEFT,
    ON_RIGHT,
    SLOTS,
    TOP,
)

if TYPE_CHECKING:
    from .tree_window import TreeWindow

__all__ = ["TreeCheck"]


class TreeCheck:
    """Recomputes a tree's aggregates from its entries, and compares."""

    def __init__(self, window: TreeWindow) -> None:
        self.w, self.core = window, window._core
        self.op = window.operator
        self.join, self.equal = self.op.python_combine(), self.op.equal or same
        self.fingers = [0, 0]
        self.depths: set[int] = set()
        self.live: set[int] = set()

    def node(
        self,
        n: int,
        low: int,
        high: int,
        *,
        left: bool,
        right: bool,
        depth: int = 0,
        above: Any = None,
    ) -> Any:
        """Check a node and all below; returns the aggregate of all below."""
        w, core = self.w, self.core
        flags, count = core.peek_word(n + 1) & BARE & ~FEW, w._count_of(n)
        leaf, root = bool(flags & LEAF), depth == 0
        fingers = bool(w._fingers)
        self.live.add(n)
        assert count <= w._entries - 1, "a node is too full"
        assert root or count >= w._entries // 2 - 1, "a node is too empty"
        assert root is False or leaf or count >= 1
        spines = (ON_LEFT if left else 0) | (ON_RIGHT if right else 0)
        wanted = 0 if root or not fingers else spines
        assert flags == (LEAF if leaf else 0) | wanted, "a node's flags are wrong"
        if leaf:
            self.depths.add(depth)
            assert len(self.depths) == 1, "leaves lie at different depths"
            self.fingers = [n if left else self.fingers[0], n if right else self.fingers[1]]
        times = [core.peek_word(n + 2 + i) for i in range(count)]
        assert all(low < t < high for t in times), "a time is on the wrong side"
        values = [core.peek(n + 2 + w._entries + core.width * i) for i in range(count)]
        own, agg = (core.peek(w._own_at(core, n) + core.width * i) for i in (0, 1))
        edges = [low, *times, high]
        spine = fingers and not root and (left or right)
        if spine:
            upto = own
            if above is not None:
                upto = self.join(own, above) if left else self.join(above, own)
            assert self.equal(agg, upto), "an aggregate of a spine is wrong"
        below = [] if leaf else self.children(n, count, edges, left, right, depth, agg)
        total = part = self.op.identity
        for i in range(count + 1):
            if not leaf:
                total = self.join(total, below[i])
                outside = (i == 0 and (root or left)) or (i == count and (root or right))
                if not (fingers and outside):
                    part = self.join(part, below[i])
            if i < count:
                total, part = self.join(total, values[i]), self.join(part, values[i])
        assert self.equal(own, part), "a node's own aggregate is wrong"
        return total

    def children(
        self, n: int, count: int, edges: list[int], left: bool, right: bool, depth: int, agg: Any
    ) -> list[Any]:
        """Check a node's children; returns the aggregate of all below each."""
        w, core, fingers = self.w, self.core, bool(self.w._fingers)
        found = []
        for i in range(count + 1):
            c = w._child(n, i)
            assert core.peek_word(c) == n, "a child has another parent"
            first, last = left and i == 0, right and i == count
            above = agg if fingers and depth > 0 and (first or last) else None
            copied = core.peek(n + 3 + 2 * w._entries + core.width * (w._entries + 2 + i))
            found.append(
                self.node(
                    c, edges[i], edges[i + 1], left=first, right=last, depth=depth + 1, above=above
                )
            )
            if not (fingers and (first or last)):
                assert self.equal(copied, found[i]), "what is below a child is wrong"
        return found

    def free_lists(self) -> None:
        """Every node is in use, free or dropped, and only one of these."""
        core, w = self.core, self.w
        leaf = 2 + w._entries + core.width * (w._entries + 2)
        inner = leaf + (1 + core.width) * (w._entries + 1)
        waiting = [self.listed(head) for head in (FREE_LEAVES, FREE_INNER)]
        dropped = self.listed(DROPPED)
        for n in dropped:
            if not core.peek_word(n + 1) & LEAF:
                dropped += [w._child(n, i) for i in range(w._count_of(n) + 1)]
        free = [*waiting[0], *waiting[1], *dropped]
        assert len(set(free)) == len(free), "a node is free twice"
        assert not self.live & set(free), "a node in use is free"
        words = sum(leaf if core.peek_word(n + 1) & LEAF else inner for n in [*self.live, *free])
        assert HEADER + SLOTS * core.width + words == core.get(TOP), "a node is lost"

    def listed(self, head: int) -> list[int]:
        """The nodes of a list in the header."""
        found, n = [], self.core.get(head)
        while n:
            found.append(n)
            n = self.core.peek_word(n)
        return found
