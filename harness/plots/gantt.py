"""Gantt charts of any schedule or simulation: a row per GPU, servers by type, bars that follow one another merged.

The parts take plain arrays, so that schedules in slots and traces of simulations are drawn alike.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import altair as alt
import numpy as np
from numpy.typing import ArrayLike

from schedgap.harness.compare.row import Row
from schedgap.harness.figure import Drawn
from schedgap.harness.plots import style
from schedgap.harness.plots.results import Compared, some
from schedgap.harness.text import clean, number
from schedgap.heuristics.simulator import Trace
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.elastic import Runs
from schedgap.instances.schema import Instance
from schedgap.instances.views.hadar import Schedule, View
from schedgap.instances.workload import Servers, server_names

TOUCHING = 1e-9
"""Relative gap below which two bars follow one another."""

NAMED_JOBS = len(style.PALETTE)
"""Largest number of jobs with colours of their own; of more, the colour tells their place in the order."""

MAX_LANES = 160
"""GPUs drawn per panel, as many of every type as its share of all; more would be thinner than a pixel each."""

MOST_BARS = 4000
"""More bars than these are sampled: outlines of single restarts would hide whose they are, and take megabytes."""

SAMPLES = (1440, 720, 360, 240, 120)
"""Instants at which a schedule of too many bars is looked at, as many as leave few enough bars."""

TYPE_GAP = 1.0
"""Rows left free between GPU types."""

LANE, LEAST, MOST = 6, 60, 300
"""Pixels of a GPU's row; least and most of a panel."""

LETTER = 6.5
"""Pixels of a letter of a job's name."""

D = TypeVar("D")


@dataclass(frozen=True, eq=False)
class Bars:
    """When which job holds how many GPUs of which server: five arrays of equal length, times in seconds."""

    job: Ints
    server: Ints
    gpus: Ints
    start: Array
    end: Array


@dataclass(frozen=True, eq=False)
class Chart:
    """What the panels of a Gantt chart share: the servers, and the names of GPU types and jobs."""

    servers: Servers
    gpu_types: Sequence[str]
    jobs: Sequence[str]
    unit: style.Clock | None = None


def server_rows(instance: Instance, rows: Ints, jobs: Sequence[str]) -> Chart:
    """Return what a chart of the instance's servers shows, with so many `rows` for each server."""
    types = [gpu_type.name for gpu_type in instance.cluster.gpu_types]
    groups = instance.cluster.servers
    kinds = np.repeat([types.index(group.gpu_type) for group in groups], [group.count for group in groups])
    nothing = np.zeros(len(kinds))
    return Chart(Servers(server_names(instance), kinds, rows, nothing, nothing), types, jobs)


def merged(job: ArrayLike, server: ArrayLike, gpus: ArrayLike, start: ArrayLike, end: ArrayLike) -> Bars:
    """Return bars, those of the same job, server and GPUs that follow one another merged into one.

    All are ``(entries,)``, times in seconds; a job holds GPUs of a server once at a time.
    """
    order = np.lexsort(np.array([start, server, job], float))
    whole = np.array([job, server, gpus], np.int64)[:, order]
    begin, until = np.array([start, end], float)[:, order]
    apart = begin[1:] - until[:-1] > TOUCHING * np.maximum(1.0, np.abs(until[:-1]))
    new = np.append(True, apart | (whole[:, 1:] != whole[:, :-1]).any(axis=0))[: len(begin)]
    last = np.append(new[1:], True)[: len(begin)]
    return Bars(whole[0, new], whole[1, new], whole[2, new], begin[new], until[last])


def of_schedule(view: View, schedule: Schedule) -> Bars:
    """Return the bars of a schedule in slots; seconds count from the start of slot 0."""
    start = np.asarray(schedule.slot) * view.slot_s
    return merged(schedule.job, schedule.server, schedule.gpus, start, start + view.slot_s)


def of_trace(trace: Trace) -> Bars:
    """Return the bars of a simulation, in whole rounds."""
    row, job, server, gpus = trace.allocation.T
    start = trace.start_s[row]
    return merged(job, server, gpus, start, start + trace.round_s)


def of_runs(runs: Runs, held: Ints, slot_s: float, first: int) -> Bars:
    """Return the bars of elastic jobs, whose entries fill `held` rows; seconds count from the start of slot `first`."""
    busy = held > 0
    run = runs.run[busy]
    start = (runs.start[run] - first) * slot_s
    return merged(runs.job[run], runs.server[busy], held[busy], start, start + runs.slots[run] * slot_s)


