"""Figures that every paper has: gaps, ratios, times and bounds of an instance; profiles and scaling over many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator
from numpy.typing import NDArray

from schedgap.harness.compare.row import Row
from schedgap.harness.compare.solvers import cases, proof
from schedgap.harness.compare.summary import Measure, profiles
from schedgap.harness.figure import Drawn, figure
from schedgap.harness.plots import style
from schedgap.harness.plots.results import Compared, counted, some
from schedgap.harness.plots.style import INK, KIND_COLOURS, MAX_LINES, MUTED, Look, label, looks, one_axes, panels
from schedgap.harness.text import number, percent, ratio, seconds
from schedgap.instances.arrays import Array

SHORTEST_S = 1e-4
"""Times below are drawn here: a logarithmic axis has no zero, and clocks blur what is shorter."""

MAX_TRACES = 6

FLAT = 1e-6
"""Relative range below which a trace is a flat line."""

BOX_FROM = 4
"""Least number of points of which a box says something."""

BOX: dict[str, Any] = {
    "color": "#eef1f4",
    "linecolor": MUTED,
    "linewidth": 0.8,
    "width": 0.66,
    "showfliers": False,
    "zorder": 1,
    "medianprops": {"color": INK, "linewidth": 1.2},
}

PITCH, DENSE_PITCH, MANY = 0.3, 0.22, 20
"""Height of a method's line in inches; lower where there are more methods than that."""

GUIDE = "#e8ecf0"
"""Faint lines that lead the eye from a method's name to its points."""

MOST_PANELS = 4
"""Problems in one figure of profiles, those with the most results first."""

SIZES = 3
"""Least number of different sizes over which a curve has a meaning."""


# ---------------------------------------------------------------- a line per method


@dataclass(frozen=True)
class Marks:
    """How the rows of a figure become points.

    Points at `value` are hollow where that is an estimate or a limit, with an arrow (`marker`) to the side of the
    truth; `names` are those of solid and hollow points, `text` stands beside a method's only point.
    """

    value: Callable[[Row], float]
    hollow: Callable[[Row], bool]
    marker: str
    names: tuple[str, str]
    text: Callable[[Row], str]

    def look(self, hollow: bool, colour: str) -> dict[str, Any]:
        """Return how a point is drawn."""
        shape = {"marker": self.marker, "mfc": "white"} if hollow else {"marker": "o", "mfc": colour}
        return {"ls": "", "mec": colour, **shape}


def by_method(
    rows: Sequence[Row], marks: Marks, xlabel: str, more: Sequence[Any] = ()
) -> tuple[Figure, Axes, pd.Series[Any]]:
    """Draw one line per method with its points, a box behind them where there are many; problems apart.

    Also return the height of each line by problem and method; `more` handles end the legend.
    """
    problems = list(dict.fromkeys(row.problem for row in rows))
    values = [(r.problem, r.method, r.kind, marks.value(r), marks.hollow(r), marks.text(r)) for r in rows]
    points = pd.DataFrame(values, columns=["problem", "method", "kind", "value", "hollow", "text"])
    points = points.sort_values("problem", key=lambda names: names.map(problems.index), kind="stable")
    lines = points.groupby(["problem", "method"], sort=False)
    # A problem's name takes the line above its methods, where there are several.
    headed = len(problems) > 1
    y = lines.ngroup() + headed * (points["problem"].map(problems.index) + 1.0)
    points = points.assign(y=y, at=y + jitter(lines.cumcount(), 0.42), alone=lines["value"].transform("size") == 1)
    heights = points.groupby(["problem", "method"], sort=False)["y"].first()
    pitch = PITCH if len(heights) <= MANY else DENSE_PITCH
    canvas, ax = one_axes(1.35 + pitch * (y.max() + 1), grid="x")
    ax.hlines(heights, 0.0, 1.0, transform=ax.get_yaxis_transform(), color=GUIDE, lw=0.6, zorder=0)
    _points(ax, points, marks)
    # Gaps to different optima do not rank methods, so each problem has its heading.
    bold = {"ha": "right", "va": "center", "fontsize": 8.5, "fontweight": "bold", "color": INK}
    for problem in problems if headed else ():
        short, place = label(problem.partition(".")[2] or problem, 30), (0.0, heights[problem].min() - 1)
        style.note(ax, short, place, (-8, 0), xycoords=ax.get_yaxis_transform(), **bold)
    ax.set_yticks(heights, [label(method, 40) for _, method in heights.index])
    ax.tick_params(axis="y", length=0, pad=8)
    ax.set(xlabel=xlabel, ylabel="", ylim=(y.max() + 0.6, -0.6))
    kinds = [kind for kind in KIND_COLOURS if kind in set(points["kind"])]
    handles = [Line2D([], [], ls="", marker="s", color=KIND_COLOURS[kind], label=kind) for kind in kinds]
    shapes = sorted(set(points["hollow"].tolist()))
    handles += [Line2D([], [], label=marks.names[shape], **marks.look(shape, INK)) for shape in shapes]
    style.legend_below(canvas, [*handles, *more], columns=5)
    return canvas, ax, heights


