"""Figures of Zhou's schedulers: windows of A_online, who runs where, prices, and completion times beside the bound."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from schedgap.harness.compare.row import Row
from schedgap.harness.plots.bars import Group, beside_bounds
from schedgap.harness.plots.curves import price_heatmap
from schedgap.harness.plots.elastic import bars
from schedgap.harness.plots.figures import FIGURES, FigureInput, FigureSpec, counted
from schedgap.harness.plots.gantt import NAMED_JOBS, RASTER_FROM, Bars, Chart, gantt, hidden
from schedgap.harness.plots.style import DASHED, FAINT, INK, MUTED, PALETTE, label, legend_below, new_figure
from schedgap.harness.text import clean, number
from schedgap.instances.views.zhou import ARCHITECTURES, Architecture, Schedule, View
from schedgap.instances.workload import Servers

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

SMALL = 1e-4
"""Part of the highest dual price below which a price counts as 0."""

NOTHING = 1e-9
"""Part of a capacity below which its use counts as none."""

MAX_PRICES = 16
"""Rows of a map of prices: classes of servers and resources, the dearest of them."""

SHORT = ("GPU", "CPU", "RAM", "net")
"""What rows of a map of prices call GPUs, CPUs, memory and bandwidth."""

CELLS = 4_000_000
"""Servers times resources times slots whose prices are computed at a time."""

MOST_SLOTS = 1_000_000
"""Schedules that last longer have no map of prices."""

MAX_BARS = 30

NARROW = 0.035
"""Part of the axis below which a window has no room for its number of rounds."""


def _schedules(data: FigureInput, name: str, kinds: tuple[str, ...]) -> dict[str, Schedule]:
    """Return verified schedules of an architecture's problems, by method."""
    problems = {f"zhou.{name}.{kind}" for kind in kinds}
    methods = {row.method for row in data.rows if row.problem in problems}
    return {m: d for m, d in data.decisions.items() if m in methods and isinstance(d, Schedule) and d.job.size}


def _online(data: FigureInput) -> dict[str, Schedule]:
    """Return the schedules of A_online by architecture."""
    found = {name: data.decisions.get(f"zhou.{name}.online") for name in ARCHITECTURES}
    return {name: d for name, d in found.items() if isinstance(d, Schedule) and d.window_start.size}


def _sample(data: FigureInput, drawn: int) -> str:
    """Return n, for the end of a caption."""
    seeds = " Of several seeds the first is shown." if len({row.seed for row in data.rows}) > 1 else ""
    jobs, methods = counted(data.view.size, "job"), counted(drawn, "method")
    return f"n = {jobs}, {methods} on {data.where}.{seeds}{data.left_out}"


# ---------------------------------------------------------------- windows of A_online


def draw_windows(data: FigureInput) -> Figure | None:
    """Draw when each job waits and runs, and the windows that A_online plans in."""
    online = _online(data)
    if not online:
        return None
    view: View = data.view
    height = min(max(0.1 * view.size, 1.1), 3.4)
    figure = new_figure(1.0 + len(online) * (height + 0.55))
    axes = figure.subplots(len(online), 1, sharex=True, squeeze=False)[:, 0].tolist()
    end = max(float((d.window_start + d.window_slots).max()) for d in online.values())
    for ax, (name, schedule) in zip(axes, online.items(), strict=True):
        ax.set(xlim=(1.0, end), ylim=(view.size, 0.0), yticks=[], ylabel="jobs by start")
        _windows(ax, schedule, end - 1.0)
        _runs(ax, view, schedule)
        formula, realised = view.architectures[name].alpha, int(schedule.window_rounds.max())
        title = f"zhou.{name}.online: {counted(len(schedule.window_start), 'window')}"
        ax.set_title(
            f"{title}, up to {counted(realised, 'round')} used (α by the formula: {formula})", fontsize=8.5, pad=15
        )
    axes[-1].set_xlabel(f"time [slots of {number(view.slot_s)} s]")
    handles = [
        Patch(color=PALETTE[0], label="runs"),
        Patch(color=PALETTE[1], label="waits"),
        Line2D([], [], color=INK, lw=1.0, label="window"),
        Line2D([], [], color=MUTED, lw=0.8, ls=DASHED, label="round of A_maxweight"),
    ]
    legend_below(figure, handles)
    return figure


