"""Figures: functions from results to drawings, and what carries a drawing to files, pages and notebooks.

A decorator registers a figure, in this package (:mod:`schedgap.harness.plots`) as in any other file:

>>> @figure("oef.support", "GPU types per tenant")  # doctest: +SKIP
... def support(data: Compared) -> Drawn:
...     "Number of GPU types that each tenant uses."
...     canvas, ax = one_axes(3.0)
...     ...
...     return canvas

The docstring is the caption: what is shown, and in which units.

Nothing here imports matplotlib before something is drawn.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import pickle
import re
import tempfile
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial, singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from markupsafe import Markup

from schedgap.harness.engine.pool import run_all
from schedgap.harness.engine.sealed import inside
from schedgap.harness.engine.task import Limits, Task
from schedgap.harness.environment import cores
from schedgap.harness.text import clean
from schedgap.instances.canonical import write_atomically
from schedgap.instances.errors import NotApplicableError, UnknownNameError, UsageError
from schedgap.instances.plugins import dumps
from schedgap.instances.registry import Registry, unknown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Drawn: TypeAlias = "Figure | tuple[Figure, str] | None"
"""What a figure's function returns: the figure, maybe with the end of its caption; ``None`` if nothing is to draw."""

PNG_DPI = 150

METADATA = {"svg": {"Date": None, "Creator": None}, "png": None, "pdf": {"CreationDate": None}}
"""What the files of a figure say about themselves: nothing that differs from run to run."""

FEW = 12
"""Figures of results with at most this many rows are drawn here, before workers would have loaded matplotlib."""

CHUNKS = 12
"""Parts per worker that the figures are dealt out in; each is drawn by whichever worker is free."""

LIMITS = Limits(time_limit_s=900.0)
"""What drawing a part may take."""


# ---------------------------------------------------------------- what is registered


@dataclass(frozen=True)
class FigureSpec:
    """A registered figure: ``<group>.<name>``, or a name alone where every group of parts `of` that kind has it.

    The caption begins what is said below it, and its alternative text.
    """

    id: str
    title: str
    caption: str
    draw: Callable[[Any], Drawn]
    of: str

    @property
    def name(self) -> str:
        """The id without its group."""
        return self.id.rpartition(".")[2]

    def fits(self, part: Part) -> bool:
        """Return whether `part` is what the figure is about."""
        return self.of == part.of and self.id.rpartition(".")[0] in ("", part.group)


FIGURES: Registry[FigureSpec] = Registry("figure")


def figure(
    id: str, title: str, *, of: str = "paper", each: Mapping[str, str] | None = None
) -> Callable[[Callable[..., Drawn]], Callable[..., Drawn]]:
    """Register the decorated function as a figure of parts `of` a kind; its docstring is the caption.

    Results of a comparison have a part for each ``"paper"`` and each ``"instance"``. With `each`, the function is
    registered once for each key, which it takes as second argument. Keys end the ids; title and caption have the text
    in place of ``{}`` and the key in place of ``{key}``.
    """

    def register(draw: Callable[..., Drawn]) -> Callable[..., Drawn]:
        caption = " ".join((draw.__doc__ or "").split())
        if each is None:
            FIGURES.register(FigureSpec(id, title, caption, draw, of))
        for key, text in (each or {}).items():
            about = (title.format(text, key=key), caption.format(text, key=key))
            FIGURES.register(FigureSpec(f"{id}-{key}", *about, partial(lambda key, part: draw(part, key), key), of))
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


@contextmanager
def styled() -> Iterator[None]:
    """Draw and save inside this: the style, and no complaint about letters that the font lacks."""
    import matplotlib.style

    with matplotlib.style.context(Path(__file__).with_suffix(".mplstyle")), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
        # seaborn 0.13.2 still says `vert` where matplotlib 3.11 wants `orientation`
        warnings.filterwarnings("ignore", message="vert: bool was deprecated")
        yield


