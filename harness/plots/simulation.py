"""Figures of simulated histories: who held which GPU when, how soon jobs completed, how busy GPUs and CPUs were."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from schedgap.harness.figure import Drawn, Part, figure, parts
from schedgap.harness.plots.gantt import Chart, gantt, of_trace
from schedgap.harness.plots.pieces import (
    FEW_LINES,
    Group,
    completed,
    completion_cdf,
    share_line,
    share_stairs,
    time_cells,
    times_beside_bounds,
    utilisation,
)
from schedgap.harness.plots.results import counted
from schedgap.harness.plots.style import (
    DASHED,
    FAINT,
    MAX_LINES,
    PALETTE,
    WIDE,
    Look,
    label,
    legend_below,
    line_legend,
    listed_axis,
    log_axis,
    looks,
    one_axes,
    panels,
    time_unit,
)
from schedgap.harness.simulate.row import Rounds, Simulation, SimulationRow
from schedgap.harness.text import clean, number
from schedgap.heuristics.simulator import Trace
from schedgap.heuristics.simulator.metrics import LONG_S
from schedgap.instances.arrays import Array

MAX_CHARTS = 4
"""Policies in one Gantt chart."""

MAX_PANELS = 6
"""Policies whose rounds are drawn beside their bounds."""

MAX_ROWS = 30
"""Policies in one figure with a row for each."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Histories(Part):
    """What the figures of a simulation are drawn from.

    Attributes
    ----------
    rows
        Of all instances.
    traces, rounds
        Histories of the last instance by policy, and what the rounds of sensitive ones are worth.
    """

    rows: Sequence[SimulationRow]
    traces: Mapping[str, Trace]
    rounds: Mapping[str, Rounds]

    @property
    def first(self) -> Trace:
        """The history that the axes are made for."""
        return next(iter(self.traces.values()))

    @cached_property
    def looks(self) -> dict[str, Look]:
        """Look of each policy."""
        return looks(row.policy for row in self.rows)

    def few(self, policies: Collection[str], most: int) -> tuple[dict[str, Trace], str]:
        """Return the histories of the first policies, and the end of a caption: n."""
        shown = {policy: self.traces[policy] for policy in list(policies)[:most]}
        return shown, self.n(len(shown), len(policies))

    def n(self, drawn: int, known: int) -> str:
        """Return the end of a caption: jobs, instance and policies."""
        jobs = counted(len(self.first.workload.ids), "job")
        return f"n = {jobs} on {self.where}, {_policies(drawn, known)}."


def _policies(drawn: int, known: int) -> str:
    policies = "1 policy" if drawn == 1 else f"{drawn} policies"
    return policies if drawn == known else f"the first {drawn} of {known} policies"


@parts.register
def _(results: Simulation) -> list[Histories]:
    if not results.rows:
        return []
    traces = {policy: trace for policy, trace in results.traces.items() if trace.rounds}
    rounds = {policy: each for policy, each in results.rounds.items() if policy in traces}
    where = clean(results.rows[-1].instance, 40)
    kind = "simulation"
    return [Histories(of=kind, group=kind, where=where, rows=results.rows, traces=traces, rounds=rounds)]


simulated = partial(figure, of="simulation")


# ---------------------------------------------------------------- any histories


@simulated("simulation.ttd", "Total time beside its bound")
def total_times(data: Histories) -> Drawn:
    """Time from the first arrival to the last completion (TTD).

    In brackets: at most so many times the least that any schedule can reach, by the bound.
    """
    rows = [row for row in data.rows if row.ttd_s and row.verified][:MAX_ROWS]
    bounds = list(dict.fromkeys(row.ttd_bound_s for row in rows))
    if not data.traces or len({row.fingerprint for row in data.rows}) > 1 or not any(bounds):
        return None
    groups = [Group({row.policy: row.ttd_s or 0.0 for row in rows if row.ttd_bound_s == b}, b) for b in bounds]
    return times_beside_bounds(groups, "total time"), data.n(len(rows), len(data.rows))


