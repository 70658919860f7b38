"""``harness audit``."""

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
from schedgap.instances.ranges import LARGEST_SEED


@app.command()
def audit(
    paper: Annotated[list[str], typer.Option(help="Only this paper's claims. Repeatable.")] = [],  # noqa: B006
    claim: Annotated[list[str], typer.Option(help="Only claims that match ('oef.theorem-*'). Repeatable.")] = ["*"],  # noqa: B006
    effort: Annotated[float, typer.Option(help="Factor on how many random cases are tried.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of the random cases.")] = 0,
    memory_mb: MemoryOption = 4096,
    jobs: JobsOption = 0,
    dask: DaskOption = None,
    output: FormatOption = Format.TABLE,
    results: ResultsOption = Path("results"),
    resume: ResumeOption = None,
    report: ReportOption = True,
) -> None:
    """Try every theorem and printed number: confirmed, refuted (with a witness), only for …, not testable."""
    from schedgap.harness.audit.run import audit as run

    with progress() as (start, advance):
        found = run(
            paper,
            claim,
            effort=effort,
            seed=seed,
            memory_mb=memory_mb,
            jobs=jobs,
            dask=dask,
            results=results,
            resume=resume,
            on_start=start,
            on_result=advance,
        )
    finish(found, partial(emit, found, output), report and bool(found.rows))
