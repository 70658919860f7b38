"""Figures of simulated histories: who held which GPU when, how soon jobs completed, how busy GPUs and CPUs were."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from matplotlib.figure import Figure

from schedgap.harness.figure import Drawn, Part, figure, parts
from schedgap.harness.plots import style
from schedgap.harness.plots.gantt import Chart, gantt, of_trace
from schedgap.harness.plots.results import counted, some
from schedgap.harness.plots.style import FEW_LINES, MAX_LINES, MAX_ROWS, PALETTE, label, one_axes, panels
from schedgap.harness.simulate.row import Rounds, Simulation, SimulationRow
from schedgap.harness.text import clean, number
from schedgap.heuristics.simulator import Trace
from schedgap.heuristics.simulator.metrics import LONG_S
from schedgap.instances.arrays import Array

MAX_CHARTS = 4
"""Policies in one Gantt chart."""

MAX_PANELS = 6
"""Policies whose rounds are drawn beside their bounds."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Histories(Part):
    """Rows of all instances; histories of the last one by policy, and what the rounds of sensitive ones are worth."""

    rows: Sequence[SimulationRow]
    traces: Mapping[str, Trace]
    rounds: Mapping[str, Rounds]

    @property
    def first(self) -> Trace:
        """The history that the axes are made for."""
        return next(iter(self.traces.values()))

    @cached_property
    def looks(self) -> dict[str, style.Look]:
        """Look of each policy."""
        return style.looks(row.policy for row in self.rows)

    def few(self, policies: Collection[str], most: int) -> tuple[dict[str, Trace], str]:
        """Return the histories of the first policies, of which there is one at least, and the end of a caption: n."""
        shown = {policy: self.traces[policy] for policy in list(some(policies))[:most]}
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
    where, kind = clean(results.rows[-1].instance, 40), "simulation"
    return [Histories(of=kind, group=kind, where=where, rows=results.rows, traces=traces, rounds=rounds)]


simulated = partial(figure, of="simulation")


@simulated("simulation.ttd", "Total time beside its bound")
def total_times(data: Histories) -> Drawn:
    """Time from the first arrival to the last completion (TTD).

    In brackets: at most so many times the least that any schedule can reach, by the bound.
    """
    some(data.traces)
    rows = [row for row in data.rows if row.ttd_s and row.verified][:MAX_ROWS]
    bounds = list(dict.fromkeys(row.ttd_bound_s for row in rows))
    if len({row.fingerprint for row in data.rows}) > 1 or not any(bounds):
        return None
    groups = [style.Group({row.policy: row.ttd_s or 0.0 for row in rows if row.ttd_bound_s == b}, b) for b in bounds]
    return style.times_beside_bounds(groups, "total time"), data.n(len(rows), len(data.rows))


@simulated("simulation.gantt", "Schedules")
def schedules(data: Histories) -> Drawn:
    """Which job holds which GPU over time, one row per GPU, servers by type."""
    shown, n = data.few(data.traces, MAX_CHARTS)
    bars = {f"{label(policy, 30)}: {number(t.makespan_s / 3600)} h": of_trace(t) for policy, t in shown.items()}
    first = data.first
    canvas, words = gantt(Chart(first.servers, first.workload.gpu_types, first.workload.ids), bars)
    return canvas, words + n


@simulated("simulation.jct-cdf", "Completion times")
def completion_times(data: Histories) -> Drawn:
    """Share of all jobs that have completed after a time since their arrival."""
    shown, n = data.few(data.traces, MAX_LINES)
    return style.completion_cdf({policy: trace.jct_s for policy, trace in shown.items()}, data.looks), n


@simulated("simulation.utilisation", "GPUs in use over time")
def gpus_in_use(data: Histories) -> Drawn:
    """Share of the GPU time of each round in which GPUs computed."""
    shown, n = data.few(data.traces, MAX_LINES)
    shares = {policy: _over_time(trace, trace.utilisation) for policy, trace in shown.items()}
    return style.utilisation(shares, data.first.round_s, data.looks), n


def _over_time(trace: Trace, values: Array) -> Array:
    """Return the values of every round from the first to the last, 0 in rounds without any job."""
    row = np.rint((trace.start_s - trace.start_s[0]) / trace.round_s).astype(np.int64)
    every = np.zeros(int(row[-1]) + 1)
    every[row] = values
    return every


@simulated("simulation.lp1", "Rounds beside LP1")
def rounds_beside_lp1(data: Histories) -> Drawn:
    """Progress of each round, and the most that Synergy's LP1 allows for the jobs that the policy picked.

    The unit is each job's progress with its proportional share; in long runs neighbouring rounds are averaged. Where a
    mechanism runs other jobs than those, the bound is a comparison only.
    """
    shown, n = data.few([policy for policy, each in data.rounds.items() if np.any(each.most > 0)], MAX_PANELS)
    progress = {policy: _over_time(trace, data.rounds[policy].progress) for policy, trace in shown.items()}
    most = {policy: _over_time(trace, data.rounds[policy].most) for policy, trace in shown.items()}
    return against_lp1(progress, most, data.first.round_s), n


