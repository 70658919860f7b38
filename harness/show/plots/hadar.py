"""Figures of Hadar: Gantt charts, completion times, GPUs in use, and prices."""

from __future__ import annotations

import numpy as np

from schedgap.harness.show.figure import Drawn, figure
from schedgap.harness.show.plots import gantt, style
from schedgap.harness.show.plots.results import Compared, some
from schedgap.harness.show.text import number
from schedgap.heuristics.hadar.prices import prices
from schedgap.instances.arrays import Array
from schedgap.instances.text import counted
from schedgap.instances.views.hadar import COMPLETE, UTILITY, HadarSchedule, HadarView

ONLINE, COLUMNS = "hadar.online", "hadar.p2.columns"


@figure("hadar.gantt", "Schedules", of="instance")
def schedules(data: Compared) -> Drawn:
    """Jobs on GPUs over time, one row per GPU; white lines separate servers, which are grouped by GPU type.

    Shown are the schedule of hadar.online and the one with the largest utility of the other methods.
    """
    pairs = gantt.best_and_online(data, ONLINE, HadarSchedule, (UTILITY.id, COMPLETE.id))
    view, bars = data.view, {}
    for row, schedule in pairs:
        done, jobs = len(np.unique(schedule.job)), counted(view.size, "job")
        completed = jobs if done == view.size else f"{done} of {jobs}"
        title = f"{style.name(row.method)}: utility {number(row.objective)}, {completed} completed"
        bars[title] = gantt.of_schedule(view, schedule)
    return gantt.schedules(data, gantt.Chart(view.servers, view.workload.gpu_types, view.workload.ids), bars)


def completion_s(view: HadarView, schedule: HadarSchedule) -> Array:
    """Return ``(n,)`` seconds from the start of the arrival slot to the end of the last slot; NaN if rejected."""
    last = np.full(view.size, -1)
    np.maximum.at(last, schedule.job, schedule.slot)
    return np.where(last >= 0, (last - view.arrival + 1) * view.slot_s, np.nan)


@figure("hadar.jct-cdf", "Completion times", of="instance")
def completion_times(data: Compared) -> Drawn:
    """Share of all jobs completed within a time after their arrival slot.

    If a line ends below 1, the remaining jobs never complete.
    """
    times_s = {method: completion_s(data.view, d) for method, d in some(data.running(HadarSchedule)).items()}
    return style.completion_cdf(times_s, data.looks, data.clock), data.n(len(times_s))


def shares(view: HadarView, schedule: HadarSchedule) -> Array:
    """Return the ``(last slot + 1,)`` shares of all GPUs that jobs hold in each slot."""
    return np.asarray(np.bincount(schedule.slot, schedule.gpus) / view.capacity.sum())


@figure("hadar.utilisation", "GPUs in use over time", of="instance")
def gpus_in_use(data: Compared) -> Drawn:
    """GPUs held by jobs over time, in per cent of all GPUs; in long schedules, adjacent slots are averaged."""
    held = {
        m: {"GPUs": shares(data.view, d)} for m, d in list(some(data.running(HadarSchedule)).items())[: style.MAX_ROWS]
    }
    return style.strips(held, data.view.slot_s, data.clock, data.looks), data.n(len(held))


def price_field(view: HadarView, schedule: HadarSchedule) -> Array:
    """Return ``(k, last slot + 1)`` prices (5) of a schedule: means over the servers of a type, weighted by GPUs."""
    hosts = view.servers
    used = np.zeros((hosts.size, int(schedule.slot.max()) + 1), np.int64)
    np.add.at(used, (schedule.server, schedule.slot), schedule.gpus)
    full = np.maximum(hosts.gpus, 1)[:, None]
    weighted = hosts.gpus[:, None] * prices(view).price(hosts.gpu_type[:, None], used, full)
    total = np.zeros((view.capacity.size, used.shape[1]))
    np.add.at(total, hosts.gpu_type, weighted)
    return total / np.maximum(view.capacity, 1)[:, None]


@figure("hadar.prices", "Prices", of="instance")
def both_prices(data: Compared) -> Drawn:
    """Price of a GPU by type and time, in utility per GPU and slot, with the same axes and colours.

    The prices posted by hadar.online are (5) at the end of each slot's planning, averaged over the servers of a type.
    The dual prices are those with which hadar.p2.columns proves its bound; one more GPU adds at most that much to it.
    """
    known, fields = data.running(HadarSchedule), {}
    some([*known, *data.prices])
    view: HadarView = data.view
    if ONLINE in known:
        fields[f"posted by {ONLINE}"] = price_field(view, known[ONLINE])
    if COLUMNS in data.prices:
        fields[f"dual prices of {COLUMNS}"] = style.no_dust(data.prices[COLUMNS])
    last = max((int(d.slot.max()) + 1 for d in known.values()), default=max(f.shape[1] for f in some(fields).values()))
    panels = {title: (field, "utility per GPU and slot") for title, field in some(fields).items()}
    chart = style.price_map(panels, view.workload.gpu_types, view.slot_s, data.clock, last * view.slot_s)
    return chart, data.n(len(panels))
