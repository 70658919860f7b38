"""Figures of simulations in which rates depend on CPUs and memory: rounds beside LP1, short and long jobs, loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from schedgap.harness.plots.bars import Group, beside_bounds
from schedgap.harness.plots.curves import COLUMNS, FEW_LINES, averaged, line_legend, line_style, never, steps
from schedgap.harness.plots.style import (
    DASHED,
    FAINT,
    PALETTE,
    is_first_column,
    label,
    legend_below,
    log_axis,
    new_figure,
    one_axes,
    panels,
    time_unit,
)
from schedgap.harness.text import number

Array = NDArray[np.float64]

MAX_PANELS = 6
"""Policies whose rounds are drawn beside their bounds."""


# ---------------------------------------------------------------- rounds beside LP1


@dataclass(frozen=True, eq=False)
class Worth:
    """Progress of each round, what LP1 allows, and the start of each in seconds, ``(R,)`` each."""

    start_s: Array
    progress: Array
    most: Array


def against_lp1(worth: Mapping[str, Worth], round_s: float) -> Figure:
    """Return the progress of rounds under the most that LP1 allows, a panel per policy; long runs are averaged."""
    shown = dict(list(worth.items())[:MAX_PANELS])
    first_s = min(float(each.start_s[0]) for each in shown.values())
    end_s = max(float(each.start_s[-1]) for each in shown.values()) + round_s - first_s
    unit_s, unit = time_unit(end_s)
    top = max(float(np.nanmax(each.most)) for each in shown.values())
    figure, axes = panels(len(shown), 1.7, columns=min(len(shown), 2), sharex=True, sharey=True)
    for ax, (policy, each) in zip(axes, shown.items(), strict=True):
        slots = round(end_s / round_s)
        edges = np.linspace(0, slots, min(slots, COLUMNS) + 1)
        row = np.rint((each.start_s - first_s) / round_s).astype(np.int64)
        progress, most = (_spread(values, row, slots, edges) for values in (each.progress, each.most))
        times = edges * round_s / unit_s
        ax.stairs(most, times, baseline=progress, fill=True, color=FAINT)
        ax.stairs(most, times, baseline=None, color=PALETTE[3], lw=1.1, ls=DASHED)
        ax.stairs(progress, times, baseline=None, color=PALETTE[0], lw=1.3)
        known = np.isfinite(each.most) & (each.most > 0)
        mean = float((each.progress[known] / each.most[known]).mean()) if known.any() else np.nan
        ax.set_title(f"{label(policy, 30)}: mean {100 * mean:.1f} %")
        ax.set(xlim=(0.0, times[-1]), ylim=(0.0, top * 1.04))
        ax.set_ylabel("progress [fair shares]" if is_first_column(ax) else "")
        ax.grid(axis="y")
    for ax in axes[-2:] if len(axes) > 1 else axes:
        ax.set_xlabel(f"time [{unit}]")
        ax.tick_params(labelbottom=True)
    legend_below(
        figure,
        [
            Line2D([], [], color=PALETTE[0], label="progress of the round"),
            Line2D([], [], color=PALETTE[3], ls=DASHED, label="most by LP1 for the jobs picked"),
            Line2D([], [], color=FAINT, lw=7, label="distance"),
        ],
    )
    return figure


def _spread(values: Array, row: NDArray[np.int64], slots: int, edges: Array) -> Array:
    """Return the means of values between edges, 0 in rounds without any, NaN after the last."""
    full = np.zeros(slots)
    full[row] = np.nan_to_num(values)
    return np.where(edges[:-1] <= row[-1], averaged(full, edges), np.nan)


# ---------------------------------------------------------------- GPUs and CPUs


def resources(shares: Mapping[str, Mapping[str, Array]], slot_s: float) -> Figure:
    """Return shares of several resources over time: a panel with lines for each, or of many policies means only.

    Parameters
    ----------
    shares
        By resource, then policy: ``(slots,)`` from 0 to 1.
    slot_s
        Seconds of a slot.
    """
    policies = list(next(iter(shares.values())))
    if len(policies) > FEW_LINES:
        return _mean_shares(shares)
    slots = max(len(values) for each in shares.values() for values in each.values())
    unit_s, unit = time_unit(slots * slot_s)
    edges = np.linspace(0, slots, min(slots, COLUMNS) + 1)
    figure = new_figure(0.8 + 1.45 * len(shares))
    axes = figure.subplots(len(shares), 1, sharex=True, squeeze=False)[:, 0].tolist()
    for ax, (resource, each) in zip(axes, shares.items(), strict=True):
        for i, values in enumerate(each.values()):
            ax.stairs(100 * averaged(values, edges), edges * slot_s / unit_s, baseline=None, lw=1.3, **line_style(i))
        ax.set(xlim=(0.0, slots * slot_s / unit_s), ylim=(0.0, 103.0), ylabel="[%]", title=resource)
        ax.grid(axis="y")
    axes[-1].set_xlabel(f"time [{unit}]")
    line_legend(figure, [label(policy, 30) for policy in policies])
    return figure


def _mean_shares(shares: Mapping[str, Mapping[str, Array]]) -> Figure:
    """Return the mean shares of each resource by policy, each up to the policy's own end."""
    policies = list(next(iter(shares.values())))
    figure, ax = one_axes(1.2 + 0.3 * len(policies))
    for i, (resource, each) in enumerate(shares.items()):
        means = [100 * float(values.mean()) for values in each.values()]
        # side by side, so that equal shares hide no one
        y = np.arange(len(policies)) + 0.22 * (i - (len(shares) - 1) / 2)
        ax.plot(means, y, ls="", marker="os^D"[i % 4], ms=5, color=PALETTE[i], label=resource)
    ax.set_yticks(range(len(policies)), [label(policy, 30) for policy in policies])
    ax.set(xlim=(0.0, 103.0), ylim=(len(policies) - 0.5, -0.5), xlabel="mean over the run [%]")
    ax.grid()
    legend_below(figure, ax.get_legend_handles_labels()[0])
    return figure


