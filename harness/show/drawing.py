"""Drawing the registered figures of results: one after the other for notebooks, or all at once, rendered by workers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedgap.harness.engine.pool import Pool
from schedgap.harness.engine.sealed import inside
from schedgap.harness.engine.task import Task
from schedgap.harness.show.figure import FIGURES, Drawing, Drawings, FigureSpec, Part, Spec, parts, plain_spec, rendered
from schedgap.harness.show.text import clean
from schedgap.instances.errors import NotApplicableError, UnknownNameError
from schedgap.instances.registry import Registry, unknown


def registered() -> Registry[FigureSpec]:
    """Return the registry of figures, after importing the modules of the package `plots`, which register them."""
    from schedgap.harness.show import plots  # noqa: F401 -- it imports much

    return FIGURES


def figures(results: Any, *names: str) -> Drawings:
    """Draw the figures of a comparison, a simulation, or an instance, one for each part that they can show.

    With `names` (such as ``gap``) or ids (such as ``hadar.gantt``), draw only these; unknown ones raise
    `UnknownNameError`.
    """
    valid = {name for spec in registered() for name in (spec.name, spec.id)}
    for name in names:
        if name not in valid:
            raise UnknownNameError(unknown("figure", name, sorted(valid)))
    pairs = [(spec, part) for spec, part in _pairs(results) if not names or {spec.name, spec.id} & set(names)]
    return Drawings(drawing for pair in pairs if (drawing := _drawing(*pair)))


def _pairs(results: Any) -> list[tuple[FigureSpec, Part]]:
    """Return the pairs of figure and part to draw; figures of single instances come last."""
    specs = sorted(registered(), key=lambda spec: spec.of == "instance")
    divided = parts(results)
    return [(spec, part) for spec in specs for part in divided if spec.fits(part)]


def _drawing(spec: FigureSpec, part: Part) -> Drawing | None:
    try:
        drawn = spec.draw(part)
    except NotApplicableError:
        return None  # the figure does not apply to such an instance
    if drawn is None:
        return None
    chart, addition = drawn if isinstance(drawn, tuple) else (drawn, "")
    title = ": ".join(filter(None, (spec.title, part.heading)))
    name = re.sub(r"[^a-z0-9_-]+", "-", f"{part.group}-{spec.name}{part.suffix}".lower())
    topic = spec.title + (f", {part.where}" if part.suffix else "")
    caption, group = f"{spec.caption} {addition}".strip(), clean(part.group, 40)
    return Drawing(name, title, caption, plain_spec(chart, title), group, topic, kind=spec.id, minor=spec.minor)


def draw_all(results: Any) -> tuple[list[Drawing], list[str]]:
    """Draw all figures of results; return them in order, and a message for each that cannot be drawn."""
    if getattr(results, "kind", "") in UNDRAWN:
        return [], []
    charts: list[Drawing] = []
    failures: dict[tuple[str, str], None] = {}

    def pictures() -> Iterator[_Picture]:
        yield _Picture(-1, {"mark": "point"})  # starts the renderer while Altair is being imported
        for spec, part in _pairs(results):
            try:
                drawing = _drawing(spec, part)
            except MemoryError:
                raise
            except Exception as error:  # the failure of one figure must not prevent the others
                failures[spec.id, clean(f"{type(error).__name__}: {error}", 300)] = None
            else:
                if drawing:
                    charts.append(drawing)
                    yield _Picture(len(charts) - 1, drawing.spec)

    with closing(Pool(RENDERERS)) as pool:
        for place, svg, pdf, reason in pool.run(pictures()):
            if reason and place >= 0:
                failures[charts[place].kind, reason] = None
            elif place >= 0:
                vars(charts[place]).update(svg=svg, pdf=pdf)
    messages = [f"the figure {id} could not be drawn: {reason}" for id, reason in failures]
    return [drawing for drawing in charts if "svg" in vars(drawing)], messages


UNDRAWN = ("audit", "adversary")
"""Kinds of results that have no figures, so that Altair need not be imported."""

DRAWN_S = 3600.0
"""Seconds after which a chart is given up; on the busiest machine it is drawn long before."""

RENDERERS = 2
"""Number of workers that render charts; this process builds charts about as fast as two workers render them."""


_Rendered = tuple[int, str, bytes, str]
"""Index of a chart, its SVG text and PDF file, and the reason if it could not be rendered."""


@dataclass(frozen=True)
class _Picture(Task[_Rendered]):
    """A task that renders a chart. Workers are processes: the renderer holds the GIL, so threads would gain nothing."""

    place: int
    spec: Spec

    @property
    def hard_limit_s(self) -> float:
        return DRAWN_S

    def identity(self) -> Spec:
        return self.spec

    def attempt(self) -> _Rendered:
        svg = rendered(self.spec, "svg").decode()
        return self.place, svg, rendered(svg, "pdf"), ""

    def failed(self, status: Any, reason: str) -> _Rendered:
        return self.place, "", b"", f"{status}: {reason}"


def write_figures(drawings: Sequence[Drawing], folder: Path) -> list[Path]:
    """Write figures as ``figures/<name>.svg`` and ``.pdf`` below `folder` and return their paths."""
    target = inside(folder, "figures")
    target.mkdir(parents=True, exist_ok=True)
    return [item.save(target / f"{item.name}.{ending}") for item in drawings for ending in ("svg", "pdf")]
