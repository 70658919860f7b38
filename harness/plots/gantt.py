"""Gantt charts of any schedule or simulation: a row per GPU, servers by type, bars that follow one another merged.

The parts take plain arrays, so that schedules in slots and traces of simulations are drawn alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from schedgap.harness.figure import Drawn
from schedgap.harness.plots.results import Compared, some
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
        if rows[-1] - rows[0] < len(rows):
            pieces.append((i, int(rows[0]), len(rows)))
            continue
        cuts = np.flatnonzero(np.diff(rows) > 1) + 1
        pieces += [(i, int(run[0]), len(run)) for run in np.split(rows, cuts)]
    return np.array(pieces, np.int64).reshape(-1, 3)


def beside_online(
    data: Compared,
    online: str,
    kind: type[D],
    problems: Collection[str],
    chart: Callable[[Any], Chart],
    bars: Callable[[Any, D], Bars],
    words: Callable[[Any, D, float | None], str],
) -> Drawn:
    """Return a Gantt chart of the best decision of that kind on these problems, beside that of `online`.

    `chart`, `bars` and `words` are of a view, a decision on it, and its objective; `words` stand behind the method.
    """
    decisions = data.running(kind)
    rows = [data.verified[method] for method in decisions]
    rivals = [row for row in rows if row.method != online and row.problem in problems]
    rivals.sort(key=lambda row: row.objective or 0.0, reverse=any(row.sense == "max" for row in rivals))
    drawn = {}
    for row in some([*rivals[:1], *(row for row in rows if row.method == online)]):
        decision = decisions[row.method]
        drawn[f"{label(row.method, 30)}: {words(data.view, decision, row.objective)}"] = bars(data.view, decision)
    canvas, said = gantt(chart(data.view), drawn)
    return canvas, said + data.n(len(drawn))


def gantt(chart: Chart, bars: Mapping[str, Bars]) -> tuple[Figure, str]:
    """Return a figure with one Gantt chart (bars by title) below the other, and what its caption says of it."""
    rows, bottom = _rows(chart.servers)
    end_s = max((float(each.end.max()) for each in bars.values() if each.end.size), default=1.0)
    unit_s, unit = time_unit(end_s)
    height = min(max(LANE_IN * bottom, LEAST_IN), MOST_IN) + 0.3
    figure, axes = panels(len(bars), height, columns=1, xlabel=f"time [{unit}]", sharex=True)
    few = len(chart.jobs) <= NAMED_JOBS
    colours = mpl.colormaps["viridis"](np.linspace(0.0, 1.0, len(chart.jobs)))
    for ax, (title, each) in zip(axes, bars.items(), strict=True):
        ax.set(title=title, ylim=(bottom, 0.0), xlim=(0.0, end_s / unit_s))
        _panel(ax, chart, rows, each, unit_s, mpl.colors.to_rgba_array(PALETTE) if few else colours)
    idle = Patch(color=IDLE, label="idle")
    if few:
        jobs = [Patch(color=c, label=label(name, 16)) for c, name in zip(PALETTE, chart.jobs, strict=False)]
        legend_below(figure, [*jobs, idle], 6)
    else:
        legend_below(figure, [idle])
        order = ScalarMappable(Normalize(1, len(chart.jobs)), "viridis")
        what = "job, in the order of the instance"
        figure.colorbar(order, ax=axes, label=what, pad=0.02, aspect=35, fraction=0.04)
    shown = int(np.isfinite(rows).sum())
    words = "Each job has its colour. " if few else "Colours tell the order of the jobs. "
    part = f"The first servers of every type are shown ({shown} of {chart.servers.size}). "
    return figure, words + (part if shown < chart.servers.size else "")


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


def _panel(ax: Axes, chart: Chart, top: Array, bars: Bars, unit_s: float, colours: Array) -> None:
    """Draw the servers, the bars with the jobs' names, and the names of the GPU types."""
    shown, gpus = np.flatnonzero(np.isfinite(top)), chart.servers.gpus
    ax.add_collection(boxes(*ax.get_xlim(), top[shown], gpus[shown], facecolors=IDLE, linewidths=0))
    pieces = lanes(bars, gpus)
    bar, row, count = pieces[np.isfinite(top[bars.server[pieces[:, 0]]])].T
    place = (bars.start[bar] / unit_s, bars.end[bar] / unit_s, top[bars.server[bar]] + row, count)
    look: dict[str, Any] = {"edgecolors": "white", "linewidths": 0.15 if len(bar) > RASTER_FROM else 0.4, "zorder": 2}
    ax.add_collection(boxes(*place, facecolors=colours[bars.job[bar]], **look))
    ax.hlines(top[shown], *ax.get_xlim(), color="white", lw=1.1, zorder=3)
    if len(chart.jobs) <= NAMED_JOBS:
        _names(ax, chart, bars.job[bar], *place)
    kinds = chart.servers.gpu_type[shown]
    ends = {r: shown[kinds == r][[0, -1]] for r in np.unique(kinds).tolist()}
    middles = [(top[first] + top[last] + gpus[last]) / 2 for first, last in ends.values()]
    ax.set_yticks(middles, [label(chart.gpu_types[r], 14) for r in ends])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def boxes(left: ArrayLike, right: ArrayLike, top: ArrayLike, height: ArrayLike, **look: Any) -> PolyCollection:
    """Return boxes as one artist; very many are stored as an image."""
    left, right, top, height = np.broadcast_arrays(left, right, top, height)
    low = top + height
    corners: Any = np.stack([[left, top], [right, top], [right, low], [left, low]]).transpose(2, 0, 1)
    return PolyCollection(corners, rasterized=len(corners) > RASTER_FROM, **look)


def _names(ax: Axes, chart: Chart, job: Ints, left: Array, right: Array, y: Array, height: Ints) -> None:
    """Write the names of the jobs into the bars that are wide enough."""
    letter = ax.get_xlim()[1] * 0.075 / WIDTH_IN
    for j, start, end, middle in zip(job.tolist(), left, right, y + height / 2, strict=True):
        text = label(chart.jobs[j], 12)
        if end - start >= letter * (len(text) + 1):
            look = {"ha": "center", "va": "center", "color": text_colour(PALETTE[j])}
            ax.text((start + end) / 2, middle, text, look, fontsize=6.5, clip_on=True, zorder=4)