def lanes(bars: Bars, gpus: Ints) -> Ints:
    """Give every bar the lowest free rows of its server (which has ``(h,)`` `gpus`), as many as it has GPUs.

    It returns ``(pieces, 3)``: bar, first row within the server (from 0), rows; neighbouring rows are one piece.
    """
    until = [np.full(count, -np.inf) for count in gpus]
    pieces: list[tuple[int, int, int]] = []
    for i in np.lexsort((bars.job, bars.start)).tolist():
        mine = until[bars.server[i]]
        slack = TOUCHING * max(1.0, abs(bars.start[i]))
        rows = np.sort(np.argsort(mine > bars.start[i] + slack, kind="stable")[: bars.gpus[i]])
        mine[rows] = bars.end[i]
        if rows[-1] - rows[0] < len(rows):
            pieces.append((i, int(rows[0]), len(rows)))
            continue
        cuts = np.flatnonzero(np.diff(rows) > 1) + 1
        pieces += [(i, int(run[0]), len(run)) for run in np.split(rows, cuts)]
    return np.array(pieces, np.int64).reshape(-1, 3)


def sampled(bars: Bars) -> Bars:
    """Return the bars as they are or, of too many, who holds what at instants of equal distance."""
    found, end = bars, float(bars.end.max(initial=0.0))
    for columns in SAMPLES:
        if len(found.job) <= MOST_BARS:
            break
        step = end / columns
        first, last = (np.ceil(times / step - 0.5) * step for times in (bars.start, bars.end))
        seen = last > first
        found = merged(bars.job[seen], bars.server[seen], bars.gpus[seen], first[seen], last[seen])
    return found


def best_and_online(data: Compared, online: str, kind: type[D], problems: Collection[str]) -> list[tuple[Row, D]]:
    """Return the best decision of that kind on these problems, and that of `online`, each with its row."""
    decisions = data.running(kind)
    known = [data.verified[method] for method in decisions]
    rivals = [row for row in known if row.method != online and row.problem in problems]
    rivals.sort(key=lambda row: row.objective or 0.0, reverse=any(row.sense == "max" for row in rivals))
    shown = some([*rivals[:1], *(row for row in known if row.method == online)])
    return [(row, decisions[row.method]) for row in shown]


def schedules(data: Compared, chart: Chart, bars: Mapping[str, Bars]) -> Drawn:
    """Return the Gantt charts of an instance's schedules, bars by title."""
    canvas, said = gantt(replace(chart, unit=data.clock), bars)
    return canvas, said + data.n(len(bars))


def gantt(chart: Chart, bars: Mapping[str, Bars]) -> tuple[Any, str]:
    """Return one Gantt chart (bars by title) below the other, and what a caption says of them."""
    top, bottom = _rows(chart.servers)
    shown = np.flatnonzero(np.isfinite(top))
    end_s = max((float(each.end.max()) for each in bars.values() if each.end.size), default=1.0)
    unit, few = chart.unit or style.clock(end_s), len(chart.jobs) <= NAMED_JOBS
    records: list[dict[str, Any]] = []
    for title, each in bars.items():
        servers = zip(top[shown], chart.servers.gpus[shown], strict=True)
        records += [{"panel": title, "top": first, "bottom": first + gpus} for first, gpus in servers]
        records += [{"panel": title, **job} for job in _jobs(chart, top, sampled(each), unit)]
    height = min(max(LANE * bottom, LEAST), MOST)
    base = alt.Chart(width=style.WIDTH, height=height).encode(_types(chart, top, bottom))
    idle = base.transform_filter("!isValid(datum.job)")
    jobs = base.transform_filter("isValid(datum.job)").transform_flatten(["time", "end", "top", "bottom"])
    jobs = jobs.encode(style.time_axis(unit, end_s / unit.seconds), alt.X2("end:Q"), y2="bottom:Q")
    names = [clean(job, 30) for job in chart.jobs]
    places = alt.Scale(domain=[1, len(names)])  # Vega-Lite finds no domain where layers filter what is faceted
    ordered = alt.Color("order:Q", scale=places, title="job, in the order of the instance")
    piece = [("time", f"from [{unit.name}]"), ("end", f"to [{unit.name}]")]
    told = style.tip("job", *piece, "most GPUs", "runs in pieces", "first start", "last end", "GPU time")
    layers = [
        idle.mark_rect(color=style.IDLE).encode(y2="bottom:Q"),
        jobs.mark_rect(clip=True)
        .encode(color=style.named("job", names) if few else ordered, tooltip=told)
        .add_params(style.zoom()),
        idle.mark_rule(color=style.PAPER, strokeWidth=1),
    ]
    if few:
        # the names of the jobs, in the bars that are wide enough
        pixels = style.WIDTH * unit.seconds / end_s
        room = f"(datum.end - datum.time) * {pixels:.6g} > {LETTER} * (length(datum.job) + 1)"
        middle = {"x": "(datum.time + datum.end) / 2", "y": "(datum.top + datum.bottom) / 2"}
        words = jobs.transform_filter(room).transform_calculate(**middle).mark_text(fontSize=9.5, clip=True)
        place = {"x": alt.X("x:Q"), "y": alt.Y("y:Q"), "x2": alt.Undefined, "y2": alt.Undefined}
        layers.append(words.encode(**place, text="job:N", color=alt.Color("ink:N", scale=None)))
    said = "Each job has its colour. " if few else "Colours tell the order of the jobs. "
    if any(len(each.job) > MOST_BARS for each in bars.values()):
        said += "Of schedules with very many restarts, instants at equal distances are drawn. "
    if len(shown) < chart.servers.size:
        said += f"The first servers of every type are shown ({len(shown)} of {chart.servers.size}). "
    heads = alt.Row("panel:N", title=None, sort=list(bars))
    return alt.layer(*layers, data=style.rows(records)).facet(row=heads), said


