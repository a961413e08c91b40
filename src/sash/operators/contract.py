"""The contract of an operator, which every aggregator works against.

An operator turns events into partials (`lift`), joins the partials of two neighbouring
spans of the stream (`combine`, associative, with `identity` for the empty span), and turns
a partial into an answer (`lower`).  For example the mean:

    lift(4.0)                     -> (1, 4.0)
    combine((1, 4.0), (2, 11.0))  -> (3, 15.0)
    lower((3, 15.0))              -> 5.0

A partial has one of four shapes, which follows from `identity`:

    scalar   a bool, int or float
    tuple    a tuple of those
    vector   a one-dimensional numpy array; functions that make one write it into `out`
    object   anything else

The first three can be compiled; the fourth always runs in plain Python.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

import numpy as np

__all__ = ["Operator", "Part", "itself", "ready", "same", "type_name"]

#: The column types of compiled code, and `object` for all other types.
TYPES = ("int64", "float64", "bool", "timestamp", "object")


@dataclass(frozen=True)
class Part:
    """One of several operators that run `together`, and the columns that it reads.

    With `shares`, the part has no partial of its own: it lowers the partial of the part with this
    index, which has the same lift and combine.  With `where`, it skips the rows in which the column
    with this index is not true.
    """

    operator: Operator
    columns: tuple[int, ...]
    shares: int | None = None
    where: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Operator:
    """An operation on values, as functions on partials.

    `sash.operator(...)` builds one; `sash.operators` has ready ones.  `skips` has one entry for
    each input column: True if a null there skips the row; otherwise `lift` sees None.  `of` ties
    the operator to the types of its columns, which are then in `types`.

    `ready` is the name of a ready operator in `sash.operators`, whatever its parameters and types
    are.  It is empty for an operator of your own, whatever its name is.  A copy with other
    functions (`dataclasses.replace`) counts as an operator of your own.

    `unchecked` leaves the index checks out of compiled functions.  `adds` means that `lift` of a
    vector adds a value to the contents of `out`, so that many values can be lifted into one slot.
    `serves` maps the lift of another operator, whose answers also follow from these partials, to
    the lower that computes those answers.

    >>> from sash.operators import mean
    >>> p = mean.combine(mean.lift(4.0), mean.lift(7.0))
    >>> mean.lower(p)
    5.5
    """

    name: str
    identity: Any
    lift: Callable[..., Any]
    combine: Callable[..., Any]
    lower: Callable[[Any], Any] | None = None
    inverse: Callable[..., Any] | None = None
    commutative: bool = False
    encode: Callable[[Any], bytes] | None = None
    decode: Callable[[bytes], Any] | None = None
    equal: Callable[[Any, Any], bool] | None = None
    skips: tuple[bool, ...] = (True,)
    fields: tuple[str, ...] = ()
    compile: bool = True
    types: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()
    typed: Callable[[tuple[str, ...]], Operator | None] | None = None
    parts: tuple[Part, ...] = ()
    serves: tuple[tuple[Callable[..., Any], Callable[[Any], Any]], ...] = ()
    rule: Callable[[Any, Any], bool] | None = None
    unchecked: bool = False
    adds: bool = False
    ready: str = dataclasses.field(default="", init=False)
    parameters: tuple[Any, ...] = dataclasses.field(default=(), init=False)

    @property
    def shown(self) -> Operator:
        """The operator whose answers a query returns: this one, or with a `rule` the first of its
        two parts.  The rule, a window slide policy, looks at the answers of the second part.

        >>> from sash.operators import max
        >>> max.shown
        <operator max>
        """
        return self.parts[0].operator if self.rule else self

    @property
    def shape(self) -> str:
        """The partial's shape: scalar, tuple, vector or object.

        >>> from sash.operators import collect, variance
        >>> variance.shape, collect.shape
        ('tuple', 'object')
        """
        if self.parts:
            shapes = {p.operator.shape for p in self.parts}
            return "object" if "object" in shapes else "tuple"
        if isinstance(self.identity, np.ndarray):
            return "vector"
        if _is_scalar(self.identity):
            return "scalar"
        if (
            isinstance(self.identity, tuple)
            and self.identity
            and all(_is_scalar(x) for x in self.identity)
        ):
            return "tuple"
        return "object"

    @property
    def invertible(self) -> bool:
        """True if the operator can remove the oldest part of a partial.

        >>> from sash.operators import count, max
        >>> count.invertible, max.invertible
        (True, False)
        """
        return self.inverse is not None

    def of(self, *types: Any) -> Operator:
        """Tie the operator to the types of its input columns.

        A type is a Python type, a numpy dtype or a name.  Tied to numbers, times or bools, an
        operator can run compiled; an untied operator accepts any Python value.

        >>> from sash.operators import max
        >>> max.of(float)
        <operator max(float64)>
        """
        names = tuple(type_name(t) for t in types)
        if len(names) != len(self.skips):
            raise TypeError(
                f"{self.name} reads {len(self.skips)} column(s), but {len(names)} type(s) "
                f"were given: {', '.join(names) or 'none'}"
            )
        if self.types:
            if names != self.types:
                raise TypeError(
                    f"{self!r} is tied to its types already and cannot be tied to "
                    f"({', '.join(names)}); start again from the operator without types"
                )
            return self
        tied: dict[tuple[str, ...], Operator] = self.__dict__.setdefault("_tied", {})
        if names not in tied:  # kept, because specialised kernels are kept with it
            tied[names] = self._tie(names)
        return tied[names]

    def _tie(self, names: tuple[str, ...]) -> Operator:
        if self.parts:
            parts = tuple(
                dataclasses.replace(p, operator=p.operator.of(*(names[c] for c in p.columns)))
                for p in self.parts
            )
            return _join(parts, len(self.skips), name=self.name, types=names, rule=self.rule)
        made = self.typed(names) if self.typed else None
        tied = dataclasses.replace(
            made or self,
            name=self.name,
            skips=self.skips,
            types=names,
            compile=self.compile and "object" not in names,
        )
        return ready(tied, self.ready, self.parameters)

    def ignore_nulls(self) -> Operator:
        """The same operator, but it skips rows where any of its columns is null.

        Most operators already do; `count`, `first` and `last` do not.  Operators that run
        `together` each skip rows by the columns that they read.

        >>> from sash.operators import first
        >>> first.ignore_nulls().skips
        (True,)
        """
        if self.parts:
            parts = tuple(
                dataclasses.replace(p, operator=p.operator.ignore_nulls()) for p in self.parts
            )
            return _join(parts, len(self.skips), name=self.name, types=self.types, rule=self.rule)
        made = dataclasses.replace(self, skips=(True,) * len(self.skips))
        return ready(made, self.ready, self.parameters)

    def fold(self, values: Sequence[Any]) -> Any:
        """Fold a sequence of values into one partial: lift and combine them one after another.

        For an operator over several columns, each value is a tuple.

        >>> from sash.operators import sum
        >>> sum.lower(sum.fold([1, None, 5]))
        6
        """
        lift, combine = self.python_lift(), self.python_combine()
        partial = self.identity
        for value in values:
            partial = combine(partial, lift(value))
        return partial

    def python_lift(self) -> Callable[[Any], Any]:
        """`lift` as a plain function that turns one value (a tuple, for several columns) into a new
        partial, and skips nulls as declared."""
        lift, identity, skips = self.lift, self.identity, self.skips
        vector = self.shape == "vector"

        def lift_value(value: Any) -> Any:
            row = (value,) if len(skips) == 1 else value
            if any(skip and x is None for x, skip in zip(row, skips, strict=True)):
                return identity.copy() if vector else identity
            if vector:
                out = identity.copy()
                lift(out, *row)
                return out
            return lift(*row)

        return lift_value

    def python_combine(self) -> Callable[[Any, Any], Any]:
        """`combine` as a plain function of two partials that returns a new one."""
        return self._returning(self.combine)

    def python_inverse(self) -> Callable[[Any, Any], Any]:
        """`inverse` as a plain function: `total` without its oldest part."""
        if self.inverse is None:
            raise TypeError(f"{self!r} has no inverse")
        return self._returning(self.inverse)

    def python_lower(self) -> Callable[[Any], Any]:
        """`lower` as a plain function; without one, the answer is the partial itself."""
        if self.lower is not None:
            return self.lower
        return _copy if self.shape == "vector" else itself

    def _returning(self, function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
        if self.shape != "vector":
            return function
        identity = self.identity

        def write(a: Any, b: Any) -> Any:
            out = np.empty_like(identity)
            function(out, a, b)
            return out

        return write

    def __getstate__(self) -> dict[str, Any]:
        """The operator's fields without its kernels, for another process."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    def __repr__(self) -> str:
        return f"<operator {self.name}{'(' + ', '.join(self.types) + ')' if self.types else ''}>"


