"""Figures of simulated histories: Gantt charts, completion times, and use of GPUs and CPUs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import altair as alt
import numpy as np

from schedgap.harness.show.figure import Drawn, Part, figure, parts
from schedgap.harness.show.looks import Look
from schedgap.harness.show.measures import SIMULATE
from schedgap.harness.show.plots import style
from schedgap.harness.show.plots.gantt import Chart, gantt, of_trace
from schedgap.harness.show.plots.results import some
from schedgap.harness.show.text import clean
from schedgap.harness.studies.simulate.row import Rounds, Simulation, SimulationRow
from schedgap.heuristics.simulator import Trace
from schedgap.instances.arrays import Array
from schedgap.instances.text import counted

MAX_CHARTS = 4
"""Maximum number of policies in a Gantt chart."""

MAX_PANELS = 6
"""Maximum number of policies whose rounds are compared with LP1."""

REACHED, ALLOWED = "progress of the round", "most by LP1 for the jobs picked"


@dataclass(frozen=True, eq=False, kw_only=True)
class Histories(Part):
    """Results of a simulation: rows of all instances, and each policy's history on the last instance.

    `rounds` has the :class:`Rounds` of the policies that allocate CPUs and memory.
    """

    rows: Sequence[SimulationRow]
    traces: Mapping[str, Trace]
    rounds: Mapping[str, Rounds]
    clock: style.Clock

    @property
    def first(self) -> Trace:
        """The history that determines the axes."""
        return next(iter(self.traces.values()))

    @cached_property
    def looks(self) -> dict[str, Look]:
        """Colour and dashes of each policy, the same in all figures."""
        return style.looks(row.policy for row in self.rows)

    def few(self, policies: Collection[str], most: int = style.MAX_ROWS) -> tuple[dict[str, Trace], str]:
        """Return the histories of the first policies (at least one), and the end of a caption."""
        shown = {policy: self.traces[policy] for policy in list(some(policies))[:most]}
        return shown, self.n(len(shown), len(policies))

    def n(self, drawn: int, total: int) -> str:
        """Return the end of a caption: the numbers of jobs and policies, and the instance."""
        jobs = counted(len(self.first.workload.ids), "job")
        return f"n = {jobs} on {self.where}, {_policies(drawn, total)}."


def _policies(drawn: int, total: int) -> str:
    policies = counted(drawn, "policy", "policies")
    return policies if drawn == total else f"the first {drawn} of {total} policies"


@parts.register
def _(results: Simulation) -> list[Histories]:
    if not results.rows:
        return []
    traces = {policy: trace for policy, trace in results.traces.items() if trace.rounds}
    rounds = {policy: each for policy, each in results.rounds.items() if policy in traces}
    where, kind = clean(results.rows[-1].instance, 40), "simulation"
    unit = style.clock_of(next(iter(results.instances.values()))) if results.instances else style.CLOCKS[0][1]
    return [Histories(of=kind, group=kind, where=where, rows=results.rows, traces=traces, rounds=rounds, clock=unit)]


simulated = partial(figure, of="simulation")


@simulated("simulation.ttd", "Total time and its lower bound")
def total_times(data: Histories) -> Drawn:
    """Time from the first arrival to the last completion (TTD).

    In brackets: ratio to the lower bound, and hence an upper estimate of the ratio to the best possible schedule.
    """
    some(data.traces)
    rows = [row for row in data.rows if row.ttd_s and row.verified][: style.MAX_ROWS]
    bounds = list(dict.fromkeys(row.ttd_bound_s for row in rows))
    if len({row.fingerprint for row in data.rows}) > 1 or not any(bounds):
        return None
    times = {bound: {row.policy: row.ttd_s or 0.0 for row in rows if row.ttd_bound_s == bound} for bound in bounds}
    groups = [style.ValueGroup(times[bound], bound, f"bound {data.clock.text(bound or 0.0)}") for bound in bounds]
    chart = style.beside_bounds(groups, data.clock.label(SIMULATE["ttd_s"].words), data.looks, data.clock.seconds)
    return chart, data.n(len(rows), len(data.rows))


@simulated("simulation.gantt", "Schedules")
def schedules(data: Histories) -> Drawn:
    """Jobs on GPUs over time, one row per GPU; servers are grouped by GPU type."""
    shown, n = data.few(data.traces, MAX_CHARTS)
    bars = {f"{style.name(policy)}: {data.clock.text(t.makespan_s)}": of_trace(t) for policy, t in shown.items()}
    first = data.first
    canvas, words = gantt(Chart(first.servers, first.workload.gpu_types, first.workload.ids, data.clock), bars)
    return canvas, words + n


@simulated("simulation.jct-cdf", "Completion times")
def completion_times(data: Histories) -> Drawn:
    """Share of all jobs completed within a time after their arrival."""
    shown, n = data.few(data.traces)
    return style.completion_cdf({policy: trace.jct_s for policy, trace in shown.items()}, data.looks, data.clock), n


@simulated("simulation.utilisation", "GPUs in use over time")
def gpus_in_use(data: Histories) -> Drawn:
    """Share of the GPU time of each round in which GPUs computed."""
    shown, n = data.few(data.traces)
    shares = {policy: {"GPUs": _over_time(trace, trace.utilisation)} for policy, trace in shown.items()}
    return style.strips(shares, data.first.round_s, data.clock, data.looks), n


def _over_time(trace: Trace, values: Array) -> Array:
    """Return one value per round from the first to the last; rounds without jobs have 0."""
    row = np.rint((trace.start_s - trace.start_s[0]) / trace.round_s).astype(np.int64)
    every = np.zeros(int(row[-1]) + 1)
    every[row] = values
    return every


@simulated("simulation.lp1", "Rounds compared with LP1")
def rounds_beside_lp1(data: Histories) -> Drawn:
    """Progress of each round, and the most that Synergy's LP1 allows for the jobs that the policy picked.

    The unit is a job's progress with its proportional share; in long runs, adjacent rounds are averaged. If a mechanism
    runs other jobs than those picked, LP1 is only a reference value, not a bound.
    """
    shown, n = data.few([policy for policy, each in data.rounds.items() if np.any(each.most > 0)], MAX_PANELS)
    progress = {policy: _over_time(trace, data.rounds[policy].progress) for policy, trace in shown.items()}
    most = {policy: _over_time(trace, data.rounds[policy].most) for policy, trace in shown.items()}
    return against_lp1(progress, most, data.first.round_s, data.clock), n


def against_lp1(progress: Mapping[str, Array], most: Mapping[str, Array], round_s: float, unit: style.Clock) -> Any:
    """Return a chart of the progress of rounds and LP1's limit, a panel per policy; adjacent rounds are averaged."""
    edges = style.time_edges(max(map(len, progress.values())))
    times, records = edges * round_s / unit.seconds, []
    for policy, row in progress.items():
        bounded = most[policy] > 0
        mean = float((row[bounded] / most[policy][bounded]).mean()) if bounded.any() else np.nan
        until = int(np.searchsorted(edges, len(row))) + 1
        reached, allowed = (style.averaged(np.nan_to_num(values), edges)[: until - 1] for values in (row, most[policy]))
        share = f"{100 * mean:.1f} %"
        about = {"method": style.name(policy), "panel": f"{style.name(policy)}: mean {share}", "mean": share}
        ends = {REACHED: np.append(reached, reached[-1]), ALLOWED: np.append(allowed, allowed[-1])}
        records.append({**about, "time": times[:until], **ends})
    top = 1.04 * max(float(np.nanmax(each)) for each in most.values())
    axis = style.time_axis(unit, times[-1])
    return style.between(records, axis, (REACHED, ALLOWED), "progress [fair shares]", "mean", top)


