"""Figures: registered functions that turn results into charts, and the output of charts as files, pages and notebooks.

A decorator registers a figure, in this package (:mod:`schedgap.harness.show.plots`) or in any other file:

>>> @figure("oef.support", "GPU types per tenant")  # doctest: +SKIP
... def support(data: Compared) -> Drawn:
...     "Number of GPU types that each tenant uses."
...     return alt.Chart(rows([...])).mark_bar().encode(x="tenant:N", y="types:Q")

The docstring is the caption: what the figure shows, and in which units. The function returns an Altair chart, so the
live chart of a page, its static picture for readers without scripts, and the files for a paper all come from the same
Vega-Lite specification. If its data has a column ``method``, pages highlight and filter methods in it.

This module imports Altair only when something is drawn.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial, singledispatch
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from markupsafe import Markup

from schedgap.instances.canonical import write_atomically
from schedgap.instances.errors import UsageError
from schedgap.instances.registry import Registry

if TYPE_CHECKING:
    from altair.typing import ChartType

Drawn: TypeAlias = "ChartType | tuple[ChartType, str] | None"
"""Return type of a figure's function: the chart, possibly with an addition to its caption; ``None`` draws nothing."""

Spec = dict[str, Any]
"""A Vega-Lite specification."""

PNG_SCALE = 2.0

ENLARGED = 1.2
"""Factor by which notebooks enlarge all charts: letters of 11 pixels become 13."""

VEGALITE = "application/vnd.vegalite.v5+json"
"""Type of live charts in notebooks: the latest that JupyterLab 4 draws, and one that the format of notebooks allows.

Charts are written for version 6, and use nothing that version 5 lacks.
"""

THEMED = {"#ffffff": "page", "#1b1f24": "ink", "#57606a": "muted", "#d8dee4": "line", "#eceff2": "idle"}
"""Neutral colours in ``figure.json`` and charts, and the page's CSS variables for them, which adapt to dark mode."""

_PLAIN = "; ".join(f"--{name}: {colour}" for colour, name in THEMED.items())
"""CSS that defines the variables of :data:`THEMED` for figures outside our pages."""


# ---------------------------------------------------------------- registry


@dataclass(frozen=True)
class FigureSpec:
    """A registered figure. Its id is ``<group>.<name>``, or only a name if it suits every group of its kind (`of`).

    The text below the figure and its alternative text start with the caption. Pages show `minor` figures collapsed.
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
        """Return whether the figure can show `part`."""
        return self.of == part.of and self.id.rpartition(".")[0] in ("", part.group)


FIGURES: Registry[FigureSpec] = Registry("figure")


def figure(
    id: str, title: str, *, of: str = "paper", each: Mapping[str, str] | None = None, minor: bool = False
) -> Callable[[Callable[..., Drawn]], Callable[..., Drawn]]:
    """Register the decorated function as a figure of parts `of` a kind; its docstring is the caption.

    Results of a comparison have a part for each ``"paper"`` and each ``"instance"``. With `each`, the function is
    registered once per key, which it takes as its second argument and which is appended to the id. In the title and the
    caption, ``{}`` stands for the key's text and ``{key}`` for the key.
    """

    def register(draw: Callable[..., Drawn]) -> Callable[..., Drawn]:
        caption = " ".join((draw.__doc__ or "").split())
        if each is None:
            FIGURES.register(FigureSpec(id, title, caption, draw, of, minor))
        for key, text in (each or {}).items():
            words = (title.format(text, key=key), caption.format(text, key=key))
            draw_key = partial(lambda key, part: draw(part, key), key)
            FIGURES.register(FigureSpec(f"{id}-{key}", *words, draw_key, of, minor))
        return draw

    return register


@dataclass(frozen=True, eq=False, kw_only=True)
class Part:
    """A part of the results that a figure shows, `of` a kind: ``"paper"``, ``"instance"``, ``"simulation"``.

    Figures are listed under `group` (such as the paper). File names start with the group and, if the kind has several
    parts, end with `suffix`. Titles end with `heading`; `where` is the instance's name or the number of instances.
    """

    of: str
    group: str
    heading: str = ""
    where: str = ""
    suffix: str = ""


@singledispatch
def parts(results: Any) -> Sequence[Part]:
    """Divide results into the parts that figures show; each kind of results registers an implementation."""
    return ()


# ---------------------------------------------------------------- drawing


@lru_cache(maxsize=1)
def theme() -> Spec:
    """Return the Vega-Lite configuration that all charts share."""
    config: Spec = json.loads(resources.files(__package__).joinpath("figure.json").read_text("utf-8"))
    return config


def rendered(chart: Spec | str, ending: str) -> bytes:
    """Return a chart's specification, or its SVG text, rendered as an ``svg``, ``png`` or ``pdf`` file."""
    import vl_convert

    if ending not in ("svg", "png", "pdf"):
        raise UsageError(f"a figure is written as .svg, .png or .pdf, not as .{ending}")
    svg = chart if isinstance(chart, str) else vl_convert.vegalite_to_svg({**chart, "config": theme()})
    ids: dict[str, str] = {}  # renumber gradients and clips from 1, as the renderer counts on from picture to picture
    svg = re.sub(r"(?<=[\"#])(gradient_|clip)\d+", lambda id: ids.setdefault(id[0], f"{id[1]}{len(ids) + 1}"), svg)
    if ending == "png":
        return bytes(vl_convert.svg_to_png(svg, scale=PNG_SCALE))
    return svg.encode() if ending == "svg" else bytes(vl_convert.svg_to_pdf(svg))


