"""Figures of Hadar: who runs where and when, how soon jobs complete, how busy GPUs are, what they cost."""

from __future__ import annotations

import numpy as np

from schedgap.harness.figure import Drawn, figure
from schedgap.harness.plots.gantt import Chart, gantt, of_schedule
from schedgap.harness.plots.pieces import completion_cdf, price_map, utilisation
from schedgap.harness.plots.results import Compared, counted, fitting
from schedgap.harness.plots.style import MAX_LINES, label, no_dust
from schedgap.harness.text import number
from schedgap.heuristics.hadar.prices import Market, prices
from schedgap.instances.arrays import Array
from schedgap.instances.views.hadar import FORKED, Schedule, View

ONLINE, COLUMNS = "hadar.online", "hadar.p2.columns"

SMALL = 1e-4
"""Part of the highest dual price below which a price counts as 0."""

MAX_ROWS = 30
"""Methods in one map of utilisation."""


@figure("hadar.gantt", "Schedules", of="instance")
def schedules(data: Compared) -> Drawn:
    """Which job holds which GPU over time, one row per GPU, servers (white lines) by GPU type.

    The schedule of largest utility among the others, and that of hadar.online.
    """
    shown = data.beside(ONLINE, data.running(Schedule), lambda row: row.problem != FORKED.id)
    if not shown:
        return None
    view: View = data.view
    worth = {row.method: row.objective for row in data.rows}
    bars = {
        f"{label(m, 30)}: utility {number(worth.get(m))}, {_completed(view, d)}": of_schedule(view, d)
        for m, d in shown.items()
    }
    canvas, words = gantt(Chart(view.servers, view.workload.gpu_types, view.workload.ids), bars)
    return canvas, words + data.n(len(shown))


def _completed(view: View, schedule: Schedule) -> str:
    done = len(np.unique(schedule.job))
    return f"{counted(view.size, 'job')} completed" if done == view.size else f"{done} of {view.size} jobs completed"


def completion_s(view: View, schedule: Schedule) -> Array:
    """Return ``(n,)`` seconds from the start of the arrival slot to the end of the last slot; NaN where rejected."""
    last = np.full(view.size, -1)
    np.maximum.at(last, schedule.job, schedule.slot)
    return np.where(last >= 0, (last - view.arrival + 1) * view.slot_s, np.nan)


@figure("hadar.jct-cdf", "Completion times", of="instance")
def completion_times(data: Compared) -> Drawn:
    """Share of all jobs that have completed after a time since their arrival slot.

    A line that ends below 1 leaves jobs out.
    """
    known = data.running(Schedule)
    methods, out = fitting(known, MAX_LINES)
    if not methods:
        return None
    times = {method: completion_s(data.view, known[method]) for method in methods}
    return completion_cdf(times, data.looks), out + data.n(len(methods))


def shares(view: View, schedule: Schedule) -> Array:
    """Return ``(last slot + 1,)`` shares of all GPUs that are held in each slot."""
    return np.asarray(np.bincount(schedule.slot, schedule.gpus) / view.capacity.sum())


@figure("hadar.utilisation", "GPUs in use over time", of="instance")
def gpus_in_use(data: Compared) -> Drawn:
    """GPUs held by jobs, in per cent of all GPUs, over time (neighbouring slots are averaged where there are many)."""
    known = data.running(Schedule)
    methods, out = fitting(known, MAX_ROWS)
    if not methods:
        return None
    held = {method: shares(data.view, known[method]) for method in methods}
    return utilisation(held, data.view.slot_s, data.looks), out + data.n(len(methods))


def price_field(view: View, schedule: Schedule) -> Array:
    """Return ``(k, last slot + 1)`` prices (5) of a schedule: the mean over the servers of each type, by their GPUs."""
    found = prices(Market.of(view))
    hosts = view.servers
    length = int(schedule.slot.max()) + 1
    used = np.bincount(schedule.server * length + schedule.slot, schedule.gpus, hosts.size * length)
    full = np.maximum(hosts.gpus, 1)[:, None]
    weighted = hosts.gpus[:, None] * found.price(hosts.gpu_type[:, None], used.reshape(-1, length), full)
    total = np.zeros((view.capacity.size, length))
    np.add.at(total, hosts.gpu_type, weighted)
    return total / np.maximum(view.capacity, 1)[:, None]


@figure("hadar.prices", "Prices of Hadar online", of="instance")
def posted_prices(data: Compared) -> Drawn:
    """Price (5) of a GPU at the end of each slot's planning, by type and time, in utility per GPU and slot.

    It is that which hadar.online posts: the mean over the servers of the type.
    """
    schedule = data.running(Schedule).get(ONLINE)
    if schedule is None:
        return None
    view: View = data.view
    return price_map(price_field(view, schedule), view.workload.gpu_types, view.slot_s), data.n(1)


@figure("hadar.duals", "Prices of the bound", of="instance")
def dual_prices(data: Compared) -> Drawn:
    """Dual price of a GPU by type and time, in utility per GPU and slot.

    At these prices hadar.p2.columns proves its bound: what one more GPU would add to the bound at most.
    """
    if COLUMNS not in data.prices:
        return None
    view: View = data.view
    return price_map(no_dust(data.prices[COLUMNS], SMALL), view.workload.gpu_types, view.slot_s), data.n(1)
