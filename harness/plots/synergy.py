"""Figures of Synergy: what CPUs and memory are worth to each model, who holds what on which server, mean times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from schedgap.harness.compare.row import Row
from schedgap.harness.plots.figures import FIGURES, FigureInput, FigureSpec, counted
from schedgap.harness.plots.rounds import mean_times
from schedgap.harness.plots.style import (
    INK,
    PALETTE,
    heat_map,
    is_first_column,
    label,
    new_figure,
    panels,
    sparse_ticks,
)
from schedgap.harness.text import clean, number
from schedgap.instances.sensitivity import ROUNDING
from schedgap.instances.views.synergy import RUN, Schedule, View

Array = NDArray[np.float64]

SHOWN = ("synergy.proportional", "synergy.tune", "synergy.opt")
"""Methods whose rounds are drawn server by server."""

MAX_MODELS = 8
MAX_SERVERS = 24
MAX_RUNS = 30

RESOURCES = ("GPUs", "CPUs", "memory")


# ---------------------------------------------------------------- sensitivity


@dataclass(frozen=True, eq=False)
class Speedups:
    """Rates of one model's gang on its best GPU type, divided by that with its proportional share.

    Attributes
    ----------
    model, gpus
        Name, and GPUs of the gang.
    cpus, memory_gb
        ``(A,)`` and ``(B,)`` levels per GPU that a gang may have.
    speedup
        ``(B, A)``.
    share
        Level of memory and of CPUs of the proportional share.
    """

    model: str
    gpus: int
    cpus: Array
    memory_gb: Array
    speedup: Array
    share: tuple[int, int]


def speedups(view: View) -> list[Speedups]:
    """Return the speedups of each model's smallest gang, the most sensitive models first; of several sizes one."""
    found: dict[str, Speedups] = {}
    for j in np.argsort(view.workload.gpus[view.possible], kind="stable").tolist():
        job = int(view.possible[j])
        name = _short(view.instance.jobs[job].model or view.workload.ids[job])
        if name not in found:
            found[name] = _speedups(view, name, int(view.profiles.kind[job]))
    return sorted(found.values(), key=lambda one: -float(one.speedup.max()))


def _speedups(view: View, name: str, kind: int) -> Speedups:
    tables, needs = view.profiles, view.needs
    i = view.preference[kind][0]
    gpus = int(tables.gpus[kind])
    limit = needs.limit[kind, i] * (1 + ROUNDING)
    cpus, memory_gb = tables.cpus[kind], tables.memory_gb[kind]
    within = np.ix_(cpus <= limit[0], memory_gb <= limit[1])
    share = needs.share[kind, i] * (1 + ROUNDING)
    return Speedups(
        model=name,
        gpus=gpus,
        cpus=cpus[cpus <= limit[0]] / gpus,
        memory_gb=memory_gb[memory_gb <= limit[1]] / gpus,
        speedup=(tables.rate[kind, i][within] / needs.fair[kind, i]).T,
        share=(int((memory_gb <= share[1]).sum()) - 1, int((cpus <= share[0]).sum()) - 1),
    )


def draw_sensitivity(data: FigureInput) -> Figure | None:
    """Draw a map of speedups over CPUs and memory for each model."""
    shown = speedups(data.view)[:MAX_MODELS]
    norm = Normalize(0.0, max(2.0, *(float(one.speedup.max()) for one in shown)))
    figure, axes = panels(len(shown), 1.55, columns=4)
    for ax, one in zip(axes, shown, strict=True):
        image = heat_map(ax, one.speedup[::-1], "viridis", norm)
        down, right = len(one.memory_gb) - 1 - one.share[0], one.share[1]
        ax.add_patch(Rectangle((right, down), 1, 1, fill=False, edgecolor="white", lw=2.2))
        ax.add_patch(Rectangle((right, down), 1, 1, fill=False, edgecolor=INK, lw=1.0))
        sparse_ticks(ax, "x", [number(c, 3) for c in one.cpus], 4)
        sparse_ticks(ax, "y", [number(m, 3) for m in one.memory_gb[::-1]], 5)
        ax.set_title(label(one.model, 20), fontsize=8)
    for ax in axes:
        ax.set_ylabel("GB per GPU" if is_first_column(ax) else "")
    for ax in axes[-min(4, len(axes)) :]:
        ax.set_xlabel("CPUs per GPU")
    figure.colorbar(image, ax=axes, label="speedup", pad=0.02, aspect=40)
    return figure


def _short(model: str) -> str:
    """Return a model's name without the name of the paper that measured it and without its batch size."""
    return model.removeprefix("Synergy ").partition(" (")[0]


def _caption_sensitivity(data: FigureInput) -> str:
    found = speedups(data.view)
    more = f"The {MAX_MODELS} most sensitive of {len(found)} models" if len(found) > MAX_MODELS else "All models"
    gangs = sorted({one.gpus for one in found[:MAX_MODELS]})
    span = f"{gangs[0]} to {gangs[-1]}" if len(gangs) > 1 else f"{gangs[0]}"
    sizes = "one GPU" if gangs == [1] else f"the smallest gang of each ({span} GPUs)"
    return (
        "Iterations per second by CPUs and memory, in units of those with a share in proportion to the GPUs (framed), "
        f"on the model's best GPU type. {more}, {sizes}. n = {counted(data.view.size, 'job')} of "
        f"{counted(len(found), 'model')} on {data.where}."
    )


