"""The commands of `sash`, and their options.  What a command needs is imported when it runs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .errors import FAILED, INTERRUPTED, WRONG, Interrupted, JobError, RunError

if TYPE_CHECKING:
    from .report import Watcher

__all__ = ["app"]

app = typer.Typer(
    name="sash",
    help="Exact, incremental sliding-window aggregation: run a job file, here or on Spark.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _job_files(incomplete: str) -> list[str]:
    """Job files, for shells that complete what is typed."""
    folder = Path(incomplete).parent if incomplete else Path()
    found = [str(p) + ("/" if p.is_dir() else "") for p in folder.glob("*")]
    return [p for p in found if p.startswith(incomplete) and p.endswith((".toml", "/"))]


JobArgument = Annotated[
    str, typer.Argument(metavar="JOB", help="A job file, TOML.", autocompletion=_job_files)
]
LocalOption = Annotated[
    bool, typer.Option("--local", help="In this process, without Java: files, to the end.")
]


@contextlib.contextmanager
def _answered() -> Iterator[None]:
    """Errors as messages and exit codes."""
    try:
        yield
    except JobError as error:
        for problem in error.problems:
            typer.echo(problem.said(error.file), err=True)
        raise typer.Exit(WRONG) from None
    except RunError as error:
        typer.echo(f"failed: {error}", err=True)
        raise typer.Exit(FAILED) from None
    except (Interrupted, KeyboardInterrupt) as error:
        typer.echo(str(error) or "stopped by Ctrl-C", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _version(wanted: bool) -> None:
    if wanted:
        import sash

        typer.echo(f"sash {sash.__version__}")
        raise typer.Exit


@app.callback()
def _all(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def run(
    job: JobArgument,
    local: LocalOption = False,
    json: Annotated[
        bool, typer.Option("--json", help="One object a micro-batch on stdout.")
    ] = False,
    master: Annotated[
        str | None, typer.Option(help="Where Spark runs: local[4], spark://host:7077, yarn.")
    ] = None,
    remote: Annotated[
        str | None, typer.Option(help="The address of a Spark Connect server: sc://host.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="Where all that Spark says is written to.")
    ] = None,
) -> None:
    """Run a job: on Spark, or with --local in this process.

    Exit codes: 0 the job ended; 1 it failed; 2 the job file or its SQL is wrong; 130 Ctrl-C.
    """
    with _answered():
        from .check import prepare

        if local and (master or remote):
            raise typer.BadParameter("--local runs without Spark: leave out --master and --remote")
        if master and remote:
            raise typer.BadParameter("give --master or --remote, not both")
        ready = prepare(job, local=local)
        if local:
            from .local import run_local

            with _shown(json) as (watch, show):
                run_local(ready, watch, show)
            return
        raise RunError("running on Spark is not there yet; use --local")


@contextlib.contextmanager
def _shown(json: bool) -> Iterator[tuple[Watcher, Any]]:
    """Who is told how a run goes, and how rows are shown; the last state is that of the run."""
    watch, show = _watcher(json)
    try:
        yield watch, show
    except (Interrupted, KeyboardInterrupt):
        watch.state("stopped")
        watch.close()
        raise
    except BaseException:
        watch.state("failed")
        watch.close()
        raise
    watch.state("ended")
    watch.close()


def _watcher(json: bool) -> tuple[Watcher, Any]:
    from rich.console import Console

    from .plain import JsonLines, PlainLines
    from .screen import Screen, rows_table

    rows = Console(stderr=json)
    screen = Console(stderr=True)

    def show(title: str, table: Any) -> None:
        rows.print(rows_table(title, table))

    if json:
        return JsonLines(), show
    return (Screen(screen) if screen.is_terminal else PlainLines(sys.stderr)), show


@app.command()
def check(job: JobArgument, local: LocalOption = False) -> None:
    """Check a job file without running it: no Java, no data read beyond the schema."""
    with _answered():
        from .check import prepare

        ready = prepare(job, local=local)
        count = len(ready.queries)
        typer.echo(f"{job}: good, {count} quer{'y' if count == 1 else 'ies'}")
        for note in ready.notes:
            typer.echo(f"note: {note}")
