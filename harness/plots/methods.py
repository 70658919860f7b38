"""One line per method with its points: the form of the figures of gaps, ratios and times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from schedgap.harness.compare.row import Row
from schedgap.harness.plots.style import INK, KIND_COLOURS, MUTED, jitter, label, legend_below, one_axes

BOX_FROM = 4
"""A box says something from so many points on."""

PITCH, DENSE_PITCH, MANY = 0.3, 0.22, 20
"""Height of a method's line in inches; lower where there are more than so many."""

GUIDE = "#e8ecf0"
"""Faint lines that lead the eye from a method's name to its points."""


@dataclass(frozen=True)
class Marks:
    """How the rows of a figure become points.

    Parameters
    ----------
    value
        Place on the x axis.
    hollow
        Whether the point is no exact value but an estimate or a limit.
    hollow_marker
        Its marker: an arrow to the side where the truth may lie.
    solid_name, hollow_name
        Their names in the legend.
    text
        What stands beside a method's only point.
    """

    value: Callable[[Row], float]
    hollow: Callable[[Row], bool]
    hollow_marker: str
    solid_name: str
    hollow_name: str
    text: Callable[[Row], str]


def by_method(rows: Sequence[Row], marks: Marks, xlabel: str) -> tuple[Figure, Axes, dict[tuple[str, str], float]]:
    """Draw one line per method with its points, a box behind them where there are many; problems apart.

    Returns
    -------
    tuple
        Figure, axes, and the height of each line by problem and method.
    """
    problems = list(dict.fromkeys(row.problem for row in rows))
    methods = [
        (problem, method)
        for problem in problems
        for method in dict.fromkeys(row.method for row in rows if row.problem == problem)
    ]
    groups = [[row for row in rows if (row.problem, row.method) == line] for line in methods]
    places = _places(methods, len(problems) > 1)
    figure, ax = one_axes(1.35 + (PITCH if len(methods) <= MANY else DENSE_PITCH) * (places[-1] + 1))
    ax.hlines(places, 0.0, 1.0, transform=ax.get_yaxis_transform(), color=GUIDE, lw=0.6, zorder=0)
    _boxes(ax, places, groups, marks)
    _points(ax, places, groups, marks)
    ax.set_yticks(places, [label(method, 34) for _, method in methods])
    ax.set_ylim(places[-1] + 0.6, -0.6)
    if len(problems) > 1:
        _problems(ax, methods, places)
    ax.tick_params(axis="y", length=0, pad=8)
    ax.grid(axis="x")
    ax.set(xlabel=xlabel, ylabel="")
    legend_below(figure, _legend(rows, marks), columns=5)
    return figure, ax, dict(zip(methods, places, strict=True))


def _places(methods: Sequence[tuple[str, str]], headed: bool) -> list[float]:
    """Return the height of each line; a problem's name takes the line above its methods, where there are several."""
    places, y, last = [], -1.0, None
    for problem, _ in methods:
        y += 1.0 + (headed and problem != last)
        places.append(y)
        last = problem
    return places


def _problems(ax: Axes, methods: Sequence[tuple[str, str]], places: Sequence[float]) -> None:
    """Write the name of each problem above its methods: gaps to different optima do not rank methods."""
    first: dict[str, float] = {}
    for (problem, _), y in zip(methods, places, strict=True):
        first.setdefault(problem, y - 1.0)
    for problem, y in first.items():
        short = problem.partition(".")[2] or problem
        ax.annotate(
            label(short, 30),
            (0.0, y),
            (-8, 0),
            xycoords=ax.get_yaxis_transform(),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=8.5,
            fontweight="bold",
        )


def _boxes(ax: Axes, places: Sequence[float], groups: Sequence[Sequence[Row]], marks: Marks) -> None:
    for y, group in zip(places, groups, strict=True):
        if len(group) >= BOX_FROM:
            values = [marks.value(row) for row in group]
            ax.boxplot(
                values,
                positions=[y],
                orientation="horizontal",
                widths=0.66,
                showfliers=False,
                manage_ticks=False,
                patch_artist=True,
                boxprops={"facecolor": "#eef1f4", "edgecolor": MUTED, "linewidth": 0.8},
                medianprops={"color": INK, "linewidth": 1.2},
                whiskerprops={"color": MUTED, "linewidth": 0.8},
                capprops={"color": MUTED, "linewidth": 0.8},
                zorder=1,
            )


def _points(ax: Axes, places: Sequence[float], groups: Sequence[Sequence[Row]], marks: Marks) -> None:
    """Draw all points of one look at once: artists, not points, are what drawing takes its time for."""
    looks: dict[tuple[str, bool, bool], list[tuple[float, float]]] = {}
    for y, group in zip(places, groups, strict=True):
        for row, offset in zip(group, jitter(len(group), 0.42), strict=True):
            look = (KIND_COLOURS.get(row.kind, MUTED), marks.hollow(row), len(group) == 1)
            looks.setdefault(look, []).append((marks.value(row), y + offset))
    for (colour, hollow, alone), points in looks.items():
        x, y_ = zip(*points, strict=True)
        ax.plot(
            x,
            y_,
            ls="",
            marker=marks.hollow_marker if hollow else "o",
            markersize=6.5 if alone else 4.5,
            markerfacecolor="white" if hollow else colour,
            markeredgecolor=colour,
            markeredgewidth=1.2,
            clip_on=False,
            zorder=3,
        )
    for y, group in zip(places, groups, strict=True):
        if len(group) == 1:
            place, text = (marks.value(group[0]), y), marks.text(group[0])
            ax.annotate(text, place, (7, 0), textcoords="offset points", va="center", fontsize=8, color=MUTED)


def _legend(rows: Sequence[Row], marks: Marks) -> list[Line2D]:
    """Return handles for the kinds of methods and for the two markers, as far as they occur."""
    kinds = [kind for kind in KIND_COLOURS if any(row.kind == kind for row in rows)]
    handles = [Line2D([], [], ls="", marker="s", color=KIND_COLOURS[kind], label=kind) for kind in kinds]
    hollow = {marks.hollow(row) for row in rows}
    if False in hollow:
        handles.append(Line2D([], [], ls="", marker="o", color=INK, label=marks.solid_name))
    if True in hollow:
        shape = marks.hollow_marker
        handles.append(Line2D([], [], ls="", marker=shape, color=INK, mfc="white", label=marks.hollow_name))
    return handles
