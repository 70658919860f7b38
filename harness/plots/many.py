"""Figures over many instances: performance profiles, and how solve times grow with the size of the instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from schedgap.harness.compare.row import Row
from schedgap.harness.compare.summary import Measure, profiles
from schedgap.harness.plots.curves import DASHES, MAX_LINES, decision_time, line_legend
from schedgap.harness.plots.figures import FIGURES, FigureInput, FigureSpec, counted
from schedgap.harness.plots.style import PALETTE, is_first_column, label, log_axis, panels
from schedgap.harness.text import number

Array = NDArray[np.float64]

MOST_PANELS = 4
"""Problems in one figure of profiles, those with the most results first."""

SIZES = 3
"""A curve over sizes has a meaning from so many different ones on."""

WIDE = 20.0
"""From so large ratios on, their axis is logarithmic."""

SHORTEST_S = 1e-4
"""Shorter times are blurred by the clock."""


# ---------------------------------------------------------------- performance profiles


def _by_problem(rows: Sequence[Row], measure: Measure) -> dict[str, dict[str, Array]]:
    """Return the performance ratios by problem and method, where at least two methods met at least two cases."""
    problems: dict[str, list[Row]] = {}
    for row in rows:
        problems.setdefault(row.problem, []).append(row)
    found = {}
    for problem, mine in sorted(problems.items(), key=lambda item: -len(item[1])):
        known = _complete(profiles(_applicable(mine, measure), measure))
        if len(known) > 1:
            found[problem] = known
    return dict(list(found.items())[:MOST_PANELS])


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


def profile(ax: Axes, ratios: Mapping[str, Array]) -> None:
    """Draw the share of cases in which each method is within a factor of the best, a line per method.

    Parameters
    ----------
    ax
        Where.
    ratios
        Performance ratios by method, sorted, at least 1; ``inf`` where it failed, which no factor reaches.
    """
    finite = np.concatenate([values[np.isfinite(values)] for values in ratios.values()])
    end = max(float(finite.max()) * 1.05, 1.01)
    for i, values in enumerate(ratios.values()):
        known = values[np.isfinite(values)]
        x = np.concatenate([[1.0], known, [end]])
        y = np.concatenate([[0.0], np.arange(1, known.size + 1), [known.size]]) / values.size
        ax.step(x, y, where="post", lw=1.5, color=PALETTE[i % len(PALETTE)], ls=DASHES[i % len(DASHES)])
    if end > WIDE:
        log_axis(ax, "x", number)
    ax.set(xlim=(1.0, end), ylim=(0.0, 1.03))
    ax.grid()


def _draw_profiles(data: FigureInput, measure: Measure, xlabel: str) -> Figure | None:
    problems = _by_problem(data.rows, measure)
    if not problems:
        return None
    methods = list(dict.fromkeys(method for ratios in problems.values() for method in ratios))[:MAX_LINES]
    figure, axes = panels(len(problems), 2.2, columns=min(len(problems), 2))
    for ax, (problem, ratios) in zip(axes, problems.items(), strict=True):
        # the same method has the same line in every panel
        ordered = {method: ratios.get(method, np.array([np.inf, np.inf])) for method in methods}
        profile(ax, ordered)
        cases = next(iter(ratios.values())).size
        ax.set_title(f"{label(problem, 34)}, n = {cases}")
        ax.set(xlabel=xlabel, ylabel="share of cases" if is_first_column(ax) else "")
    line_legend(figure, [label(method, 26) for method in methods])
    return figure


def draw_time_profile(data: FigureInput) -> Figure | None:
    """Draw performance profiles of solve time."""
    return _draw_profiles(data, "time", "time / fastest")


def draw_objective_profile(data: FigureInput) -> Figure | None:
    """Draw performance profiles of the objective."""
    return _draw_profiles(data, "objective", "ratio to the best objective")


def _caption_profile(data: FigureInput, measure: Measure, what: str) -> str:
    problems = _by_problem(data.rows, measure)
    methods = list(dict.fromkeys(method for ratios in problems.values() for method in ratios))
    cases = max((values.size for ratios in problems.values() for values in ratios.values()), default=0)
    skipped = {row.method for row in data.rows if row.status == "skipped"}
    parts = [
        f"Performance profiles (Dolan and Moré): share of cases in which a method's {what}, by problem. Failures "
        "count as never, so a line that ends below 1 failed on the rest. A case is an instance with a seed and limits.",
        f"The first {MAX_LINES} of {len(methods)} methods." if len(methods) > MAX_LINES else "",
        f"Left out because somewhere skipped: {counted(len(skipped), 'method')}." if skipped else "",
        f"n = {counted(cases, 'case')}, {counted(min(len(methods), MAX_LINES), 'method')} on {data.where}.",
    ]
    return " ".join(part for part in parts if part)


def _caption_time_profile(data: FigureInput) -> str:
    return _caption_profile(data, "time", "solve time is at most so many times that of the fastest")


def _caption_objective_profile(data: FigureInput) -> str:
    return _caption_profile(data, "objective", "objective is within a factor of the best that any of them found")


# ---------------------------------------------------------------- ratio to the bound


def _bound_ratios(rows: Sequence[Row]) -> dict[str, dict[str, Array]]:
    """Return ratios to the certified bound by problem and method, ``inf`` where a method failed or is WRONG."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row.kind in ("relaxation", "bound") or row.status == "skipped":
            continue
        if row.certified and row.ratio is not None:
            found.setdefault(row.problem, {}).setdefault(row.method, []).append(max(row.ratio, 1.0))
        elif row.wrong or row.failed:
            found.setdefault(row.problem, {}).setdefault(row.method, []).append(np.inf)
    known = {
        problem: _complete({method: np.sort(np.array(values)) for method, values in by_method.items()})
        for problem, by_method in found.items()
    }
    ordered = sorted(known.items(), key=lambda item: -sum(values.size for values in item[1].values()))
    return dict([(problem, ratios) for problem, ratios in ordered if ratios][:MOST_PANELS])


