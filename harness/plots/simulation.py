"""Figures of simulated histories: who held which GPU when, how soon jobs completed, how busy GPUs and CPUs were."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from schedgap.harness.plots.curves import FEW_LINES, MAX_LINES, completion_cdf, utilisation
from schedgap.harness.plots.figures import Drawn, counted
from schedgap.harness.plots.gantt import Chart, gantt, hidden, of_trace
from schedgap.harness.plots.rounds import (
    MAX_PANELS,
    Worth,
    against_lp1,
    by_load,
    mean_times,
    resources,
    short_and_long,
    total_times,
)
from schedgap.harness.plots.style import label, styled
from schedgap.harness.simulate.row import Rounds, SimulationRow
from schedgap.harness.text import clean, number
from schedgap.heuristics.simulator import Trace
from schedgap.heuristics.simulator.metrics import LONG_S

Array = NDArray[np.float64]

PANELS = 4
"""Policies in one Gantt chart."""

MAX_ROWS = 30
"""Policies in one figure with a row for each."""


@dataclass(frozen=True, eq=False)
class _Histories:
    """What the figures of one instance are drawn from, by policy."""

    rows: Mapping[str, SimulationRow]
    traces: Mapping[str, Trace]
    rounds: Mapping[str, Rounds]

    @property
    def first(self) -> Trace:
        """The history that the axes are made for."""
        return next(iter(self.traces.values()))


def jobs(
    rows: Sequence[SimulationRow], traces: Mapping[str, Trace], rounds: Mapping[str, Rounds]
) -> list[Callable[[], Drawn]]:
    """Return what draws the last instance's histories, and completion times by load where there are several.

    Parameters
    ----------
    rows
        Of all instances.
    traces, rounds
        Histories of the last instance by policy, and what the rounds of sensitive ones are worth.
    """
    known = {policy: trace for policy, trace in traces.items() if trace.rounds}
    here = {row.policy: row for row in rows if row.fingerprint == rows[-1].fingerprint}
    found: list[_Chart] = []
    if known:
        data = _Histories(here, known, {p: each for p, each in rounds.items() if p in known})
        where = f"{counted(len(data.first.workload.ids), 'job')} on {clean(rows[-1].instance, 40)}"
        charts = [*_bounds(rows), *_every(data), *_sensitive(data), *_means(data)]
        found = [replace(c, text=f"{c.text} n = {where}, {c.drawn}.") for c in charts]
    return [partial(_titled, chart) for chart in [*found, *_loads(rows)]]


@dataclass(frozen=True)
class _Chart:
    """A figure to draw: end of its file name, title, caption without n, what is drawn, and how."""

    name: str
    title: str
    text: str
    drawn: str
    draw: Callable[[], Figure]


def _policies(drawn: int, known: int) -> str:
    policies = "1 policy" if drawn == 1 else f"{drawn} policies"
    return policies if drawn == known else f"the first {drawn} of {known} policies"


def _every(data: _Histories) -> Iterator[_Chart]:
    """Yield the figures of any histories."""
    known, first = data.traces, data.first
    shown = dict(list(known.items())[:MAX_LINES])
    charts = dict(list(known.items())[:PANELS])
    yield _Chart(
        "gantt",
        "Schedules",
        f"Which job holds which GPU over time, one row per GPU, servers by type.{hidden(first.servers)}",
        _policies(len(charts), len(known)),
        lambda: _gantt(charts),
    )
    yield _Chart(
        "jct-cdf",
        "Completion times",
        "Share of all jobs that have completed after a time since their arrival.",
        _policies(len(shown), len(known)),
        lambda: completion_cdf({policy: trace.jct_s for policy, trace in shown.items()}),
    )
    yield _Chart(
        "utilisation",
        "GPUs in use over time",
        "Share of the GPU time of each round in which GPUs computed.",
        _policies(len(shown), len(known)),
        lambda: utilisation({p: _over_time(trace, trace.utilisation) for p, trace in shown.items()}, first.round_s),
    )


def _sensitive(data: _Histories) -> Iterator[_Chart]:
    """Yield the figures of histories in which policies give out CPUs and memory."""
    traces = {policy: data.traces[policy] for policy in data.rounds}
    if not traces:
        return
    panels = {p: Worth(traces[p].start_s, w.progress, w.most) for p, w in data.rounds.items() if np.any(w.most > 0)}
    if panels:
        yield _Chart(
            "lp1",
            "Rounds beside LP1",
            "Progress of each round, in units of each job's progress with its proportional share, and the most that "
            "Synergy's LP1 allows for the jobs that the policy picked (means of neighbouring rounds in long runs). "
            "Where a mechanism runs other jobs than those, the bound is a comparison only.",
            _policies(min(len(panels), MAX_PANELS), len(panels)),
            lambda: against_lp1(panels, data.first.round_s),
        )
    shown = dict(list(traces.items())[:MAX_LINES])
    yield _Chart(
        "short-long",
        "Completion times of short and long jobs",
        "Share of all jobs that have completed after a time since their arrival, on two scales.",
        _policies(len(shown), len(traces)),
        lambda: short_and_long({p: trace.jct_s for p, trace in shown.items()}, LONG_S),
    )
    most = MAX_ROWS if len(traces) > FEW_LINES else FEW_LINES
    some = dict(list(traces.items())[:most])
    yield _Chart(
        "resources",
        "GPUs and CPUs in use",
        "Share of the time of all GPUs and CPUs in which a job computed with them; needed are the fewest CPUs at which "
        "each job would have been as fast.",
        _policies(len(some), len(traces)),
        lambda: resources(_resources(some, data.rounds), data.first.round_s),
    )


def _resources(traces: Mapping[str, Trace], worth: Mapping[str, Rounds]) -> dict[str, dict[str, Array]]:
    return {
        "GPUs in use": {p: _over_time(trace, trace.utilisation) for p, trace in traces.items()},
        "CPUs given": {p: _over_time(trace, trace.cpu_utilisation) for p, trace in traces.items()},
        "CPUs needed": {p: _over_time(trace, worth[p].cpus_needed) for p, trace in traces.items()},
    }


def _means(data: _Histories) -> Iterator[_Chart]:
    """Yield the mean completion times of policies that give out CPUs and memory, beside their bound."""
    rows = [data.rows[p] for p in data.rounds if data.rows[p].jct_mean_s and data.rows[p].verified][:MAX_ROWS]
    if len(rows) < 2:
        return
    bound_s = next((row.jct_bound_s for row in rows if row.jct_bound_s), None)
    means_s = {row.policy: row.jct_mean_s for row in rows if row.jct_mean_s}
    proved = " In brackets: at most so many times the best possible mean, by the bound." if bound_s else ""
    yield _Chart(
        "jct-mean",
        "Mean completion times",
        f"Mean time from arrival to completion of the jobs that count.{proved}",
        _policies(len(means_s), len(data.rounds)),
        lambda: mean_times(means_s, bound_s),
    )


def _loads(rows: Sequence[SimulationRow]) -> Iterator[_Chart]:
    """Yield mean completion times by load, where instances differ in it."""
    known = [row for row in rows if row.jct_mean_s and row.arrivals_per_h and row.verified]
    instances = {row.fingerprint for row in known}
    if len(instances) < 2:
        return
    points: dict[str, list[tuple[float, float]]] = {}
    for row in known:
        points.setdefault(row.policy, []).append((row.arrivals_per_h or 0.0, row.jct_mean_s or 0.0))
    shown = dict(list(points.items())[:MAX_LINES])
    text = (
        "Mean time from arrival to completion of the jobs that count, against how many jobs arrive in an hour on "
        f"average. n = {counted(len(instances), 'instance')}, {_policies(len(shown), len(points))}."
    )
    yield _Chart("load", "Completion times by load", text, "", lambda: by_load(shown))


def _bounds(rows: Sequence[SimulationRow]) -> Iterator[_Chart]:
    """Yield the total times of policies beside their certified bounds, where one instance has some."""
    known = [row for row in rows if row.ttd_s and row.verified][:MAX_ROWS]
    if len({row.fingerprint for row in rows}) > 1 or not any(row.ttd_bound_s for row in known):
        return
    yield _Chart(
        "ttd",
        "Total time beside its bound",
        "Time from the first arrival to the last completion (TTD). In brackets: at most so many times the least that "
        "any schedule can reach, by the bound.",
        _policies(len(known), len(rows)),
        lambda: total_times({row.policy: (row.ttd_s or 0.0, row.ttd_bound_s) for row in known}),
    )


def _titled(chart: _Chart) -> Drawn:
    with styled():
        figure = chart.draw()
        figure.suptitle(chart.title, x=0.01, ha="left")
    return Drawn(f"simulation-{chart.name}", chart.title, chart.text, figure, "simulation", chart.title)


def _gantt(traces: Mapping[str, Trace]) -> Figure:
    first = next(iter(traces.values()))
    titles = [f"{label(policy, 30)}: {number(trace.makespan_s / 3600)} h" for policy, trace in traces.items()]
    chart = Chart(first.servers, first.workload.gpu_types, first.workload.ids)
    return gantt(chart, list(zip(titles, map(of_trace, traces.values()), strict=True)))


def _over_time(trace: Trace, shares: Array) -> Array:
    """Return the shares of every round from the first to the last, 0 in rounds without any job."""
    row = np.rint((trace.start_s - trace.start_s[0]) / trace.round_s).astype(np.int64)
    every = np.zeros(int(row[-1]) + 1)
    every[row] = shares
    return every
