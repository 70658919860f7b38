"""Figures of admission: the price increase due to each admitted job, and Gantt charts of workers."""

from __future__ import annotations

from itertools import pairwise

import altair as alt
import numpy as np

from schedgap.harness.show.figure import Drawn, figure
from schedgap.harness.show.plots import style
from schedgap.harness.show.plots.gantt import NAMED_JOBS, best_and_online, of_runs, schedules, server_rows
from schedgap.harness.show.plots.results import Compared
from schedgap.harness.show.text import clean, number
from schedgap.heuristics.admission.online import Desk, price
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.moldable import Runs
from schedgap.instances.text import counted
from schedgap.instances.views.admission import UTILITY, AdmissionView

ONLINE = "admission.online"

MAX_STEPS = 20
"""Maximum number of layers in the chart of prices; if more jobs are admitted, they are drawn in this many groups."""

MAX_TYPES = 4
"""Maximum number of worker and PS types that are drawn; the most expensive ones are."""


def replayed(view: AdmissionView, runs: Runs, after: Ints) -> Array:
    """Return ``(len(after), R, T)`` prices η of an online decision after each number of admissions in `after`."""
    machines, desk = view.machines, Desk(view)
    amounts = np.zeros((runs.job.size, len(machines.resources)))
    np.add.at(amounts, (runs.run, runs.worker_type[runs.run]), runs.workers)
    np.add.at(amounts, (runs.run, len(machines.worker_types) + runs.ps_type[runs.run]), runs.ps)
    used = np.zeros((len(machines.resources), view.slots))
    prices = []
    for first, last in pairwise([0, *after.tolist()]):
        for a in range(first, last):
            used[:, runs.start[a] : runs.start[a] + runs.slots[a]] += amounts[a][:, None]
        prices.append(price(desk.bases[:, None], used, desk.divisor))
    return np.array(prices)


@figure("admission.steps", "Prices step by step", of="instance")
def steps(data: Compared) -> Drawn:
    """Prices of workers and parameter servers over time, as admission.online admits one job after another.

    The price η = θ^(h/ΣΣC) − 1 is that of one worker of a type, or of one parameter server, in utility per slot.
    """
    runs = data.running(Runs).get(ONLINE)
    if runs is None:
        return None
    view: AdmissionView = data.view
    admitted = runs.job.size
    after = np.linspace(0, admitted, min(admitted, MAX_STEPS) + 1).astype(np.int64)
    prices = replayed(view, runs, after)
    shown = style.dearest(prices.max(axis=0), MAX_TYPES)
    edges = style.time_edges(int(np.flatnonzero(prices.any(axis=(0, 1)))[-1]) + 1)
    times = edges * view.slot_s / data.clock.seconds
    panels = {r: f"price η of one {clean(view.machines.resources[r], 20)}" for r in shown.tolist()}
    jobs = [
        clean(view.ids[runs.job[first]], 16) if last == first + 1 else f"{first + 1} to {last}"
        for first, last in pairwise(after.tolist())
    ]
    records = []
    for r, title in panels.items():
        for k, row in enumerate(np.diff(prices[:, r], axis=0)):
            added = style.averaged(row, edges)
            records.append(
                {"panel": title, "job": jobs[k], "order": k, "time": times, "added": np.append(added, added[-1])}
            )
    few = len(jobs) <= NAMED_JOBS
    chart = style.plot(
        records,
        alt.MarkDef("area", interpolate="step-after"),
        style.time_axis(data.clock, times[-1]),
        style.y("added", "utility per slot").stack("zero"),
        color=style.named("job", jobs) if few else alt.Color("order:Q", title="order of admission", legend=None),
        order="order:Q",
        tips=["job", ("panel", "what")],
        flat=["time", "added"],
        size=(style.WIDTH // 2 - 40, 140),
        panels=list(panels.values()),
        columns=2,
    )
    whose = "each admitted job" if len(jobs) == admitted else f"the admitted jobs in {MAX_STEPS} groups"
    words = f"Colours: the increase due to {whose}, stacked in the order of admission."
    used = len(np.unique(runs.worker_type)) + 1
    free = len(view.machines.resources) - used
    words += f" Free throughout and not drawn: {counted(free, 'type')}." if free else ""
    words += f" Only the {MAX_TYPES} most expensive of {used} types are drawn." if used > MAX_TYPES else ""
    return chart, f"{words} {counted(admitted, 'job')} admitted. {data.n(1)}"


@figure("admission.workers", "Admitted jobs", of="instance")
def workers(data: Compared) -> Drawn:
    """Jobs on workers over time, one row per worker; white lines separate servers, which are grouped by GPU type.

    Shown are the decision of admission.online and the one with the largest utility of the other methods.
    """
    pairs, bars = best_and_online(data, ONLINE, Runs, (UTILITY.id,)), {}
    view: AdmissionView = data.view
    gpus = view.machines.capacity[:, : len(view.machines.worker_types)].sum(axis=1).astype(np.int64)
    for row, runs in pairs:
        admitted = f"{runs.job.size} of {counted(view.size, 'job')} admitted"
        title = f"{style.name(row.method)}: utility {number(row.objective, 5)}, {admitted}"
        bars[title] = of_runs(runs, runs.workers, view.slot_s, 0)
    return schedules(data, server_rows(view.instance, gpus, view.ids), bars)
