"""Compute expressions over the columns of a table, as Spark does in its default (ANSI) mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .arithmetic import arithmetic, compare, negated, whole_quotient
from .casts import cast
from .errors import Source
from .functions import FORMS, UNITS, call, extract, takes, unit_named
from .nodes import (
    Alias,
    Between,
    Binary,
    Call,
    Case,
    Cast,
    Column,
    Extract,
    Guarded,
    In,
    Interval,
    Is,
    Like,
    Literal_,
    Node,
    Ref,
    Unary,
    walk,
)
from .spark_types import TYPE_NAMES, common_type, spark_name, type_named
from .values import Unusable, Value, as_mask

__all__ = ["Evaluator", "check_expression"]

_is = pa.types
_BINARY: tuple[str, ...] = ("+", "-", "*", "/", "%", "DIV", "||", "AND", "OR")
_BINARY += ("=", "<>", "<", "<=", ">", ">=", "<=>")


def check_expression(node: Node, source: Source) -> None:
    """Refuse an expression that this process cannot compute over any table."""
    for part in walk(node):
        problem, allowed, at = _problem(part)
        if problem:
            raise source.error(problem, *at, allowed)


def _problem(part: Node) -> tuple[str, tuple[str, ...], tuple[int, int]]:
    if isinstance(part, Call) and part.name in FORMS and not takes(part.name, len(part.args)):
        return f"{part.name} is written as {FORMS[part.name]}", (), part.at
    if isinstance(part, Cast) and type_named(part.type) is None:
        return f"{part.type} is no type that CAST knows here", TYPE_NAMES, part.typed
    if isinstance(part, Extract) and unit_named(part.unit) is None:
        return f"{part.unit} is no unit that EXTRACT knows", UNITS, part.named
    if isinstance(part, Binary) and part.op not in _BINARY:
        return f"{part.op} is not supported in this process", _BINARY, part.sign
    if isinstance(part, Unary) and part.op == "~":
        return "~ is not supported in this process", (), part.at
    return "", (), part.at


@dataclass(frozen=True)
class Evaluator:
    """Computes expressions over columns."""

    source: Source
    rows: int
    column: Callable[[str, Literal["start", "end"] | None], Any]  # by name, and part of a window
    zone: str | None = None
    home: str | None = None  # the zone of timestamps; None if they are clock times

    def value(self, node: Node) -> Value:
        """The values of an expression, for all rows."""
        try:
            return self._value(node)
        except Unusable as error:
            raise self.source.error(str(error), *node.at) from None
        except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
            raise self.source.error(
                "this expression does not work on columns of these types", *node.at
            ) from None

    def _value(self, node: Node) -> Value:
        if isinstance(node, Literal_):
            return Value(self._literal(node))
        if isinstance(node, Column):
            return Value(self.column(node.name, None))
        if isinstance(node, Ref):
            return Value(self.column(node.name, node.part))
        if isinstance(node, Alias):
            return self._value(node.of)
        if isinstance(node, Unary):
            return self._unary(node)
        if isinstance(node, Binary):
            return self._binary(node)
        if isinstance(node, Is):
            return self._is(node)
        if isinstance(node, Between):
            of, low, high = (self.value(n) for n in (node.of, node.low, node.high))
            above = self._compared(">=", of, low, node)
            return self._maybe_not(
                self._and(above, self._compared("<=", Value(of.data), high, node)), node.negated
            )
        if isinstance(node, In):
            return self._in(node)
        if isinstance(node, Like):
            return self._like(node)
        if isinstance(node, Case):
            return self._case(node)
        if isinstance(node, Guarded):
            return self._case(Case(None, ((node.where, node.of),), None, at=node.at))
        if isinstance(node, Cast):
            return self._cast(node)
        if isinstance(node, Extract):
            return extract(node.unit, self.value(node.of), self.rows, self.zone)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, Interval):
            raise Unusable("an interval is the length of a window, and no value in this process")
        raise Unusable("this process cannot compute this; sash.spark.sql has all of Spark's")

    def _literal(self, node: Literal_) -> pa.Scalar:
        if node.kind == "null":
            return pa.scalar(None)
        if node.kind == "decimal":
            _, digits, exponent = node.value.as_tuple()
            scale = max(0, -exponent)
            precision = max(len(digits) + max(0, exponent), scale, 1)
            if precision > 38:
                raise Unusable("this number has more than the 38 digits of a decimal")
            return pa.scalar(node.value, pa.decimal128(precision, scale))
        kind = self._type(node.kind)
        if node.kind in ("date", "timestamp"):
            made = cast(Value(pa.scalar(node.value)), kind, 1, self.zone)
            if made.failed:
                raise Unusable(f"{node.value!r} is no {node.kind}")
            return made.array(1)[0]
        try:
            return pa.scalar(node.value, kind)
        except (pa.ArrowInvalid, OverflowError):
            raise Unusable(f"{node.value} is beyond {spark_name(kind)}") from None

    def _type(self, name: str) -> pa.DataType:
        """The type for a name: a timestamp is an instant if columns have a zone."""
        if name == "timestamp" and self.home is not None:
            return pa.timestamp("us", self.home)
        kind = type_named(name)
        assert kind is not None
        return kind

    def _unary(self, node: Unary) -> Value:
        of = self.value(node.of)
        if node.op == "NOT":
            return self._maybe_not(self.condition(of, node.of), True)
        if node.op == "-":
            return negated(of, self.rows)
        return of

    def _maybe_not(self, value: Value, negated: bool) -> Value:
        return Value(pc.invert(value.data), value.failed) if negated else value

    def condition(self, value: Value, node: Node) -> Value:
        """The value of a condition; raises an error if it is no boolean."""
        if _is.is_null(value.type):
            return Value(pa.scalar(None, pa.bool_()), value.failed)
        if _is.is_string(value.type):
            return cast(value, pa.bool_(), self.rows, self.zone)
        if not _is.is_boolean(value.type):
            raise self.source.error(
                f"this is {spark_name(value.type)}, and a condition is boolean; compare it with "
                "something, as in x > 0",
                *node.at,
            )
        return value

    def _binary(self, node: Binary) -> Value:
        if node.op in ("AND", "OR"):
            left = self.condition(self.value(node.left), node.left)
            right = self.condition(self.value(node.right), node.right)
            return self._and(left, right) if node.op == "AND" else self._or(left, right)
        left, right = self.value(node.left), self.value(node.right)
        if node.op == "||":
            return call("concat", [left, right], self.rows, self.zone)
        if node.op == "DIV":
            return whole_quotient(left, right, self.rows)
        if node.op in ("+", "-", "*", "/", "%"):
            literals = tuple(
                n.value if isinstance(n, Literal_) and isinstance(n.value, int) else None
                for n in (node.left, node.right)
            )
            return arithmetic(node.op, left, right, self.rows, literals)  # type: ignore[arg-type]
        return self._compared(node.op, left, right, node)

    def _compared(self, op: str, left: Value, right: Value, node: Node) -> Value:
        return compare(op, left, right, self.rows, self.zone)

    def _and(self, left: Value, right: Value) -> Value:
        """AND, where failures of the right side count only if the left side is not false."""
        open_ = ~as_mask(pc.invert(left.data), self.rows)
        return Value(pc.and_kleene(left.data, right.data), left.failed + right.within(open_))

    def _or(self, left: Value, right: Value) -> Value:
        open_ = ~as_mask(left.data, self.rows)
        return Value(pc.or_kleene(left.data, right.data), left.failed + right.within(open_))

    def _is(self, node: Is) -> Value:
        of = self.value(node.of)
        if node.what == "null":
            made = pc.is_null(of.data)
        else:
            of = self.condition(of, node.of)
            data = of.data if node.what == "true" else pc.invert(of.data)
            made = pc.coalesce(data, pa.scalar(False))
        return self._maybe_not(Value(made, of.failed), node.negated)

    def _in(self, node: In) -> Value:
        of = self.value(node.of)
        found: Value | None = None
        for item in node.items:
            same = self._compared("=", of, self.value(item), node)
            if found is None:
                found = same
            else:
                found = Value(pc.or_kleene(found.data, same.data), found.failed + same.failed)
        assert found is not None
        return self._maybe_not(found, node.negated)

    def _like(self, node: Like) -> Value:
        of = cast(self.value(node.of), pa.string(), self.rows, self.zone)
        pattern = node.pattern
        if not isinstance(pattern, Literal_) or pattern.kind != "string":
            raise self.source.error("the pattern of LIKE is a text in quotes", *pattern.at)
        escape = "\\"
        if node.escape is not None:
            if not isinstance(node.escape, Literal_) or len(str(node.escape.value)) != 1:
                raise self.source.error("ESCAPE takes one character in quotes", *node.escape.at)
            escape = str(node.escape.value)
        expression = _pattern(str(pattern.value), escape)
        if expression is None:
            raise self.source.error(
                f"{escape!r} in a pattern stands before %, _ or itself", *pattern.at
            )
        made = pc.match_substring_regex(of.data, expression)
        return self._maybe_not(Value(made, of.failed), node.negated)

    def _case(self, node: Case) -> Value:
        of = None if node.of is None else self.value(node.of)
        left = np.ones(self.rows, dtype=bool)  # rows without a branch so far
        failed = () if of is None else of.failed
        branches: list[tuple[Any, Value]] = []
        for condition, then in node.whens:
            test = self.value(condition)
            if of is None:
                test = self.condition(test, condition)
            else:
                test = self._compared("=", Value(of.data), test, condition)
            failed += test.within(left)
            chosen = left & as_mask(test.data, self.rows)
            branches.append((chosen, self.value(then)))
            left = left & ~chosen
        otherwise = Value(pa.scalar(None)) if node.otherwise is None else self.value(node.otherwise)
        return self._picked([*branches, (left, otherwise)], failed)

    def _picked(self, branches: list[tuple[Any, Value]], failed: Any) -> Value:
        """The value of the branch that each row takes."""
        kind = pa.null()
        for _, value in branches:
            kind = common_type(kind, value.type)
        made: Any = pa.scalar(None, kind)
        for chosen, value in reversed(branches):
            typed = cast(Value(value.data), kind, self.rows, self.zone)
            failed += value.within(chosen) + typed.within(chosen)
            made = pc.if_else(pa.array(chosen), typed.data, made)
        return Value(made, failed)

    def _cast(self, node: Cast) -> Value:
        of = self.value(node.of)
        kind = self._type(node.type)
        made = cast(Value(of.data), kind, self.rows, self.zone)
        return Value(made.data, of.failed if node.tries else of.failed + made.failed)

    def _call(self, node: Call) -> Value:
        if node.name == "coalesce":
            left = np.ones(self.rows, dtype=bool)
            branches = []
            for argument in node.args:
                value = self.value(argument)
                there = left & as_mask(pc.is_valid(value.data), self.rows)
                # a null that comes from a failure counts as a failure
                for mask, _ in value.failed:
                    there = there | (left & mask)
                branches.append((there, value))
                left = left & ~there
            return self._picked([*branches, (left, Value(pa.scalar(None)))], ())
        if node.name == "nullif":
            one, two = (self.value(a) for a in node.args)
            same = self._compared("=", one, two, node)
            chosen = as_mask(same.data, self.rows)
            made = pc.if_else(pa.array(chosen), pa.scalar(None, one.type), one.data)
            return Value(made, same.failed)
        return call(node.name, [self.value(a) for a in node.args], self.rows, self.zone)


def _pattern(like: str, escape: str) -> str | None:
    """Turn a pattern of LIKE into a regular expression; None if its escapes are wrong."""
    made, at = "", 0
    while at < len(like):
        sign = like[at]
        if sign == escape:
            at += 1
            if at == len(like) or (like[at] not in "%_" and like[at] != escape):
                return None
            made += _quoted(like[at])
        else:
            made += {"%": ".*", "_": "."}.get(sign) or _quoted(sign)
        at += 1
    return rf"(?s)\A{made}\z"


def _quoted(sign: str) -> str:
    return sign if sign.isalnum() or ord(sign) > 127 else f"\\x{{{ord(sign):x}}}"
