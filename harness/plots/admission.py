"""Figures of admission: what each admitted job adds to the prices, and who has which worker of which server when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np

from schedgap.harness.figure import Drawn, figure
from schedgap.harness.plots import style
from schedgap.harness.plots.gantt import NAMED_JOBS, best_and_online, of_runs, schedules, server_rows
from schedgap.harness.plots.results import Compared
from schedgap.harness.text import clean, counted, number
from schedgap.heuristics.admission.online import Desk, price
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.elastic import Runs
from schedgap.instances.views.admission import UTILITY, View

ONLINE = "admission.online"

MAX_STEPS = 40
"""Rows of a map of prices; more admitted jobs are shown at equal distances."""

MAX_TYPES = 4
"""Types of workers and PSs that are drawn, the dearest."""

SMALL = 1e-6
"""Part of the largest price below which a price counts as 0."""


def replayed(view: View, runs: Runs, after: Ints) -> Array:
    """Return ``(len(after), R, T)`` prices η after so many admissions of an online decision; `after` is ascending."""
    machines, desk = view.machines, Desk(view)
    each = np.zeros((runs.job.size, len(machines.resources)))
    np.add.at(each, (runs.run, runs.worker_type[runs.run]), runs.workers)
    np.add.at(each, (runs.run, len(machines.worker_types) + runs.ps_type[runs.run]), runs.ps)
    used = np.zeros((len(machines.resources), view.slots))
    seen = []
    for first, last in pairwise([0, *after.tolist()]):
        for a in range(first, last):
            used[:, runs.start[a] : runs.start[a] + runs.slots[a]] += each[a][:, None]
        seen.append(price(desk.bases[:, None], used, desk.divisor))
    return np.array(seen)


@figure("admission.steps", "Prices step by step", of="instance")
def steps(data: Compared) -> Drawn:
    """Prices of workers and parameter servers over time, as one job after another is admitted.

    A price η = θ^(h/ΣΣC) − 1 is that of one worker of a type, or of one parameter server, in utility per slot, as the
    schedule of admission.online makes it.
    """
    runs = data.running(Runs).get(ONLINE)
    if runs is None:
        return None
    view: View = data.view
    admitted = runs.job.size
    few = admitted <= NAMED_JOBS
    after = np.arange(admitted + 1) if few else np.unique(np.linspace(0, admitted, MAX_STEPS + 1).astype(np.int64))[1:]
    prices = replayed(view, runs, after)
    shown = style.dearest(prices.max(axis=0), MAX_TYPES)
    end = int(np.flatnonzero(prices.any(axis=(0, 1)))[-1]) + 1
    panels = {r: f"price η of one {clean(view.machines.resources[r], 20)}" for r in shown.tolist()}
    if few:
        ids = [clean(view.ids[j], 16) for j in runs.job.tolist()]
        chart = _stacked(data, {title: np.diff(prices[:, r, :end], axis=0) for r, title in panels.items()}, ids)
        words = "Colours: what each admitted job adds, in the order of admission, one on top of the other."
    else:
        chart = _maps(data, {title: prices[:, r, :end] for r, title in panels.items()}, after)
        words = "A row shows them when so many jobs have been admitted, a column is a slot (many are averaged)."
    used = len(np.unique(runs.worker_type)) + 1
    free = len(view.machines.resources) - used
    words += f" Free throughout and not drawn: {counted(free, 'type')}." if free else ""
    words += f" The {MAX_TYPES} dearest of {used} types." if used > MAX_TYPES else ""
    return chart, f"{words} {counted(admitted, 'job')} admitted. {data.n(1)}"


def _stacked(data: Compared, added: dict[str, Array], ids: Sequence[str]) -> Any:
    """Return what each admission adds to the price in each slot, one on top of the other."""
    times = np.arange(next(iter(added.values())).shape[1] + 1) * data.view.slot_s / data.clock.seconds
    records = [
        {"panel": title, "job": job, "order": k, "time": times, "added": np.append(row, row[-1])}
        for title, each in added.items()
        for k, (job, row) in enumerate(zip(ids, each, strict=True))
    ]
    return style.plot(
        records,
        alt.MarkDef("area", interpolate="step-after"),
        style.time_axis(data.clock, times[-1]),
        style.y("added", "utility per slot").stack("zero"),
        color=style.named("job", ids),
        order="order:Q",
        told=["job", ("panel", "what")],
        flat=["time", "added"],
        **_panels(added, 140),
    )


def _maps(data: Compared, prices: dict[str, Array], after: Ints) -> Any:
    """Return a map for each resource: a row for each admission, a column for each slot."""
    dust = max(float(field.max()) for field in prices.values()) * SMALL
    end_s, cells = data.view.slot_s * max(field.shape[1] for field in prices.values()), []
    for title, field in prices.items():
        found = style.cells(field, after.tolist(), data.view.slot_s, data.clock, end_s, MAX_STEPS)
        cells += [{"panel": title, "admitted": one["name"], **one} for one in found if one["value"] > dust]
    down = alt.Y("admitted:O", title="admitted jobs", axis=alt.Axis(values=after[:: -(-len(after) // 6)].tolist()))
    across = style.time_axis(data.clock, end_s / data.clock.seconds), alt.X2("end:Q")
    colours = style.heat("utility per slot", [cell["value"] for cell in cells])
    told = [("admitted", "admitted jobs"), "time", ("value", "price")]
    return style.plot(cells, "rect", *across, down, color=colours, told=told, **_panels(prices, 160))


def _panels(titles: Iterable[str], height: int) -> dict[str, Any]:
    return {"size": (style.WIDTH // 2 - 40, height), "panels": list(titles), "columns": 2}


@figure("admission.workers", "Admitted jobs", of="instance")
def workers(data: Compared) -> Drawn:
    """Which job has which worker over time, one row per worker, servers (white lines) by GPU type.

    The decision of largest utility among the others, and that of admission.online.
    """
    found, bars = best_and_online(data, ONLINE, Runs, (UTILITY.id,)), {}
    view: View = data.view
    gpus = view.machines.capacity[:, : len(view.machines.worker_types)].sum(axis=1).astype(np.int64)
    for row, runs in found:
        admitted = f"{runs.job.size} of {counted(view.size, 'job')} admitted"
        title = f"{style.name(row.method)}: utility {number(row.objective, 5)}, {admitted}"
        bars[title] = of_runs(runs, runs.workers, view.slot_s, 0)
    return schedules(data, server_rows(view.instance, gpus, view.ids), bars)
