"""Windows in levels whose middle is in a store: `Amta(operator, store=…, name=…)`, and LogMta.

    time       as in memory; a store is called once for many values, for the most part in the
               background
    space      O(log n) pages of nodes in memory, the rest in the store

Where to find what:

    stored_kernel   what kernels do with pages, with a drawing of what is in memory
    page_slots      where the nodes of pages are in memory
    resident        the pages in memory: which must be there, and how they come and go
    pages           their way to the store and back, in the background
    worker          a thread in the background
    lives           which opening of a window wrote a page
    stored_root     the record that `sync` writes last
    stored_copies   the same window in memory, for snapshots and checks

`sync` writes all pages that have left the tails, then the root: the header, the slots beside
levels, and the tails, in one record.  A page never changes, and pages that hold nothing but values
that have left are deleted after the `sync` that follows.  So the root always finds all pages that
it needs, and whatever was written after it is written over.
"""

from __future__ import annotations

from typing import Any, NoReturn, Self

from ..kernels.columns import read
from ..kernels.core import BufferCore, ObjectCore, encoder, make_core
from ..kernels.program import Kernel, specialise
from ..kernels.slots import CAPACITY, END, HEADER, START
from ..operators.contract import Operator
from ..policies.contract import Policy, guard
from ..stores.contract import Space, Store, StoreError
from .guard import alone
from .in_order import InOrder, check_size
from .level_window import LevelWindow
from .levels import RING
from .lives import Lives
from .page_slots import PageSlots, bits_for, bits_of
from .pages import Pages
from .recipes import recipe_of, remade
from .resident import Resident
from .snapshot import as_told, check_told, describe
from .stored_copies import check, in_memory
from .stored_kernel import BITS, FIRST, LAST, LEVELS, MIDDLE_LEVEL, PHASE, STORED
from .stored_root import Root, read_root

__all__ = ["open_window", "stored_class"]


