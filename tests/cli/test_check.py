"""`sash check` refuses what a run would refuse, with the same message, and nothing else: generated
statements and queries, good and bad, checked and then run unchecked over an empty and a tiny
table."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sash
from sash.cli import check
from sash.cli.errors import JobError
from sash.cli.local import run_local
from sash.cli.report import Watcher

from .conftest import START

pytestmark = pytest.mark.plain

SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "k": pa.string(),
        "x": pa.int64(),
        "f": pa.float64(),
        "b": pa.bool_(),
        "d": pa.decimal128(10, 2),
        "l": pa.list_(pa.int64()),
    }
)
ROWS: list[dict[str, Any]] = [
    {"ts": START + i * 40_000_000, "k": k, "x": i, "f": i / 2, "b": i > 1, "d": i, "l": [i]}
    for i, k in enumerate("abab")
]

AGGREGATES = ["count(*)", "max(x)", "sum(f)", "avg(d)", "max(k)", "last(b)", "sum(k)", "avg(b)"]
AGGREGATES += ["max_by(k, x)", "percentile_approx(f, 0.5)", "count(DISTINCT k)", "max(l)", "sum(b)"]
AGGREGATES += ["max(x) FILTER (WHERE b)", "max(x) FILTER (WHERE x)", "corr(x, k)", "bool_or(b)"]
AGGREGATES += ["max(x + 1)", "max(k + 1)", "max(-k)", "sum(CAST(k AS int))", "max(upper(x))"]
AGGREGATES += ["collect_list(k)", "stddev(b)", "sum(f / x)", "max(b AND x)", "max(NULL)", "max(1)"]
AFTER = ["{}", "{}", "{}", "-{}", "{} + 1", "NOT {}", "abs({})", "{} > 0", "coalesce({}, 'none')"]
AFTER += ["CASE WHEN {} THEN 1 END", "upper({})", "CAST({} AS int)", "{} AND true", "round({})"]
NAMES = ["m", "m", "m", "m", "revision", "deleted", "reason", "k", "event_time", "window_start"]
HAVING = ["", "", "", "HAVING max(x) > 1", "HAVING max(x)", "HAVING NOT count(*)", "HAVING max(k)"]
HAVING += ["HAVING -max(k) > 1", "HAVING bool_or(b)", "HAVING max(f) IN (1, 'a', b)"]
WHERE = ["", "", "", "WHERE x > 0", "WHERE x", "WHERE k LIKE 'a%'", "WHERE k", "WHERE b AND k"]
GROUPED = [
    ("window(ts, '2 minutes', '1 minute')", "window.start AS s, window.end AS e, "),
    ("session_window(ts, '1 minute')", "session_window.start AS s, session_window.end AS e, "),
    ("window(ts, '1 minute')", "window, "),
    ("window(ts, '1 minute')", ""),
    ("window(x, '1 minute')", ""),
]
FRAMES = ["RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW"]
FRAMES += ["ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", ""]


def statement(draw: random.Random) -> str:
    """A statement that is sound, or has one or more mistakes."""
    aggregate = draw.choice(AGGREGATES)
    name = draw.choice(NAMES)
    where = draw.choice(WHERE)
    if draw.random() < 0.3:
        over = f"{aggregate} OVER (PARTITION BY k ORDER BY ts {draw.choice(FRAMES)})"
        chosen = draw.choice(AFTER).format(over)
        columns = draw.choice(["*, ", "k, ", "k, ts, ", "k AS revision, ts, "])
        return f"SELECT {columns}{chosen} AS {name} FROM input {where}"
    window, bounds = draw.choice(GROUPED)
    key = draw.choice(["k, ", "k, ", "k AS revision, ", "upper(k) AS k, ", "f AS deleted, ", ""])
    by = {"upper(k) AS k, ": "upper(k), ", "f AS deleted, ": "f, ", "": ""}.get(key, "k, ")
    chosen = draw.choice(AFTER).format(aggregate)
    having = draw.choice(HAVING)
    return (
        f"SELECT {key}{bounds}{chosen} AS {name} FROM input {where} GROUP BY {by}{window} {having}"
    )


def given_job(folder: Path, texts: list[str], mode: str, columns: list[str]) -> None:
    """A job file over a table with these columns, and one without rows before it."""
    schema = pa.schema([SCHEMA.field(n) if n in SCHEMA.names else (n, "int64") for n in columns])
    table = pa.Table.from_pylist([{**dict.fromkeys(columns, 1), **row} for row in ROWS], schema)
    (folder / "in").mkdir(exist_ok=True)
    for file in (folder / "in").iterdir():
        file.unlink()
    pq.write_table(table.slice(0, 0), folder / "in" / "0.parquet")
    pq.write_table(table, folder / "in" / "1.parquet")
    queries = "".join(f'[[query]]\nname = "q{i}"\nsql = """{t}"""\n' for i, t in enumerate(texts))
    (folder / "job.toml").write_text(
        f'[source]\npath = "in"\ntime = "ts"\n{queries}[sink]\nformat = "console"\n'
        f'[run]\nmode = "{mode}"\n'
    )


def unchecked(monkeypatch: pytest.MonkeyPatch) -> str:
    """What a run says that no check was made for; empty if it goes through."""
    with monkeypatch.context() as patched:
        patched.setattr(check, "_check_query", lambda *given, **more: None)
        ready = check.prepare("job.toml", local=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run_local(ready, Watcher(), lambda title, table: None)
        except sash.SqlError as error:
            return error.problem
        except Exception as error:
            return str(error)
    return ""


def checked(*, local: bool = True) -> str:
    try:
        check.prepare("job.toml", local=local)
    except JobError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("seed", range(8))
def test_what_is_refused_is_what_would_not_run(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    draw = random.Random(seed)
    refused = 0
    for _ in range(40):
        mode = draw.choice(["final", "live"])
        columns = [*SCHEMA.names, *draw.choice([(), (), (), ("reason",), ("revision",)])]
        text = statement(draw)
        given_job(tmp_path, [text], mode, columns)
        try:
            sash.sql(text, time="ts")
        except sash.SqlError:
            continue  # refused whatever the table is
        why, said = unchecked(monkeypatch), checked()
        assert bool(why) == bool(said), (text, mode, columns, why, said)
        assert why in said, (text, mode)
        refused += bool(said)
    assert 5 <= refused <= 35


@pytest.mark.parametrize(
    ("text", "mode", "where", "said"),
    [
        ("SELECT max(x) AS m FROM input {} HAVING max(x)", "final", "window(ts, '1 h')", "conditi"),
        ("SELECT -max(k) AS m FROM input {}", "final", "window(ts, '1 h')", "job.toml:6: column 8"),
        ("SELECT k AS revision, window, max(x) AS m FROM input {}", "live", "k, window(ts, '1 h')",
         "the result has revision of its own"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("local", [True, False])
def test_what_comes_after_a_query_is_checked_for_both_places(
    text: str,
    mode: str,
    where: str,
    said: str,
    local: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    head, _, having = text.partition("{}")
    given_job(tmp_path, [f"{head}GROUP BY {where}{having}"], mode, SCHEMA.names)
    assert said in checked(local=local)


def test_statements_may_compute_two_things_that_are_written_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FILTER guards the expression, so the second statement computes another column."""
    monkeypatch.chdir(tmp_path)
    text = "SELECT sum(2*x){} AS s FROM input WHERE x > 1 GROUP BY window(ts, '1 h')"
    given_job(tmp_path, [text.format(""), text.format(" FILTER (WHERE x > 1)")], "final",
              SCHEMA.names)  # fmt: skip
    assert checked() == unchecked(monkeypatch) == ""


