"""A job file: where events come from, which queries run over them, where results go.

    [source]    a path, or a format and options; name, schema, time, lateness
    [[query]]   a name, and one of sql, file, python
    [operators] operators of your own, by the names that SQL calls them
    [sink]      a path, or a format and options; late
    [run]       mode, checkpoint, trigger, buckets

`load` checks every key; an error names the key's line and the nearest known key.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from ..windows import duration
from .errors import JobError, Problem
from .lines import Lines, scan

__all__ = ["Job", "JobFile", "Source", "is_remote", "load"]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_PLACE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
AVAILABLE_NOW = "available now"

Text = Annotated[StrictStr, StringConstraints(min_length=1)]
Options = dict[str, StrictStr | StrictBool | StrictInt | float]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)


class Source(_Table):
    """Where events come from."""

    path: Text | None = None
    format: Text | None = None
    options: Options = {}
    name: Text = "input"
    ddl: Text | None = Field(None, alias="schema")
    time: Text
    lateness: Text = "0 seconds"

    @field_validator("ddl")
    @classmethod
    def _columns(cls, given: str | None) -> str | None:
        if given is not None:
            from .ddl import read_ddl

            read_ddl(given)
        return given

    @field_validator("lateness")
    @classmethod
    def _length(cls, given: str) -> str:
        if duration(given, "the lateness") < 0:
            raise ValueError(f"the lateness must be at least 0 seconds, not {given!r}")
        return given

    @field_validator("name")
    @classmethod
    def _from(cls, given: str) -> str:
        if not re.fullmatch(r"[A-Za-z_]\w*", given):
            raise ValueError(f"name is a name for SQL's FROM, such as 'flights', not {given!r}")
        return given

    @model_validator(mode="after")
    def _one_of(self) -> Source:
        if self.path is None and self.format is None:
            raise ValueError(
                'say where events come from: path = "…" for files, or format = "…" and options'
            )
        return self


class QueryTable(_Table):
    """A query: SQL text, a file of SQL, or a name in a module."""

    name: Text
    sql: Text | None = None
    file: Text | None = None
    python: Text | None = None

    @field_validator("name")
    @classmethod
    def _folder(cls, given: str) -> str:
        if not _NAME.fullmatch(given):
            raise ValueError(
                "name becomes a folder's name: a letter, then letters, digits, _ and -, not "
                f"{given!r}"
            )
        return given

    @field_validator("python")
    @classmethod
    def _place(cls, given: str | None) -> str | None:
        return given if given is None else _checked_place(given, "query")

    @model_validator(mode="after")
    def _one_of(self) -> QueryTable:
        said = [k for k in ("sql", "file", "python") if getattr(self, k) is not None]
        if len(said) == 1:
            return self
        have = f"it has {' and '.join(said)}" if said else "it has none of them"
        raise ValueError(
            f'query {self.name!r} needs one of sql = "…", file = "query.sql" and '
            f'python = "module:query"; {have}'
        )


class Sink(_Table):
    """Where results go."""

    path: Text | None = None
    format: Text | None = None
    options: Options = {}
    late: Text | None = None

    @model_validator(mode="after")
    def _one_of(self) -> Sink:
        if self.path is not None and self.format is not None:
            raise ValueError(
                "results go to a path, where revisions are kept as Parquet, or to a format of "
                "Spark's, with options: leave out path or format (a format's own path is "
                "options.path)"
            )
        if self.path is None and self.format is None:
            raise ValueError(
                'say where results go: path = "…", format = "console", or another format and '
                "options"
            )
        if self.options and self.format in (None, "console"):
            what = "the console" if self.format else "a path"
            raise ValueError(f"options belong to a format, and {what} has none; leave them out")
        return self


class Run(_Table):
    """How the job runs."""

    mode: Literal["final", "live"] = "final"
    checkpoint: Text | None = None
    trigger: Text = AVAILABLE_NOW
    buckets: Annotated[StrictInt, Field(ge=1, le=100_000)] | None = None

    @field_validator("trigger")
    @classmethod
    def _when(cls, given: str) -> str:
        if given.lower() in (AVAILABLE_NOW, "availablenow"):
            return AVAILABLE_NOW
        try:
            length = duration(given, "a trigger")
        except ValueError:
            raise ValueError(
                f'trigger is "available now" or a duration such as "10 seconds", not {given!r}'
            ) from None
        if length < 0:
            raise ValueError(f"trigger is a length of time, not {given!r}")
        return given


def _operator_place(given: str) -> str:
    return _checked_place(given, "operator")


class JobFile(_Table):
    """The tables of a job file."""

    source: Source
    query: Annotated[list[QueryTable], Field(min_length=1)]
    operators: dict[Text, Annotated[Text, AfterValidator(_operator_place)]] = {}
    sink: Sink = Sink(format="console")
    run: Run = Run()


@dataclass(frozen=True)
class Job:
    """A valid job file, and its path."""

    file: Path
    tables: JobFile
    lines: Lines

    @property
    def name(self) -> str:
        return self.file.stem

    @property
    def folder(self) -> Path:
        return self.file.parent

    def place(self, path: str) -> str:
        """A path, relative to the job's folder, made absolute for any process."""
        return path if is_remote(path) else str(self.folder.absolute() / Path(path).expanduser())

    def problem(self, text: str, *path: str | int) -> JobError:
        """The error for one key."""
        return JobError(self.file, [Problem(self.lines.of(path), text)])

    def checkpoints(self) -> dict[str, str | None]:
        """The checkpoint of each query on Spark; None if the job needs no checkpoint."""
        if self.tables.run.checkpoint is not None:
            return self._by_query(self.tables.run.checkpoint)
        # readers of the results skip names that begin with _
        return {
            n: None if path is None else f"{path}/_checkpoint" for n, path in self.sinks().items()
        }

    def shared_checkpoint(self, names: Sequence[str], number: int) -> str | None:
        """The checkpoint of a streaming query that several queries share; its name has a number if
        it does not hold all queries of the job.  None if the job needs no checkpoint."""
        path = self.tables.run.checkpoint
        if path is None and self.tables.sink.path is not None:
            path = f"{self.tables.sink.path.rstrip('/')}/_checkpoint"
        if path is None:
            return None
        base = self.place(path).rstrip("/")
        return base if len(names) == len(self.tables.query) else f"{base}/shared.{number}"

    def sinks(self) -> dict[str, str | None]:
        """The path of each query's results; None if they do not go to a path."""
        return self._by_query(self.tables.sink.path)

    def late_sinks(self) -> dict[str, str | None]:
        """The path of each query's late rows."""
        return self._by_query(self.tables.sink.late)

    def _by_query(self, path: str | None) -> dict[str, str | None]:
        names = [query.name for query in self.tables.query]
        if path is None:
            return dict.fromkeys(names)
        base = self.place(path).rstrip("/")
        return {name: base if len(names) == 1 else f"{base}/{name}" for name in names}


