"""Pieces of several figures: shares of jobs and cases, curves over time, maps of prices, bars beside bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from schedgap.harness.plots.style import (
    DASHED,
    INK,
    MUTED,
    PALETTE,
    Look,
    heat_map,
    label,
    legend_below,
    line_legend,
    listed_axis,
    log_axis,
    looks,
    one_axes,
    sparse_ticks,
    time_unit,
    wide_norm,
)
from schedgap.harness.text import number, ratio
from schedgap.instances.arrays import Array

FEW_LINES = 4
"""Up to this many lines may cross often and still be followed; of more, a map has a row for each."""

COLUMNS = 180
"""Columns of a map over time, and points of a line; neighbouring slots are averaged."""

LOG_SPAN = 30.0
"""A time axis is logarithmic where the last completion is this many times the middle one."""

LETTER = 0.0135
"""Part of the axes' width that a letter beside a bar takes."""


# ---------------------------------------------------------------- shares of jobs and cases


def share_line(ax: Axes, values: Array, start: float, end: float, style: Look) -> None:
    """Draw the share of `values` that are at most x as a stair from `start` to `end`; NaN and ∞ count as never."""
    known = np.sort(values[np.isfinite(values)])
    x = np.concatenate([[start], known, [end]])
    y = np.concatenate([np.arange(known.size + 1), [known.size]]) / max(values.size, 1)
    ax.step(x, y, where="post", **style)


def completion_cdf(times_s: Mapping[str, Array], styles: Mapping[str, Look] | None = None) -> Figure:
    """Return the share of jobs that have completed after a time, a line per method.

    Parameters
    ----------
    times_s
        ``(n,)`` seconds from arrival to completion by method; NaN for jobs that never complete.
    styles
        Look of each line.
    """
    styles = styles or looks(times_s)
    known = np.concatenate([t[np.isfinite(t)] for t in times_s.values()])
    end_s = float(known.max(initial=1e-9))
    wide = bool(known.size) and end_s > LOG_SPAN * float(np.median(known))
    # a logarithmic axis reads in the unit of its middle
    unit_s, unit = time_unit(math.sqrt(float(known.min()) * end_s) if wide else end_s)
    end = end_s / unit_s
    figure, ax = one_axes(3.1)
    for method, times in times_s.items():
        share_line(ax, times / unit_s, 0.0, 1.1 * end, styles[method])
    ax.set(xlabel=f"completion time [{unit}]", ylabel="share of jobs completed", ylim=(0.0, 1.02))
    if wide:
        log_axis(ax, "x")
    ax.set_xlim((float(known.min()) / unit_s / 1.1, 1.1 * end) if wide else (0.0, 1.02 * end))
    ax.grid()
    line_legend(figure, completed(times_s, styles))
    return figure


def completed(times_s: Mapping[str, Array], styles: Mapping[str, Look]) -> dict[str, Look]:
    """Return the entries of a legend: each method, and how many of its jobs never complete."""
    never = {method: int(np.count_nonzero(~np.isfinite(times))) for method, times in times_s.items()}
    return {label(m, 30) + (f" ({count} never)" if count else ""): styles[m] for m, count in never.items()}


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


def utilisation(
    shares: Mapping[str, Array],
    slot_s: float,
    styles: Mapping[str, Look] | None = None,
    ylabel: str = "GPUs in use [%]",
) -> Figure:
    """Return a share over time: lines for few methods, a map with a row for each of many.

    Parameters
    ----------
    shares
        ``(slots,)`` by method, from 0 to 1; a method that is done earlier has fewer.
    slot_s
        Length of a slot in seconds.
    styles
        Look of each line.
    ylabel
        What is shared.
    """
    cells, times, xlabel = time_cells(list(shares.values()), slot_s)
    if len(shares) > FEW_LINES:
        figure, ax = one_axes(1.1 + 0.26 * len(shares))
        image = heat_map(ax, 100 * cells, Normalize(0.0, 100.0))
        sparse_ticks(ax, "y", [label(method, 40) for method in shares], len(shares))
        time_ticks(ax, times[-1], cells.shape[1])
        ax.set_xlabel(xlabel)
        figure.colorbar(image, ax=ax, label=ylabel, pad=0.02)
        return figure
    figure, ax = one_axes(2.9)
    styles = styles or looks(shares)
    share_stairs(ax, dict(zip(shares, cells, strict=True)), times, styles)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    line_legend(figure, {label(method, 30): styles[method] for method in shares})
    return figure


