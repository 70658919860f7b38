"""The ``harness`` command. Every heavy import happens inside the command that needs it, so that help is instant."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from harness import streams
from instances.errors import UsageError
from instances.ranges import LARGEST_SEED, LEAST_MEMORY_MB, MOST_MEMORY_MB, MOST_THREADS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from harness.comparison import Comparison
    from harness.simulating import Simulation

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


class Commands(TyperGroup):
    """The commands; Ctrl-C ends any of them with one line."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="How far from optimal are deep-learning cluster schedulers? Certified gaps for published schedulers.",
)


class Format(StrEnum):
    """How rows are printed to standard output."""

    TABLE = "table"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"


class Kind(StrEnum):
    """What ``harness list`` lists."""

    INSTANCES = "instances"
    MODELS = "models"
    HEURISTICS = "heuristics"
    POLICIES = "policies"
    PAPERS = "papers"
    FORMATS = "formats"


SeedOption = Annotated[
    list[int], typer.Option(min=0, max=LARGEST_SEED, help="Seed of heuristics and solver. Repeatable.")
]
InstanceOption = Annotated[
    list[str],
    typer.Option(help="gen/…, paper/…, or a path; ?key=value&… overrides generator parameters. Repeatable."),
]
PolicyOption = Annotated[
    list[str] | None,
    typer.Option(
        help="hadar, gavel, yarn-cs, an id or a pattern ('hadar.*'; harness list policies); several may follow. "
        "Repeatable. Default: those that Hadar's section IV compares."
    ),
]
MemoryOption = Annotated[
    int, typer.Option(min=LEAST_MEMORY_MB, max=MOST_MEMORY_MB, help="Memory cap of one worker process.")
]
ProfilingOption = Annotated[
    float, typer.Option(help="Minutes in which a job is profiled before policies that need it may schedule it.")
]
WindowOption = Annotated[
    str | None, typer.Option(metavar="FIRST:COUNT", help="Jobs, by arrival, whose completion times count.")
]
JobsOption = Annotated[int, typer.Option(min=0, help="Worker processes; 0: as many as there are cores.")]
ResultsOption = Annotated[Path, typer.Option(help="Folder in which the results folder is made.")]
ResumeOption = Annotated[Path | None, typer.Option(help="Complete this results folder; finished rows are kept.")]
ReportOption = Annotated[bool, typer.Option(help="Write report.html and figures, too.")]
FormatOption = Annotated[Format, typer.Option("--format", help="How rows are printed to standard output.")]


@app.command()
def compare(
    instance: InstanceOption,
    paper: Annotated[list[str], typer.Option(help="Only this paper's methods. Repeatable.")] = [],  # noqa: B006
    method: Annotated[list[str], typer.Option(help="Only methods that match ('oef.*'). Repeatable.")] = ["*"],  # noqa: B006
    seed: SeedOption = [0],  # noqa: B006
    time_limit: Annotated[float, typer.Option(help="Seconds each solve may take.")] = 60.0,
    rel_gap: Annotated[float, typer.Option(help="Relative gap at which a MIP counts as solved.")] = 1e-6,
    threads: Annotated[int, typer.Option(min=1, max=MOST_THREADS, help="Threads of one solve.")] = 1,
    memory_mb: MemoryOption = 4096,
    jobs: JobsOption = 0,
    all_sizes: Annotated[bool, typer.Option("--all", help="Run methods above their stated size, too.")] = False,
    cross_check: Annotated[bool, typer.Option(help="Second opinion on every model by PuLP/CBC.")] = False,
    output: FormatOption = Format.TABLE,
    results: ResultsOption = Path("results"),
    resume: ResumeOption = None,
    report: ReportOption = True,
) -> None:
    """Run papers' methods on an instance; report certified gaps, ratios, guarantees and times."""
    from harness.comparing import compare as run_compare
    from harness.tasks import Limits

    limits = Limits(time_limit, rel_gap, threads, memory_mb, all_sizes, cross_check)
    with progress() as (start, advance):
        comparison = run_compare(
            instance,
            method,
            paper,
            seeds=seed,
            limits=limits,
            jobs=jobs,
            results=results,
            resume=resume,
            on_start=start,
            on_result=advance,
        )
    finish(comparison, output, report)


@app.command()
def sweep(
    file: Annotated[Path, typer.Argument(help="TOML file with instances, grids of parameters, methods and seeds.")],
    jobs: JobsOption = 0,
    memory_mb: MemoryOption = 4096,
    output: FormatOption = Format.TABLE,
    results: ResultsOption = Path("results"),
    resume: ResumeOption = None,
    report: ReportOption = True,
) -> None:
    """Run many instances × methods × seeds as a file says (sweeps/*.toml)."""
    from harness.sweeping import run_sweep
    from harness.tasks import Limits

    with progress() as (start, advance):
        comparison = run_sweep(
            file,
            limits=Limits(memory_mb=memory_mb),
            jobs=jobs,
            results=results,
            resume=resume,
            on_start=start,
            on_result=advance,
        )
    finish(comparison, output, report)


