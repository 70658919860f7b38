"""Reports of studies, on the terminal and as HTML pages. Each kind of study has a module of its name in this package.

Such a module defines ``blocks(found, view)``, the output of a command, and ``page(found)``, the content of the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from schedgap.harness.engine.result import Found, shown_by
from schedgap.harness.show.drawing import draw_all, write_figures
from schedgap.harness.show.figure import Drawing
from schedgap.harness.show.page import adversary, audit, compare, frontier, reproduce, simulate, whatif
from schedgap.harness.show.page.columns import RUNNING
from schedgap.harness.show.page.frame import TEMPLATES, render
from schedgap.harness.show.table import USUALLY, Block, Selection, Table, table
from schedgap.harness.show.table import to_latex as latex
from schedgap.instances.canonical import write_atomically


def to_html(found: Found[Any], drawn: Sequence[Drawing] | None = None, failures: Sequence[str] = ()) -> str:
    """Return the report as one self-contained HTML page, with the figures `drawn`; by default, draw them all.

    `failures` are messages about figures that could not be drawn.
    """
    images, failures = draw_all(found) if drawn is None else (drawn, failures)
    return render(found, KINDS[found.kind].page(found), images, failures)


def save(found: Found[Any], path: str | Path, figures: Path | None = None) -> None:
    """Write the page to `path`; if `figures` names the run's folder, also write the figures there as files."""
    images, failures = draw_all(found)
    if figures is not None and images:
        write_figures(images, figures)
    write_atomically(Path(path), to_html(found, images, failures).encode())


KINDS: Mapping[str, Any] = {
    module.__name__.rpartition(".")[2]: module
    for module in (adversary, audit, compare, frontier, reproduce, simulate, whatif)
}
"""The module of each kind of study."""


def blocks(found: Found[Any], view: Selection = USUALLY) -> list[Block]:
    """Return the blocks that a command prints for the results of a study."""
    printed: list[Block] = KINDS[found.kind].blocks(found, view)
    return printed


def latest(results: Sequence[Any]) -> Table:
    """Return a table of the results so far, while tasks still run, without those that the user did not ask for."""
    record = results[-1].record
    alike = [result for result in results if result.record == record and not getattr(result, "helps", False)]
    return table("", RUNNING[record], [getattr(result, "row", result) for result in alike])


def to_latex(found: Found[Any]) -> str:
    """Return the tables as LaTeX, for documents that are made of notebooks."""
    return latex(blocks(found))


def to_fragment(found: Found[Any]) -> str:
    """Return the headline, tables and notes as HTML for embedding in another page, such as a notebook."""
    typed = [(type(block).__name__, block) for block in blocks(found)]
    html: str = TEMPLATES.get_template("fragment.html.j2").render(blocks=typed)
    return html


shown_by(html=to_fragment, latex=to_latex)