def _rows(servers: Servers) -> tuple[Array, float]:
    """Return the top row of each server (NaN where it is not drawn), types apart, and the end of the last."""
    share = min(1.0, MAX_LANES / max(int(servers.gpus.sum()), 1))
    top = np.full(servers.size, np.nan)
    at = 0.0
    for r in np.unique(servers.gpu_type[servers.gpus > 0]):
        mine = np.flatnonzero((servers.gpu_type == r) & (servers.gpus > 0))
        until = np.cumsum(servers.gpus[mine])
        fit = until <= max(share * until[-1], until[0])
        top[mine[fit]] = at + (until - servers.gpus[mine])[fit]
        at += float(until[fit][-1]) + TYPE_GAP
    return top, max(at - TYPE_GAP, 1.0)


def _types(chart: Chart, top: Array, bottom: float) -> alt.Y:
    """Return the axis of GPUs, with the name of each type in the middle of its rows."""
    shown, gpus = np.flatnonzero(np.isfinite(top)), chart.servers.gpus
    kinds, names = chart.servers.gpu_type[shown], {}
    for r in np.unique(kinds).tolist():
        first, last = shown[kinds == r][[0, -1]]
        names[float(top[first] + top[last] + gpus[last]) / 2] = clean(chart.gpu_types[r], 14)
    words = json.dumps({f"{middle:g}": name for middle, name in names.items()})
    axis = alt.Axis(values=list(names), labelExpr=f"{words}[datum.value]", grid=False, domain=False, ticks=False)
    return alt.Y("top:Q", title=None, scale=alt.Scale(domain=[bottom, 0.0], nice=False), axis=axis)


def _jobs(chart: Chart, top: Array, bars: Bars, unit: style.Clock) -> list[dict[str, Any]]:
    """Return a record for each job that is drawn: its bars, and its whole life in words."""
    pieces = lanes(bars, chart.servers.gpus)
    bar, row, count = pieces[np.isfinite(top[bars.server[pieces[:, 0]]])].T
    above, found = top[bars.server[bar]] + row, []
    for job in np.unique(bars.job[bar]).tolist():
        drawn, mine = bars.job[bar] == job, bars.job == job
        start, end, gpus = bars.start[mine], bars.end[mine], bars.gpus[mine]
        bounds = {"time": bars.start[bar[drawn]] / unit.seconds, "end": bars.end[bar[drawn]] / unit.seconds}
        about = {
            "job": clean(chart.jobs[job], 30),
            "order": job + 1,
            "ink": style.text_colour(style.PALETTE[job % len(style.PALETTE)]),
        }
        life = {
            "most GPUs": int(np.bincount(np.unique(start, return_inverse=True)[1], gpus).max()),
            "runs in pieces": np.unique(start).size,
            "first start": unit.text(float(start.min())),
            "last end": unit.text(float(end.max())),
            "GPU time": f"{number(float(gpus @ (end - start)) / unit.seconds)} GPU·{unit.name}",
        }
        found.append({**about, **life, **bounds, "top": above[drawn], "bottom": above[drawn] + count[drawn]})
    return found
