"""``harness merge``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from schedgap.harness.cli.app import app
from schedgap.harness.cli.options import Format, FormatOption, ReportOption, ResultsOption
from schedgap.harness.cli.output import emit, finish
from schedgap.harness.cli.terminal import say


@app.command()
def merge(
    folders: Annotated[list[Path], typer.Argument(help="Results folders of one command and code: parts of one run.")],
    output: FormatOption = Format.TABLE,
    results: ResultsOption = Path("results"),
    report: ReportOption = True,
) -> None:
    """Put results folders of one kind together: each result once, certified anew with the bounds of all."""
    from schedgap.harness.engine.study import merge as merged

    found = merged(folders, results)
    if found.meta["missing"]:
        say(f"{found.meta['missing']} planned results are in none of the folders")
    finish(found, partial(emit, found, output), report)
