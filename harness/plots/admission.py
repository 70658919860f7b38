"""Figures of admission: what each admitted job adds to the prices, and who has which worker of which server when."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from schedgap.harness.figure import Drawn, figure
from schedgap.harness.plots import style
from schedgap.harness.plots.gantt import NAMED_JOBS, Bars, Chart, beside_online, of_runs, server_rows
from schedgap.harness.plots.results import Compared, counted
from schedgap.harness.plots.style import PALETTE, label, panels
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


def replayed(view: View, runs: Runs, after: Ints) -> Array:
    """Return ``(len(after), R, T)`` prices η when the first jobs of an online decision have been admitted.

    `after` says how many jobs these are, ascending.
    """
    machines = view.machines
    base, total = Desk(view).bases[:, None], machines.total[:, None]
    each = np.zeros((runs.job.size, len(machines.resources)))
    np.add.at(each, (runs.run, runs.worker_type[runs.run]), runs.workers)
    np.add.at(each, (runs.run, len(machines.worker_types) + runs.ps_type[runs.run]), runs.ps)
    used = np.zeros((len(machines.resources), view.slots))
    seen = []
    for first, last in pairwise([0, *after.tolist()]):
        for a in range(first, last):
            used[:, runs.start[a] : runs.start[a] + runs.slots[a]] += each[a][:, None]
        seen.append(price(base, used, total))
    return np.array(seen)


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
    shown = style.dearest(prices.max(axis=0), MAX_TYPES)
    columns = 2 if few or len(shown) in (2, 4) else 3
    ylabel = "utility per slot" if few else "admitted jobs"
    xlabel = f"time [slots of {number(view.slot_s)} s]"
    canvas, axes = panels(len(shown), 2.0, columns, xlabel, ylabel, "y" if few else "")
    for ax, r in zip(axes, shown, strict=True):
        ax.set_title(f"price η of one {label(view.machines.resources[r], 20)}")
        if few:
            _stacked(ax, prices[:, r])
    if few:
        ids = [label(view.ids[j], 16) for j in runs.job.tolist()]
        style.legend_below(canvas, [Patch(color=c, label=i) for c, i in zip(PALETTE, ids, strict=False)], 5)
        words = "Colours: what each admitted job adds, in the order of admission, one on top of the other."
    else:
        _maps(canvas, axes, prices[:, shown], after)
        words = (
            "A row shows them when so many jobs have been admitted, a column is a slot (many are averaged); white: 0."
        )
    used = len(np.unique(runs.worker_type)) + 1
    free = len(view.machines.resources) - used
    words += f" Free throughout and not drawn: {counted(free, 'type')}." if free else ""
    words += f" The {MAX_TYPES} dearest of {used} types." if used > MAX_TYPES else ""
    return canvas, f"{words} {counted(admitted, 'job')} admitted. {data.n(1)}"


def _stacked(ax: Axes, prices: Array) -> None:
    """Draw what each admission adds to the price in each slot, one on top of the other."""
    for colour, (before, now) in zip(PALETTE, pairwise(prices), strict=False):
        ax.stairs(now, np.arange(now.size + 1), baseline=before, fill=True, color=colour)
    busy = np.flatnonzero(prices[-1])
    ax.set(xlim=(max(busy[0] - 1, 0), min(busy[-1] + 2, prices.shape[1])), ylim=(0.0, prices.max() * 1.08))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _maps(canvas: Figure, axes: list[Axes], prices: Array, after: Ints) -> None:
    """Draw a map for each resource: a row for each admission, a column for each slot."""
    end = int(np.flatnonzero(prices.any(axis=(0, 1)))[-1]) + 1
    edges = np.linspace(0, end, min(end, style.COLUMNS) + 1)
    cells, norm = style.wide_norm(style.no_dust(np.apply_along_axis(style.averaged, 2, prices, edges), SMALL))
    for r, ax in enumerate(axes):
        image = style.heat_map(ax, np.where(cells[:, r] > 0, cells[:, r], np.nan), norm)
        style.sparse_ticks(ax, "y", [str(count) for count in after.tolist()], 6)
        style.time_ticks(ax, float(end), cells.shape[2])
    canvas.colorbar(image, ax=axes, label="utility per slot", pad=0.02, format=style.plain_number)


@figure("admission.workers", "Admitted jobs", of="instance")
def workers(data: Compared) -> Drawn:
    """Which job has which worker over time, one row per worker, servers (white lines) by GPU type.

    The decision of largest utility among the others, and that of admission.online.
    """

    def chart(view: View) -> Chart:
        kinds = len(view.machines.worker_types)
        return server_rows(view.instance, view.machines.capacity[:, :kinds].sum(axis=1).astype(np.int64), view.ids)

    def words(view: View, runs: Runs, utility: float | None) -> str:
        return f"utility {number(utility, 5)}, {runs.job.size} of {counted(view.size, 'job')} admitted"

    def bars(view: View, runs: Runs) -> Bars:
        return of_runs(runs, runs.workers, view.slot_s, 0)

    return beside_online(data, ONLINE, Runs, (UTILITY.id,), chart, bars, words)
