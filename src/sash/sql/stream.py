"""A statement over a stream: `Statement.stream`.

batch → before: expressions, WHERE → Stream of the query → after: SELECT list, HAVING → rows
"""

from __future__ import annotations

import json
import struct
import warnings
from base64 import b64decode, b64encode
from collections.abc import Collection, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from ..engine import oracle
from ..engine.described import stream_line
from ..engine.stream import Stream
from ..engine.supported import Asked, Place
from ..kernels.outside import level_outside
from ..query.signatures import Mode
from ..stores.contract import Store
from ..tables.arrow import as_arrow, as_given, kind_of
from .intake import Intake
from .planned import Planned
from .tabled import prepared, projected
from .tying import check_place

if TYPE_CHECKING:
    from ..explain import Explanation
    from .statement import Statement

__all__ = ["SqlStream", "emitted_rows", "known_of", "with_known", "without"]

#: A line about a stream has so many characters of its statement.
_SHOWN = 60
_LENGTH = struct.Struct("<q")
#: The metadata field of a schema that keeps, for snapshots, the library of the last batch's table.
_KIND = b"sash kind"


class SqlStream:
    """A statement over a stream; `Statement.stream` starts it.

    It has the methods of `sash.Stream`.  `push` takes a batch and returns the rows that are then
    due: the columns of the SELECT list, then `revision` in live mode, and `deleted` if the stream
    can withdraw rows.  In live mode, a revision that HAVING rejects comes marked `deleted`.  `late`
    has the rows that missed windows or that the stream could not use, for example because an
    expression failed, with the reason.

    >>> import sash
    >>> s = sash.sql("SELECT max(x) AS m FROM t GROUP BY window(ts, '5 microseconds')")
    >>> stream = s.stream()
    >>> stream.push([{"ts": 1, "x": 3}, {"ts": 6, "x": 4}]).to_pylist()
    [{'m': 3}]
    """

    _kind = ""  # the library of the last batch's table

    def __init__(
        self,
        planned: Planned,
        zone: str | None = None,
        *,
        lateness: Any = 0,
        mode: Mode = "final",
        early: bool = False,
        schema: pa.Schema | None = None,
        keep_late: int | None = None,
        store: Store | None = None,
        name: str | None = None,
        trust: Sequence[str] = (),
    ) -> None:
        if not isinstance(planned, Planned):
            raise TypeError(
                "a stream is made by its statement: write sash.sql(text).stream(lateness=…) "
                "instead of sash.SqlStream(…)"
            )
        self._planned, self._zone, self._mode = planned, zone, mode
        place: Place = "Query.stream" if store is None else "Query.stream, in a store"
        self._intake = Intake([(planned, zone)], mode, bool(early), place=place)
        made: pa.Schema | None = None
        if schema is None:
            asked = Asked(planned.query, mode=mode, early=bool(early))
            check_place(planned, asked, place)
        elif not isinstance(schema, pa.Schema):
            raise TypeError(f"schema is a pyarrow.Schema, not {schema!r}")
        else:
            made = self._intake.learn(schema)
        self._stream = planned.query.stream(
            lateness=lateness,
            mode=mode,
            early=early,
            schema=made,
            keep_late=keep_late,
            store=store,
            name=name,
            trust=trust,
        )
        if self._stream._beside:
            self._remember(self._stream._beside)

    def __repr__(self) -> str:
        if "_stream" not in vars(self):  # making it failed
            return object.__repr__(self)
        text = " ".join(self._planned.source.text.split())
        short = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
        return stream_line(self._stream, "sash.SqlStream", repr(short))

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a stream cannot be pickled; save it with to_bytes(), and restore it with "
            "sash.SqlStream.from_bytes(data, statement)"
        )

    def __copy__(self) -> SqlStream:
        """A copy with its own state."""
        return deepcopy(self)

    def __deepcopy__(self, memo: Any) -> SqlStream:
        made = memo[id(self)] = object.__new__(type(self))
        vars(made).update({name: deepcopy(value, memo) for name, value in vars(self).items()})
        return made

    def push(self, batch: Any) -> Any:
        """Insert a batch (a table of any kind, an event as a dict, or a list of events), and return
        the rows that are then due, as the same kind of table."""
        kind = kind_of(batch)
        if kind == "builtins" and self._intake.takes_events():
            return self._emitted(self._stream.push(batch), kind)
        return self._emitted(self._stream.push(self._intake.taken(batch)), kind)

    def advance(self, watermark: Any) -> Any:
        """Close all windows that end by a time, like `Stream.advance`."""
        return self._emitted(self._stream.advance(watermark), "")

    def close(self) -> Any:
        """Close all windows and return their rows, like `Stream.close`."""
        return self._emitted(self._stream.close(), "")

    @property
    def late(self) -> pa.Table:
        """Rows that missed windows or that the stream could not use, like `Stream.late`."""
        return self._shown(self._stream.late)

    def take_late(self) -> pa.Table:
        """Return the rows in `late`, and empty it."""
        return self._shown(self._stream.take_late())

    @property
    def late_dropped(self) -> int:
        """The number of late rows that the stream dropped unread."""
        return self._stream.late_dropped

    @property
    def counts(self) -> dict[str, int]:
        """The counts of rows so far, like `Stream.counts`."""
        return self._stream.counts

    @property
    def delays(self) -> list[int]:
        """The lateness of the rows, like `Stream.delays`."""
        return self._stream.delays

    @property
    def time(self) -> int | None:
        """Stream time, in microseconds."""
        return self._stream.time

    @property
    def watermark(self) -> int | None:
        """The watermark: windows that end by this time, in microseconds, are closed."""
        return self._stream.watermark

    def query(
        self, key: Any = (), lo: Any = None, hi: Any = None, *, at: Any = None
    ) -> dict[str, Any]:
        """The aggregates of one key over a range of times, or as of a time, like `Stream.query`;
        they have the names of the statement's `query`.

        >>> import sash
        >>> over = "OVER (PARTITION BY k ORDER BY t RANGE INTERVAL 5 MICROSECONDS PRECEDING)"
        >>> s = sash.sql(f"SELECT t, 2 * max(x) {over} AS twice FROM events").stream()
        >>> s.push([{"t": 1, "k": "a", "x": 3}, {"t": 4, "k": "a", "x": 2}]).to_pylist()
        [{'t': 1, 'twice': 6}]
        >>> list(s.query("a", at=8).values())
        [2]
        """
        return self._stream.query(key, lo, hi, at=at)

    def explain(self, schema: Any = None, *, data: Any = None, batch: int = 1000) -> Explanation:
        """Explain how the stream of the statement's query runs, like `Stream.explain`; `schema` and
        `data` describe the pushed batches."""
        if isinstance(schema, pa.Schema):
            schema = schema.empty_table()
        ready = [
            None if t is None else prepared(self._planned, as_arrow(t), self._zone, whole=False)[0]
            for t in (schema, data)
        ]
        return self._stream.explain(ready[0], data=ready[1], batch=batch)

    def sync(self) -> None:
        """Make the stream durable up to here, if it has a store, like `Stream.sync`."""
        known = self._intake.known
        head = "" if known is None else b64encode(known.serialize().to_pybytes()).decode()
        self._stream._beside = json.dumps({"zone": self._zone, "known": head, "kind": self._kind})
        self._stream.sync()

    def _remember(self, beside: str) -> None:
        """Restore what `sync` saved beside the stream of the query."""
        kept = json.loads(beside)
        if kept["zone"] != self._zone:
            self._stream.release()
            raise ValueError(
                f"this stream is of a statement with timezone={kept['zone']!r}, and cannot go on "
                f"with timezone={self._zone!r}"
            )
        if kept["known"]:
            known = pa.ipc.read_schema(pa.py_buffer(b64decode(kept["known"])))
            self._intake.known = known
        self._kind = kept.get("kind", "")

    def release(self) -> None:
        """Let another process open the stream in its store, like `Stream.release`."""
        self._stream.release()

    def state_size(self) -> dict[str, int]:
        """The size of the state, like `Stream.state_size`."""
        return self._stream.state_size()

    def to_bytes(self) -> bytes:
        """The whole stream as bytes, for `from_bytes`."""
        return with_known(self._intake.known, self._stream.to_bytes(), self._kind)

    @classmethod
    def from_bytes(cls, data: bytes, statement: Statement, trust: Sequence[str] = ()) -> SqlStream:
        """Restore a stream from the bytes of `to_bytes` and the same statement."""
        known, kind_said, rest = known_of(data)
        made = object.__new__(cls)
        made._planned, made._zone = statement._planned, statement._zone
        kind = oracle.OracleStream if oracle.asked_for() else Stream
        query = statement.query
        made._stream = kind._for(query).from_bytes(rest, query, trust)
        made._mode = made._stream._mode
        made._intake = Intake([(made._planned, made._zone)], made._mode, made._stream._early, known)
        made._kind = kind_said
        return made

    def _emitted(self, found: pa.Table, kind: str) -> Any:
        self._kind = kind or self._kind
        if not found.num_columns:
            return as_given(found, self._kind)
        made = emitted_rows(self._planned, found, self._zone, self._mode)
        return as_given(made, self._kind)

    def _shown(self, late: pa.Table) -> pa.Table:
        """Late rows without the computed columns."""
        return without(late, self._planned.before)


