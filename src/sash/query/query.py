"""A query: aggregates over columns, a window, and keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from ..policies import Policy
from ..windows import Aligned, Driven, Ruled, Sized, Window
from .aggregates import Aggregate
from .conditions import Condition
from .resolving import resolved
from .signatures import ArrowStream, Columns, Emit, Frame, LazyFrame, Mode, SlicingName

if TYPE_CHECKING:
    import pyarrow

    from ..engine.stream import Stream
    from ..explain import Explanation
    from ..stores.contract import Store

__all__ = ["RESERVED", "Query"]

#: Names that results have for themselves.
RESERVED = ("window", "window_start", "window_end", "revision")


def column_kept(name: str, window: Window) -> ValueError:
    """The error for a name that a result would have twice."""
    return ValueError(
        f"{window!r} keeps all columns of its events, and adds some, so the result would have "
        f"{name!r} twice; choose another name, or rename or drop that column first"
    )


@dataclass(frozen=True, kw_only=True)
class Query:
    """What to compute, over which windows, for each of which keys.

    `time` names the column with the events' times.  `by` names the key columns, if any.  `select`
    has an aggregate for each column of the result.  `where` is an Arrow expression
    (`pyarrow.compute.field("x") > 0`) that rows must satisfy.  `tie` names a column that puts
    events of one time in order where arrival does not, as on Spark.  With `emit="changes"` a
    window is emitted only if its values differ from those of the same key's window before it.

    An aggregate of `select` may have windows of another size (`Aggregate.over`), which end together
    with the query's; the rows are those of the query's own windows.

    >>> import sash
    >>> q = sash.Query(
    ...     time="ts",
    ...     by=["origin"],
    ...     window=sash.sliding("3 hours", "1 minute"),
    ...     select={"n": sash.count(), "worst": sash.max("delay")},
    ... )
    >>> q.select["worst"]
    max('delay')
    """

    time: str
    window: Window
    select: Mapping[str, Aggregate]
    by: Sequence[str] = ()
    where: Any = None
    tie: str | None = None
    emit: Emit = "all"

    if TYPE_CHECKING:  # a policy is a window too, and becomes one

        def __init__(
            self,
            *,
            time: str,
            window: Window | Policy,
            select: Mapping[str, Aggregate],
            by: Sequence[str] = (),
            where: Any = None,
            tie: str | None = None,
            emit: Emit = "all",
        ) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.time, str):
            raise TypeError(f"time is the name of a column, not {self.time!r}")
        if not isinstance(self.window, Window | Policy):
            raise TypeError(
                "window is one of sash.sliding(…), sash.tumbling(…), sash.cumulate(…), "
                "sash.trailing(…), sash.lifetime(), sash.rows(…), sash.session(…), sash.delta(…), "
                "sash.punctuated(…), sash.window(keep=…, every=…), or a policy of sash.policies, "
                f"not {self.window!r}"
            )
        if not isinstance(self.by, Iterable):
            raise TypeError(f"by has the names of columns, such as ['k'], not {self.by!r}")
        by = (self.by,) if isinstance(self.by, str) else tuple(self.by)
        object.__setattr__(self, "by", by)
        self._check_select()
        self._check_sizes()
        if isinstance(self.window, Policy):
            object.__setattr__(self, "window", Ruled(self.window, self._read_by(self.window)))
        for name in by:
            if not isinstance(name, str):
                raise TypeError(f"by has the names of columns, not {name!r}")
        names = [*by, *self.select]
        for name in names:
            if name in RESERVED:
                raise ValueError(f"a result has {name!r} of its own; choose another name")
            if names.count(name) > 1:
                raise ValueError(f"{name!r} would be in the result twice; choose another name")
        if isinstance(self.window, Driven):
            for name in self.select:
                if name in self.columns:
                    raise column_kept(name, self.window)
        if self.emit not in ("all", "changes"):
            raise ValueError(f"emit is 'all' or 'changes', not {self.emit!r}")
        if self.tie is not None and not isinstance(self.tie, str):
            raise TypeError(f"tie is the name of a column, not {self.tie!r}")
        if self.where is not None:
            Condition.check_expression(self.where)

    def __deepcopy__(self, memo: Any) -> Query:
        """The query itself, which never changes."""
        return self

    def _check_select(self) -> None:
        if not isinstance(self.select, Mapping) or not self.select:
            raise TypeError(
                "select has a name and an aggregate for each column of the result, such as "
                f"{{'n': sash.count()}}, not {self.select!r}"
            )
        for name, chosen in self.select.items():
            if not isinstance(name, str):
                raise TypeError(f"select has text for names, not {name!r}")
            if isinstance(chosen, Aggregate):
                continue
            raise TypeError(
                f"select has {chosen!r} for {name!r}, which is no aggregate; give one such as "
                "sash.max('x'), or sash.aggregate(operator, 'x') for an operator of your own"
            )
        made = {name: resolved(a, self.time, self.window) for name, a in self.select.items()}
        object.__setattr__(self, "select", made)

    def _check_sizes(self) -> None:
        for name, chosen in self.select.items():
            if chosen.size is None:
                continue
            if not isinstance(self.window, Sized):
                raise ValueError(
                    f"select has {chosen!r} for {name!r}, and the window is {self.window!r}; an "
                    "aggregate has windows of a size of its own with sash.trailing(…), "
                    "sash.lifetime(), or sash.sliding(…) and sash.tumbling(…) without a timezone"
                )
            self.window.of_length(None if chosen.size == "lifetime" else chosen.size)

    @property
    def sizes(self) -> dict[str, int | None]:
        """The size of each aggregate's windows in microseconds, None for all since the beginning.
        It is the query's own, where the aggregate says no other (`Aggregate.over`).  For windows
        that have one size only.

        >>> import sash
        >>> select = {"n": sash.count(), "ever": sash.count().over(sash.lifetime())}
        >>> Query(time="t", window=sash.trailing(5), select=select).sizes
        {'n': 5, 'ever': None}
        """
        assert isinstance(self.window, Sized), f"{self.window!r} has no one size"
        made: dict[str, int | None] = {}
        for name, chosen in self.select.items():
            own = self.window.length if chosen.size is None else chosen.size
            made[name] = None if own == "lifetime" else own
        return made

    @property
    def several(self) -> bool:
        """True if an aggregate has windows of another size than the query's."""
        if not isinstance(self.window, Sized):
            return False
        return any(size != self.window.length for size in self.sizes.values())

    def _read_by(self, policy: Policy) -> tuple[str, ...]:
        """The columns that a policy reads: by their names, or by their places among the columns
        that are selected; or all of these, if it does not say."""
        selected = list(dict.fromkeys(c for a in self.select.values() for c in a.columns))
        wanted = policy.columns
        if wanted is None:
            if len(selected) == len(policy.over.skips):
                return tuple(selected)
            raise ValueError(
                f"the policy {policy.name} reads {len(policy.over.skips)} column(s), and the "
                f"aggregates read {len(selected)}; name the policy's own, as in "
                "sash.policies.at_most_sum(100, column='x')"
            )
        known = selected or [self.time]
        for column in wanted:
            if isinstance(column, int) and column >= len(known):
                raise ValueError(
                    f"the policy {policy.name} reads column {column} of those that are selected, "
                    f"which are {', '.join(known)}; name it instead, as in "
                    "sash.policies.at_most_sum(100, column='x')"
                )
        return tuple(known[c] if isinstance(c, int) else c for c in wanted)

    @property
    def aligned(self) -> Aligned:
        """The window, for code that aligned windows alone can reach."""
        assert isinstance(self.window, Aligned), f"{self.window!r} is not aligned"
        return self.window

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that the query reads, each once: time, keys, tie, the window's, and those of
        the aggregates and their conditions; those of `where` come on top."""
        read = [self.time, *self.by, *([self.tie] if self.tie else [])]
        read += [*self.window.columns, *(c for a in self.select.values() for c in a.reads)]
        return tuple(dict.fromkeys(read))

    @overload
    def run(
        self, table: Frame, *, threads: int | None = None, slicing: SlicingName = "auto"
    ) -> Frame: ...
    @overload
    def run(
        self, table: LazyFrame[Frame], *, threads: int | None = None, slicing: SlicingName = "auto"
    ) -> Frame: ...
    @overload
    def run(
        self,
        table: ArrowStream | Columns,
        *,
        threads: int | None = None,
        slicing: SlicingName = "auto",
    ) -> pyarrow.Table: ...

    def run(self, table: Any, *, threads: int | None = None, slicing: SlicingName = "auto") -> Any:
        """The results over a whole table (pandas, Polars or Arrow, rows in any order), as the
        same kind of table, ordered by keys, then window.  Where events drive the window, the result
        has a row for each that fires, with all its columns, in the table's order.

        `threads` says how many threads work on it; by default as many as the environment variable
        SASH_THREADS says, or else one for each core that the process may use.  Results are the same
        to the bit for any number of threads.

        `slicing` says how windows that are aligned to the clock are cut into slices: by "panes",
        "pairs", or "cutty", which has half as many and puts rows in order of time first; "auto" is
        pairs.  Results are the same, but for the rounding of floats that are added up.

        >>> import pyarrow as pa, sash
        >>> q = sash.Query(
        ...     time="t", window=sash.sliding("4 us", "2 us"), select={"n": sash.count()}
        ... )
        >>> q.run(pa.table({"t": [1, 2, 6]}))["n"].to_pylist()
        [1, 2, 1, 1, 1]
        """
        from ..engine import oracle
        from ..engine.run import run

        if oracle.asked_for():
            return oracle.run(self, table)
        try:
            return run(self, table, threads, slicing)
        except MemoryError:
            if not isinstance(self.window, Aligned):
                raise
            if self.window.empty:
                raise MemoryError(
                    f"the result does not fit into memory; it has a row for each window of "
                    f"{self.window!r} between two of a key that hold something: give idle='…', so "
                    "that longer gaps are left out, or let windows start less often"
                ) from None
            time = self.window.start(0)
            many = self.window.last(time) - self.window.first(time) + 1
            raise MemoryError(
                f"the result does not fit into memory; an event is in {many:,} windows of "
                f"{self.window!r}: let windows start less often, or ask for those that differ from "
                "the one before, with emit='changes'"
            ) from None

    def at(
        self,
        events: Any,
        questions: Any,
        *,
        time: str,
        known: str | None = None,
        threads: int | None = None,
    ) -> Any:
        """The values of the query at moments of your choosing: the rows of `questions`, in their
        order, each with the values as of its time, which is in the column `time`, for its key.

        The query's window is `trailing` or `lifetime`, and aggregates may have windows of other
        sizes (`Aggregate.over`).  A key that no event has gets the values over nothing.  With
        `known`, a column of the events that says when each became known, only events that were
        known by a question's time count: what the answer was then, not what it is now.

        >>> import pyarrow as pa, sash
        >>> q = sash.Query(time="t", by=["k"], window=sash.trailing(5), select={"n": sash.count()})
        >>> events = pa.table({"t": [1, 3, 9], "k": ["a", "a", "b"], "seen": [1, 8, 9]})
        >>> questions = pa.table({"k": ["b", "a", "a"], "asked": [9, 4, 2]})
        >>> q.at(events, questions, time="asked")["n"].to_pylist()
        [1, 2, 1]
        >>> q.at(events, questions, time="asked", known="seen")["n"].to_pylist()
        [1, 1, 1]
        """
        from ..engine.as_of import at

        return at(self, events, questions, time, known, threads)

    def stream(
        self,
        lateness: Any = 0,
        mode: Mode = "final",
        early: bool = False,
        schema: Any = None,
        keep_late: int | None = 1_000_000,
        *,
        store: Store | None = None,
        name: str | None = None,
        trust: Sequence[str] = (),
    ) -> Stream:
        """Start a stream of the query, which is fed batch by batch; see `sash.Stream`.

        With a `store` (`sash.stores`) the state lives there under a `name`, so that it can be
        larger than memory; `Stream.sync` makes it durable, and a stream of that name goes on
        from its last `sync`.  Another query is refused there; where only an operator of your own
        was mended, and its partials mean the same, name its aggregate in `trust`.  Where events
        drive the windows, rows then come by groups of keys, and not in the order of the events.

        >>> import sash
        >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.count()})
        >>> q.stream(lateness="5 seconds", mode="live").state_size()
        {'keys': 0, 'slices': 0, 'bytes': 0}
        """
        from ..engine import oracle
        from ..engine.stream import Stream

        made = oracle.OracleStream if oracle.asked_for() else Stream
        given = {"lateness": lateness, "mode": mode, "early": early}
        given |= {"schema": schema, "keep_late": keep_late}
        if store is None and name is None:
            return made._for(self)(self, **given)
        if made is not Stream:
            raise ValueError("SASH_ORACLE=1 runs streams in memory alone: leave out store and name")
        from ..engine.stored import open_stream

        return open_stream(made, self, store, name, trust, **given)  # type: ignore[arg-type,type-abstract]

    def explain(
        self, schema: Any = None, *, data: Any = None, slicing: SlicingName = "auto"
    ) -> Explanation:
        """How `run` answers the query, why, and what that costs; see `sash.Explanation`.

        `schema` is a pyarrow.Schema, or a table that has one; without it, nothing is said that
        depends on the types of columns.  `data` is a sample of some thousands of rows, which is run
        and counted: what it took stands beside what was expected.  `slicing` is that of `run`.
        For a stream, ask that: `q.stream(…).explain()`.

        >>> import sash
        >>> window = sash.sliding("6 min", "2 min")
        >>> q = sash.Query(time="t", by=["k"], window=window, select={"n": sash.count()})
        >>> print(q.explain({"t": [60_000_000], "k": ["a"]}))  # doctest: +ELLIPSIS
        n = count() for each k
        runs by Query.run, over a table
        <BLANKLINE>
        windows      sliding('6 minutes', '2 minutes'): an event is in 3 windows
        ...
        """
        from ..explain.tables import explain_table

        return explain_table(self, schema, data, slicing)
