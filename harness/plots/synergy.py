"""Figures of Synergy: what CPUs and memory are worth to each model, who holds what on which server, mean times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from schedgap.harness.figure import Drawn, figure
from schedgap.harness.plots.gantt import boxes
from schedgap.harness.plots.pieces import Group, times_beside_bounds
from schedgap.harness.plots.results import Compared, counted
from schedgap.harness.plots.style import INK, PALETTE, heat_map, label, panels, sparse_ticks
from schedgap.harness.text import clean, number
from schedgap.instances.arrays import Array
from schedgap.instances.sensitivity import ROUNDING
from schedgap.instances.views.synergy import RUN, Schedule, View

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


@figure("synergy.sensitivity", "Speedup by CPUs and memory", of="instance")
def sensitivity(data: Compared) -> Drawn:
    """Speed by CPUs and memory, in iterations per second on the model's best GPU type.

    The unit is the rate with a share in proportion to the GPUs (framed).
    """
    known = speedups(data.view)
    shown = known[:MAX_MODELS]
    norm = Normalize(0.0, max([2.0, *(float(one.speedup.max()) for one in shown)]))
    canvas, axes = panels(len(shown), 1.55, 4, "CPUs per GPU", "GB per GPU")
    for ax, one in zip(axes, shown, strict=True):
        image = heat_map(ax, one.speedup[::-1], norm)
        down, right = len(one.memory_gb) - 1 - one.share[0], one.share[1]
        for colour, width in (("white", 2.2), (INK, 1.0)):
            ax.add_patch(Rectangle((right, down), 1, 1, fill=False, edgecolor=colour, lw=width))
        sparse_ticks(ax, "x", [number(c, 3) for c in one.cpus], 4)
        sparse_ticks(ax, "y", [number(m, 3) for m in one.memory_gb[::-1]], 5)
        ax.set_title(label(one.model, 20))
    canvas.colorbar(image, ax=axes, label="speedup", pad=0.02, aspect=40)
    more = f"The {MAX_MODELS} most sensitive of {len(known)} models" if len(known) > MAX_MODELS else "All models"
    jobs, models = counted(data.view.size, "job"), counted(len(known), "model")
    return canvas, f"{more}, {_gangs(shown)}. n = {jobs} of {models} on {data.where}."


def _gangs(shown: Sequence[Speedups]) -> str:
    gangs = sorted({one.gpus for one in shown})
    span = f"{gangs[0]} to {gangs[-1]}" if len(gangs) > 1 else f"{gangs[0]}"
    return "one GPU" if gangs == [1] else f"the smallest gang of each ({span} GPUs)"


def _short(model: str) -> str:
    """Return a model's name without the name of the paper that measured it and without its batch size."""
    return model.removeprefix("Synergy ").partition(" (")[0]


# ---------------------------------------------------------------- servers


@figure("synergy.servers", "Servers of the round", of="instance")
def servers(data: Compared) -> Drawn:
    """GPUs, CPUs and memory that the jobs of the round hold, in per cent of each server, numbered from 0.

    A job has the same colour everywhere; colours repeat.
    """
    shown = {m: data.decisions[m] for m in SHOWN if isinstance(data.decisions.get(m), Schedule)}
    if not shown:
        return None
    view: View = data.view
    known = np.flatnonzero(view.servers.gpus > 0)
    hosts = known[:MAX_SERVERS]
    capacity = (view.servers.gpus, view.servers.cpus, view.servers.memory_gb)
    canvas, axes = panels(3 * len(shown), 1.35, 3, "server", sharex=True, sharey=True)
    for i, (method, schedule) in enumerate(shown.items()):
        held = (schedule.gpus, schedule.cpus, schedule.memory_gb)
        for ax, amount, most in zip(axes[3 * i :], held, capacity, strict=False):
            _stacks(ax, schedule, np.asarray(100.0 * amount / most[schedule.server]), hosts)
        axes[3 * i].set_ylabel(f"{label(method.removeprefix('synergy.'), 14)} [%]")
    for ax, resource in zip(axes, RESOURCES, strict=False):
        ax.set_title(resource)
    axes[-1].set_xticks(range(0, len(hosts), max(1, -(-len(hosts) // 8))))
    some = f"the first {MAX_SERVERS} of {known.size} servers" if known.size > MAX_SERVERS else ""
    return canvas, (
        f"n = {counted(view.runnable.size, 'job')} of the round on {some or counted(known.size, 'server')}, "
        f"{counted(len(shown), 'mechanism')} on {data.where}."
    )


def _stacks(ax: Axes, schedule: Schedule, part: Array, hosts: NDArray[np.int64]) -> None:
    """Draw the parts of servers that jobs hold on top of one another; a job has the same colour everywhere."""
    ax.set(xlim=(-0.6, len(hosts) - 0.4), ylim=(0.0, 103.0))
    order = np.lexsort((schedule.job, schedule.server))
    order = order[np.isin(schedule.server[order], hosts)]
    x = np.searchsorted(hosts, schedule.server[order])
    height = part[order]
    total = np.cumsum(height) - height
    bottom = total - total[np.searchsorted(x, x)]
    colours = [PALETTE[j % len(PALETTE)] for j in schedule.job[order].tolist()]
    look = {"facecolors": colours, "edgecolors": "white", "linewidths": 0.5}
    ax.add_collection(boxes(x - 0.43, x + 0.43, bottom, height, **look))


# ---------------------------------------------------------------- mean completion times


@figure("synergy.jct-mean", "Mean completion times", of="instance")
def mean_times(data: Compared) -> Drawn:
    """Mean time from arrival to completion of all jobs, by method."""
    known = data.results(RUN.id)
    rows = known[:MAX_RUNS]
    if not rows:
        return None
    values = {row.method: row.objective or 0.0 for row in rows}
    canvas = times_beside_bounds([Group(values, rows[0].best_bound)], "mean completion time")
    source = rows[0].bound_from
    by = f"In brackets: at most so many times the best possible mean, by the bound of {clean(source)}. "
    some = f"The {MAX_RUNS} fastest of {len(known)}" if len(known) > MAX_RUNS else counted(len(known), "method")
    jobs = counted(data.view.possible.size, "job")
    return canvas, f"{by if source else ''}n = {jobs}, {some} on {data.where}."
