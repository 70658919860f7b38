"""``harness compare``."""

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
    InstanceOption,
    JobsOption,
    MemoryOption,
    ReportOption,
    ResultsOption,
    ResumeOption,
    SeedOption,
)
from schedgap.harness.cli.output import emit, finish
from schedgap.harness.cli.terminal import progress
from schedgap.harness.engine.limits import Limits
from schedgap.instances.ranges import MOST_THREADS


@app.command()
def compare(
    instance: InstanceOption,
    paper: Annotated[list[str], typer.Option(help="Only this paper's methods. Repeatable.")] = [],  # noqa: B006
    method: Annotated[list[str], typer.Option(help="Only methods that match ('oef.*'). Repeatable.")] = ["*"],  # noqa: B006
    seed: SeedOption = [0],  # noqa: B006
    time_limit: Annotated[float, typer.Option(help="Seconds each solve may take.")] = Limits.time_limit_s,
    rel_gap: Annotated[float, typer.Option(help="Relative gap at which a MIP counts as solved.")] = 1e-6,
    threads: Annotated[int, typer.Option(min=1, max=MOST_THREADS, help="Threads of one solve.")] = 1,
    memory_mb: MemoryOption = 4096,
    jobs: JobsOption = 0,
    dask: DaskOption = None,
    all_sizes: Annotated[bool, typer.Option("--all", help="Run methods above their stated size, too.")] = False,
    cross_check: Annotated[bool, typer.Option(help="Second opinion on every model by PuLP/CBC.")] = False,
    output: FormatOption = Format.TABLE,
    results: ResultsOption = Path("results"),
    resume: ResumeOption = None,
    report: ReportOption = True,
) -> None:
    """Run papers' methods on an instance; report certified gaps, ratios, guarantees and times."""
    from schedgap.harness.compare.run import compare as run_compare

    limits = Limits(time_limit, rel_gap, threads, memory_mb, all_sizes, cross_check)
    with progress() as (start, advance):
        comparison = run_compare(
            instance,
            method,
            paper,
            seeds=seed,
            limits=limits,
            jobs=jobs,
            dask=dask,
            results=results,
            resume=resume,
            on_start=start,
            on_result=advance,
        )
    finish(comparison, partial(emit, comparison, output), report and bool(comparison.rows))
