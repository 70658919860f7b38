"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from schedgap.instances.ranges import LARGEST_SEED, LEAST_MEMORY_MB, MOST_MEMORY_MB


class Format(StrEnum):
    """How rows are printed to standard output."""

    TABLE = "table"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"


SeedOption = Annotated[
    list[int], typer.Option(min=0, max=LARGEST_SEED, help="Seed of heuristics and solver. Repeatable.")
]
InstanceOption = Annotated[
    list[str],
    typer.Option(help="gen/…, paper/…, worst/…, or a path; ?key=value&… overrides generator parameters. Repeatable."),
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
DaskOption = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Run on the workers of this Dask scheduler (tcp://host:8786) instead."),
]
ResultsOption = Annotated[Path, typer.Option(help="Folder in which the results folder is made.")]
ResumeOption = Annotated[Path | None, typer.Option(help="Complete this results folder; finished rows are kept.")]
ReportOption = Annotated[bool, typer.Option(help="Write report.html and figures, too.")]
FormatOption = Annotated[Format, typer.Option("--format", help="How rows are printed to standard output.")]
