"""Turns Spark's errors about a statement into errors that point into the statement's own text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import AnalysisException, PySparkException

from ..query.names import nearest
from ..sql.errors import SqlError
from ..sql.nodes import At
from ..sql.pieces import Pieces
from ..sql.planned import Planned

__all__ = ["analysed", "first_refused"]

#: The place in the text of a parser's error.
_PLACE = re.compile(r"\(line (\d+), pos (\d+)\)")
#: The rest of an error's text after the message: Spark's code, its plan, the text again.
_REST = re.compile(
    r"( SQLSTATE: \w+|;? line \d+ pos \d+;?|\n== SQL|\n\n|\n'|\(line \d+, pos \d+\)).*", re.S
)


@contextmanager
def analysed(planned: Planned, pieces: Pieces | None, at: At) -> Iterator[None]:
    """Turn an error that Spark raises inside the `with` into an `SqlError` with a place in the
    statement: the place that Spark names in `pieces`, its text, or else `at`."""
    try:
        yield
    except AnalysisException as error:
        raise _said(planned, error, pieces, at) from None


def first_refused(
    planned: Planned, tries: Iterable[tuple[Pieces, At, Callable[[str], Any]]]
) -> None:
    """Try expressions one by one, and raise for the first one that Spark refuses."""
    for pieces, at, attempt in tries:
        with analysed(planned, pieces, at):
            getattr(attempt(pieces.text), "schema", None)


def _said(planned: Planned, error: PySparkException, pieces: Pieces | None, at: At) -> SqlError:
    place = None if pieces is None else _place(error, pieces)
    condition = error.getCondition() or ""
    facts = error.getMessageParameters() or {}
    name = facts.get("objectName", facts.get("relationName", "")).replace("`", "")
    offered = re.findall(r"`([^`]+)`(?=,|$)", facts.get("proposal", ""))
    if condition.startswith("UNRESOLVED_COLUMN"):
        problem = f"column {name} is not there"
    elif condition == "TABLE_OR_VIEW_NOT_FOUND":
        problem = f"table {name} is not there"
    else:
        problem = _REST.sub("", error.getMessage() or str(error))
        problem = re.sub(r"^\[[\w.]+\] ", "", problem).strip()
    near = nearest(name.split(".")[-1], offered) if offered else None
    return planned.source.error(problem, *(place or at), offered, near)


def _place(error: PySparkException, pieces: Pieces) -> At | None:
    """The part of the statement that an error is about; None if the error does not say."""
    for context in error.getQueryContext():
        if context.contextType().name != "SQL":
            continue
        first, last = context.startIndex(), context.stopIndex()
        if 0 <= first <= last < len(pieces.text):
            found = pieces.place(first, last)
            if found is not None:
                return found
    said = _PLACE.search(str(error))
    if said is None:
        return None
    lines = pieces.text.split("\n")
    line = min(int(said[1]), len(lines)) - 1
    index = sum(len(row) + 1 for row in lines[:line]) + int(said[2])
    return pieces.place(index, index)
