"""The members of a shared stream of statements: the streams of those that run together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from ..engine.shared_intake import check_fits
from ..engine.shared_late import named
from ..engine.shared_stream import SharedStream
from ..windows import Driven
from .intake import Intake
from .statement import Statement
from .stream import SqlStream, emitted_rows, without

if TYPE_CHECKING:
    from ..explain.shared import SharedExplanation

__all__ = ["Alone", "Group", "Member", "Queries"]


class Member(Protocol):
    """The stream of some of the statements or queries, which run together."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the statements or queries."""

    @property
    def stream(self) -> Any:
        """The stream of their queries."""

    @property
    def intake(self) -> Intake | None:
        """Prepares the batches; None if the queries take events unchanged."""

    def check(self, batch: Any) -> None:
        """Refuse a batch that the stream would refuse."""

    def each(self, found: Any) -> dict[str, pa.Table]:
        """The rows of each statement, from the rows that the streams emitted."""

    def late(self, rows: pa.Table) -> pa.Table:
        """Late rows, as `late` shows them."""

    def by_name(self, found: Any) -> dict[str, Any]:
        """The counts, or other values of each query, by name."""

    def explained(
        self, known: pa.Table | None, sample: pa.Table | None, batch: int
    ) -> SharedExplanation:
        """The explanation of the queries, for tables as they are pushed."""


class Queries:
    """Queries that run beside statements."""

    intake = None

    def __init__(self, names: Sequence[str], stream: SharedStream) -> None:
        self.names, self.stream = names, stream

    def check(self, batch: Any) -> None:
        self.stream._check_fits(batch)

    def each(self, found: Any) -> dict[str, pa.Table]:
        return dict(found)

    def late(self, rows: pa.Table) -> pa.Table:
        return rows

    def by_name(self, found: Any) -> dict[str, Any]:
        return dict(found)

    def explained(
        self, known: pa.Table | None, sample: pa.Table | None, batch: int
    ) -> SharedExplanation:
        return self.stream.explain(known, data=sample, batch=batch)


class Alone:
    """One statement."""

    def __init__(self, name: str, sql: SqlStream) -> None:
        self.names, self.sql = (name,), sql
        self.intake: Intake | None = sql._intake

    @property
    def stream(self) -> Any:
        return self.sql._stream

    def check(self, batch: Any) -> None:
        check_fits(self.stream, {self.names[0]: self.stream._query}, batch, None)

    def each(self, found: Any) -> dict[str, pa.Table]:
        return {self.names[0]: self.sql._emitted(found, "")}

    def late(self, rows: pa.Table) -> pa.Table:
        return named(self.sql._shown(rows), self.names)

    def by_name(self, found: Any) -> dict[str, Any]:
        return {self.names[0]: found}

    def explained(
        self, known: pa.Table | None, sample: pa.Table | None, batch: int
    ) -> SharedExplanation:
        from ..explain.shared import explained_alone

        window = self.sql._planned.query.window
        why = f"events make the windows of {window!r}" if isinstance(window, Driven) else ""
        found = self.sql.explain(known, data=sample, batch=batch)
        return explained_alone(self.names[0], why, found, self.sql._intake.mode)


class Group:
    """Statements that compute the same columns, and whose queries share slices where possible."""

    def __init__(
        self, statements: Mapping[str, Statement], intake: Intake, stream: SharedStream
    ) -> None:
        self.names, self._statements = tuple(statements), statements
        self.intake: Intake | None = intake
        self._mode, self.stream = intake.mode, stream

    def check(self, batch: Any) -> None:
        self.stream._check_fits(batch)

    def each(self, found: Any) -> dict[str, pa.Table]:
        made = {}
        for name, table in found.items():
            one = self._statements[name]
            if table.num_columns:
                table = emitted_rows(one._planned, table, one._zone, self._mode)
            made[name] = table
        return made

    def late(self, rows: pa.Table) -> pa.Table:
        return without(rows, next(iter(self._statements.values())).computed)

    def by_name(self, found: Any) -> dict[str, Any]:
        return dict(found)

    def explained(
        self, known: pa.Table | None, sample: pa.Table | None, batch: int
    ) -> SharedExplanation:
        assert self.intake is not None
        read = [None if t is None else self.intake.computed(t)[0] for t in (known, sample)]
        return self.stream.explain(read[0], data=read[1], batch=batch)
