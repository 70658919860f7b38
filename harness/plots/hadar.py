"""Figures of Hadar: who runs where and when, how soon jobs complete, how busy GPUs are, what they cost."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from schedgap.harness.plots.curves import MAX_LINES, completion_cdf, price_heatmap, utilisation
from schedgap.harness.plots.figures import FIGURES, FigureInput, FigureSpec, counted
from schedgap.harness.plots.gantt import NAMED_JOBS, Chart, gantt, hidden, of_schedule
from schedgap.harness.plots.style import label
from schedgap.harness.text import clean, number
from schedgap.heuristics.hadar.prices import Market, prices
from schedgap.instances.parameters import base_id
from schedgap.instances.views.hadar import FORKED, Schedule, View

Array = NDArray[np.float64]

ONLINE, COLUMNS = "hadar.online", "hadar.p2.columns"

SMALL = 1e-4
"""Part of the highest dual price below which a price counts as 0."""

MAX_ROWS = 30
"""Methods in one map of utilisation."""


def _schedules(data: FigureInput) -> dict[str, Schedule]:
    """Return the verified schedules in which something runs, by method."""
    return {m: d for m, d in data.decisions.items() if isinstance(d, Schedule) and d.job.size}


def _fitting(data: FigureInput, most: int) -> dict[str, Schedule]:
    """Return at most so many schedules by method; those with settings are the first to be left out."""
    schedules = _schedules(data)
    kept = sorted(schedules, key=lambda method: base_id(method) != method)[:most]
    return {method: schedule for method, schedule in schedules.items() if method in kept}


def _sample(data: FigureInput, drawn: int, most: int | None = None) -> str:
    """Return n, and which methods find no room in a figure of `most`, for the end of a caption."""
    kept = _fitting(data, most) if most else _schedules(data)
    out = [clean(method, 30) for method in _schedules(data) if method not in kept]
    more = f" No room for: {', '.join(out)}." if out else ""
    seeds = " Of several seeds the first is shown." if len({row.seed for row in data.rows}) > 1 else ""
    jobs, methods = counted(data.view.size, "job"), counted(drawn, "method")
    return f"n = {jobs}, {methods} on {data.where}.{more}{seeds}{data.left_out}"


# ---------------------------------------------------------------- Gantt


def _shown(data: FigureInput) -> dict[str, Schedule]:
    """Return the best of the other schedules and the online one; those with copies have another objective."""
    schedules = _schedules(data)
    rows = [row for row in data.rows if row.method in schedules and row.method != ONLINE and row.problem != FORKED.id]
    best = max(rows, key=lambda row: row.objective or 0.0, default=None)
    chosen = [best.method] if best else []
    return {method: schedules[method] for method in (*chosen, ONLINE) if method in schedules}


def draw_gantt(data: FigureInput) -> Figure | None:
    """Draw which job runs on which GPU when, in the best schedule and in that of Hadar online."""
    shown = _shown(data)
    if not shown:
        return None
    view: View = data.view
    worth = {row.method: row.objective for row in data.rows}
    titles = [f"{label(m, 30)}: utility {number(worth.get(m))}, {_completed(view, d)}" for m, d in shown.items()]
    bars = [of_schedule(view, schedule) for schedule in shown.values()]
    chart = Chart(view.servers, view.workload.gpu_types, view.workload.ids)
    return gantt(chart, list(zip(titles, bars, strict=True)))


def _completed(view: View, schedule: Schedule) -> str:
    done = len(np.unique(schedule.job))
    return f"{counted(view.size, 'job')} completed" if done == view.size else f"{done} of {view.size} jobs completed"


def _caption_gantt(data: FigureInput) -> str:
    colours = "each job has its colour" if data.view.size <= NAMED_JOBS else "colours tell the order of the jobs"
    return (
        "Which job holds which GPU over time, one row per GPU, servers (white lines) by GPU type; "
        f"{colours}. The schedule of largest utility among the others, and that of {ONLINE}. "
        f"{_sample(data, len(_shown(data)))}{hidden(data.view.servers)}"
    )


# ---------------------------------------------------------------- completion times


def completion_s(view: View, schedule: Schedule) -> Array:
    """Return ``(n,)`` seconds from the start of the arrival slot to the end of the last slot; NaN where rejected."""
    last = np.full(view.size, -1)
    np.maximum.at(last, schedule.job, schedule.slot)
    return np.where(last >= 0, (last - view.arrival + 1) * view.slot_s, np.nan)


def draw_jct(data: FigureInput) -> Figure | None:
    """Draw the distribution of completion times of every method."""
    times = {method: completion_s(data.view, schedule) for method, schedule in _fitting(data, MAX_LINES).items()}
    return completion_cdf(times) if times else None


def _caption_jct(data: FigureInput) -> str:
    return (
        "Share of all jobs that have completed after a time since their arrival slot; a line that ends below 1 "
        f"leaves jobs out. {_sample(data, len(_fitting(data, MAX_LINES)), MAX_LINES)}"
    )


# ---------------------------------------------------------------- utilisation


def shares(view: View, schedule: Schedule) -> Array:
    """Return ``(last slot + 1,)`` shares of all GPUs that are held in each slot."""
    return np.asarray(np.bincount(schedule.slot, schedule.gpus) / view.capacity.sum())


def draw_utilisation(data: FigureInput) -> Figure | None:
    """Draw the share of GPUs in use over time, by method."""
    held = {method: shares(data.view, schedule) for method, schedule in _fitting(data, MAX_ROWS).items()}
    return utilisation(held, data.view.slot_s) if held else None


def _caption_utilisation(data: FigureInput) -> str:
    return (
        "GPUs held by jobs, in per cent of all GPUs, over time (neighbouring slots are averaged where there are "
        f"many). {_sample(data, len(_fitting(data, MAX_ROWS)), MAX_ROWS)}"
    )


# ---------------------------------------------------------------- prices


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


def draw_prices(data: FigureInput) -> Figure | None:
    """Draw the prices that Hadar's online schedule makes."""
    schedule = _schedules(data).get(ONLINE)
    if schedule is None:
        return None
    view: View = data.view
    return price_heatmap(price_field(view, schedule), view.workload.gpu_types, view.slot_s)


