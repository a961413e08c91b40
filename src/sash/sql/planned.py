"""What a statement comes to, as data: `plan` makes it, and what runs a statement reads it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..query.query import Query
from ..query.signatures import Mode
from ..windows import Driven
from .aggregates import Then
from .errors import Source
from .nodes import At, Column, Node, Order, Ref, Select, Star

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
    places: Mapping[str, At]  # where each aggregate stands in the text, by its name
    windowed: At  # where the window stands

    @property
    def driven(self) -> bool:
        """True if each row of the result is one of the table's."""
        return isinstance(self.query.window, Driven)

    def check_own(self, own: Collection[str]) -> None:
        """Refuse a column of the SELECT list that is called like one that results have for
        themselves."""
        for output in self.outputs:
            if output.name.lower() in own:
                raise self.source.error(
                    f"the result has {output.name} of its own; give this column another name",
                    *output.at,
                )

    def check_event_columns(self, mode: Mode, names: Collection[str]) -> None:
        """In live mode an event's row has its columns, so that its revisions can be told apart."""
        if mode != "live" or not self.driven or self.stars:
            return
        shown = {o.node.name.lower() for o in self.outputs if isinstance(o.node, Ref)}
        missing = [n for n in names if n.lower() not in shown]
        if missing:
            items = self.select.items
            raise self.source.error(
                "in live mode the SELECT list has all columns of an event, so that the revisions "
                f"of its row can be told apart; it lacks {', '.join(missing)}: write SELECT *, …",
                items[0].at[0],
                items[-1].at[1],
            )

    @property
    def stars(self) -> bool:
        """True if all columns of the table are selected."""
        return any(isinstance(o.node, Star) for o in self.outputs)
