"""Figures of Hadar: who runs where and when, how soon jobs complete, how busy GPUs are, what they cost."""

from __future__ import annotations

import numpy as np

from schedgap.harness.figure import Drawn, figure
from schedgap.harness.plots.gantt import Chart, beside_online, of_schedule
from schedgap.harness.plots.results import Compared, counted
from schedgap.harness.plots.style import MAX_LINES, MAX_ROWS, completion_cdf, no_dust, price_map, utilisation
from schedgap.harness.text import number
from schedgap.heuristics.hadar.prices import Market, prices
from schedgap.instances.arrays import Array
from schedgap.instances.views.hadar import COMPLETE, UTILITY, Schedule, View

ONLINE, COLUMNS = "hadar.online", "hadar.p2.columns"

SMALL = 1e-4
"""Part of the highest dual price below which a price counts as 0."""


@figure("hadar.gantt", "Schedules", of="instance")
def schedules(data: Compared) -> Drawn:
    """Which job holds which GPU over time, one row per GPU, servers (white lines) by GPU type.

    The schedule of largest utility among the others, and that of hadar.online.
    """
    return beside_online(data, ONLINE, Schedule, (UTILITY.id, COMPLETE.id), chart, of_schedule, _completed)


def chart(view: View) -> Chart:
    """Return what a chart of the view's schedules shows."""
    return Chart(view.servers, view.workload.gpu_types, view.workload.ids)


def _completed(view: View, schedule: Schedule, utility: float | None) -> str:
    done, jobs = len(np.unique(schedule.job)), counted(view.size, "job")
    return f"utility {number(utility)}, {jobs if done == view.size else f'{done} of {jobs}'} completed"


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
    known, words = data.few(Schedule, MAX_LINES)
    return completion_cdf({method: completion_s(data.view, d) for method, d in known.items()}, data.looks), words


def shares(view: View, schedule: Schedule) -> Array:
    """Return ``(last slot + 1,)`` shares of all GPUs that are held in each slot."""
    return np.asarray(np.bincount(schedule.slot, schedule.gpus) / view.capacity.sum())


@figure("hadar.utilisation", "GPUs in use over time", of="instance")
def gpus_in_use(data: Compared) -> Drawn:
    """GPUs held by jobs, in per cent of all GPUs, over time (neighbouring slots are averaged where there are many)."""
    known, words = data.few(Schedule, MAX_ROWS)
    return utilisation({m: shares(data.view, d) for m, d in known.items()}, data.view.slot_s, data.looks), words


def price_field(view: View, schedule: Schedule) -> Array:
    """Return ``(k, last slot + 1)`` prices (5) of a schedule: the mean over the servers of each type, by their GPUs."""
    hosts = view.servers
    used = np.zeros((hosts.size, int(schedule.slot.max()) + 1), np.int64)
    np.add.at(used, (schedule.server, schedule.slot), schedule.gpus)
    full = np.maximum(hosts.gpus, 1)[:, None]
    weighted = hosts.gpus[:, None] * prices(Market.of(view)).price(hosts.gpu_type[:, None], used, full)
    total = np.zeros((view.capacity.size, used.shape[1]))
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
