"""``harness diff``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from schedgap.harness.cli.app import FAILED, OK, app
from schedgap.harness.cli.options import Format, FormatOption
from schedgap.harness.cli.output import emit_lines
from schedgap.harness.cli.terminal import say, stdout


@app.command()
def diff(
    before: Annotated[Path, typer.Argument(help="Results folder.")],
    after: Annotated[Path, typer.Argument(help="Results folder of a later run.")],
    tolerance: Annotated[
        float, typer.Option(min=0, max=1, help="Relative difference up to which numbers are the same.")
    ] = 1e-6,
    output: FormatOption = Format.TABLE,
) -> None:
    """Say what got better, worse or slower between two runs; exit code 1 if anything but times got worse."""
    from schedgap.harness import diffing
    from schedgap.harness.compare.run import read_run
    from schedgap.harness.page import difference as render
    from schedgap.harness.table import show

    found = diffing.diff(read_run(before), read_run(after), tolerance)
    if output is Format.TABLE:
        show(stdout(), render.blocks(found))
    else:
        for line in (render.sentence(found), *found.reasons):
            say(line)
        emit_lines("", render.COLUMNS, render.lines(found, everything=True), output)
    raise typer.Exit(OK if found.ok else FAILED)
