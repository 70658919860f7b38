"""Commands about results folders: ``report``, ``merge``, ``diff`` and ``verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from schedgap.harness.cli.app import (
    FAILED,
    OK,
    FormatOption,
    ReportOption,
    ResultsOption,
    app,
    emit_lines,
    finish,
    save_report,
    say,
    stdout,
)
from schedgap.harness.table import Format, show


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Results folder of any command.")],
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
    finish(found, output, report)


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
    from schedgap.harness.page import difference

    found = diffing.diff(read_run(before), read_run(after), tolerance)
    if output is Format.TABLE:
        show(stdout(), difference.blocks(found))
    else:
        for line in (difference.sentence(found), *found.reasons):
            say(line)
        emit_lines("", difference.COLUMNS, difference.lines(found, everything=True), output)
    raise typer.Exit(OK if found.ok else FAILED)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="Results folder of any command.")],
    output: FormatOption = Format.TABLE,
) -> None:
    """Check every decision, history and certificate of a results folder again; exit code 1 if one does not hold."""
    from schedgap.harness.engine.study import check

    found = check(folder)
    bad = [line for line in found if line[1]]
    emit_lines(str(folder), ("result", "what is wrong"), found if output is not Format.TABLE else bad, output)
    say(f"{len(found) - len(bad)} of {len(found)} results hold")
    raise typer.Exit(FAILED if bad else OK)
