"""``harness adversary``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from schedgap.harness.cli.app import app
from schedgap.harness.cli.options import (
    DaskOption,
    Format,
    FormatOption,
    JobsOption,
    MemoryOption,
    ResultsOption,
    ResumeOption,
)
from schedgap.harness.cli.output import emit, finish
from schedgap.harness.cli.terminal import progress
from schedgap.instances.ranges import LARGEST_SEED


@app.command()
def adversary(
    heuristic: Annotated[
        list[str], typer.Option(help="Id, pattern, or paper (its online algorithms); '*' for all. Repeatable.")
    ],
    budget: Annotated[str, typer.Option(help="Time for the search in all: 300s, 5m, 1h.")] = "60s",
    most_jobs: Annotated[int, typer.Option(min=1, max=20, help="Most jobs or tenants of an instance.")] = 6,
    anywhere: Annotated[
        bool, typer.Option("--anywhere", help="Look also where a guarantee of the paper promises nothing.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of the search.")] = 0,
    memory_mb: MemoryOption = 4096,
    jobs: JobsOption = 0,
    dask: DaskOption = None,
    output: FormatOption = Format.TABLE,
    results: ResultsOption = Path("results"),
    resume: ResumeOption = None,
) -> None:
    """Search the instance with the largest proved ratio of each online algorithm, shrink it and save it."""
    from schedgap.harness.adversary.run import adversary as run
    from schedgap.harness.adversary.run import seconds_of
    from schedgap.harness.engine.limits import Limits

    with progress() as (start, advance):
        found = run(
            heuristic,
            budget_s=seconds_of(budget),
            most=most_jobs,
            anywhere=anywhere,
            seed=seed,
            limits=Limits(memory_mb=memory_mb),
            jobs=jobs,
            dask=dask,
            results=results,
            resume=resume,
            on_start=start,
            on_result=advance,
        )
    finish(found, partial(emit, found, output), report=False)