@app.command()
def simulate(
    instance: InstanceOption,
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[POLICY]...", help="More policies, as in --policy a b c.")
    ] = None,
    policy: PolicyOption = None,
    round_s: Annotated[float | None, typer.Option(help="Seconds of a round. Default: the instance's slot.")] = None,
    restart_s: Annotated[
        float | None, typer.Option(help="Seconds that a changed allocation costs. Default: 10, 0 in shorter rounds.")
    ] = None,
    spread_factor: Annotated[
        float, typer.Option(help="Factor on the rate of gangs that span servers, in (0, 1].")
    ] = 1.0,
    until_h: Annotated[float, typer.Option(help="No round starts after so many hours.")] = float("inf"),
    profiling_min: ProfilingOption = 0.0,
    window: WindowOption = None,
    seed: Annotated[
        int,
        typer.Option(min=0, max=LARGEST_SEED, help="Seed of the solver; ?seed=… draws another instance."),
    ] = 0,
    time_limit: Annotated[float, typer.Option(help="Wall-clock seconds after which a simulation is killed.")] = 3600.0,
    memory_mb: MemoryOption = 4096,
    jobs: JobsOption = 0,
    output: FormatOption = Format.TABLE,
    results: ResultsOption = Path("results"),
    figures: Annotated[bool, typer.Option(help="Draw the histories, too.")] = True,
) -> None:
    """Simulate schedulers round by round; report times, utilisation and certified ratios, every history checked."""
    from harness.simulating import POLICIES
    from harness.simulating import simulate as run_simulation
    from harness.simulation.caps import Caps
    from heuristics.simulator.metrics import ALL, Window

    with progress() as (start, advance):
        simulation = run_simulation(
            instance,
            [*(policy or []), *(more or [])] or POLICIES,
            round_s=round_s,
            restart_s=restart_s,
            spread_factor=spread_factor,
            until_s=until_h * 3600,
            profiling_s=profiling_min * 60,
            window=Window.parse(window) if window else ALL,
            seed=seed,
            jobs=jobs,
            caps=Caps(time_limit, memory_mb),
            results=results,
            on_start=start,
            on_result=advance,
        )
    say(f"results: {simulation.folder}")
    try:
        if figures and simulation.folder:
            save_figures(simulation, simulation.folder)
    finally:
        emit_simulation(simulation, output)
    if simulation.interrupted:
        say("interrupted; finished policies are kept")
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(OK if simulation.ok else FAILED)


@app.command("list")
def list_(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    output: FormatOption = Format.TABLE,
) -> None:
    """List what there is, one line each, with source."""
    from harness.listing import listing

    columns, lines = listing(kind.value)
    emit_lines(kind.value, columns, lines, output)


@app.command()
def show(
    instance: Annotated[str, typer.Argument(help="gen/…, paper/…, or a path.")],
    picture: Annotated[Path | None, typer.Option(help="Also draw the instance to this .png or .svg file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the instance itself as canonical JSON.")] = False,
) -> None:
    """Show an instance in words and a picture."""
    from harness.showing import draw_instance, words
    from instances import load
    from instances.canonical import to_json

    loaded = load(instance)
    if picture:
        draw_instance(loaded, picture)
    if json:
        sys.stdout.write(to_json(loaded))
    else:
        stdout().print(words(loaded))


@app.command("import")
def import_(
    format_: Annotated[str, typer.Argument(metavar="FORMAT", help="gavel, philly, … (harness list formats).")],
    file: Annotated[Path, typer.Argument(help="The trace.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Instance file to write (.json).")],
    throughputs: Annotated[Path | None, typer.Option(help="Gavel's throughput JSON.")] = None,
    nodes: Annotated[Path | None, typer.Option(help="Node list (openb).")] = None,
    max_jobs: Annotated[int | None, typer.Option(min=1, help="Only the first jobs by arrival.")] = None,
    gpus: Annotated[str | None, typer.Option(help="Cluster, as V100=36,P100=36,K80=36.")] = None,
    gpus_per_server: Annotated[
        int | None, typer.Option(min=1, help="GPUs of one server; the format's own if absent.")
    ] = None,
    cpus_per_gpu: Annotated[float | None, typer.Option(help="CPUs per GPU of a server; 3 if absent.")] = None,
    memory_gb_per_gpu: Annotated[float | None, typer.Option(help="GB per GPU of a server; 62.5 if absent.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the instance.")] = None,
) -> None:
    """Import a real trace as an instance."""
    from harness.listing import gpu_counts
    from instances.canonical import write
    from instances.importers import Options, import_trace

    if output.suffix != ".json":
        raise UsageError(f"{output}: an instance is written as .json")
    options = Options(
        max_jobs=max_jobs,
        gpus=gpu_counts(gpus) if gpus else None,
        gpus_per_server=gpus_per_server,
        cpus_per_gpu=cpus_per_gpu,
        memory_gb_per_gpu=memory_gb_per_gpu,
        throughputs=throughputs,
        nodes=nodes,
        name=name,
    )
    instance = import_trace(format_, file, options)
    write(instance, output)
    for line in instance.derived:
        say(f"derived: {line}")
    counts = f"{len(instance.jobs)} jobs, {len(instance.tenants)} tenants, {instance.cluster.gpus} GPUs"
    typer.echo(f"{output}: {counts}, fingerprint {instance.fingerprint[:12]}")


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Results folder.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="HTML file; FOLDER/report.html by default.")
    ] = None,
) -> None:
    """Write the self-contained HTML page of a results folder."""
    from harness.comparison import Comparison
    from harness.store import read_run

    save_report(Comparison(read_run(folder), folder), output)


