"""The plan of a statement, as data: `plan` builds it, and the code that runs a statement reads
it."""

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
    """A column of the result: its name, and its expression over the query's result."""

    name: str
    node: Node
    at: At


@dataclass(frozen=True)
class Planned:
    """A statement, ready to run."""

    source: Source
    select: Select
    query: Query  # its `where` is the column of the condition
    before: Mapping[str, Node]  # expressions of the computed columns, by name
    read: Mapping[str, Column]  # columns of the table, by the query's name for them
    where: str | None  # the computed column that chooses the rows
    conditions: frozenset[str]  # computed columns that are conditions: that one, and FILTERs
    outputs: tuple[Output, ...]  # a Star for all columns of the table
    having: Node | None
    order: tuple[Order, ...]
    then: Mapping[str, Then]  # what to do with some aggregates' answers
    aliases: tuple[tuple[str, At], ...]  # names in GROUP BY that are aliases of the SELECT list
    timed: Node  # the expression of the time
    places: Mapping[str, At]  # the place of each aggregate in the text, by its name
    windowed: At  # the place of the window in the text

    @property
    def driven(self) -> bool:
        """True if each row of the result is one of the table's."""
        return isinstance(self.query.window, Driven)

    def check_own(self, own: Collection[str]) -> None:
        """Refuse a column of the SELECT list with the name of a column that the engine adds."""
        for output in self.outputs:
            if output.name.lower() in own:
                raise self.source.error(
                    f"the result has {output.name} of its own; give this column another name",
                    *output.at,
                )

    def check_event_columns(self, mode: Mode, names: Collection[str]) -> None:
        """In live mode, require all columns of the event, which identify its row across
        revisions."""
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
        """True if the SELECT list has all columns of the table."""
        return any(isinstance(o.node, Star) for o in self.outputs)