def without(late: pa.Table, computed: Collection[str]) -> pa.Table:
    """Late rows without the computed columns."""
    gone = [name for name in computed if name in late.column_names]
    return late.drop_columns(gone) if gone else late


def emitted_rows(planned: Planned, found: pa.Table, zone: str | None, mode: Mode) -> pa.Table:
    """The rows of a statement, from the rows that its query's stream emits; warns about rows for
    which an expression after the query fails."""
    made, noted = projected(planned, found, zone, live=mode == "live")
    for left_out in (False, True):
        some = [n for n in noted if n.left_out == left_out]
        if some:
            what = (
                "have no value for HAVING, and are left out"
                if left_out
                else "have no value for some expressions, and null instead"
            )
            reasons = ", ".join(sorted({n.why for n in some}))
            warnings.warn(
                f"{len({n.row for n in some})} row(s) {what}: {reasons}",
                RuntimeWarning,
                stacklevel=level_outside(),
            )
    return made


def with_known(known: pa.Schema | None, data: bytes, kind: str = "") -> bytes:
    """Put the stream's known columns, and the library of its last batch, before its bytes."""
    head = b""
    if known is not None:
        named = known.with_metadata({**(known.metadata or {}), _KIND: kind.encode()})
        head = named.serialize().to_pybytes()
    return _LENGTH.pack(len(head)) + head + data


def known_of(data: bytes) -> tuple[pa.Schema | None, str, bytes]:
    """Take apart the bytes of `with_known`."""
    (length,) = _LENGTH.unpack_from(data)
    start = _LENGTH.size
    rest = data[start + length :]
    if not length:
        return None, "", rest
    named = pa.ipc.read_schema(pa.py_buffer(data[start : start + length]))
    kept = dict(named.metadata or {})
    kind = kept.pop(_KIND, b"").decode()
    return named.with_metadata(kept or None), kind, rest