def _caption_prices(data: FigureInput) -> str:
    return (
        f"Price (5) of a GPU at the end of each slot's planning, by type and time, in utility per GPU and slot, as "
        f"{clean(ONLINE)} posts it: the mean over the servers of the type. {_sample(data, 1)}"
    )


def draw_duals(data: FigureInput) -> Figure | None:
    """Draw the prices of the best bound: a GPU costs what it would be worth to the optimum at most."""
    if COLUMNS not in data.prices:
        return None
    view: View = data.view
    found = data.prices[COLUMNS]
    # What rounding leaves of a price of 0 would take most of a logarithmic scale.
    shown = np.where(found >= SMALL * found.max(), found, 0.0)
    return price_heatmap(shown, view.workload.gpu_types, view.slot_s)


def _caption_duals(data: FigureInput) -> str:
    return (
        f"Dual price of a GPU by type and time, in utility per GPU and slot, at which {clean(COLUMNS)} proves its "
        f"bound: what one more GPU would add to the bound at most. {_sample(data, 1)}"
    )


FIGURES.register(FigureSpec("gantt", "hadar", "Schedules", _caption_gantt, draw_gantt, True))
FIGURES.register(FigureSpec("jct-cdf", "hadar", "Completion times", _caption_jct, draw_jct, True))
FIGURES.register(
    FigureSpec("utilisation", "hadar", "GPUs in use over time", _caption_utilisation, draw_utilisation, True)
)
FIGURES.register(FigureSpec("prices", "hadar", "Prices of Hadar online", _caption_prices, draw_prices, True))
FIGURES.register(FigureSpec("duals", "hadar", "Prices of the bound", _caption_duals, draw_duals, True))
