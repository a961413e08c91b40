"""Read the FROM clause: a table by its name, Flink's TABLE(HOP(TABLE t, DESCRIPTOR(ts), …)), CQL's
`t [RANGE 1 HOUR SLIDE 1 MINUTE]`, or text that only Spark can read, which stays as it is."""

from __future__ import annotations

from ..query.names import nearest
from .cursor import RESERVED_WORDS
from .errors import Source, SqlError
from .intervals import unit_of
from .nodes import At, Column, Cql, From, Interval, Literal_, Named, Node, Other, Table
from .read_expression import ExpressionReader

__all__ = ["CLAUSES", "REFUSED", "FromReader"]

#: The clauses behind FROM, in order.
CLAUSES = ("WHERE", "GROUP BY", "HAVING", "WINDOW", "ORDER BY", "LIMIT")

#: Clauses that sash does not have, and what to do instead.
REFUSED = {
    "UNION": "run each SELECT by itself and put the results together",
    "INTERSECT": "run each SELECT by itself",
    "EXCEPT": "run each SELECT by itself",
    "MINUS": "run each SELECT by itself",
    "QUALIFY": "filter the result instead",
    "OFFSET": "give ORDER BY and LIMIT, and slice the result",
    "FETCH": "write LIMIT instead",
    "CLUSTER": "write ORDER BY instead",
    "DISTRIBUTE": "write ORDER BY instead",
    "SORT": "write ORDER BY instead",
}

#: Flink's windowing functions, and their required and optional arguments behind the table and the
#: time column.
_FUNCTIONS = {
    "TUMBLE": (("SIZE",), ("OFFSET",)),
    "HOP": (("SLIDE", "SIZE"), ("OFFSET",)),
    "CUMULATE": (("STEP", "SIZE"), ("OFFSET",)),
    "SESSION": (("GAP",), ()),
}

_UNITS = ("SECONDS", "MINUTES", "HOURS", "DAYS", "WEEKS", "MICROSECONDS", "MILLISECONDS")