def draw_bound_profile(data: FigureInput) -> Figure | None:
    """Draw the share of cases in which each method is within a factor of the certified bound."""
    problems = _bound_ratios(data.rows)
    if not problems:
        return None
    methods = list(dict.fromkeys(method for ratios in problems.values() for method in ratios))[:MAX_LINES]
    figure, axes = panels(len(problems), 2.2, columns=min(len(problems), 2))
    for ax, (problem, ratios) in zip(axes, problems.items(), strict=True):
        profile(ax, {method: ratios.get(method, np.array([np.inf, np.inf])) for method in methods})
        ax.set_title(label(problem, 34))
        ax.set(xlabel="ratio to the bound", ylabel="share of cases" if is_first_column(ax) else "")
    line_legend(figure, [label(method, 26) for method in methods])
    return figure


def _caption_bound_profile(data: FigureInput) -> str:
    problems = _bound_ratios(data.rows)
    methods = {method for ratios in problems.values() for method in ratios}
    count = sum(values.size for ratios in problems.values() for values in ratios.values())
    more = f"The first {MAX_LINES} of {len(methods)} methods. " if len(methods) > MAX_LINES else ""
    return (
        "Share of each method's cases in which its ratio to the certified bound is at most so large, by problem: an "
        "upper estimate of its ratio to the optimum. Failures count as never. "
        f"{more}n = {counted(count, 'result')} of {counted(min(len(methods), MAX_LINES), 'method')} on {data.where}."
    )


# ---------------------------------------------------------------- scaling


def _times_by_size(data: FigureInput) -> dict[str, tuple[list[float], list[float]]]:
    """Return sizes and seconds by method, those that take longest first; methods of a single size are left out."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for row in data.rows:
        size = _size(data, row)
        if row.solve_s is None or not size or row.status == "skipped" or row.wrong or row.failed:
            continue
        sizes, seconds = found.setdefault(row.method, ([], []))
        sizes.append(size)
        seconds.append(max(row.solve_s, SHORTEST_S))
    grown = {method: points for method, points in found.items() if len(set(points[0])) >= SIZES}
    return dict(sorted(grown.items(), key=lambda item: -max(item[1][1])))


def _size(data: FigureInput, row: Row) -> float:
    instance = data.run.instances.get(row.fingerprint)
    return 0.0 if instance is None else float(len(instance.jobs) or len(instance.tenants))


def _unit(data: FigureInput) -> str:
    return "jobs" if any(one.jobs for one in data.run.instances.values()) else "tenants"


def draw_scaling(data: FigureInput) -> Figure | None:
    """Draw solve time against the number of jobs (or tenants), with fitted exponents."""
    points = dict(list(_times_by_size(data).items())[:MAX_LINES])
    return decision_time(points, xlabel=_unit(data), ylabel="solve time [s]") if points else None


def _caption_scaling(data: FigureInput) -> str:
    points = _times_by_size(data)
    shown = list(points.items())[:MAX_LINES]
    more = f"The {MAX_LINES} slowest of {len(points)} methods. " if len(points) > MAX_LINES else ""
    count = sum(len(sizes) for _, (sizes, _) in shown)
    return (
        f"Solve time in seconds against the number of {_unit(data)}, both logarithmic; lines are least-squares fits "
        f"of a·n^b, the exponent b is in the legend. {more}n = {counted(count, 'result')} of "
        f"{counted(len(shown), 'method')} on {data.where}."
    )


for _spec in (
    FigureSpec("profile-time", None, "Performance profiles of time", _caption_time_profile, draw_time_profile),
    FigureSpec(
        "profile-objective",
        None,
        "Performance profiles of the objective",
        _caption_objective_profile,
        draw_objective_profile,
    ),
    FigureSpec("profile-bound", None, "Ratio to the bound", _caption_bound_profile, draw_bound_profile),
    FigureSpec("scaling", None, "Solve time by size", _caption_scaling, draw_scaling),
):
    FIGURES.register(_spec)
