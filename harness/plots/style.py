"""One look for all figures: colours, axes, words and legends; and the pieces of which several figures are made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray
from seaborn.utils import relative_luminance

from schedgap.harness.text import clean, number, ratio
from schedgap.instances.arrays import Array, Ints

Look = Mapping[str, Any]
"""Colour and dashes of a line."""

INK, MUTED, FAINT = "#1b1f24", "#57606a", "#d8dee4"

PALETTE: tuple[str, ...] = (*sns.color_palette("colorblind", 6).as_hex(), "#882255", "#949494", "#8a7a00", "#56b4e9")
"""Ten colours that people with any common colour blindness tell apart: seaborn's ``colorblind`` with dark colours in
place of its light pink and yellow, which vanish as lines on white."""

DASHED = (0, (4, 1.5))
"""Dashes that stay visible in a thin line."""

DASHES = ("-", DASHED, (0, (1, 1.2)))

BOUND: Look = {"color": PALETTE[3], "ls": DASHED}
"""Look of a bound beside what reaches at most so much."""

MAX_LINES = len(PALETTE)
"""Lines of one figure; more could not be told apart."""

MAX_ROWS = 30
"""Methods or policies in one figure with a row for each."""

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

EDGE_IN = 0.9
"""Height of a figure's title, legend and lowest label."""

WIDE = 20.0
"""An axis is logarithmic where its largest value is this many times the smallest."""

LOG_SPAN = 30.0
"""A time axis is logarithmic where the last completion is this many times the middle one."""

FEW_LINES = 4
"""Up to this many lines may cross often and still be followed; of more, a map has a row for each."""

COLUMNS = 180
"""Columns of a map over time, and points of a line; neighbouring slots are averaged."""

LETTER = 0.0135
"""Part of the axes' width that a letter beside a bar takes."""


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """Return colour and dashes of each method, the same in all figures of these methods; neighbours share neither."""
    styles = zip(cycle(PALETTE), cycle(DASHES), strict=False)
    return {method: {"color": c, "ls": ls} for method, (c, ls) in zip(dict.fromkeys(methods), styles, strict=False)}


# ---------------------------------------------------------------- figures and axes


def one_axes(height_in: float, xlabel: str = "", ylabel: str = "", grid: str = "") -> tuple[Figure, Axes]:
    """Return a figure with one set of axes."""
    figure, (ax,) = panels(1, height_in - EDGE_IN, 1, xlabel, ylabel, grid)
    return figure, ax


