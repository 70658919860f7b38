"""The report: one HTML file that needs nothing else, opens anywhere, and answers the question first."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from schedgap.harness.figures import Drawing, draw_files, write_figures
from schedgap.harness.render import told
from schedgap.harness.report import comparison
from schedgap.harness.report.page import Section, template
from schedgap.instances.canonical import write_atomically
from schedgap.instances.errors import UsageError

__all__ = ["save", "to_fragment", "to_html"]

Found = Any
"""A :class:`~schedgap.harness.run.Run` or ``Comparison``, a ``Simulation``, or an ``Audit``."""


def to_html(found: Found, drawn: Sequence[Drawing] | None = None, more: Sequence[Section] = ()) -> str:
    """Return the report as one self-contained HTML page.

    Parameters
    ----------
    found
        What a study found.
    drawn
        Its figures, where they have been drawn already.
    more
        Sections that follow the published numbers of a comparison.

    Raises
    ------
    UsageError
        If there is no page of that kind.
    """
    source, page = _page_of(found)
    images, failures = (drawn or [], []) if drawn is not None or source is None else draw_files(source)
    return page(images, failures, more)


def save(found: Found, path: Path, figures: Path | None = None, more: Sequence[Section] = ()) -> None:
    """Write the page to `path` and, where `figures` names the run's folder, the figures below it as files.

    Raises
    ------
    OSError
        If a folder or file cannot be written.
    UsageError
        If there is no page of that kind.
    """
    source, page = _page_of(found)
    images, failures = draw_files(source) if source is not None else ([], [])
    if figures is not None and images:
        write_figures(images, figures)
    write_atomically(path, page(images, failures, more).encode())


def _page_of(found: Found) -> tuple[Any, Callable[[Sequence[Drawing], Sequence[str], Sequence[Section]], str]]:
    """Return what the figures are drawn from, if there are any, and what makes the page."""
    kind = type(found).__name__
    if kind in ("Run", "Comparison"):
        run = found if kind == "Run" else found.run
        return run, partial(comparison.page, run)
    if more_kinds := {"Simulation": "schedgap.harness.report.simulation", "Audit": "schedgap.harness.audit.page"}.get(
        kind
    ):
        source = found if kind == "Simulation" else None
        return source, lambda images, failures, more: _only(found, more_kinds, images, failures, more)
    raise UsageError(f"{found.folder}: there is no page of a run of this kind; its results are in the folder")


def _only(
    found: Found, module: str, images: Sequence[Drawing], failures: Sequence[str], more: Sequence[Section]
) -> str:
    if more:
        raise UsageError(f"{found.folder}: an audit's table goes into the page of a comparison")
    made: str = importlib.import_module(module).page(found, images, failures)
    return made


def to_fragment(found: Found) -> str:
    """Return headline, tables and notes as HTML to show inside another page, such as a notebook."""
    blocks = [(type(block).__name__, block) for block in told(found)[0]]
    made: str = template("fragment.html.j2").render(blocks=blocks)
    return made
