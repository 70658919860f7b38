"""``harness report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from schedgap.harness.cli.app import app
from schedgap.harness.cli.output import save_report


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Results folder of compare, sweep, simulate or audit.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="HTML file; FOLDER/report.html by default.")
    ] = None,
    audit: Annotated[
        Path | None, typer.Option(help="Results folder of an audit, whose table becomes a section of the page.")
    ] = None,
) -> None:
    """Write the self-contained HTML page of a results folder."""
    from schedgap.harness.engine.study import reopen

    save_report(reopen(folder), output, audit)
