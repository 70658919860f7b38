"""Figures over many instances: performance profiles, and how solve times grow with the size of the instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator
from numpy.typing import ArrayLike

from schedgap.harness.compare.row import Row
from schedgap.harness.compare.summary import Measure, profiles
from schedgap.harness.figure import Drawn, figure
from schedgap.harness.plots.common import SHORTEST_S, timed
from schedgap.harness.plots.pieces import share_line
from schedgap.harness.plots.results import Compared, counted
from schedgap.harness.plots.style import (
    MAX_LINES,
    MUTED,
    WIDE,
    Look,
    label,
    line_legend,
    log_axis,
    looks,
    note,
    one_axes,
    panels,
)
from schedgap.instances.arrays import Array

MOST_PANELS = 4
"""Problems in one figure of profiles, those with the most results first."""

SIZES = 3
"""Least number of different sizes over which a curve has a meaning."""


# ---------------------------------------------------------------- performance profiles


@figure("profile-time", "Performance profiles of time")
def time_profiles(data: Compared) -> Drawn:
    """Dolan and Moré's performance profiles of solve time, by problem.

    Share of cases in which a method's solve time is at most so many times that of the fastest. Failures count as never,
    so a line that ends below 1 failed on the rest. A case is an instance with a seed and limits.
    """
    return _performance(data, "time", "time / fastest")


@figure("profile-objective", "Performance profiles of the objective")
def objective_profiles(data: Compared) -> Drawn:
    """Dolan and Moré's performance profiles of the objective, by problem.

    Share of cases in which a method's objective is within a factor of the best that any of them found. Failures count
    as never, so a line that ends below 1 failed on the rest. A case is an instance with a seed and limits.
    """
    return _performance(data, "objective", "ratio to the best objective")


def _performance(data: Compared, measure: Measure, xlabel: str) -> Drawn:
    found = {}
    for problem, rows in _by_problem(data.rows).items():
        known = _complete(profiles(_applicable(rows, measure), measure))
        if len(known) > 1:
            found[problem] = known
    found = dict(list(found.items())[:MOST_PANELS])
    if not found:
        return None
    sizes = {problem: next(iter(ratios.values())).size for problem, ratios in found.items()}
    titles = [f"{label(problem, 34)}, n = {size}" for problem, size in sizes.items()]
    canvas, shown, more = _profiles(data, found, titles, xlabel)
    skipped = len({row.method for row in data.rows if row.status == "skipped"})
    left = f"Left out because somewhere skipped: {counted(skipped, 'method')}. " if skipped else ""
    cases = counted(max(sizes.values()), "case")
    return canvas, f"{more}{left}n = {cases}, {counted(len(shown), 'method')} on {data.where}."


def _by_problem(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows by problem, that with the most rows first."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.problem, []).append(row)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def _applicable(rows: Sequence[Row], measure: Measure) -> list[Row]:
    """Return the rows of methods that can be compared: never skipped, and with a decision for each other's problem.

    A method that was skipped somewhere would take that case from all others.
    """
    skipped = {row.method for row in rows if row.status == "skipped"}
    # Bounds and relaxations have no decision, so nothing that could be compared with one.
    barren = {row.method for row in rows} - {row.method for row in rows if row.objective is not None}
    return [row for row in rows if row.method not in skipped and (measure == "time" or row.method not in barren)]


def _complete(ratios: Mapping[str, Array]) -> dict[str, Array]:
    return {method: values for method, values in ratios.items() if values.size > 1 and np.isfinite(values).any()}


def _profiles(
    data: Compared, problems: Mapping[str, Mapping[str, Array]], titles: Sequence[str], xlabel: str
) -> tuple[Figure, list[str], str]:
    """Draw the share of cases in which each method is within a factor, a panel per problem.

    Returns
    -------
    tuple
        The figure, the methods that have a line, and a sentence about those without.
    """
    methods = list(dict.fromkeys(method for ratios in problems.values() for method in ratios))
    styles = {method: data.looks[method] for method in methods[:MAX_LINES]}
    drawn = [(r, title) for r, title in zip(problems.values(), titles, strict=True) if styles.keys() & r.keys()]
    canvas, axes = panels(len(drawn), 2.2, 2, xlabel, "share of cases")
    for ax, (ratios, title) in zip(axes, drawn, strict=True):
        finite = np.concatenate([values[np.isfinite(values)] for values in ratios.values()])
        end = max(float(finite.max()) * 1.05, 1.01)
        for method, values in ratios.items():
            if method in styles:
                share_line(ax, values, 1.0, end, styles[method])
        if end > WIDE:
            log_axis(ax, "x")
        ax.set(title=title, xlim=(1.0, end), ylim=(0.0, 1.03))
        ax.grid()
    line_legend(canvas, {label(method, 30): style for method, style in styles.items()})
    more = f"The first {MAX_LINES} of {len(methods)} methods. " if len(methods) > MAX_LINES else ""
    return canvas, list(styles), more


@figure("profile-bound", "Ratio to the bound")
def bound_ratios(data: Compared) -> Drawn:
    """Share of each method's cases in which its ratio to the certified bound is at most so large, by problem.

    This ratio is an upper estimate of that to the optimum. Failures count as never.
    """
    found = {problem: _complete(_ratios(rows)) for problem, rows in _by_problem(data.rows).items()}
    size = {problem: sum(values.size for values in ratios.values()) for problem, ratios in found.items()}
    chosen = sorted((p for p in found if found[p]), key=lambda problem: -size[problem])[:MOST_PANELS]
    if not chosen:
        return None
    titles = [label(problem, 34) for problem in chosen]
    canvas, shown, more = _profiles(data, {p: found[p] for p in chosen}, titles, "ratio to the bound")
    count = counted(sum(found[p][m].size for p in chosen for m in shown if m in found[p]), "result")
    return canvas, f"{more}n = {count} of {counted(len(shown), 'method')} on {data.where}."


def _ratios(rows: Sequence[Row]) -> dict[str, Array]:
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


# ---------------------------------------------------------------- scaling


@figure("scaling", "Solve time by size")
def scaling(data: Compared) -> Drawn:
    """Solve time in seconds against the size of the instance, both logarithmic.

    Lines are least-squares fits of a·n^b, the exponent b is in the legend.
    """
    found = _times_by_size(data)
    if not found:
        return None
    shown = dict(list(found.items())[:MAX_LINES])
    unit = "jobs" if any(one.jobs for one in data.run.instances.values()) else "tenants"
    more = f"The {MAX_LINES} slowest of {len(found)} methods. " if len(found) > MAX_LINES else ""
    count = counted(sum(len(sizes) for sizes, _ in shown.values()), "result")
    canvas = decision_time(shown, data.looks, xlabel=unit, ylabel="solve time [s]")
    methods = counted(len(shown), "method")
    return canvas, f"Size is the number of {unit}. {more}n = {count} of {methods} on {data.where}."


def _times_by_size(data: Compared) -> dict[str, tuple[list[float], list[float]]]:
    """Return sizes and seconds by method, those that take longest first; methods of few sizes are left out."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for row in data.rows:
        instance = data.run.instances.get(row.fingerprint)
        size = len(instance.jobs) or len(instance.tenants) if instance else 0
        if timed(row) and size:
            sizes, seconds = found.setdefault(row.method, ([], []))
            sizes.append(float(size))
            seconds.append(max(row.solve_s or 0.0, SHORTEST_S))
    grown = {method: points for method, points in found.items() if len(set(points[0])) >= SIZES}
    return dict(sorted(grown.items(), key=lambda item: -max(item[1][1])))


