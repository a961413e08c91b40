"""A job in this process: its sink has what the query gives over all rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import sash
import sash.cli.local
from sash.cli.app import app
from sash.cli.sinks import result_as_on_spark

from .conftest import DDL, JOB, events

pytestmark = pytest.mark.plain

PATIENT = JOB.replace("3 minutes", "1 day")


def sash_run(*arguments: str) -> Result:
    """What `sash run --local` says."""
    return CliRunner().invoke(app, ["run", "--local", "job.toml", *arguments])


def written(name: str = "out/results.parquet") -> pa.Table:
    return pq.ParquetFile(name).read()


def over_all(name: str = "query") -> pa.Table:
    """The query's results over all events."""
    import queries  # type: ignore[import-not-found]

    return result_as_on_spark(getattr(queries, name).run(pa.concat_tables(events())))


def rows(table: pa.Table) -> list[dict[str, Any]]:
    made = [
        {k: v for k, v in row.items() if k not in ("revision", "deleted")}
        for row in table.to_pylist()
    ]
    return sorted(made, key=repr)


@pytest.mark.parametrize("mode", ["final", "live"])
@pytest.mark.parametrize("name", ["query", "sessions", "trailing"])
def test_the_sink_has_the_last_revision_of_each_window(mode: str, name: str, folder: Path) -> None:
    text = PATIENT.replace("queries:query", f"queries:{name}")
    (folder / "job.toml").write_text(f'{text}\n[run]\nmode = "{mode}"\n')
    done = sash_run()
    assert done.exit_code == 0, done.output
    assert rows(written()) == rows(over_all(name))
    assert not (folder / "late").exists() or written("late/late.parquet").num_rows == 0


def test_late_rows_go_to_their_own_path(folder: Path) -> None:
    (folder / "job.toml").write_text(JOB.replace("3 minutes", "1 second"))
    done = sash_run("--json")
    assert done.exit_code == 0, done.output
    late = written("late/late.parquet")
    assert late.column_names == ["ts", "k", "x", "late_reason", "late_missed"]
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(said) == 5, "an object for each file, and one for the end"
    assert sum(sum(report["late"].values()) for report in said) == late.num_rows > 0
    assert sum(report["rows_in"] for report in said) == sum(t.num_rows for t in events())
    assert sum(report["rows_out"] for report in said) == written().num_rows


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_files_of_text_give_the_same(format_: str, folder: Path) -> None:
    (folder / "text").mkdir()
    for i, table in enumerate(events()):
        name = folder / "text" / f"{i:03}.{format_}"
        if format_ == "csv":
            pyarrow.csv.write_csv(table, name)
        else:
            times = [t.strftime("%Y-%m-%dT%H:%M:%S") for t in table["ts"].to_pylist()]
            plain = table.set_column(0, "ts", pa.array(times)).to_pylist()
            name.write_text("".join(json.dumps(row) + "\n" for row in plain))
    source = f'path = "text"\nschema = "{DDL}"\n'
    if format_ == "csv":
        source += "options = { header = true }\n"
    (folder / "job.toml").write_text(PATIENT.replace('path = "in"', source))
    done = sash_run()
    assert done.exit_code == 0, done.output
    assert rows(written()) == rows(over_all())


def test_several_queries_share_a_plan_and_have_folders_of_their_own(folder: Path) -> None:
    """Each gives what it gives alone, late rows too."""
    names = {"counts": "query", "longer": "longer", "visits": "sessions"}
    more = "".join(f'[[query]]\nname = "{n}"\npython = "queries:{q}"\n' for n, q in names.items())
    first = '[[query]]\nname = "counts"\npython = "queries:query"\n'
    text = JOB.replace("3 minutes", "1 second")
    (folder / "job.toml").write_text(text.replace(first, more))
    done = sash_run("--json")
    assert done.exit_code == 0, done.output
    said = [json.loads(line) for line in done.stdout.splitlines()]
    for name, query in names.items():
        (folder / "job.toml").write_text(
            text.replace("queries:query", f"queries:{query}")
            .replace('"out"', f'"alone/{name}"')
            .replace('"late"', f'"alone-late/{name}"')
        )
        alone = sash_run("--json")
        assert alone.exit_code == 0, alone.output
        assert rows(written(f"out/{name}/results.parquet")) == rows(
            written(f"alone/{name}/results.parquet")
        )
        late = [written(f"{place}/{name}/late.parquet") for place in ("late", "alone-late")]
        assert rows(late[0]) == rows(late[1])
        counted = ("rows_in", "rows_out", "late", "watermark")
        assert [[r[k] for k in counted] for r in said if r["query"] == name] == [
            [json.loads(line)[k] for k in counted] for line in alone.stdout.splitlines()
        ]


