"""Figures of a log: GPUs in use, avoidable waiting by hour of the week, and the most expensive starts."""

from __future__ import annotations

import altair as alt
import numpy as np

from schedgap.harness.show.figure import Drawn, figure
from schedgap.harness.show.page.rigid import EXECUTED, why_of
from schedgap.harness.show.plots import style
from schedgap.harness.show.plots.results import Compared
from schedgap.harness.show.text import clean
from schedgap.harness.show.waiting import DAYS, occupancy
from schedgap.instances.parameters import base_id
from schedgap.instances.rigid import RigidView


@figure("rigid.occupancy", "Cluster in use", of="instance")
def drawn_occupancy(data: Compared) -> Drawn:
    """GPUs in use over time in per cent, in the executed schedule and in the best schedule found."""
    view: RigidView = data.view
    ran = [method for method in data.decisions if base_id(method) in EXECUTED]
    problem = data.verified[ran[0]].problem if ran else "rigid.flow"
    best = [row.method for row in data.results(problem.removesuffix(".preemptive")) if row.method not in ran]
    shown = [*ran, *[method for method in best if method in data.decisions][:1]]
    if not shown:
        return None
    last = max(int(data.decisions[method].end.max()) for method in shown)
    edges = np.linspace(0, max(last, 1), style.COLUMNS + 1)
    shares = {method: {"GPUs": occupancy(view, data.decisions[method], edges)} for method in shown}
    return style.strips(shares, float(edges[1]) * view.tick_s, data.clock, data.looks), data.n(len(shown))


@figure("rigid.week", "Waiting by hour of the week", of="instance")
def week(data: Compared) -> Drawn:
    """Hours of waiting beyond those in the bound's schedule, by the hour of the week in which jobs were submitted."""
    why = why_of(data.run, data.rows)
    cells = why.week() if why else None
    if cells is None or not cells.any():
        return None
    hours = [
        {"day": day, "hour": hour, "waiting": waiting}
        for day, row in zip(DAYS, cells.tolist(), strict=True)
        for hour, waiting in enumerate(row)
        if waiting > 0
    ]
    hour = alt.X("hour:O", title="hour of the day", scale=alt.Scale(domain=list(range(24))))
    axes = hour, style.listed(alt.Y, "day", DAYS)
    colour = style.heat("avoidable waiting [h]", cells.ravel(), "waiting")
    tips = ["day", "hour", ("waiting", "[h]")]
    return style.plot(hours, "rect", *axes, color=colour, tips=tips, size=(style.WIDTH, alt.Step(style.ROW))), data.n(1)


@figure("rigid.decisions", "The most expensive decisions", of="instance")
def decisions(data: Compared) -> Drawn:
    """Total hours that shorter jobs with no more GPUs waited while the job ran that was started before them."""
    why = why_of(data.run, data.rows)
    starts = why.decisions() if why else []
    if why is None or not starts:
        return None
    costs = [
        {"job": f"{clean(data.view.instance.jobs[d.job].id, 24)} ({why.view.gpus[d.job]} GPUs)", "cost": d.cost_h}
        for d in starts
    ]
    axes = style.x("cost", "waiting of jobs passed over [h]"), alt.Y("job:N", title=None, sort=None)
    size = style.WIDTH - 140, alt.Step(style.ROW)
    return style.plot(costs, alt.MarkDef("bar", color=style.ACCENT), *axes, tips=["job", "cost"], size=size), data.n(1)