def is_remote(path: str) -> bool:
    """True for an address such as s3a://bucket/folder."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", path) is not None


def load(path: str | Path) -> Job:
    """Read a job file, or raise a JobError that lists all its mistakes."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise JobError(file, [Problem(1, f"there is no such file{_near_file(file)}")]) from None
    except IsADirectoryError:
        raise JobError(file, [Problem(1, "this is a folder; name the job file in it")]) from None
    except UnicodeDecodeError as error:
        raise JobError(file, [Problem(1, f"a job file is UTF-8 text: {error}")]) from None
    except OSError as error:
        raise JobError(file, [Problem(1, f"cannot be read: {error.strerror}")]) from None
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise JobError(file, [_of_toml(text, error)]) from None
    lines = scan(text)
    try:
        tables = JobFile.model_validate(given)
    except ValidationError as error:
        raise JobError(file, _of_pydantic([dict(e) for e in error.errors()], lines)) from None
    job = Job(file, tables, lines)
    problems = list(_together(job))
    if problems:
        raise JobError(file, problems)
    return job


def _together(job: Job) -> list[Problem]:
    """Find mistakes that concern keys of several tables."""
    tables, lines = job.tables, job.lines
    found = []
    names = [query.name for query in tables.query]
    for i, name in enumerate(names):
        if name in names[:i]:
            before = lines.of(("query", names.index(name), "name"))
            text = f"two queries are called {name!r}, the other one on line {before}"
            found.append(Problem(lines.of(("query", i, "name")), text))
    sink = tables.sink
    if None in job.checkpoints().values() and sink.format != "console":
        text = (
            f"a sink of format {sink.format!r} needs a checkpoint, from which the next run goes "
            'on: add checkpoint = "…" to [run]'
        )
        found.append(Problem(lines.of(("run",) if ("run",) in lines.keys else ("sink",)), text))
    places = [
        (key, job.place(path))
        for key, path in (
            (("source", "path"), tables.source.path),
            (("sink", "path"), sink.path),
            (("sink", "late"), sink.late),
        )
        if path is not None
    ]
    for i, (key, place) in enumerate(places):
        for other, taken in places[:i]:
            said = _overlap(place.rstrip("/"), taken.rstrip("/"))
            if said:
                text = (
                    f"{'.'.join(key)} {said} {'.'.join(other)}, {taken.rstrip('/')!r}; give it one "
                    "of its own"
                )
                found.append(Problem(lines.of(key), text))
    return found


def _overlap(place: str, other: str) -> str:
    """Say how two places share files, or "" if they share none: the job would read in one place the
    files that it writes to the other."""
    if place == other:
        return "is the same place as"
    if place.startswith(f"{other}/"):
        return "is inside"
    return "is around" if other.startswith(f"{place}/") else ""


def _checked_place(given: str, name: str) -> str:
    if not _PLACE.fullmatch(given):
        raise ValueError(f'write a module and a name in it, such as "module:{name}", not {given!r}')
    return given


def _near_file(file: Path) -> str:
    try:
        others = [p.name for p in file.parent.iterdir() if p.suffix == ".toml"]
    except OSError:
        return ""
    near = get_close_matches(file.name, others, 1)
    return f"; did you mean {str(file.with_name(near[0]))!r}?" if near else ""