def _windows(ax: Axes, schedule: Schedule, length: float) -> None:
    """Draw windows, the rounds within them, and above them how many these are."""
    columns = (schedule.window_start, schedule.window_slots, schedule.window_rounds, schedule.window_tau)
    for i, (start, slots, rounds, tau) in enumerate(np.stack(columns, axis=1).tolist()):
        ax.axvspan(start, start + slots, color=FAINT, alpha=0.55 if i % 2 else 0.25, lw=0, zorder=0)
        for edge in (start, start + slots):
            ax.axvline(edge, color=INK, lw=0.7, zorder=1)
        for k in range(1, rounds):
            ax.axvline(start + k * tau, color=MUTED, lw=0.7, ls=DASHED, zorder=1)
        if slots >= NARROW * length:
            text = counted(rounds, "round") if slots >= 2 * NARROW * length else str(rounds)
            place = (start + slots / 2, 1.0)
            ax.annotate(
                text, place, (0, 3), xycoords=("data", "axes fraction"), textcoords="offset points", ha="center",
                fontsize=7.5, color=MUTED,
            )  # fmt: skip


def _runs(ax: Axes, view: View, schedule: Schedule) -> None:
    """Draw a row for each job: a thin bar from its arrival to its start, a wide one while it runs."""
    order = np.lexsort((schedule.job, schedule.start))
    start, end = schedule.start[order], (schedule.start + schedule.slots)[order]
    y = np.arange(len(order), dtype=float)
    many = len(order) > RASTER_FROM
    waits = _boxes(view.arrival[schedule.job[order]], start, y + 0.38, 0.24)
    runs = _boxes(start, end, y + 0.08, 0.84)
    ax.add_collection(PolyCollection(waits, facecolors=PALETTE[1], linewidths=0, rasterized=many, zorder=2))
    ax.add_collection(PolyCollection(runs, facecolors=PALETTE[0], linewidths=0, rasterized=many, zorder=3))


def _boxes(left: Ints, right: Ints, top: Array, height: float) -> list[Array]:
    low = top + height
    corners = [(left, top), (right, top), (right, low), (left, low)]
    return list(np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1))


def _caption_windows(data: FigureInput) -> str:
    return (
        "When jobs wait (from their arrival) and run under A_online, one row per job in the order of their starts. "
        "A batch runs in a window of α rounds of A_maxweight; numbers above are the rounds that scheduled jobs, where "
        f"windows are wide enough. {_sample(data, len(_online(data)))}"
    )


# ---------------------------------------------------------------- Gantt


def _shown(data: FigureInput, name: str) -> dict[str, Schedule]:
    """Return the best of the other schedules without interruptions, and that of A_online."""
    schedules = _schedules(data, name, ("completion",))
    online = f"zhou.{name}.online"
    rows = [row for row in data.rows if row.method in schedules and row.method != online and row.objective is not None]
    best = min(rows, key=lambda row: row.objective or 0.0, default=None)
    chosen = [best.method] if best else []
    return {method: schedules[method] for method in (*chosen, online) if method in schedules}


def gpu_bars(view: View, name: str, schedule: Schedule) -> Bars:
    """Return the bars of a schedule, in GPUs of workers and parameter servers."""
    machines = view.architectures[name].machines
    held = schedule.workers * machines.worker[schedule.worker_type[schedule.run], 0]
    if name == "ps":
        held = held + schedule.ps * machines.ps[schedule.ps_type[schedule.run], 0]
    return bars(schedule, np.rint(held).astype(np.int64), view.slot_s, 1)


def chart(view: View) -> Chart:
    """Return the rows of the servers' GPUs."""
    machines = view.architectures["ra"].machines
    types = [g.name for g in view.instance.cluster.gpu_types]
    kinds = [types.index(group.gpu_type) for group in view.instance.cluster.servers for _ in range(group.count)]
    gpus, cpus, memory_gb, _ = machines.capacity.T
    servers = Servers(machines.names, np.array(kinds), gpus.astype(np.int64), cpus, memory_gb)
    return Chart(servers, types, view.ids)


