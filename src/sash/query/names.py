"""Names that a query reads: whether a table has them, and the known name nearest to a misspelt
one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import FunctionType
from typing import Any

__all__ = ["check_column", "did_you_mean", "nearest", "to_call", "what_is"]


def check_column(
    name: str, there: Sequence[str], *, reader: str = "the query", what: str = "the table"
) -> None:
    """Raise if a table does not have a column, or has it more than once."""
    count = there.count(name)
    if count != 1:
        problem = "is there more than once" if count else "is not there"
        have = ", ".join(there) or "none"
        meant = "" if count else did_you_mean(name, there)
        if name == "*":
            meant = "; sash.count(), without a column, counts rows"
        raise KeyError(
            f"{reader} reads column {name!r}, which {problem}; {what} has: {have}{meant}"
        )


def what_is(given: Any) -> str:
    """What a wrong argument is, for an error: a column of pandas, say, by its type, as its values
    take several lines.

    >>> import sash
    >>> what_is(3), what_is(sash.count)
    ('3', 'the function sash.count')
    """
    if _is_ours(given):
        return f"the function sash.{given.__name__}"
    text, kind = repr(given), type(given)
    return f"a {kind.__module__}.{kind.__name__}" if "\n" in text else text


def to_call(given: Any) -> str:
    """The end of an error about a function of sash that was not called; else empty.

    >>> import sash
    >>> to_call(sash.count)
    '; call it, as in sash.count(…)'
    """
    return f"; call it, as in sash.{given.__name__}(…)" if _is_ours(given) else ""


def _is_ours(given: Any) -> bool:
    return isinstance(given, FunctionType) and given.__module__.startswith("sash.")


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown name; empty if no known name is close.

    >>> did_you_mean("dealy", ["origin", "delay"])
    "; did you mean 'delay'?"
    """
    near = nearest(given, known)
    return f"; did you mean {near!r}?" if near else ""


def nearest(given: str, known: Iterable[str]) -> str | None:
    """The known name that is closest to a misspelt one, None if none is close.

    >>> nearest("GROPU", ["FROM", "GROUP", "ORDER"])
    'GROUP'
    """
    from difflib import get_close_matches

    by_folded = {name.lower(): name for name in known}
    found = get_close_matches(given.lower(), list(by_folded), n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None
