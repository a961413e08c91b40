"""Resolve the names in a statement, and turn nodes back into text."""

from __future__ import annotations

from dataclasses import replace

from ..query.names import nearest
from .errors import Source
from .nodes import (
    Alias,
    Call,
    Column,
    Lambda,
    Literal_,
    Node,
    Other,
    Raw,
    Ref,
    Select,
    Star,
    children,
    rebuilt,
    walk,
)
from .pieces import Pieces

__all__ = ["Scope", "spliced", "text_of"]


class Scope:
    """The names of tables in a statement."""

    def __init__(self, select: Select, source: Source, *, on_spark: bool) -> None:
        self.source, self.on_spark = source, on_spark
        table = select.source
        self.tables: set[str] = set()
        if isinstance(table, Other):
            if not on_spark:
                raise source.error(
                    f"FROM is {table.what}, and in this process it is one table by its name; join "
                    "or filter the tables first, or run it with sash.spark.sql(spark, text)",
                    *table.at,
                )
        else:
            self.tables = {name.lower() for name in (table.name, table.alias) if name}

    def resolved(self, select: Select) -> Select:
        """The statement without table names before its columns, if there is only one table."""
        made = rebuilt(select, self._changed)
        assert isinstance(made, Select)
        windows = {n: rebuilt(spec, self._changed) for n, spec in made.windows.items()}
        for spec in windows.values():
            self._check(spec)
        self._check(made)
        return replace(made, windows=windows)  # type: ignore[arg-type]

    def _changed(self, node: Node) -> Node | None:
        if isinstance(node, Lambda):
            return node  # its names are its own
        if not isinstance(node, Column) or not node.before:
            return None
        if node.before[-1].lower() in self.tables and len(node.before) == 1:
            return Column(node.name, (), node.name.lower(), at=node.at)
        if self.on_spark or node.before[0].lower() in ("window", "session_window"):
            return node
        raise self.source.error(
            f"{node.before[0]} is not the name of a table in FROM",
            *node.at,
            sorted(self.tables),
            nearest(node.before[0], self.tables),
        )

    def _check(self, top: Node) -> None:
        """Refuse text that only Spark reads."""
        if self.on_spark:
            return
        if isinstance(top, Select) and top.ctes is not None:
            raise self.source.error(
                "WITH is Spark's: run it with sash.spark.sql(spark, text)", *top.ctes
            )
        for node in walk(top):
            if isinstance(node, Raw):
                raise self.source.error(
                    "subqueries and functions with words of their own are Spark's: run it with "
                    "sash.spark.sql(spark, text)",
                    *node.at,
                )
            text = isinstance(node, Literal_) and node.kind == "string"
            if text and self.source[node.at[0] : node.at[0] + 1] == '"':
                raise self.source.error(
                    "double quotes are text to some and names to others; write 'text' or `name`",
                    *node.at,
                )


def text_of(source: Source, node: Node) -> str:
    """The text of an expression, on one line; count(*) becomes count(1), as on Spark."""
    if isinstance(node, Call) and node == Call("count", (Star(at=node.at),), at=node.at):
        return "count(1)"
    return " ".join(source[node.at[0] : node.at[1]].split())


def spliced(source: Source, node: Node, into: Pieces | None = None) -> Pieces:
    """The text of an expression, with a column's name in backticks for each reference."""
    made, end = Pieces(source) if into is None else into, node.at[0]
    for part in _replaced(node):
        made.copy((end, part.at[0]))
        if isinstance(part, Ref):
            made.add(_quoted(part), part.at)
        else:
            made.add("(")
            spliced(source, part.of, made).add(")")
        end = part.at[1]
    return made.copy((end, node.at[1]))


def _replaced(node: Node) -> list[Ref | Alias]:
    """The references in an expression, in the order of the text."""
    if isinstance(node, Ref | Alias):
        return [node]
    found = [ref for child in children(node) for ref in _replaced(child)]
    return sorted(found, key=lambda n: n.at)


def _quoted(ref: Ref) -> str:
    """A column of the result, quoted for Spark."""
    name = f"`{ref.name.replace('`', '``')}`"
    return f"{name}.`{ref.part}`" if ref.part else name