def against_lp1(progress: Mapping[str, Array], most: Mapping[str, Array], round_s: float) -> Figure:
    """Return the progress of rounds under the most that LP1 allows, a panel per policy; long runs are averaged."""
    rows = [np.nan_to_num(row) for each in (progress, most) for row in each.values()]
    cells, times, xlabel = style.time_cells(rows, round_s)
    canvas, axes = panels(len(progress), 1.7, 2, xlabel, "progress [fair shares]", "y", sharex=True, sharey=True)
    for i, (ax, policy) in enumerate(zip(axes, progress, strict=True)):
        known = most[policy] > 0
        mean = float((progress[policy][known] / most[policy][known]).mean()) if known.any() else np.nan
        until = (len(known) - 1) * cells.shape[1] // max(map(len, rows)) + 1
        reached, allowed = cells[[i, i + len(progress)], :until]
        edges = times[: until + 1]
        ax.stairs(allowed, edges, baseline=reached, fill=True, color=style.FAINT)
        ax.stairs(allowed, edges, baseline=None, lw=1.1, **style.BOUND)
        ax.stairs(reached, edges, baseline=None, color=PALETTE[0], lw=1.3)
        ax.set(title=f"{label(policy, 30)}: mean {100 * mean:.1f} %", xlim=(0.0, times[-1]))
    axes[0].set_ylim(0.0, 1.04 * max(float(row.max()) for row in rows[len(progress) :]))
    look = {"progress of the round": {"color": PALETTE[0]}, "most by LP1 for the jobs picked": style.BOUND}
    style.line_legend(canvas, {**look, "distance": {"color": style.FAINT, "lw": 7}}, limit=40)
    return canvas


@simulated("simulation.short-long", "Completion times of short and long jobs")
def short_and_long_jobs(data: Histories) -> Drawn:
    """Share of all jobs that have completed after a time since their arrival, on two scales."""
    shown, n = data.few(data.rounds, MAX_LINES)
    return short_and_long({policy: trace.jct_s for policy, trace in shown.items()}, data.looks), n


def short_and_long(times_s: Mapping[str, Array], looks: Mapping[str, style.Look]) -> Figure:
    """Return the share of jobs that have completed after a time (NaN: never): short jobs, and long ones beside them."""
    split = LONG_S / 3600
    hours = {policy: times / 3600 for policy, times in times_s.items()}
    end = max(1.5 * split, *(float(times[np.isfinite(times)].max(initial=0.0)) for times in hours.values()))
    canvas, (left, right) = panels(2, 2.4, 2, "completion time [h]", "share of jobs completed", "both", sharey=True)
    for policy, times in hours.items():
        for ax in (left, right):
            style.share_line(ax, times, 0.0, 1.1 * end, looks[policy])
    left.set(title=f"short: below {split:g} h", xlim=(0.0, split), ylim=(0.0, 1.02))
    if end > 8 * split:
        style.log_axis(right, "x")
    right.set(title=f"long: {split:g} h and more", xlim=(split, end * 1.02))
    style.completion_legend(canvas, times_s, looks)
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
    return resources(shares, data.first.round_s, data.looks), n


def resources(shares: Mapping[str, Mapping[str, Array]], round_s: float, looks: Mapping[str, style.Look]) -> Figure:
    """Return shares (0 to 1) of resources over time: a panel with lines for each, or of many policies means only.

    Means are over each policy's own rounds.
    """
    policies = list(next(iter(shares.values())))
    if len(policies) <= FEW_LINES:
        return style.share_lines(shares, round_s, looks, 1.45, "[%]")
    canvas, ax = one_axes(1.2 + 0.3 * len(policies), "mean over the run [%]", grid="both")
    for i, (resource, each) in enumerate(shares.items()):
        means = [100 * float(values.mean()) for values in each.values()]
        # side by side, so that equal shares hide no one
        y = np.arange(len(policies)) + 0.22 * (i - (len(shares) - 1) / 2)
        ax.plot(means, y, ls="", marker="os^D"[i % 4], ms=5, color=PALETTE[i], label=resource)
    style.listed_axis(ax, policies)
    ax.set_xlim(0.0, 103.0)
    style.legend_below(canvas, ax.get_legend_handles_labels()[0])
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
    group = style.Group({row.policy: row.jct_mean_s or 0.0 for row in rows}, bound_s)
    return style.times_beside_bounds([group], "mean completion time"), proved + data.n(len(rows), len(data.rounds))


@simulated("simulation.load", "Completion times by load")
def times_by_load(data: Histories) -> Drawn:
    """Mean time from arrival to completion of the jobs that count, by how many jobs arrive in an hour."""
    rows = [row for row in data.rows if row.jct_mean_s and row.arrivals_per_h and row.verified]
    instances = len({row.fingerprint for row in rows})
    if instances < 2:
        return None
    points: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        points.setdefault(row.policy, []).append((row.arrivals_per_h or 0.0, row.jct_mean_s or 0.0))
    shown = list(points)[:MAX_LINES]
    seconds = [s for policy in shown for _, s in points[policy]]
    unit_s, unit = style.time_unit(float(np.median(seconds)))
    canvas, ax = one_axes(3.2, "arrivals [jobs per hour]", f"mean completion time [{unit}]", "both")
    for policy in shown:
        load, jct_s = np.array(sorted(points[policy])).T
        ax.plot(load, jct_s / unit_s, marker="o", markersize=4, **data.looks[policy])
    if max(seconds) > style.WIDE * min(seconds):
        style.log_axis(ax, "y")
    else:
        ax.set_ylim(0.0, max(seconds) / unit_s * 1.05)
    style.line_legend(canvas, {policy: data.looks[policy] for policy in shown})
    return canvas, f"n = {counted(instances, 'instance')}, {_policies(len(shown), len(points))}."
