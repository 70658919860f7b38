"""Figures of Synergy: speedup by CPUs and memory, resources held on each server, and mean completion times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from schedgap.harness.show.figure import Drawn, figure
from schedgap.harness.show.looks import PALETTE
from schedgap.harness.show.plots import style
from schedgap.harness.show.plots.results import Compared, some
from schedgap.harness.show.text import clean
from schedgap.instances.arrays import ROUNDING, SLACK, Array
from schedgap.instances.text import counted
from schedgap.instances.views.synergy import RUN, SynergySchedule, SynergyView

SHOWN = ("synergy.proportional", "synergy.tune", "synergy.opt")
"""Methods whose rounds are drawn by server."""

MAX_MODELS = 8
MAX_SERVERS = 24

RESOURCES = {"GPUs": "gpus", "CPUs": "cpus", "memory": "memory_gb"}


@dataclass(frozen=True, eq=False)
class Speedups:
    """Rates of one model's gang on its best GPU type, divided by the rate with its proportional share.

    `cpus` ``(A,)`` and `memory_gb` ``(B,)`` are levels per GPU, `speedup` is ``(B, A)``, and `share` has the indices of
    the proportional share's levels of memory and CPUs.
    """

    model: str
    gpus: int
    cpus: Array
    memory_gb: Array
    speedup: Array
    share: tuple[int, int]


def speedups(view: SynergyView) -> list[Speedups]:
    """Return the speedups of each model's smallest gang, the most sensitive models first."""
    by_model: dict[str, Speedups] = {}
    for j in np.argsort(view.workload.gpus[view.possible], kind="stable").tolist():
        job = int(view.possible[j])
        # Drop the name of the paper that measured the model, and the batch size.
        model = view.instance.jobs[job].model or view.workload.ids[job]
        name = model.removeprefix("Synergy ").partition(" (")[0]
        if name not in by_model:
            by_model[name] = _speedups(view, name, int(view.profiles.kind[job]))
    return sorted(by_model.values(), key=lambda each: -float(each.speedup.max()))


def _speedups(view: SynergyView, name: str, kind: int) -> Speedups:
    tables, needs = view.profiles, view.needs
    i = view.preference[kind][0]
    gpus = int(tables.gpus[kind])
    limit, share = needs.limit[kind, i] * (1 + SLACK), needs.share[kind, i] * (1 + ROUNDING)
    cpus, memory_gb = tables.cpus[kind], tables.memory_gb[kind]
    few, small = cpus <= limit[0], memory_gb <= limit[1]
    speedup = (tables.rate[kind, i][np.ix_(few, small)] / needs.fair[kind, i]).T
    level = (int((memory_gb <= share[1]).sum()) - 1, int((cpus <= share[0]).sum()) - 1)
    return Speedups(name, gpus, cpus[few] / gpus, memory_gb[small] / gpus, speedup, level)


@figure("synergy.sensitivity", "Speedup by CPUs and memory", of="instance", minor=True)
def sensitivity(data: Compared) -> Drawn:
    """Rate in iterations per second by CPUs and memory, on the model's best GPU type.

    It is relative to the rate with a share in proportion to the GPUs (framed).
    """
    models = speedups(data.view)
    shown, titles = models[:MAX_MODELS], [clean(each.model, 20) for each in models[:MAX_MODELS]]
    cells = [
        {"panel": title, "cpus": c, "memory": m, "speedup": each.speedup[i, j], "share": (i, j) == each.share}
        for title, each in zip(titles, shown, strict=True)
        for j, c in enumerate(each.cpus.tolist())
        for i, m in enumerate(each.memory_gb.tolist())
    ]
    most = max([2.0, *(float(each.speedup.max()) for each in shown)])
    whole = sorted({c for each in shown for c in each.cpus.tolist() if c == round(c)})
    axes = (
        alt.X("cpus:O", title="CPUs per GPU", axis=alt.Axis(format=".3~g", values=whole or alt.Undefined)),
        alt.Y("memory:O", title="GB per GPU", sort="descending", axis=alt.Axis(format=".3~g")),
    )
    base = alt.Chart(width=115, height=95).encode(*axes)
    colours = alt.Color("speedup:Q", title="speedup", scale=alt.Scale(domain=[0.0, most]))
    tips = style.tip(("panel", "model"), ("cpus", "CPUs per GPU"), ("memory", "GB per GPU"), "speedup")
    frame = base.transform_filter("datum.share").mark_rect(filled=False, stroke="white", strokeWidth=2)
    chart = alt.layer(base.mark_rect().encode(color=colours, tooltip=tips), frame, data=style.rows(cells))
    chart = style.in_panels(chart, titles, 4, apart="xy")
    more = f"The {MAX_MODELS} most sensitive of {len(models)} models" if len(models) > MAX_MODELS else "All models"
    gangs = sorted({each.gpus for each in shown})
    span = f"{gangs[0]} to {gangs[-1]}" if len(gangs) > 1 else f"{gangs[0]}"
    of = "one GPU" if gangs == [1] else f"the smallest gang of each ({span} GPUs)"
    n = f"{counted(data.view.size, 'job')} of {counted(len(models), 'model')}"
    return chart, f"{more}, {of}. n = {n} on {data.where}."


