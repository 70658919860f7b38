"""Figures: functions from results to charts, and what carries a chart to files, pages and notebooks.

A decorator registers a figure, in this package (:mod:`schedgap.harness.plots`) as in any other file:

>>> @figure("oef.support", "GPU types per tenant")  # doctest: +SKIP
... def support(data: Compared) -> Drawn:
...     "Number of GPU types that each tenant uses."
...     return alt.Chart(rows([...])).mark_bar().encode(x="tenant:N", y="types:Q")

The docstring is the caption: what is shown, and in which units. A chart is Altair's, so what the page draws, what it
shows readers without scripts, and the files for a paper are the same Vega-Lite specification. Where its data has a
column ``method``, pages highlight and filter methods in it.

Nothing here imports Altair before something is drawn.
"""

from __future__ import annotations

import importlib
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial, singledispatch
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from markupsafe import Markup

from schedgap.harness.engine.pool import Pool
from schedgap.harness.engine.sealed import inside
from schedgap.harness.engine.task import Task
from schedgap.harness.text import clean
from schedgap.instances.canonical import write_atomically
from schedgap.instances.errors import NotApplicableError, UnknownNameError, UsageError
from schedgap.instances.registry import Registry, unknown

if TYPE_CHECKING:
    from altair.typing import ChartType

Drawn: TypeAlias = "ChartType | tuple[ChartType, str] | None"
"""What a figure's function returns: the chart, maybe with the end of its caption; ``None`` if nothing is to draw."""

Spec = dict[str, Any]
"""A Vega-Lite specification."""

PNG_SCALE = 2.0

THEMED = {"#ffffff": "page", "#1b1f24": "ink", "#57606a": "muted", "#d8dee4": "line", "#eceff2": "idle"}
"""Colours of paper and ink in ``figure.json`` and charts, and the page's variables for them, which know dark mode."""

_PLAIN = "; ".join(f"--{name}: {colour}" for colour, name in THEMED.items())
"""These variables where there is no page of ours around a figure."""


# ---------------------------------------------------------------- what is registered


@dataclass(frozen=True)
class FigureSpec:
    """A registered figure: ``<group>.<name>``, or a name alone where every group of parts `of` that kind has it.

    The caption begins what is said below it, and its alternative text. A `minor` figure is folded on a page.
    """

    id: str
    title: str
    caption: str
    draw: Callable[[Any], Drawn]
    of: str
    minor: bool = False

    @property
    def name(self) -> str:
        """The id without its group."""
        return self.id.rpartition(".")[2]

    def fits(self, part: Part) -> bool:
        """Return whether `part` is what the figure is about."""
        return self.of == part.of and self.id.rpartition(".")[0] in ("", part.group)


FIGURES: Registry[FigureSpec] = Registry("figure")


def figure(
    id: str, title: str, *, of: str = "paper", each: Mapping[str, str] | None = None, minor: bool = False
) -> Callable[[Callable[..., Drawn]], Callable[..., Drawn]]:
    """Register the decorated function as a figure of parts `of` a kind; its docstring is the caption.

    Results of a comparison have a part for each ``"paper"`` and each ``"instance"``. With `each`, the function is
    registered once for each key, which it takes as second argument. Keys end the ids; title and caption have the text
    in place of ``{}`` and the key in place of ``{key}``.
    """

    def register(draw: Callable[..., Drawn]) -> Callable[..., Drawn]:
        caption = " ".join((draw.__doc__ or "").split())
        if each is None:
            FIGURES.register(FigureSpec(id, title, caption, draw, of, minor))
        for key, text in (each or {}).items():
            about = (title.format(text, key=key), caption.format(text, key=key))
            drawn = partial(lambda key, part: draw(part, key), key)
            FIGURES.register(FigureSpec(f"{id}-{key}", *about, drawn, of, minor))
        return draw

    return register


@dataclass(frozen=True, eq=False, kw_only=True)
class Part:
    """A part of results that figures are about, `of` a kind: ``"paper"``, ``"instance"``, ``"simulation"``.

    Figures are listed under `group` (as the paper), with which file names begin; `suffix` ends them, where there are
    several parts of the kind. `heading` stands behind titles, and `where` names the instance, or how many there are.
    """

    of: str
    group: str
    heading: str = ""
    where: str = ""
    suffix: str = ""


@singledispatch
def parts(results: Any) -> Sequence[Part]:
    """Return the parts of results that figures are about; each kind of results registers how it is divided."""
    return ()


# ---------------------------------------------------------------- what is drawn