class FromReader(ExpressionReader):
    """Reads the FROM clause, and aliases."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._guessed: tuple[int, int, str] | None = None  # the last alias without AS

    def alias(self) -> str | None:
        """Read an alias, with or without AS."""
        self._guessed = None
        if self.takes("AS"):
            if self.token.kind == "string":
                raise self.unexpected(["a name, in backticks if it is no plain word"], "AS")
            return self.name("a name").value
        token = self.token
        if token.kind == "name" or (token.kind == "word" and token.word not in RESERVED_WORDS):
            self._guessed = (token.start, token.end, token.value)
            return self.step().value
        return None

    def misspelt(self, allowed: list[str]) -> SqlError:
        """The error for an unexpected token; it also considers that the alias read before it may be
        a misspelt keyword."""
        if self._guessed is not None and self._guessed[1] == self.ended:
            start, end, word = self._guessed
            words = [one.split()[0] for one in allowed if one.isupper()]
            near = nearest(word, words)
            if near:
                return self.source.error(f"{word} is no keyword", start, end, allowed, near)
        return self.unexpected(allowed)

    def source_of(self) -> From:
        """Read the FROM clause."""
        start = self.begins
        if self.takes("TABLE"):
            self.needs_sign("(", "TABLE")
            found = self._table_function(start)
            self.needs_sign(")", "TABLE(…")
            return self._aliased(found, start)
        if self.token.word in _FUNCTIONS and self.sees_sign("(", 1):
            return self._aliased(self._table_function(start), start)
        if self.token.kind in ("word", "name") and not self.sees_sign("(", 1):
            if self.token.word in RESERVED_WORDS:
                raise self.unexpected(["the name of a table"], "FROM")
            name = self._table_name()
            named = self.since(start)
            if self.sees_sign("["):
                return self._cql(name, start, named)
            alias = self.alias()
            if self._at_clause():
                return Named(name, alias, at=self.since(start))
            if not self._is_more():
                raise self.misspelt([*CLAUSES, "the end"])
        elif not self.sees_sign("(") and self.token.kind not in ("word", "name"):
            raise self.unexpected(["the name of a table", "TABLE("], "FROM")
        return self._other(start)

    def _table_name(self) -> str:
        parts = [self.name("the name of a table").value]
        while self.takes_sign("."):
            parts.append(self.name("the name of a table").value)
        return parts[-1]

    def _at_clause(self) -> bool:
        token = self.token
        begin = {clause.split()[0] for clause in CLAUSES}
        return token.kind == "end" or self.sees_sign(")") or token.word in begin | set(REFUSED)

    def _is_more(self) -> bool:
        """True if a join, a list of tables or the like continues here."""
        more = "JOIN INNER LEFT RIGHT FULL CROSS NATURAL LATERAL PIVOT UNPIVOT TABLESAMPLE"
        return self.sees_sign(",") or self.token.word in more.split()

    def _other(self, start: int) -> Other:
        what = "a subquery" if self.sees_sign("(") else "a function"
        if self._is_more():
            own = self.token.word in ("PIVOT", "UNPIVOT", "TABLESAMPLE")
            what = f"a table with {self.token.word}" if own else "a join"
        while not self._at_clause():
            if self.token.word == "JOIN" or self.sees_sign(","):
                what = "a join"
            if self.sees_sign("(") or self.sees_sign("["):
                self.skip_parentheses()
            else:
                self.step()
        return Other(what, at=self.since(start))

    def _aliased(self, found: Table, start: int) -> Table:
        alias = self.alias()
        if not self._at_clause():
            raise self.misspelt([*CLAUSES, "the end"])
        return Table(
            found.function,
            found.name,
            found.partition,
            found.given,
            alias,
            found.table,
            at=self.since(start),
        )

    def _table_function(self, start: int) -> Table:
        """Read HOP(TABLE t, DESCRIPTOR(ts), …), with arguments by position or by name."""
        token = self.token
        function = token.word
        if function not in _FUNCTIONS:
            raise self.unexpected(list(_FUNCTIONS), "TABLE(")
        self.step()
        self.needs_sign("(", function)
        needed, further = _FUNCTIONS[function]
        order = ("DATA", "TIMECOL", *needed, *further)
        given: dict[str, Node] = {}
        name, partition, table = "", [], (start, start)
        place, named = 0, False
        while True:
            begins = self.begins
            if self.token.kind == "word" and self.sees_sign("=>", 1):
                word, named = self.step(), True
                self.step()
                argument = word.word
                if argument not in order:
                    raise self.source.error(
                        f"{function} has no argument {word.value}",
                        word.start,
                        word.end,
                        order,
                        nearest(word.value, order),
                    )
                if argument in given:
                    raise self.source.error(f"{argument} is given twice", word.start, word.end)
            elif named:
                raise self.source.error(
                    "behind an argument by name, all others are by name too",
                    begins,
                    self.token.end,
                    [f"{o} =>" for o in order if o not in given],
                )
            elif place == len(order):
                raise self.source.error(
                    f"{function} takes at most {len(order)} arguments: {_form(function)}",
                    begins,
                    self.token.end,
                )
            else:
                argument = order[place]
            place += 1
            if argument == "DATA":
                self.needs("TABLE", behind=f"{function}(")
                where = self.begins
                name = self._table_name()
                table = self.since(where)
                if self.takes("PARTITION"):
                    self.needs("BY", behind="PARTITION")
                    partition = self._partition(order)
                given["DATA"] = Column(name, (), name.lower(), at=self.since(begins))
            elif argument == "TIMECOL":
                given["TIMECOL"] = self._descriptor(function)
            else:
                given[argument] = self.expression()
            if not self.takes_sign(","):
                break
        if not self.takes_sign(")"):
            raise self.unexpected([",", ")"], f"the arguments of {function}")
        missing = [o for o in ("DATA", "TIMECOL", *needed) if o not in given]
        if missing:
            raise self.source.error(
                f"{function} lacks {' and '.join(missing)}: {_form(function)}",
                token.start,
                self.ended,
            )
        if partition and function != "SESSION":
            raise self.source.error(
                f"PARTITION BY is for SESSION; the keys of {function} are those of GROUP BY",
                *partition[0].at,
            )
        return Table(function, name, tuple(partition), given, None, table, at=self.since(start))

    def _partition(self, order: tuple[str, ...]) -> list[Node]:
        """Read the keys behind PARTITION BY, up to the next argument."""
        found = [self.expression()]
        while self.sees_sign(",") and not (
            self.ahead().word == "DESCRIPTOR" or self.sees_sign("=>", 2)
        ):
            self.step()
            found.append(self.expression())
        return found

    def _descriptor(self, function: str) -> Node:
        if not self.takes("DESCRIPTOR"):
            raise self.source.error(
                f"the second argument of {function} is DESCRIPTOR(ts), which names the column of "
                f"times: {_form(function)}",
                self.begins,
                self.token.end,
                ["DESCRIPTOR("],
            )
        self.needs_sign("(", "DESCRIPTOR")
        start, token = self.begins, self.name("the column of times")
        at = self.since(start)
        self.needs_sign(")", "DESCRIPTOR(…")
        return Column(token.value, (), token.value.lower(), at=at)

    def _cql(self, name: str, start: int, table: At) -> Cql:
        self.step()
        partition: list[Node] = []
        if self.takes("PARTITION"):
            self.needs("BY", behind="PARTITION")
            partition = self.listed(self.expression)
        token = self.token
        if token.word in ("NOW", "UNBOUNDED"):
            raise self.source.error(
                f"[{token.word}] is not supported; write [RANGE 1 HOUR SLIDE 1 MINUTE] or "
                "[ROWS 100]",
                token.start,
                token.end,
            )
        if token.word not in ("RANGE", "ROWS"):
            raise self.unexpected(["RANGE", "ROWS", "PARTITION BY"], "[")
        self.step()
        read = self._cql_length if token.word == "RANGE" else self._cql_count
        size = read()
        slide = read() if self.takes("SLIDE") else None
        if not self.takes_sign("]"):
            raise self.unexpected(["SLIDE", "]"] if slide is None else ["]"])
        alias = self.alias()
        if not self._at_clause():
            raise self.misspelt([*CLAUSES, "the end"])
        unit = "range" if token.word == "RANGE" else "rows"
        return Cql(
            name,
            unit,  # type: ignore[arg-type]
            size,
            slide,
            tuple(partition),
            alias,
            table,
            at=self.since(start),
        )

    def _cql_length(self) -> Node:
        if self.sees("INTERVAL"):
            return self.interval()
        start, parts = self.begins, []
        while self.token.kind in ("number", "string"):
            amount = self.step()
            unit = unit_of(self.token.word)
            if unit is None:
                near = nearest(self.token.value, _UNITS) if self.token.word else None
                if near and self.token.word != "SLIDE":
                    raise self.source.error(
                        f"{self.token.value} is no unit of time",
                        self.begins,
                        self.token.end,
                        _UNITS,
                        near,
                    )
                raise self.source.error(
                    f"{amount.value} has no unit; write it as 5 MINUTES",
                    amount.start,
                    amount.end,
                    _UNITS,
                )
            self.step()
            parts.append(f"{amount.value} {unit.lower()}")
        if not parts:
            raise self.unexpected(["a length of time such as 5 MINUTES"])
        return Interval(" ".join(parts), at=self.since(start))

    def _cql_count(self) -> Node:
        token = self.token
        if token.kind != "number" or not token.value.isdigit():
            raise self.unexpected(["a number of rows"])
        self.step()
        return Literal_(int(token.value), "int", at=(token.start, token.end))


def _form(function: str) -> str:
    """How to write a windowing function."""
    needed, further = _FUNCTIONS[function]
    rest = "".join(f", {a.lower()}" for a in needed) + "".join(f"[, {a.lower()}]" for a in further)
    keys = " PARTITION BY k" if function == "SESSION" else ""
    return f"TABLE({function}(TABLE t{keys}, DESCRIPTOR(ts){rest}))"
