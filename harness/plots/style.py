"""One look for all figures: colours, sizes, axes, labels and legends."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import NDArray

from schedgap.harness.text import clean, number
from schedgap.instances.arrays import Array

INK, MUTED, FAINT = "#1b1f24", "#57606a", "#d8dee4"

PALETTE: tuple[str, ...] = (*sns.color_palette("colorblind", 6).as_hex(), "#882255", "#949494", "#8a7a00", "#56b4e9")
"""Ten colours that people with any common colour blindness tell apart: seaborn's ``colorblind`` with dark colours in
place of its light pink and yellow, which vanish as lines on white."""

DASHED = (0, (4, 1.5))
"""Dashes that stay visible in a thin line."""

DASHES = ("-", DASHED, (0, (1, 1.2)))

MAX_LINES = len(PALETTE)
"""Lines of one figure; more could not be told apart."""

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

WIDE = 20.0
"""An axis is logarithmic where its largest value is this many times the smallest."""

Look = Mapping[str, Any]
"""Colour and dashes of a line."""


def look(i: int) -> Look:
    """Return colour and dashes of line number `i`: neighbours differ in both."""
    return {"color": PALETTE[i % len(PALETTE)], "ls": DASHES[i % len(DASHES)]}


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """Return the look of each method, the same in all figures that name the same methods."""
    return {method: look(i) for i, method in enumerate(dict.fromkeys(methods))}


# ---------------------------------------------------------------- figures and axes


def new_figure(height_in: float) -> Figure:
    """Return an empty figure of the common width, independent of pyplot."""
    return Figure(figsize=(WIDTH_IN, height_in), layout="constrained")


def one_axes(height_in: float) -> tuple[Figure, Axes]:
    """Return a figure with one set of axes."""
    figure = new_figure(height_in)
    return figure, figure.add_subplot()


def panels(
    count: int, height_in: float, columns: int = 3, xlabel: str = "", ylabel: str = "", **kwargs: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure with small axes in rows, labelled where they stand at the edge.

    Parameters
    ----------
    count, columns
        How many there are, and how many stand side by side.
    height_in
        Height of a row in inches.
    xlabel, ylabel
        Label of the lowest axes of each column, and of the first of each row.
    **kwargs
        As ``sharex``, for :meth:`matplotlib.figure.Figure.subplots`.
    """
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = new_figure(0.9 + rows * height_in)
    axes = figure.subplots(rows, columns, squeeze=False, **kwargs).ravel().tolist()
    for spare in axes[count:]:
        spare.remove()
    for i, ax in enumerate(axes[:count]):
        ax.set_ylabel(ylabel if i % columns == 0 else "")
        if i + columns >= count:
            ax.set_xlabel(xlabel)
            ax.tick_params(labelbottom=True)
    return figure, axes[:count]


def log_axis(ax: Axes, axis: str, formatter: Callable[[float], str] = number) -> None:
    """Make an axis logarithmic, with plain numbers at its decades."""
    (ax.set_xscale if axis == "x" else ax.set_yscale)("log")
    side = ax.xaxis if axis == "x" else ax.yaxis
    side.set_major_locator(LogLocator(numticks=9))
    side.set_major_formatter(lambda value, _: formatter(value))
    side.set_minor_formatter(NullFormatter())


TIME_UNITS = ((2 * 86_400.0, 86_400.0, "days"), (2 * 3600.0, 3600.0, "h"), (180.0, 60.0, "min"), (0.0, 1.0, "s"))
"""Smallest end of an axis in seconds, then seconds and name of the unit in which it reads well."""


def time_unit(end_s: float) -> tuple[float, str]:
    """Return the seconds of the unit in which an axis up to `end_s` reads well, and its name."""
    return next((seconds, name) for least, seconds, name in TIME_UNITS if end_s >= least)


# ---------------------------------------------------------------- words


def label(text: str, limit: int = 16) -> str:
    """Return a stranger's text as a label: one line, short, and never hidden by a leading underscore."""
    shown = clean(text, limit)
    return f"\u200a{shown}" if shown.startswith("_") else shown


def listed_axis(ax: Axes, names: Sequence[str], limit: int = 40) -> None:
    """Name the rows 0, 1, … of a chart, the first on top."""
    ax.set_yticks(range(len(names)), [label(name, limit) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)


def legend_below(figure: Figure, handles: Sequence[Any], columns: int = 4) -> None:
    """Put a legend below all axes."""
    if handles:
        figure.legend(handles=handles, loc="outside lower left", ncols=min(columns, len(handles)))


def line_legend(figure: Figure, lines: Mapping[str, Look], more: Sequence[Any] = (), columns: int = 3) -> None:
    """Put the names of lines below all axes, and other handles behind them."""
    legend_below(figure, [*(Line2D([], [], label=name, **style) for name, style in lines.items()), *more], columns)


def note(ax: Axes, text: str, place: tuple[float, float], offset: tuple[float, float], **look: Any) -> None:
    """Write a small text beside a place, `offset` points away."""
    usual: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8, "color": MUTED}
    ax.annotate(text, place, offset, **(usual | look))


def text_colour(background: Any) -> str:
    """Return black or white, whichever contrasts more with `background` (WCAG relative luminance)."""
    channels = np.asarray(mpl.colors.to_rgb(background))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return "white" if float(linear @ [0.2126, 0.7152, 0.0722]) < 0.179 else "black"


# ---------------------------------------------------------------- heat maps


def heat_map(ax: Axes, cells: NDArray[np.floating], norm: Normalize, colours: Any = "viridis") -> AxesImage:
    """Draw cells as one small image, and return it: a tenth of the file that outlines of cells take."""
    height, width = cells.shape
    box = (0.0, float(width), float(height), 0.0)
    image = ax.imshow(cells, cmap=colours, norm=norm, interpolation="none", extent=box, aspect="auto")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return image


def wide_norm(cells: Array) -> tuple[Array, Normalize]:
    """Return cells and their colours: logarithmic, and 0 white, where positive cells differ a hundredfold."""
    positive = cells[cells > 0]
    largest = float(positive.max(initial=0.0)) or 1.0
    if not positive.size or largest <= 100 * positive.min():
        return cells, Normalize(0.0, largest)
    return np.where(cells > 0, cells, np.nan), LogNorm(max(float(positive.min()), largest * 1e-9), largest)


def no_dust(cells: Array, least: float) -> Array:
    """Return cells with 0 below that part of the largest: what rounding leaves of 0 would take most of the colours."""
    return np.where(cells >= least * cells.max(initial=0.0), cells, 0.0)


def sparse_ticks(ax: Axes, axis: str, labels: Sequence[str], at_most: int, room: int = 60) -> None:
    """Label cells 0, 1, … of a heat map.

    Parameters
    ----------
    ax, axis
        Where: ``"x"`` or ``"y"``.
    labels
        One for each cell.
    at_most
        Largest number of them that is shown, at equal distances.
    room
        Letters that fit side by side; labels of an x axis stand upright where they are more.
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