def finish(comparison: Comparison, output: Format, report: bool) -> None:
    """Write the page, print the rows, and end with the exit code of a comparison."""
    say(f"results: {comparison.folder}")
    try:
        if report and comparison.rows:
            save_report(comparison)
    finally:
        emit(comparison, output)
    if comparison.interrupted:
        say(f"interrupted; go on with: --resume {comparison.folder}")
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(OK if comparison.ok else FAILED)


def save_report(comparison: Comparison, output: Path | None = None) -> None:
    """Write the page (and, into a results folder, the figures as files) and say where it is."""
    from harness.report import save

    if comparison.folder is None:
        return
    path = output or comparison.folder / "report.html"
    try:
        save(comparison.run, path, figures=comparison.folder if output is None else None)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
    say(f"report: {path}")


def save_figures(simulation: Simulation, folder: Path) -> None:
    """Draw the histories into the results folder."""
    from harness.plots import write_figures

    try:
        paths = write_figures(simulation.figures(), folder)
    except OSError as error:
        raise UsageError(f"{folder}: figures cannot be written: {error.strerror or error}") from error
    if paths:
        say(f"figures: {paths[0].parent}")


def emit(comparison: Comparison, output: Format) -> None:
    """Print a comparison to standard output."""
    from harness import render

    if output is Format.TABLE:
        stdout().print(render.to_rich(comparison.run))
    else:
        formats = {
            Format.MARKDOWN: render.to_markdown,
            Format.CSV: render.to_csv,
            Format.JSON: render.to_json,
        }
        sys.stdout.write(formats[output](comparison.run).rstrip("\n") + "\n")


def emit_simulation(simulation: Simulation, output: Format) -> None:
    """Print a simulation to standard output."""
    from harness.simulation import render

    if output is Format.TABLE:
        stdout().print(render.to_rich(simulation.rows))
    else:
        formats = {Format.MARKDOWN: render.to_markdown, Format.CSV: render.to_csv, Format.JSON: render.to_json}
        sys.stdout.write(formats[output](simulation.rows))


def emit_lines(title: str, columns: tuple[str, ...], lines: Iterable[tuple[str, ...]], output: Format) -> None:
    """Print a listing to standard output."""
    from harness import listing

    if output is Format.TABLE:
        stdout().print(listing.to_rich(title, columns, lines))
    else:
        sys.stdout.write(listing.to_text(columns, lines, output.value))


def stdout() -> Console:
    """Return a console on standard output; a pipe gets the full width instead of a cut table."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 200)


def say(line: str) -> None:
    """Print a line about the command's own work to standard error, without characters that steer a terminal."""
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(line.split()))
    sys.stderr.write(f"{text}\n")


def complain(what: str) -> None:
    """Say in one line on standard error why the command ends."""
    say(f"harness: {what}")


class progress:  # noqa: N801 - used as a verb: `with progress() as …`
    """Show finished rows on standard error, if that is a terminal, while a run goes on."""

    _bar: Progress | None = None

    def __enter__(self) -> tuple[Any, Any]:
        """Return the callbacks for the number of tasks and for each finished row."""
        return self._start, self._advance

    def __exit__(self, *_: object) -> None:
        """Take the bar away."""
        if self._bar:
            self._bar.stop()

    def _start(self, count: int) -> None:
        if not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        text = TextColumn("{task.description}", markup=False)
        columns = (text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("running", total=count)
        self._bar.start()

    def _advance(self, row: Any) -> None:
        if self._bar:
            self._bar.update(
                self._task, advance=1, description=f"{getattr(row, 'method', None) or row.policy}: {row.status}"
            )


def main() -> None:
    """Run the command; a mistake of the user is one line on standard error and exit code 2."""
    streams.protect()
    try:
        try:
            app()
        finally:
            # Text that cannot be written is a mistake like others; Python would complain while shutting down.
            sys.stdout.flush()
    except UsageError as error:
        complain(str(error))
        sys.exit(USAGE)
    except OSError as error:
        complain(": ".join(str(part) for part in (error.filename, error.strerror or error) if part))
        sys.exit(USAGE)
    except KeyboardInterrupt:
        complain("interrupted")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
