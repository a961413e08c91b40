"""The commands of `sash`, and their options.  A command imports its modules when it runs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from .errors import FAILED, INTERRUPTED, WRONG, Interrupted, JobError, RunError

if TYPE_CHECKING:
    from .check import Ready
    from .doctor import Finding
    from .report import Watcher

__all__ = ["app"]

app = typer.Typer(
    name="sash",
    help="Exact, incremental sliding-window aggregation: run a job file, here or on Spark.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _job_files(incomplete: str) -> list[str]:
    """The job files that complete a word, for the shell's completion."""
    folder = Path(incomplete).parent if incomplete else Path()
    found = [str(p) + ("/" if p.is_dir() else "") for p in folder.glob("*")]
    return [p for p in found if p.startswith(incomplete) and p.endswith((".toml", "/"))]


JobArgument = Annotated[
    str, typer.Argument(metavar="JOB", help="A job file in TOML.", autocompletion=_job_files)
]
LocalOption = Annotated[
    bool, typer.Option("--local", help="Run in this process, without Java, over files, to the end.")
]
ForLocalOption = Annotated[bool, typer.Option("--local", help="As for `sash run --local`.")]


@contextlib.contextmanager
def _answered() -> Iterator[None]:
    """Turn errors into messages and exit codes."""
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
        bool, typer.Option("--json", help="Write one JSON object per micro-batch to stdout.")
    ] = False,
    master: Annotated[
        str | None, typer.Option(help="Where Spark runs: local[4], spark://host:7077, yarn.")
    ] = None,
    remote: Annotated[
        str | None, typer.Option(help="The address of a Spark Connect server: sc://host.")
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(help="The file for Spark's output and for the trace of an error."),
    ] = None,
    page: Annotated[
        int | None,
        typer.Option(metavar="[PORT]", help="Serve a live page of the job on 127.0.0.1."),
    ] = None,
    submitted: Annotated[bool, typer.Option("--submitted", hidden=True)] = False,
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
        if page is not None and not 0 <= page <= 65_535:
            raise typer.BadParameter(
                f"--page takes a port from 1 to 65535, or 0 for any that is free, not {page}"
            )
        ready = prepare(job, local=local)
        shown = partial(_shown, json, paged=None if page is None else (ready, page))
        if local:
            from .local import run_local
            from .logs import failures

            with shown(sys.stderr) as (watch, show), failures(log, ready.job.name):
                run_local(ready, watch, show)
            return
        from .launch import launch

        if master is None and remote is None and not submitted:
            master = "local[*]"
        launch(ready, shown, master=master, remote=remote, log=log)


@contextlib.contextmanager
def _shown(
    json: bool, out: TextIO, paged: tuple[Ready, int] | None = None
) -> Iterator[tuple[Watcher, Any]]:
    """Open the watcher of a run and the function that shows rows; report the run's last state."""
    watch, show = _watcher(json, out)
    if paged is not None:
        from .paged import PageWatcher
        from .report import Watchers

        page = PageWatcher(*paged)
        print(f"the job's page: {page.url}", file=out, flush=True)
        watch = Watchers(watch, page)
    try:
        yield watch, show
    except (Interrupted, KeyboardInterrupt):
        watch.state("stopped")
        watch.close()
        raise
    except BaseException as error:
        watch.state("failed", str(error))
        watch.close()
        if paged is not None:
            _stay(out, str(error))
        raise
    watch.state("ended")
    watch.close()
    if paged is not None:
        _stay(out, "")


def _stay(out: TextIO, error: str) -> None:
    """After a run, keep its page until Ctrl-C, if a person sits at the terminal."""
    if not (out.isatty() and sys.stdin.isatty()):
        return
    import signal
    import threading

    if error:
        print(f"failed: {error}", file=out)
    print("the page stays until you press Ctrl-C", file=out, flush=True)
    pressed = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: pressed.set())
    while not pressed.wait(0.5):
        pass


def _watcher(json: bool, out: TextIO) -> tuple[Watcher, Any]:
    from rich.console import Console

    from .plain import JsonLines, PlainLines
    from .screen import Screen, rows_table

    screen = Console(file=out)
    rows = screen if json or (screen.is_terminal and sys.stdout.isatty()) else Console()

    def show(title: str, table: Any) -> None:
        rows.print(rows_table(title, table))

    if json:
        return JsonLines(), show
    return (Screen(screen) if screen.is_terminal else PlainLines(out)), show


@app.command()
def check(job: JobArgument, local: ForLocalOption = False) -> None:
    """Check a job file without running it: needs no Java, and reads no data beyond the schema."""
    with _answered():
        from .check import prepare

        ready = prepare(job, local=local)
        count = len(ready.queries)
        typer.echo(f"{job}: good, {count} quer{'y' if count == 1 else 'ies'}")
        for note in ready.notes:
            typer.echo(f"note: {note}")


@app.command()
def explain(job: JobArgument, local: ForLocalOption = False) -> None:
    """Explain how a job's queries run, why, what they keep and what they cost; needs no Java."""
    with _answered():
        from .check import prepare
        from .explained import explained, explained_together

        ready = prepare(job, local=local)
        for name, text in explained(ready, local=local):
            if len(ready.queries) > 1:
                typer.echo(f"# {name}")
            typer.echo(str(text))
        for together in explained_together(ready, local=local):
            typer.echo(f"\n# together\n{together}")


@app.command()
def warm(job: JobArgument, local: ForLocalOption = False) -> None:
    """Compile a job's kernels, in an image or on an executor, so that its first batch need not."""
    with _answered():
        from .check import prepare
        from .warm import warm as build

        for what, seconds in build(prepare(job, local=local), local=local):
            typer.echo(f"{what}: built in {seconds:.1f} s")
        from ..kernels.cache import folder

        typer.echo(f"kernels are in {folder() or 'memory alone: no folder can be written to'}")


@app.command()
def doctor(
    spark: Annotated[bool, typer.Option("--spark", help="Start Spark, and ask a worker.")] = False,
    master: Annotated[str, typer.Option(help="Where Spark runs, for --spark.")] = "local[1]",
    remote: Annotated[str | None, typer.Option(help="A Spark Connect server, for --spark.")] = None,
) -> None:
    """List what sash finds on this machine, what is missing, and how to get it."""
    with _answered():
        from .doctor import examine

        bad = False
        for finding in examine():
            bad |= not finding.good
            _say(finding)
        if spark:
            from .launch import ask_worker

            for finding in ask_worker(master=master, remote=remote):
                bad |= not finding.good
                _say(finding)
        if bad:
            raise typer.Exit(FAILED)


def _say(finding: Finding) -> None:
    mark = "ok     " if finding.found else ("MISSING" if finding.needed else "none   ")
    typer.echo(f"{mark}  {finding.what:<26}{finding.found or finding.how}")


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="The folder for the demo's files.")] = Path(
        "sash-demo"
    ),
) -> None:
    """Run a month of real flights on Spark, and race a week of them against Spark's window()."""
    with _answered():
        from rich.console import Console

        from .demo import demo as show_it

        show_it(folder, partial(_shown, False), Console())