@simulated("simulation.gantt", "Schedules")
def schedules(data: Histories) -> Drawn:
    """Which job holds which GPU over time, one row per GPU, servers by type."""
    shown, n = data.few(data.traces, MAX_CHARTS)
    if not shown:
        return None
    bars = {f"{label(policy, 30)}: {number(t.makespan_s / 3600)} h": of_trace(t) for policy, t in shown.items()}
    first = data.first
    canvas, words = gantt(Chart(first.servers, first.workload.gpu_types, first.workload.ids), bars)
    return canvas, words + n


@simulated("simulation.jct-cdf", "Completion times")
def completion_times(data: Histories) -> Drawn:
    """Share of all jobs that have completed after a time since their arrival."""
    shown, n = data.few(data.traces, MAX_LINES)
    times = {policy: trace.jct_s for policy, trace in shown.items()}
    return (completion_cdf(times, data.looks), n) if shown else None


@simulated("simulation.utilisation", "GPUs in use over time")
def gpus_in_use(data: Histories) -> Drawn:
    """Share of the GPU time of each round in which GPUs computed."""
    shown, n = data.few(data.traces, MAX_LINES)
    shares = {policy: _over_time(trace, trace.utilisation) for policy, trace in shown.items()}
    return (utilisation(shares, data.first.round_s, data.looks), n) if shown else None


def _over_time(trace: Trace, shares: Array) -> Array:
    """Return the shares of every round from the first to the last, 0 in rounds without any job."""
    row = np.rint((trace.start_s - trace.start_s[0]) / trace.round_s).astype(np.int64)
    every = np.zeros(int(row[-1]) + 1)
    every[row] = shares
    return every


# ---------------------------------------------------------------- histories with CPUs and memory


@dataclass(frozen=True, eq=False)
class Worth:
    """Progress of each round, what LP1 allows, and the start of each in seconds, ``(R,)`` each."""

    start_s: Array
    progress: Array
    most: Array


@simulated("simulation.lp1", "Rounds beside LP1")
def rounds_beside_lp1(data: Histories) -> Drawn:
    """Progress of each round, and the most that Synergy's LP1 allows for the jobs that the policy picked.

    The unit is each job's progress with its proportional share; in long runs neighbouring rounds are averaged. Where a
    mechanism runs other jobs than those, the bound is a comparison only.
    """
    shown, n = data.few([policy for policy, each in data.rounds.items() if np.any(each.most > 0)], MAX_PANELS)
    worth = {p: Worth(trace.start_s, data.rounds[p].progress, data.rounds[p].most) for p, trace in shown.items()}
    return (against_lp1(worth, data.first.round_s), n) if shown else None


def against_lp1(worth: Mapping[str, Worth], round_s: float) -> Figure:
    """Return the progress of rounds under the most that LP1 allows, a panel per policy; long runs are averaged."""
    first_s = min(float(each.start_s[0]) for each in worth.values())
    end_s = max(float(each.start_s[-1]) for each in worth.values()) + round_s
    slots = round((end_s - first_s) / round_s)
    top = max(float(np.nanmax(each.most)) for each in worth.values())
    cells = []
    for each in worth.values():
        row = np.rint((each.start_s - first_s) / round_s).astype(np.int64)
        full = np.zeros((2, slots))
        full[:, row] = np.nan_to_num([each.progress, each.most])
        cells += [*full]
    means, times, xlabel = time_cells(cells, round_s)
    canvas, axes = panels(len(worth), 1.7, 2, xlabel, "progress [fair shares]", sharex=True, sharey=True)
    for i, (ax, (policy, each)) in enumerate(zip(axes, worth.items(), strict=True)):
        until = (each.start_s[-1] - first_s) / round_s * times[-1] / slots * (1 + 1e-9)
        progress, most = np.where(times[:-1] <= until, means[2 * i : 2 * i + 2], np.nan)
        ax.stairs(most, times, baseline=progress, fill=True, color=FAINT)
        ax.stairs(most, times, baseline=None, color=PALETTE[3], lw=1.1, ls=DASHED)
        ax.stairs(progress, times, baseline=None, color=PALETTE[0], lw=1.3)
        known = np.isfinite(each.most) & (each.most > 0)
        mean = float((each.progress[known] / each.most[known]).mean()) if known.any() else np.nan
        ax.set(title=f"{label(policy, 30)}: mean {100 * mean:.1f} %", xlim=(0.0, times[-1]), ylim=(0.0, top * 1.04))
        ax.grid(axis="y")
    handles = [
        Line2D([], [], color=PALETTE[0], label="progress of the round"),
        Line2D([], [], color=PALETTE[3], ls=DASHED, label="most by LP1 for the jobs picked"),
        Line2D([], [], color=FAINT, lw=7, label="distance"),
    ]
    legend_below(canvas, handles)
    return canvas


