"""Gantt charts of schedules and simulations: a row per GPU, servers grouped by type, adjacent bars merged.

The functions take plain arrays, so that schedules in slots and traces of simulations are drawn by the same code.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import altair as alt
import numpy as np
from numpy.typing import ArrayLike

from schedgap.harness.show.figure import Drawn
from schedgap.harness.show.looks import PALETTE
from schedgap.harness.show.plots import style
from schedgap.harness.show.plots.results import Compared, some
from schedgap.harness.show.text import clean, number
from schedgap.harness.studies.compare.row import Row
from schedgap.heuristics.simulator import Trace
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.moldable import Runs
from schedgap.instances.schema import Instance
from schedgap.instances.views.hadar import HadarSchedule, HadarView
from schedgap.instances.workload import Servers, server_names

TOUCHING = 1e-9
"""Relative time gap up to which two bars count as adjacent."""

NAMED_JOBS = len(PALETTE)
"""Maximum number of jobs with individual colours; otherwise, the colour shows a job's place in the order."""

MAX_LANES = 160
"""Maximum number of GPUs drawn per panel, in proportion for each type; more would be thinner than a pixel."""

MOST_BARS = 4000
"""Schedules with more bars are sampled: outlines of single restarts would hide the jobs, and take megabytes."""

SAMPLES = (1440, 720, 360, 240, 120)
"""Numbers of instants at which to sample a schedule, tried in turn until it has few enough bars."""

MOST_TYPES = 4
"""With more GPU types, some of their names are left out where they would overlap."""

TYPE_GAP = 1.0
"""Number of empty rows between GPU types."""

LANE, LEAST, MOST = 6, 60, 300
"""Height of a GPU's row, and minimum and maximum height of a panel, in pixels."""

ROOMY, FEW = 14, 120
"""Height in pixels of a GPU's row into which names of jobs fit, used as long as the panel is no higher than `FEW`."""

LETTER, LINE = 6.5, 9
"""Width of a letter of a job's name, and the least height of a bar that has a name, in pixels."""

D = TypeVar("D")


@dataclass(frozen=True, eq=False)
class Bars:
    """Bars of a Gantt chart, as five arrays of equal length: job, server, number of GPUs, start and end in seconds."""

    job: Ints
    server: Ints
    gpus: Ints
    start: Array
    end: Array


@dataclass(frozen=True, eq=False)
class Chart:
    """Data that all panels of a Gantt chart share: servers, names of GPU types and jobs, and the unit of time."""

    servers: Servers
    gpu_types: Sequence[str]
    jobs: Sequence[str]
    unit: style.Clock | None = None


def server_rows(instance: Instance, rows: Ints, jobs: Sequence[str]) -> Chart:
    """Return the chart of the instance's servers, with `rows[i]` rows for server i."""
    types = [gpu_type.name for gpu_type in instance.cluster.gpu_types]
    groups = instance.cluster.servers
    kinds = np.repeat([types.index(group.gpu_type) for group in groups], [group.count for group in groups])
    nothing = np.zeros(len(kinds))
    return Chart(Servers(server_names(instance), kinds, rows, nothing, nothing), types, jobs)


def merged(job: ArrayLike, server: ArrayLike, gpus: ArrayLike, start: ArrayLike, end: ArrayLike) -> Bars:
    """Return bars, with adjacent ones of the same job, server and number of GPUs merged into one.

    All arrays are ``(entries,)``, with times in seconds; entries of one job on one server must not overlap.
    """
    order = np.lexsort(np.array([start, server, job], float))
    whole = np.array([job, server, gpus], np.int64)[:, order]
    begin, until = np.array([start, end], float)[:, order]
    apart = begin[1:] - until[:-1] > TOUCHING * np.maximum(1.0, np.abs(until[:-1]))
    new = np.append(True, apart | (whole[:, 1:] != whole[:, :-1]).any(axis=0))[: len(begin)]
    last = np.append(new[1:], True)[: len(begin)]
    return Bars(whole[0, new], whole[1, new], whole[2, new], begin[new], until[last])


def of_schedule(view: HadarView, schedule: HadarSchedule) -> Bars:
    """Return the bars of a schedule in slots; seconds count from the start of slot 0."""
    start = np.asarray(schedule.slot) * view.slot_s
    return merged(schedule.job, schedule.server, schedule.gpus, start, start + view.slot_s)


