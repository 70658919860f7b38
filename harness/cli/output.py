"""What commands print and write at their end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

import typer

from harness.cli.app import FAILED, INTERRUPTED, OK
from harness.cli.options import Format
from harness.cli.terminal import say, stdout
from instances.errors import UsageError

if TYPE_CHECKING:
    from harness.audit.running import Audit
    from harness.comparison import Comparison
    from harness.report.page import Section
    from harness.simulating import Simulation


def finish(comparison: Comparison, output: Format, report: bool) -> None:
    """Write the page, print the rows, and end with the exit code of a comparison."""
    write = partial(save_report, comparison) if report and comparison.rows else None
    end(comparison, write, partial(emit, comparison, output), f"go on with: --resume {comparison.folder}")


class Ended(Protocol):
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


def end(found: Ended, write: Callable[[], None] | None, show: Callable[[], None], later: str) -> NoReturn:
    """Write the page, print the results whatever happens to it, and end with the exit code.

    Parameters
    ----------
    found
        What the command found.
    write, show
        Writes the page, if there is to be one; prints the results.
    later
        What is said about the rest after Ctrl-C.
    """
    say(f"results: {found.folder}")
    try:
        if write:
            write()
    finally:
        show()
    if found.interrupted:
        say(f"interrupted; {later}")
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(OK if found.ok else FAILED)


def save_report(comparison: Comparison, output: Path | None = None, audit: Path | None = None) -> None:
    """Write the page (and, into a results folder, the figures as files) and say where it is.

    `audit` is a results folder of ``harness audit`` whose table becomes a section.
    """
    from harness.report import save

    if comparison.folder is None:
        return
    path = output or comparison.folder / "report.html"
    more = _audit_section(audit) if audit else []
    with _writing(path):
        save(comparison.run, path, comparison.folder if output is None else None, more)


def _audit_section(folder: Path) -> list[Section]:
    from harness.audit.page import section
    from harness.report.audit import read_audit

    return [section(read_audit(folder).findings)]


def save_simulation_report(simulation: Simulation, output: Path | None = None) -> None:
    """Write the page of a simulation (and, into its results folder, the figures as files) and say where it is."""
    from harness.report import save_simulation

    if simulation.folder is None:
        return
    path = output or simulation.folder / "report.html"
    with _writing(path):
        save_simulation(simulation, path, figures=simulation.folder if output is None else None)


def save_audit_report(audit: Audit, path: Path) -> None:
    """Write the page of an audit and say where it is."""
    from harness.report import audit_page
    from instances.canonical import write_atomically

    with _writing(path):
        write_atomically(path, audit_page(audit).encode())


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Say where a page is once it has been written, or in one line why it cannot be."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
    say(f"report: {path}")


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