def test_ties_go_by_their_column_if_files_do(folder: Path) -> None:
    """Files whose tie column goes back are refused, as arrival would decide."""
    (folder / "job.toml").write_text(PATIENT.replace("queries:query", "queries:tied"))
    done = sash_run()
    assert done.exit_code == 1
    assert "it must rise from file to file: -9 comes after 8" in done.stderr
    for i, table in enumerate(events()):
        raised = pa.array([20 * i + x for x in table["x"].to_pylist()])
        pq.write_table(table.set_column(2, "x", raised), folder / "in" / f"{i:03}.parquet")
    assert sash_run().exit_code == 0
    import queries

    files = sorted((folder / "in").iterdir())
    whole = pa.concat_tables([pq.ParquetFile(file).read() for file in files])
    assert rows(written()) == rows(result_as_on_spark(queries.tied.run(whole)))


def test_ctrl_c_leaves_the_sink_as_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sash_run().exit_code == 0
    before = written()
    read, calls = sash.cli.local.read, []

    def interrupted(*given: Any) -> pa.Table:
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return read(*given)

    monkeypatch.setattr(sash.cli.local, "read", interrupted)
    (folder / "job.toml").write_text(JOB.replace("3 minutes", "0 seconds"))
    done = sash_run()
    assert done.exit_code == 130
    assert written().equals(before)
    assert [p.name for p in (folder / "out").iterdir()] == ["results.parquet"]


def test_a_folder_with_other_results_is_left_alone(folder: Path) -> None:
    (folder / "out" / "sash_batch=0").mkdir(parents=True)
    done = sash_run()
    assert done.exit_code == 1
    assert "out holds sash_batch=0 already, which --local did not write" in done.stderr


def test_the_console_shows_rows(folder: Path) -> None:
    (folder / "job.toml").write_text(JOB.replace('path = "out"', 'format = "console"'))
    done = sash_run()
    assert done.exit_code == 0, done.output
    assert "more rows" in done.stdout
    assert "window" in done.stdout


def test_a_mistake_has_exit_code_2(folder: Path) -> None:
    (folder / "job.toml").write_text(JOB.replace("time", "tme"))
    done = sash_run()
    assert done.exit_code == 2
    assert done.stderr.startswith("job.toml:3: unknown key 'tme'")


def test_an_option_that_is_not_known_here_is_refused(folder: Path) -> None:
    more = 'path = "in"\noptions = { mergeSchema = true, maxFilesPerTrigger = 1 }'
    (folder / "job.toml").write_text(JOB.replace('path = "in"', more))
    done = sash_run()
    assert done.exit_code == 2
    assert "job.toml:3: source.options.mergeSchema: --local does not know" in done.stderr


def test_a_file_that_cannot_be_read_is_named(folder: Path) -> None:
    (folder / "in" / "001.parquet").write_text("no")
    done = sash_run()
    assert done.exit_code == 1
    assert "001.parquet cannot be read as parquet" in done.stderr
    assert not (folder / "out" / "results.parquet").exists()


@pytest.mark.parametrize("mode", ["final", "live"])
def test_a_statement_of_sql_runs_as_a_query_does(mode: str, folder: Path) -> None:
    text = (
        "SELECT upper(k) AS u, window.start AS s, window.end AS e, sum(x * 2) AS twice FROM events "
        "WHERE x <> 3 GROUP BY upper(k), window(ts, '10 minutes', '2 minutes')"
    )
    query = f"sql = '''\n{text}\n'''"
    job = PATIENT.replace('python = "queries:query"', query)
    job = job.replace('path = "in"', 'path = "in"\nname = "events"')
    (folder / "job.toml").write_text(f'{job}\n[run]\nmode = "{mode}"\n')
    done = sash_run()
    assert done.exit_code == 0, done.output
    assert rows(written()) == rows(sash.sql(text).run(pa.concat_tables(events())))
    for command in (["check"], ["explain"], ["explain", "--local"], ["warm"], ["warm", "--local"]):
        said = CliRunner().invoke(app, [*command, "job.toml"])
        assert said.exit_code == 0, said.output
    (folder / "job.toml").write_text(job.replace("sum(x", "sum(xx"))
    done = sash_run()
    assert done.exit_code == 2
    assert "column xx is not there; did you mean x" in " ".join(done.output.split())


def test_an_error_of_the_users_own_is_one_message(folder: Path) -> None:
    (folder / "queries.py").write_text(
        "import sash\n"
        "def combine(a, b):\n"
        "    raise ValueError('no such sum')\n"
        "own = sash.operator(identity=0, combine=combine)\n"
        "query = sash.Query(time='ts', by=['k'], window=sash.tumbling('1 hour'),\n"
        "    select={'n': sash.aggregate(own, 'x')})\n"
    )
    done = sash_run("--log", "run.log")
    assert done.exit_code == 1
    *_, cause, log = done.stderr.splitlines()
    assert cause.startswith("failed: ")
    assert "no such sum" in cause
    assert log == "the full log: run.log"
    assert "Traceback" in (folder / "run.log").read_text()
    assert "Traceback" not in done.output
