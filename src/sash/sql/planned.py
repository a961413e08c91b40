"""What a statement comes to, as data: `plan` makes it, and what runs a statement reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..query.query import Query
from ..windows import Driven
from .aggregates import Then
from .errors import Source, SqlError
from .nodes import At, Column, Node, Order, Select, Star

__all__ = ["Output", "Planned"]


@dataclass(frozen=True)
class Output:
    """A column of the result: its name, and what it is, in terms of the query's result."""

    name: str
    node: Node
    at: At


@dataclass(frozen=True)
class Planned:
    """A statement, ready to run."""

    source: Source
    select: Select
    query: Query  # with `where` for rows that the condition's column chooses
    before: Mapping[str, Node]  # columns that are computed, by name
    read: Mapping[str, Column]  # columns of the table, by the name that the query has for them
    where: str | None  # the computed column that says which rows count
    conditions: frozenset[str]  # computed columns that are conditions: that one, and FILTERs
    outputs: tuple[Output, ...]  # a Star for all columns of the table
    having: Node | None
    order: tuple[Order, ...]
    then: Mapping[str, Then]  # what becomes of some aggregates' answers
    aliases: tuple[tuple[str, At], ...]  # names in GROUP BY that are aliases of the SELECT list
    timed: Node  # the expression of the time

    @property
    def driven(self) -> bool:
        """True if each row of the result is one of the table's."""
        return isinstance(self.query.window, Driven)

    def event_columns(self, missing: list[str]) -> SqlError:
        """The error for columns of an event that live mode needs, and the SELECT list lacks."""
        items = self.select.items
        return self.source.error(
            "in live mode the SELECT list has all columns of an event, so that the revisions of "
            f"its row can be told apart; it lacks {', '.join(missing)}: write SELECT *, …",
            items[0].at[0],
            items[-1].at[1],
        )

    @property
    def stars(self) -> bool:
        """True if all columns of the table are selected."""
        return any(isinstance(o.node, Star) for o in self.outputs)