def decision_time(
    points: Mapping[str, tuple[ArrayLike, ArrayLike]],
    styles: Mapping[str, Look] | None = None,
    limit_s: float | None = None,
    xlabel: str = "jobs",
    ylabel: str = "time per decision [s]",
) -> Figure:
    """Return seconds per decision against the number of jobs, both logarithmic, with fitted exponents.

    Parameters
    ----------
    points
        By method: numbers of jobs and positive seconds.
    styles
        Look of each method's line.
    limit_s
        A round or another limit, drawn as a line.
    xlabel, ylabel
        What is counted, and what takes the time.
    """
    styles = styles or looks(points)
    canvas, ax = one_axes(3.2)
    names = {}
    for method, (jobs, seconds) in points.items():
        x, y = np.asarray(jobs, float), np.asarray(seconds, float)
        style = styles[method]
        exponent = fitted_exponent(x, y)
        known = bool(np.isfinite(exponent))
        ax.plot(x, y, marker="o", markersize=4, ls="", color=style["color"])
        if known:
            ends = np.array([x.min(), x.max()])
            ax.plot(ends, np.exp(np.log(y).mean() + exponent * (np.log(ends) - np.log(x).mean())), **style)
        names[label(method, 34) + (f": n^{exponent:.2f}" if known else "")] = style
    log_axis(ax, "y", "{:g}".format)
    sizes = np.unique(np.concatenate([np.asarray(jobs, float) for jobs, _ in points.values()]))
    log_axis(ax, "x")
    ax.xaxis.set_major_locator(FixedLocator(sizes[:: -(-len(sizes) // 8)].tolist()))
    ax.xaxis.set_minor_locator(NullLocator())
    if limit_s is not None:
        ax.axhline(limit_s, color=MUTED, lw=0.9)
        note(ax, f"{limit_s:g} s", (sizes[0], limit_s), (0, 3))
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.grid()
    line_legend(canvas, names, columns=2)
    return canvas


def fitted_exponent(jobs: ArrayLike, seconds: ArrayLike) -> float:
    """Return ``b`` of the least-squares fit ``seconds = a · jobs^b``; NaN with fewer than two sizes."""
    x, y = np.log(np.asarray(jobs, float)), np.log(np.asarray(seconds, float))
    spread = x - x.mean()
    return float(spread @ y / (spread @ spread)) if np.ptp(x) > 0 else float("nan")
