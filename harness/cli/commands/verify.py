"""``harness verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from schedgap.harness.cli.app import FAILED, OK, app
from schedgap.harness.cli.options import Format, FormatOption
from schedgap.harness.cli.output import emit_lines
from schedgap.harness.cli.terminal import say


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="Results folder of any command.")],
    output: FormatOption = Format.TABLE,
) -> None:
    """Check every decision and history of a results folder again; exit code 1 if one does not hold."""
    from schedgap.harness.engine.study import check

    found = check(folder)
    bad = [line for line in found if line[1]]
    emit_lines(str(folder), ("result", "what is wrong"), found if output is not Format.TABLE else bad, output)
    say(f"{len(found) - len(bad)} of {len(found)} results hold")
    raise typer.Exit(FAILED if bad else OK)
