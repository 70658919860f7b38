"""``harness audit``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.app import FAILED, INTERRUPTED, OK, app
from harness.cli.options import Format, FormatOption, JobsOption, ReportOption, ResultsOption
from harness.cli.terminal import progress, say, stdout
from instances.errors import UsageError
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
    say(f"results: {found.folder}")
    try:
        if report and found.findings:
            _save_report(found)
    finally:
        _emit(found, output)
    if found.interrupted:
        say("interrupted; finished claims are kept")
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(OK if found.ok else FAILED)


def _save_report(found: Audit) -> None:
    """Write the page and say where it is."""
    from instances.canonical import write_atomically

    if found.folder is None:
        return
    path = found.folder / "report.html"
    try:
        write_atomically(path, found.to_html().encode())
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
    say(f"report: {path}")


def _emit(found: Audit, output: Format) -> None:
    """Print the findings to standard output."""
    from harness.audit import render

    if output is Format.TABLE:
        stdout().print(render.to_rich(found.findings))
    else:
        formats = {Format.MARKDOWN: render.to_markdown, Format.CSV: render.to_csv, Format.JSON: render.to_json}
        sys.stdout.write(formats[output](found.findings))
