"""The report: one HTML file that needs nothing else, opens anywhere, and answers the question first."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.drawing import Image, OfRun, draw_pictures, write_figures
from harness.report import comparison
from harness.report.page import Section, figure, template
from harness.report.svg import inline_svg
from harness.run import Run
from instances.canonical import write_atomically

if TYPE_CHECKING:
    from harness.audit.running import Audit
    from harness.simulation.result import Simulation

__all__ = [
    "audit_page",
    "inline_svg",
    "save",
    "save_simulation",
    "simulation_page",
    "to_figures",
    "to_fragment",
    "to_html",
]


def to_html(run: Run, drawn: Sequence[Image] | None = None, more: Sequence[Section] = ()) -> str:
    """Return the report of `run` as one self-contained HTML page.

    Parameters
    ----------
    run
        The run.
    drawn
        Its figures, where they have been drawn already.
    more
        Sections that follow the published numbers.
    """
    images, failures = (drawn, []) if drawn is not None else draw_pictures(OfRun(run))
    return comparison.page(run, images, failures, more)


def save(run: Run, path: Path, figures: Path | None = None, more: Sequence[Section] = ()) -> None:
    """Write the page to `path` and, where `figures` names the run's folder, the figures below it as files.

    Raises
    ------
    OSError
        If a folder or file cannot be written.
    """
    images, failures = draw_pictures(OfRun(run))
    if figures is not None:
        write_figures(images, figures)
    write_atomically(path, comparison.page(run, images, failures, more).encode())


def simulation_page(simulated: Simulation, drawn: Sequence[Image] | None = None) -> str:
    """Return the page of a simulation as one self-contained HTML document; arguments as in :func:`to_html`."""
    from harness.report import simulation

    images, failures = (drawn, []) if drawn is not None else draw_pictures(simulated)
    return simulation.page(simulated, images, failures)


def save_simulation(simulated: Simulation, path: Path, figures: Path | None = None) -> None:
    """Write the page of a simulation; arguments as in :func:`save`.

    Raises
    ------
    OSError
        If a folder or file cannot be written.
    """
    from harness.report import simulation

    images, failures = draw_pictures(simulated)
    if figures is not None:
        write_figures(images, figures)
    write_atomically(path, simulation.page(simulated, images, failures).encode())


def audit_page(audit: Audit) -> str:
    """Return the page of an audit as one self-contained HTML document."""
    from harness.audit import page

    return page.page(audit)


def to_fragment(run: Run) -> str:
    """Return headline, tables and notes as HTML to show inside another page, such as a notebook."""
    return comparison.fragment(run)


def to_figures(drawn: Sequence[Image]) -> str:
    """Return figures with their captions as HTML to show inside another page, such as a notebook."""
    # ids of one page: the same figure may stand in it twice, others beside it
    blocks = [figure(item, f"f{hashlib.sha256(item.svg.encode()).hexdigest()[:12]}-") for item in drawn]
    found: str = template("figures.html.j2").render(figures=blocks)
    return found
