"""Bars of methods beside what is proved about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from schedgap.harness.plots.style import DASHED, INK, MUTED, PALETTE, label, legend_below, one_axes
from schedgap.harness.text import number, ratio

LETTER = 0.0135
"""Part of the axes' width that a letter beside a bar takes."""


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
    bound_name
        What the bound is, for the legend.
    """

    values: Mapping[str, float]
    bound: float | None
    name: str = ""
    bound_name: str = "certified lower bound"


def beside_bounds(groups: Sequence[Group], xlabel: str) -> Figure:
    """Return a bar for each method, one group below the other, with its ratio to the group's lower bound.

    Parameters
    ----------
    groups
        Methods with their values, and bounds in the same unit.
    xlabel
        What the values are, with their unit.
    """
    figure, ax = one_axes(1.25 + 0.25 * sum(len(group.values) for group in groups))
    names: list[str] = []
    end = 1e-300
    handles: list[Patch | Line2D] = []
    for i, group in enumerate(groups):
        first = len(names)
        names += list(group.values)
        places = range(first, len(names))
        ax.barh(places, list(group.values.values()), 0.62, color=PALETTE[i])
        for y, value in zip(places, group.values.values(), strict=True):
            beside = f"  ({ratio(value / group.bound, True)})" if group.bound else ""
            text, where = f"{number(value)}{beside}", (value, y)
            end = max(end, value / (1.0 - LETTER * (len(text) + 2)))
            ax.annotate(text, where, (4, 0), textcoords="offset points", va="center", fontsize=8, color=MUTED)
        if group.name:
            handles.append(Patch(color=PALETTE[i], label=group.name))
        if group.bound:
            # Of one group the line goes all the way, of several each has its own.
            ends = (-0.5, len(names) - 0.5) if len(groups) == 1 else (first - 0.45, len(names) - 0.55)
            ax.plot([group.bound] * 2, ends, color=INK, lw=1.4, ls=DASHED)
    bounds = dict.fromkeys(group.bound_name for group in groups if group.bound)
    handles += [Line2D([], [], color=INK, ls=DASHED, label=name) for name in bounds]
    ax.set_yticks(range(len(names)), [label(name, 34) for name in names])
    ax.set(ylim=(len(names) - 0.5, -0.5), xlim=(0.0, end), xlabel=xlabel)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.xaxis.set_major_formatter(lambda value, _: number(value))
    ax.grid(axis="x")
    legend_below(figure, handles)
    return figure
