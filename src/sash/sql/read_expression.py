"""Read expressions, with Spark's precedence of operators.

    OR < AND < NOT < IS, IN, BETWEEN, LIKE < comparisons < | < ^ < & < + - || < * / % DIV < - ~

Text that only Spark can read (a subquery, a function with its own syntax) stays as it is, as `Raw`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from .cursor import RESERVED_WORDS
from .errors import SqlError
from .intervals import interval_text
from .nodes import (
    Between,
    Binary,
    Call,
    Case,
    Cast,
    Column,
    Extract,
    Field,
    In,
    Index,
    Interval,
    Is,
    Lambda,
    Like,
    Literal_,
    Node,
    Raw,
    Star,
    Unary,
)
from .numbers import NUMBERS, negative_of, number_of
from .read_over import OverReader

__all__ = ["ExpressionReader"]

_COMPARISONS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>")
_SAME = {"==": "=", "!=": "<>"}
#: Operators between values, loosest first.
_LEVELS: tuple[tuple[str, ...], ...] = (
    _COMPARISONS,
    ("|",),
    ("^",),
    ("&",),
    ("+", "-", "||"),
    ("*", "/", "%", "DIV"),
)
_EXPRESSION = "an expression"


class ExpressionReader(OverReader):
    """Reads expressions."""

    def expression(self) -> Node:
        """Read an expression of any kind."""
        start, found = self.begins, self._and()
        while self.sees("OR"):
            sign = self.step()
            found = Binary("OR", found, self._and(), (sign.start, sign.end), at=self.since(start))
        return found

    def _and(self) -> Node:
        start, found = self.begins, self._not()
        while self.sees("AND"):
            sign = self.step()
            found = Binary("AND", found, self._not(), (sign.start, sign.end), at=self.since(start))
        return found

    def _not(self) -> Node:
        start = self.begins
        if self.takes("NOT") or self.takes_sign("!"):
            return Unary("NOT", self._not(), at=self.since(start))
        return self._predicate()

    def _predicate(self) -> Node:
        start, found = self.begins, self.value()
        while True:
            made = self._tested(found, start)
            if made is None:
                return found
            found = made

    def _tested(self, of: Node, start: int) -> Node | None:
        """Read IS, IN, BETWEEN or LIKE behind a value."""
        if self.takes("IS"):
            negated = self.takes("NOT")
            if self.takes("DISTINCT", "FROM"):
                same = Binary("<=>", of, self.value(), at=self.since(start))
                return same if negated else Unary("NOT", same, at=same.at)
            for word in ("null", "true", "false"):
                if self.takes(word.upper()):
                    return Is(of, word, negated, at=self.since(start))
            raise self.unexpected(["NULL", "TRUE", "FALSE", "DISTINCT FROM"], "IS")
        negated = self.sees("NOT") and self.ahead().word in ("IN", "BETWEEN", "LIKE")
        self.at += negated
        if self.takes("IN"):
            opened = self.begins
            self.needs_sign("(", "IN")
            if self.sees("SELECT") or self.sees("WITH"):
                self.at -= 1
                items: tuple[Node, ...] = (self._raw(opened),)
            else:
                items = tuple(self.listed(self.expression))
                self.needs_sign(")", "the list of IN")
            return In(of, items, negated, at=self.since(start))
        if self.takes("BETWEEN"):
            low = self.value()
            self.needs("AND", behind="BETWEEN")
            return Between(of, low, self.value(), negated, at=self.since(start))
        if self.takes("LIKE"):
            pattern = self.value()
            escape = self.value() if self.takes("ESCAPE") else None
            return Like(of, pattern, escape, negated, at=self.since(start))
        return None

    def value(self, level: int = 0) -> Node:
        """Read a value: arithmetic and comparisons."""
        if level == len(_LEVELS):
            return self._unary()
        start, found = self.begins, self.value(level + 1)
        while self._operator(level):
            sign = self.step()
            op = sign.value.upper()
            right = self.value(level + 1)
            found = Binary(
                _SAME.get(op, op), found, right, (sign.start, sign.end), at=self.since(start)
            )
        return found

    def _operator(self, level: int) -> bool:
        token = self.token
        return (token.value if token.kind == "sign" else token.word) in _LEVELS[level]

    def _unary(self) -> Node:
        start = self.begins
        for sign in "-+~":
            if self.takes_sign(sign):
                token, of = self.token, self._unary()
                if sign == "-" and isinstance(of, Literal_) and of.kind in NUMBERS:
                    if of.at == (token.start, token.end):
                        return replace(negative_of(token), at=self.since(start))
                    # negating a decimal would round it
                    value = of.value.copy_negate() if of.kind == "decimal" else -of.value
                    return Literal_(value, of.kind, at=self.since(start))
                return Unary(sign, of, at=self.since(start))
        return self._postfix()

    def _postfix(self) -> Node:
        start, found = self.begins, self._primary()
        while True:
            if self.takes_sign("::"):
                typed = self.begins
                name = self._type()
                found = Cast(found, name, False, self.since(typed), at=self.since(start))
            elif self.takes_sign("["):
                place = self.expression()
                self.needs_sign("]")
                found = Index(found, place, at=self.since(start))
            elif self.sees_sign(".") and not isinstance(found, Column):
                self.step()
                found = Field(found, self.name("a field").value, at=self.since(start))
            else:
                return found

    def _primary(self) -> Node:
        token, start = self.token, self.begins
        if token.kind == "number":
            self.step()
            try:
                return number_of(token)
            except ValueError:
                raise self.source.error(
                    f"{token.value} is no number", token.start, token.end
                ) from None
        if token.kind == "string":
            self.step()
            value = token.value
            while self.token.kind == "string":
                value += self.step().value
            return Literal_(value, "string", at=self.since(start))
        if self.sees_sign("("):
            return self._parenthesised()
        if self.takes_sign("*"):
            return Star(at=self.since(start))
        if token.kind == "name":
            return self._column()
        if token.kind == "word":
            special = self._special(token.word)
            if special is not None:
                return special
            reserved = token.word in RESERVED_WORDS and token.word != "WINDOW"
            if reserved and not self.sees_sign("(", 1):
                raise self.unexpected([_EXPRESSION])
            if self.sees_sign("->", 1):
                self.at += 2
                return Lambda((token.value,), self.expression(), at=self.since(start))
            return self._call() if self.sees_sign("(", 1) else self._column()
        raise self.unexpected([_EXPRESSION])

    def _special(self, word: str) -> Node | None:
        """Read an expression that begins with a keyword."""
        start = self.begins
        if word in ("NULL", "TRUE", "FALSE"):
            self.step()
            value = {"NULL": None, "TRUE": True, "FALSE": False}[word]
            return Literal_(value, "null" if value is None else "boolean", at=self.since(start))
        if word == "CASE":
            return self._case()
        amount = self.ahead(2) if self.sees_sign("-", 1) else self.ahead()
        if word == "INTERVAL" and amount.kind in ("string", "number"):
            return self.interval()
        if word in ("DATE", "TIMESTAMP") and self.ahead().kind == "string":
            self.step()
            return Literal_(self.step().value, word.lower(), at=self.since(start))
        if word in ("CAST", "TRY_CAST") and self.sees_sign("(", 1):
            return self._cast(word == "TRY_CAST")
        if word == "EXTRACT" and self.sees_sign("(", 1):
            return self._extract()
        if word == "EXISTS" and self.sees_sign("(", 1):
            self.step()
            return self._raw(start)
        return None

    def interval(self) -> Interval:
        """Read INTERVAL and a length of time."""
        start = self.begins
        self.needs("INTERVAL")
        return Interval(interval_text(self, start), at=self.since(start))

    def _parenthesised(self) -> Node:
        start, place = self.begins, self.at
        self.step()
        if self.sees("SELECT") or self.sees("WITH"):
            self.at = place
            return self._raw(start)
        names = self._lambda_names()
        if names is not None:
            return Lambda(names, self.expression(), at=self.since(start))
        found = self.expression()
        if self.sees_sign(","):  # a row of values, which only Spark has
            self.at = place
            return self._raw(start)
        self.needs_sign(")")
        return found

    def _lambda_names(self) -> tuple[str, ...] | None:
        """Read the names of `(a, b) ->`, behind the parenthesis; None if it is something else."""
        place, names = self.at, []
        while self.token.kind in ("word", "name"):
            names.append(self.step().value)
            if not self.takes_sign(","):
                break
        if names and self.sees_sign(")") and self.sees_sign("->", 1):
            self.at += 2
            return tuple(names)
        self.at = place
        return None

    def _raw(self, start: int) -> Raw:
        self.skip_parentheses()
        at = self.since(start)
        return Raw(self.source[at[0] : at[1]], at=at)

    def _column(self) -> Node:
        start = self.begins
        parts = [self.name("a column").value]
        while self.sees_sign(".") and (
            self.ahead().kind in ("word", "name") or self.sees_sign("*", 1)
        ):
            self.step()
            if self.takes_sign("*"):
                return Star(at=self.since(start))
            parts.append(self.step().value)
        return Column(parts[-1], tuple(parts[:-1]), ".".join(parts).lower(), at=self.since(start))

    def _case(self) -> Node:
        start = self.begins
        self.needs("CASE")
        of = None if self.sees("WHEN") else self.expression()
        whens = []
        while self.takes("WHEN"):
            condition = self.expression()
            self.needs("THEN", behind="WHEN")
            whens.append((condition, self.expression()))
        if not whens:
            raise self.unexpected(["WHEN"], "CASE")
        otherwise = self.expression() if self.takes("ELSE") else None
        if not self.takes("END"):
            raise self.unexpected(["WHEN", "ELSE", "END"], "CASE")
        return Case(of, tuple(whens), otherwise, at=self.since(start))

    def _cast(self, tries: bool) -> Node:
        start = self.begins
        self.at += 2
        of = self.expression()
        self.needs("AS", behind="CAST")
        typed = self.begins
        name = self._type()
        at = self.since(typed)
        self.needs_sign(")", "the type of CAST")
        return Cast(of, name, tries, at, at=self.since(start))

    def _type(self) -> str:
        """Read the name of a type, in lower case, with its parameters."""
        start = self.begins
        name = self.name("a type").value.lower()
        if self.sees_sign("("):
            self.skip_parentheses()
        elif self.sees_sign("<"):
            depth = 0
            while True:
                token = self.step()
                if token.kind == "end":
                    raise self.unexpected([">"])
                if token.kind == "sign":
                    depth += (token.value == "<") - (token.value == ">")
                if not depth:
                    break
        else:
            return name
        return "".join(self.source[start : self.ended].lower().split())

    def _extract(self) -> Node:
        start = self.begins
        self.at += 2
        unit = self.name("a unit such as HOUR")
        self.needs("FROM", behind="the unit of EXTRACT")
        of = self.expression()
        self.needs_sign(")", "EXTRACT")
        return Extract(unit.value.lower(), of, (unit.start, unit.end), at=self.since(start))

    def _call(self) -> Node:
        start, place = self.begins, self.at
        name = self.step()
        self.step()
        try:
            found = self._arguments(name.value.lower(), start, (name.start, name.end))
        except SqlError:
            end = self.token
            if end.word not in ("FROM", "IN", "FOR", "SELECT"):
                raise
            self.at = place + 1
            return self._raw(start)
        return self._suffixes(found, start)

    def _arguments(self, name: str, start: int, named: tuple[int, int]) -> Call:
        distinct = self.takes("DISTINCT")
        if not distinct:
            self.takes("ALL")
        args: list[Node] = []
        if not self.sees_sign(")"):
            args = self.listed(self._argument)
        if name in ("substring", "substr") and self.takes("FROM"):
            args.append(self.expression())
            if self.takes("FOR"):
                args.append(self.expression())
        nulls = self._nulls()
        ordered = tuple(self.order_by()) if self.takes("ORDER", "BY") else ()
        if not self.takes_sign(")"):
            raise self.unexpected([",", ")"], f"the arguments of {name}")
        return Call(
            name,
            tuple(args),
            distinct,
            nulls=nulls,
            ordered=ordered,
            named=named,
            at=self.since(start),
        )

    def _argument(self) -> Node:
        if self.token.kind == "word" and self.sees_sign("=>", 1):
            raise self.source.error(
                "arguments by name are for TUMBLE, HOP, CUMULATE and SESSION in FROM TABLE(…)",
                self.begins,
                self.ahead().end,
            )
        return self.expression()

    def _nulls(self) -> Literal["ignore", "respect"] | None:
        """Read IGNORE NULLS or RESPECT NULLS."""
        if self.takes("IGNORE", "NULLS"):
            return "ignore"
        return "respect" if self.takes("RESPECT", "NULLS") else None

    def _suffixes(self, found: Call, start: int) -> Node:
        """Read the clauses that may follow a call: WITHIN GROUP, FILTER, IGNORE NULLS, OVER."""
        within, where, nulls, over = found.within, found.where, found.nulls, found.over
        if self.takes("WITHIN", "GROUP"):
            self.needs_sign("(", "WITHIN GROUP")
            self.needs("ORDER", "BY", behind="WITHIN GROUP (")
            within = tuple(self.order_by())
            self.needs_sign(")", "WITHIN GROUP")
        if self.sees("FILTER") and self.sees_sign("(", 1):
            self.at += 2
            self.needs("WHERE", behind="FILTER (")
            where = self.expression()
            self.needs_sign(")", "the condition of FILTER")
        nulls = nulls or self._nulls()
        if self.takes("OVER"):
            over = self.over()
        return Call(
            found.name,
            found.args,
            found.distinct,
            where,
            nulls,
            over,
            found.ordered,
            within,
            found.named,
            at=self.since(start),
        )