def _points(ax: Axes, points: pd.DataFrame, marks: Marks) -> None:
    """Draw all points of one look at once: artists, not points, are what drawing takes its time for."""
    for _, mine in points.groupby("y"):
        if len(mine) >= BOX_FROM:
            sns.boxplot(mine, x="value", y="y", orient="h", native_scale=True, ax=ax, **BOX)
    for (kind, hollow, alone), mine in points.groupby(["kind", "hollow", "alone"], sort=False):
        look = marks.look(bool(hollow), KIND_COLOURS.get(str(kind), MUTED))
        ax.plot(mine["value"], mine["at"], **look, ms=6.5 if alone else 4.5, mew=1.2, clip_on=False, zorder=3)
    for text, x, y in points.loc[points["alone"], ["text", "value", "y"]].itertuples(index=False):
        style.note(ax, text, (x, y), (7, 0), va="center")


def jitter(places: NDArray[np.integer] | pd.Series[int], width: float) -> Any:
    """Return offsets of 0, 1, … within ± `width`/2 that spread evenly (golden section), the same every time."""
    return width * ((0.5 + places * 0.6180339887498949) % 1.0 - 0.5)


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
    rows = some([row for row in data.rows if row.certified])
    canvas, ax, _ = by_method(rows, GAP, "gap to the best certified bound [%]")
    largest = max(map(GAP.value, rows))
    if largest > 200.0:
        ax.set_xscale("symlog", linthresh=10.0)
        ax.xaxis.set_major_formatter(style.plain_number)
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
    promised = (row for row in data.rows if row.certified and row.guarantee_factor is not None)
    rows = some([row for row in promised if row.ratio is not None])
    key = Line2D([], [], color=INK, lw=1.8, label="guarantee")
    canvas, ax, heights = by_method(rows, RATIO, "ratio to the optimum [1 = optimal]", [key])
    limits = [row.guarantee_factor or 1.0 for row in rows]
    for row, limit in zip(rows, limits, strict=True):
        y = heights[row.problem, row.method]
        ax.barh(y, limit - 1.0, left=1.0, height=0.5, color=style.FAINT, alpha=0.35, zorder=0)
        ax.plot([limit, limit], [y - 0.3, y + 0.3], color=INK, lw=1.8, solid_capstyle="butt")
    largest = max(*limits, *map(RATIO.value, rows))
    if largest > 8.0:
        style.log_axis(ax, "x")
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
    rows = some([row for row in data.rows if timed(row)])
    canvas, ax, _ = by_method(rows, TIME, "solve time [s]")
    style.log_axis(ax, "x", "{x:g}")
    values = [TIME.value(row) for row in rows]
    ax.set_xlim(10 ** np.floor(np.log10(min(values))), 10 ** np.ceil(np.log10(max(values) * 1.6)))
    return canvas, data.sample(rows)


# ---------------------------------------------------------------- bound over time


@figure("traces", "Bound over time", of="instance")
def traces(data: Compared) -> Drawn:
    """Best objective found (incumbent) and certified bound over time in seconds; the area between them is the gap."""
    names = {row.method: row.name for row in data.rows if not row.wrong}.values()
    keys = ("fingerprint", "method", "seed", "limits")
    points = pd.DataFrame(some([p for p in data.run.traces if tuple(p[key] for key in keys) in names]))
    solves = [(m, mine.sort_values("time_s", kind="stable")) for m, mine in points.groupby("method", sort=False)]
    known = some([(str(m), mine) for m, mine in solves if len(mine) > 1])
    shown = sorted(known, key=lambda item: -item[1]["time_s"].iloc[-1])[:MAX_TRACES]
    columns = 2 if len(shown) in (2, 4) else 3
    canvas, axes = panels(len(shown), 1.9, columns, "time [s]", "objective", "y")
    for ax, (method, mine) in zip(axes, shown, strict=True):
        _trace(ax, method, *mine.reindex(columns=["time_s", "incumbent", "bound"]).to_numpy(float).T)
    looks = {"incumbent": {"color": style.PALETTE[0]}, "bound": style.BOUND, "gap": {"color": style.FAINT, "lw": 7}}
    style.line_legend(canvas, looks)
    count = len(known)
    chosen = f"The {MAX_TRACES} that took longest of n = {count}" if count > MAX_TRACES else f"n = {count}"
    return canvas, f"{chosen} solve{'s' * (count != 1)} on {data.where}."


