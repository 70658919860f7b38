"""Figures of admission: what each admitted job adds to the prices, and who has which worker of which server when."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from schedgap.harness.plots.curves import COLUMNS, averaged
from schedgap.harness.plots.elastic import bars
from schedgap.harness.plots.figures import FIGURES, FigureInput, FigureSpec, counted
from schedgap.harness.plots.gantt import NAMED_JOBS, Chart, gantt, hidden
from schedgap.harness.plots.style import PALETTE, heat_map, is_first_column, label, legend_below, panels, sparse_ticks
from schedgap.harness.text import number
from schedgap.heuristics.admission.online import Desk, price
from schedgap.instances.elastic import Runs
from schedgap.instances.views.admission import UTILITY, View
from schedgap.instances.workload import Servers

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

ONLINE = "admission.online"

MAX_STEPS = 120
"""Rows of a map of prices; of more admitted jobs, every so many are shown."""

MAX_TYPES = 6
"""Types of workers and PSs that are drawn, the dearest."""

SMALL = 1e-6
"""Part of the largest price below which a price counts as 0."""


def _decisions(data: FigureInput) -> dict[str, Runs]:
    """Return verified decisions that admit somebody, by method."""
    return {m: d for m, d in data.decisions.items() if isinstance(d, Runs) and d.job.size}


def _sample(data: FigureInput, drawn: int) -> str:
    """Return n, for the end of a caption."""
    seeds = " Of several seeds the first is shown." if len({row.seed for row in data.rows}) > 1 else ""
    jobs, methods = counted(data.view.size, "job"), counted(drawn, "method")
    return f"n = {jobs}, {methods} on {data.where}.{seeds}{data.left_out}"


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


def draw_steps(data: FigureInput) -> Figure | None:
    """Draw the prices of workers and PSs over time, as one job after another is admitted."""
    runs = _decisions(data).get(ONLINE)
    if runs is None:
        return None
    view: View = data.view
    admitted = runs.job.size
    few = admitted <= NAMED_JOBS
    after = np.arange(admitted + 1) if few else np.unique(np.linspace(0, admitted, MAX_STEPS + 1).astype(np.int64))[1:]
    prices = replayed(view, runs, after)
    shown = _dearest(prices)
    columns = 2 if few or len(shown) in (2, 4) else 3
    figure, axes = panels(len(shown), 2.0, columns)
    names = [label(view.machines.resources[r], 20) for r in shown]
    if few:
        for ax, r, name in zip(axes, shown.tolist(), names, strict=True):
            _stacked(ax, prices[:, r], name)
        ids = [label(view.ids[j], 16) for j in runs.job.tolist()]
        legend_below(figure, [Patch(color=c, label=i) for c, i in zip(PALETTE, ids, strict=False)], 5)
    else:
        _maps(figure, axes, prices[:, shown], after, names)
    for ax in axes[-columns:]:
        ax.set_xlabel(f"time [slots of {number(view.slot_s)} s]")
    return figure


def _dearest(prices: Array) -> Ints:
    """Return the resources that are drawn, in their order: those that cost something at some time."""
    top = prices.max(axis=(0, 2))
    rows = np.argsort(-top, kind="stable")[:MAX_TYPES]
    return np.sort(rows[top[rows] > 0])


def _stacked(ax: Axes, prices: Array, name: str) -> None:
    """Draw what each admission adds to the price in each slot, one on top of the other."""
    edges = np.arange(prices.shape[1] + 1)
    for k in range(1, len(prices)):
        ax.stairs(prices[k], edges, baseline=prices[k - 1], fill=True, color=PALETTE[k - 1])
    busy = np.flatnonzero(prices[-1] > 0)
    first, last = (int(busy[0]), int(busy[-1]) + 1) if busy.size else (0, prices.shape[1])
    ax.set(xlim=(max(first - 1, 0), min(last + 1, prices.shape[1])), ylim=(0.0, max(prices.max() * 1.08, 1e-9)))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_title(f"price η of one {name}", fontsize=8.5)
    ax.set_ylabel("utility per slot")
    ax.grid(axis="y")


def _maps(figure: Figure, axes: list[Axes], prices: Array, after: Ints, names: list[str]) -> None:
    """Draw a map for each resource: a row for each admission, a column for each slot."""
    end = int(np.flatnonzero(prices.any(axis=(0, 1)))[-1]) + 1
    edges = np.linspace(0, end, min(end, COLUMNS) + 1)
    cells = np.apply_along_axis(averaged, 2, prices, edges)
    cells = np.where(cells >= SMALL * cells.max(), cells, 0.0)
    positive = cells[cells > 0]
    wide = positive.size > 0 and positive.max() > 100 * positive.min()
    largest = float(positive.max(initial=0.0)) or 1.0
    norm = LogNorm(float(positive.min()), largest) if wide else Normalize(0.0, largest)
    for r, (ax, name) in enumerate(zip(axes, names, strict=True)):
        image = heat_map(ax, np.where(cells[:, r] > 0, cells[:, r], np.nan), "viridis", norm)
        sparse_ticks(ax, "y", [str(count) for count in after.tolist()], 6)
        times = np.asarray(MaxNLocator(5, integer=True).tick_values(0, end))
        times = times[(times >= 0) & (times <= end)]
        ax.set_xticks(times / end * cells.shape[2], [f"{time:g}" for time in times])
        ax.tick_params(axis="x", length=2)
        ax.set_title(f"price η of one {name}", fontsize=8.5)
        ax.set_ylabel("admitted jobs" if is_first_column(ax) else "")
    figure.colorbar(image, ax=axes, label="utility per slot", pad=0.02, format=lambda value, _: number(value))


def _caption_steps(data: FigureInput) -> str:
    runs = _decisions(data).get(ONLINE)
    admitted = 0 if runs is None else runs.job.size
    shape = (
        "what each admitted job adds, in the order of admission, one on top of the other"
        if admitted <= NAMED_JOBS
        else "a row when so many jobs have been admitted, a column for each slot (many are averaged); white: 0"
    )
    used = 0 if runs is None else len(np.unique(runs.worker_type)) + 1
    free = len(data.view.machines.resources) - used
    more = f" Free throughout and not drawn: {counted(free, 'type')}." if free else ""
    more += f" The {MAX_TYPES} dearest of {used} types." if used > MAX_TYPES else ""
    return (
        f"Prices η = θ^(h/ΣC) − 1 of one worker of each type and one parameter server over time, in utility per slot, "
        f"that the schedule of {ONLINE} makes: {shape}.{more} {counted(admitted, 'job')} admitted. {_sample(data, 1)}"
    )


# ---------------------------------------------------------------- Gantt


def _shown(data: FigureInput) -> dict[str, Runs]:
    """Return the best of the other decisions of the same problem, and that of the online algorithm."""
    decisions = _decisions(data)
    rows = [row for row in data.rows if row.method in decisions and row.method != ONLINE and row.problem == UTILITY.id]
    best = max(rows, key=lambda row: row.objective or 0.0, default=None)
    chosen = [best.method] if best else []
    return {method: decisions[method] for method in (*chosen, ONLINE) if method in decisions}


def chart(view: View) -> Chart:
    """Return the rows: a worker of a server each, of whatever type."""
    machines = view.machines
    types = [g.name for g in view.instance.cluster.gpu_types]
    kinds = [types.index(group.gpu_type) for group in view.instance.cluster.servers for _ in range(group.count)]
    workers = machines.capacity[:, : len(machines.worker_types)].sum(axis=1).astype(np.int64)
    nothing = np.zeros(machines.size)
    return Chart(Servers(machines.names, np.array(kinds), workers, nothing, nothing), types, view.ids)


def draw_gantt(data: FigureInput) -> Figure | None:
    """Draw which job has which worker when, in the best decision and in that of the online algorithm."""
    shown = _shown(data)
    if not shown:
        return None
    view: View = data.view
    worth = {row.method: row.objective for row in data.rows}
    titles = [
        f"{label(m, 30)}: utility {number(worth.get(m), 5)}, {d.job.size} of {counted(view.size, 'job')} admitted"
        for m, d in shown.items()
    ]
    drawn = [bars(d, d.workers, view.slot_s, 0) for d in shown.values()]
    return gantt(chart(view), list(zip(titles, drawn, strict=True)))


def _caption_gantt(data: FigureInput) -> str:
    colours = "each job has its colour" if data.view.size <= NAMED_JOBS else "colours tell the order of the jobs"
    return (
        f"Which job has which worker over time, one row per worker, servers (white lines) by GPU type; {colours}. The "
        f"decision of largest utility among the others, and that of {ONLINE}. {_sample(data, len(_shown(data)))}"
        f"{hidden(chart(data.view).servers)}"
    )


FIGURES.register(FigureSpec("steps", "admission", "Prices step by step", _caption_steps, draw_steps, True))
FIGURES.register(FigureSpec("workers", "admission", "Admitted jobs", _caption_gantt, draw_gantt, True))
