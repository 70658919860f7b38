"""Figures of simulated histories: who held which GPU when, how soon jobs completed, how busy the GPUs were."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from harness.plots.curves import MAX_LINES, completion_cdf, utilisation
from harness.plots.figures import Drawn, counted
from harness.plots.gantt import Chart, gantt, hidden, of_trace
from harness.plots.style import label, styled
from harness.render.text import clean, number
from heuristics.simulator import Trace

Array = NDArray[np.float64]

PANELS = 4
"""Policies in one Gantt chart."""


def drawn(instance: str, traces: Mapping[str, Trace]) -> list[Drawn]:
    """Return the figures of one instance's histories.

    Parameters
    ----------
    instance
        Its name, for the titles.
    traces
        Histories by policy.
    """
    known = {policy: trace for policy, trace in traces.items() if trace.rounds}
    if not known:
        return []
    shown = dict(list(known.items())[:MAX_LINES])
    first = next(iter(known.values()))
    where = f"{counted(len(first.workload.ids), 'job')} under {counted(len(shown), 'policy')} on {clean(instance, 40)}"
    where = where.replace("policys", "policies")
    charts: list[tuple[str, str, str, Callable[[], Figure]]] = [
        (
            "gantt",
            "Schedules",
            f"Which job holds which GPU over time, one row per GPU, servers by type.{hidden(first.servers)}",
            lambda: _gantt(dict(list(known.items())[:PANELS])),
        ),
        (
            "jct-cdf",
            "Completion times",
            "Share of all jobs that have completed after a time since their arrival.",
            lambda: completion_cdf({policy: trace.jct_s for policy, trace in shown.items()}),
        ),
        (
            "utilisation",
            "GPUs in use over time",
            "Share of the GPU time of each round in which GPUs computed.",
            lambda: utilisation({policy: _busy(trace) for policy, trace in shown.items()}, first.round_s),
        ),
    ]
    return [_titled(f"simulation-{name}", title, f"{text} n = {where}.", draw) for name, title, text, draw in charts]


def _titled(name: str, title: str, caption: str, draw: Callable[[], Figure]) -> Drawn:
    with styled():
        figure = draw()
        figure.suptitle(title, x=0.01, ha="left")
    return Drawn(name, title, caption, figure)


def _gantt(traces: Mapping[str, Trace]) -> Figure:
    first = next(iter(traces.values()))
    titles = [f"{label(policy, 30)}: {number(trace.makespan_s / 3600)} h" for policy, trace in traces.items()]
    chart = Chart(first.servers, first.workload.gpu_types, first.workload.ids)
    return gantt(chart, list(zip(titles, map(of_trace, traces.values()), strict=True)))


def _busy(trace: Trace) -> Array:
    """Return the utilisation of every round from the first to the last, also of rounds without any job."""
    row = np.rint((trace.start_s - trace.start_s[0]) / trace.round_s).astype(np.int64)
    busy = np.zeros(int(row[-1]) + 1)
    busy[row] = trace.utilisation
    return busy
