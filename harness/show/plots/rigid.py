"""Figures of a log: the ladder, GPUs in use, waiting saved by hour of the week, and the most expensive starts."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from schedgap.harness.show.figure import Drawn, figure
from schedgap.harness.show.ladder import WAITING, executed, ladder
from schedgap.harness.show.looks import PALETTE
from schedgap.harness.show.page.rigid import height, why_of, words
from schedgap.harness.show.plots import style
from schedgap.harness.show.plots.results import Compared
from schedgap.harness.show.text import clean
from schedgap.harness.show.waiting import DAYS, occupancy
from schedgap.heuristics.rigid import LOGGED
from schedgap.instances.parameters import base_id
from schedgap.instances.rigid import RigidView

COLOURS = (style.BOUND, *PALETTE[:3], PALETTE[4])
"""Colours of the bound and of the steps above it."""


@figure("rigid.ladder", "The ladder", of="instance")
def drawn_ladder(data: Compared) -> Drawn:
    """From what nobody can beat to what was executed: each bar begins where the one above it ends.

    With hindsight: durations and arrivals are known to the bound and to the best schedule found. A step to the left is
    an executed schedule that is better than all online rules. The mean run time makes most of the time to completion,
    so that mean waiting is shown, too.
    """
    ran = executed(data.rows)
    if ran is None:
        return None
    objective = ran.problem.split(".")[1]
    panels = {words(one): ladder(data.view, data.rows, one) for one in (objective, WAITING)}
    records: list[dict[str, Any]] = []
    for panel, found in panels.items():
        for rung in found.rungs:
            step = rung.step or rung.name
            place = {"low": rung.value - (rung.above if rung.above is not None else rung.value), "high": rung.value}
            shown = height(rung) + (f" ({rung.above:+.3g})" if rung.above is not None else "")
            records.append({"panel": panel, "rung": rung.name, "step": step, "by": rung.by, "shown": shown, **place})
    if not records:
        return None
    names, kinds = (list(dict.fromkeys(str(each[name]) for each in records)) for name in ("rung", "step"))
    side = style.listed(alt.Y, "rung", names).axis(labelLimit=200)
    size: dict[str, Any] = {"width": style.WIDTH - 250, "height": alt.Step(style.ROW)}
    base = alt.Chart(style.rows(records), **size).encode(side, tooltip=style.tip("rung", "step", "shown", "by"))
    colours = style.keyed(alt.Color, "step", dict(zip(kinds, COLOURS, strict=False)))
    bars = base.mark_bar().encode(style.x("low", None), alt.X2("high:Q"), color=colours)
    text = (
        base.mark_text(align="left", dx=4, color=style.INK)
        .encode(alt.X("end:Q"), text=alt.Text("shown:N"))
        .transform_calculate(end="max(datum.low, datum.high)")
    )
    return style.in_panels(alt.layer(bars, text), list(panels), apart=["x"]), data.n(
        sum(row.verified is True for row in data.rows)
    )


@figure("rigid.occupancy", "Cluster in use", of="instance")
def drawn_occupancy(data: Compared) -> Drawn:
    """GPUs in use over time in per cent, in the executed schedule and in the best schedule found."""
    view: RigidView = data.view
    ran = [method for method in data.decisions if base_id(method) in LOGGED]
    problem = data.verified[ran[0]].problem if ran else "rigid.flow"
    best = [row.method for row in data.results(problem.removesuffix(".preemptive")) if row.method not in ran]
    shown = [*ran, *[method for method in best if method in data.decisions][:1]]
    if not shown:
        return None
    last = max(int(data.decisions[method].end.max()) for method in shown)
    edges = np.linspace(0, max(last, 1), style.COLUMNS + 1)
    shares = {method: {"GPUs": occupancy(view, data.decisions[method], edges)} for method in shown}
    return style.strips(shares, float(edges[1]) * view.tick_s, data.clock, data.looks), data.n(len(shown))


@figure("rigid.week", "Waiting saved, by hour of the week", of="instance")
def week(data: Compared) -> Drawn:
    """Hours of waiting that the best schedule found saves, by the hour of the week in which jobs were submitted.

    Hours of which the jobs wait longer in it are left white.
    """
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
    colour = style.heat("waiting saved [h]", cells.ravel(), "waiting")
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
