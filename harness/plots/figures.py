"""The registry of figures, and how a run becomes drawn figures and files."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from schedgap.harness.compare.row import Comparison, Row
from schedgap.harness.drawing import Image, Picture, write_figures
from schedgap.harness.plots.style import styled
from schedgap.harness.text import clean
from schedgap.instances.registry import PAPERS, Registry

MAX_INSTANCES = 4
"""Figures about one instance are drawn for so many instances of a run."""

PNG_DPI = 150


@dataclass(frozen=True)
class FigureInput:
    """What a figure is drawn from.

    Parameters
    ----------
    run
        The whole run.
    paper
        Id of the paper the figure is about.
    rows
        Its rows (of one instance, where the figure is about one).
    """

    run: Comparison
    paper: str
    rows: Sequence[Row]

    @cached_property
    def view(self) -> Any:
        """The paper's view of the (first) instance of the rows."""
        return PAPERS.get(self.paper).view(self.run.instances[self.rows[0].fingerprint])

    @cached_property
    def decisions(self) -> dict[str, Any]:
        """Verified decisions by method, in the order of the rows; of several seeds the first."""
        found: dict[str, Any] = {}
        for row in self.rows:
            decision = self.run.decisions.get(row.name)
            if row.verified and decision is not None:
                found.setdefault(row.method, decision)
        return found

    @cached_property
    def prices(self) -> dict[str, Any]:
        """Prices that bounds come from, by method, in the order of the rows; of several seeds the first."""
        found: dict[str, Any] = {}
        for row in self.rows:
            prices = self.run.prices.get(row.name)
            if prices is not None and row.verified is not False:
                found.setdefault(row.method, prices)
        return found

    @property
    def where(self) -> str:
        """The instance, or how many there are."""
        names = dict.fromkeys(row.instance for row in self.rows)
        return clean(next(iter(names)), 40) if len(names) == 1 else f"{len(names)} instances"

    def sample(self, drawn: Sequence[Row]) -> str:
        """Return the end of a caption: ``n = 7 results of 5 methods on …``, and what is not drawn."""
        methods = counted(len({row.method for row in drawn}), "method")
        return f"n = {counted(len(drawn), 'result')} of {methods} on {self.where}.{self.left_out}"

    @property
    def left_out(self) -> str:
        """What no figure draws, as a sentence after a space; empty where that is nothing."""
        counts = {
            "WRONG": sum(row.wrong for row in self.rows),
            "failed": sum(row.failed for row in self.rows),
            "skipped": sum(row.status == "skipped" for row in self.rows),
        }
        listed = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        return f" Not drawn: {listed}." if listed else ""


def counted(number: int, noun: str) -> str:
    """Return ``1 tenant`` or ``3 tenants``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@dataclass(frozen=True)
class FigureSpec:
    """A kind of figure.

    Parameters
    ----------
    id
        Name of the file, after the paper's.
    paper
        The paper it belongs to; ``None``: drawn for every paper.
    title
        Stands in the figure.
    caption
        ``caption(input)`` returns what is shown, its unit and n: the caption and alternative text.
    draw
        ``draw(input)`` returns the figure, or ``None`` where there is nothing to draw.
    per_instance
        Whether it shows one instance.
    """

    id: str
    paper: str | None
    title: str
    caption: Callable[[FigureInput], str]
    draw: Callable[[FigureInput], Figure | None]
    per_instance: bool = False


FIGURES: Registry[FigureSpec] = Registry("figure")


@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure that has been drawn.

    Parameters
    ----------
    name
        File name without ending.
    title, caption
        Stand in it and below it.
    figure
        The figure itself.
    group, topic
        What it is about (the paper) and what it shows in a few words, for lists of figures.
    """

    name: str
    title: str
    caption: str
    figure: Figure
    group: str = ""
    topic: str = ""

    @cached_property
    def svg(self) -> str:
        """The figure as SVG text, the same for the same run."""
        return saved(self.figure, "svg").decode()

    @cached_property
    def png(self) -> bytes:
        """The figure as PNG bytes."""
        return saved(self.figure, "png")

    def picture(self) -> Picture:
        """Return the files of the figure without the figure."""
        return Picture(self.name, self.title, self.caption, self.svg, self.png, self.group, self.topic)