@lru_cache(maxsize=1)
def theme() -> Spec:
    """Return the look of all charts: Vega-Lite's configuration."""
    found: Spec = json.loads(resources.files(__package__).joinpath("figure.json").read_text("utf-8"))
    return found


def rendered(chart: Spec | str, ending: str) -> bytes:
    """Return a chart, or its SVG text, as an ``svg``, ``png`` or ``pdf`` file."""
    import vl_convert

    if ending not in ("svg", "png", "pdf"):
        raise UsageError(f"a figure is written as .svg, .png or .pdf, not as .{ending}")
    svg = chart if isinstance(chart, str) else vl_convert.vegalite_to_svg({**chart, "config": theme()})
    known: dict[str, str] = {}  # gradients and clips, counted from 1: the renderer counts those of all pictures
    svg = re.sub(r"(?<=[\"#])(gradient_|clip)\d+", lambda id: known.setdefault(id[0], f"{id[1]}{len(known) + 1}"), svg)
    if ending == "png":
        return bytes(vl_convert.svg_to_png(svg, scale=PNG_SCALE))
    return svg.encode() if ending == "svg" else bytes(vl_convert.svg_to_pdf(svg))


@dataclass(frozen=True)
class Drawing:
    """A chart on its way to files, pages and notebooks.

    `name` is that of its files, `group` (a paper) and `topic` are for lists of figures, `kind` is the figure's id.
    """

    name: str
    title: str
    caption: str
    spec: Spec = field(repr=False)
    group: str = ""
    topic: str = ""
    kind: str = ""
    minor: bool = False

    @cached_property
    def svg(self) -> str:
        """The figure as SVG text."""
        return rendered(self.spec, "svg").decode()

    @cached_property
    def pdf(self) -> bytes:
        """The figure as a PDF file; two of the same results differ in what says when they were made."""
        return rendered(self.svg, "pdf")

    def file(self, ending: str) -> bytes:
        """Return the content of an ``svg``, ``png`` or ``pdf`` file."""
        return self.pdf if ending == "pdf" else rendered(self.svg, ending)

    def save(self, path: str | Path) -> Path:
        """Write the figure to a file, in the format that its ending names, and return the path."""
        path = Path(path)
        content = self.file(path.suffix[1:])
        try:
            write_atomically(path, content)
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
        return path

    def element(self, prefix: str) -> Markup:
        """Return the figure as an element of a page, with ids that begin with `prefix`."""
        return inline_svg(self.svg, prefix, f"{self.title}. {self.caption}")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return the chart for notebooks: live where Vega-Lite is known, else a picture, which needs no network."""
        from altair.vegalite.v6.display import VEGALITE_MIME_TYPE

        return {VEGALITE_MIME_TYPE: {**self.spec, "config": theme()}, "text/html": self._repr_html_()}

    def _repr_html_(self) -> str:
        # The same figure may stand in a page twice, and others beside it.
        prefix = f"f{sha256(self.svg.encode()).hexdigest()[:12]}-"
        return Markup(
            '<figure style="margin: 0 0 1em; max-width: 46em; {}">'
            '<div style="padding: .6em; background: #ffffff">{}</div>'
            "<figcaption>{}</figcaption></figure>"
        ).format(_PLAIN, self.element(prefix), self.caption)


class Drawings(list[Drawing]):
    """Figures that a notebook shows with their captions."""

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self) or "<p>Nothing to draw.</p>"


def registered() -> Registry[FigureSpec]:
    """Return all figures; every file of the folder `plots` registers its own."""
    importlib.import_module("schedgap.harness.plots")
    return FIGURES


def figures(results: Any, *names: str) -> Drawings:
    """Draw the figures of a comparison, a simulation, or an instance; one for each part that they are about.

    Where `names` are given, as ``gap``, or ids, as ``hadar.gantt``, only those; unknown ones are refused.
    """
    known = {name for spec in registered() for name in (spec.name, spec.id)}
    for name in names:
        if name not in known:
            raise UnknownNameError(unknown("figure", name, sorted(known)))
    pairs = [(spec, part) for spec, part in _pairs(results) if not names or {spec.name, spec.id} & set(names)]
    return Drawings(drawing for pair in pairs if (drawing := _drawing(*pair)))


def _pairs(results: Any) -> list[tuple[FigureSpec, Part]]:
    """Return which figures are drawn of which parts, what sums up all instances before pictures of single ones."""
    specs = sorted(registered(), key=lambda spec: spec.of == "instance")
    divided = parts(results)
    return [(spec, part) for spec in specs for part in divided if spec.fits(part)]


def _drawing(spec: FigureSpec, part: Part) -> Drawing | None:
    try:
        drawn = spec.draw(part)
    except NotApplicableError:
        return None  # the paper says nothing about such an instance
    if drawn is None:
        return None
    chart, more = drawn if isinstance(drawn, tuple) else (drawn, "")
    title = ": ".join(filter(None, (spec.title, part.heading)))
    name = re.sub(r"[^a-z0-9_-]+", "-", f"{part.group}-{spec.name}{part.suffix}".lower())
    topic = spec.title + (f", {part.where}" if part.suffix else "")
    about: dict[str, Any] = {"group": clean(part.group, 40), "topic": topic, "kind": spec.id, "minor": spec.minor}
    return Drawing(name, title, f"{spec.caption} {more}".strip(), plain_spec(chart, title), **about)


def plain_spec(chart: ChartType, title: str = "") -> Spec:
    """Return a chart as a Vega-Lite specification; Altair's own look is left out."""
    # Tests validate all charts against Vega-Lite's schema, which takes longer than drawing them.
    spec: Spec = chart.to_dict(validate=False)
    kept = {key: value for key, value in spec.items() if key != "config"} | ({"title": title} if title else {})
    return kept | {"datasets": {name: list(values) for name, values in spec.get("datasets", {}).items()}}


