"""Figures of Synergy: what CPUs and memory are worth to each model, who holds what on which server, mean times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from schedgap.harness.figure import Drawn, figure
from schedgap.harness.plots import style
from schedgap.harness.plots.results import Compared, some
from schedgap.harness.text import clean, counted
from schedgap.instances.arrays import Array
from schedgap.instances.sensitivity import ROUNDING
from schedgap.instances.views.synergy import RUN, Schedule, View

SHOWN = ("synergy.proportional", "synergy.tune", "synergy.opt")
"""Methods whose rounds are drawn server by server."""

MAX_MODELS = 8
MAX_SERVERS = 24

RESOURCES = {"GPUs": "gpus", "CPUs": "cpus", "memory": "memory_gb"}


@dataclass(frozen=True, eq=False)
class Speedups:
    """Rates of one model's gang on its best GPU type, divided by that with its proportional share.

    `cpus` ``(A,)`` and `memory_gb` ``(B,)`` are levels per GPU, `speedup` is ``(B, A)``, and `share` has the
    proportional share's level of memory and of CPUs.
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
        # without the name of the paper that measured it, and without its batch size
        model = view.instance.jobs[job].model or view.workload.ids[job]
        name = model.removeprefix("Synergy ").partition(" (")[0]
        if name not in found:
            found[name] = _speedups(view, name, int(view.profiles.kind[job]))
    return sorted(found.values(), key=lambda one: -float(one.speedup.max()))


def _speedups(view: View, name: str, kind: int) -> Speedups:
    tables, needs = view.profiles, view.needs
    i = view.preference[kind][0]
    gpus = int(tables.gpus[kind])
    limit, share = needs.limit[kind, i] * (1 + ROUNDING), needs.share[kind, i] * (1 + ROUNDING)
    cpus, memory_gb = tables.cpus[kind], tables.memory_gb[kind]
    few, small = cpus <= limit[0], memory_gb <= limit[1]
    speedup = (tables.rate[kind, i][np.ix_(few, small)] / needs.fair[kind, i]).T
    level = (int((memory_gb <= share[1]).sum()) - 1, int((cpus <= share[0]).sum()) - 1)
    return Speedups(name, gpus, cpus[few] / gpus, memory_gb[small] / gpus, speedup, level)


@figure("synergy.sensitivity", "Speedup by CPUs and memory", of="instance", minor=True)
def sensitivity(data: Compared) -> Drawn:
    """Speed by CPUs and memory, in iterations per second on the model's best GPU type.

    The unit is the rate with a share in proportion to the GPUs (framed).
    """
    known = speedups(data.view)
    shown, titles = known[:MAX_MODELS], [clean(one.model, 20) for one in known[:MAX_MODELS]]
    cells = [
        {"panel": title, "cpus": c, "memory": m, "speedup": one.speedup[i, j], "share": (i, j) == one.share}
        for title, one in zip(titles, shown, strict=True)
        for j, c in enumerate(one.cpus.tolist())
        for i, m in enumerate(one.memory_gb.tolist())
    ]
    most = max([2.0, *(float(one.speedup.max()) for one in shown)])
    axes = (
        alt.X("cpus:O", title="CPUs per GPU", axis=alt.Axis(format=".3~g")),
        alt.Y("memory:O", title="GB per GPU", sort="descending", axis=alt.Axis(format=".3~g")),
    )
    base = alt.Chart(width=115, height=95).encode(*axes)
    colours = alt.Color("speedup:Q", title="speedup", scale=alt.Scale(domain=[0.0, most]))
    told = style.tip(("panel", "model"), ("cpus", "CPUs per GPU"), ("memory", "GB per GPU"), "speedup")
    frame = base.transform_filter("datum.share").mark_rect(filled=False, stroke="white", strokeWidth=2)
    chart = alt.layer(base.mark_rect().encode(color=colours, tooltip=told), frame, data=style.rows(cells))
    chart = style.in_panels(chart, titles, 4, apart="xy")
    more = f"The {MAX_MODELS} most sensitive of {len(known)} models" if len(known) > MAX_MODELS else "All models"
    jobs, models = counted(data.view.size, "job"), counted(len(known), "model")
    gangs = sorted({one.gpus for one in shown})
    span = f"{gangs[0]} to {gangs[-1]}" if len(gangs) > 1 else f"{gangs[0]}"
    of = "one GPU" if gangs == [1] else f"the smallest gang of each ({span} GPUs)"
    return chart, f"{more}, {of}. n = {jobs} of {models} on {data.where}."


@figure("synergy.servers", "Servers of the round", of="instance")
def servers(data: Compared) -> Drawn:
    """GPUs, CPUs and memory that the jobs of the round hold, in per cent of each server, numbered from 0.

    A job has the same colour everywhere; colours repeat.
    """
    shown = some({m: data.decisions[m] for m in SHOWN if isinstance(data.decisions.get(m), Schedule)})
    view: View = data.view
    known = np.flatnonzero(view.servers.gpus > 0)
    hosts = known[:MAX_SERVERS]
    stacks: list[dict[str, Any]] = []
    for method, schedule in shown.items():
        for resource, field in RESOURCES.items():
            about = {"panel": f"{style.name(method)}, {resource}", "method": style.name(method)}
            shares = getattr(schedule, field) / getattr(view.servers, field)[schedule.server]
            seen = np.isin(schedule.server, hosts)
            drawn = (each[seen].tolist() for each in (schedule.server, schedule.job, shares))
            for server, job, part in zip(*drawn, strict=True):
                who = {"job": clean(view.workload.ids[job], 20), "colour": style.PALETTE[job % len(style.PALETTE)]}
                stacks.append({**about, **who, "server": server, "held": 100.0 * part})
    chart = style.plot(
        stacks,
        alt.MarkDef("bar", stroke=style.PAPER, strokeWidth=0.5),
        alt.X("server:O", title="server"),
        style.y("held", "held [%]", domain=[0.0, 103.0]),
        color=alt.Color("colour:N", scale=None),
        detail="job:N",
        told=["method", "job", "server", ("held", "held [%]")],
        size=(165, 85),
        panels=list(dict.fromkeys(stack["panel"] for stack in stacks)),
        columns=3,
    )
    of = f"the first {MAX_SERVERS} of " if known.size > MAX_SERVERS else ""
    jobs, mechanisms = counted(view.runnable.size, "job"), counted(len(shown), "mechanism")
    words = f"n = {jobs} of the round on {of}{counted(known.size, 'server')}, {mechanisms} on {data.where}."
    return chart, words


@figure("synergy.jct-mean", "Mean completion times", of="instance")
def mean_times(data: Compared) -> Drawn:
    """Mean time from arrival to completion of all jobs, by method."""
    known = data.results(RUN.id)
    drawn = some(known[: style.MAX_ROWS])
    group = style.Group({row.method: row.objective or 0.0 for row in drawn}, drawn[0].best_bound)
    title = data.clock.label("mean completion time")
    chart = style.beside_bounds([group], title, data.looks, data.clock.seconds)
    source = drawn[0].bound_from
    by = f"In brackets: at most so many times the best possible mean, by the bound of {clean(source)}. "
    most = style.MAX_ROWS
    count = f"The {most} fastest of {len(known)}" if len(known) > most else counted(len(known), "method")
    jobs = counted(data.view.possible.size, "job")
    return chart, f"{by if source else ''}n = {jobs}, {count} on {data.where}."
