"""The Python side of aggregators that keep their window in `levels`: bulk eviction and policies."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..kernels.columns import read
from ..kernels.program import Kernel
from ..kernels.slots import (
    CAPACITY,
    END,
    START,
    Columns,
    Memory,
    Outputs,
    combine,
    copy,
    drop,
    get,
    holds,
    lower,
)
from ..operators.contract import Operator, same
from ..policies.contract import Policy, guard
from .guard import alone, sound_after
from .in_order import FEW, MUCH, InOrder, check_size, evict, insert, kernel, query
from .levels import LONGER, PREFIX, RING, SWEPT, beside, level_blocks, levels, look, sweep, tail

if TYPE_CHECKING:
    from ..stores.contract import Store

__all__ = ["LevelWindow", "kernels"]

SINGLY = 1  # whether the first values that a policy wants to go are evicted one by one


def whole(m: Memory) -> int:
    """The slot with the aggregate of the whole window, which stays there while values are evicted
    (declared here, made by each algorithm)."""
    return 0


def leave(m: Memory, count: int) -> None:
    """Evict so many at once (declared here, made by each algorithm)."""


def held(m: Memory, level: int, index: int) -> int:
    """The slot of a node that is whole, or -1 (declared here, made by each algorithm)."""
    return 0


def enforce(m: Memory) -> None:
    """Evict what the rule wants to go until it wants nothing more: about log2 n values one by one,
    then as many as a descent in the tree finds.

    After each eviction the rule sees the window as it is then: of several policies, one may evict
    what another has kept the rest for.
    """
    size = get(m, END) - get(m, START)
    evicted = 0
    more = size > 0
    while more:
        start = get(m, START)
        total = whole(m)
        head = look(m, 0, start)
        more = holds(m, total, head)
        if more and SINGLY and 1 << evicted <= size:
            evict(m)
            evicted += 1
        elif more:
            copy(m, PREFIX, head)
            leave(m, descend(m, total, PREFIX, LONGER, start + 1) - start)
            drop(m, PREFIX)
            drop(m, LONGER)
        more = more and get(m, START) < get(m, END)


def descend(m: Memory, total: int, old: int, new: int, at: int) -> int:
    """Where the longest prefix ends for which the rule holds, from a position up to which it does,
    with the aggregate in `old`: up through larger and larger nodes while it holds with them, then
    down."""
    end = get(m, END)
    level = 0
    rising = True
    while level >= 0:
        node = -1
        if at < end:
            node = held(m, level, at >> level)
        more = False
        if node >= 0:
            combine(m, new, old, node)
            more = holds(m, total, new)
        if more:
            old, new = new, old
            at += 1 << level
            if rising and (at >> level) & 1 == 0:
                level += 1
        else:
            rising = False
            level -= 1
    return at


def slide_under(
    m: Memory, columns: Columns, outputs: Outputs, first: int, rows: int, size: int
) -> int:
    """For each row: make room, insert, enforce, answer.  Returns the row for which there was no
    room."""
    for row in range(first, rows):
        while get(m, END) - get(m, START) >= size:
            evict(m)
        if get(m, END) - get(m, START) == get(m, CAPACITY):
            return row
        insert(m, columns, row)
        enforce(m)
        lower(m, query(m), outputs, row)
    return rows


def kernels(
    name: str, *functions: Any, singly: int = 1, slides: tuple[Any, ...] = (), **shape: Any
) -> tuple[Kernel, Kernel]:
    """An algorithm's kernel, in which `slides` are a slide of its own and what that calls; and the
    same for operators with a rule."""
    shape |= {"scratch": RING, "each": 2, "beside": True}
    own = (look, tail, beside, levels, sweep, *functions)
    plain = kernel(name, *own, *slides, brief=("leave",), **shape)
    ruled = kernel(
        f"{name}_under",
        *own,
        descend,
        enforce,
        slide_under,
        entries=("slide_under",),
        brief=("leave", "enforce"),
        constants=(("SINGLY", singly),),
        **shape,
    )
    return plain, ruled


class LevelWindow(InOrder):
    """An in-order window that evicts any number of values at once, and what a policy says."""

    _kernels: ClassVar[tuple[Kernel, Kernel]]
    _stored_kernels: ClassVar[tuple[Kernel, Kernel]]
    _takes_policy = True

    def __new__(cls, *given: Any, **named: Any) -> Self:
        if named.get("store") is not None or named.get("name") is not None:
            from .stored import stored_class

            cls = stored_class(cls)  # type: ignore[assignment]
        return super().__new__(cls, *given, **named)

    def __init__(
        self,
        operator: Operator,
        policy: Policy | None = None,
        *,
        capacity: int | None = None,
        store: Store | None = None,
        name: str | None = None,
        cache: int | None = None,
        buffer: int | None = None,
    ) -> None:
        """With a `store` (`sash.stores`) the window is kept there under a `name`: in memory are
        some `cache` nodes at its head, as many at its tail, and up to `buffer` nodes that are on
        their way to the store; of two or three levels, and the nodes above them.  Without them,
        `cache` and `buffer` are 256 KB of nodes, or 512 where partials are Python objects."""
        made = guard(operator, policy) if isinstance(operator, Operator) else operator
        self._policy = policy
        super().__init__(made, capacity=capacity)

    @property
    def _kernel(self) -> Kernel:  # type: ignore[override]
        return self._kernels[self._given.rule is not None]

    @property
    def operator(self) -> Operator:
        """The operator, tied to types if it is; not the policy's."""
        return self._core.operator.shown

    @property
    def policy(self) -> Policy | None:
        """The window slide policy, if there is one."""
        return self._policy

    @alone
    def bulk_evict(self, count: int) -> None:
        """Drop the `count` oldest values at once.

        Much memory that is not needed any more is given back by the next `insert`, `evict` or
        `slide`, so that this call need not wait for it.
        """
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(f"bulk_evict takes a number of values, not {count!r}")
        held = self._length()
        if not 0 <= count <= held:
            raise IndexError(f"{count} values cannot leave a window that holds {held}")
        self._leave(count)

    @alone
    def enforce(self, policy: Policy | None = None) -> None:
        """Drop the oldest values as long as the policy wants them to go.

        The policy is the one that the window was made with: its own aggregates are kept from the
        first value on.  An empty window takes another.
        """
        if policy is not None and policy is not self._policy:
            self._take(policy)
        if self._policy is None:
            raise TypeError(
                f"{type(self).__name__} has no policy to enforce; make it with "
                f"{type(self).__name__}(operator, policy=…)"
            )
        self._shed(self._core.run.enforce)

    def slide(self, values: Any, size: int | None = None) -> Any:
        """Insert each value in turn, with at most `size` in the window, enforce the policy if there
        is one, and answer after each.  Without a policy there must be a size.

        `values` is a numpy array, an Arrow array or a list (for several columns a tuple of
        them); answers come back in the same kind.
        """
        if self._policy is None:
            if size is None:
                raise TypeError("slide needs a size, or a window with a policy")
            return super().slide(values, size)
        return self._slide_under(values, size)

    @alone
    def _slide_under(self, values: Any, size: int | None) -> Any:
        most = check_size(size) if size is not None else 1 << 62
        table = read(values, len(self._given.skips))
        self._tie(table)
        core = self._core
        before, row = core.get(END), 0
        with core.call(table.rows) as call:
            columns, outputs = call.columns(table), call.outputs(table.rows)
            try:
                while row < table.rows:
                    row = core.run.slide_under(core.m, columns, outputs, row, table.rows, most)
                    if row < table.rows:
                        self._resize(2 * core.get(CAPACITY))
            except OverflowError as error:
                raise call.at_row(error, core.get(END) - before - 1) from None
            finally:
                self._shrink()
            return call.answers(table.kind)

    @classmethod
    def open(
        cls,
        store: Store,
        name: str,
        operator: Operator | None = None,
        policy: Policy | None = None,
        *,
        buffer: int | None = None,
    ) -> Self:
        """The window of this name in a store, as it was at its last `sync`.  Ready operators are
        known by their names, also `together`; give one of your own, and the policy if there is one.

        >>> import sash
        >>> store = sash.stores.memory()
        >>> from sash.aggregators import Amta
        >>> window = Amta(sash.operators.max.of(int), store=store, name="peak")
        >>> window.insert(3)
        >>> window.sync()
        >>> window.insert(5)
        >>> window.release()  # what was not synced is lost, as by a kill
        >>> Amta.open(store, "peak").query()
        3
        """
        from .stored import open_window

        return open_window(cls, store, name, operator, policy, buffer)  # type: ignore[return-value]

    def sync(self) -> None:
        """Make all up to now durable, for a window with a store: after a kill, or a failure of the
        machine, `open` has this state."""
        raise TypeError(
            f"this {type(self).__name__} has no store to sync with; make it with "
            f"{type(self).__name__}(operator, store=…, name='…'), or save it with to_bytes()"
        )

    def release(self) -> None:
        """Let another process, or another window of this one, open the window in its store.  What
        was not synced is lost, and this window cannot be used any more."""

    def _take(self, policy: Policy) -> None:
        """Take a policy, if there are no values yet."""
        given = self._given.shown
        if self._length():
            raise ValueError(
                f"this window holds values whose aggregates for {policy!r} were not kept; make it "
                f"with {type(self).__name__}({given.name}, policy=…)"
            )
        made = guard(given, policy)
        core = self._make(made, self._kernels[1])
        vars(self).update(_given=made, _core=core, _policy=policy)  # all in one step

    def _leave(self, count: int) -> None:
        self._shed(self._core.run.leave, count)
        if count <= FEW:
            self._settle()

    def _shed(self, shed: Any, *given: Any) -> None:
        """Have a kernel evict, and note what memory must be given back, also after an error of a
        policy's rule: values may have left before it."""
        core = self._core
        try:
            shed(core.m, *given)
        except BaseException as error:
            if sound_after(core, error):
                self._note()
            raise
        self._note()

    def _note(self) -> None:
        """Note whether memory must be given back, and do so if it is little."""
        core = self._core
        capacity = core.header[CAPACITY]
        self._owes = 4 * (core.header[END] - core.header[START]) < capacity > core.floor
        if capacity * core.width <= MUCH:
            self._settle()

    def _settle(self) -> None:
        """Give back the memory that is owed."""
        if self._owes:
            self._shrink()

    def _shrink(self) -> None:
        super()._shrink()
        self._owes = False

    def _move(self, capacity: int) -> None:
        core = self._core
        blocks = level_blocks(core.get(START), core.get(END), core.get(CAPACITY), capacity)
        core.resize(capacity, blocks)
        core.header[SWEPT] = core.get(START)  # what had left was left behind

    @classmethod
    def from_bytes(cls, data: bytes, operator: Operator, policy: Policy | None = None) -> Self:
        """The window again, from what `to_bytes` gave and the same operator and policy."""
        made = super().from_bytes(data, guard(operator, policy))
        made._policy = policy
        made._note()
        return made

    # For `_check`

    def _node(self, level: int, index: int) -> Any:
        """A node of a level."""
        capacity = self._core.get(CAPACITY)
        wide = capacity >> level
        return self._core.peek(RING + 2 * capacity - 2 * wide + (index & (wide - 1)))

    def _levels(self) -> int:
        """How many levels there is room for."""
        return self._core.get(CAPACITY).bit_length()

    def _beside(self, level: int) -> int:
        """The slot beside a level."""
        return RING + 2 * self._core.get(CAPACITY) + level

    def _join(self, *partials: Any) -> Any:
        """Partials combined."""
        return reduce(self._core.operator.python_combine(), partials)

    def _fold(self, start: int, end: int) -> Any:
        """The elements from one position to another combined."""
        return self._join(
            self._core.operator.identity, *(self._node(0, i) for i in range(start, end))
        )

    def _equal(self, one: Any, other: Any) -> bool:
        return (self._core.operator.equal or same)(one, other)
