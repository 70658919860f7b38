"""Pages, tables and figures of what studies find. A study of a kind has its page in the module of that name here.

Such a module has ``blocks(found, view)``, what a command prints, and ``page(found)``, what the page tells.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from schedgap.harness.engine.result import Found
from schedgap.harness.figure import Drawing, draw_all, write_figures
from schedgap.harness.page.columns import RUNNING
from schedgap.harness.page.frame import TEMPLATES, render
from schedgap.harness.table import USUALLY, Block, Table, View, table
from schedgap.instances.canonical import write_atomically


def to_html(found: Found[Any], drawn: Sequence[Drawing] | None = None, failures: Sequence[str] = ()) -> str:
    """Return the report as one self-contained HTML page, with figures that have been `drawn` already, or new ones.

    `failures` say what could not be drawn.
    """
    images, failures = draw_all(found) if drawn is None else (drawn, failures)
    return render(found, _kind(found).page(found), images, failures)


def save(found: Found[Any], path: str | Path, figures: Path | None = None) -> None:
    """Write the page to `path` and, where `figures` names the run's folder, the figures below it as files."""
    images, failures = draw_all(found)
    if figures is not None and images:
        write_figures(images, figures)
    write_atomically(Path(path), to_html(found, images, failures).encode())


def _kind(found: Found[Any]) -> Any:
    return importlib.import_module(f"{__name__}.{found.kind}")


def blocks(found: Found[Any], view: View = USUALLY) -> list[Block]:
    """Return what a command prints of what a study found."""
    told: list[Block] = _kind(found).blocks(found, view)
    return told


def latest(results: Sequence[Any]) -> Table:
    """Return results of tasks as a table while others run; those that nobody asked for are left out."""
    alike = [one for one in results if one.record == results[-1].record and not getattr(one, "helps", False)]
    return table("", RUNNING[results[-1].record], [getattr(one, "row", one) for one in alike])


def to_fragment(found: Found[Any]) -> str:
    """Return headline, tables and notes as HTML to show inside another page, such as a notebook."""
    named = [(type(block).__name__, block) for block in blocks(found)]
    made: str = TEMPLATES.get_template("fragment.html.j2").render(blocks=named)
    return made
