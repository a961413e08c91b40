"""How an operator's partials lie in a slot, and which columns its answers need.

Operators that run `together` are one operator, a tree; its leaves are the operators with functions
of their own.  Each leaf has its share of the slot's 8-byte words: one word for each field of a
scalar or tuple partial, or as many as a vector needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..operators.contract import Operator

__all__ = ["RULE", "Answer", "Layout", "Leaf", "Refused", "layout_by_numba", "layout_by_trial"]

_SAMPLES = {"int64": 1, "timestamp": 1, "float64": 1.5, "bool": True}
#: The key of an operator's rule among its functions; the keys of the others are (leaf, role).
RULE = (0, "rule")
_WIDTH = {"b": 0, "i": 1, "u": 1, "f": 2}


class Refused(Exception):
    """numba refused one of an operator's functions.  The message says which one and why."""


@dataclass(frozen=True)
class Answer:
    """The shape of an answer: one column of a type, or a struct of several answers.

    A null struct has only null fields; a struct that is not null has none.
    """

    type: str = ""  # int64, float64, bool, timestamp, or vector:<i|u|f>:<length>
    nullable: bool = False
    fields: tuple[tuple[str, Answer], ...] = ()

    def columns(self) -> list[Answer]:
        """The columns of the answer, in order."""
        if not self.fields:
            return [self]
        return [c for _, a in self.fields for c in a.columns()]


@dataclass(frozen=True)
class Leaf:
    """One operator's share of a slot."""

    operator: Operator
    columns: tuple[int, ...]
    kinds: str  # a letter for each field: i(nt), u(nsigned), f(loat), b(ool)
    vector: int  # the length of a vector partial, or 0
    offset: int  # in words
    where: int | None = None  # the column of booleans; rows with false or null do not count

    @property
    def words(self) -> int:
        return self.vector or len(self.kinds)


@dataclass(frozen=True)
class Layout:
    """All leaves of an operator over typed columns."""

    operator: Operator
    leaves: tuple[Leaf, ...]
    answers: tuple[Answer, ...]  # one for each of `lowerings`; none if numba was not asked

    @cached_property
    def answer(self) -> Answer:
        """The shape of the whole operator's answer."""
        return _nested(self.shown.operator, list(self.shown.answers))

    @cached_property
    def shown(self) -> Layout:
        """The layout of the operator that users see, without the parts that only a rule reads."""
        shown = self.operator.shown
        if shown is self.operator:
            return self
        n = len(leaf_operators(shown))
        return Layout(shown, self.leaves[:n], self.answers[: len(lowerings(shown))])

    @cached_property
    def words(self) -> int:
        return sum(leaf.words for leaf in self.leaves)

    @property
    def vectors(self) -> bool:
        """True if a leaf's partial is a vector."""
        return any(leaf.vector for leaf in self.leaves)

    @property
    def kinds(self) -> str:
        """The types of all words, leaf by leaf: `ib f*64` for an int, a bool, and 64 floats."""
        return " ".join(f"{x.kinds}*{x.vector}" if x.vector else x.kinds for x in self.leaves)

    @property
    def types(self) -> tuple[str, ...]:
        return self.operator.types


def leaf_operators(
    operator: Operator, columns: Sequence[int] | None = None, where: int | None = None
) -> list[tuple[Operator, tuple[int, ...], int | None]]:
    """The operators with partials of their own; with each, the input columns that it reads, and the
    column that says which rows count, or None."""
    reads = tuple(range(len(operator.skips)) if columns is None else columns)
    if not operator.parts:
        return [(operator, reads, where)]
    return [
        leaf
        for part in operator.parts
        if part.shares is None
        for leaf in leaf_operators(
            part.operator,
            [reads[c] for c in part.columns],
            where if part.where is None else reads[part.where],
        )
    ]


def words_of(operator: Operator) -> int:
    """The number of words of a partial of numbers, counted on the operator's identity.

    >>> from sash.operators import mean
    >>> words_of(mean)
    2
    """
    kept = [leaf.identity for leaf, _, _ in leaf_operators(operator)]
    return sum(len(x) if isinstance(x, tuple | np.ndarray) else 1 for x in kept)