def text_job(folder: Path, format_: str, schema: str, options: str = "") -> None:
    """A job file over an empty file of text; its schema is on line 3, its options are on line 4."""
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / f"0.{format_}").write_text("")
    (folder / "job.toml").write_text(
        f'[source]\npath = "in/*.{format_}"\nschema = "{schema}"\noptions = {{ {options} }}\n'
        'time = "ts"\n[[query]]\nname = "q"\n'
        "sql = \"SELECT count(*) AS n FROM input GROUP BY window(ts, '1 hour')\"\n"
        '[sink]\nformat = "console"\n'
    )


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("sep = '||'", "sep is one ASCII character with --local, not '||'"),
        ("delimiter = 'é'", "delimiter is one ASCII character with --local, not 'é'"),
        ("sep = ''", "sep is one ASCII character with --local, not ''"),
        ('sep = "\\n"', "sep cannot be the end of a line"),
        ("quote = \"''\"", "quote is one ASCII character with --local, or empty, not \"''\""),
        ("escape = 'ab'", "escape is one ASCII character with --local, or empty, not 'ab'"),
        ("encoding = 'utf-9'", "Python has no encoding 'utf-9'"),
        ("encoding = 'hex'", "Python has no encoding 'hex' of text"),
    ],
)
def test_options_of_csv_are_checked(
    option: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text_job(tmp_path, "csv", "ts timestamp, k string", option)
    name = option.partition(" ")[0]
    assert checked().startswith(f"job.toml:4: source.options.{name}: {said}")
    assert checked(local=False) == ""


def test_options_of_csv_that_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("Sep = ';'", 'sep = "\\t"', "quote = ''", "escape = ''", "encoding = 'UTF-16'")
    for option in options:
        text_job(tmp_path, "csv", "ts timestamp, k string", option)
        assert checked() == "", option


@pytest.mark.parametrize(
    ("format_", "type_", "refused"),
    [
        ("csv", "array<int>", True),
        ("csv", "map<string, int>", True),
        ("csv", "struct<a: int>", True),
        ("json", "map<string, int>", True),
        ("json", "array<struct<a: map<string, int>>>", True),
        ("json", "array<struct<a: int>>", False),
    ],
)
def test_types_that_files_of_text_cannot_have_are_refused(
    format_: str, type_: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text_job(tmp_path, format_, f"ts timestamp, k {type_}")
    wanted = "job.toml:3: source.schema: column 'k' has type " if refused else ""
    assert checked()[: len(wanted) or None] == wanted
    assert checked(local=False) == ""


def test_names_that_late_rows_have_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "SELECT max(x) AS m FROM input GROUP BY window(ts, '1 h')"
    given_job(tmp_path, [text], "final", [*SCHEMA.names, "reason"])
    assert "late rows have a column 'reason' of their own" in checked()
    assert checked(local=False) == ""  # where they are a struct
    given_job(tmp_path, [text, text], "final", [*SCHEMA.names, "queries"])
    assert "late rows of shared queries have a column 'queries'" in checked()