def saved(figure: Figure, ending: str) -> bytes:
    """Return the content of an ``svg``, ``png`` or ``pdf`` file of `figure`, the same every time; refuse other endings.

    The canvases are asked directly: ``Figure.savefig`` goes through every figure once more before it draws, to find
    its size, which takes half of the time.
    """
    from matplotlib.backend_bases import get_registered_canvas_class

    if ending not in METADATA:
        raise UsageError(f"a figure is written as .svg, .png or .pdf, not as .{ending}")
    content, dpi = io.BytesIO(), figure.dpi
    with styled():
        figure.dpi = PNG_DPI if ending == "png" else dpi
        canvas: Any = get_registered_canvas_class(ending)(figure)
        getattr(canvas, f"print_{ending}")(content, metadata=METADATA[ending])
        figure.dpi = dpi
        # The layout is found while drawing, half of the time that takes; the next file of this figure can keep it.
        figure.set_layout_engine("none")
    return content.getvalue()


@dataclass(frozen=True)
class Drawing:
    """A drawn figure on its way to files, pages and notebooks.

    `name` is that of its files, `group` (a paper) and `topic` are for lists of figures. A drawing that comes from a
    worker has no `figure`, only the content of `files` by ending.
    """

    name: str
    title: str
    caption: str
    group: str = ""
    topic: str = ""
    figure: Any = field(default=None, compare=False, repr=False)
    files: dict[str, bytes] = field(default_factory=dict, repr=False)

    def file(self, ending: str) -> bytes:
        """Return the content of an ``svg``, ``png`` or ``pdf`` file, the same for the same results."""
        if ending not in self.files:
            self.files[ending] = saved(self.figure, ending)
        return self.files[ending]

    @property
    def svg(self) -> str:
        """The figure as SVG text."""
        return self.file("svg").decode()

    def save(self, path: str | Path) -> Path:
        """Write the figure to a file, in the format that its ending names, and return the path."""
        path = Path(path)
        content = self.file(path.suffix[1:])
        try:
            write_atomically(path, content)
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
        return path

    def filed(self) -> Drawing:
        """Return the drawing as files of the usual formats, which take the way from a worker."""
        return replace(self, figure=None, files={ending: self.file(ending) for ending in ("svg", "png")})

    def element(self, prefix: str) -> Markup:
        """Return the figure as an element of a page, with ids that begin with `prefix`."""
        return inline_svg(self.svg, prefix, f"{self.title}. {self.caption}")

    def _repr_html_(self) -> str:
        # The same figure may stand in a page twice, and others beside it.
        prefix = f"f{hashlib.sha256(self.file('svg')).hexdigest()[:12]}-"
        return Markup(
            '<figure style="margin: 0 0 1em; max-width: 46em"><div style="padding: .6em; background: #ffffff">{}</div>'
            "<figcaption>{}</figcaption></figure>"
        ).format(self.element(prefix), self.caption)


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
    with styled():
        try:
            drawn = spec.draw(part)
        except NotApplicableError:
            return None  # the paper says nothing about such an instance
        if drawn is None:
            return None
        canvas, more = drawn if isinstance(drawn, tuple) else (drawn, "")
        title = ": ".join(filter(None, (spec.title, part.heading)))
        canvas.suptitle(title, x=0.01, ha="left")
    name = re.sub(r"[^a-z0-9_-]+", "-", f"{part.group}-{spec.name}{part.suffix}".lower())
    topic = spec.title + (f", {part.where}" if part.suffix else "")
    return Drawing(name, title, f"{spec.caption} {more}".strip(), clean(part.group, 40), topic, canvas)


# ---------------------------------------------------------------- in workers


def draw_files(results: Any, *, parallel: bool | None = None) -> tuple[list[Drawing], list[str]]:
    """Draw all figures of results as files, in workers where that is faster; return them in order, and the failures."""
    workers = cores()
    if parallel is None:
        parallel = workers > 1 and len(results.rows) > FEW
    if parallel:
        step = CHUNKS * workers
        with tempfile.TemporaryDirectory(prefix="schedgap-") as folder:
            path = Path(folder) / "results"
            # Written and read by this program alone, in a folder that nobody else can open.
            path.write_bytes(dumps(results))
            tasks = [DrawTask(str(path), first, step, limits=LIMITS) for first in range(step)]
            made = [item for each in run_all(tasks) for item in each]
    else:
        made = _every(results, 0, 1)
    found = [item for _, item in sorted(made, key=lambda item: item[0])]
    failures = dict.fromkeys(item for item in found if isinstance(item, str))
    return [item for item in found if isinstance(item, Drawing)], list(failures)


