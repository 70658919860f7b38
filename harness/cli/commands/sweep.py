"""``harness sweep``."""

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
    ReportOption,
    ResultsOption,
    ResumeOption,
)
from schedgap.harness.cli.output import emit, finish
from schedgap.harness.cli.terminal import progress


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
    from schedgap.harness.compare import sweep as sweeping
    from schedgap.harness.engine.limits import Limits

    with progress() as (start, advance):
        comparison = sweeping.sweep(
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
