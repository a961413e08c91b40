"""Read windows of the standard, behind OVER and behind WINDOW w AS."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ..query.names import nearest
from .cursor import RESERVED_WORDS, Cursor
from .nodes import Bound, Frame, Node, Order, WindowSpec

__all__ = ["OverReader"]

_PARTS = ("PARTITION BY", "ORDER BY", "RANGE BETWEEN", "ROWS BETWEEN", ")")
_EXCLUDES = {"CURRENT ROW": "row", "GROUP": "group", "TIES": "ties", "NO OTHERS": None}


class OverReader(Cursor, ABC):
    """Reads windows of the standard, and the order of rows."""

    @abstractmethod
    def expression(self) -> Node:
        """Read an expression of any kind."""

    @abstractmethod
    def value(self, level: int = 0) -> Node:
        """Read a value: arithmetic and comparisons."""

    def order_by(self) -> list[Order]:
        """Read the expressions behind ORDER BY."""
        return self.listed(self._order)

    def _order(self) -> Order:
        start, by = self.begins, self.expression()
        descending = self.takes("DESC")
        if not descending:
            self.takes("ASC")
        nulls = None
        if self.takes("NULLS"):
            nulls = "first" if self.takes("FIRST") else "last"
            if nulls == "last":
                self.needs("LAST", behind="NULLS")
        return Order(by, descending, nulls, at=self.since(start))  # type: ignore[arg-type]

    def over(self) -> WindowSpec:
        """Read the window behind OVER: a name, or a specification."""
        start = self.begins
        if self.token.kind in ("word", "name"):
            return WindowSpec(self.step().value, at=self.since(start))
        return self.window_spec()

    def window_spec(self) -> WindowSpec:
        """Read a window in parentheses."""
        start = self.begins
        self.needs_sign("(", "OVER")
        base, frame = None, None
        partition: tuple[Node, ...] = ()
        order: tuple[Order, ...] = ()
        if self.token.kind in ("word", "name") and self.token.word not in RESERVED_WORDS:
            base = self.step().value
            near = nearest(base, ("PARTITION", "ORDER")) if self.sees("BY") else None
            if near:
                raise self.source.error(
                    f"{base} is no keyword", *self.since(self.ended - len(base)), _PARTS, near
                )
        if self.takes("PARTITION"):
            self.needs("BY", behind="PARTITION")
            partition = tuple(self.listed(self.expression))
        if self.takes("ORDER"):
            self.needs("BY", behind="ORDER")
            order = tuple(self.order_by())
        if self.token.word in ("RANGE", "ROWS", "GROUPS"):
            frame = self._frame()
        if not self.takes_sign(")"):
            raise self.unexpected(_PARTS)
        return WindowSpec(base, partition, order, frame, at=self.since(start))

    def _frame(self) -> Frame:
        start = self.begins
        unit = self.step()
        if unit.word == "GROUPS":
            raise self.source.error(
                "GROUPS frames are not supported; write RANGE BETWEEN INTERVAL '1' HOUR PRECEDING "
                "AND CURRENT ROW, or ROWS BETWEEN 9 PRECEDING AND CURRENT ROW",
                unit.start,
                unit.end,
            )
        if self.takes("BETWEEN"):
            first = self._bound()
            self.needs("AND", behind="the first end of the frame")
            last = self._bound()
        else:
            first = self._bound()
            last = Bound("current", at=first.at)
        exclude = None
        if self.takes("EXCLUDE"):
            found = [value for words, value in _EXCLUDES.items() if self.takes(*words.split())]
            if not found:
                raise self.unexpected(list(_EXCLUDES), "EXCLUDE")
            exclude = found[0]
        word = "range" if unit.word == "RANGE" else "rows"
        return Frame(word, first, last, exclude, at=self.since(start))  # type: ignore[arg-type]

    def _bound(self) -> Bound:
        start = self.begins
        if self.takes("CURRENT"):
            self.needs("ROW", behind="CURRENT")
            return Bound("current", at=self.since(start))
        amount = None if self.takes("UNBOUNDED") else self.value()
        kind = "unbounded" if amount is None else "amount"
        for way in ("preceding", "following"):
            if self.takes(way.upper()):
                return Bound(kind, way, amount, at=self.since(start))  # type: ignore[arg-type]
        raise self.unexpected(["PRECEDING", "FOLLOWING"], "an end of the frame")
