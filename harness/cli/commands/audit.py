"""``harness audit``."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.app import app
from harness.cli.options import Format, FormatOption, JobsOption, ReportOption, ResultsOption
from harness.cli.output import end, save_audit_report
from harness.cli.terminal import progress, stdout
from instances.ranges import LARGEST_SEED

if TYPE_CHECKING:
    from harness.audit import Audit


@app.command()
def audit(
    paper: Annotated[list[str], typer.Option(help="Only this paper's claims. Repeatable.")] = [],  # noqa: B006
    claim: Annotated[list[str], typer.Option(help="Only claims that match ('oef.theorem-*'). Repeatable.")] = ["*"],  # noqa: B006
    effort: Annotated[float, typer.Option(help="Factor on how many random cases are tried.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of the random cases.")] = 0,
    jobs: JobsOption = 0,
    output: FormatOption = Format.TABLE,
    results: ResultsOption = Path("results"),
    report: ReportOption = True,
) -> None:
    """Try every theorem and printed number: confirmed, refuted (with a witness), only for …, not testable."""
    from harness.audit import run

    with progress() as (start, advance):
        found = run(
            paper,
            claim,
            effort=effort,
            seed=seed,
            jobs=jobs,
            results=results,
            on_start=start,
            on_result=advance,
        )
    path = found.folder / "report.html" if report and found.findings and found.folder else None
    write = partial(save_audit_report, found, path) if path else None
    end(found, write, partial(_emit, found, output), "finished claims are kept")


def _emit(found: Audit, output: Format) -> None:
    """Print the findings to standard output."""
    from harness.audit import render

    if output is Format.TABLE:
        stdout().print(render.to_rich(found.findings))
    else:
        formats = {Format.MARKDOWN: render.to_markdown, Format.CSV: render.to_csv, Format.JSON: render.to_json}
        sys.stdout.write(formats[output](found.findings))
