"""One look for all figures: colours, fonts, sizes, and the small parts that several figures share."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from schedgap.harness.text import clean

INK, MUTED, FAINT = "#1b1f24", "#57606a", "#d8dee4"
PALETTE: tuple[str, ...] = tuple(sns.color_palette("colorblind").as_hex())
"""Ten colours that people with any common colour blindness tell apart (seaborn's ``colorblind``)."""

DASHED = (0, (4, 1.5))
"""Dashes that stay visible in a thin line."""

KIND_COLOURS = {
    "online": PALETTE[0],
    "baseline": PALETTE[1],
    "exact": PALETTE[2],
    "matheuristic": PALETTE[8],
    "relaxation": PALETTE[4],
    "bound": PALETTE[7],
}
WIDTH_IN = 6.8
"""Width of every figure in inches: two text columns of a paper, 650 px on a screen."""

STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "axes.formatter.use_mathtext": False,
    "axes.grid": False,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "figure.facecolor": "white",
    "figure.titlesize": 10,
    "figure.titleweight": "bold",
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "patch.linewidth": 0.5,
    "savefig.facecolor": "white",
    "svg.fonttype": "path",  # the same letters and line breaks wherever the file is opened
    "svg.hashsalt": "schedgap",  # ids that do not change from run to run
    "text.color": INK,
    "text.parse_math": False,  # a name with two dollar signs is no formula
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 8.5,
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw and save inside this: the style, and no complaint about letters that the font lacks."""
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
        # seaborn 0.13.2 still says `vert` where matplotlib 3.11 wants `orientation`
        warnings.filterwarnings("ignore", message="vert: bool was deprecated")
        yield


def new_figure(height_in: float) -> Figure:
    """Return an empty figure of the common width, independent of pyplot."""
    return Figure(figsize=(WIDTH_IN, height_in), layout="constrained")


def one_axes(height_in: float) -> tuple[Figure, Axes]:
    """Return a figure with one set of axes."""
    figure = new_figure(height_in)
    return figure, figure.add_subplot()


def panels(count: int, height_in: float, columns: int = 3, **kwargs: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` small axes in rows of `columns`, each row `height_in` high."""
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = new_figure(0.9 + rows * height_in)
    axes = figure.subplots(rows, columns, squeeze=False, **kwargs).ravel().tolist()
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def is_first_column(ax: Axes) -> bool:
    """Return whether the axes stand on the left, where the labels of a row belong."""
    place = ax.get_subplotspec()
    return place is None or bool(place.is_first_col())


def label(text: str, limit: int = 16) -> str:
    """Return a stranger's text as a label: one line, short, and never hidden by a leading underscore."""
    shown = clean(text, limit)
    return f"\u200a{shown}" if shown.startswith("_") else shown


def legend_below(figure: Figure, handles: Sequence[Any], columns: int = 4) -> None:
    """Put a legend below all axes."""
    if handles:
        figure.legend(handles=handles, loc="outside lower left", ncols=min(columns, len(handles)))


def text_colour(background: Any) -> str:
    """Return black or white, whichever contrasts more with `background` (WCAG relative luminance)."""
    channels = np.asarray(mpl.colors.to_rgb(background))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return "white" if float(linear @ [0.2126, 0.7152, 0.0722]) < 0.179 else "black"


def heat_map(ax: Axes, cells: NDArray[np.floating], colours: Any, norm: Normalize) -> AxesImage:
    """Draw cells as one small image, and return it: a tenth of the file that outlines of cells take."""
    height, width = cells.shape
    box = (0.0, float(width), float(height), 0.0)
    image = ax.imshow(cells, cmap=colours, norm=norm, interpolation="none", extent=box, aspect="auto")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return image


def sparse_ticks(ax: Axes, axis: str, labels: Sequence[str], at_most: int, room: int = 60) -> None:
    """Label cells 0, 1, … of a heat map.

    Parameters
    ----------
    ax, axis
        Where: ``"x"`` or ``"y"``.
    labels
        One for each cell.
    at_most
        So many of them are shown, at equal distances.
    room
        So many letters fit side by side; labels of an x axis stand upright where they are more.
    """
    step = math.ceil(len(labels) / at_most)
    places = np.arange(0, len(labels), step)
    shown = [labels[int(i)] for i in places]
    crowded = axis == "x" and sum(map(len, shown)) > room
    set_ticks = ax.set_xticks if axis == "x" else ax.set_yticks
    set_ticks(places + 0.5, shown, rotation=90 if crowded else 0)
    ax.tick_params(axis="x" if axis == "x" else "y", length=2)


def bins(count: int, at_most: int) -> list[NDArray[np.int64]]:
    """Return 0 … count − 1 in order, in at most that many groups of (nearly) equal size."""
    return np.array_split(np.arange(count), min(count, at_most))


TIME_UNITS = ((2 * 86_400.0, 86_400.0, "days"), (2 * 3600.0, 3600.0, "h"), (180.0, 60.0, "min"), (0.0, 1.0, "s"))
"""From so many seconds on, so many seconds are one of that unit."""


def time_unit(end_s: float) -> tuple[float, str]:
    """Return the seconds of the unit in which an axis up to `end_s` reads well, and its name."""
    return next((seconds, name) for least, seconds, name in TIME_UNITS if end_s >= least)


def jitter(count: int, width: float) -> NDArray[np.floating]:
    """Return `count` offsets within ± `width`/2 that spread evenly (golden section), the same every time."""
    return width * ((0.5 + np.arange(count) * 0.6180339887498949) % 1.0 - 0.5)


def log_axis(ax: Axes, axis: str, formatter: Any) -> None:
    """Make an axis logarithmic, with plain numbers at its decades."""
    (ax.set_xscale if axis == "x" else ax.set_yscale)("log")
    side = ax.xaxis if axis == "x" else ax.yaxis
    side.set_major_locator(LogLocator(numticks=9))
    side.set_major_formatter(FuncFormatter(lambda value, _: formatter(value)))
    side.set_minor_formatter(NullFormatter())
