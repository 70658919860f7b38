"""Figures of admission: what each admitted job adds to the prices, and who has which worker of which server when."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from schedgap.harness.figure import Drawn, figure
from schedgap.harness.plots.gantt import NAMED_JOBS, gantt, of_runs, server_rows
from schedgap.harness.plots.pieces import COLUMNS, averaged, time_ticks
from schedgap.harness.plots.results import Compared, counted
from schedgap.harness.plots.style import (
    PALETTE,
    heat_map,
    label,
    legend_below,
    no_dust,
    panels,
    sparse_ticks,
    wide_norm,
)
from schedgap.harness.text import number
from schedgap.heuristics.admission.online import Desk, price
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.elastic import Runs
from schedgap.instances.views.admission import UTILITY, View

ONLINE = "admission.online"

MAX_STEPS = 120
"""Rows of a map of prices; more admitted jobs are shown at equal distances."""

MAX_TYPES = 6
"""Types of workers and PSs that are drawn, the dearest."""

SMALL = 1e-6
"""Part of the largest price below which a price counts as 0."""


# ---------------------------------------------------------------- prices


def replayed(view: View, runs: Runs, after: Ints) -> Array:
    """Return ``(len(after), R, T)`` prices η when so many jobs have been admitted, in the order of the decision.

    Parameters
    ----------
    view, runs
        What was decided, and the decision of the online algorithm.
    after
        Numbers of admitted jobs, ascending.
    """
    machines = view.machines
    base, total = Desk(view).bases[:, None], machines.total[:, None]
    each = np.zeros((runs.job.size, len(machines.resources)))
    np.add.at(each, (runs.run, runs.worker_type[runs.run]), runs.workers)
    np.add.at(each, (runs.run, len(machines.worker_types) + runs.ps_type[runs.run]), runs.ps)
    used = np.zeros((len(machines.resources), view.slots))
    seen, done = np.zeros((len(after), *used.shape)), 0
    for i, count in enumerate(after.tolist()):
        for a in range(done, count):
            used[:, runs.start[a] : runs.start[a] + runs.slots[a]] += each[a][:, None]
        done = count
        seen[i] = price(base, used, total)
    return seen


@figure("admission.steps", "Prices step by step", of="instance")
def steps(data: Compared) -> Drawn:
    """Prices of workers and parameter servers over time, as one job after another is admitted.

    A price η = θ^(h/ΣC) − 1 is that of one worker of a type, or of one parameter server, in utility per slot, as the
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
    shown = _dearest(prices)
    titles = [f"price η of one {label(view.machines.resources[r], 20)}" for r in shown]
    columns = 2 if few or len(shown) in (2, 4) else 3
    ylabel = "utility per slot" if few else "admitted jobs"
    canvas, axes = panels(len(shown), 2.0, columns, f"time [slots of {number(view.slot_s)} s]", ylabel)
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title)
    if few:
        for ax, r in zip(axes, shown.tolist(), strict=True):
            _stacked(ax, prices[:, r])
        ids = [label(view.ids[j], 16) for j in runs.job.tolist()]
        legend_below(canvas, [Patch(color=c, label=i) for c, i in zip(PALETTE, ids, strict=False)], 5)
    else:
        _maps(canvas, axes, prices[:, shown], after)
    return canvas, _words(data, runs, few)


def _dearest(prices: Array) -> Ints:
    """Return the resources that are drawn, in their order: those that cost something at some time."""
    top = prices.max(axis=(0, 2))
    rows = np.argsort(-top, kind="stable")[:MAX_TYPES]
    return np.sort(rows[top[rows] > 0])


def _stacked(ax: Axes, prices: Array) -> None:
    """Draw what each admission adds to the price in each slot, one on top of the other."""
    edges = np.arange(prices.shape[1] + 1)
    for k in range(1, len(prices)):
        ax.stairs(prices[k], edges, baseline=prices[k - 1], fill=True, color=PALETTE[k - 1])
    busy = np.flatnonzero(prices[-1] > 0)
    ax.set(xlim=(max(busy[0] - 1, 0), min(busy[-1] + 2, prices.shape[1])), ylim=(0.0, prices.max() * 1.08))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(axis="y")


def _maps(canvas: Figure, axes: list[Axes], prices: Array, after: Ints) -> None:
    """Draw a map for each resource: a row for each admission, a column for each slot."""
    end = int(np.flatnonzero(prices.any(axis=(0, 1)))[-1]) + 1
    edges = np.linspace(0, end, min(end, COLUMNS) + 1)
    cells, norm = wide_norm(no_dust(np.apply_along_axis(averaged, 2, prices, edges), SMALL))
    for r, ax in enumerate(axes):
        image = heat_map(ax, np.where(cells[:, r] > 0, cells[:, r], np.nan), norm)
        sparse_ticks(ax, "y", [str(count) for count in after.tolist()], 6)
        time_ticks(ax, float(end), cells.shape[2])
    canvas.colorbar(image, ax=axes, label="utility per slot", pad=0.02, format=lambda value, _: number(value))


def _words(data: Compared, runs: Runs, few: bool) -> str:
    """Return the end of the caption: what is drawn, what is not, and n."""
    shape = (
        "Colours: what each admitted job adds, in the order of admission, one on top of the other."
        if few
        else "A row shows them when so many jobs have been admitted, a column is a slot (many are averaged); white: 0."
    )
    used = len(np.unique(runs.worker_type)) + 1
    free = len(data.view.machines.resources) - used
    more = f" Free throughout and not drawn: {counted(free, 'type')}." if free else ""
    more += f" The {MAX_TYPES} dearest of {used} types." if used > MAX_TYPES else ""
    return f"{shape}{more} {counted(runs.job.size, 'job')} admitted. {data.n(1)}"


# ---------------------------------------------------------------- Gantt


@figure("admission.workers", "Admitted jobs", of="instance")
def workers(data: Compared) -> Drawn:
    """Which job has which worker over time, one row per worker, servers (white lines) by GPU type.

    The decision of largest utility among the others, and that of admission.online.
    """
    shown = data.beside(ONLINE, data.running(Runs), lambda row: row.problem == UTILITY.id)
    if not shown:
        return None
    view: View = data.view
    worth = {row.method: row.objective for row in data.rows}
    bars = {
        f"{label(m, 30)}: utility {number(worth.get(m), 5)}, {d.job.size} of {counted(view.size, 'job')} admitted": (
            of_runs(d, d.workers, view.slot_s, 0)
        )
        for m, d in shown.items()
    }
    machines = view.machines
    rows = machines.capacity[:, : len(machines.worker_types)].sum(axis=1).astype(np.int64)
    canvas, words = gantt(server_rows(view.instance, rows, view.ids), bars)
    return canvas, words + data.n(len(shown))