def _trace(ax: Axes, method: str, time: Array, incumbent: Array, bound: Array) -> None:
    ax.fill_between(time, incumbent, bound, step="post", color=style.FAINT, alpha=0.8, lw=0)
    ax.step(time, incumbent, where="post", color=style.PALETTE[0], marker="." if len(time) <= 40 else "")
    ax.step(time, bound, where="post", **style.BOUND)
    last = abs(bound[-1] - incumbent[-1]) / abs(bound[-1]) if bound[-1] else np.nan
    known = np.isfinite(last)
    end = f"gap {percent(float(last), up=True)} after {seconds(float(time[-1]))}" if known else "gap unknown"
    ax.set(title=f"{label(method, 30)}\n{end}", xlim=(0.0, time[-1] or 1.0))
    ax.yaxis.set_major_formatter(lambda value, _: number(value, 5))
    values = np.concatenate([incumbent, bound])
    values = values[np.isfinite(values)]
    if values.size and np.ptp(values) <= FLAT * np.abs(values).max():
        # An axis of rounding errors would show a gap where there is none.
        middle, room = values.mean(), 0.05 * abs(values.mean()) + 1e-9
        ax.set_ylim(middle - room, middle + room)


# ---------------------------------------------------------------- performance profiles

Ratios = dict[str, Array]
"""Ratios to the best, or to a bound, by method; ``inf`` where it failed."""


def _by_problem(data: Compared, ratios: Callable[[list[Row]], Mapping[str, Array]]) -> dict[str, Ratios]:
    """Return ratios by problem, that with the most rows first; methods of a single case or no success are left out."""
    problems: dict[str, list[Row]] = {}
    for row in data.rows:
        problems.setdefault(row.problem, []).append(row)
    return {
        problem: {m: r for m, r in ratios(rows).items() if r.size > 1 and np.isfinite(r).any()}
        for problem, rows in sorted(problems.items(), key=lambda item: -len(item[1]))
    }


@figure("profile", "Performance profiles of {}", each={"time": "time", "objective": "the objective"})
def performance(data: Compared, measure: Measure) -> Drawn:
    """Dolan and Moré's performance profiles of {}, by problem.

    Share of cases in which a method is within a factor of the best. Failures count as never, so a line that ends below
    1 failed on the rest. A case is an instance with a seed and limits.
    """
    skipped = {row.method for row in data.rows if row.status == "skipped"}
    # Bounds and relaxations have no decision, so nothing that could be compared with one.
    decided = {row.method for row in data.rows if measure == "time" or row.objective is not None}
    found = _by_problem(data, lambda rows: profiles([r for r in rows if r.method in decided - skipped], measure))
    sizes = {problem: next(iter(each.values())).size for problem, each in found.items() if len(each) > 1}
    chosen = some([*sizes])[:MOST_PANELS]
    xlabel = "time / fastest" if measure == "time" else "ratio to the best objective"
    titled = [(f"{label(problem, 34)}, n = {sizes[problem]}", found[problem]) for problem in chosen]
    canvas, shown, more = _profiles(data.looks, titled, xlabel)
    left = f"Left out because somewhere skipped: {counted(len(skipped), 'method')}. " if skipped else ""
    cases = counted(max(sizes[problem] for problem in chosen), "case")
    return canvas, f"{more}{left}n = {cases}, {counted(len(shown), 'method')} on {data.where}."


@figure("profile-bound", "Ratio to the bound")
def bound_ratios(data: Compared) -> Drawn:
    """Share of each method's cases in which its ratio to the certified bound is at most so large, by problem.

    This ratio is an upper estimate of that to the optimum. Failures count as never.
    """
    found = {problem: ratios for problem, ratios in _by_problem(data, _ratios).items() if ratios}
    count = {problem: sum(values.size for values in ratios.values()) for problem, ratios in found.items()}
    chosen = some(sorted(found, key=lambda problem: -count[problem])[:MOST_PANELS])
    canvas, shown, more = _profiles(data.looks, [(label(p, 34), found[p]) for p in chosen], "ratio to the bound")
    n = counted(sum(found[p][m].size for p in chosen for m in shown if m in found[p]), "result")
    return canvas, f"{more}n = {n} of {counted(len(shown), 'method')} on {data.where}."


