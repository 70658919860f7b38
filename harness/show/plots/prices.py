"""Figure of a primal–dual algorithm: primal and dual objective job by job, beside the bounds that prices prove."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt

from schedgap.harness.ask.prices import PricesFound
from schedgap.harness.show.figure import Drawn, Part, figure, parts
from schedgap.harness.show.plots import style
from schedgap.harness.show.plots.results import some
from schedgap.harness.show.text import clean, number
from schedgap.instances.text import counted


@dataclass(frozen=True, eq=False, kw_only=True)
class PriceSteps(Part):
    """The steps of a run."""

    found: PricesFound


@parts.register
def _(found: PricesFound) -> list[PriceSteps]:
    where = clean(found.instance.name, 40)
    heading = f"{style.name(found.method)} on {where}"
    return [PriceSteps(of="steps", group="prices", heading=heading, where=where, found=found)]


@figure("prices.steps", "Primal and dual, job by job", of="steps")
def steps(data: PriceSteps) -> Drawn:
    """Primal and dual objective after each job that the algorithm schedules, in its order.

    Crosses: Definition 1 fails for the step. Dashed lines: the bounds that certificates with the algorithm's own final
    prices, and with the best prices, prove.
    """
    found, run = data.found, data.found.run
    taken = some(run.steps)
    ids, size = found.ids, len(taken)
    lines = {"P, what is earned": run.primal, "D, as the proof counts it": run.dual}
    starts = dict(zip(lines, (0.0, run.start), strict=True))
    bounds = {"bound of its own prices": found.own_bound, "bound of the best prices": found.best_bound}
    records: list[dict[str, Any]] = [{"series": name, "step": 0, "value": begin} for name, begin in starts.items()]
    for name, values in lines.items():
        for at, (step, value) in enumerate(zip(taken, values.tolist(), strict=True), 1):
            broken = "fails" if run.breaks(step) else "holds"
            words = {"job": clean(ids[step.job], 30), "Definition 1": broken, "needed α": number(step.needed)}
            records.append({"series": name, "step": at, "value": value, **words})
    known = {name: bound for name, bound in bounds.items() if bound is not None}
    records += [{"series": name, "step": at, "value": bound} for name, bound in known.items() for at in (0, size)]
    names = [*lines, *known]
    colours = dict(zip(names, (style.ACCENT, style.SECOND, style.BOUND, style.INK), strict=False))
    dashes = dict(zip(names, ([1, 0], [1, 0], style.DASHED, style.DASHED), strict=False))
    log = style.wide([record["value"] for record in records if record["value"] > 0])
    axes = (
        style.x("step", "jobs scheduled so far", domain=[0.0, size]).axis(grid=False, tickMinStep=1, format="d"),
        style.y("value", found.unit, log=log),
    )
    base = alt.Chart(style.rows(record for record in records if record["value"] > 0 or not log), width=style.WIDTH)
    look = {
        "color": style.keyed(alt.Color, "series", colours),
        "strokeDash": style.keyed(alt.StrokeDash, "series", dashes),
    }
    drawn = base.mark_line(interpolate="step-after").encode(*axes, **look)
    crosses = base.transform_filter(alt.datum["Definition 1"] == "fails")
    marks = crosses.mark_point(shape="cross", angle=45, size=30, opacity=0.8).encode(
        *axes, color=look["color"], tooltip=style.tip("job", "series", "value", "Definition 1", "needed α")
    )
    text = f"n = {counted(size, 'step')} of {counted(len(ids), 'job')}; Definition 1 fails in {len(found.broken)}."
    return alt.layer(drawn, marks), text