# ---------------------------------------------------------------- servers


def _rounds(data: FigureInput) -> dict[str, Schedule]:
    """Return the rounds that are drawn server by server."""
    return {m: data.decisions[m] for m in SHOWN if isinstance(data.decisions.get(m), Schedule)}


def draw_servers(data: FigureInput) -> Figure | None:
    """Draw who holds which parts of each server in the round of each mechanism."""
    shown = _rounds(data)
    if not shown:
        return None
    view: View = data.view
    hosts = np.flatnonzero(view.servers.gpus > 0)[:MAX_SERVERS]
    figure = new_figure(0.8 + 1.35 * len(shown))
    axes = figure.subplots(len(shown), 3, squeeze=False, sharex=True, sharey=True)
    capacity = (view.servers.gpus, view.servers.cpus, view.servers.memory_gb)
    for row, (method, schedule) in zip(axes, shown.items(), strict=True):
        held = (schedule.gpus, schedule.cpus, schedule.memory_gb)
        for ax, amount, most in zip(row, held, capacity, strict=True):
            _stacks(ax, schedule, np.asarray(100.0 * amount / most[schedule.server]), hosts)
        row[0].set_ylabel(f"{label(method.removeprefix('synergy.'), 14)} [%]")
    for ax, resource in zip(axes[0], RESOURCES, strict=True):
        ax.set_title(resource)
    for ax in axes[-1]:
        ax.set_xlabel("server")
        ax.set_xticks(range(0, len(hosts), max(1, -(-len(hosts) // 8))))
    return figure


def _stacks(ax: Axes, schedule: Schedule, part: Array, hosts: NDArray[np.int64]) -> None:
    """Draw the parts of servers that jobs hold on top of one another; a job has the same colour everywhere."""
    ax.set(xlim=(-0.6, len(hosts) - 0.4), ylim=(0.0, 103.0))
    order = np.lexsort((schedule.job, schedule.server))
    order = order[np.isin(schedule.server[order], hosts)]
    x = np.searchsorted(hosts, schedule.server[order])
    height = part[order]
    total = np.cumsum(height) - height
    bottom = total - total[np.searchsorted(x, x)]
    left, right, top = x - 0.43, x + 0.43, bottom + height
    corners = np.stack([[left, bottom], [right, bottom], [right, top], [left, top]]).transpose(2, 0, 1)
    colours = [PALETTE[j % len(PALETTE)] for j in schedule.job[order].tolist()]
    ax.add_collection(PolyCollection(list(corners), facecolors=colours, edgecolors="white", linewidths=0.5))


def _caption_servers(data: FigureInput) -> str:
    view: View = data.view
    servers = int((view.servers.gpus > 0).sum())
    some = f"the first {MAX_SERVERS} of {servers} servers" if servers > MAX_SERVERS else counted(servers, "server")
    return (
        "GPUs, CPUs and memory that the jobs of the round hold, in per cent of each server, numbered from 0. A job has "
        f"the same colour everywhere; colours repeat. n = {counted(view.runnable.size, 'job')} of the round on {some}, "
        f"{counted(len(_rounds(data)), 'mechanism')} on {data.where}."
    )


# ---------------------------------------------------------------- mean completion times


def _runs(data: FigureInput) -> list[Row]:
    """Return the verified whole runs, of several seeds the first, the fastest first."""
    rows: dict[str, Row] = {}
    for row in data.rows:
        if row.problem == RUN.id and row.verified and row.objective is not None:
            rows.setdefault(row.method, row)
    return sorted(rows.values(), key=lambda row: row.objective or 0.0)


def draw_mean_times(data: FigureInput) -> Figure | None:
    """Draw the mean completion time of each whole run beside the best bound."""
    rows = _runs(data)[:MAX_RUNS]
    if not rows:
        return None
    return mean_times({row.method: row.objective or 0.0 for row in rows}, rows[0].best_bound)


def _caption_mean_times(data: FigureInput) -> str:
    rows = _runs(data)
    source = rows[0].bound_from if rows else None
    bound = (
        f" In brackets: at most so many times the best possible mean, by the bound of {clean(source)}."
        if source
        else ""
    )
    some = f"The {MAX_RUNS} fastest of {len(rows)}" if len(rows) > MAX_RUNS else counted(len(rows), "method")
    jobs = counted(data.view.possible.size, "job")
    return f"Mean time from arrival to completion of all jobs, by method.{bound} n = {jobs}, {some} on {data.where}."


FIGURES.register(
    FigureSpec("sensitivity", "synergy", "Speedup by CPUs and memory", _caption_sensitivity, draw_sensitivity, True)
)
FIGURES.register(FigureSpec("servers", "synergy", "Servers of the round", _caption_servers, draw_servers, True))
FIGURES.register(FigureSpec("jct-mean", "synergy", "Mean completion times", _caption_mean_times, draw_mean_times, True))