def ready(made: Operator, name: str | None = None, parameters: tuple[Any, ...] = ()) -> Operator:
    """Mark an operator as a ready one, under its name without the parameters, and record the
    arguments of its factory, if any."""
    object.__setattr__(made, "ready", made.name.partition("(")[0] if name is None else name)
    object.__setattr__(made, "parameters", parameters)
    return made


def type_name(given: Any) -> str:
    """The name of a column type, from a name, a Python type or a numpy dtype."""
    if isinstance(given, str) and given in TYPES:
        return given
    if given in (datetime,) or given == "datetime":
        return "timestamp"
    if given in (str, bytes, object):
        return "object"
    try:
        dtype = np.dtype("no type" if given is None else given)  # numpy reads None as float64
    except TypeError:
        raise TypeError(
            f"{given!r} is no column type; give one of {', '.join(TYPES)}, a Python type or "
            "a numpy dtype"
        ) from None
    if dtype.kind == "u" and dtype.itemsize == 8:
        raise TypeError("uint64 does not fit int64; convert the column to int64 or float64")
    return {"i": "int64", "u": "int64", "f": "float64", "b": "bool", "M": "timestamp"}.get(
        dtype.kind, "object"
    )


def objects_only(name: str, what: str) -> Callable[[tuple[str, ...]], None]:
    """A `typed` for operators that take no numbers, times or bools: it refuses such columns."""

    def typed(types: tuple[str, ...]) -> None:
        if set(types) != {"object"}:
            raise TypeError(f"{name} takes {what}, not a column of {types[0]}")

    return typed


