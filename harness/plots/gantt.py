"""Gantt charts of any schedule or simulation: a row per GPU, servers by type, bars that follow one another merged.

The parts take plain arrays, so that schedules in slots and traces of simulations are drawn alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from schedgap.harness.plots.style import PALETTE, WIDTH_IN, label, legend_below, panels, text_colour, time_unit
from schedgap.heuristics.simulator import Trace
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.elastic import Runs
from schedgap.instances.schema import Instance
from schedgap.instances.views.hadar import Schedule, View
from schedgap.instances.workload import Servers, server_names

TOUCHING = 1e-9
"""Relative gap below which two bars follow one another."""

NAMED_JOBS = len(PALETTE)
"""Largest number of jobs with colours of their own; of more, the colour tells their place in the order."""

MAX_LANES = 160
"""GPUs drawn per panel, as many of every type as its share of all; more would be thinner than a pixel each."""

RASTER_FROM = 600
"""More boxes than this are stored as one image: outlines would make a file of megabytes."""

IDLE = "#eceff2"
TYPE_GAP = 1.0
"""Rows left free between GPU types."""

LANE_IN = 0.07
LEAST_IN, MOST_IN = 0.75, 3.4
"""Height of a GPU's row, and of a panel."""


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
    """What the panels of a Gantt chart share.

    Attributes
    ----------
    servers
        The rows.
    gpu_types, jobs
        Their names.
    """

    servers: Servers
    gpu_types: Sequence[str]
    jobs: Sequence[str]


def server_rows(instance: Instance, rows: Ints, jobs: Sequence[str]) -> Chart:
    """Return what a chart of the instance's servers shows, with so many `rows` for each server."""
    types = [gpu_type.name for gpu_type in instance.cluster.gpu_types]
    groups = [group for group in instance.cluster.servers for _ in range(group.count)]
    kinds = np.array([types.index(group.gpu_type) for group in groups])
    nothing = np.zeros(len(groups))
    return Chart(Servers(server_names(instance), kinds, rows, nothing, nothing), types, jobs)


def merged(job: ArrayLike, server: ArrayLike, gpus: ArrayLike, start: ArrayLike, end: ArrayLike) -> Bars:
    """Return bars, those of the same job, server and GPUs that follow one another merged into one.

    Parameters
    ----------
    job, server, gpus
        ``(entries,)`` whole numbers; a job holds GPUs of a server once at a time.
    start, end
        ``(entries,)`` seconds.
    """
    whole = [np.asarray(a, np.int64) for a in (job, server, gpus)]
    begin, until = np.asarray(start, float), np.asarray(end, float)
    order = np.lexsort((begin, whole[1], whole[0]))
    whole, begin, until = [a[order] for a in whole], begin[order], until[order]
    apart = begin[1:] - until[:-1] > TOUCHING * np.maximum(1.0, np.abs(until[:-1]))
    new = np.ones(len(begin), bool)
    new[1:] = apart | np.any([a[1:] != a[:-1] for a in whole], axis=0)
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(begin))[: len(first)] - 1
    return Bars(whole[0][first], whole[1][first], whole[2][first], begin[first], until[last])


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
    """Return the bars of elastic jobs, times in seconds from the start of slot `first`.

    Parameters
    ----------
    runs
        A verified decision.
    held
        ``(e,)`` how many rows of its server each entry fills.
    slot_s
        Length of a slot in seconds.
    first
        Number of the first slot.
    """
    some = held > 0
    run = runs.run[some]
    start = (runs.start[run] - first) * slot_s
    return merged(runs.job[run], runs.server[some], held[some], start, start + runs.slots[run] * slot_s)


def lanes(bars: Bars, gpus: Ints) -> Ints:
    """Give every bar rows of its server: the lowest ones that are free, as many as it has GPUs.

    Parameters
    ----------
    bars
        At most as many GPUs at a time as the server has.
    gpus
        ``(h,)`` GPUs of the servers.

    Returns
    -------
    numpy.ndarray
        ``(pieces, 3)``: bar, first row within the server (from 0), rows; neighbouring rows are one piece.
    """
    until = [np.full(count, -np.inf) for count in gpus]
    pieces: list[tuple[int, int, int]] = []
    for i in np.lexsort((bars.job, bars.start)).tolist():
        mine = until[bars.server[i]]
        slack = TOUCHING * max(1.0, abs(bars.start[i]))
        rows = np.sort(np.argsort(mine > bars.start[i] + slack, kind="stable")[: bars.gpus[i]])
        mine[rows] = bars.end[i]
        cuts = np.flatnonzero(np.diff(rows) > 1) + 1
        pieces += [(i, int(run[0]), len(run)) for run in np.split(rows, cuts)]
    return np.array(pieces, np.int64).reshape(-1, 3)