def share_stairs(ax: Axes, rows: Mapping[str, Array], times: Array, styles: Mapping[str, Look]) -> None:
    """Draw shares between times, in per cent."""
    for method, row in rows.items():
        ax.stairs(100 * row, times, baseline=None, lw=1.4, **styles[method])
    ax.set(xlim=(0.0, times[-1]), ylim=(0.0, 103.0))
    ax.grid(axis="y")


def time_ticks(ax: Axes, end: float, cells: int) -> None:
    """Label the x axis of a map of so many cells with times from 0 to `end`."""
    times = np.asarray(MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(0.0, end))
    times = times[(times >= 0) & (times <= end * (1 + 1e-9))]
    ax.set_xticks(times / end * cells, [number(float(t)) for t in times])
    ax.tick_params(axis="x", length=2)


def price_map(prices: Array, names: Sequence[str], slot_s: float, unit: str = "utility per GPU and slot") -> Figure:
    """Return prices over time as a map; colours are logarithmic, and 0 white, where they differ a hundredfold.

    Parameters
    ----------
    prices
        ``(k, T)``, 0 or more: duals of capacity, or a posted price.
    names
        Names of the rows.
    slot_s
        Length of a slot in seconds.
    unit
        Unit of the prices.
    """
    cells, times, xlabel = time_cells(list(prices), slot_s)
    shown, norm = wide_norm(cells)
    figure, ax = one_axes(1.3 + max(0.35 * len(names), LETTER * 5 * len(unit)))
    image = heat_map(ax, shown, norm)
    sparse_ticks(ax, "y", [label(name, 16) for name in names], 20)
    time_ticks(ax, times[-1], cells.shape[1])
    ax.set_xlabel(xlabel)
    figure.colorbar(image, ax=ax, label=f"price\n[{unit}]", pad=0.02, format=lambda value, _: number(value))
    return figure


# ---------------------------------------------------------------- bars beside bounds


@dataclass(frozen=True)
class Group:
    """Methods that one bound is about.

    Attributes
    ----------
    values
        By method.
    bound
        What none of them gets below, if that is known.
    name
        What they have in common, for the legend; empty where there is one group.
    """

    values: Mapping[str, float]
    bound: float | None
    name: str = ""


def beside_bounds(groups: Sequence[Group], xlabel: str) -> Figure:
    """Return a bar for each method, one group below the other, with its ratio to the group's lower bound.

    Parameters
    ----------
    groups
        Methods with their values, and bounds in the same unit.
    xlabel
        What the values are, with their unit.
    """
    names = [name for group in groups for name in group.values]
    figure, ax = one_axes(1.25 + 0.25 * len(names))
    first, end = 0, 1e-300
    for colour, group in zip(PALETTE, groups, strict=False):
        bars = ax.barh(range(first, first + len(group.values)), list(group.values.values()), 0.62, color=colour)
        texts = [_beside(value, group.bound) for value in group.values.values()]
        ax.bar_label(bars, texts, padding=4, fontsize=8, color=MUTED)
        room = [v / (1.0 - LETTER * (len(t) + 2)) for v, t in zip(group.values.values(), texts, strict=True)]
        end, last = max(end, *room), first + len(group.values)
        if group.bound:
            # Of one group the line goes all the way, of several each has its own.
            margin = 0.5 if len(groups) == 1 else 0.45
            ax.plot([group.bound] * 2, (first - margin, last - 1 + margin), color=INK, ls=DASHED)
        first = last
    listed_axis(ax, names)
    ax.set(xlim=(0.0, end), xlabel=xlabel)
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.xaxis.set_major_formatter(lambda value, _: number(value))
    ax.grid(axis="x")
    named = [Patch(color=c, label=g.name) for c, g in zip(PALETTE, groups, strict=False) if g.name]
    bound = Line2D([], [], color=INK, ls=DASHED, label="certified lower bound")
    legend_below(figure, [*named, bound] if any(group.bound for group in groups) else named)
    return figure


def _beside(value: float, bound: float | None) -> str:
    return number(value) + (f"  ({ratio(value / bound, True)})" if bound else "")


def times_beside_bounds(groups: Sequence[Group], what: str) -> Figure:
    """Return bars of seconds beside bounds, in a unit that reads well."""
    unit_s, unit = time_unit(max(value for group in groups for value in group.values.values()))
    scaled = [
        Group({name: value / unit_s for name, value in g.values.items()}, g.bound / unit_s if g.bound else None, g.name)
        for g in groups
    ]
    return beside_bounds(scaled, f"{what} [{unit}]")
