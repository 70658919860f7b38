"""The Typer application, and what its commands share: options, standard streams, exit codes."""

from __future__ import annotations

import inspect
import io
import math
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO

import typer
from typer import Option
from typer.core import TyperGroup

from schedgap.harness.cli.status import FAILED, INTERRUPTED, OK
from schedgap.harness.show.table import USUALLY, WRITERS, Block, OutputFormat, Selection, of_texts, table
from schedgap.harness.show.text import percent, resuming
from schedgap.instances.errors import UsageError
from schedgap.instances.ranges import LARGEST_SEED, LEAST_MEMORY_MB, MOST_MEMORY_MB

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.console import Console

    from schedgap.harness.engine.result import Found
    from schedgap.harness.engine.study import Running


class Commands(TyperGroup):
    """A command group that adds ``--plugin`` to every command and reports Ctrl-C in one line."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of that name, with ``--plugin`` added."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            shared = [option for option in self.params if option.name == "plugin"]
            command.params = list(dict.fromkeys([*command.params, *shared]))
        return command

    def invoke(self, ctx: Any) -> Any:
        """Run the command; on Ctrl-C, exit with status 130."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="""How far from optimal are deep-learning cluster schedulers?

    Run published schedulers and their optimization models on the same instance, and report certified gaps.

    \b
    First steps:
      harness compare --instance paper/oef-eq1 --paper oef
      harness list instances
      harness explain hadar.p1""",
    epilog="Exit status: 0 success, 1 a method failed or a check did not hold, 2 usage error, 130 interrupted.",
)


def _load(names: list[str]) -> list[str]:
    from schedgap.instances.plugins import load_plugin

    for name in names:
        load_plugin(name)
    return names


PluginOption = Option(
    metavar="FILE.py|MODULE",
    callback=_load,
    is_eager=True,
    expose_value=False,
    help="Load your own methods, papers or figures. Repeatable.",
)


def _versions(asked: bool) -> None:
    if asked:
        from schedgap.harness.engine.environment import versions

        numbers = versions()
        sys.stdout.write(f"schedgap {numbers.pop('schedgap')}\n")
        sys.stdout.writelines(f"{name} {number}\n" for name, number in numbers.items())
        raise typer.Exit(OK)


@app.callback()
def all_commands(
    plugin: Annotated[list[str], PluginOption] = [],  # noqa: B006
    version: Annotated[
        bool, Option("--version", callback=_versions, is_eager=True, help="Print all versions that results depend on.")
    ] = False,
) -> None:
    """Declare the options of ``harness`` itself; commands accept ``--plugin``, too."""


def stdout() -> Console:
    """Return a console on standard output, 200 columns wide if that is a pipe, so that tables are not cut."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 200)


def say(line: str) -> None:
    """Print a progress message to standard error, in one line and with control characters escaped."""
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(line.split()))
    sys.stderr.write(f"{text}\n")


def complain(message: str) -> None:
    """Print the reason why the command ends, in one line on standard error."""
    say(f"harness: {message}")


LATEST = 10
"""Number of latest results shown while a study runs."""


def _preload(count: int) -> None:
    """Import the modules for pages and tables (0.1 s) while the fork server still imports what tasks need.

    Ctrl-C waits for that: libraries swallow exceptions while they are imported, so that one in a hundred was lost.
    """
    from schedgap.harness.engine.pool import delayed_ctrl_c

    with delayed_ctrl_c():
        import schedgap.harness.show.page  # noqa: F401


@contextmanager
def progress() -> Iterator[Running]:
    """Yield callbacks for a study; on a terminal they show the latest results and the time left."""
    if not sys.stderr.isatty():
        yield {"on_start": _preload, "on_news": say, "on_gap": lambda task, gap: say(_going_on(task, gap))}
        return
    from rich import progress as bars
    from rich.console import Console, Group
    from rich.live import Live

    from schedgap.harness.show.page import latest
    from schedgap.harness.show.terminal import drawn

    console, done, gaps = Console(stderr=True), deque[Any](maxlen=LATEST), dict[str, str]()
    times = bars.TimeElapsedColumn(), bars.TextColumn("left:"), bars.TimeRemainingColumn()
    bar = bars.Progress(bars.BarColumn(), bars.MofNCompleteColumn(), *times, console=console)
    task = bar.add_task("", total=0)

    def shown() -> Group:
        return Group(*(drawn(latest([*done]), console.width) if done else ()), *gaps.values(), bar)

    def start(count: int) -> None:
        _preload(count)
        bar.update(task, total=(bar.tasks[0].total or 0) + count)
        live.start(refresh=True)

    def add(result: Any) -> None:
        done.append(result)
        gaps.pop(result.key, None)
        bar.advance(task)

    def note(asking: Any, gap: float) -> None:
        gaps[asking.key] = _going_on(asking, gap)

    live = Live(get_renderable=shown, console=console, transient=True)
    try:
        yield {"on_start": start, "on_result": add, "on_news": say, "on_gap": note}
    finally:
        live.stop()


