"""Check the laws of operators, by hypothesis.

    no mutation     lift, combine, inverse, lower and encode leave their arguments as they were
    identity        combine(identity, a) == a == combine(a, identity)
    associativity   combine(combine(a, b), c) == combine(a, combine(b, c))
    commutativity   combine(a, b) == combine(b, a), if declared
    inverse         inverse(combine(a, b), a) == b, if there is one
    codec           decode(encode(a)) == a, if there is one
    fold            folding values one by one gives what a balanced tree over them gives

The check folds lists of values, including empty ones, into partials.  It compares partials by the
operator's `equal`, if it has one, or else exactly, where NaN equals NaN.  The answers of equal
partials must both be null, or neither.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import random
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from ..operators.contract import Operator, same
from .schedules import POOLS, column_kinds

__all__ = ["LAWS", "LawError", "laws", "values_of"]

#: The names of the laws, in the order of the checks.
LAWS = (
    "no mutation",
    "identity",
    "associativity",
    "commutativity",
    "inverse",
    "codec",
    "fold",
)

_LONGEST = 4  # values in one partial: enough for every order of three neighbours


class LawError(AssertionError):
    """Raised if an operator breaks a law that it must obey, or one that it declares.

    `laws` has the names of all broken laws; the message shows the smallest values found that break
    each of them.

    >>> import sash
    >>> text = sash.operator(identity="", lift=str, combine=lambda a, b: a + b, commutative=True)
    >>> try:
    ...     laws(text)
    ... except LawError as error:
    ...     error.laws
    ('commutativity',)
    """

    def __init__(self, message: str, laws: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.laws = laws


def laws(operator: Operator, values: Any = None, *, max_examples: int = 100) -> None:
    """Check an operator against the laws; raise `LawError` if it breaks one.

    `values` is a hypothesis strategy of raw values (tuples, for several columns).  Without it, the
    check draws values of the operator's types, or else numbers or strings, with nulls.

    >>> import sash
    >>> laws(sash.operators.max.of(float))
    >>> wrong = sash.operator(identity=0, lift=lambda x: x, combine=max, name="largest")
    >>> laws(wrong)
    Traceback (most recent call last):
        ...
    sash.testing.laws.LawError: <operator largest> breaks 2 laws
    identity: combine(identity, a) == a
        a = -1 (of values [-1])
        combine(identity, a) = 0
    fold: folding one by one == a balanced tree
        values = [-1]
        fold = 0
        tree = -1
    """
    if not isinstance(operator, Operator):
        raise TypeError(f"laws are for operators, not {operator!r}")
    hypothesis = need_hypothesis()
    st = hypothesis.strategies
    items = values_of(operator) if values is None else values
    lists = st.lists(items, max_size=_LONGEST)
    triples = st.tuples(lists, lists, lists)
    quiet = hypothesis.settings(
        max_examples=max_examples,
        deadline=None,
        database=None,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
    )

    broken: dict[str, Any] = {}

    def look(triple: Any) -> None:
        example = _Example(operator, triple)
        for law in LAWS:
            if "no mutation" in broken:
                return  # an operator that mutates breaks other laws too
            if law not in broken and _CHECKS[law](example):
                broken[law] = triple

    try:
        quiet(hypothesis.given(triples)(look))()
    except Exception as error:
        error.add_note(
            f"{operator!r} raised this on values that sash.testing.laws made up: if it does not "
            "take such values, give laws(operator, values) a hypothesis strategy of those it takes"
        )
        raise
    if not broken:
        return
    lines = []
    for law in (x for x in LAWS if x in broken):
        smallest = _smallest(hypothesis, triples, operator, law, broken[law])
        lines.append(f"{law}: {_CHECKS[law](_Example(operator, smallest))}")
    how_many = "a law" if len(lines) == 1 else f"{len(lines)} laws"
    named = tuple(x for x in LAWS if x in broken)
    raise LawError(f"{operator!r} breaks {how_many}\n" + "\n".join(lines), named)


def values_of(operator: Operator) -> Any:
    """A hypothesis strategy of raw values that an operator takes.

    Ties are frequent, and one value in a few is None.  Floats include NaN, infinities and -0.0; all
    others are sums of few powers of two, so that adding them is exact in any order.

    >>> from hypothesis import find
    >>> from sash.operators import arg_max
    >>> find(values_of(arg_max.of(bool, int)), lambda row: None not in row)
    (False, 0)
    """
    st = need_hypothesis().strategies
    # Rounding is only bounded for values of one size; whole numbers of any size are for
    # operators that claim to be exact.
    exact = operator.equal is None
    # As wide as sums with a few quarters are exact in floating point, which is among the values;
    # a float in the identity may be for products of two values.
    most = (2**20 if _has_float(operator.identity) else 2**40) if exact else 1000
    numbers = st.integers(-most, most)
    wide = {
        "int64": st.integers(-(2**63), 2**63 - 1) if exact else st.integers(-1000, 1000),
        "timestamp": st.integers(-(2**55), 2**55),
        "float64": st.integers(-1000, 1000).map(lambda n: n / 8),
        "number": numbers,
        "plain": numbers,
        "text": st.text("abc", max_size=3),
    }
    columns = []
    for kind in column_kinds(operator):
        few = POOLS[kind]
        pool = st.sampled_from((*few, *(None,) * (1 + len(few) // 4)))
        columns.append(st.one_of(pool, pool, wide[kind]) if kind in wide else pool)
    return columns[0] if len(columns) == 1 else st.tuples(*columns)


def _has_float(identity: Any) -> bool:
    """True if a partial has a field that is a float."""
    if isinstance(identity, tuple):
        return any(map(_has_float, identity))
    return isinstance(identity, float) or str(getattr(identity, "dtype", "")) == "float64"


def need_hypothesis() -> Any:
    """Import the hypothesis package; raises an error that says how to install it."""
    try:
        import hypothesis
        import hypothesis.strategies
    except ImportError:
        raise ImportError(
            "this part of sash.testing needs hypothesis: pip install 'sash[test]'"
        ) from None
    return hypothesis


def _smallest(hypothesis: Any, triples: Any, operator: Operator, law: str, found: Any) -> Any:
    """The simplest values that break a law, or the first ones found if the failure does not
    repeat."""
    hunt = hypothesis.settings(
        max_examples=500,
        deadline=None,
        database=None,
        derandomize=False,
        report_multiple_bugs=False,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
    )

    def breaks(triple: Any) -> bool:
        try:
            return bool(_CHECKS[law](_Example(operator, triple)))
        except Exception:
            return False

    try:
        return hypothesis.find(triples, breaks, settings=hunt, random=random.Random(0))
    except hypothesis.errors.NoSuchExample:
        return found


class _Example:
    """Three lists of values, their partials, and the operator's functions.  Each example has a
    fresh identity and guards arguments against mutation, so that it cannot spoil the next
    example."""

    def __init__(self, operator: Operator, triple: Any) -> None:
        self.operator = dataclasses.replace(operator, identity=_copy(operator, operator.identity))
        op = self.operator
        self.plain = op.shape in ("scalar", "tuple") and not op.parts  # nothing to guard
        self.identity = op.identity
        self._lift, self._combine = op.python_lift(), op.python_combine()
        self.lower = op.python_lower()
        self._equal = op.equal or same
        self.xs, self.ys, self.zs = triple

    @cached_property
    def a(self) -> Any:
        return self.partial(self.xs)

    @cached_property
    def b(self) -> Any:
        return self.partial(self.ys)

    @cached_property
    def c(self) -> Any:
        return self.partial(self.zs)

    def guard(self, partial: Any) -> Any:
        return partial if self.plain else _copy(self.operator, partial)

    def combine(self, a: Any, b: Any) -> Any:
        return self._combine(self.guard(a), self.guard(b))

    def lift(self, value: Any) -> Any:
        return self._lift(copy.deepcopy(value))

    def partial(self, values: Sequence[Any]) -> Any:
        """The partial of values, folded without the identity, because a wrong identity would hide
        itself."""
        if not values:
            return self.guard(self.identity)
        made = self.lift(values[0])
        for value in values[1:]:
            made = self.combine(made, self.lift(value))
        return made

    def tree(self, partials: list[Any]) -> Any:
        if len(partials) < 2:
            return partials[0] if partials else self.guard(self.identity)
        middle = len(partials) // 2
        return self.combine(self.tree(partials[:middle]), self.tree(partials[middle:]))

    def equal(self, a: Any, b: Any) -> bool:
        return bool(self._equal(a, b)) and self._null(a) == self._null(b)

    def _null(self, partial: Any) -> bool:
        try:
            return self.lower(self.guard(partial)) is None
        except OverflowError:  # an answer may not fit its type although the partial is right
            return False


def _copy(operator: Operator, partial: Any) -> Any:
    """A copy that shares nothing that could be changed."""
    if operator.shape in ("scalar", "tuple"):
        if not operator.parts:
            return partial
        parts = zip(operator.parts, partial, strict=True)
        return tuple(_copy(p.operator, x) for p, x in parts)
    try:
        return copy.deepcopy(partial)
    except Exception:  # objects from compiled packages often cannot be copied
        if operator.encode is None or operator.decode is None:
            return partial
        return operator.decode(operator.encode(partial))


def _image(operator: Operator, partial: Any) -> Any:
    """An image of a partial, to compare it before and after a call."""
    if operator.parts:
        parts = zip(operator.parts, partial, strict=True)
        return tuple(_image(p.operator, x) for p, x in parts)
    if operator.shape != "object":
        return _copy(operator, partial)
    if operator.encode is not None:
        try:
            return bytes(operator.encode(partial))
        except Exception:  # the law of codecs reports this
            return _copy(operator, partial)
    return _copy(operator, partial)


def _unchanged(operator: Operator, before: Any, partial: Any) -> bool:
    """True if a partial still equals its image.

    A sketch may reorganise itself when it is read, for example sort its values, which changes its
    bytes; its meaning must stay the same.
    """
    if operator.parts:
        parts = zip(operator.parts, before, partial, strict=True)
        return all(_unchanged(p.operator, was, x) for p, was, x in parts)
    if same(before, _image(operator, partial)):
        return True
    if operator.equal is None or operator.decode is None or not isinstance(before, bytes):
        return False
    return bool(operator.equal(operator.decode(before), partial))


def _shown(**partials: tuple[Any, Sequence[Any]]) -> str:
    return "".join(
        f"\n    {name} = {partial!r} (of values {list(values)!r})"
        for name, (partial, values) in partials.items()
    )


def _check_mutation(f: _Example) -> str:
    xs, ys, op = f.xs, f.ys, f.operator

    def changed(name: str, function: Callable[..., Any], *given: Sequence[Any]) -> str:
        arguments = [f.partial(values) for values in given]
        before = [_image(op, a) for a in arguments]
        shown = [repr(a) for a in arguments]
        with contextlib.suppress(OverflowError):
            function(*arguments)
        for letter, was, text, argument in zip("ab", before, shown, arguments, strict=False):
            if not _unchanged(op, was, argument):
                return (
                    f"{name} changes its argument {letter}"
                    f"\n    {letter} = {text} before, {argument!r} after"
                    f"\n    values of {' and '.join('ab'[: len(given)])}: "
                    f"{', '.join(map(repr, given))}"
                )
        return ""

    found = changed("combine", op.python_combine(), xs, ys) or changed("lower", f.lower, xs)
    if not found and op.inverse is not None:
        inverse = op.python_inverse()
        found = changed("inverse", lambda total, old: inverse(total, old), [*xs, *ys], xs)
    if not found and op.encode is not None:
        found = changed("encode", op.encode, xs)
    if not found:
        # A combine that grows its left argument may do so in the identity itself.
        identity, lift, combine = f.guard(f.identity), op.python_lift(), op.python_combine()
        total = f.identity
        for value in xs:
            total = combine(total, lift(copy.deepcopy(value)))
        if not _unchanged(op, _image(op, identity), f.identity):
            found = f"combine changes the identity\n    values = {list(xs)!r}"
    return found


def _check_identity(f: _Example) -> str:
    left, right = f.combine(f.identity, f.a), f.combine(f.a, f.identity)
    for what, got in (("combine(identity, a)", left), ("combine(a, identity)", right)):
        if not f.equal(got, f.a):
            return f"{what} == a{_shown(a=(f.a, f.xs))}\n    {what} = {got!r}"
    return ""


def _check_associativity(f: _Example) -> str:
    left, right = f.combine(f.combine(f.a, f.b), f.c), f.combine(f.a, f.combine(f.b, f.c))
    if f.equal(left, right):
        return ""
    return (
        "combine(combine(a, b), c) == combine(a, combine(b, c))"
        f"{_shown(a=(f.a, f.xs), b=(f.b, f.ys), c=(f.c, f.zs))}"
        f"\n    combine(combine(a, b), c) = {left!r}\n    combine(a, combine(b, c)) = {right!r}"
    )


def _check_commutativity(f: _Example) -> str:
    if not f.operator.commutative:
        return ""
    one, other = f.combine(f.a, f.b), f.combine(f.b, f.a)
    if f.equal(one, other):
        return ""
    return (
        f"combine(a, b) == combine(b, a), as declared{_shown(a=(f.a, f.xs), b=(f.b, f.ys))}"
        f"\n    combine(a, b) = {one!r}\n    combine(b, a) = {other!r}"
    )


def _check_inverse(f: _Example) -> str:
    if f.operator.inverse is None:
        return ""
    left = f.operator.python_inverse()(f.combine(f.a, f.b), f.guard(f.a))
    if f.equal(left, f.b):
        return ""
    return (
        f"inverse(combine(a, b), a) == b{_shown(a=(f.a, f.xs), b=(f.b, f.ys))}"
        f"\n    inverse(combine(a, b), a) = {left!r}"
    )


def _check_codec(f: _Example) -> str:
    return _round_trip(f.operator, f.a, f.xs)


def _round_trip(op: Operator, partial: Any, values: Sequence[Any]) -> str:
    for part, x in zip(op.parts, partial if op.parts else (), strict=True):
        found = _round_trip(part.operator, x, values)
        if found:
            return found
    if op.encode is None or op.decode is None:
        return ""
    law = f"decode(encode(a)) == a{_shown(a=(partial, values))}\n    "
    try:
        data = op.encode(_copy(op, partial))
        if not isinstance(data, bytes):
            return f"{law}encode(a) = {data!r}, which is no bytes"
        back = op.decode(data)
    except Exception as error:
        return f"{law}raises {type(error).__name__}: {error}"
    f = _Example(op, ([], [], []))
    # Twice, because a window is written and read many times, and must not change by it.
    if f.equal(back, partial) and f.equal(op.decode(op.encode(back)), partial):
        return ""
    return f"{law}decode(encode(a)) = {back!r}"


def _check_fold(f: _Example) -> str:
    values = [*f.xs, *f.ys, *f.zs]
    fold = f.operator.fold(copy.deepcopy(values))
    tree = f.tree([f.lift(value) for value in values])
    if f.equal(fold, tree):
        return ""
    return (
        f"folding one by one == a balanced tree\n    values = {values!r}"
        f"\n    fold = {fold!r}\n    tree = {tree!r}"
    )


_CHECKS: dict[str, Callable[[_Example], str]] = {
    "no mutation": _check_mutation,
    "identity": _check_identity,
    "associativity": _check_associativity,
    "commutativity": _check_commutativity,
    "inverse": _check_inverse,
    "codec": _check_codec,
    "fold": _check_fold,
}
