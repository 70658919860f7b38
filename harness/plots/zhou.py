"""Figures of Zhou's schedulers: windows of A_online, who runs where, prices, and completion times beside the bound."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from schedgap.harness.figure import Drawn, figure
from schedgap.harness.plots.gantt import Bars, boxes, gantt, of_runs, server_rows
from schedgap.harness.plots.pieces import Group, beside_bounds, price_map
from schedgap.harness.plots.results import Compared, counted
from schedgap.harness.plots.style import DASHED, FAINT, INK, MUTED, PALETTE, label, legend_below, no_dust, note, panels
from schedgap.harness.text import clean, number
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.views.zhou import ARCHITECTURES, Architecture, Schedule, View

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


# ---------------------------------------------------------------- windows of A_online


def _online(data: Compared, arch: str) -> Schedule | None:
    """Return the schedule of A_online."""
    found = data.decisions.get(f"zhou.{arch}.online")
    return found if isinstance(found, Schedule) and found.window_start.size else None


@figure("zhou.windows", "Windows of A_online", of="instance")
def windows(data: Compared) -> Drawn:
    """When jobs wait (from their arrival) and run under A_online, one row per job in the order of their starts.

    A batch runs in a window of α rounds of A_maxweight; numbers above are the rounds that scheduled jobs, where windows
    are wide enough.
    """
    online = {arch: schedule for arch in ARCHITECTURES if (schedule := _online(data, arch))}
    if not online:
        return None
    view: View = data.view
    height = min(max(0.1 * view.size, 1.1), 3.4) + 0.55
    xlabel = f"time [slots of {number(view.slot_s)} s]"
    canvas, axes = panels(len(online), height, 1, xlabel, "jobs by start", sharex=True)
    end = max(float((d.window_start + d.window_slots).max()) for d in online.values())
    for ax, (arch, schedule) in zip(axes, online.items(), strict=True):
        ax.set(xlim=(1.0, end), ylim=(view.size, 0.0), yticks=[])
        _windows(ax, schedule, end - 1.0)
        _runs(ax, view, schedule)
        used = counted(int(schedule.window_rounds.max()), "round")
        count = counted(len(schedule.window_start), "window")
        formula = view.architectures[arch].alpha
        ax.set_title(f"zhou.{arch}.online: {count}, up to {used} used (α by the formula: {formula})", pad=15)
    handles = [
        Patch(color=PALETTE[0], label="runs"),
        Patch(color=PALETTE[1], label="waits"),
        Line2D([], [], color=INK, lw=1.0, label="window"),
        Line2D([], [], color=MUTED, lw=0.8, ls=DASHED, label="round of A_maxweight"),
    ]
    legend_below(canvas, handles)
    return canvas, data.n(len(online))


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
            middle = (start + slots / 2, 1.0)
            note(ax, text, middle, (0, 3), xycoords=("data", "axes fraction"), ha="center", fontsize=7.5)


def _runs(ax: Axes, view: View, schedule: Schedule) -> None:
    """Draw a row for each job: a thin bar from its arrival to its start, a wide one while it runs."""
    order = np.lexsort((schedule.job, schedule.start))
    start, end = schedule.start[order], (schedule.start + schedule.slots)[order]
    y = np.arange(len(order), dtype=float)
    arrival = view.arrival[schedule.job[order]]
    ax.add_collection(boxes(arrival, start, y + 0.38, 0.24, facecolors=PALETTE[1], linewidths=0, zorder=2))
    ax.add_collection(boxes(start, end, y + 0.08, 0.84, facecolors=PALETTE[0], linewidths=0, zorder=3))


# ---------------------------------------------------------------- Gantt


def gpu_bars(view: View, arch: str, schedule: Schedule) -> Bars:
    """Return the bars of a schedule, in GPUs of workers and parameter servers."""
    machines = view.architectures[arch].machines
    held = schedule.workers * machines.worker[schedule.worker_type[schedule.run], 0]
    if arch == "ps":
        held = held + schedule.ps * machines.ps[schedule.ps_type[schedule.run], 0]
    return of_runs(schedule, np.rint(held).astype(np.int64), view.slot_s, 1)


@figure("zhou.gantt", "Schedules with {}", of="instance", each=ARCHITECTURES)
def schedules(data: Compared, arch: str) -> Drawn:
    """Which job holds which GPU over time with {}, one row per GPU, servers (white lines) by GPU type.

    The schedule of least weighted completion time Σ w·c (in weight × slots) among the others without interruptions, and
    that of zhou.{key}.online.
    """
    problem = f"zhou.{arch}.completion"
    mine = {row.method for row in data.rows if row.problem == problem}
    known = {method: d for method, d in data.running(Schedule).items() if method in mine}
    shown = data.beside(f"zhou.{arch}.online", known, lambda row: row.objective is not None, sign=-1.0)
    if not shown:
        return None
    view: View = data.view
    worth = {row.method: row.objective for row in data.rows}
    bars = {f"{label(m, 30)}: Σ w·c = {number(worth.get(m))}": gpu_bars(view, arch, d) for m, d in shown.items()}
    gpus = view.architectures[arch].machines.capacity[:, 0].astype(np.int64)
    canvas, words = gantt(server_rows(view.instance, gpus, view.ids), bars)
    return canvas, words + data.n(len(shown))


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


def dearest(field: Array) -> tuple[Ints, str]:
    """Return the rows of a map of prices that are drawn, and words about the others.

    Rows that are 0 everywhere are not drawn, and of many only those of the highest price.
    """
    top = field.max(axis=1)
    rows = np.argsort(-top, kind="stable")[:MAX_PRICES]
    rows = np.sort(rows[top[rows] > 0])
    free = int((top <= 0).sum())
    more = len(field) - free - len(rows)
    words = f"{free} are 0 throughout and not drawn. " if free else ""
    return rows, words + (f"The {MAX_PRICES} dearest are drawn, {more} are not. " if more else "")


@figure("zhou.prices", "Prices of A_online with {}", of="instance", each=ARCHITECTURES)
def posted_prices(data: Compared, arch: str) -> Drawn:
    """Price (11) of a unit of each resource by class of servers and time: λ^(use/capacity) − 1.

    It is in weight per unit (GPU, CPU, GB, Gbit/s) and slot, and the one that the schedule of zhou.{key}.online makes:
    the mean over the servers of the class.
    """
    schedule = _online(data, arch)
    if schedule is None or int((schedule.start + schedule.slots).max()) > MOST_SLOTS:
        return None
    return _price_map(data, arch, price_field(data.view.architectures[arch], schedule), "weight per unit and slot")


@figure("zhou.duals", "Prices of the bound with {}", of="instance", each=ARCHITECTURES)
def dual_prices(data: Compared, arch: str) -> Drawn:
    """Dual prices at which zhou.{key}.columns proves its bound, by class of servers, resource and time.

    They are what all of one server's GPUs (CPUs, memory, bandwidth) cost in a slot, in weight × slots.
    """
    found = data.prices.get(f"zhou.{arch}.columns")
    if found is None:
        return None
    each = np.asarray(found) * data.view.architectures[arch].classes.capacity.reshape(-1, 1)
    return _price_map(data, arch, no_dust(each, SMALL), "Σ w·c per server and slot")


def _price_map(data: Compared, arch: str, field: Array, unit: str) -> tuple[Figure, str] | None:
    rows, words = dearest(field)
    if not rows.size:
        return None
    classes = [label(name.removesuffix(".0"), 10) for name in data.view.architectures[arch].classes.names]
    names = [f"{name} {resource}" for name in classes for resource in SHORT]
    return price_map(field[rows], [names[i] for i in rows], data.view.slot_s, unit), words + data.n(1)


# ---------------------------------------------------------------- weighted completion times


@figure("zhou.completion", "Weighted completion times with {}", of="instance", each=ARCHITECTURES)
def completion_times(data: Compared, arch: str) -> Drawn:
    """Total weighted completion time Σ w·c of all jobs with {}, completions counted from slot 1, by method."""
    kinds = {"completion": "without interruptions", "preemptive": "jobs may be interrupted"}
    found = {text: rows for kind, text in kinds.items() if (rows := data.results(f"zhou.{arch}.{kind}")[:MAX_BARS])}
    if not found:
        return None
    groups = [
        Group({row.method: row.objective or 0.0 for row in rows}, rows[0].best_bound, text)
        for text, rows in found.items()
    ]
    rows = [row for each in found.values() for row in each]
    sources = " and ".join(dict.fromkeys(clean(row.bound_from) for row in rows if row.bound_from))
    bound = f"In brackets: at most so many times the best possible, by the bound of {sources}. " if sources else ""
    return beside_bounds(groups, "Σ w·c [weight × slots]"), bound + data.n(len(rows))
