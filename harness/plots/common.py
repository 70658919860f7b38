"""Figures that every paper has: gap, ratio against guarantee, solve time, bound over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from schedgap.harness.compare.row import Row
from schedgap.harness.figure import Drawn, figure
from schedgap.harness.plots.results import Compared
from schedgap.harness.plots.style import (
    DASHED,
    FAINT,
    INK,
    KIND_COLOURS,
    MUTED,
    PALETTE,
    label,
    legend_below,
    log_axis,
    note,
    one_axes,
    panels,
)
from schedgap.harness.text import number, percent, ratio, seconds

SHORTEST_S = 1e-4
"""Times below are drawn here: a logarithmic axis has no zero, and clocks blur what is shorter."""

MAX_TRACES = 6

FLAT = 1e-6
"""Relative range below which a trace is a flat line."""

BOX_FROM = 4
"""Least number of points of which a box says something."""

PITCH, DENSE_PITCH, MANY = 0.3, 0.22, 20
"""Height of a method's line in inches; lower where there are more methods than that."""

GUIDE = "#e8ecf0"
"""Faint lines that lead the eye from a method's name to its points."""


# ---------------------------------------------------------------- a line per method


@dataclass(frozen=True)
class Marks:
    """How the rows of a figure become points.

    Parameters
    ----------
    value
        Place on the x axis.
    hollow
        Whether the point is no exact value but an estimate or a limit.
    marker
        Its marker then: an arrow to the side where the truth may lie.
    names
        What solid and hollow points are called in the legend.
    text
        What stands beside a method's only point.
    """

    value: Callable[[Row], float]
    hollow: Callable[[Row], bool]
    marker: str
    names: tuple[str, str]
    text: Callable[[Row], str]


def by_method(
    rows: Sequence[Row], marks: Marks, xlabel: str, more: Sequence[Any] = ()
) -> tuple[Figure, Axes, dict[tuple[str, str], float]]:
    """Draw one line per method with its points, a box behind them where there are many; problems apart.

    Returns
    -------
    tuple
        Figure, axes, and the height of each line by problem and method; `more` handles end the legend.
    """
    lines: dict[tuple[str, str], list[Row]] = {}
    problems = list(dict.fromkeys(row.problem for row in rows))
    for row in sorted(rows, key=lambda row: problems.index(row.problem)):
        lines.setdefault((row.problem, row.method), []).append(row)
    # A problem's name takes the line above its methods, where there are several.
    headed = len(problems) > 1
    place = {line: float(i + headed * (problems.index(line[0]) + 1)) for i, line in enumerate(lines)}
    last = max(place.values())
    figure, ax = one_axes(1.35 + (PITCH if len(lines) <= MANY else DENSE_PITCH) * (last + 1))
    ax.hlines(list(place.values()), 0.0, 1.0, transform=ax.get_yaxis_transform(), color=GUIDE, lw=0.6, zorder=0)
    for line, mine in lines.items():
        _box(ax, place[line], [marks.value(row) for row in mine])
    _points(ax, {place[line]: mine for line, mine in lines.items()}, marks)
    if headed:
        _headings(ax, {problem: min(y for (p, _), y in place.items() if p == problem) - 1 for problem in problems})
    ax.set_yticks(list(place.values()), [label(method, 40) for _, method in place])
    ax.tick_params(axis="y", length=0, pad=8)
    ax.grid(axis="x")
    ax.set(xlabel=xlabel, ylabel="", ylim=(last + 0.6, -0.6))
    legend_below(figure, [*_legend(rows, marks), *more], columns=5)
    return figure, ax, place


def _headings(ax: Axes, places: Mapping[str, float]) -> None:
    """Write the name of each problem above its methods: gaps to different optima do not rank methods."""
    look = {"ha": "right", "va": "center", "fontsize": 8.5, "fontweight": "bold", "color": INK}
    for problem, y in places.items():
        short = label(problem.partition(".")[2] or problem, 30)
        note(ax, short, (0.0, y), (-8, 0), xycoords=ax.get_yaxis_transform(), **look)


def _box(ax: Axes, y: float, values: Sequence[float]) -> None:
    if len(values) >= BOX_FROM:
        look = {"color": "#eef1f4", "linecolor": MUTED, "linewidth": 0.8, "width": 0.66, "showfliers": False}
        where = {"x": values, "y": [y] * len(values), "orient": "h", "native_scale": True}
        sns.boxplot(**where, **look, medianprops={"color": INK, "linewidth": 1.2}, zorder=1, ax=ax)


