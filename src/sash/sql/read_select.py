"""Read a statement: SELECT … FROM … WHERE … GROUP BY … HAVING … WINDOW … ORDER BY … LIMIT."""

from __future__ import annotations

from .errors import Source, SqlError
from .nodes import At, From, Item, Node, Order, Select, WindowSpec
from .read_from import CLAUSES, REFUSED, FromReader

__all__ = ["read"]


def read(source: Source) -> Select:
    """Read the statement in a text."""
    return _SelectReader(source).statement()


class _SelectReader(FromReader):
    def statement(self) -> Select:
        """Read the whole text."""
        if self.token.kind == "end":
            raise self.source.error("there is no SQL in this text", 0, 0, ["SELECT"])
        start, ctes = self.begins, self._ctes()
        stream, wrapped = None, False
        if (
            self.token.word in _STREAMS
            and self.sees_sign("(", 1)
            and self.ahead(2).word == "SELECT"
        ):
            stream, wrapped = self._stream(), True
            self.step()
        if not self.takes("SELECT"):
            raise self.unexpected(["SELECT"])
        if self.sees("DISTINCT"):
            raise self.source.error(
                "SELECT DISTINCT is not supported: the rows of windows differ by key and window; "
                "leave DISTINCT out, or put count(DISTINCT x) in the list",
                self.begins,
                self.token.end,
            )
        self.takes("ALL")
        if not wrapped and self.token.word in _STREAMS and self.sees_sign("(", 1):
            stream = self._stream()
            self.step()
            items = self.listed(self._item)
            self.needs_sign(")", f"the list of {stream}")
        else:
            items = self.listed(self._item)
        if not self.takes("FROM"):
            raise self.misspelt([",", "FROM"])
        source = self.source_of()
        found = self._clauses(items, source, start, ctes, stream)
        if wrapped:
            self.needs_sign(")")
        if not self.done:
            raise self._behind()
        return found

    def _stream(self) -> str:
        word = self.step()
        if word.word == "DSTREAM":
            raise self.source.error(
                "DSTREAM is not supported; write ISTREAM for windows whose values have changed, or "
                "RSTREAM for all",
                word.start,
                word.end,
            )
        return word.value.lower()

    def _ctes(self) -> At | None:
        """Skip WITH … before SELECT, which only Spark reads."""
        if not self.sees("WITH"):
            return None
        start = self.begins
        while not self.sees("SELECT"):
            if self.token.kind == "end":
                raise self.unexpected(["SELECT"], "WITH")
            if self.sees_sign("("):
                self.skip_parentheses()
            else:
                self.step()
        return self.since(start)

    def _clauses(
        self, items: list[Item], source: From, start: int, ctes: At | None, stream: str | None
    ) -> Select:
        where = self.expression() if self.takes("WHERE") else None
        begins, grouped, group = self.begins, None, []
        if self.takes("GROUP"):
            self.needs("BY", behind="GROUP")
            group = self.listed(self._group)
            grouped = self.since(begins)
        having = self.expression() if self.takes("HAVING") else None
        windows: dict[str, WindowSpec] = {}
        if self.sees("WINDOW") and not self.sees_sign("(", 1):
            self.step()
            for name, spec, at in self.listed(self._named_window):
                if name.lower() in windows:
                    raise self.source.error(f"there are two windows {name}", *at)
                windows[name.lower()] = spec
        order: list[Order] = []
        if self.takes("ORDER"):
            self.needs("BY", behind="ORDER")
            order = self.order_by()
        begins, limit, limited = self.begins, None, None
        if self.takes("LIMIT"):
            if self.token.kind != "number" or not self.token.value.isdigit():
                raise self.unexpected(["a whole number"], "LIMIT")
            limit = int(self.step().value)
            limited = self.since(begins)
        return Select(
            tuple(items),
            source,
            ctes,
            where,
            tuple(group),
            grouped,
            having,
            windows,
            tuple(order),
            limit,
            limited,
            stream,  # type: ignore[arg-type]
            at=self.since(start),
        )

    def _group(self) -> Node:
        for word in ("ROLLUP", "CUBE", "GROUPING", "ALL"):
            if self.sees(word) and (self.sees_sign("(", 1) or word in ("GROUPING", "ALL")):
                raise self.source.error(
                    f"GROUP BY {word} is not supported; list the columns, and run one statement "
                    "for each list",
                    self.begins,
                    self.token.end,
                )
        return self.expression()

    def _named_window(self) -> tuple[str, WindowSpec, At]:
        start, name = self.begins, self.name("the name of a window").value
        at = self.since(start)
        self.needs("AS", behind=f"WINDOW {name}")
        return name, self.window_spec(), at

    def _item(self) -> Item:
        start, of = self.begins, self.expression()
        return Item(of, self.alias(), at=self.since(start))

    def _behind(self) -> SqlError:
        """The error for text behind the last clause."""
        token = self.token
        guessed = self.misspelt([*CLAUSES, "the end"])
        if guessed.nearest and guessed.problem.endswith("is no keyword"):
            return guessed
        if token.word in REFUSED:
            return self.source.error(
                f"{token.word} is not supported; {REFUSED[token.word]}",
                token.start,
                token.end,
                CLAUSES,
            )
        begin = {clause.split()[0]: clause for clause in CLAUSES}
        if token.word in begin:
            return self.source.error(
                f"{begin[token.word]} stands in the wrong place, or twice; the order is FROM, "
                f"{', '.join(CLAUSES)}",
                token.start,
                token.end,
            )
        return guessed


_STREAMS = ("ISTREAM", "RSTREAM", "DSTREAM")