@simulated("simulation.resources", "GPUs and CPUs in use", minor=True)
def gpus_and_cpus(data: Histories) -> Drawn:
    """Share of all GPU and CPU time that jobs used while computing, in per cent.

    CPUs needed: the fewest CPUs with which each job would have been equally fast.
    """
    shown, n = data.few(data.rounds)
    held = {
        policy: {
            "GPUs in use": _over_time(trace, trace.utilisation),
            "CPUs given": _over_time(trace, trace.cpu_utilisation),
            "CPUs needed": _over_time(trace, data.rounds[policy].cpus_needed),
        }
        for policy, trace in shown.items()
    }
    return style.strips(held, data.first.round_s, data.clock, data.looks), n


@simulated("simulation.jct-mean", "Mean completion times")
def mean_times(data: Histories) -> Drawn:
    """Mean time from arrival to completion, over the jobs in the window if there is one."""
    here = {row.policy: row for row in data.rows if row.fingerprint == data.rows[-1].fingerprint}
    rows = [here[policy] for policy in data.rounds]
    shown = [row for row in rows if row.jct_mean_s and row.verified][: style.MAX_ROWS]
    if len(shown) < 2:
        return None
    bound_s = next((row.jct_bound_s for row in shown if row.jct_bound_s), None)
    brackets = "In brackets: upper estimate of the ratio to the best possible mean, by the bound. " if bound_s else ""
    group = style.ValueGroup({row.policy: row.jct_mean_s or 0.0 for row in shown}, bound_s)
    chart = style.beside_bounds([group], data.clock.label(SIMULATE["jct_mean_s"].words), data.looks, data.clock.seconds)
    return chart, brackets + data.n(len(shown), len(data.rounds))


@simulated("simulation.load", "Completion times by load")
def times_by_load(data: Histories) -> Drawn:
    """Mean time from arrival to completion by arrivals per hour, over the jobs in the window if there is one."""
    rows = [row for row in data.rows if row.jct_mean_s and row.arrivals_per_h and row.verified]
    instances = len({row.fingerprint for row in rows})
    if instances < 2:
        return None
    names = [style.name(row.policy) for row in rows]
    means = [(row.jct_mean_s or 0.0) / data.clock.seconds for row in rows]
    triples = zip(names, rows, means, strict=True)
    points = [{"method": method, "load": row.arrivals_per_h, "mean": mean} for method, row, mean in triples]
    height = style.y("mean", data.clock.label(SIMULATE["jct_mean_s"].words), log=style.wide(means))
    axes, look = (style.x("load", SIMULATE["arrivals_per_h"].axis), height), style.colour(data.looks, names)
    chart = style.plot(points, alt.MarkDef("line", point=True), *axes, tips=["method", "load", "mean"], **look)
    return chart, f"n = {counted(instances, 'instance')}, {_policies(len(set(names)), len(set(names)))}."
