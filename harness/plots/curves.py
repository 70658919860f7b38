"""Curves over time and size that schedules and simulations share: completions, utilisation, prices, decision time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator
from numpy.typing import ArrayLike, NDArray

from schedgap.harness.plots.style import (
    DASHED,
    MUTED,
    PALETTE,
    heat_map,
    label,
    legend_below,
    log_axis,
    new_figure,
    one_axes,
    sparse_ticks,
    time_unit,
)
from schedgap.harness.text import number

Array = NDArray[np.float64]

MAX_LINES = len(PALETTE)
"""Lines of one figure; more could not be told apart."""

FEW_LINES = 4
"""Up to so many lines may cross often and still be followed; of more, a map has a row for each."""

COLUMNS = 180
"""Columns of a map over time, and points of a line; neighbouring slots are averaged."""

LOG_SPAN = 30.0
"""A time axis is logarithmic where the last completion is so many times the middle one."""

DASHES = ("-", DASHED, (0, (1, 1.2)))


def line_style(i: int) -> dict[str, Any]:
    """Return colour and dashes of the line number `i`: neighbours differ in both."""
    return {"color": PALETTE[i % len(PALETTE)], "ls": DASHES[i % len(DASHES)]}


# ---------------------------------------------------------------- completions


def completion_cdf(times_s: Mapping[str, Array]) -> Figure:
    """Return the share of jobs that have completed after so much time, a line per method.

    Parameters
    ----------
    times_s
        ``(n,)`` seconds from arrival to completion by method; NaN for jobs that never complete.
    """
    shown = dict(list(times_s.items())[:MAX_LINES])
    known = np.concatenate([t[np.isfinite(t)] for t in shown.values()])
    end_s = float(known.max(initial=1e-9))
    wide = bool(known.size) and end_s > LOG_SPAN * float(np.median(known))
    # a logarithmic axis reads in the unit of its middle
    unit_s, unit = time_unit(math.sqrt(float(known.min()) * end_s) if wide else end_s)
    figure, ax = one_axes(3.1)
    for i, times in enumerate(shown.values()):
        steps(ax, np.sort(times[np.isfinite(times)]) / unit_s, len(times), end_s / unit_s, i)
    ax.set(xlabel=f"completion time [{unit}]", ylabel="share of jobs completed", ylim=(0.0, 1.02))
    if wide:
        log_axis(ax, "x", number)
        ax.set_xlim(float(known.min()) / unit_s / 1.1, end_s / unit_s * 1.1)
    else:
        ax.set_xlim(0.0, end_s / unit_s * 1.02)
    ax.grid()
    line_legend(figure, [f"{label(m, 26)}{never(t)}" for m, t in shown.items()])
    return figure


def steps(ax: Axes, sorted_times: Array, jobs: int, end: float, i: int) -> None:
    """Draw the share of `jobs` that have completed by each time, as line number `i` up to a tenth beyond `end`."""
    x = np.concatenate([[0.0], sorted_times, [end * 1.1]])
    y = np.concatenate([np.arange(len(sorted_times) + 1), [len(sorted_times)]]) / max(jobs, 1)
    ax.step(x, y, where="post", lw=1.5, **line_style(i))


def never(times: Array) -> str:
    """Return how many jobs never complete, for a legend."""
    missing = int(np.count_nonzero(~np.isfinite(times)))
    return f" ({missing} never)" if missing else ""


def line_legend(figure: Figure, names: Sequence[str], columns: int = 3) -> None:
    """Put the names of lines 0, 1, … below all axes."""
    legend_below(figure, [Line2D([], [], lw=1.5, label=name, **line_style(i)) for i, name in enumerate(names)], columns)


# ---------------------------------------------------------------- utilisation


def utilisation(shares: Mapping[str, Array], slot_s: float, ylabel: str = "GPUs in use [%]") -> Figure:
    """Return a share over time, by default of GPUs in use: lines for few methods, a map with a row for each of many.

    Parameters
    ----------
    shares
        ``(slots,)`` by method, from 0 to 1; a method that is done earlier has fewer.
    slot_s
        Length of a slot in seconds.
    ylabel
        What is shared.
    """
    slots = max(len(values) for values in shares.values())
    unit_s, unit = time_unit(slots * slot_s)
    edges = np.linspace(0, slots, min(slots, COLUMNS) + 1)
    cells = np.array([averaged(values, edges) for values in shares.values()])
    names = [label(method, 30) for method in shares]
    times = edges * slot_s / unit_s
    draw = _utilisation_lines if len(shares) <= FEW_LINES else _utilisation_map
    return draw(names, cells, times, (f"time [{unit}]", ylabel))


def averaged(values: Array, edges: Array) -> Array:
    """Return the mean of a step function between `edges`, which are in slots; it is 0 after its end."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    integral = np.interp(edges, np.arange(len(total)), total)
    return np.asarray(np.diff(integral) / np.diff(edges))


def _utilisation_lines(names: Sequence[str], cells: Array, times: Array, axes: tuple[str, str]) -> Figure:
    figure, ax = one_axes(2.9)
    for i, row in enumerate(cells):
        ax.stairs(100 * row, times, baseline=None, lw=1.4, **line_style(i))
    ax.set(xlabel=axes[0], ylabel=axes[1], xlim=(0.0, times[-1]), ylim=(0.0, 103.0))
    ax.grid(axis="y")
    line_legend(figure, names)
    return figure


