"""Windows in levels whose middle is in a store: `Amta(operator, store=…, name=…)`, and LogMta.

    time       as in memory; a store is called once for many values, for the most part in the
               background
    space      O(log n) pages of nodes in memory, the rest in the store

`stored_kernel` has a drawing of what is in memory, and `pages` of its way to the store and back.

`sync` writes all pages that have left the tails, then the root: the header, the slots beside
levels, and the tails, in one record.  A page never changes, and pages that hold nothing but values
that have left are deleted after the `sync` that follows.  So the root always finds all pages that
it needs, and whatever was written after it is written over.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator
from operator import index as as_index
from typing import Any, NoReturn, Self

from ..kernels.columns import read
from ..kernels.core import BufferCore, ObjectCore, encoder, make_core
from ..kernels.layout import Layout
from ..kernels.program import Kernel, specialise
from ..kernels.slots import CAPACITY, END, HEADER, START
from ..operators.contract import Operator
from ..policies.contract import Policy, guard
from ..stores.contract import Space, Store, StoreError
from ..stores.sealed import Damaged
from .guard import alone
from .in_order import InOrder, capacity_for, check_size
from .level_window import LevelWindow
from .levels import RING
from .lives import Lives
from .pages import Pages, Place
from .recipes import recipe_of, remade
from .snapshot import as_told, check_told, describe
from .stored_kernel import (
    BITS,
    FEWEST,
    FIRST,
    GOAL,
    HEADS,
    LAST,
    LEVELS,
    MIDDLE_LEVEL,
    MIDDLE_PAGE,
    PHASE,
    PLACES,
    READY,
    STEP,
    STORED,
    TAILS,
    WANTED,
    WHOLE,
)

__all__ = ["open_window", "stored_class"]

_DESCENT, _JUMP = 2, 3  # phases of `enforce`
_VERSION = 4
_SIZE = struct.Struct("<I")
_FEW_LEVELS = 4
#: A page has so many bytes, unless a cache is given.  Each stop of `slide` at a page's end costs
#: some 50 µs; in memory are twelve pages and nodes above them, at each of two or three levels.
_PAGE = 1 << 17
_OBJECTS = 256  # in a page: how many bytes they take is not known
_LARGEST = 16  # bits
_AHEAD = 3  # pages of each level that are read ahead
#: Pages that have left are deleted so many at a time, while there is no root that needs them.
_LEFT = 32


class StoredLevels(LevelWindow):
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
        self._cache = None if cache is None else _bits_of(cache)
        claimed = store.claim(name)
        try:
            if (root := claimed.root()) is not None:
                _check_version(json.loads(_blobs(root, claimed)[0]), claimed)
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
        self._tags: dict[Place, int] = {}  # the page at each place of a head: level, place
        self._bare: set[Place] = set()  # pages of heads without the nodes that stores have not
        self._deleted: list[int] = [0] * 64  # pages of each level that are gone from the store
        self._rooted = False  # whether there may be a root, which needs pages that have left since

    @property
    def _kernel(self) -> Kernel:  # type: ignore[override]
        return self._stored_kernels[self._given.rule is not None]

    def _make(self, operator: Operator, kernel: Kernel | None = None) -> BufferCore | ObjectCore:
        if kernel is not None:  # of windows in memory; `_take` asks for one with a rule
            kernel = self._stored_kernels[self._kernels.index(kernel)]
        kernel = kernel or self._kernel
        bits = self._cache or _bits_for(specialise(kernel, operator).layout)
        self._bits, self._high = bits, bits - FEWEST
        self._pages.most = 2 if self._buffer is None else -(-self._buffer >> bits) or 1
        count = -(-(bits + _FEW_LEVELS) // self._high)
        core = make_core(kernel, operator, self._room(count))
        if isinstance(core, ObjectCore):
            encoder(operator)  # raises, naming the operator
        core.header[BITS], core.header[LEVELS] = bits, count * self._high
        core.header[LAST] = 2 << bits
        core.header[FIRST] = 1 << bits
        core.header[MIDDLE_LEVEL], core.header[WHOLE] = -1, 1
        return core

    def _room(self, count: int) -> int:
        """The slots of the middle page, and of so many levels that have leaves."""
        return (2 + PLACES * count) << self._bits

    def _leaves(self, levels: int | None = None) -> range:
        """The levels that have the leaves of pages."""
        return range(0, self._core.get(LEVELS) if levels is None else levels, self._high)

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
        if few and goal < header[FIRST] + (1 << self._bits):
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

    # what a kernel lacks

    def _serve(self) -> None:
        """See to what a kernel has come back for."""
        header = self._core.header
        if header[PHASE] == _DESCENT:
            self._load_middle(header[WANTED] & 63, header[WANTED] >> 6)
        elif header[PHASE] == _JUMP:
            self._load_heads(header[GOAL])
            header[READY] = header[GOAL]
        else:
            page = 1 << self._bits
            if header[START] + page >= header[FIRST]:
                self._move_head()
            if header[END] + 1 >= header[LAST]:
                self._make_room()

    def _make_room(self) -> None:
        """Save the pages that leave the tails when END comes to LAST."""
        core, bits = self._core, self._bits
        self._pages.check()
        start, last = core.get(START), core.get(LAST)
        if (last + (1 << bits) - start).bit_length() + 2 > core.get(LEVELS):
            self._add_levels()
        for level in self._leaves():
            if last & ((1 << bits + level) - 1):
                break
            page = ((last >> level) >> bits) - 2
            head = (start >> level) >> bits
            if page >= head and page >= 0:
                runs = self._runs(self._tail_slot, level, page)
                self._pages.save((level, page), _framed(core.pack_slots(*run) for run in runs))
                if page <= head + 2:
                    self._tags.pop((level, page & 3), None)
                    for above in range(self._high):
                        to = self._head_slot(level, page, above)
                        at = self._tail_slot(level, page, above)
                        core.copy_slots(to, at, 1 << bits - above)
                    self._bare.discard((level, page))
                    self._tags[level, page & 3] = page
        core.header[LAST] = last + (1 << bits)
        if not self._rooted and (start >> bits) - self._deleted[0] >= _LEFT:
            self._delete_old()  # here, where all that grows comes by, whichever way values leave

    def _add_levels(self) -> None:
        """Make room for more levels."""
        core = self._core
        count = core.get(LEVELS) // self._high
        more = count + -(-_FEW_LEVELS // self._high)
        self._replace(core.resize, self._room(more), [(0, 0, STORED + self._room(count))])
        core.header[LEVELS] = more * self._high

    def _move_head(self) -> None:
        """Load the pages that are needed when START comes to FIRST, and have those behind them
        read ahead."""
        bits, header = self._bits, self._core.header
        first = header[FIRST]
        needed, ahead = [], []
        for level in self._leaves():
            if first & ((1 << bits + level) - 1):
                break
            head = (first >> level) >> bits
            self._pages.first[level] = head - 1  # which START may still be in
            young = self._young(level)
            needed += [(level, p) for p in (head, head + 1) if p < young]
            ahead += [(level, p) for p in range(head + 2, min(head + 2 + _AHEAD, young))]
        lacking = [place for place in needed if not self._has(*place)]
        if lacking:
            self._put(lacking, self._pages.load(lacking))
        if self._bare:
            self._make_whole()
        if ahead:
            self._pages.fetch([place for place in ahead if not self._has(*place)])
        header[FIRST] = first + (1 << bits)

    def _young(self, level: int) -> int:
        """The first page of a level that is not saved: from here on they are in the tail alone."""
        return max((-(-self._core.get(LAST) >> level + self._bits)) - 2, 0)

    def _load_heads(self, goal: int) -> None:
        """Load the pages at the heads of all levels for a START that is elsewhere."""
        bits, header = self._bits, self._core.header
        needed = []
        for level in self._leaves():
            head, young = (goal >> level) >> bits, self._young(level)
            needed += [(level, p) for p in (head, head + 1) if p < young]
        needed = [place for place in needed if not self._has(*place)]
        found = self._pages.load(needed)
        self._pages.forget_fetched()
        self._changing = True  # until START is there
        header[WHOLE] = 0
        self._put(needed, found)
        header[FIRST] = ((goal >> bits) + 1) << bits

    def _has(self, level: int, page: int) -> bool:
        return self._tags.get((level, page & 3)) == page

    def _put(self, places: list[Place], found: list[Any]) -> None:
        for (level, page), data in zip(places, found, strict=True):
            self._tags.pop((level, page & 3), None)
            self._load(self._runs(self._head_slot, level, page), data)
            self._tags[level, page & 3] = page
            self._bare.add((level, page))

    def _make_whole(self) -> None:
        """Compute all nodes of the pages at the heads."""
        core, bits = self._core, self._bits
        for level, page in sorted(self._bare):
            if self._has(level, page) and page >= (core.get(START) >> level) >> bits:
                core.run.rebuild(core.m, self._base(level), HEADS << bits, level, page)
        self._bare.clear()
        core.header[WHOLE] = 1

    def _load_middle(self, level: int, page: int) -> None:
        header = self._core.header
        (data,) = self._pages.load([(level, page)])
        header[MIDDLE_LEVEL] = -1
        self._load(self._runs(self._middle_slot, level, page), data)
        header[MIDDLE_LEVEL], header[MIDDLE_PAGE] = level, page

    def _load_whole(self, level: int, page: int) -> None:
        """The same with all nodes above the leaves."""
        self._load_middle(level, page)
        self._core.run.rebuild(self._core.m, STORED, 1 << self._bits, level, page)

    def _load(self, runs: list[tuple[int, int]], data: Any) -> None:
        for run, blob in zip(runs, _unframed(data), strict=True):
            self._core.unpack_slots(*run, blob)

    def _runs(
        self, slot: Callable[[int, int, int], int], level: int, page: int
    ) -> list[tuple[int, int]]:
        """The runs of slots whose nodes a store has of a page: first slot, how many."""
        above = range(0, self._high, STEP)
        return [(slot(level, page, some), 1 << self._bits - some) for some in above]

    def _base(self, level: int) -> int:
        """Where the pages begin that have their leaves on a level."""
        return STORED + ((2 + PLACES * (level // self._high)) << self._bits)

    def _head_slot(self, level: int, page: int, above: int = 0) -> int:
        """Where the nodes of a page begin at the head, some levels above its leaves."""
        return self._base(level) + self._in_ring(HEADS, page, above)

    def _tail_slot(self, level: int, page: int, above: int = 0) -> int:
        """The same at the tail."""
        at = self._base(level) + (2 * HEADS << self._bits)
        return at + self._in_ring(TAILS, page, above)

    def _middle_slot(self, level: int, page: int, above: int = 0) -> int:
        """The same in the middle."""
        return STORED + self._in_ring(1, 0, above)

    def _in_ring(self, pages: int, page: int, above: int) -> int:
        """Where the nodes of a page begin in a ring of pages."""
        ring, page = pages << self._bits, page & (pages - 1)
        return 2 * (ring - (ring >> above)) + (page << self._bits - above)

    # the store

    @alone
    def sync(self) -> None:
        """Make all up to now durable: after a kill, or a failure of the machine, `open` has this
        state."""
        self._pages.flush()
        self._rooted = True
        self._pages.space.write({}, root=self._root())
        self._delete_old()

    def _delete_old(self) -> None:
        """Have the pages deleted of values that have left, if no root needs them."""
        start, gone, deleted = self._core.get(START), [], list(self._deleted)
        for level in self._leaves(len(deleted)):
            page = (start >> level) >> self._bits
            gone += [(level, p) for p in range(deleted[level], page)]
            deleted[level] = self._pages.first[level] = page
        self._pages.delete(gone)
        self._deleted = deleted  # only now: if that is interrupted, they are deleted once more

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
        op = core.operator
        oldest = self._pages.oldest(self._deleted)
        said = {
            "version": _VERSION,
            "window": describe(self, core),
            "recipe": recipe_of(op.shown),
            "policy": None if self._policy is None else self._policy.name,
            "header": [int(core.get(i)) for i in range(HEADER)],
            "deleted": oldest,
            "lives": self._pages.lives.kept(oldest),
        }
        runs = [(0, STORED), *self._in_tails()]
        return _framed([[json.dumps(said).encode()], *([core.dump_slots(*run)] for run in runs)])

    def _in_tails(self) -> list[tuple[int, int]]:
        """The runs of slots at the tails that hold something: first slot, how many."""
        bits, start, end = self._bits, self._core.get(START), self._core.get(END)
        runs = []
        for level in self._leaves((end - start).bit_length() + 1):
            last = (end >> level) >> bits
            for page in (last - 1, last):
                for above in range(self._high):
                    after = max(end - 1 >> level + above, -1) + 1
                    count = min(after - (page << bits - above), 1 << bits - above)
                    if count > 0 and page >= (start >> level) >> bits:
                        runs.append((self._tail_slot(level, page, above), count))
        return runs

    def _restore(self, said: dict[str, Any], blobs: list[bytes]) -> None:
        """Be the window of a root."""
        core, header = self._core, said["header"]
        if header[LEVELS] > core.get(LEVELS):
            core.resize(self._room(header[LEVELS] // self._high), [])
        capacity = core.get(CAPACITY)
        for field, value in enumerate(header):
            core.header[field] = value
        core.header[CAPACITY], core.header[MIDDLE_LEVEL] = capacity, -1
        core.load_slots(0, STORED, blobs[0])
        for (at, count), data in zip(self._in_tails(), blobs[1:], strict=True):
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
        return self._in_memory().to_bytes()

    def _in_memory(self) -> LevelWindow:
        """The same window in memory."""
        core = self._core
        start, end = core.get(START), core.get(END)
        made = self._plain(self._given.shown, self._policy)
        made._given = self._given
        made._core = InOrder._make(made, core.operator)
        capacity = capacity_for(end - start)
        if capacity > made._core.get(CAPACITY):
            made._core.resize(capacity, [])
        capacity = made._core.get(CAPACITY)
        for field in range(1, BITS):
            made._core.header[field] = core.header[field]
        bits = self._bits
        for level in self._leaves(capacity.bit_length()):
            young = ((end >> level) >> bits) - 1
            for page in range((start >> level) >> bits, ((end - 1 >> level) >> bits) + 1):
                if page < young:
                    self._load_whole(level, page)
                for above in range(min(self._high, capacity.bit_length() - level)):
                    wide = capacity >> level + above
                    first, last = start >> level + above, end - 1 >> level + above
                    low = max(page << bits - above, first, last + 1 - wide)
                    high = min((page + 1) << bits - above, last + 1)
                    slot = self._middle_slot if page < young else self._tail_slot
                    at = slot(level, page, above) - (page << bits - above)
                    while low < high:  # up to where the ring comes round
                        some = min(high - low, wide - (low & (wide - 1)))
                        to = RING + 2 * capacity - 2 * wide + (low & (wide - 1))
                        _copy(made._core, to, core, at + low, some)
                        low += some
        _copy(made._core, 0, core, 0, RING)
        _copy(made._core, RING + 2 * capacity, core, RING, capacity.bit_length() + 1)
        return made

    def _check(self) -> None:
        core, bits = self._core, self._bits
        header = core.header
        start, end = header[START], header[END]
        assert 0 <= start <= end < header[LAST]
        assert start < header[FIRST]
        assert header[PHASE] == 0
        assert (end - start).bit_length() + 2 <= header[LEVELS] <= 64
        for level in self._leaves():
            head, young = (start >> level) >> bits, ((end >> level) >> bits) - 1
            for page in range(head, young):
                if page <= head + 1:
                    assert self._has(level, page), f"page {page} of level {level} is not there"
                if self._has(level, page):
                    self._check_head(level, page)
        self._in_memory()._check()

    def _check_head(self, level: int, page: int) -> None:
        """A page at the head is as it is in the store, but for what has left in part."""
        core, bits = self._core, self._bits
        self._load_whole(level, page)
        for above in range(0, self._high, STEP):
            first = page << bits - above
            gone = max(-(-core.get(START) >> level + above) - first, 0)
            count = (1 << bits - above) - gone
            if count > 0:
                mine = core.dump_slots(self._head_slot(level, page, above) + gone, count)
                kept = core.dump_slots(self._middle_slot(level, page, above) + gone, count)
                assert mine == kept, f"page {page} of level {level} differs"

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self._pages.space!r}>"


def _copy(to_core: Any, to: int, core: Any, at: int, count: int) -> None:
    """Copy a run of slots from one memory into another."""
    to_core.load_slots(to, count, core.dump_slots(at, count))


_classes: dict[type[LevelWindow], Any] = {}


def stored_class(plain: type[LevelWindow]) -> type[LevelWindow]:
    """The class of windows of an algorithm that are in a store."""
    if issubclass(plain, StoredLevels):
        return plain
    if plain not in _classes:
        said = {"_plain": plain, "__doc__": plain.__doc__, "__module__": plain.__module__}
        _classes[plain] = type(plain.__name__, (StoredLevels, plain), said)
    return _classes[plain]  # type: ignore[no-any-return]


def _bits_of(cache: Any) -> int:
    """How many bits number the nodes of a page, for a number of nodes that a cache has."""
    try:
        whole = as_index(cache)
    except TypeError:
        whole = 0
    if whole < 16 or whole & (whole - 1):
        raise ValueError(
            "cache is a number of nodes at a level's head, a power of two from 16 on, not "
            f"{cache!r}"
        )
    return whole.bit_length() - 2


def _bits_for(layout: Layout | None) -> int:
    """How many bits number the nodes of a page of some bytes."""
    nodes = _OBJECTS if layout is None else _PAGE // (8 * max(layout.words, 1))
    return min(max(nodes.bit_length() - 1, 3), _LARGEST)


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
        root = claimed.root()
        if root is None:
            raise KeyError(
                f"{store!r} has no window {name!r} that was synced; it has "
                f"{', '.join(map(repr, store.names())) or 'none'}"
            )
        head, *blobs = _blobs(root, claimed)
        said = json.loads(head)
        _check_version(said, claimed)
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
        made._restore(said, blobs)
    except BaseException:
        claimed.release()
        raise
    return made


def _framed(blobs: Iterable[list[Any]]) -> bytes:
    """Several runs of bytes as one, each of them in pieces: bytes or arrays."""
    parts: list[Any] = []
    for pieces in blobs:
        parts += (_SIZE.pack(sum(memoryview(piece).nbytes for piece in pieces)), *pieces)
    return b"".join(parts)


def _unframed(data: Any) -> Iterator[Any]:
    """What `_framed` was given, of bytes or a view of them."""
    at = 0
    while at < len(data):
        (size,) = _SIZE.unpack_from(data, at)
        at += _SIZE.size + size
        yield data[at - size : at]


def _blobs(root: bytes, claimed: Space) -> list[bytes]:
    made = list(_unframed(root))
    if not made or not made[0].startswith(b"{"):
        raise Damaged(f"{claimed!r} is no window, but perhaps a stream: open it with its query")
    return made


def _check_version(said: dict[str, Any], claimed: Space) -> None:
    """Refuse what another release has written."""
    if said["version"] != _VERSION:
        raise ValueError(
            f"{claimed!r} was written by another release of sash, in version {said['version']}, "
            f"and this one reads version {_VERSION}: go on with that release, or remove the window "
            "with store.drop(name) and begin anew"
        )
