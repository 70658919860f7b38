"""Figures as files and page elements, drawn by worker processes; nothing here needs matplotlib itself."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from schedgap.harness.engine.limits import Limits
from schedgap.harness.engine.pool import run_all
from schedgap.harness.engine.result import Found
from schedgap.harness.engine.task import Task
from schedgap.harness.environment import cores
from schedgap.harness.text import clean
from schedgap.instances.canonical import write_atomically

if TYPE_CHECKING:
    from schedgap.harness.plots import Drawn

FEW = 12
"""Runs of so few rows have few figures: this process draws them before workers would have loaded matplotlib."""

CHUNKS = 12
"""Parts per worker that the figures are dealt out in; each is drawn by whichever worker is free."""


LIMITS = Limits(time_limit_s=900.0)
"""What drawing a part may take."""


class Image(Protocol):
    """What a page or a folder needs to know of a figure."""

    @property
    def name(self) -> str:
        """File name without ending."""
        ...

    @property
    def title(self) -> str:
        """What stands in the figure."""
        ...

    @property
    def caption(self) -> str:
        """What is shown, its unit and n."""
        ...

    @property
    def svg(self) -> str:
        """The figure as SVG text."""
        ...

    @property
    def png(self) -> bytes:
        """The figure as PNG bytes."""
        ...

    @property
    def group(self) -> str:
        """What it belongs to (a paper), for lists of figures."""
        ...

    @property
    def topic(self) -> str:
        """What it shows in a few words, for lists of figures."""
        ...


@dataclass(frozen=True)
class Picture:
    """A figure that is only files any more; fields as in :class:`Image`."""

    name: str
    title: str
    caption: str
    svg: str
    png: bytes
    group: str = ""
    topic: str = ""


@dataclass(frozen=True)
class Drawable:
    """Results, and what returns the drawings of all their figures, in the same order every time; picklable."""

    found: Found[Any]
    drawings: Callable[[Any], Sequence[Callable[[], Drawn | None]]]


def draw_pictures(source: Drawable, *, parallel: bool | None = None) -> tuple[list[Picture], list[str]]:
    """Draw all figures of `source`; return them in order, and what went wrong with the others.

    Parameters
    ----------
    source
        What a study found.
    parallel
        Whether worker processes draw them; by default where that is faster.
    """
    workers = cores()
    if parallel is None:
        parallel = workers > 1 and len(source.found.rows) > FEW
    if not parallel:
        return _in_order([_Part(0, 1).drawn(source)])
    parts = CHUNKS * workers
    with tempfile.TemporaryDirectory(prefix="schedgap-") as folder:
        path = Path(folder) / "source"
        # Written and read by this program alone, in a folder that nobody else can open.
        path.write_bytes(pickle.dumps(source, pickle.HIGHEST_PROTOCOL))
        return _in_order(list(run_all([DrawTask(str(path), _Part(i, parts), limits=LIMITS) for i in range(parts)])))


@dataclass(frozen=True)
class _Drawings:
    """Pictures with their places in the order of all, and failures."""

    pictures: Sequence[tuple[int, Picture]]
    failures: Sequence[tuple[int, str]] = ()


@dataclass(frozen=True)
class _Part:
    """Every so many-th figure, beginning with one."""

    first: int
    step: int

    def drawn(self, source: Drawable) -> _Drawings:
        """Draw them; an error is a line, so that one figure cannot take the others with it."""
        jobs = source.drawings(source.found)
        pictures, failures = [], []
        for i in range(self.first, len(jobs), self.step):
            try:
                drawn = jobs[i]()
                pictures += [(i, drawn.picture())] if drawn else []
            except MemoryError:
                raise  # the pool says how much there was
            except Exception as error:
                failures.append((i, f"a figure could not be drawn: {clean(f'{type(error).__name__}: {error}', 300)}"))
        return _Drawings(pictures, failures)


@dataclass(frozen=True)
class DrawTask(Task[_Drawings]):
    """A part of the figures of a source that was saved in a file."""

    path: str
    part: _Part

    def identity(self) -> Mapping[str, Any]:
        """Return which part of which file it is."""
        return {"path": self.path, "first": self.part.first}

    def attempt(self) -> _Drawings:
        """Draw the part."""
        return self.part.drawn(_source(self.path))

    def failed(self, status: str, reason: str) -> _Drawings:
        """Return what is left of a part whose worker was killed or died."""
        return _Drawings((), ((self.part.first, f"figures could not be drawn: {status}: {reason}"),))


@lru_cache(maxsize=1)
def _source(path: str) -> Drawable:
    """Return the source, read once per worker."""
    os.environ.setdefault("MPLBACKEND", "agg")  # no worker ever opens a window
    source: Drawable = pickle.loads(Path(path).read_bytes())
    return source


def _in_order(found: Sequence[_Drawings]) -> tuple[list[Picture], list[str]]:
    pictures = sorted((item for each in found for item in each.pictures), key=lambda item: item[0])
    failures = sorted(line for each in found for line in each.failures)
    return [picture for _, picture in pictures], list(dict.fromkeys(text for _, text in failures))


def write_figures(pictures: Sequence[Image], folder: Path) -> list[Path]:
    """Write figures as ``figures/<name>.svg`` and ``.png`` below `folder` and return their paths."""
    target = folder / "figures"
    target.mkdir(parents=True, exist_ok=True)
    paths = []
    for item in pictures:
        for ending, content in ((".svg", item.svg.encode()), (".png", item.png)):
            paths.append(target / f"{item.name}{ending}")
            write_atomically(paths[-1], content)
    return paths
