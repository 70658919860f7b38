"""``harness sweep``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.app import app
from harness.cli.options import (
    DaskOption,
    Format,
    FormatOption,
    JobsOption,
    MemoryOption,
    ReportOption,
    ResultsOption,
    ResumeOption,
)
from harness.cli.output import emit, finish
from harness.cli.terminal import progress


@app.command()
def sweep(
    file: Annotated[Path, typer.Argument(help="TOML file with instances, grids of parameters, methods and seeds.")],
    jobs: JobsOption = 0,
    dask: DaskOption = None,
    memory_mb: MemoryOption = 4096,
    output: FormatOption = Format.TABLE,
    results: ResultsOption = Path("results"),
    resume: ResumeOption = None,
    report: ReportOption = True,
) -> None:
    """Run many instances × methods × seeds as a file says (sweeps/*.toml)."""
    from harness.engine.limits import Limits
    from harness.sweeping import run_sweep

    with progress() as (start, advance):
        comparison = run_sweep(
            file,
            limits=Limits(memory_mb=memory_mb),
            jobs=jobs,
            dask=dask,
            results=results,
            resume=resume,
            on_start=start,
            on_result=advance,
        )
    finish(comparison, partial(emit, comparison, output), report and bool(comparison.rows))
