"""A query: aggregates over columns, a window, and keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from ..policies import Policy
from ..windows import Aligned, Driven, Ruled, Sized, Window
from .aggregates import Aggregate
from .conditions import Condition
from .names import to_call, what_is
from .resolving import resolved
from .signatures import ArrowStream, Columns, Emit, Frame, LazyFrame, Mode, SlicingName

if TYPE_CHECKING:
    import pyarrow

    from ..engine.stream import Stream
    from ..explain import Explanation
    from ..stores.contract import Store

__all__ = ["RESERVED", "Query"]

#: Names of columns that the engine adds to results.
RESERVED = ("window", "window_start", "window_end", "revision")


def column_kept(name: str, window: Window) -> ValueError:
    """The error for a name that would be in the result twice."""
    return ValueError(
        f"{window!r} keeps all columns of its events, and adds some, so the result would have "
        f"{name!r} twice; choose another name, or rename or drop that column first"
    )


@dataclass(frozen=True, kw_only=True)
class Query:
    """A query: which aggregates to compute, over which windows, for which keys.

    `time` names the column with the events' times.  `by` names the key columns, if any.  `select`
    maps each column of the result to an aggregate.  `where` is an Arrow expression
    (`pyarrow.compute.field("x") > 0`) that rows must satisfy.  `tie` names a column that orders
    events of the same time where their arrival has no order, as on Spark.  With `emit="changes"`
    the query emits a window only if its values differ from those of the key's window before.

    An aggregate of `select` may have windows of another size (`Aggregate.over`).  They end together
    with the query's windows.  The result has one row for each of the query's own windows.

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

    if TYPE_CHECKING:  # a policy becomes a window

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
                f"not {what_is(self.window)}{to_call(self.window)}"
            )
        if not isinstance(self.by, Iterable):
            raise TypeError(f"by is a list of column names, such as ['k'], not {self.by!r}")
        by = (self.by,) if isinstance(self.by, str) else tuple(self.by)
        object.__setattr__(self, "by", by)
        self._check_select()
        self._check_sizes()
        if isinstance(self.window, Policy):
            object.__setattr__(self, "window", Ruled(self.window, self._read_by(self.window)))
        for name in by:
            if not isinstance(name, str):
                raise TypeError(f"by is a list of column names, and {name!r} is not text")
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
                raise TypeError(f"a name in select is text, not {name!r}")
            if isinstance(chosen, Aggregate):
                continue
            instead = to_call(chosen) or (
                "; use one such as sash.max('x'), or sash.aggregate(operator, 'x') for an operator "
                "of your own"
            )
            raise TypeError(
                f"select has {what_is(chosen)} for {name!r}, which is no aggregate{instead}"
            )
        made = {name: resolved(a, self.time, self.window) for name, a in self.select.items()}
        object.__setattr__(self, "select", made)

    def _check_sizes(self) -> None:
        for name, chosen in self.select.items():
            if chosen.size is None:
                continue
            if not isinstance(self.window, Sized):
                raise ValueError(
                    f"select has {chosen!r} for {name!r}, but an aggregate cannot have its own "
                    f"size with {self.window!r}; use sash.trailing(…), sash.lifetime(), or "
                    "sash.sliding(…) or sash.tumbling(…) without a timezone"
                )
            self.window.of_length(None if chosen.size == "lifetime" else chosen.size)

    @property
    def sizes(self) -> dict[str, int | None]:
        """The size of each aggregate's windows in microseconds; None stands for all time so far.
        It is the size of the query's window, unless the aggregate has its own (`Aggregate.over`).
        Only for windows that have one size.

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
        """True if an aggregate has windows of another size than the query."""
        if not isinstance(self.window, Sized):
            return False
        return any(size != self.window.length for size in self.sizes.values())

    def _read_by(self, policy: Policy) -> tuple[str, ...]:
        """The columns that a policy reads.  A policy gives their names, or their positions among
        the selected columns; without either it reads all selected columns."""
        selected = list(dict.fromkeys(c for a in self.select.values() for c in a.columns))
        wanted = policy.columns
        if wanted is None:
            if len(selected) == len(policy.over.skips):
                return tuple(selected)
            raise ValueError(
                f"the policy {policy.name} reads {len(policy.over.skips)} column(s), and the "
                f"aggregates read {len(selected)}; name the policy's columns, as in "
                "sash.policies.at_most_sum(100, column='x')"
            )
        known = selected or [self.time]
        for column in wanted:
            if isinstance(column, int) and column >= len(known):
                raise ValueError(
                    f"the policy {policy.name} reads the selected column number {column}, and the "
                    f"selected columns are {', '.join(known)}; name the column, as in "
                    "sash.policies.at_most_sum(100, column='x')"
                )
        return tuple(known[c] if isinstance(c, int) else c for c in wanted)

    @property
    def aligned(self) -> Aligned:
        """The window, typed as aligned, for code that only aligned windows reach."""
        assert isinstance(self.window, Aligned), f"{self.window!r} is not aligned"
        return self.window

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that the query reads, each once: time, keys, tie, the columns of the window,
        of the aggregates and of their conditions.  The columns of `where` are not among them."""
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
        """Run the query over a whole table (pandas, Polars or Arrow, rows in any order).

        The result is the same kind of table, ordered by keys, then window.  For driven windows, it
        has a row for each event that fires, with all columns of the event, in the table's order; in
        pandas also with the event's index.

        `threads` is the number of threads; the default is the environment variable SASH_THREADS, or
        else one thread for each core that the process may use.  Results are the same to the bit for
        any number of threads.

        `slicing` chooses how to cut windows aligned to the clock into slices: "panes", "pairs", or
        "cutty", which makes half as many slices but first sorts the rows by time; "auto" means
        "pairs".  Results are the same, except for the rounding of float sums.

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
                    "the result does not fit into memory; it also has a row for each empty window "
                    f"of {self.window!r} between two windows of a key that hold events: give "
                    "idle='…' to leave out longer gaps, or let windows start less often"
                ) from None
            time = self.window.start(0)
            many = self.window.last(time) - self.window.first(time) + 1
            raise MemoryError(
                f"the result does not fit into memory; an event is in {many:,} windows of "
                f"{self.window!r}: let windows start less often, or use emit='changes' to get only "
                "windows that differ from the one before"
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
        """Compute the query at times that you choose.  The result has the rows of `questions`, in
        their order, each with the values for its key as of the time in its column `time`.

        The query's window is `trailing` or `lifetime`, and aggregates may have windows of other
        sizes (`Aggregate.over`).  A key without events gets the values of an empty window.  `known`
        names a column of the events that says when each event became known.  With it, only events
        that were known by a question's time count: the answer as it was then, not as it is now.

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
        """Start a stream of the query, into which you push batches; see `sash.Stream`.

        With a `store` (`sash.stores`) the state lives in the store under a `name`, and can be
        larger than memory.  `Stream.sync` makes it durable, and a stream of that name continues
        from its last `sync`.  The store refuses to continue with another query.  If you only
        corrected an operator of your own, and its partials still mean the same, name its aggregate
        in `trust`.  With a store, rows of driven windows come by groups of keys, not in the order
        of the events.

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
        """Explain how `run` computes the query, why, and what it costs; see `sash.Explanation`.

        `schema` is a pyarrow.Schema, or a table that has one; without it, the explanation leaves
        out what depends on column types.  `data` is a sample of some thousands of rows: `explain`
        runs the query over it, and shows the measured costs beside the expected ones.  `slicing` is
        that of `run`.  For a stream, call `q.stream(…).explain()`.

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
