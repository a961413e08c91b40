"""A query's fingerprint: the text by which sash recognises and refuses the state of another query.

The fingerprint has a line for each fact of the query, and lines `aggregate: fact` for each of its
aggregates, so that a difference names the fact that changed.  A ready operator is identified by its
name and parameters; a user's operator by its functions with everything that they use, its identity,
and its declarations (`kernels.fingerprint`).  (`equal` is left out, because only tests use it.)
So is a user's policy as a window, by its rule and its operator.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any

from ..kernels.fingerprint import digest, text_of
from ..operators.contract import Operator
from ..query.conditions import condition_text
from ..query.query import Query
from ..windows import Ruled, duration_text

__all__ = ["check_trust", "differences", "fingerprint"]

_PYTHON = "Python"
_FUNCTIONS = ("lift", "combine", "lower", "inverse", "encode", "decode", "rule")


def fingerprint(query: Query) -> dict[str, str]:
    """The facts that identify a query; the same in every process of the same program.

    >>> import sash
    >>> q = sash.Query(time="t", window=sash.tumbling(10), select={"n": sash.max("x")})
    >>> fingerprint(q)["n: operator"]
    'max'
    """
    facts = {
        "time": query.time,
        "keys": ", ".join(query.by),
        "window": repr(query.window),
        "select": ", ".join(query.select),
        "where": condition_text(query.where),
        "tie": str(query.tie),
        "emit": query.emit,
        _PYTHON: f"{sys.version_info[0]}.{sys.version_info[1]}",
    }
    if isinstance(query.window, Ruled) and _is_own_rule(query.window.policy.rule):
        policy = query.window.policy
        facts |= {f"{fact} of the policy": said for fact, said in _facts(policy.over)}
        facts["rule of the policy"] = f"#{digest(policy.rule)}"
    for name, chosen in query.select.items():
        facts[f"{name}: columns"] = ", ".join(chosen.columns)
        facts[f"{name}: returns"] = str(chosen.returns)
        if chosen.where is not None:
            facts[f"{name}: where"] = condition_text(chosen.where.expression)
        if query.several:
            size = query.sizes[name]
            facts[f"{name}: size"] = "lifetime" if size is None else duration_text(size)
        facts |= {f"{name}: {fact}": said for fact, said in _facts(chosen.operator)}
    return facts


def differences(old: dict[str, str], new: dict[str, str], trust: Iterable[str] = ()) -> list[str]:
    """The differences of two fingerprints, one text each.

    The functions and the identity of aggregates in `trust` may differ: the caller says that their
    partials mean the same as before.  Functions are compared only under one version of Python.

    >>> differences({"time": "t", "n: lift": "#1"}, {"time": "u", "n: lift": "#2"})
    ['time was t and is u', 'n: lift differs']
    """
    before, now = _aggregates(old), _aggregates(new)
    trusted = _trusted(trust, now)
    same_python = old.get(_PYTHON) == new.get(_PYTHON)
    found = []
    for key in {**old, **new}:
        if old.get(key) == new.get(key) or key == _PYTHON:
            continue
        name, fact = _split(key)
        if fact in _FUNCTIONS and not same_python:
            continue
        if name:
            if name not in before or name not in now:
                continue  # the line of `select` names this difference
            operator = f"{name}: operator"
            if old.get(operator) != new.get(operator) and key != operator:
                continue  # another operator differs in everything else, too
            if fact in ("identity", *_FUNCTIONS) and name in trusted:
                continue
        found.append(_difference(key, old.get(key, ""), new.get(key, "")))
    return found


def _difference(key: str, was: str, is_: str) -> str:
    if was.startswith("#") or is_.startswith("#"):
        return f"{key} differs"
    return f"{key} was {was or 'none'} and is {is_ or 'none'}"


def _split(key: str) -> tuple[str, str]:
    """The aggregate that a line is about, and the fact; an aggregate's name may be any text."""
    name, _, fact = key.rpartition(": ")
    return name, fact.partition(" ")[0]


def _aggregates(facts: dict[str, str]) -> list[str]:
    return list(dict.fromkeys(name for name, _ in map(_split, facts) if name))


def check_trust(query: Query, trust: Iterable[str]) -> None:
    """Refuse a name in `trust` that is no aggregate of the query."""
    _trusted(trust, list(query.select))


def _trusted(trust: Iterable[str], aggregates: list[str]) -> list[str]:
    if isinstance(trust, str):
        raise TypeError(f"trust has the names of aggregates, such as [{trust!r}], not {trust!r}")
    names = list(trust)
    for name in names:
        if name not in aggregates:
            raise ValueError(
                f"trust names {name!r}, which the query does not select; its aggregates are: "
                f"{', '.join(aggregates)}"
            )
    return names


def _facts(operator: Operator) -> Iterator[tuple[str, str]]:
    """The facts of an operator."""
    yield "nulls", ", ".join("skipped" if skip else "kept" for skip in operator.skips)
    yield "types", ", ".join(operator.types)
    yield "fields", ", ".join(operator.fields)
    if operator.parts:
        yield "operator", f"{len(operator.parts)} together"
        for number, part in enumerate(operator.parts, 1):
            yield f"columns of part {number}", str(part.columns)
            for fact, said in _facts(part.operator):
                yield f"{fact} of part {number}", said
        if operator.rule is not None:
            yield "rule", f"#{digest(operator.rule)}"
    elif _is_own(operator):
        yield "operator", "one's own"
        yield "partial", _partial(operator)
        yield "commutative", "yes" if operator.commutative else "no"
        yield "identity", _identity(operator)
        for role in _FUNCTIONS:
            function = getattr(operator, role)
            yield role, "none" if function is None else f"#{digest(function)}"
    else:
        yield "operator", operator.name


def _is_own(operator: Operator) -> bool:
    """True if an operator is the user's, or a ready one with a function of the user's."""
    functions = (getattr(operator, role) for role in _FUNCTIONS)
    return not operator.ready or any(
        isinstance(f, FunctionType) and f.__module__.partition(".")[0] != "sash" for f in functions
    )


def _is_own_rule(rule: Any) -> bool:
    """True if a policy's rule, or one that it calls, is the user's."""
    if not isinstance(rule, FunctionType) or rule.__module__.partition(".")[0] != "sash":
        return True
    used = [cell.cell_contents for cell in rule.__closure__ or ()]
    return any(callable(one) and _is_own_rule(one) for one in used)


def _partial(operator: Operator) -> str:
    """The shape of a partial, without the types of its fields: the memory's layout has these."""
    identity, shape = operator.identity, operator.shape
    if shape == "tuple":
        return f"tuple of {len(identity)}"
    return f"vector of {len(identity)} {identity.dtype}" if shape == "vector" else shape


def _identity(operator: Operator) -> str:
    text, whole = text_of(operator.identity)
    if not whole and operator.encode is not None:
        return f"#{digest(operator.encode(operator.identity))}"
    if "\n" in text or len(text) > 60:
        return f"#{digest(operator.identity)}"
    return text
