"""``harness merge``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.app import app
from harness.cli.options import Format, FormatOption, ReportOption, ResultsOption
from harness.cli.output import finish
from harness.cli.terminal import say


@app.command()
def merge(
    folders: Annotated[list[Path], typer.Argument(help="Results folders of one code, such as the parts of a sweep.")],
    output: FormatOption = Format.TABLE,
    results: ResultsOption = Path("results"),
    report: ReportOption = True,
) -> None:
    """Put results folders together: each row once, certified anew with the bounds of all."""
    from harness import merging

    comparison = merging.merge(folders, results)
    if missing := len(comparison.run.meta["plan"]) - len(comparison.rows):
        say(f"{missing} planned rows are in none of the folders")
    finish(comparison, output, report)