def same(a: Any, b: Any) -> bool:
    """True if two partials or answers are equal, where NaN equals NaN.

    >>> same((1, float("nan")), (1, float("nan")))
    True
    """
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return bool(np.array_equal(a, b))
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if a is b:
        return True
    if a is None or b is None:
        return False
    return bool(a == b) or bool(a != a and b != b)


def _join(
    parts: tuple[Part, ...],
    columns: int,
    *,
    name: str,
    types: tuple[str, ...] = (),
    rule: Callable[[Any, Any], bool] | None = None,
) -> Operator:
    """Join several operators into one.  A partial is the tuple of their partials, without shared
    ones.  With a rule there are two operators, and the answer is that of the first."""
    numbers = [i for i, p in enumerate(parts) if p.shares is None]
    ops = [parts[i].operator for i in numbers]
    lifts = [_part_lift(parts[i]) for i in numbers]
    combines = [o.python_combine() for o in ops]
    lowers = [
        (p.operator.python_lower(), numbers.index(i if p.shares is None else p.shares))
        for i, p in enumerate(parts)
    ]
    equals = [o.equal or same for o in ops]

    def lift(*row: Any) -> Any:
        return tuple(f(row) for f in lifts)

    def combine(a: Any, b: Any) -> Any:
        return tuple(f(x, y) for f, x, y in zip(combines, a, b, strict=True))

    def lower(a: Any) -> Any:
        return tuple(f(a[i]) for f, i in lowers)

    def lower_first(a: Any) -> Any:
        return lowers[0][0](a[0])

    def equal(a: Any, b: Any) -> bool:
        return all(f(x, y) for f, x, y in zip(equals, a, b, strict=True))

    inverse = None
    if all(o.invertible for o in ops):
        inverses = [o.python_inverse() for o in ops]

        def take_out(a: Any, b: Any) -> Any:
            return tuple(f(x, y) for f, x, y in zip(inverses, a, b, strict=True))

        inverse = take_out
    return Operator(
        name=name,
        identity=tuple(o.identity for o in ops),
        lift=lift,
        combine=combine,
        lower=lower_first if rule else lower,
        inverse=inverse,
        commutative=all(o.commutative for o in ops),
        equal=equal,
        skips=(False,) * columns,
        fields=ops[0].fields if rule else _names([p.operator for p in parts]),
        compile=all(o.compile for o in ops),
        types=types,
        parts=parts,
        rule=rule,
    )


def _part_lift(part: Part) -> Callable[[Any], Any]:
    """The lift of one part, which takes a row of all columns."""
    op, where, columns = part.operator, part.where, part.columns
    lift = op.python_lift()
    pick: Callable[[Any], Any] = itemgetter(*columns) if columns else lambda row: ()
    if where is None:
        return lambda row: lift(pick(row))

    def lift_some(row: Any) -> Any:
        if row[where]:
            return lift(pick(row))
        return op.identity.copy() if op.shape == "vector" else op.identity

    return lift_some


def _names(ops: Sequence[Operator]) -> tuple[str, ...]:
    """Names for the answers of several operators, with equal names made different."""
    names: list[str] = []
    for op in ops:
        name, n = op.name, 2
        while name in names:
            name, n = f"{op.name}_{n}", n + 1
        names.append(name)
    return tuple(names)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating)


def itself(value: Any) -> Any:
    """Return the value itself."""
    return value


def _copy(partial: Any) -> Any:
    return partial.copy()