class StoredLevels(Resident):
    """A window in levels over a store.  Its one difference in use: `sync` and `release`."""

    _plain: type[LevelWindow]

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
        if not isinstance(store, Store):
            raise TypeError(
                "store is where the window is kept, such as sash.stores.rocksdb('folder'), not "
                f"{store!r}"
            )
        if name is None:
            raise TypeError("a window in a store has a name: Amta(operator, store=…, name='…')")
        if capacity is not None:
            raise TypeError("a window in a store has no capacity: leave it out, or the store")
        self._cache = None if cache is None else bits_of(cache)
        claimed = store.claim(name)
        try:
            if (root := claimed.root()) is not None:
                read_root(root, claimed)  # raises if `open` would
                raise ValueError(
                    f"{claimed!r} is there already; open it with {self._plain.__name__}.open("
                    "store, name), or remove it with store.drop(name)"
                )
            claimed.clear_unrooted()
            self._begin(claimed, buffer)
            super().__init__(operator, policy)
        except BaseException:
            claimed.release()
            raise

    def _begin(self, claimed: Space, buffer: int | None) -> None:
        if buffer is not None and (
            isinstance(buffer, bool) or not isinstance(buffer, int) or buffer < 1
        ):
            raise ValueError(f"buffer is a number of nodes, from 1 on, not {buffer!r}")
        self._buffer = buffer
        self._pages = Pages(claimed.in_order())
        self._tags, self._bare = {}, set()
        self._deleted, self._rooted = [0] * 64, False

    @property
    def _kernel(self) -> Kernel:  # type: ignore[override]
        return self._stored_kernels[self._given.rule is not None]

    def _make(self, operator: Operator, kernel: Kernel | None = None) -> BufferCore | ObjectCore:
        if kernel is not None:  # of windows in memory; `_take` asks for one with a rule
            kernel = self._stored_kernels[self._kernels.index(kernel)]
        kernel = kernel or self._kernel
        bits = self._cache or bits_for(specialise(kernel, operator).layout)
        self._at = PageSlots(bits)
        self._pages.most = 2 if self._buffer is None else -(-self._buffer >> bits) or 1
        core = make_core(kernel, operator, self._at.room(self._first_levels()))
        if isinstance(core, ObjectCore):
            encoder(operator)  # raises, naming the operator
        self._begin_memory(core, bits)
        return core

    # one value at a time

    @alone
    def insert(self, value: Any) -> None:
        """Add a value at the young end; None is null, a tuple has a value for each column."""
        core = self._core
        header = core.header
        if header[END] + 1 >= header[LAST]:
            self._make_room()
        core.fill(value)
        core.run.insert(core.m, core.cell, 0)

    @alone
    def evict(self) -> None:
        """Drop the oldest value."""
        core = self._core
        header = core.header
        if header[END] == header[START]:
            raise IndexError("evict from an empty window: insert a value first")
        if header[START] + 1 >= header[FIRST]:
            self._move_head()
        core.run.evict(core.m)

    # many

    @alone
    def slide(self, values: Any, size: int | None = None) -> Any:
        """Insert each value in turn, with at most `size` in the window, enforce the policy if there
        is one, and answer after each.  Without a policy there must be a size."""
        if self._policy is None and size is None:
            raise TypeError("slide needs a size, or a window with a policy")
        most = check_size(size) if size is not None else 1 << 62
        table = read(values, len(self._given.skips))
        self._tie(table)
        core = self._core
        run = core.run.slide if self._policy is None else core.run.slide_under
        before, row = core.get(END), 0
        with core.call(table.rows) as call:
            columns, outputs = call.columns(table), call.outputs(table.rows)
            try:
                while row < table.rows:
                    row = run(core.m, columns, outputs, row, table.rows, most)
                    self._changing = False
                    if row < table.rows:
                        self._serve()
            except BaseException as error:
                core.header[PHASE] = 0
                if isinstance(error, OverflowError):
                    raise call.at_row(error, core.get(END) - before - 1) from None
                raise
            return call.answers(table.kind)

    def _leave(self, count: int) -> None:
        core = self._core
        header = core.header
        goal = header[START] + count
        few = count < 62 and 1 << count <= self._length()
        if few and goal < header[FIRST] + (1 << self._at.bits):
            if goal >= header[FIRST]:  # what may fail comes first
                self._move_head()
            for _ in range(count):
                core.run.evict(core.m)
        elif count:
            self._load_heads(goal)
            core.run.jump(core.m, count)
            self._changing = False

    def _shed(self, shed: Any, *given: Any) -> None:
        core = self._core
        try:
            while not shed(core.m, *given):
                self._changing = False
                self._serve()
            self._changing = False
        except BaseException:
            core.header[PHASE] = 0
            raise

    # the store

    @alone
    def sync(self) -> None:
        """Make all up to now durable: after a kill, or a failure of the machine, `open` has this
        state."""
        self._pages.flush()
        self._rooted = True
        self._pages.space.write({}, root=self._root())
        self._delete_old()

    def release(self) -> None:
        """Let another process, or another window of this one, open the window in its store.  What
        was not synced is lost, and this window cannot be used any more."""
        if self._pages.space.released:
            return
        let_go = f"{self._pages.space!r} was let go of by release(); open it again"
        if not self._broken:
            try:
                del self._free
            except AttributeError:
                self._refuse()
            self._broken = let_go  # before what may be interrupted, and is then called again
        self._pages.close()
        self._broken = let_go

    def _refuse(self) -> NoReturn:
        if self._pages.space.released:
            raise StoreError(self._broken)
        super()._refuse()

    def _root(self) -> bytes:
        """What is not in pages: header, slots beside levels, tails."""
        core = self._core
        oldest = self._pages.oldest(self._deleted)
        said = {
            "window": describe(self, core),
            "recipe": recipe_of(core.operator.shown),
            "policy": None if self._policy is None else self._policy.name,
            "header": [int(core.get(i)) for i in range(HEADER)],
            "deleted": oldest,
            "lives": self._pages.lives.kept(oldest),
        }
        runs = [(0, STORED), *self._at.in_tails(core.get(START), core.get(END))]
        return Root(said, [core.dump_slots(*run) for run in runs]).to_bytes()

    def _restore(self, root: Root) -> None:
        """Be the window of a root."""
        core, said, header = self._core, root.said, root.said["header"]
        if header[LEVELS] > core.get(LEVELS):
            core.resize(self._at.room(header[LEVELS] // self._at.high), [])
        capacity = core.get(CAPACITY)
        for field, value in enumerate(header):
            core.header[field] = value
        core.header[CAPACITY], core.header[MIDDLE_LEVEL] = capacity, -1
        runs = [(0, STORED), *self._at.in_tails(core.get(START), core.get(END))]
        for (at, count), data in zip(runs, root.slots, strict=True):
            core.load_slots(at, count, data)
        self._deleted, self._rooted = list(said["deleted"]), True
        young = {level: self._young(level) for level in self._leaves(len(self._deleted))}
        self._pages.lives = Lives(said["lives"])
        self._pages.lives.begin(young)
        self._load_heads(core.get(START))
        self._changing = False
        # pages that were written after the root, between which others may be missing that left
        # while they waited
        self._pages.delete(self._pages.there([*young.items()]))
        self._delete_old()

    # what is not as in memory

    def __copy__(self) -> Self:
        self._refuse_copy()

    def _refuse_copy(self) -> NoReturn:
        raise TypeError(
            f"{self._pages.space!r} has one writer, so it cannot be copied; "
            f"{self._plain.__name__}.from_bytes(window.to_bytes(), operator) is a copy in memory"
        )

    def _beside(self, level: int) -> int:
        return RING + level

    def _levels(self) -> int:
        return self._core.get(LEVELS)

    def _settle(self) -> None:
        """Memory is what it is."""

    def _note(self) -> None:
        """Memory is what it is."""

    def _shrink(self) -> None:
        """Memory is what it is."""

    @alone
    def to_bytes(self) -> bytes:
        """The whole window as bytes, with a version and a checksum, as of one in memory."""
        return in_memory(self, self._plain).to_bytes()

    def _check(self) -> None:
        check(self, self._plain)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self._pages.space!r}>"


_classes: dict[type[LevelWindow], Any] = {}


def stored_class(plain: type[LevelWindow]) -> type[LevelWindow]:
    """The class of windows of an algorithm that are in a store."""
    if issubclass(plain, StoredLevels):
        return plain
    if plain not in _classes:
        said = {"_plain": plain, "__doc__": plain.__doc__, "__module__": plain.__module__}
        _classes[plain] = type(plain.__name__, (StoredLevels, plain), said)
    return _classes[plain]  # type: ignore[no-any-return]


def open_window(
    plain: type[LevelWindow],
    store: Store,
    name: str,
    operator: Operator | None,
    policy: Policy | None,
    buffer: int | None,
) -> LevelWindow:
    """A window as it was at its last `sync`."""
    claimed = store.claim(name)
    try:
        data = claimed.root()
        if data is None:
            raise KeyError(
                f"{store!r} has no window {name!r} that was synced; it has "
                f"{', '.join(map(repr, store.names())) or 'none'}"
            )
        root = read_root(data, claimed)
        said = root.said
        if operator is None:
            operator = remade(said["recipe"], f"{plain.__name__}.open({name!r}, …)")
        if (said["policy"] is None) != (policy is None):
            had = f"the policy {said['policy']}" if said["policy"] else "no policy"
            raise ValueError(f"{claimed!r} has {had}; open it with that: open(…, policy=…)")
        kind: Any = stored_class(plain)
        made: StoredLevels = kind.__new__(kind)
        made._cache = said["header"][BITS]
        made._begin(claimed, buffer)
        told = as_told(said["window"], guard(operator, policy))
        InOrder.__init__(made, told)
        made._given, made._policy = guard(operator, policy), policy
        check_told(said["window"], describe(made, made._core))
        made._restore(root)
    except BaseException:
        claimed.release()
        raise
    return made