Placed = tuple[int, Drawing | str]
"""A drawing, or what is said of its failure, with its place in the order of all."""


def _every(results: Any, first: int, step: int) -> list[Placed]:
    """Draw each `step`-th figure; an error is a line, so that one figure cannot take the others with it."""
    made: list[Placed] = []
    for place, pair in list(enumerate(_pairs(results)))[first::step]:
        try:
            drawing = _drawing(*pair)
            made += [(place, drawing.filed())] if drawing else []
        except MemoryError:
            raise  # the pool says how much there was
        except Exception as error:
            text = clean(f"{type(error).__name__}: {error}", 300)
            made.append((place, f"the figure {pair[0].id} could not be drawn: {text}"))
    return made


@dataclass(frozen=True)
class DrawTask(Task[list[Placed]]):
    """Each `step`-th figure of results that are saved in a file, from the `first` on."""

    path: str
    first: int
    step: int

    def identity(self) -> Mapping[str, Any]:
        """Return which part of which file it is."""
        return {"path": self.path, "first": self.first}

    def attempt(self) -> list[Placed]:
        """Draw the part."""
        return _every(_read(self.path), self.first, self.step)

    def failed(self, status: str, reason: str) -> list[Placed]:
        """Return what is left of a part whose worker was killed or died."""
        return [(self.first, f"figures could not be drawn: {status}: {reason}")]


@lru_cache(maxsize=1)
def _read(path: str) -> Any:
    """Return the results, read once per worker."""
    os.environ.setdefault("MPLBACKEND", "agg")  # no worker ever opens a window
    return pickle.loads(Path(path).read_bytes())


def write_figures(drawings: Sequence[Drawing], folder: Path) -> list[Path]:
    """Write figures as ``figures/<name>.svg`` and ``.png`` below `folder` and return their paths."""
    target = inside(folder, "figures")
    target.mkdir(parents=True, exist_ok=True)
    files = {target / f"{item.name}.{ending}": item.file(ending) for item in drawings for ending in ("svg", "png")}
    for path, content in files.items():
        write_atomically(path, content)
    return list(files)


# ---------------------------------------------------------------- as an element of a page

SVG_ELEMENTS = {"svg", "g", "path", "use", "defs", "clipPath", "rect", "image", "circle", "ellipse", "line", "text"}
"""What a figure is made of; anything else (styles, scripts, metadata) is left out."""


def inline_svg(svg: str, prefix: str, alt: str) -> Markup:
    """Return an SVG file as an element of a page: no styles or scripts, no fixed size, with alternative text.

    Its ids begin with `prefix`, so that figures in one page do not refer to each other's parts.
    """
    root = ET.fromstring(svg)
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', svg))
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = _attributes(element.attrib, prefix, used)
        element[:] = [child for child in element if _local(child.tag) in SVG_ELEMENTS]
        element.text, element.tail = element.text if element.tag == "text" else None, None
    box = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": alt}
    root.attrib = {**box, "stroke-linejoin": "round", "stroke-linecap": "butt"}
    return Markup(ET.tostring(root, encoding="unicode"))


def _local(name: str) -> str:
    """Return a tag's or attribute's name without its namespace."""
    return name.rsplit("}", 1)[-1]


def _attributes(attributes: Mapping[str, str], prefix: str, used: set[str]) -> dict[str, str]:
    """Return attributes with renamed ids and references, without handlers and references to elsewhere.

    Letters are outlines; what matplotlib calls ``text_1`` gets the class ``text``, by which pages know them.
    """
    kept = {"class": "text"} if attributes.get("id", "").startswith("text_") else {}
    for full, value in attributes.items():
        name = _local(full)
        if name == "id":
            kept |= {name: prefix + value} if value in used else {}
        elif name == "href":
            kept |= (
                {name: re.sub("^#", f"#{prefix}", value)} if value.startswith(("#", "data:image/png;base64,")) else {}
            )
        elif name != "class" and not name.startswith("on"):
            kept[name] = value.replace("url(#", f"url(#{prefix}")
    return kept
