"""Options that several commands share, each declared once, and what makes a command of a function that runs a study."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from schedgap.harness.cli.output import finish
from schedgap.harness.cli.terminal import progress
from schedgap.harness.table import Format
from schedgap.instances.ranges import LARGEST_SEED, LEAST_MEMORY_MB, MOST_MEMORY_MB

InstanceOption = Annotated[
    list[str],
    typer.Option(help="gen/…, paper/…, worst/…, or a path; ?key=value&… overrides generator parameters. Repeatable."),
]
SeedOption = Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of random cases, draws and the solver.")]
SeedsOption = Annotated[
    list[int], typer.Option("--seed", min=0, max=LARGEST_SEED, help="Seed of heuristics and solver. Repeatable.")
]
MemoryOption = Annotated[
    int, typer.Option(min=LEAST_MEMORY_MB, max=MOST_MEMORY_MB, help="Memory cap of one worker process.")
]
JobsOption = Annotated[int, typer.Option(min=0, help="Worker processes; 0: as many as there are cores.")]
DaskOption = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Run on the workers of this Dask scheduler (tcp://host:8786) instead."),
]
ResultsOption = Annotated[Path, typer.Option(help="Folder in which the results folder is made.")]
ResumeOption = Annotated[Path | None, typer.Option(help="Complete this results folder; finished rows are kept.")]
FormatOption = Annotated[Format, typer.Option("--format", help="How rows are printed to standard output.")]
ReportOption = Annotated[bool, typer.Option(help="Write report.html and figures, too.")]

RUNNING: dict[str, tuple[Any, Any]] = {
    "jobs": (JobsOption, 0),
    "dask": (DaskOption, None),
    "results": (ResultsOption, Path("results")),
    "resume": (ResumeOption, None),
    "output": (FormatOption, Format.TABLE),
    "report": (ReportOption, True),
}
"""Options of every command that runs a study, beside its own: annotation and default."""


def study(run: Callable[..., Any]) -> Callable[..., None]:
    """Return the command of a function that runs a study.

    Parameters
    ----------
    run
        Its parameters are options of the command, but for ``**running``, which takes what all studies have
        (:class:`schedgap.harness.engine.study.Running`); it returns what was found.
    """

    def command(output: Format, report: bool, **given: Any) -> None:
        with progress() as (start, advance):
            found = run(**given, on_start=start, on_result=advance)
        finish(found, output, report)

    hints = get_type_hints(run, include_extras=True)
    own = {name: (hints[name], p.default) for name, p in inspect.signature(run).parameters.items() if name != "running"}
    options = own | RUNNING
    command.__name__, command.__doc__ = run.__name__, run.__doc__
    command.__annotations__ = {name: kind for name, (kind, _) in options.items()}
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=d, annotation=k) for n, (k, d) in options.items()]
    )
    return command