def of_trace(trace: Trace) -> Bars:
    """Return the bars of a simulation, in whole rounds."""
    row, job, server, gpus = trace.allocation.T
    start = trace.start_s[row]
    return merged(job, server, gpus, start, start + trace.round_s)


def of_runs(runs: Runs, held: Ints, slot_s: float, first: int) -> Bars:
    """Return the bars of moldable jobs; entry i fills `held[i]` rows. Seconds count from the start of slot `first`."""
    busy = held > 0
    run = runs.run[busy]
    start = (runs.start[run] - first) * slot_s
    return merged(runs.job[run], runs.server[busy], held[busy], start, start + runs.slots[run] * slot_s)


def lanes(bars: Bars, gpus: Ints) -> Ints:
    """Assign each bar the lowest free rows of its server, one per GPU; the servers have ``(h,)`` `gpus`.

    Return ``(pieces, 3)``: bar, first row within the server (from 0), number of rows. Adjacent rows form one piece.
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
    """Return the bars unchanged or, if there are too many, the state of the schedule at equidistant instants."""
    result, end = bars, float(bars.end.max(initial=0.0))
    for columns in SAMPLES:
        if len(result.job) <= MOST_BARS:
            break
        step = end / columns
        first, last = (np.ceil(times / step - 0.5) * step for times in (bars.start, bars.end))
        seen = last > first
        result = merged(bars.job[seen], bars.server[seen], bars.gpus[seen], first[seen], last[seen])
    return result


def best_and_online(data: Compared, online: str, kind: type[D], problems: Collection[str]) -> list[tuple[Row, D]]:
    """Return ``(row, decision)`` of the best other method on these problems, and of `online`, as far as they exist."""
    decisions = data.running(kind)
    rows = [data.verified[method] for method in decisions]
    rivals = [row for row in rows if row.method != online and row.problem in problems]
    rivals.sort(key=lambda row: row.objective or 0.0, reverse=any(row.sense == "max" for row in rivals))
    shown = some([*rivals[:1], *(row for row in rows if row.method == online)])
    return [(row, decisions[row.method]) for row in shown]


def schedules(data: Compared, chart: Chart, bars: Mapping[str, Bars]) -> Drawn:
    """Return Gantt charts of an instance's schedules, given the bars by title, and the end of the caption."""
    canvas, words = gantt(replace(chart, unit=data.clock), bars)
    return canvas, words + data.n(len(bars))


