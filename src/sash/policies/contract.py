"""The contract of a window slide policy: a rule, on aggregates, that decides which values leave.

A policy looks at two answers of its own operator: `total`, over the whole window, and `old`, over
some of the oldest values.  It returns True if at least these oldest values must leave.  For
example, keep the values that add up to at most 10, with an operator for the sum and the youngest
value of a span:

    total = (sum 14, youngest 4)    of 2 2 3 3 4
    old = (sum 4, youngest 2)       of 2 2
    14 - 4 + 2 > 10                 even the second 2 is one too many

A policy must be monotone: if it is True for some number of the oldest values, it is True for any
smaller number.  `sash.testing.monotone` looks for a counterexample.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from ..operators.contract import Operator, Part, _join
from ..operators.together import together

__all__ = ["Policy", "any_of", "guard", "policy"]


@dataclass(frozen=True, eq=False, repr=False)
class Policy:
    """A window slide policy; `sash.policy(…)` builds one, and `sash.policies` has ready ones.

    >>> from sash.policies import at_most
    >>> at_most(3).rule(5, 1), at_most(3).rule(5, 3)
    (True, False)
    """

    rule: Callable[[Any, Any], bool]
    over: Operator
    columns: tuple[int | str, ...] | None = None
    name: str = "policy"
    types: tuple[str, ...] = ()  # of its columns, if the window's operator does not have them

    def __repr__(self) -> str:
        return f"<{self.name} over {self.over.name}>"


def policy(
    rule: Callable[[Any, Any], bool],
    *,
    over: Operator,
    columns: int | str | Sequence[int | str] | None = None,
    name: str = "policy",
) -> Policy:
    """Build a window slide policy from a plain Python function.

    The operator `over` answers `total` for the whole window and `old` for some of its oldest
    values.  `rule(total, old)` returns True if at least these oldest values must leave.  `columns`
    are the columns that `over` reads; the default is the columns of the window's operator.  In a
    query they are names, otherwise numbers from 0 on.

    >>> import sash
    >>> from sash.aggregators import Amta
    >>> three = sash.policy(lambda total, old: total - old >= 3, over=sash.operators.count)
    >>> window = Amta(sash.operators.concat, policy=three)
    >>> for letter in "abcde":
    ...     window.insert(letter)
    >>> window.enforce()
    >>> window.query()
    'cde'
    """
    if not callable(rule):
        raise TypeError(f"a policy is a function of total and old, not {rule!r}")
    if not isinstance(over, Operator):
        raise TypeError(f"over is the operator whose answers the policy looks at, not {over!r}")
    reads = _columns(columns)
    negative = reads is not None and any(isinstance(c, int) and c < 0 for c in reads)
    if reads is not None and (len(reads) != len(over.skips) or negative):
        raise TypeError(f"{over.name} reads {len(over.skips)} column(s), not {list(reads)}")
    return Policy(rule, over, reads, name)


def any_of(*policies: Policy) -> Policy:
    """Several policies at once: a value leaves if any of them says so.

    >>> from sash.aggregators import Amta
    >>> from sash.operators import concat, max
    >>> from sash.policies import any_of, at_most, since_maximum
    >>> window = Amta(max, policy=any_of(at_most(3), since_maximum()))
    >>> window.slide([5, 9, 2, 1, 4, 3])
    [5, 9, 9, 9, 4, 4]
    >>> len(window)
    2
    """
    if not policies:
        raise TypeError("any_of needs at least one policy")
    for each in policies:
        if not isinstance(each, Policy):
            raise TypeError(f"any_of takes policies, not {each!r}")
    made = policies[0]
    for other in policies[1:]:
        made = _either(made, other)
    return made


def _either(one: Policy, other: Policy) -> Policy:
    """Join two policies into one; each keeps its own operator."""
    f, g = one.rule, other.rule

    def either(total: Any, old: Any) -> bool:
        return bool(f(total[0], old[0]) or g(total[1], old[1]))

    columns = tuple(dict.fromkeys((*_reads(one), *_reads(other))))
    reads = [tuple(columns.index(c) for c in _reads(each)) for each in (one, other)]
    over = together(one.over, other.over, columns=reads)
    # A policy that reads the same columns as the window reads the same number of columns.
    same = one.columns is None and other.columns is None
    known = _types(one) | _types(other)
    return Policy(
        either,
        over,
        None if same else columns,
        f"any_of({one.name}, {other.name})",
        tuple(known.get(c, "") for c in columns),
    )


def guard(operator: Operator, rules: Policy | None) -> Operator:
    """Join an operator and the policy's operator; the answer is that of the first."""
    if rules is None:
        return operator
    if not isinstance(rules, Policy):
        raise TypeError(
            f"a policy is made by sash.policy(…) or taken from sash.policies, and is not {rules!r}"
        )
    made: MutableMapping[Policy, Operator]
    made = operator.__dict__.setdefault("_guarded", WeakKeyDictionary())
    found = made.get(rules)
    if found is None:  # kept as long as the policy, because specialised kernels are kept with it
        found = made[rules] = _guard(operator, rules)
    return found


def _guard(operator: Operator, rules: Policy) -> Operator:
    width = len(operator.skips)
    if rules.columns is None and len(rules.over.skips) != width:
        raise TypeError(
            f"{rules!r} reads {len(rules.over.skips)} column(s) and {operator!r} {width}; say "
            "which ones the policy reads with columns=…"
        )
    reads: list[int] = []
    for column in _reads(rules):
        if not isinstance(column, int):
            raise TypeError(
                f"{rules!r} reads column {column!r} by its name, and columns have names in a "
                "sash.Query only; give its number, from 0 on"
            )
        reads.append(column)
    columns = max(width, 1 + max(reads))
    parts = (Part(operator, tuple(range(width))), Part(rules.over, tuple(reads)))
    name = f"{operator.name} under {rules.name}"
    made = _join(parts, columns, name=name, rule=rules.rule)
    known = _types(rules) | dict(enumerate(operator.types))
    types = [known.get(c, "") for c in range(columns)]
    # Tied if the operator is tied and all column types are known; else the values show the types.
    return made.of(*types) if operator.types and all(types) else made


def _types(rules: Policy) -> dict[int | str, str]:
    """The types of the columns that the policy knows."""
    types = rules.over.types or rules.types
    return {c: t for c, t in zip(_reads(rules), types) if t}


def _reads(rules: Policy) -> tuple[int | str, ...]:
    return tuple(range(len(rules.over.skips))) if rules.columns is None else rules.columns


def _columns(given: int | str | Sequence[int | str] | None) -> tuple[int | str, ...] | None:
    if given is None:
        return None
    return (given,) if isinstance(given, int | str) else tuple(given)