@figure("synergy.servers", "Servers of the round", of="instance")
def servers(data: Compared) -> Drawn:
    """GPUs, CPUs and memory held by the jobs of the round, in per cent of each server; servers are numbered from 0.

    A job has the same colour in all panels; different jobs may share a colour.
    """
    shown = some({m: data.decisions[m] for m in SHOWN if isinstance(data.decisions.get(m), SynergySchedule)})
    view: SynergyView = data.view
    equipped = np.flatnonzero(view.servers.gpus > 0)
    hosts = equipped[:MAX_SERVERS]
    stacks: list[dict[str, Any]] = []
    for method, schedule in shown.items():
        for resource, field in RESOURCES.items():
            about = {"panel": f"{style.name(method)}, {resource}", "method": style.name(method)}
            shares = getattr(schedule, field) / getattr(view.servers, field)[schedule.server]
            seen = np.isin(schedule.server, hosts)
            drawn = (each[seen].tolist() for each in (schedule.server, schedule.job, shares))
            for server, job, part in zip(*drawn, strict=True):
                who = {"job": clean(view.workload.ids[job], 20), "colour": PALETTE[job % len(PALETTE)]}
                stacks.append({**about, **who, "server": server, "held": 100.0 * part})
    chart = style.plot(
        stacks,
        alt.MarkDef("bar", stroke=style.PAPER, strokeWidth=0.5),
        alt.X("server:O", title="server"),
        style.y("held", "held [%]", domain=[0.0, 103.0]),
        color=alt.Color("colour:N", scale=None),
        detail="job:N",
        tips=["method", "job", "server", ("held", "held [%]")],
        size=(165, 85),
        panels=list(dict.fromkeys(stack["panel"] for stack in stacks)),
        columns=3,
    )
    of = f"the first {MAX_SERVERS} of " if equipped.size > MAX_SERVERS else ""
    jobs, mechanisms = counted(view.runnable.size, "job"), counted(len(shown), "mechanism")
    words = f"n = {jobs} of the round on {of}{counted(equipped.size, 'server')}, {mechanisms} on {data.where}."
    return chart, words


@figure("synergy.jct-mean", "Mean completion times", of="instance")
def mean_times(data: Compared) -> Drawn:
    """Mean time from arrival to completion of all jobs, by method."""
    results = data.results(RUN.id)
    drawn = some(results[: style.MAX_ROWS])
    group = style.ValueGroup({row.method: row.objective or 0.0 for row in drawn}, drawn[0].best_bound)
    title = data.clock.label("mean completion time")
    chart = style.beside_bounds([group], title, data.looks, data.clock.seconds)
    source = drawn[0].bound_from
    by = f"In brackets: upper estimate of the ratio to the best possible mean, by the bound of {clean(source)}. "
    total, most = len(results), style.MAX_ROWS
    count = f"the {most} fastest of {total} methods" if total > most else counted(total, "method")
    jobs = counted(data.view.possible.size, "job")
    return chart, f"{by if source else ''}n = {jobs}, {count} on {data.where}."