def panels(
    count: int, height_in: float, columns: int = 3, xlabel: str = "", ylabel: str = "", grid: str = "", **kwargs: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure, independent of pyplot, with small axes in rows of that height, labelled at the edge.

    `grid` names the axis whose lines are drawn, or ``"both"``; `kwargs` are those of ``Figure.subplots``.
    """
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(WIDTH_IN, EDGE_IN + rows * height_in), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **kwargs).ravel().tolist()
    for spare in axes[count:]:
        spare.remove()
    for i, ax in enumerate(axes[:count]):
        if grid:
            ax.grid(axis=grid)
        ax.set_ylabel(ylabel if i % columns == 0 else "")
        if i + columns >= count:
            ax.set_xlabel(xlabel)
            ax.tick_params(labelbottom=True)
    return figure, axes[:count]


def plain_number(value: float, _: float | None = None) -> str:
    """Return the text of a tick."""
    return number(value)


def log_axis(ax: Axes, axis: str, formatter: Callable[..., str] | str = plain_number) -> None:
    """Make an axis logarithmic, with plain numbers at its decades."""
    ax.set(**{f"{axis}scale": "log"})
    side = getattr(ax, f"{axis}axis")
    side.set(major_locator=LogLocator(numticks=9), major_formatter=formatter, minor_formatter=NullFormatter())


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


def listed_axis(ax: Axes, names: Sequence[str]) -> None:
    """Name the rows 0, 1, … of a chart, the first on top."""
    ax.set_yticks(range(len(names)), [label(name, 40) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)


def legend_below(figure: Figure, handles: Sequence[Any], columns: int = 4) -> None:
    """Put a legend below all axes."""
    if handles:
        figure.legend(handles=handles, loc="outside lower left", ncols=min(columns, len(handles)))


def line_legend(
    figure: Figure,
    lines: Mapping[str, Look],
    columns: int = 3,
    *,
    limit: int = 30,
    ends: Mapping[str, str] | None = None,
) -> None:
    """Put the names of lines below all axes, cut to `limit` letters and followed by their `ends`."""
    words = {name: label(name, limit) + (ends or {}).get(name, "") for name in lines}
    legend_below(figure, [Line2D([], [], label=words[name], **look) for name, look in lines.items()], columns)


def note(ax: Axes, text: str, place: tuple[float, float], offset: tuple[float, float], **look: Any) -> None:
    """Write a small text beside a place, `offset` points away."""
    usual: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8, "color": MUTED}
    ax.annotate(text, place, offset, **(usual | look))


def text_colour(background: Any) -> str:
    """Return black or white, whichever contrasts more with `background` (WCAG relative luminance)."""
    return "white" if relative_luminance(background) < 0.179 else "black"


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


def dearest(field: Array, most: int) -> Ints:
    """Return the rows of a map of prices that are drawn: not those that are 0 everywhere, of many the highest ones."""
    top = field.max(axis=1)
    rows = np.argsort(-top, kind="stable")[:most]
    return np.sort(rows[top[rows] > 0])


def sparse_ticks(ax: Axes, axis: str, labels: Sequence[str], at_most: int, room: int = 60) -> None:
    """Label cells 0, 1, … of a heat map, at equal distances; on an x axis upright above `room` letters."""
    shown = labels[:: math.ceil(len(labels) / at_most)]
    places = np.arange(0, len(labels), math.ceil(len(labels) / at_most)) + 0.5
    crowded = axis == "x" and sum(map(len, shown)) > room
    side = ax.xaxis if axis == "x" else ax.yaxis
    side.set_ticks(places, shown, rotation=90 if crowded else 0)
    side.set_tick_params(length=2)


# ---------------------------------------------------------------- over time


def averaged(values: Array, edges: Array) -> Array:
    """Return the mean of a step function between `edges`, which are in slots; it is 0 after its end."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    integral = np.interp(edges, np.arange(len(total)), total)
    return np.asarray(np.diff(integral) / np.diff(edges))


def time_cells(values: Sequence[Array], slot_s: float) -> tuple[Array, Array, str]:
    """Return means of rows over neighbouring slots, the times between them, and the label of their axis."""
    slots = max(map(len, values))
    unit_s, unit = time_unit(slots * slot_s)
    edges = np.linspace(0, slots, min(slots, COLUMNS) + 1)
    return np.array([averaged(row, edges) for row in values]), edges * slot_s / unit_s, f"time [{unit}]"


def time_ticks(ax: Axes, end: float, cells: int) -> None:
    """Label the x axis of a map of so many cells with times from 0 to `end`."""
    times = np.asarray(MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(0.0, end))
    times = times[(times >= 0) & (times <= end * (1 + 1e-9))]
    ax.set_xticks(times / end * cells, [number(float(t)) for t in times])
    ax.tick_params(axis="x", length=2)


def time_map(
    values: Sequence[Array], names: Sequence[str], slot_s: float, bar: str, height_in: float, most: float = 0.0
) -> Figure:
    """Return a map with a row of values by slot for each name, coloured from 0 to `most`, or as they need it."""
    cells, times, xlabel = time_cells(values, slot_s)
    shown, norm = (cells, Normalize(0.0, most)) if most else wide_norm(cells)
    figure, ax = one_axes(height_in, xlabel)
    image = heat_map(ax, shown, norm)
    sparse_ticks(ax, "y", names, 30)
    time_ticks(ax, times[-1], cells.shape[1])
    figure.colorbar(image, ax=ax, label=bar, pad=0.02, format=plain_number)
    return figure


def price_map(prices: Array, names: Sequence[str], slot_s: float, unit: str = "utility per GPU and slot") -> Figure:
    """Return ``(k, T)`` prices over time as a map; colours are logarithmic where prices differ a hundredfold."""
    height = 1.3 + max(0.35 * len(names), LETTER * 5 * len(unit))
    return time_map([*prices], [label(name, 16) for name in names], slot_s, f"price\n[{unit}]", height)


def share_lines(
    shares: Mapping[str, Mapping[str, Array]], slot_s: float, styles: Mapping[str, Look], height_in: float, ylabel: str
) -> Figure:
    """Return shares (0 to 1, by slot) over time in per cent: a panel for each title, with a line per method."""
    rows = [(i, method, row) for i, each in enumerate(shares.values()) for method, row in each.items()]
    cells, times, xlabel = time_cells([row for *_, row in rows], slot_s)
    figure, axes = panels(len(shares), height_in, 1, xlabel, ylabel, "y", sharex=True)
    for (i, method, _), row in zip(rows, cells, strict=True):
        axes[i].stairs(100 * row, times, baseline=None, lw=1.4, **styles[method])
    for ax, title in zip(axes, shares, strict=True):
        ax.set(xlim=(0.0, times[-1]), ylim=(0.0, 103.0), title=title)
    line_legend(figure, {method: styles[method] for _, method, _ in rows})
    return figure


def utilisation(shares: Mapping[str, Array], slot_s: float, styles: Mapping[str, Look]) -> Figure:
    """Return shares of GPUs (0 to 1, by slot) over time: lines for few methods, a map with a row for each of many."""
    what = "GPUs in use [%]"
    if len(shares) <= FEW_LINES:
        return share_lines({"": shares}, slot_s, styles, 2.0, what)
    names = [label(method, 40) for method in shares]
    return time_map([100 * row for row in shares.values()], names, slot_s, what, 1.1 + 0.26 * len(names), most=100.0)


# ---------------------------------------------------------------- shares of jobs and cases


def share_line(ax: Axes, values: Array, start: float, end: float, style: Look) -> None:
    """Draw the share of `values` that are at most x as a stair from `start` to `end`; NaN and ∞ count as never."""
    known = np.sort(values[np.isfinite(values)])
    x = np.concatenate([[start], known, [end]])
    y = np.concatenate([np.arange(known.size + 1), [known.size]]) / max(values.size, 1)
    ax.step(x, y, where="post", **style)


def completion_cdf(times_s: Mapping[str, Array], styles: Mapping[str, Look]) -> Figure:
    """Return the share of jobs that have completed so many seconds after arrival (NaN: never), a line per method."""
    known = np.concatenate([t[np.isfinite(t)] for t in times_s.values()])
    end_s = float(known.max(initial=1e-9))
    wide = bool(known.size) and end_s > LOG_SPAN * float(np.median(known))
    # a logarithmic axis reads in the unit of its middle
    unit_s, unit = time_unit(math.sqrt(float(known.min()) * end_s) if wide else end_s)
    end = end_s / unit_s
    figure, ax = one_axes(3.1, f"completion time [{unit}]", "share of jobs completed", "both")
    for method, times in times_s.items():
        share_line(ax, times / unit_s, 0.0, 1.1 * end, styles[method])
    if wide:
        log_axis(ax, "x")
    start = float(known.min()) / unit_s / 1.1 if wide else 0.0
    ax.set(xlim=(start, (1.1 if wide else 1.02) * end), ylim=(0.0, 1.02))
    completion_legend(figure, times_s, styles)
    return figure


def completion_legend(figure: Figure, times_s: Mapping[str, Array], styles: Mapping[str, Look]) -> None:
    """Name each method, and how many of its jobs never complete."""
    never = {method: np.count_nonzero(~np.isfinite(times)) for method, times in times_s.items()}
    ends = {method: f" ({count} never)" for method, count in never.items() if count}
    line_legend(figure, {method: styles[method] for method in times_s}, ends=ends)


# ---------------------------------------------------------------- bars beside bounds


@dataclass(frozen=True)
class Group:
    """Values by method that one lower bound is about, and their name in the legend where there are several groups."""

    values: Mapping[str, float]
    bound: float | None
    name: str = ""


def beside_bounds(groups: Sequence[Group], xlabel: str, unit: float = 1.0) -> Figure:
    """Return a bar for each method, one group below the other, with its ratio to the group's lower bound."""
    names = [name for group in groups for name in group.values]
    figure, ax = one_axes(1.25 + 0.25 * len(names), xlabel, grid="x")
    first, end = 0, 1e-300
    handles: list[Any] = []
    for colour, group in zip(PALETTE, groups, strict=False):
        values = np.array(list(group.values.values())) / unit
        bound = group.bound / unit if group.bound else None
        texts = [number(v) + (f"  ({ratio(v / bound, True)})" if bound else "") for v in values.tolist()]
        last = first + len(values)
        bars = ax.barh(range(first, last), values, 0.62, color=colour)
        ax.bar_label(bars, texts, padding=4, fontsize=8, color=MUTED)
        end = max(end, *(v / (1.0 - LETTER * (len(t) + 2)) for v, t in zip(values, texts, strict=True)))
        handles += [Patch(color=colour, label=group.name)] if group.name else []
        if bound:
            # Of one group the line goes all the way, of several each has its own.
            margin = 0.5 if len(groups) == 1 else 0.45
            ax.plot([bound, bound], (first - margin, last - 1 + margin), color=INK, ls=DASHED)
        first = last
    listed_axis(ax, names)
    ax.set_xlim(0.0, end)
    ax.xaxis.set(major_locator=MaxNLocator(6), major_formatter=plain_number)
    if any(group.bound for group in groups):
        handles.append(Line2D([], [], color=INK, ls=DASHED, label="certified lower bound"))
    legend_below(figure, handles)
    return figure


def times_beside_bounds(groups: Sequence[Group], what: str) -> Figure:
    """Return bars of seconds beside bounds, in a unit that reads well."""
    unit_s, unit = time_unit(max(value for group in groups for value in group.values.values()))
    return beside_bounds(groups, f"{what} [{unit}]", unit_s)