@dataclass(frozen=True)
class Drawing:
    """A chart that can be written to files and shown in pages and notebooks.

    `name` is its file name without suffix, `group` (a paper) and `topic` are its entry in lists of figures, and `kind`
    is the id of the registered figure.
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
        """The figure as a PDF file; files of the same results differ only in their creation date."""
        return rendered(self.svg, "pdf")

    def file(self, ending: str) -> bytes:
        """Return the figure as the content of an ``svg``, ``png`` or ``pdf`` file."""
        return self.pdf if ending == "pdf" else rendered(self.svg, ending)

    def save(self, path: str | Path) -> Path:
        """Write the figure to a file, in the format given by its suffix, and return the path."""
        path = Path(path)
        content = self.file(path.suffix[1:])
        try:
            write_atomically(path, content)
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
        return path

    def element(self, prefix: str) -> Markup:
        """Return the figure as an SVG element of a page, with ids that start with `prefix`."""
        return inline_svg(self.svg, prefix, f"{self.title}. {self.caption}")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return the chart for notebooks: live if they support Vega-Lite, else a picture, which needs no network.

        Documents that are made of notebooks, such as those of ``nbconvert --to pdf``, take the PNG.
        """
        live = {name: part for name, part in self.spec.items() if name != "$schema"} | {"config": theme()}
        return {VEGALITE: live, "text/html": self._repr_html_(), "image/png": self.file("png")}

    def _repr_html_(self) -> str:
        # The same figure may appear twice in a page, next to other figures.
        prefix = f"f{sha256(self.svg.encode()).hexdigest()[:12]}-"
        width = ENLARGED * float(ET.fromstring(self.svg).attrib["viewBox"].split()[2])
        return Markup(
            '<figure style="margin: 0 0 1em; max-width: 46em; {}">'
            '<div style="padding: .6em; background: #ffffff"><div style="max-width: {:.0f}px">{}</div></div>'
            "<figcaption>{}</figcaption></figure>"
        ).format(_PLAIN, width, self.element(prefix), self.caption)


class Drawings(list[Drawing]):
    """List of figures that a notebook shows with their captions, one after another."""

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        for shown in self or [HTML(self._repr_html_())]:  # type: ignore[no-untyped-call]
            display(shown)  # type: ignore[no-untyped-call]

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self) or "<p>Nothing to draw.</p>"


def plain_spec(chart: ChartType, title: str = "") -> Spec:
    """Return a chart as a Vega-Lite specification, without Altair's own theme."""
    # Validation against Vega-Lite's schema takes longer than drawing; the tests do it for all charts.
    spec: Spec = chart.to_dict(validate=False)
    spec.pop("config", None)
    datasets = {name: list(values) for name, values in spec.get("datasets", {}).items()}
    return spec | ({"title": title} if title else {}) | {"datasets": datasets}


# ---------------------------------------------------------------- as an element of a page

SVG_ELEMENTS = frozenset(
    ("svg", "g", "path", "use", "defs", "clipPath", "rect", "image", "circle", "ellipse", "line", "text", "tspan")
) | {"linearGradient", "stop"}
"""Elements allowed in a figure; all others (styles, scripts, metadata) are removed."""


def themed(text: str) -> str:
    """Return a chart's specification or picture with the page's CSS variables in place of the neutral colours."""
    return re.sub("|".join(THEMED), lambda colour: f"var(--{THEMED[colour[0]]})", text)


def inline_svg(svg: str, prefix: str, alt: str) -> Markup:
    """Return an SVG file as an element of a page: without styles, scripts or fixed size, with alternative text.

    Its ids start with `prefix`, so that figures on one page do not refer to each other's parts.
    """
    root = ET.fromstring(svg)
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', svg))
    for element in root.iter():
        element.tag, kept = _local(element.tag), dict[str, str]()
        for full, value in element.attrib.items():
            if (name := _local(full)) == "id":
                kept |= {name: prefix + value} if value in used else {}
            elif name == "href":  # links out of the figure are removed
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
