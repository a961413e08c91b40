"""The nodes of a text of SQL: expressions, window specifications, and a SELECT.

Every node has `at`, its span in the text.  Comparisons of nodes ignore it: `X + 1` and `x+1` are
the same expression.  They compare names of columns and functions in lower case, and without the
table's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

__all__ = [
    "Alias",
    "At",
    "Between",
    "Binary",
    "Bound",
    "Call",
    "Case",
    "Cast",
    "Column",
    "Cql",
    "Extract",
    "Field",
    "Frame",
    "From",
    "Guarded",
    "In",
    "Index",
    "Interval",
    "Is",
    "Item",
    "Lambda",
    "Like",
    "Literal_",
    "Named",
    "Node",
    "Order",
    "Other",
    "Raw",
    "Ref",
    "Select",
    "Star",
    "Table",
    "Unary",
    "WindowSpec",
    "children",
    "free_columns",
    "rebuilt",
    "walk",
]

At: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Node:
    """An expression, or a part of one."""

    at: At = field(compare=False, kw_only=True)


@dataclass(frozen=True)
class Literal_(Node):
    """A value from the text.  Kinds are Spark's types: int, bigint, smallint, tinyint, decimal,
    double, float, string, boolean, null, date, timestamp."""

    value: Any
    kind: str


@dataclass(frozen=True)
class Interval(Node):
    """A length of time, as text for `sash.windows.duration`."""

    text: str


@dataclass(frozen=True)
class Column(Node):
    """A column by its name, perhaps with the name of a table or struct before it."""

    name: str = field(compare=False)
    before: tuple[str, ...] = field(default=(), compare=False)
    folded: str = ""

    @property
    def written(self) -> str:
        """The full name, with table and struct."""
        return ".".join((*self.before, self.name))


@dataclass(frozen=True)
class Star(Node):
    """All columns."""


@dataclass(frozen=True)
class Order(Node):
    """An expression of an ORDER BY."""

    by: Node
    descending: bool = False
    nulls: Literal["first", "last"] | None = None


@dataclass(frozen=True)
class Bound(Node):
    """One end of a frame; `amount` is None for UNBOUNDED and for CURRENT ROW."""

    kind: Literal["unbounded", "current", "amount"]
    way: Literal["preceding", "following"] = "preceding"
    amount: Node | None = None


@dataclass(frozen=True)
class Frame(Node):
    """The frame of an OVER: which rows before an event its window holds."""

    unit: Literal["range", "rows"]
    start: Bound
    end: Bound
    exclude: Literal["row", "group", "ties"] | None = None


@dataclass(frozen=True)
class WindowSpec(Node):
    """The window in the parentheses of OVER, or behind WINDOW w AS."""

    base: str | None = None
    partition: tuple[Node, ...] = ()
    order: tuple[Order, ...] = ()
    frame: Frame | None = None


@dataclass(frozen=True)
class Call(Node):
    """A function and its arguments; the name is in lower case, and `named` is its span."""

    name: str
    args: tuple[Node, ...]
    distinct: bool = False
    where: Node | None = None
    nulls: Literal["ignore", "respect"] | None = None
    over: WindowSpec | None = None
    ordered: tuple[Order, ...] = ()  # ORDER BY among the arguments
    within: tuple[Order, ...] = ()  # WITHIN GROUP (ORDER BY …)
    named: At = field(default=(0, 0), compare=False)


@dataclass(frozen=True)
class Unary(Node):
    """`-`, `+`, `~` or NOT before an expression."""

    op: str
    of: Node


@dataclass(frozen=True)
class Binary(Node):
    """An operator between two expressions."""

    op: str
    left: Node
    right: Node
    sign: At = field(default=(0, 0), compare=False)


@dataclass(frozen=True)
class Is(Node):
    """IS [NOT] NULL, TRUE or FALSE."""

    of: Node
    what: Literal["null", "true", "false"]
    negated: bool


@dataclass(frozen=True)
class In(Node):
    """IN a list of expressions."""

    of: Node
    items: tuple[Node, ...]
    negated: bool


@dataclass(frozen=True)
class Between(Node):
    """BETWEEN two expressions, both included."""

    of: Node
    low: Node
    high: Node
    negated: bool


@dataclass(frozen=True)
class Like(Node):
    """LIKE a pattern."""

    of: Node
    pattern: Node
    escape: Node | None
    negated: bool


@dataclass(frozen=True)
class Case(Node):
    """CASE with its pairs of condition and value."""

    of: Node | None
    whens: tuple[tuple[Node, Node], ...]
    otherwise: Node | None


@dataclass(frozen=True)
class Cast(Node):
    """CAST or TRY_CAST; the type in lower case, `decimal(p,s)` with its digits."""

    of: Node
    type: str
    tries: bool
    typed: At = field(default=(0, 0), compare=False)


@dataclass(frozen=True)
class Extract(Node):
    """EXTRACT(unit FROM time); the unit in lower case."""

    unit: str
    of: Node
    named: At = field(default=(0, 0), compare=False)


@dataclass(frozen=True)
class Field(Node):
    """A field of a struct that an expression returns: `f(x).a`."""

    of: Node
    name: str


@dataclass(frozen=True)
class Index(Node):
    """An item of a list or a map: `x[0]`."""

    of: Node
    place: Node


@dataclass(frozen=True)
class Lambda(Node):
    """A function as an argument: `x -> x + 1`."""

    names: tuple[str, ...]
    body: Node


@dataclass(frozen=True)
class Raw(Node):
    """Text that only Spark reads: a subquery, or a function with its own syntax."""

    text: str


@dataclass(frozen=True)
class Ref(Node):
    """A column of the query's result, in place of the text's expression for it."""

    name: str
    part: Literal["start", "end"] | None = None  # of a window


@dataclass(frozen=True)
class Guarded(Node):
    """An argument of an aggregate with FILTER, computed only where the condition holds."""

    of: Node
    where: Node


@dataclass(frozen=True)
class Alias(Node):
    """A use of an alias, in place of the item of the SELECT list."""

    of: Node


@dataclass(frozen=True)
class Item(Node):
    """An expression of the SELECT list and its alias."""

    of: Node
    alias: str | None


@dataclass(frozen=True)
class Named(Node):
    """FROM a table by its name."""

    name: str
    alias: str | None = None


@dataclass(frozen=True)
class Table(Node):
    """FROM TABLE(HOP(…)), as Flink writes it; `given` has the arguments by name."""

    function: str
    name: str
    partition: tuple[Node, ...]
    given: dict[str, Node] = field(hash=False)
    alias: str | None = None
    table: At = (0, 0)


@dataclass(frozen=True)
class Cql(Node):
    """FROM t [RANGE … SLIDE …], as CQL writes it."""

    name: str
    unit: Literal["range", "rows"]
    size: Node
    slide: Node | None
    partition: tuple[Node, ...] = ()
    alias: str | None = None
    table: At = (0, 0)


@dataclass(frozen=True)
class Other(Node):
    """A FROM that only Spark reads: joins, subqueries."""

    what: str


From: TypeAlias = Named | Table | Cql | Other


@dataclass(frozen=True)
class Select(Node):
    """A whole statement."""

    items: tuple[Item, ...]
    source: From
    ctes: At | None = None  # WITH … before it
    where: Node | None = None
    group: tuple[Node, ...] = ()
    grouped: At | None = None
    having: Node | None = None
    windows: dict[str, WindowSpec] = field(default_factory=dict, hash=False)
    order: tuple[Order, ...] = ()
    limit: int | None = None
    limited: At | None = None
    stream: Literal["istream", "rstream"] | None = None


def children(node: Node) -> Iterator[Node]:
    """The nodes right below one, in the order of the text."""
    for part in fields(node):
        yield from _nodes(getattr(node, part.name))


def _nodes(value: Any) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for one in value:
            yield from _nodes(one)


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def free_columns(node: Node) -> Iterator[Column]:
    """The columns in an expression, without the names of its lambdas."""
    if isinstance(node, Column):
        yield node
    names = {n.lower() for n in node.names} if isinstance(node, Lambda) else set()
    for child in children(node):
        yield from (c for c in free_columns(child) if c.folded not in names)


def rebuilt(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """The node with its parts replaced by the results of `change`; if `change` returns None for a
    part, the parts of that part are replaced in turn."""
    made = change(node)
    if made is not None:
        return made
    parts = {p.name: getattr(node, p.name) for p in fields(node)}
    new = {name: _rebuilt(value, change) for name, value in parts.items()}
    if all(new[name] is parts[name] for name in parts):
        return node
    return replace(node, **new)


def _rebuilt(value: Any, change: Callable[[Node], Node | None]) -> Any:
    if isinstance(value, Node):
        return rebuilt(value, change)
    if isinstance(value, tuple) and any(isinstance(v, Node | tuple) for v in value):
        made = tuple(_rebuilt(v, change) for v in value)
        return value if all(a is b for a, b in zip(made, value, strict=True)) else made
    return value