def _points(ax: Axes, groups: Mapping[float, Sequence[Row]], marks: Marks) -> None:
    """Draw all points of one look at once: artists, not points, are what drawing takes its time for."""
    looks: dict[tuple[str, bool, bool], list[tuple[float, float]]] = {}
    for y, group in groups.items():
        alone = len(group) == 1
        for row, offset in zip(group, jitter(len(group), 0.42).tolist(), strict=True):
            look = (KIND_COLOURS.get(row.kind, MUTED), marks.hollow(row), alone)
            looks.setdefault(look, []).append((marks.value(row), y + offset))
        if alone:
            place = (marks.value(group[0]), y)
            note(ax, marks.text(group[0]), place, (7, 0), va="center")
    for (colour, hollow, alone), points in looks.items():
        shape = _marker(marks, hollow, colour)
        ax.plot(*zip(*points, strict=True), **shape, ms=6.5 if alone else 4.5, mew=1.2, clip_on=False, zorder=3)


def jitter(count: int, width: float) -> NDArray[np.floating]:
    """Return `count` offsets within ± `width`/2 that spread evenly (golden section), the same every time."""
    return width * ((0.5 + np.arange(count) * 0.6180339887498949) % 1.0 - 0.5)


def _legend(rows: Sequence[Row], marks: Marks) -> list[Line2D]:
    """Return handles for the kinds of methods and for the two markers, as far as they occur."""
    kinds = [kind for kind in KIND_COLOURS if any(row.kind == kind for row in rows)]
    handles = [Line2D([], [], ls="", marker="s", color=KIND_COLOURS[kind], label=kind) for kind in kinds]
    shapes = sorted({marks.hollow(row) for row in rows})
    return handles + [Line2D([], [], label=marks.names[shape], **_marker(marks, shape, INK)) for shape in shapes]


def _marker(marks: Marks, hollow: bool, colour: str) -> dict[str, Any]:
    look = {"marker": marks.marker, "mfc": "white"} if hollow else {"marker": "o", "mfc": colour}
    return {"ls": "", "mec": colour, **look}


# ---------------------------------------------------------------- gap, ratio, time


def _estimate(row: Row) -> bool:
    return row.ratio_is_upper is not False


GAP = Marks(
    value=lambda row: 100.0 * (row.gap or 0.0),
    hollow=_estimate,
    marker="<",
    names=("optimum proved", "upper estimate"),
    text=lambda row: ("≤ " if _estimate(row) else "") + percent(row.gap, up=_estimate(row)),
)


@figure("gap", "Gap by method")
def gap(data: Compared) -> Drawn:
    """Gap |bound − objective| / |bound| in per cent, by method.

    Discs: the optimum is proved. Triangles: the optimum is not proved, so the true gap is at most this.
    """
    rows = [row for row in data.rows if row.certified]
    if not rows:
        return None
    canvas, ax, _ = by_method(rows, GAP, "gap to the best certified bound [%]")
    largest = max(map(GAP.value, rows))
    if largest > 200.0:
        ax.set_xscale("symlog", linthresh=10.0)
        ax.xaxis.set_major_formatter(lambda value, _: number(value))
    ax.set_xlim(0.0, 1.1 * largest if largest > 0 else 1.0)
    several = len({row.problem for row in rows}) > 1
    apart = "Problems (bold) have bounds of their own and are not comparable with one another. " if several else ""
    return canvas, apart + data.sample(rows)


RATIO = Marks(
    value=lambda row: row.ratio or 1.0,
    hollow=_estimate,
    marker="<",
    names=("measured, optimum proved", "measured, upper estimate"),
    text=lambda row: ratio(row.ratio, row.ratio_is_upper),
)


@figure("ratio", "Ratio against guarantee")
def guarantees(data: Compared) -> Drawn:
    """Ratio to the optimum (1 is optimal), by method, beside the paper's worst-case guarantee.

    Upright bars: the guarantee on the same instance.
    """
    rows = [row for row in data.rows if row.certified and row.ratio is not None and row.guarantee_factor is not None]
    if not rows:
        return None
    key = Line2D([], [], color=INK, lw=1.8, label="guarantee")
    canvas, ax, heights = by_method(rows, RATIO, "ratio to the optimum [1 = optimal]", [key])
    limits = [row.guarantee_factor or 1.0 for row in rows]
    for row, limit in zip(rows, limits, strict=True):
        y = heights[row.problem, row.method]
        ax.barh(y, limit - 1.0, left=1.0, height=0.5, color=FAINT, alpha=0.35, zorder=0)
        ax.plot([limit, limit], [y - 0.3, y + 0.3], color=INK, lw=1.8, solid_capstyle="butt")
    largest = max(*limits, *map(RATIO.value, rows))
    if largest > 8.0:
        log_axis(ax, "x")
    ax.set_xlim(1.0 if largest > 8.0 else 1.0 - 0.01 * (largest - 1.0), largest * 1.05)
    return canvas, data.sample(rows)


