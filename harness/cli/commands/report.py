"""``harness report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.app import app
from harness.cli.output import save_report


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Results folder.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="HTML file; FOLDER/report.html by default.")
    ] = None,
) -> None:
    """Write the self-contained HTML page of a results folder."""
    from harness.comparison import Comparison
    from harness.store import read_run

    save_report(Comparison(read_run(folder), folder), output)