# ---------------------------------------------------------------- completion times


def short_and_long(times_s: Mapping[str, Array], split_s: float) -> Figure:
    """Return the share of jobs that have completed after a time: up to `split_s`, and from there on.

    Parameters
    ----------
    times_s
        ``(n,)`` seconds from arrival to completion by policy; NaN for jobs that never complete.
    split_s
        Where short jobs end.
    """
    figure = new_figure(3.3)
    left, right = figure.subplots(1, 2, sharey=True)
    known = np.concatenate([t[np.isfinite(t)] for t in times_s.values()])
    end_s = max(float(known.max(initial=0.0)), 1.5 * split_s)
    for i, times in enumerate(times_s.values()):
        ordered = np.sort(times[np.isfinite(times)])
        for ax in (left, right):
            steps(ax, ordered / 3600, len(times), end_s / 3600, i)
    hours = split_s / 3600
    left.set(title=f"short: below {hours:g} h", xlabel="completion time [h]", ylabel="share of jobs completed")
    left.set(xlim=(0.0, hours), ylim=(0.0, 1.02))
    right.set(title=f"long: {hours:g} h and more", xlabel="completion time [h]")
    if end_s > 8 * split_s:
        log_axis(right, "x", number)
    right.set_xlim(hours, end_s / 3600 * 1.02)
    for ax in (left, right):
        ax.grid()
    line_legend(figure, [f"{label(m, 26)}{never(t)}" for m, t in times_s.items()])
    return figure


def mean_times(means_s: Mapping[str, float], bound_s: float | None, unproved: str = "") -> Figure:
    """Return mean completion times by policy, with a certified lower bound where there is one.

    Parameters
    ----------
    means_s
        Seconds by policy.
    bound_s
        What no schedule gets below, in seconds.
    unproved
        What the bound is of, for the legend.
    """
    unit_s, unit = time_unit(max(means_s.values()))
    values = {policy: value / unit_s for policy, value in means_s.items()}
    bound = bound_s / unit_s if bound_s else None
    group = Group(values, bound, bound_name=f"certified lower bound{unproved}")
    return beside_bounds([group], f"mean completion time [{unit}]")


def total_times(times_s: Mapping[str, tuple[float, float | None]]) -> Figure:
    """Return total times by policy beside the bounds that hold for them.

    Parameters
    ----------
    times_s
        Seconds, and what no schedule of the kind gets below, by policy.
    """
    unit_s, unit = time_unit(max(time_s for time_s, _ in times_s.values()))
    bounds = list(dict.fromkeys(bound for _, bound in times_s.values()))
    groups = [
        Group({p: t / unit_s for p, (t, b) in times_s.items() if b == bound}, bound / unit_s if bound else None)
        for bound in bounds
    ]
    return beside_bounds(groups, f"total time [{unit}]")


def by_load(points: Mapping[str, Sequence[tuple[float, float]]]) -> Figure:
    """Return mean completion times against the load, a line per policy.

    Parameters
    ----------
    points
        By policy: jobs per hour and seconds.
    """
    figure, ax = one_axes(3.2)
    values = [seconds for each in points.values() for _, seconds in each]
    unit_s, unit = time_unit(float(np.median(values)))
    for i, each in enumerate(points.values()):
        load, seconds = np.array(sorted(each)).T
        ax.plot(load, seconds / unit_s, marker="o", markersize=4, **line_style(i))
    if max(values) > 20 * min(values):
        log_axis(ax, "y", number)
    else:
        ax.set_ylim(0.0, max(values) / unit_s * 1.05)
    ax.set(xlabel="arrivals [jobs per hour]", ylabel=f"mean completion time [{unit}]")
    ax.grid()
    line_legend(figure, [label(policy, 30) for policy in points])
    return figure