def _going_on(task: Any, gap: float) -> str:
    """Return a line about the running search of a task: its gap so far, which is not yet certified."""
    found = f"a gap of {percent(gap)} so far, not yet certified" if math.isfinite(gap) else "no schedule so far"
    return f"{task.method} on {task.instance_name}: {found}"


STDOUT, STDERR = 1, 2


class Outlet(io.FileIO):
    """A standard stream that discards text once its reader has gone (``harness … | head``).

    If standard output cannot be written for another reason, such as a full disk, the first write raises `UsageError`.
    Failures of standard error are ignored: there is nowhere left to report them.
    """

    lost = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes, or discard them once a write has failed; return their number."""
        if not self.lost:
            try:
                return super().write(data)
            except OSError as error:
                self.lost = True
                if self.fileno() == STDOUT and not isinstance(error, BrokenPipeError):
                    raise UsageError(f"standard output: {error.strerror}") from error
        return memoryview(data).nbytes


def protect() -> None:
    """Make standard output and error safe to write to if closed, full, broken, or in an encoding without ≤ and █."""
    streams: list[TextIO | None] = [sys.stdin, sys.stdout, sys.stderr]  # None if closed at start
    for stream in streams:
        if stream is None:
            # Opens the lowest free descriptor, the closed one; otherwise the next file opened would receive the text.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout = _text(STDOUT, streams[STDOUT], "replace")
    sys.stderr = _text(STDERR, streams[STDERR], "backslashreplace")


def _text(descriptor: int, stream: TextIO | None, errors: str) -> TextIO:
    outlet = Outlet(descriptor, "wb", closefd=False)
    encoding = stream.encoding if stream else "utf-8"
    lines = descriptor == STDERR or outlet.isatty()
    return io.TextIOWrapper(io.BufferedWriter(outlet), encoding, errors, line_buffering=lines)


def finish(found: Found[Any], output: OutputFormat, report: bool, view: Selection = USUALLY) -> NoReturn:
    """Print the results, write the HTML page if wanted, and exit with the status of the study."""
    answer = write_results(found, output, view)
    if not found.ok and output is not OutputFormat.TABLE:  # other formats have rows only
        say(answer)
    say(f"results: {found.folder}")
    if report and found.rows:
        save_report(found)
    if found.interrupted:
        say(f"interrupted; to continue: {resuming(found.meta['command'], found.folder)}")
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(OK if found.ok else FAILED)


def write_results(found: Found[Any], output: OutputFormat, view: Selection = USUALLY) -> str:
    """Print the results of a study to standard output, and return the first line, which says what is wrong, if so."""
    from schedgap.harness.show.page import blocks
    from schedgap.harness.show.table import Line

    printed = blocks(found, view)
    write(printed, found.fields, [row.as_dict() for row in found.rows], output)
    sys.stdout.flush()
    return next((block.text for block in printed if isinstance(block, Line)), "")


def save_report(found: Found[Any], output: Path | None = None) -> None:
    """Write the HTML page and its figures, and print its path."""
    from schedgap.harness.show.page import save

    if found.folder is None:
        return
    say_damage(found)
    path = output or found.folder / "report.html"
    try:
        save(found, path, found.folder if output is None else None)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
    say(f"report: {path}")


NAMED = 2
"""Number of damaged results that are named one by one."""


def say_damage(found: Found[Any]) -> None:
    """Print which damaged results were left out of a results folder: the first ones, and the number of others."""
    damaged = found.meta.get("damaged", ())
    for damage in damaged[:NAMED]:
        say(f"left out: {damage}; --resume {found.folder} runs it again")
    if len(damaged) > NAMED:
        say(f"left out: {len(damaged) - NAMED} more; harness verify {found.folder} lists them")


def emit_lines(title: str, columns: tuple[str, ...], lines: Iterable[tuple[str, ...]], output: OutputFormat) -> None:
    """Print a listing to standard output."""
    rows = list(lines)
    records = [dict(zip(columns, line, strict=True)) for line in rows]
    write([table(title if output is OutputFormat.TABLE else "", of_texts(columns), rows)], columns, records, output)


def write(
    blocks: Sequence[Block], fields: Sequence[str], records: Sequence[Mapping[str, Any]], output: OutputFormat
) -> None:
    """Print blocks (format ``table``) or records (all other formats) to standard output."""
    if output is OutputFormat.TABLE:
        from schedgap.harness.show.terminal import show

        show(stdout(), blocks)
    else:
        sys.stdout.write(WRITERS[output](blocks, fields, records))


def names(kind: str) -> Iterable[str]:
    """Return the registered names of a kind, for a shell that completes them: instances, methods, policies, figures."""
    match kind:
        case "instances":
            from schedgap.instances.catalogue import references

            return references()
        case "policies":
            from schedgap.heuristics.simulator.policies import POLICIES

            return POLICIES.ids()
        case "figures":
            from schedgap.harness.studies.reproduce.setting import known

            return known()
        case _:
            from schedgap.harness.studies.compare.methods import specs

            return (spec.id for spec in specs())


def completing(kind: str) -> Callable[[str], list[str]]:
    """Return the function that completes the first characters of a name."""
    return lambda incomplete: [name for name in names(kind) if name.startswith(incomplete)]


INSTANCES, METHODS, POLICIES, FIGURES = map(completing, ("instances", "methods", "policies", "figures"))

InstanceOption = Annotated[
    list[str],
    Option(
        help="gen/…, paper/…, worst/…, family/…, or a file; ?key=value&… sets generator parameters. Repeatable.",
        autocompletion=INSTANCES,
    ),
]
LogsOption = Annotated[bool, Option("--solver-logs", help="Keep the log of HiGHS of each row that is not killed.")]
ReferenceOption = Annotated[
    str, Option(metavar="METHOD", help="Method that the others are compared with in statistics of many instances.")
]
SeedOption = Annotated[int, Option(min=0, max=LARGEST_SEED, help="Seed of random draws and of the solver.")]
SeedsOption = Annotated[list[int], Option("--seed", min=0, max=LARGEST_SEED, help="Seed of each run. Repeatable.")]
MemoryOption = Annotated[int, Option(min=LEAST_MEMORY_MB, max=MOST_MEMORY_MB, help="Memory cap of a worker (MB).")]
ResultsOption = Annotated[Path, Option(help="Parent folder of the new results folder.")]
FormatOption = Annotated[OutputFormat, Option("--format", help="Output format of the rows.")]
ReportOption = Annotated[bool, Option(help="Also write report.html and figures.")]
TopOption = Annotated[int, Option(min=0, help="Rows to show at most; 0: 10 of a comparison, all otherwise.")]
AllRowsOption = Annotated[bool, Option("--all-rows", help="Show all rows.")]
VerboseOption = Annotated[bool, Option("--verbose", "-v", help="List skipped methods, each with the reason.")]


TASKS = {
    name: f"schedgap.harness.studies.{name}.task"
    for name in ("compare", "simulate", "audit", "adversary", "reproduce", "frontier")
}
"""Modules that workers of a command import before its first task is known."""


def study(run: Callable[..., Any]) -> Callable[..., None]:
    """Register a command for a function that runs a study and returns its results.

    The function's parameters become options of the command, next to the options that all studies share; ``**running``
    receives the latter as a :class:`schedgap.harness.engine.study.Running`.
    """

    def command(
        *,
        jobs: Annotated[int, Option(min=0, help="Worker processes; 0: one per core.")] = 0,
        dask: Annotated[
            str | None,
            Option(metavar="ADDRESS", help="Run on the Dask cluster at this scheduler address (tcp://host:8786)."),
        ] = None,
        results: ResultsOption = Path("results"),
        resume: Annotated[Path | None, Option(help="Complete this results folder; finished rows are kept.")] = None,
        output: FormatOption = OutputFormat.TABLE,
        report: ReportOption = True,
        top: TopOption = 0,
        all_rows: AllRowsOption = False,
        verbose: VerboseOption = False,
        **own: Any,
    ) -> None:
        from schedgap.harness.engine.pool import start_server, stop_server

        if (module := TASKS.get(run.__name__)) and not dask:  # a sweep sets its threads in its file
            start_server(module, own.get("threads", 1))
        try:
            with progress() as callbacks:
                found = run(**own, jobs=jobs, dask=dask, results=results, resume=resume, **callbacks)
        except UsageError:
            stop_server()  # it was started above, and may still be importing
            raise
        finish(found, output, report, Selection(math.inf if all_rows else top, verbose=verbose))

    parameters = [p for f in (run, command) for p in inspect.signature(f, eval_str=True).parameters.values()]
    options = [p.replace(kind=p.KEYWORD_ONLY) for p in parameters if p.kind is not p.VAR_KEYWORD]
    command.__name__, command.__doc__ = run.__name__, run.__doc__
    command.__annotations__ = {p.name: p.annotation for p in options}
    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return app.command()(command)