def _utilisation_map(names: Sequence[str], cells: Array, times: Array, axes: tuple[str, str]) -> Figure:
    figure, ax = one_axes(1.1 + 0.26 * len(names))
    image = heat_map(ax, 100 * cells, "viridis", Normalize(0.0, 100.0))
    sparse_ticks(ax, "y", names, len(names))
    _time_ticks(ax, times[-1], cells.shape[1])
    ax.set_xlabel(axes[0])
    figure.colorbar(image, ax=ax, label=axes[1], pad=0.02)
    return figure


def _time_ticks(ax: Axes, end: float, cells: int) -> None:
    """Label the x axis of a map of so many cells with times from 0 to `end`."""
    step = _round_step(end / 6)
    times = np.arange(0.0, end * (1 + 1e-9), step)
    ax.set_xticks(times / end * cells, [number(float(t)) for t in times])
    ax.tick_params(axis="x", length=2)


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2, 5 × a power of ten that is at least that."""
    power = 10.0 ** np.floor(np.log10(least))
    return float(next(m * power for m in (1, 2, 5, 10) if m * power >= least * (1 - 1e-9)))


# ---------------------------------------------------------------- prices


def price_heatmap(prices: Array, types: Sequence[str], slot_s: float, unit: str = "utility per GPU and slot") -> Figure:
    """Return the price of a GPU of each type over time as a map.

    Colours are logarithmic where positive prices differ a hundredfold; prices of 0 stay white then.

    Parameters
    ----------
    prices
        ``(k, T)``, 0 or more: duals of capacity, or a posted price.
    types
        Names of the types.
    slot_s
        Length of a slot in seconds.
    unit
        Unit of the prices.
    """
    count = prices.shape[1]
    edges = np.linspace(0, count, min(count, COLUMNS) + 1)
    cells = np.array([averaged(row, edges) for row in prices])
    positive = cells[cells > 0]
    wide = positive.size > 0 and positive.max() > 100 * positive.min()
    largest = float(positive.max(initial=0.0)) or 1.0
    norm = LogNorm(max(float(positive.min()), largest * 1e-9), largest) if wide else Normalize(0.0, largest)
    unit_s, name = time_unit(count * slot_s)
    figure = new_figure(1.3 + 0.35 * len(types))
    ax = figure.add_subplot()
    image = heat_map(ax, np.where(cells > 0, cells, np.nan) if wide else cells, "viridis", norm)
    sparse_ticks(ax, "y", [label(t, 14) for t in types], 20)
    _time_ticks(ax, count * slot_s / unit_s, cells.shape[1])
    ax.set_xlabel(f"time [{name}]")
    figure.colorbar(image, ax=ax, label=f"price\n[{unit}]", pad=0.02, format=lambda value, _: number(value))
    return figure


# ---------------------------------------------------------------- decision time


def fitted_exponent(jobs: ArrayLike, seconds: ArrayLike) -> float:
    """Return ``b`` of the least-squares fit ``seconds = a · jobs^b``; NaN with fewer than two sizes."""
    x, y = np.log(np.asarray(jobs, float)), np.log(np.asarray(seconds, float))
    spread = x - x.mean()
    return float(spread @ y / (spread @ spread)) if np.ptp(x) > 0 else float("nan")


def decision_time(
    points: Mapping[str, tuple[ArrayLike, ArrayLike]],
    limit_s: float | None = None,
    xlabel: str = "jobs",
    ylabel: str = "time per decision [s]",
) -> Figure:
    """Return seconds per decision against the number of jobs, both logarithmic, with fitted exponents.

    Parameters
    ----------
    points
        By method: numbers of jobs and positive seconds.
    limit_s
        A round or another limit, drawn as a line.
    xlabel, ylabel
        What is counted, and what takes the time.
    """
    figure, ax = one_axes(3.2)
    names = []
    for i, (method, (jobs, seconds)) in enumerate(list(points.items())[:MAX_LINES]):
        x, y = np.asarray(jobs, float), np.asarray(seconds, float)
        exponent = fitted_exponent(x, y)
        ax.plot(x, y, marker="o", markersize=4, lw=0.0, color=PALETTE[i % len(PALETTE)])
        if np.isfinite(exponent):
            ends = np.array([x.min(), x.max()])
            ax.plot(ends, np.exp(np.log(y).mean() + exponent * (np.log(ends) - np.log(x).mean())), **line_style(i))
        names.append(f"{label(method, 24)}: n^{exponent:.2f}" if np.isfinite(exponent) else label(method, 24))
    log_axis(ax, "y", lambda value: f"{value:g}")
    sizes = np.unique(np.concatenate([np.asarray(jobs, float) for jobs, _ in points.values()]))
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(sizes[:: -(-len(sizes) // 8)].tolist()))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(lambda value, _: number(value))
    if limit_s is not None:
        ax.axhline(limit_s, color=MUTED, lw=0.9)
        ax.annotate(f"{limit_s:g} s", (sizes[0], limit_s), (0, 3), textcoords="offset points", fontsize=8, color=MUTED)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.grid()
    line_legend(figure, names, 2)
    return figure