def gantt(chart: Chart, bars: Mapping[str, Bars]) -> tuple[Figure, str]:
    """Return a figure with one Gantt chart below the other on the same time axis, and what its caption says of it.

    Parameters
    ----------
    chart
        Servers, and names.
    bars
        Bars by title.
    """
    rows, bottom = _rows(chart.servers)
    end_s = max((float(each.end.max()) for each in bars.values() if each.end.size), default=1.0)
    unit_s, unit = time_unit(end_s)
    height = min(max(LANE_IN * bottom, LEAST_IN), MOST_IN) + 0.3
    figure, axes = panels(len(bars), height, columns=1, xlabel=f"time [{unit}]", sharex=True)
    for ax, (title, each) in zip(axes, bars.items(), strict=True):
        ax.set(title=title, ylim=(bottom, 0.0), xlim=(0.0, end_s / unit_s))
        _panel(ax, chart, rows, each, (unit_s, end_s))
    few = len(chart.jobs) <= NAMED_JOBS
    _key(figure, axes, chart, few)
    shown = int(np.isfinite(rows).sum())
    some = f"The first servers of every type are shown ({shown} of {chart.servers.size}). "
    colours = "Each job has its colour. " if few else "Colours tell the order of the jobs. "
    return figure, colours + (some if shown < chart.servers.size else "")


def _rows(servers: Servers) -> tuple[Array, float]:
    """Return the top row of each server (NaN where it is not drawn), types apart, and the end of the last."""
    share = min(1.0, MAX_LANES / max(int(servers.gpus.sum()), 1))
    top = np.full(servers.size, np.nan)
    at = 0.0
    for r in np.unique(servers.gpu_type[servers.gpus > 0]):
        mine = np.flatnonzero((servers.gpu_type == r) & (servers.gpus > 0))
        fit = np.cumsum(servers.gpus[mine]) <= share * servers.gpus[mine].sum()
        fit[0] = True
        shown = mine[fit]
        top[shown] = at + np.cumsum(servers.gpus[shown]) - servers.gpus[shown]
        at += float(servers.gpus[shown].sum()) + TYPE_GAP
    return top, max(at - TYPE_GAP, 1.0)


def _panel(ax: Axes, chart: Chart, top: Array, bars: Bars, scale: tuple[float, float]) -> None:
    unit_s, end_s = scale
    shown = np.flatnonzero(np.isfinite(top))
    gpus = chart.servers.gpus
    ax.add_collection(boxes(0.0, end_s / unit_s, top[shown], gpus[shown], facecolors=IDLE, linewidths=0))
    pieces = lanes(bars, gpus)
    pieces = pieces[np.isfinite(top[bars.server[pieces[:, 0]]])]
    bar, row, count = pieces.T
    colours = _colours(len(chart.jobs))[bars.job[bar]]
    line = 0.15 if len(pieces) > RASTER_FROM else 0.4
    place = (bars.start[bar] / unit_s, bars.end[bar] / unit_s, top[bars.server[bar]] + row, count)
    ax.add_collection(boxes(*place, facecolors=colours, edgecolors="white", linewidths=line, zorder=2))
    ax.hlines(top[shown], 0.0, end_s / unit_s, color="white", lw=1.1, zorder=3)
    _names(ax, chart, bars.job[bar], *place)
    _type_labels(ax, chart, top)


def boxes(left: ArrayLike, right: ArrayLike, top: ArrayLike, height: ArrayLike, **look: Any) -> PolyCollection:
    """Return boxes as one artist; very many are stored as an image."""
    left, right, top, height = np.broadcast_arrays(left, right, top, height)
    low = top + height
    corners = np.stack([[left, top], [right, top], [right, low], [left, low]]).transpose(2, 0, 1)
    return PolyCollection(list(corners), rasterized=len(corners) > RASTER_FROM, **look)


def _colours(jobs: int) -> Array:
    if jobs <= NAMED_JOBS:
        return np.array([mpl.colors.to_rgba(c) for c in PALETTE])
    return np.asarray(mpl.colormaps["viridis"](np.linspace(0.0, 1.0, jobs)))


def _names(ax: Axes, chart: Chart, job: Ints, left: Array, right: Array, y: Array, height: Ints) -> None:
    """Write the names of the jobs, where they are few, into the bars that are wide enough."""
    if len(chart.jobs) > NAMED_JOBS:
        return
    letter = ax.get_xlim()[1] * 0.075 / WIDTH_IN
    for j, start, end, middle in zip(job.tolist(), left, right, y + height / 2, strict=True):
        text = label(chart.jobs[j], 12)
        if end - start >= letter * (len(text) + 1):
            look = {"ha": "center", "va": "center", "color": text_colour(PALETTE[j])}
            ax.text((start + end) / 2, middle, text, look, fontsize=6.5, clip_on=True, zorder=4)


def _type_labels(ax: Axes, chart: Chart, top: Array) -> None:
    """Label the rows of each GPU type in their middle."""
    places, names = [], []
    for r in np.unique(chart.servers.gpu_type[np.isfinite(top)]):
        mine = np.flatnonzero((chart.servers.gpu_type == r) & np.isfinite(top))
        places.append((top[mine].min() + (top[mine] + chart.servers.gpus[mine]).max()) / 2)
        names.append(label(chart.gpu_types[int(r)], 14))
    ax.set_yticks(places, names)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def _key(figure: Figure, axes: Sequence[Axes], chart: Chart, few: bool) -> None:
    """Say which colour is which job: by name, or by the place in the instance."""
    idle = Patch(color=IDLE, label="idle")
    if few:
        jobs = [Patch(color=c, label=label(name, 16)) for c, name in zip(PALETTE, chart.jobs, strict=False)]
        legend_below(figure, [*jobs, idle], 6)
        return
    bar = ScalarMappable(Normalize(1, len(chart.jobs)), "viridis")
    figure.colorbar(bar, ax=list(axes), label="job, in the order of the instance", pad=0.02, aspect=35, fraction=0.04)
    legend_below(figure, [idle])