@simulated("simulation.short-long", "Completion times of short and long jobs")
def short_and_long_jobs(data: Histories) -> Drawn:
    """Share of all jobs that have completed after a time since their arrival, on two scales."""
    shown, n = data.few(data.rounds, MAX_LINES)
    times = {policy: trace.jct_s for policy, trace in shown.items()}
    return (short_and_long(times, LONG_S, data.looks), n) if shown else None


def short_and_long(times_s: Mapping[str, Array], split_s: float, styles: Mapping[str, Look] | None = None) -> Figure:
    """Return the share of jobs that have completed after a time (NaN: never), up to `split_s` and from there on."""
    styles = styles or looks(times_s)
    known = np.concatenate([t[np.isfinite(t)] for t in times_s.values()])
    end_s = max(float(known.max(initial=0.0)), 1.5 * split_s)
    hours, end = split_s / 3600, end_s / 3600
    canvas, (left, right) = panels(2, 2.4, 2, "completion time [h]", "share of jobs completed", sharey=True)
    for ax in (left, right):
        for policy, times in times_s.items():
            share_line(ax, times / 3600, 0.0, 1.1 * end, styles[policy])
        ax.grid()
    left.set(title=f"short: below {hours:g} h", xlim=(0.0, hours), ylim=(0.0, 1.02))
    right.set(title=f"long: {hours:g} h and more")
    if end_s > 8 * split_s:
        log_axis(right, "x")
    right.set_xlim(hours, end * 1.02)
    line_legend(canvas, completed(times_s, styles))
    return canvas


@simulated("simulation.resources", "GPUs and CPUs in use")
def gpus_and_cpus(data: Histories) -> Drawn:
    """Share of the time of all GPUs and CPUs in which a job computed with them, in per cent.

    Needed are the fewest CPUs at which each job would have been as fast.
    """
    shown, n = data.few(data.rounds, MAX_ROWS if len(data.rounds) > FEW_LINES else FEW_LINES)
    shares = {
        "GPUs in use": {p: _over_time(trace, trace.utilisation) for p, trace in shown.items()},
        "CPUs given": {p: _over_time(trace, trace.cpu_utilisation) for p, trace in shown.items()},
        "CPUs needed": {p: _over_time(trace, data.rounds[p].cpus_needed) for p, trace in shown.items()},
    }
    return (resources(shares, data.first.round_s, data.looks), n) if shown else None


def resources(
    shares: Mapping[str, Mapping[str, Array]], slot_s: float, styles: Mapping[str, Look] | None = None
) -> Figure:
    """Return shares (0 to 1) of resources over time: a panel with lines for each, or of many policies means only."""
    policies = list(next(iter(shares.values())))
    if len(policies) > FEW_LINES:
        return _mean_shares(shares, policies)
    styles = styles or looks(policies)
    cells, times, xlabel = time_cells([values for each in shares.values() for values in each.values()], slot_s)
    canvas, axes = panels(len(shares), 1.45, 1, xlabel, "[%]", sharex=True)
    for i, (ax, resource) in enumerate(zip(axes, shares, strict=True)):
        mine = cells[i * len(policies) : (i + 1) * len(policies)]
        share_stairs(ax, dict(zip(policies, mine, strict=True)), times, styles)
        ax.set_title(resource)
    line_legend(canvas, {label(policy, 30): styles[policy] for policy in policies})
    return canvas