def draw_all(results: Any) -> tuple[list[Drawing], list[str]]:
    """Draw all figures of results; return them in order, and a line for each that cannot be drawn."""
    if getattr(results, "kind", "") in UNDRAWN:
        return [], []
    charts: list[Drawing] = []
    failures: dict[tuple[str, str], None] = {}

    def pictures() -> Iterator[_Picture]:
        yield _Picture(-1, {"mark": "point"})  # the renderer starts while Altair is imported
        for spec, part in _pairs(results):
            try:
                drawing = _drawing(spec, part)
            except MemoryError:
                raise
            except Exception as error:  # one figure cannot take the others with it
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
    told = [f"the figure {id} could not be drawn: {reason}" for id, reason in failures]
    return [drawing for drawing in charts if "svg" in vars(drawing)], told


UNDRAWN = ("audit", "adversary")
"""Kinds of results without figures, for which Altair need not be imported."""

RENDERERS = 2
"""Workers that render charts; this process makes charts about as fast as two render them."""


_Rendered = tuple[int, str, bytes, str]
"""A chart's place among all, as SVG text and as a PDF file, or why there is none."""


@dataclass(frozen=True)
class _Picture(Task[_Rendered]):
    """A chart that a worker renders. The renderer holds the interpreter's lock: with threads nothing is gained."""

    place: int
    spec: Spec

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


# ---------------------------------------------------------------- as an element of a page

SVG_ELEMENTS = frozenset(
    ("svg", "g", "path", "use", "defs", "clipPath", "rect", "image", "circle", "ellipse", "line", "text", "tspan")
) | {"linearGradient", "stop"}
"""What a figure is made of; anything else (styles, scripts, metadata) is left out."""


def themed(text: str) -> str:
    """Return a chart's specification or picture with the page's variables in place of the colours of paper and ink."""
    return re.sub("|".join(THEMED), lambda colour: f"var(--{THEMED[colour[0]]})", text)


def inline_svg(svg: str, prefix: str, alt: str) -> Markup:
    """Return an SVG file as an element of a page: no styles or scripts, no fixed size, with alternative text.

    Its ids begin with `prefix`, so that figures in one page do not refer to each other's parts.
    """
    root = ET.fromstring(svg)
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', svg))
    for element in root.iter():
        element.tag, kept = _local(element.tag), dict[str, str]()
        for full, value in element.attrib.items():
            if (name := _local(full)) == "id":
                kept |= {name: prefix + value} if value in used else {}
            elif name == "href":  # to elsewhere than the figure nothing refers
                inside = value.startswith(("#", "data:image/png;base64,"))
                kept |= {name: re.sub("^#", f"#{prefix}", value)} if inside else {}
            elif not name.startswith(("on", "aria", "class", "role", "style", "pointer-events")):
                kept[name] = value.replace("url(#", f"url(#{prefix}")
        element.attrib = kept
        element[:] = [child for child in element if _local(child.tag) in SVG_ELEMENTS]
        element.text, element.tail = element.text if element.tag in ("text", "tspan") else None, None
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": alt}
    return Markup(themed(ET.tostring(root, encoding="unicode")))


def _local(name: str) -> str:
    return name.rsplit("}", 1)[-1]
