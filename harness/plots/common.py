"""Figures that every paper has: gap, ratio against guarantee, bound over time, solve time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from schedgap.harness.compare.row import Row
from schedgap.harness.plots.figures import FIGURES, FigureInput, FigureSpec
from schedgap.harness.plots.methods import Marks, by_method
from schedgap.harness.plots.style import (
    DASHED,
    FAINT,
    INK,
    PALETTE,
    is_first_column,
    label,
    legend_below,
    log_axis,
    panels,
)
from schedgap.harness.text import number, percent, ratio, seconds

SHORTEST_S = 1e-4
"""Times below are drawn here: a logarithmic axis has no zero, and clocks blur what is shorter."""

MAX_TRACES = 6

FLAT = 1e-6
"""Relative range below which a trace is a flat line."""


def _estimate(row: Row) -> bool:
    return row.ratio_is_upper is not False


# ---------------------------------------------------------------- gap

GAP = Marks(
    value=lambda row: 100.0 * (row.gap or 0.0),
    hollow=_estimate,
    hollow_marker="<",
    solid_name="optimum proved",
    hollow_name="upper estimate",
    text=lambda row: ("≤ " if _estimate(row) else "") + percent(row.gap, up=_estimate(row)),
)


def _gap_rows(data: FigureInput) -> list[Row]:
    return [row for row in data.rows if row.certified]


def draw_gap(data: FigureInput) -> Figure | None:
    """Draw the gap of every verified result."""
    rows = _gap_rows(data)
    if not rows:
        return None
    figure, ax, _ = by_method(rows, GAP, "gap to the best certified bound [%]")
    largest = max(GAP.value(row) for row in rows)
    if largest > 200.0:
        ax.set_xscale("symlog", linthresh=10.0)
        ax.xaxis.set_major_formatter(lambda value, _: number(value))
    ax.set_xlim(0.0, 1.1 * largest if largest > 0 else 1.0)
    return figure


def _caption_gap(data: FigureInput) -> str:
    return (
        "Gap |bound − objective| / |bound| in per cent, by method. Discs: the optimum is proved. Triangles: "
        "the optimum is not proved, so the true gap is at most this. "
        f"{_apart(_gap_rows(data))}{data.sample(_gap_rows(data))}"
    )


def _apart(rows: Sequence[Row]) -> str:
    """Return what a caption says where methods are measured against the bounds of several problems."""
    several = len({row.problem for row in rows}) > 1
    return "Problems (bold) have bounds of their own and are not comparable with one another. " if several else ""


# ---------------------------------------------------------------- ratio against guarantee

RATIO = Marks(
    value=lambda row: row.ratio or 1.0,
    hollow=_estimate,
    hollow_marker="<",
    solid_name="measured, optimum proved",
    hollow_name="measured, upper estimate",
    text=lambda row: ratio(row.ratio, row.ratio_is_upper),
)


def _ratio_rows(data: FigureInput) -> list[Row]:
    return [row for row in data.rows if row.certified and row.ratio is not None and row.guarantee_factor is not None]


def draw_ratio(data: FigureInput) -> Figure | None:
    """Draw measured ratios beside the ratio that the paper guarantees on the same instance."""
    rows = _ratio_rows(data)
    if not rows:
        return None
    figure, ax, heights = by_method(rows, RATIO, "ratio to the optimum [1 = optimal]")
    limits = [row.guarantee_factor or 1.0 for row in rows]
    for row, limit in zip(rows, limits, strict=True):
        y = heights[row.problem, row.method]
        ax.barh(y, limit - 1.0, left=1.0, height=0.5, color=FAINT, alpha=0.35, zorder=0)
        ax.plot([limit, limit], [y - 0.3, y + 0.3], color=INK, lw=1.8, solid_capstyle="butt")
    largest = max(limits + [RATIO.value(row) for row in rows])
    if largest > 8.0:
        log_axis(ax, "x", number)
    ax.set_xlim(1.0 if largest > 8.0 else 1.0 - 0.01 * (largest - 1.0), largest * 1.05)
    handles = [*figure.legends[0].legend_handles, Line2D([], [], color=INK, lw=1.8, label="guarantee")]
    figure.legends[0].remove()
    legend_below(figure, handles, columns=2)
    return figure


def _caption_ratio(data: FigureInput) -> str:
    return (
        "Ratio to the optimum (1 is optimal), by method, beside the paper's worst-case guarantee on the same "
        f"instance (upright bars). {data.sample(_ratio_rows(data))}"
    )


# ---------------------------------------------------------------- solve time

TIME = Marks(
    value=lambda row: max(row.solve_s or 0.0, SHORTEST_S),
    hollow=lambda row: row.status.startswith("time limit"),
    hollow_marker=">",
    solid_name="finished",
    hollow_name="stopped by the time limit",
    text=lambda row: seconds(row.solve_s),
)


def _time_rows(data: FigureInput) -> list[Row]:
    rows = (row for row in data.rows if row.solve_s is not None and row.status != "skipped")
    return [row for row in rows if not (row.wrong or row.failed)]


def draw_time(data: FigureInput) -> Figure | None:
    """Draw the solve time of every result."""
    rows = _time_rows(data)
    if not rows:
        return None
    figure, ax, _ = by_method(rows, TIME, "solve time [s]")
    log_axis(ax, "x", lambda value: f"{value:g}")
    values = [TIME.value(row) for row in rows]
    ax.set_xlim(10 ** np.floor(np.log10(min(values))), 10 ** np.ceil(np.log10(max(values) * 1.6)))
    return figure


def _caption_time(data: FigureInput) -> str:
    drawn = _time_rows(data)
    return f"Time in the solver or heuristic in seconds, by method, on a logarithmic axis. {data.sample(drawn)}"


# ---------------------------------------------------------------- bound over time


def _traces(data: FigureInput) -> dict[str, list[Mapping[str, Any]]]:
    """Return the traces by method that have at least two points, those that took longest first."""
    known = {row.method: row for row in data.rows if not row.wrong}
    found: dict[str, list[Mapping[str, Any]]] = {}
    for point in data.run.traces:
        row = known.get(point["method"])
        if row and (point["fingerprint"], point["method"], point["seed"], point["limits"]) == row.name:
            found.setdefault(row.method, []).append(point)
    kept = {m: sorted(points, key=lambda p: p["time_s"]) for m, points in found.items() if len(points) > 1}
    return dict(sorted(kept.items(), key=lambda item: -item[1][-1]["time_s"]))


def draw_traces(data: FigureInput) -> Figure | None:
    """Draw incumbent and bound over time; the area between them is the gap."""
    traces = _traces(data)
    if not traces:
        return None
    shown = list(traces.items())[:MAX_TRACES]
    figure, axes = panels(len(shown), 1.9, columns=2 if len(shown) in (2, 4) else 3)
    for ax, (method, points) in zip(axes, shown, strict=True):
        _trace(ax, method, points)
        ax.set_ylabel("objective" if is_first_column(ax) else "")
    legend_below(
        figure,
        [
            Line2D([], [], color=PALETTE[0], label="incumbent"),
            Line2D([], [], color=PALETTE[3], ls=DASHED, label="bound"),
            Line2D([], [], color=FAINT, lw=7, label="gap"),
        ],
    )
    return figure


def _trace(ax: Axes, method: str, points: Sequence[Mapping[str, Any]]) -> None:
    time, incumbent, bound = (_column(points, name) for name in ("time_s", "incumbent", "bound"))
    ax.fill_between(time, incumbent, bound, step="post", color=FAINT, alpha=0.8, lw=0)
    ax.step(time, incumbent, where="post", color=PALETTE[0], marker="." if len(time) <= 40 else "")
    ax.step(time, bound, where="post", color=PALETTE[3], ls=DASHED)
    last = abs(bound[-1] - incumbent[-1]) / abs(bound[-1]) if bound[-1] else np.nan
    end = (
        f"gap {percent(float(last), up=True)} after {seconds(float(time[-1]))}" if np.isfinite(last) else "gap unknown"
    )
    ax.set_title(f"{label(method, 30)}\n{end}", fontsize=8.5)
    ax.set_xlim(0.0, time[-1] or 1.0)
    ax.set_xlabel("time [s]")
    ax.ticklabel_format(axis="y", useOffset=False)
    known = np.concatenate([incumbent, bound])[np.isfinite(np.concatenate([incumbent, bound]))]
    if known.size and np.ptp(known) <= FLAT * np.abs(known).max():
        # An axis of rounding errors would show a gap where there is none.
        ax.set_ylim(known.mean() - 0.05 * abs(known.mean()) - 1e-9, known.mean() + 0.05 * abs(known.mean()) + 1e-9)
    ax.grid(axis="y")


def _column(points: Sequence[Mapping[str, Any]], name: str) -> Any:
    values = np.array([np.nan if point.get(name) is None else point[name] for point in points], float)
    return np.where(np.isfinite(values), values, np.nan)


def _caption_traces(data: FigureInput) -> str:
    count = len(_traces(data))
    chosen = f"The {MAX_TRACES} that took longest of n = {count}" if count > MAX_TRACES else f"n = {count}"
    return (
        "Best objective found (incumbent) and certified bound over time in seconds; the area between them is "
        f"the gap. {chosen} solve{'s' * (count != 1)} on {data.where}."
    )


FIGURES.register(FigureSpec("gap", None, "Gap by method", _caption_gap, draw_gap))
FIGURES.register(FigureSpec("ratio", None, "Ratio against guarantee", _caption_ratio, draw_ratio))
FIGURES.register(FigureSpec("time", None, "Solve time by method", _caption_time, draw_time))
FIGURES.register(FigureSpec("traces", None, "Bound over time", _caption_traces, draw_traces, per_instance=True))