def gantt(chart: Chart, bars: Mapping[str, Bars]) -> tuple[Any, str]:
    """Return Gantt charts one below the other, given the bars by title, and sentences for the caption."""
    top, bottom = _rows(chart.servers)
    shown = np.flatnonzero(np.isfinite(top))
    end_s = max((float(each.end.max()) for each in bars.values() if each.end.size), default=1.0)
    unit, few = chart.unit or style.clock(end_s), len(chart.jobs) <= NAMED_JOBS
    records: list[dict[str, Any]] = []
    for title, each in bars.items():
        servers = zip(top[shown], chart.servers.gpus[shown], strict=True)
        records += [{"panel": title, "top": first, "bottom": first + gpus} for first, gpus in servers]
        records += [{"panel": title, **job} for job in _jobs(chart, top, sampled(each), unit)]
    height = min(max(LANE * bottom, LEAST, min(ROOMY * bottom, FEW)), MOST)
    base = alt.Chart(width=style.WIDTH, height=height).encode(_types(chart, top, bottom))
    idle = base.transform_filter("!isValid(datum.job)")
    jobs = base.transform_filter("isValid(datum.job)").transform_flatten(["time", "end", "top", "bottom"])
    jobs = jobs.encode(style.time_axis(unit, end_s / unit.seconds), alt.X2("end:Q"), y2="bottom:Q")
    names = [clean(job, 30) for job in chart.jobs]
    places = alt.Scale(domain=[1, len(names)])  # Vega-Lite cannot infer the domain if layers of a facet are filtered
    ordered = alt.Color("order:Q", scale=places, title="job, in the order of the instance")
    piece = [("time", f"from [{unit.name}]"), ("end", f"to [{unit.name}]")]
    tips = style.tip("job", *piece, "most GPUs", "runs in pieces", "first start", "last end", "GPU time")
    layers = [
        idle.mark_rect(color=style.IDLE).encode(y2="bottom:Q"),
        jobs.mark_rect(clip=True)
        .encode(color=style.named("job", names) if few else ordered, tooltip=tips)
        .add_params(style.zoom()),
        idle.mark_rule(color=style.PAPER, strokeWidth=1),
    ]
    if few:
        # Write the names of the jobs into the bars that are wide and high enough.
        pixels = style.WIDTH * unit.seconds / end_s
        room = f"(datum.end - datum.time) * {pixels:.6g} > {LETTER} * (length(datum.job) + 1)"
        room += f" && (datum.bottom - datum.top) * {height / bottom:.6g} >= {LINE}"
        middle = {"x": "(datum.time + datum.end) / 2", "y": "(datum.top + datum.bottom) / 2"}
        labels = jobs.transform_filter(room).transform_calculate(**middle).mark_text(fontSize=9.5, clip=True)
        place = {"x": alt.X("x:Q"), "y": alt.Y("y:Q"), "x2": alt.Undefined, "y2": alt.Undefined}
        layers.append(labels.encode(**place, text="job:N", color=alt.Color("ink:N", scale=None)))
    words = "Each job has its own colour. " if few else "Colours show the order of the jobs. "
    if any(len(each.job) > MOST_BARS for each in bars.values()):
        words += "Schedules with very many restarts are drawn at equidistant instants. "
    if len(shown) < chart.servers.size:
        words += f"Only the first servers of each type are shown ({len(shown)} of {chart.servers.size}). "
    heads = alt.Row("panel:N", title=None, sort=list(bars))
    return alt.layer(*layers, data=style.rows(records)).facet(row=heads), words


def _rows(servers: Servers) -> tuple[Array, float]:
    """Return the top row of each server, with gaps between types (NaN if it is not drawn), and the end of the last."""
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
    """Return the axis of GPUs, with the name of each type at the middle of its rows."""
    shown, gpus = np.flatnonzero(np.isfinite(top)), chart.servers.gpus
    kinds, names = chart.servers.gpu_type[shown], {}
    for r in np.unique(kinds).tolist():
        first, last = shown[kinds == r][[0, -1]]
        names[float(top[first] + top[last] + gpus[last]) / 2] = clean(chart.gpu_types[r], 14)
    words = json.dumps({f"{middle:g}": name for middle, name in names.items()})
    look: dict[str, Any] = {"grid": False, "domain": False, "ticks": False, "labelOverlap": len(names) > MOST_TYPES}
    axis = alt.Axis(values=list(names), labelExpr=f"{words}[datum.value]", **look)
    return alt.Y("top:Q", title=None, scale=alt.Scale(domain=[bottom, 0.0], nice=False), axis=axis)


def _jobs(chart: Chart, top: Array, bars: Bars, unit: style.Clock) -> list[dict[str, Any]]:
    """Return a record for each job that is drawn: its bars, and a summary of its whole run for the tooltip."""
    pieces = lanes(bars, chart.servers.gpus)
    bar, row, count = pieces[np.isfinite(top[bars.server[pieces[:, 0]]])].T
    above, records = top[bars.server[bar]] + row, []
    for job in np.unique(bars.job[bar]).tolist():
        drawn, mine = bars.job[bar] == job, bars.job == job
        start, end, gpus = bars.start[mine], bars.end[mine], bars.gpus[mine]
        bounds = {"time": bars.start[bar[drawn]] / unit.seconds, "end": bars.end[bar[drawn]] / unit.seconds}
        ink = style.text_colour(PALETTE[job % len(PALETTE)])
        life = {
            "job": clean(chart.jobs[job], 30),
            "order": job + 1,
            "ink": ink,
            "most GPUs": int(np.bincount(np.unique(start, return_inverse=True)[1], gpus).max()),
            "runs in pieces": np.unique(start).size,
            "first start": unit.text(float(start.min())),
            "last end": unit.text(float(end.max())),
            "GPU time": f"{number(float(gpus @ (end - start)) / unit.seconds)} GPU·{unit.name}",
        }
        records.append({**life, **bounds, "top": above[drawn], "bottom": above[drawn] + count[drawn]})
    return records