def _mean_shares(shares: Mapping[str, Mapping[str, Array]], policies: Sequence[str]) -> Figure:
    """Return the mean shares of each resource by policy, each up to the policy's own end."""
    canvas, ax = one_axes(1.2 + 0.3 * len(policies))
    for i, (resource, each) in enumerate(shares.items()):
        means = [100 * float(values.mean()) for values in each.values()]
        # side by side, so that equal shares hide no one
        y = np.arange(len(policies)) + 0.22 * (i - (len(shares) - 1) / 2)
        ax.plot(means, y, ls="", marker="os^D"[i % 4], ms=5, color=PALETTE[i], label=resource)
    listed_axis(ax, policies)
    ax.set(xlim=(0.0, 103.0), xlabel="mean over the run [%]")
    ax.grid()
    legend_below(canvas, ax.get_legend_handles_labels()[0])
    return canvas


@simulated("simulation.jct-mean", "Mean completion times")
def mean_times(data: Histories) -> Drawn:
    """Mean time from arrival to completion of the jobs that count."""
    here = {row.policy: row for row in data.rows if row.fingerprint == data.rows[-1].fingerprint}
    rows = [here[policy] for policy in data.rounds if here[policy].jct_mean_s and here[policy].verified][:MAX_ROWS]
    if len(rows) < 2:
        return None
    bound_s = next((row.jct_bound_s for row in rows if row.jct_bound_s), None)
    proved = "In brackets: at most so many times the best possible mean, by the bound. " if bound_s else ""
    groups = [Group({row.policy: row.jct_mean_s or 0.0 for row in rows}, bound_s)]
    return times_beside_bounds(groups, "mean completion time"), proved + data.n(len(rows), len(data.rounds))


# ---------------------------------------------------------------- several instances


@simulated("simulation.load", "Completion times by load")
def times_by_load(data: Histories) -> Drawn:
    """Mean time from arrival to completion of the jobs that count, by how many jobs arrive in an hour."""
    points: dict[str, list[tuple[float, float]]] = {}
    instances = set()
    for row in data.rows:
        if row.jct_mean_s and row.arrivals_per_h and row.verified:
            points.setdefault(row.policy, []).append((row.arrivals_per_h, row.jct_mean_s))
            instances.add(row.fingerprint)
    if len(instances) < 2:
        return None
    shown = dict(list(points.items())[:MAX_LINES])
    n = f"n = {counted(len(instances), 'instance')}, {_policies(len(shown), len(points))}."
    return by_load(shown, data.looks), n


def by_load(points: Mapping[str, Sequence[tuple[float, float]]], styles: Mapping[str, Look] | None = None) -> Figure:
    """Return mean completion times against the load, a line per policy: points are jobs per hour and seconds."""
    styles = styles or looks(points)
    canvas, ax = one_axes(3.2)
    values = [seconds for each in points.values() for _, seconds in each]
    unit_s, unit = time_unit(float(np.median(values)))
    for policy, each in points.items():
        load, seconds = np.array(sorted(each)).T
        ax.plot(load, seconds / unit_s, marker="o", markersize=4, **styles[policy])
    if max(values) > WIDE * min(values):
        log_axis(ax, "y")
    else:
        ax.set_ylim(0.0, max(values) / unit_s * 1.05)
    ax.set(xlabel="arrivals [jobs per hour]", ylabel=f"mean completion time [{unit}]")
    ax.grid()
    line_legend(canvas, {label(policy, 30): styles[policy] for policy in points})
    return canvas