def _ratios(rows: Sequence[Row]) -> Ratios:
    """Return ratios to the certified bound by method, ``inf`` where it failed or is WRONG."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row.kind in ("relaxation", "bound") or row.status == "skipped":
            continue
        if row.certified and row.ratio is not None:
            found.setdefault(row.method, []).append(max(row.ratio, 1.0))
        elif row.wrong or row.failed:
            found.setdefault(row.method, []).append(np.inf)
    return {method: np.array(values) for method, values in found.items()}


@figure("profile-solvers", "Performance profile of solvers")
def solver_profile(data: Compared) -> Drawn:
    """Dolan and Moré's performance profile of the time to a proof that holds, by solver.

    Share of cases in which a solver is within a factor of the fastest. A case is a model on an instance, with a seed
    and limits, that no solver skipped.
    """
    rows = some(cases(data.rows))
    ran = {row.method for row in rows if row.status != "skipped"}
    ratios = profiles([proof(row) for row in rows if row.method in ran], "time")
    size = next(iter(ratios.values())).size
    found = {solver: values for solver, values in ratios.items() if size > 1 and np.isfinite(values).any()}
    canvas, shown, more = _profiles(looks(some(list(found))), [("models", found)], "time / fastest")
    return canvas, f"{more}n = {counted(size, 'case')}, {counted(len(shown), 'solver')} on {data.where}."


def _profiles(
    known: Mapping[str, Look], problems: Sequence[tuple[str, Ratios]], xlabel: str
) -> tuple[Figure, list[str], str]:
    """Draw the share of cases in which each method is within a factor, a panel per title.

    Also return the methods that have a line, and a sentence about those without.
    """
    methods = list(dict.fromkeys(method for _, ratios in problems for method in ratios))
    mine = {method: known[method] for method in methods[:MAX_LINES]}
    drawn = [(title, ratios) for title, ratios in problems if mine.keys() & ratios.keys()]
    canvas, axes = panels(len(drawn), 2.2, 2, xlabel, "share of cases", "both")
    for ax, (title, ratios) in zip(axes, drawn, strict=True):
        every = np.concatenate(list(ratios.values()))
        end = max(float(every[np.isfinite(every)].max()) * 1.05, 1.01)
        for method in filter(mine.__contains__, ratios):
            style.share_line(ax, ratios[method], 1.0, end, mine[method])
        if end > style.WIDE:
            style.log_axis(ax, "x")
        ax.set(title=title, xlim=(1.0, end), ylim=(0.0, 1.03))
    style.line_legend(canvas, mine)
    more = f"The first {MAX_LINES} of {len(methods)} methods. " if len(methods) > MAX_LINES else ""
    return canvas, list(mine), more


# ---------------------------------------------------------------- scaling


@figure("scaling", "Solve time by size")
def scaling(data: Compared) -> Drawn:
    """Solve time in seconds against the size of the instance, both logarithmic.

    Lines are least-squares fits of a·n^b, the exponent b is in the legend.
    """
    size = {mark: len(one.jobs) or len(one.tenants) for mark, one in data.run.instances.items()}
    rows = [row for row in data.rows if timed(row) and size.get(row.fingerprint)]
    points = pd.DataFrame(
        [(r.method, float(size[r.fingerprint]), TIME.value(r)) for r in some(rows)], columns=list("mxy")
    )
    grown = points[points.groupby("m")["x"].transform("nunique") >= SIZES]
    slowest = grown.groupby("m", sort=False)["y"].max().sort_values(ascending=False, kind="stable")
    shown = some([str(method) for method in slowest.index[:MAX_LINES]])
    unit = "jobs" if any(one.jobs for one in data.run.instances.values()) else "tenants"
    canvas, ax = one_axes(3.2, unit, "solve time [s]", "both")
    ends = {}
    for method in shown:
        x, y = grown.loc[grown["m"] == method, ["x", "y"]].to_numpy().T
        exponent, height = np.polyfit(np.log(x), np.log(y), 1)
        ax.plot(x, y, marker="o", markersize=4, ls="", color=data.looks[method]["color"])
        span = np.array([x.min(), x.max()])
        ax.plot(span, np.exp(height) * span**exponent, **data.looks[method])
        ends[method] = f": n^{exponent:.2f}"
    style.log_axis(ax, "y", "{x:g}")
    style.log_axis(ax, "x")
    drawn = grown[grown["m"].isin(shown)]
    sizes = np.unique(drawn["x"])
    ax.xaxis.set(major_locator=FixedLocator(sizes[:: -(-len(sizes) // 8)].tolist()), minor_locator=NullLocator())
    style.line_legend(canvas, {method: data.looks[method] for method in shown}, 2, limit=34, ends=ends)
    more = f"The {MAX_LINES} slowest of {len(slowest)} methods. " if len(slowest) > MAX_LINES else ""
    n = f"n = {counted(len(drawn), 'result')} of {counted(len(shown), 'method')} on {data.where}."
    return canvas, f"Size is the number of {unit}. {more}{n}"
