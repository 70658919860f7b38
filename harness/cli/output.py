"""What commands print and write at their end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from schedgap.harness.cli.app import FAILED, INTERRUPTED, OK
from schedgap.harness.cli.options import Format
from schedgap.harness.cli.terminal import say, stdout
from schedgap.instances.errors import UsageError

if TYPE_CHECKING:
    from schedgap.harness.engine.result import Found
    from schedgap.harness.page.frame import Section
    from schedgap.harness.table import Block


def finish(found: Found[Any], show: Callable[[], None], report: bool) -> NoReturn:
    """Write the page, print the results whatever happens to it, and end with the exit code.

    Parameters
    ----------
    found
        What the command found.
    show
        Prints the results.
    report
        Whether to write the page.
    """
    say(f"results: {found.folder}")
    try:
        if report:
            save_report(found)
    finally:
        show()
    if found.interrupted:
        say(f"interrupted; go on with: --resume {found.folder}")
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(OK if found.ok else FAILED)


def save_report(found: Found[Any], output: Path | None = None, audit: Path | None = None) -> None:
    """Write the page (and, into a results folder, the figures as files) and say where it is.

    `audit` is a results folder of ``harness audit`` whose table becomes a section.
    """
    from schedgap.harness.page import save

    if found.folder is None:
        return
    path = output or found.folder / "report.html"
    more = _audit_section(audit) if audit else []
    with _writing(path):
        save(found, path, found.folder if output is None else None, more)


def _audit_section(folder: Path) -> list[Section]:
    from schedgap.harness.engine.study import reopen
    from schedgap.harness.page.audit import section

    return [section(reopen(folder, "audit").findings)]


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Say where a page is once it has been written, or in one line why it cannot be."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
    say(f"report: {path}")


def emit(found: Found[Any], output: Format) -> None:
    """Print what a study found to standard output."""
    from schedgap.harness.page import blocks

    write(blocks(found), found.fields, [row.as_dict() for row in found.rows], output)


def emit_lines(title: str, columns: tuple[str, ...], lines: Iterable[tuple[str, ...]], output: Format) -> None:
    """Print a listing to standard output."""
    from schedgap.harness.table import of_texts, table

    rows = list(lines)
    records = [dict(zip(columns, line, strict=True)) for line in rows]
    write([table(title if output is Format.TABLE else "", of_texts(columns), rows)], columns, records, output)


def write(blocks: Sequence[Block], fields: Sequence[str], records: Sequence[Mapping[str, Any]], output: Format) -> None:
    """Print blocks for people, or records for programs, to standard output."""
    from schedgap.harness import table

    if output is Format.TABLE:
        table.show(stdout(), blocks)
    elif output is Format.MARKDOWN:
        sys.stdout.write(table.to_markdown(blocks))
    else:
        sys.stdout.write(table.to_csv(fields, records) if output is Format.CSV else table.to_json(records))