def lowerings(operator: Operator, first: int = 0) -> list[tuple[Operator, int]]:
    """The operators that have answers, in order; with each, the number of the leaf whose partial it
    lowers."""
    if not operator.parts:
        return [(operator, first)]
    starts = {}  # each part's first leaf
    for i, part in enumerate(operator.parts):
        if part.shares is None:
            starts[i] = first
            first += len(leaf_operators(part.operator))
    return [
        found
        for i, part in enumerate(operator.parts)
        for found in lowerings(part.operator, starts[i if part.shares is None else part.shares])
    ]


def layout_by_trial(operator: Operator) -> Layout:
    """Derive the layout from the operator's identity and a trial run of its functions."""
    leaves, offset = [], 0
    for op, columns, where in leaf_operators(operator):
        if op.shape == "vector":
            kinds, vector = _vector_kind(op.identity), len(op.identity)
        else:
            kinds, vector = _kinds(op.identity), 0
            row = [_SAMPLES[operator.types[c]] for c in columns]
            one = op.lift(*row)
            kinds = _wider(op, kinds, _kinds(one), "lift")
            kinds = _wider(op, kinds, _kinds(op.combine(one, one)), "combine")
        leaves.append(Leaf(op, columns, kinds, vector, offset, where))
        offset += leaves[-1].words
    return Layout(operator, tuple(leaves), ())


def layout_by_numba(operator: Operator, compiled: dict[tuple[int, str], Any]) -> Layout:
    """Derive the layout from the types that numba infers for compiled functions, keyed by
    (leaf, role), or by (answer, lower)."""
    from numba import types

    column = {
        "int64": types.int64,
        "timestamp": types.int64,
        "float64": types.float64,
        "bool": types.boolean,
    }
    leaves: list[Leaf] = []
    partials: list[Any] = []
    lowers: list[Any] = []
    offset = 0
    for n, (op, columns, where) in enumerate(leaf_operators(operator)):
        rows = [[column[operator.types[c]] for c in columns]]
        for i, skip in enumerate(op.skips):
            if not skip:
                rows += [[*row[:i], types.none, *row[i + 1 :]] for row in rows]
        if op.shape == "vector":
            kind, length = _vector_kind(op.identity), len(op.identity)
            array = types.Array(_scalar_type(kind), 1, "C")
            for row in rows:
                _infer(compiled, n, "lift", (array, *row), op)
            _infer(compiled, n, "combine", (array,) * 3, op)
            if op.inverse:
                _infer(compiled, n, "inverse", (array,) * 3, op)
            leaf = Leaf(op, columns, kind, length, offset, where)
            partial: Any = array
        else:
            kinds = _kinds(op.identity)
            for row in rows:
                made = _infer(compiled, n, "lift", tuple(row), op)
                kinds = _wider(op, kinds, _type_kinds(made), "lift")
            for _ in range(2):  # a second time if combine made a field wider
                partial = _partial_type(op, kinds)
                made = _infer(compiled, n, "combine", (partial,) * 2, op)
                kinds, before = _wider(op, kinds, _type_kinds(made), "combine"), kinds
                if kinds == before:
                    break
            if op.inverse:
                made = _infer(compiled, n, "inverse", (partial,) * 2, op)
                _wider(op, kinds, _type_kinds(made), "inverse")
            leaf = Leaf(op, columns, kinds, 0, offset, where)
        leaves.append(leaf)
        offset += leaf.words
        partials.append(partial)
    answers = []
    for k, (op, n) in enumerate(lowerings(operator)):
        lowered = _infer(compiled, k, "lower", (partials[n],), op) if op.lower else partials[n]
        answers.append(_answer(op, lowered, leaves[n]))
        lowers.append(lowered)
    if operator.rule:
        hidden = operator.parts[-1].operator
        looks_at = _lowered_type(hidden, lowers[-len(lowerings(hidden)) :])
        _infer(compiled, *RULE, (looks_at,) * 2, operator)
    return Layout(operator, tuple(leaves), tuple(answers))


def _lowered_type(operator: Operator, lowers: list[Any]) -> Any:
    """The numba type of an operator's answer, from those of its leaves."""
    from numba import types

    if not operator.parts:
        return types.unliteral(lowers.pop(0))
    return types.Tuple([_lowered_type(p.operator, lowers) for p in operator.parts])


def _nested(operator: Operator, answers: list[Answer]) -> Answer:
    """Nest the answers, taken in order, as the operator nests its parts."""
    if not operator.parts:
        return answers.pop(0)
    return Answer(
        fields=tuple(
            (name, _nested(part.operator, answers))
            for name, part in zip(operator.fields, operator.parts, strict=True)
        )
    )