def saved(figure: Figure, ending: str) -> bytes:
    """Return the content of a ``png`` or ``svg`` file of `figure`, the same every time.

    The canvases are asked directly: ``Figure.savefig`` goes through every figure once more before it draws, to find
    its size, which takes half of the time.
    """
    with styled():
        content = _png(figure) if ending == "png" else _svg(figure)
        # The layout is found while drawing, half of the time that takes; the next file of this figure can keep it.
        figure.set_layout_engine("none")
    return content


def _svg(figure: Figure) -> bytes:
    text = io.StringIO()
    FigureCanvasSVG(figure).print_svg(text, metadata={"Date": None, "Creator": None})
    return text.getvalue().encode()


def _png(figure: Figure) -> bytes:
    content, dpi = io.BytesIO(), figure.dpi
    figure.dpi = PNG_DPI
    try:
        FigureCanvasAgg(figure).print_png(content)
    finally:
        figure.dpi = dpi
    return content.getvalue()


def draw_all(run: Comparison) -> list[Drawn]:
    """Draw every registered figure that `run` has something to show in."""
    return [drawn for job in jobs(run) if (drawn := job())]


def draw(run: Comparison, spec: FigureSpec) -> list[Drawn]:
    """Draw one kind of figure, for each paper (and instance) that it has something to show of."""
    return [drawn for data, suffix in _inputs(run, spec) if (drawn := _drawn(spec, data, suffix))]


def jobs(run: Comparison, names: Sequence[str] = ()) -> list[Callable[[], Drawn | None]]:
    """Return what draws the figures of `run` (those of these names); one without anything to show is ``None``."""
    chosen = [FIGURES.get(name) for name in names] or list(FIGURES)
    # what sums up all instances comes before pictures of single ones
    ordered = sorted(chosen, key=lambda spec: spec.per_instance)
    return [partial(_drawn, spec, data, suffix) for spec in ordered for data, suffix in _inputs(run, spec)]


def _inputs(run: Comparison, spec: FigureSpec) -> Iterator[tuple[FigureInput, str]]:
    """Yield the data of each figure of a kind, and the end of its name."""
    for paper in dict.fromkeys(row.paper for row in run.rows):
        if spec.paper not in (None, paper):
            continue
        rows = [row for row in run.rows if row.paper == paper]
        if not spec.per_instance:
            yield FigureInput(run, paper, rows), ""
            continue
        prints = list(dict.fromkeys(row.fingerprint for row in rows))
        for fingerprint in prints[:MAX_INSTANCES]:
            suffix = f"-{fingerprint[:8]}" if len(prints) > 1 else ""
            yield FigureInput(run, paper, [row for row in rows if row.fingerprint == fingerprint]), suffix


def _drawn(spec: FigureSpec, data: FigureInput, suffix: str) -> Drawn | None:
    with styled():
        figure = spec.draw(data)
        if figure is None:
            return None
        title = f"{spec.title}: {clean(data.paper, 20)} on {data.where}"
        figure.suptitle(title, x=0.01, ha="left")
    name = re.sub(r"[^a-z0-9_-]+", "-", f"{data.paper}-{spec.id}{suffix}".lower())
    topic = spec.title + (f", {data.where}" if suffix else "")
    return Drawn(name, title, spec.caption(data), figure, clean(data.paper, 40), topic)


def save_all(run: Comparison, folder: Path, drawn: Sequence[Image] | None = None) -> list[Path]:
    """Write ``figures/<name>.svg`` and ``.png`` below `folder` and return their paths.

    Parameters
    ----------
    run
        The run.
    folder
        The run's folder; ``figures`` is made in it.
    drawn
        The figures, where they have been drawn already.
    """
    return write_figures(draw_all(run) if drawn is None else drawn, folder)