def _of_toml(text: str, error: tomllib.TOMLDecodeError) -> Problem:
    """The problem for an error of tomllib, with its line."""
    said = str(error)
    found = re.search(r"\s*\(at line (\d+), column (\d+)\)$", said)
    line = int(found[1]) if found else text.count("\n") + 1
    what = re.sub(r"\s*\(at [^)]*\)$", "", said)
    for theirs, ours in _TOML_WORDS.items():
        what = re.sub(theirs, ours, what)
    row = text.splitlines()[line - 1].strip() if line <= len(text.splitlines()) else ""
    shown = f": {row}" if row else ""
    return Problem(line, f"this is no TOML; {what[:1].lower()}{what[1:]}{shown}")


#: Parts of tomllib's messages, and what we say instead.
_TOML_WORDS = {
    "Invalid value": "invalid value (text stands in quotes)",
    "Cannot overwrite a value": "this key is there twice",
    r"Cannot declare \(.*\) twice": "this table is there twice",
}

#: What a value must be, in our words, by pydantic's error names.
_MUST_BE = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "dict_type": "a table",
    "model_type": "a table",
    "list_type": "an array of tables, [[query]]",
    "string_too_short": "text that is not empty",
}


def _of_pydantic(errors: list[dict[str, Any]], lines: Lines) -> list[Problem]:
    """The problems for pydantic's errors; a misspelt key does not also count as missing."""
    meant: set[tuple[str | int, ...]] = set()
    for error in errors:
        path = tuple(error["loc"])
        if error["type"] == "extra_forbidden":
            meant.update((*path[:-1], near) for near in _near(path))
    wrong = [e for e in errors if e["type"] != "missing" or tuple(e["loc"]) not in meant]
    return [_problem(error, lines) for error in wrong]


def _problem(error: dict[str, Any], lines: Lines) -> Problem:
    """One of pydantic's errors in terms of a job file."""
    kind, loc = str(error["type"]), tuple(error["loc"])
    # a value of several possible types has one error per type, with the type after the key
    path = loc[:3] if loc[:2] in (("source", "options"), ("sink", "options")) else loc
    line, key = lines.of(path), _called(path)
    value = error.get("input")
    if kind == "extra_forbidden":
        return Problem(line, f"unknown key {path[-1]!r}{_in(path)}{_nearest(path)}")
    if kind == "missing":
        what = f"[[{path[-1]}]]" if path == ("query",) else f"[{path[-1]}]"
        if len(path) > 1:
            return Problem(line, f"{path[-1]!r} is missing{_in(path)}; it is needed")
        return Problem(line, f"the table {what} is missing; it is needed")
    if kind == "value_error":
        said = str(error["ctx"]["error"])
        return Problem(line, f"{key}: {said}" if len(path) > 1 and path[0] != "query" else said)
    if kind == "literal_error":
        wanted = " or ".join(f'"{word}"' for word in get_args(Run.model_fields["mode"].annotation))
        return Problem(line, f"{key} is {wanted}, not {value!r}")
    if kind == "too_short":
        return Problem(line, "a job needs at least one [[query]]")
    if kind in ("greater_than_equal", "less_than_equal"):
        return Problem(line, f"{key} is a whole number from 1 to 100,000, not {value!r}")
    if path[1:2] == ("options",) and len(path) == 3:
        must = "text, a number, true or false"
    else:
        must = _MUST_BE.get(kind, str(error["msg"]))
    return Problem(line, f"{key} must be {must}, not {_shown(value)}")


def _called(path: tuple[str | int, ...]) -> str:
    return ".".join(str(part) for part in path if not isinstance(part, int))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "a table" if isinstance(value, dict) else repr(value)


def _in(path: tuple[str | int, ...]) -> str:
    """The table that contains a key."""
    table = path[:-1]
    if not table:
        return ""
    if isinstance(table[-1], int):
        return f" in [[{_called(table)}]]"
    return f" in [{_called(table)}]"


_TABLES: dict[str, type[BaseModel]] = {
    "": JobFile,
    "source": Source,
    "query": QueryTable,
    "sink": Sink,
    "run": Run,
}


def _nearest(path: tuple[str | int, ...]) -> str:
    """The key that the user may mean, or else all known keys."""
    near = _near(path)
    if near:
        return f"; did you mean {near[0]!r}?"
    table, word = _table(path), str(path[-1])
    for other, model in _TABLES.items():
        if word in _keys(model) and model is not table and other:
            brackets = f"[[{other}]]" if other == "query" else f"[{other}]"
            return f"; {word!r} belongs in {brackets}"
    return f"; the keys here are {', '.join(_keys(table))}"


def _table(path: tuple[str | int, ...]) -> type[BaseModel]:
    return _TABLES[str(path[0]) if len(path) > 1 else ""]


def _keys(table: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in table.model_fields.items()]


def _near(path: tuple[str | int, ...]) -> list[str]:
    """The known key nearest to a misspelt one, if one is near."""
    return get_close_matches(str(path[-1]).lower(), _keys(_table(path)), 1, 0.55)