def _infer(
    compiled: dict[tuple[int, str], Any], n: int, role: str, args: tuple[Any, ...], op: Operator
) -> Any:
    """The type that a compiled function returns for these arguments."""
    function = compiled[n, role]
    try:
        function.compile(args)
    except Exception as error:  # numba raises many kinds, all of them a refusal
        raise Refused(f"{role} of {op.name}: {_first_words(error)}") from error
    return function.overloads[args].signature.return_type


def _first_words(error: Exception) -> str:
    """The line of a numba error that says what is wrong."""
    lines = [x.strip() for x in str(error).splitlines() if x.strip()]
    lines = [x for x in lines if not x.startswith("Failed in nopython mode")]
    return lines[0] if lines else type(error).__name__


def _scalar_type(kind: str) -> Any:
    from numba import types

    return {"i": types.int64, "u": types.uint64, "f": types.float64, "b": types.boolean}[kind]


def _partial_type(op: Operator, kinds: str) -> Any:
    from numba import types

    if op.shape == "scalar":
        return _scalar_type(kinds)
    return types.Tuple([_scalar_type(k) for k in kinds])


def _type_kinds(made: Any) -> str:
    """The letters for the kinds of a numba type: a scalar, or the fields of a tuple."""
    from numba import types

    made = types.unliteral(made)
    if isinstance(made, types.BaseTuple):
        return "".join(_type_kinds(t) for t in made)
    if isinstance(made, types.Boolean):
        return "b"
    if isinstance(made, types.Integer):
        return "i" if made.signed or made.bitwidth < 64 else "u"
    if isinstance(made, types.Float):
        return "f"
    return "?"


def _answer(op: Operator, made: Any, leaf: Leaf) -> Answer:
    from numba import types

    nullable = isinstance(made, types.Optional)
    made = types.unliteral(made.type if nullable else made)
    if isinstance(made, types.Array):
        if op.lower is not None:
            raise Refused(f"lower of {op.name}: an answer that is an array cannot be compiled")
        return Answer(f"vector:{leaf.kinds}:{leaf.vector}")
    kinds = _type_kinds(made)
    if "?" in kinds or not kinds:
        raise Refused(f"lower of {op.name}: it returns {made}, which is no number or tuple of them")
    names = {"i": "int64", "u": "int64", "f": "float64", "b": "bool"}
    columns = [names[k] for k in kinds]
    if op.returns:
        columns = [r or c for r, c in zip(op.returns, columns, strict=True)]
    if not isinstance(made, types.BaseTuple):
        return Answer(columns[0], nullable)
    labels = op.fields or tuple(f"field_{i}" for i in range(len(columns)))
    return Answer(
        nullable=nullable,
        fields=tuple((n, Answer(t, nullable)) for n, t in zip(labels, columns, strict=True)),
    )


def _vector_kind(identity: np.ndarray[Any, Any]) -> str:
    kinds = {"int64": "i", "uint64": "u", "float64": "f"}
    if str(identity.dtype) not in kinds:
        raise TypeError(
            f"a vector partial has dtype int64, uint64 or float64, not {identity.dtype}; "
            "make identity with one of them"
        )
    return kinds[str(identity.dtype)]


def _kinds(partial: Any) -> str:
    """The letters for the kinds of a Python value: a scalar, or the fields of a tuple."""
    if isinstance(partial, tuple):
        return "".join(_kinds(x) for x in partial)
    if isinstance(partial, bool | np.bool_):
        return "b"
    if isinstance(partial, np.uint64):
        return "u"
    if isinstance(partial, int | np.integer):
        return "i"
    return "f" if isinstance(partial, float | np.floating) else "?"


def _wider(op: Operator, a: str, b: str, role: str) -> str:
    """For each field the wider of two kinds; `a` and `b` must have as many fields."""
    if len(a) != len(b):
        raise Refused(
            f"{role} of {op.name}: it returns a partial of another shape than identity "
            f"({len(b)} field(s) where identity has {len(a)})"
        )
    if "?" in b:
        raise Refused(f"{role} of {op.name}: it returns a partial that is, or has, no number")
    return "".join(x if _WIDTH[x] >= _WIDTH[y] else y for x, y in zip(a, b, strict=True))