def draw_gantt(data: FigureInput, name: str) -> Figure | None:
    """Draw which job runs on which GPU when, in the best schedule and in that of A_online."""
    shown = _shown(data, name)
    if not shown:
        return None
    view: View = data.view
    worth = {row.method: row.objective for row in data.rows}
    titles = [f"{label(m, 30)}: Σ w·c = {number(worth.get(m))}" for m in shown]
    panels = [gpu_bars(view, name, schedule) for schedule in shown.values()]
    return gantt(chart(view), list(zip(titles, panels, strict=True)))


def _caption_gantt(data: FigureInput, name: str) -> str:
    colours = "each job has its colour" if data.view.size <= NAMED_JOBS else "colours tell the order of the jobs"
    return (
        f"Which job holds which GPU over time with {ARCHITECTURES[name]}, one row per GPU, servers (white lines) by GPU"
        f" type; {colours}. The schedule of least weighted completion time Σ w·c (in weight × slots) among the others"
        f" without interruptions, and that of zhou.{name}.online. {_sample(data, len(_shown(data, name)))}"
        f"{hidden(chart(data.view).servers)}"
    )


# ---------------------------------------------------------------- prices


def price_field(of: Architecture, schedule: Schedule) -> Array:
    """Return ``(k·R, last slot)`` prices (11) that a schedule makes: the mean over the servers of each class."""
    machines, classes = of.machines, of.classes
    slots = int((schedule.start + schedule.slots).max()) - 1
    resources = machines.capacity.shape[1]
    total = np.zeros((classes.size, resources, slots))
    step = max(1, CELLS // (resources * (slots + 1)))
    for first in range(0, machines.size, step):
        servers = np.arange(first, min(first + step, machines.size))
        np.add.at(total, machines.kind[servers], of.prices_of(_used(of, schedule, servers, slots), servers))
    return (total / classes.count[:, None, None]).reshape(-1, slots)


def _used(of: Architecture, schedule: Schedule, servers: Ints, slots: int) -> Array:
    """Return ``(servers, R, slots)`` what is in use of neighbouring servers."""
    machines = of.machines
    mine = (schedule.server >= servers[0]) & (schedule.server <= servers[-1])
    run, server = schedule.run[mine], schedule.server[mine] - servers[0]
    taken = schedule.workers[mine, None] * machines.worker[schedule.worker_type[run]]
    if of.id == "ps":
        taken = taken + schedule.ps[mine, None] * machines.ps[schedule.ps_type[run]]
    change = np.zeros((len(servers), slots + 1, machines.capacity.shape[1]))
    np.add.at(change, (server, schedule.start[run] - 1), taken)
    np.add.at(change, (server, schedule.start[run] + schedule.slots[run] - 1), -taken)
    used = np.cumsum(change, axis=1)[:, :-1].transpose(0, 2, 1)
    # What sums leave of nothing would have a price.
    return np.where(used > NOTHING * machines.capacity[servers][:, :, None], used, 0.0)


def _price_rows(of: Architecture) -> list[str]:
    """Return the names of a map's rows: a class of servers and a resource."""
    names = [label(name.removesuffix(".0"), 10) for name in of.classes.names]
    return [f"{name} {resource}" for name in names for resource in SHORT]


def dearest(field: Array) -> Ints:
    """Return the rows of a map of prices that are drawn: not 0 everywhere, and of many those of the highest price."""
    top = field.max(axis=1)
    rows = np.argsort(-top, kind="stable")[:MAX_PRICES]
    return np.sort(rows[top[rows] > 0])


def _omitted(field: Array) -> str:
    free = int((field.max(axis=1) <= 0).sum())
    more = len(field) - free - len(dearest(field))
    return (f" {free} are 0 throughout and not drawn." if free else "") + (
        f" The {MAX_PRICES} dearest are drawn, {more} are not." if more else ""
    )


def _posted(data: FigureInput, name: str) -> Array | None:
    schedule = _online(data).get(name)
    if schedule is None or int((schedule.start + schedule.slots).max()) > MOST_SLOTS:
        return None
    field = price_field(data.view.architectures[name], schedule)
    return field if field.max() > 0 else None


def _duals(data: FigureInput, name: str) -> Array | None:
    """Return ``(k·R, slots)`` what all of one server's resource costs per slot at the bound's prices."""
    found = data.prices.get(f"zhou.{name}.columns")
    if found is None:
        return None
    each = np.asarray(found) * data.view.architectures[name].classes.capacity.reshape(-1, 1)
    # What rounding leaves of a price of 0 would take most of a logarithmic scale.
    return np.where(each >= SMALL * each.max(), each, 0.0) if each.max() > 0 else None


def draw_prices(data: FigureInput, name: str) -> Figure | None:
    """Draw the prices (11) that the schedule of A_online makes."""
    field = _posted(data, name)
    return None if field is None else _price_map(data.view, name, field, "weight per unit and slot")


def draw_duals(data: FigureInput, name: str) -> Figure | None:
    """Draw the prices of the bound: what more servers would be worth to the optimum at most."""
    field = _duals(data, name)
    return None if field is None else _price_map(data.view, name, field, "Σ w·c per server and slot")


def _price_map(view: View, name: str, field: Array, unit: str) -> Figure:
    rows = dearest(field)
    names = _price_rows(view.architectures[name])
    return price_heatmap(field[rows], [names[i] for i in rows], view.slot_s, unit)


def _caption_prices(data: FigureInput, name: str) -> str:
    field = _posted(data, name)
    return (
        f"Price (11) of a unit of each resource by class of servers and time, λ^(use/capacity) − 1, in weight per unit "
        f"(GPU, CPU, GB, Gbit/s) and slot, that the schedule of zhou.{name}.online makes: the mean over the servers of "
        f"the class.{'' if field is None else _omitted(field)} {_sample(data, 1)}"
    )


def _caption_duals(data: FigureInput, name: str) -> str:
    field = _duals(data, name)
    return (
        f"Dual prices at which zhou.{name}.columns proves its bound, by class of servers, resource and time: what all "
        "of one server's GPUs (CPUs, memory, bandwidth) cost in a slot, in weight × slots."
        f"{'' if field is None else _omitted(field)} {_sample(data, 1)}"
    )


# ---------------------------------------------------------------- weighted completion times


def _runs_of(data: FigureInput, name: str, kind: str) -> list[Row]:
    """Return the verified results of a problem, of several seeds the first, the best first."""
    rows: dict[str, Row] = {}
    for row in data.rows:
        if row.problem == f"zhou.{name}.{kind}" and row.verified and row.objective is not None:
            rows.setdefault(row.method, row)
    return sorted(rows.values(), key=lambda row: row.objective or 0.0)


def _groups(data: FigureInput, name: str) -> Iterator[Group]:
    """Yield the methods that never interrupt jobs, and those that may, each with the bound on their problem."""
    for kind, text in (("completion", "without interruptions"), ("preemptive", "jobs may be interrupted")):
        rows = _runs_of(data, name, kind)[:MAX_BARS]
        if rows:
            yield Group({row.method: row.objective or 0.0 for row in rows}, rows[0].best_bound, text)


def draw_completion(data: FigureInput, name: str) -> Figure | None:
    """Draw the weighted completion time of each method beside the best bound."""
    groups = list(_groups(data, name))
    return beside_bounds(groups, "Σ w·c [weight × slots]") if groups else None


def _caption_completion(data: FigureInput, name: str) -> str:
    rows = [row for kind in ("completion", "preemptive") for row in _runs_of(data, name, kind)]
    sources = dict.fromkeys(clean(row.bound_from) for row in rows if row.bound_from)
    bound = (
        " In brackets: at most so many times the best possible, by the bound of " + " and ".join(sources) + "."
        if sources
        else ""
    )
    return (
        f"Total weighted completion time Σ w·c of all jobs with {ARCHITECTURES[name]}, completions counted from slot 1,"
        f" by method.{bound} {_sample(data, min(len(rows), 2 * MAX_BARS))}"
    )


FIGURES.register(FigureSpec("windows", "zhou", "Windows of A_online", _caption_windows, draw_windows, True))
for _name, _title in ARCHITECTURES.items():
    for _id, _what, _caption, _draw in (
        ("gantt", "Schedules", _caption_gantt, draw_gantt),
        ("prices", "Prices of A_online", _caption_prices, draw_prices),
        ("duals", "Prices of the bound", _caption_duals, draw_duals),
        ("completion", "Weighted completion times", _caption_completion, draw_completion),
    ):
        FIGURES.register(
            FigureSpec(
                f"{_id}-{_name}",
                "zhou",
                f"{_what} with {_title}",
                partial(_caption, name=_name),
                partial(_draw, name=_name),
                True,
            )
        )
