"""Load the queries of a job from modules, from SQL, or from files of SQL."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import sash

from ..operators import Operator
from ..query import Query
from ..query.names import did_you_mean
from .errors import JobError, Problem
from .job import Job

if TYPE_CHECKING:
    from ..sql.statement import Statement

__all__ = ["load_queries", "sql_problem"]


def load_queries(job: Job) -> dict[str, Any]:
    """A Query or a statement of SQL for each `[[query]]`; raises all errors at once."""
    found: dict[str, Any] = {}
    problems: list[Problem] = []
    operators = _operators(job)
    for i, table in enumerate(job.tables.query):
        try:
            if table.python is not None:
                found[table.name] = _query(job, table.python, ("query", i, "python"))
            else:
                found[table.name] = _statement(job, i, operators)
        except JobError as error:
            problems += error.problems
    if problems:
        raise JobError(job.file, problems)
    return found


def _operators(job: Job) -> dict[str, Operator]:
    made = {}
    for name, place in job.tables.operators.items():
        given = _named(job, place, ("operators", name))
        if not isinstance(given, Operator):
            raise job.problem(
                f"operators.{name}: {place} has type {type(given).__name__}; it must be an "
                "operator, as sash.operator(…) makes one",
                "operators",
                name,
            )
        made[name] = given
    return made


def _query(job: Job, place: str, key: tuple[str | int, ...]) -> Any:
    given = _named(job, place, key)
    if isinstance(given, Query) or isinstance(getattr(given, "query", None), Query):
        return given
    hint = ""
    if callable(given):
        hint = "; make the query when the module is loaded: query = sash.Query(…)"
    raise job.problem(
        f"{place} has type {type(given).__name__}; it must be a sash.Query{hint}", *key
    )


def _named(job: Job, place: str, key: tuple[str | int, ...]) -> Any:
    """The object that a module has under a name."""
    module_name, _, name = place.partition(":")
    given: Any = _module(job, module_name, key)
    for part in name.split("."):
        if not hasattr(given, part):
            meant = did_you_mean(part, [n for n in vars(given) if n[0] != "_"])
            raise job.problem(f"module {module_name!r} has no {name!r}{meant}", *key)
        given = getattr(given, part)
    return given


def _module(job: Job, name: str, key: tuple[str | int, ...]) -> ModuleType:
    """Import a module from the job's folder, or from Python's path."""
    folder = str(job.folder.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            said = f"module {name!r} needs {error.name!r}, which this Python does not have"
            raise job.problem(said, *key) from None
        raise job.problem(
            f"there is no module {error.name!r} in {folder}, nor where Python looks for modules",
            *key,
        ) from None
    except Exception as error:
        raise job.problem(_where_it_failed(name, error), *key) from None


def _where_it_failed(name: str, error: Exception) -> str:
    """The error of a module that cannot be imported, with the line in the module."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    own = [f for f in frames if Path(f.filename).stem == name.rsplit(".", 1)[-1]]
    where = f" (line {own[-1].lineno} of {own[-1].filename})" if own else ""
    said = error.args[0] if isinstance(error, KeyError) and error.args else error
    return f"module {name!r} cannot be imported: {type(error).__name__}: {said}{where}"


def _statement(job: Job, i: int, operators: dict[str, Operator]) -> Statement:
    """Read a statement of SQL."""
    table, source = job.tables.query[i], job.tables.source
    text = table.sql or ""
    if table.file is not None:
        file = Path(job.place(table.file))
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no UTF-8 text"
            raise job.problem(f"file: {file} cannot be read: {why}", "query", i, "file") from None
    try:
        made = sash.sql(text, time=source.time, operators=operators)
        made.check_source(source.name)
    except sash.SqlError as error:
        raise JobError(job.file, [sql_problem(job, i, error)]) from None
    return made


def sql_problem(job: Job, i: int, error: sash.SqlError) -> Problem:
    """The problem for a mistake in SQL, with its line in the file that contains the SQL."""
    table = job.tables.query[i]
    where = f"column {error.column}: {str(error).partition(': ')[2]}"
    if table.file is not None:
        return Problem(error.line, where, Path(job.place(table.file)))
    return Problem(job.lines.text(("query", i, "sql")) + error.line - 1, where)