TIME = Marks(
    value=lambda row: max(row.solve_s or 0.0, SHORTEST_S),
    hollow=lambda row: row.status.startswith("time limit"),
    marker=">",
    names=("finished", "stopped by the time limit"),
    text=lambda row: seconds(row.solve_s),
)


def timed(row: Row) -> bool:
    """Return whether the row's solve time counts."""
    return row.solve_s is not None and row.status != "skipped" and not (row.wrong or row.failed)


@figure("time", "Solve time by method")
def times(data: Compared) -> Drawn:
    """Time in the solver or heuristic in seconds, by method, on a logarithmic axis."""
    rows = [row for row in data.rows if timed(row)]
    if not rows:
        return None
    canvas, ax, _ = by_method(rows, TIME, "solve time [s]")
    log_axis(ax, "x", "{:g}".format)
    values = [TIME.value(row) for row in rows]
    ax.set_xlim(10 ** np.floor(np.log10(min(values))), 10 ** np.ceil(np.log10(max(values) * 1.6)))
    return canvas, data.sample(rows)


# ---------------------------------------------------------------- bound over time


@figure("traces", "Bound over time", of="instance")
def traces(data: Compared) -> Drawn:
    """Best objective found (incumbent) and certified bound over time in seconds; the area between them is the gap."""
    known = _traces(data)
    if not known:
        return None
    shown = dict(list(known.items())[:MAX_TRACES])
    columns = 2 if len(shown) in (2, 4) else 3
    canvas, axes = panels(len(shown), 1.9, columns, "time [s]", "objective")
    for ax, (method, points) in zip(axes, shown.items(), strict=True):
        _trace(ax, method, points)
    handles = [
        Line2D([], [], color=PALETTE[0], label="incumbent"),
        Line2D([], [], color=PALETTE[3], ls=DASHED, label="bound"),
        Line2D([], [], color=FAINT, lw=7, label="gap"),
    ]
    legend_below(canvas, handles)
    count = len(known)
    chosen = f"The {MAX_TRACES} that took longest of n = {count}" if count > MAX_TRACES else f"n = {count}"
    return canvas, f"{chosen} solve{'s' * (count != 1)} on {data.where}."


def _traces(data: Compared) -> dict[str, list[Mapping[str, Any]]]:
    """Return the traces by method that have at least two points, those that took longest first."""
    known = {row.method: row for row in data.rows if not row.wrong}
    names = {row.name for row in known.values()}
    found: dict[str, list[Mapping[str, Any]]] = {}
    for point in data.run.traces:
        if (point["fingerprint"], point["method"], point["seed"], point["limits"]) in names:
            found.setdefault(point["method"], []).append(point)
    kept = {m: sorted(points, key=lambda p: p["time_s"]) for m, points in found.items() if len(points) > 1}
    return dict(sorted(kept.items(), key=lambda item: -item[1][-1]["time_s"]))


def _trace(ax: Axes, method: str, points: Sequence[Mapping[str, Any]]) -> None:
    columns = [[point.get(name) for point in points] for name in ("time_s", "incumbent", "bound")]
    time, incumbent, bound = np.array(columns, float)  # None becomes NaN
    ax.fill_between(time, incumbent, bound, step="post", color=FAINT, alpha=0.8, lw=0)
    ax.step(time, incumbent, where="post", color=PALETTE[0], marker="." if len(time) <= 40 else "")
    ax.step(time, bound, where="post", color=PALETTE[3], ls=DASHED)
    last = abs(bound[-1] - incumbent[-1]) / abs(bound[-1]) if bound[-1] else np.nan
    known = np.isfinite(last)
    end = f"gap {percent(float(last), up=True)} after {seconds(float(time[-1]))}" if known else "gap unknown"
    ax.set_title(f"{label(method, 30)}\n{end}")
    ax.set_xlim(0.0, time[-1] or 1.0)
    ax.yaxis.set_major_formatter(lambda value, _: number(value, 5))
    values = np.concatenate([incumbent, bound])
    values = values[np.isfinite(values)]
    if values.size and np.ptp(values) <= FLAT * np.abs(values).max():
        # An axis of rounding errors would show a gap where there is none.
        middle, room = values.mean(), 0.05 * abs(values.mean()) + 1e-9
        ax.set_ylim(middle - room, middle + room)
    ax.grid(axis="y")
