"""What commands print and write at their end."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from schedgap.harness.cli.app import FAILED, INTERRUPTED, OK
from schedgap.harness.cli.terminal import say, stdout
from schedgap.harness.table import WRITERS, Block, Format, of_texts, show, table
from schedgap.instances.errors import UsageError

if TYPE_CHECKING:
    from schedgap.harness.engine.result import Found


def finish(found: Found[Any], output: Format, report: bool) -> NoReturn:
    """Write the page, print the results whatever happens to it, and end with the exit code.

    Parameters
    ----------
    found
        What the command found.
    output
        How its rows are printed.
    report
        Whether to write the page, if there is anything to report.
    """
    from schedgap.harness.page import blocks

    say(f"results: {found.folder}")
    try:
        if report and found.rows:
            save_report(found)
    finally:
        write(blocks(found), found.fields, [row.as_dict() for row in found.rows], output)
    if found.interrupted:
        say(f"interrupted; go on with: --resume {found.folder}")
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(OK if found.ok else FAILED)


def save_report(found: Found[Any], output: Path | None = None, audit: Path | None = None) -> None:
    """Write the page (and, into a results folder, the figures as files) and say where it is.

    `audit` is a results folder of ``harness audit`` whose table becomes a section.
    """
    from schedgap.harness.engine.study import reopen
    from schedgap.harness.page import save
    from schedgap.harness.page.audit import section

    if found.folder is None:
        return
    path = output or found.folder / "report.html"
    more = [section(reopen(audit, "audit").rows)] if audit else []
    try:
        save(found, path, found.folder if output is None else None, more)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
    say(f"report: {path}")


def emit_lines(title: str, columns: tuple[str, ...], lines: Iterable[tuple[str, ...]], output: Format) -> None:
    """Print a listing to standard output."""
    rows = list(lines)
    records = [dict(zip(columns, line, strict=True)) for line in rows]
    write([table(title if output is Format.TABLE else "", of_texts(columns), rows)], columns, records, output)


def write(blocks: Sequence[Block], fields: Sequence[str], records: Sequence[Mapping[str, Any]], output: Format) -> None:
    """Print blocks for people, or records for programs, to standard output."""
    if output is Format.TABLE:
        show(stdout(), blocks)
    else:
        sys.stdout.write(WRITERS[output](blocks, fields, records))
