"""What commands print and write at their end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

import typer

from harness.cli.app import FAILED, INTERRUPTED, OK
from harness.cli.options import Format
from harness.cli.terminal import say, stdout
from instances.errors import UsageError

if TYPE_CHECKING:
    from harness.audit import Audit
    from harness.comparison import Comparison
    from harness.report.page import Section
    from harness.simulating import Simulation


class Found(Protocol):
    """What a long command leaves behind."""

    @property
    def folder(self) -> Path | None:
        """Its results folder."""
        ...

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it early."""
        ...

    @property
    def ok(self) -> bool:
        """Whether all went well."""
        ...


def finish(found: Found, show: Callable[[], None], report: bool) -> NoReturn:
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


def save_report(found: Found, output: Path | None = None, audit: Path | None = None) -> None:
    """Write the page (and, into a results folder, the figures as files) and say where it is.

    `audit` is a results folder of ``harness audit`` whose table becomes a section.
    """
    from harness.report import save

    if found.folder is None:
        return
    path = output or found.folder / "report.html"
    more = _audit_section(audit) if audit else []
    with _writing(path):
        save(found, path, found.folder if output is None else None, more)


def _audit_section(folder: Path) -> list[Section]:
    from harness.audit.page import section
    from harness.engine.study import reopen

    return [section(reopen(folder, "audit").findings)]


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Say where a page is once it has been written, or in one line why it cannot be."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
    say(f"report: {path}")


def emit_audit(audit: Audit, output: Format) -> None:
    """Print an audit's findings to standard output."""
    from harness.audit import render

    if output is Format.TABLE:
        stdout().print(render.to_rich(audit.findings))
    else:
        formats = {Format.MARKDOWN: render.to_markdown, Format.CSV: render.to_csv, Format.JSON: render.to_json}
        sys.stdout.write(formats[output](audit.findings))


def emit(comparison: Comparison, output: Format) -> None:
    """Print a comparison to standard output."""
    from harness import render

    if output is Format.TABLE:
        stdout().print(render.to_rich(comparison.run))
    else:
        formats = {
            Format.MARKDOWN: render.to_markdown,
            Format.CSV: render.to_csv,
            Format.JSON: render.to_json,
        }
        sys.stdout.write(formats[output](comparison.run).rstrip("\n") + "\n")


def emit_simulation(simulation: Simulation, output: Format) -> None:
    """Print a simulation to standard output."""
    from harness.simulation import render

    if output is Format.TABLE:
        stdout().print(render.to_rich(simulation.rows, simulation.instances))
    elif output is Format.MARKDOWN:
        sys.stdout.write(render.to_markdown(simulation.rows, simulation.instances))
    else:
        formats = {Format.CSV: render.to_csv, Format.JSON: render.to_json}
        sys.stdout.write(formats[output](simulation.rows))


def emit_lines(title: str, columns: tuple[str, ...], lines: Iterable[tuple[str, ...]], output: Format) -> None:
    """Print a listing to standard output."""
    from harness import listing

    if output is Format.TABLE:
        stdout().print(listing.to_rich(title, columns, lines))
    else:
        sys.stdout.write(listing.to_text(columns, lines, output.value))
