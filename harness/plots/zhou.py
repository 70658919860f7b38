"""Figures of Zhou's schedulers: windows of A_online, who runs where, prices, completion times beside the bound; sweeps.

Sweeps show what methods reach on several instances against a parameter that differs between these. Methods are compared
on the same instances only: where one of them has no result, the instance counts for none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, NullLocator

from schedgap.harness.figure import Drawn, figure
from schedgap.harness.plots import style
from schedgap.harness.plots.gantt import Bars, Chart, beside_online, boxes, of_runs, server_rows
from schedgap.harness.plots.results import Compared, counted, fitting, some
from schedgap.harness.plots.style import DASHED, INK, MAX_ROWS, MUTED, PALETTE, label, panels
from schedgap.harness.text import clean, number
from schedgap.instances.arrays import Array
from schedgap.instances.schema import Instance
from schedgap.instances.views.zhou import ARCHITECTURES, Architecture, Schedule, View

SMALL = 1e-4
"""Part of the highest dual price below which a price counts as 0."""

NOTHING = 1e-9
"""Part of a capacity below which its use counts as none."""

MAX_PRICES = 16
"""Rows of a map of prices: classes of servers and resources, the dearest of them."""

SHORT = ("GPU", "CPU", "RAM", "net")
"""What rows of a map of prices call GPUs, CPUs, memory and bandwidth."""

MOST_SLOTS = 1_000_000
"""Schedules that last longer have no map of prices."""

NARROW = 0.035
"""Part of the axis below which a window has no room for its number of rounds."""

MAX_PARAMETERS = 4

PARAMETERS = {
    "jobs": "jobs",
    "servers": "servers",
    "unit_worth": "F [weight per capacity and slot]",
    "worker_type": "worker type",
    "workers": "most workers of a job",
    "slots": "timespan [slots]",
}
"""What an axis says of a parameter; others are called what references call them."""

BRIEF = {"unit_worth": "F", "worker_type": "worker type"}
"""What a title says of it, where that is shorter."""

POINTS: style.Look = {"marker": "o", "ms": 4}
BOUND: style.Look = {"color": INK, "ls": DASHED, "lw": 1.1, "zorder": 1}

UNITS = ((1e7, 1e6, "10⁶ "), (1e5, 1e3, "10³ "), (0.0, 1.0, ""))
"""Smallest objective that is shown in a unit, the unit, and its name."""

Value = float | str


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
    online = some({arch: schedule for arch in ARCHITECTURES if (schedule := _online(data, arch))})
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
    style.legend_below(canvas, handles)
    return canvas, data.n(len(online))


def _windows(ax: Axes, schedule: Schedule, length: float) -> None:
    """Draw windows, the rounds within them, and above them how many these are."""
    columns = (schedule.window_start, schedule.window_slots, schedule.window_rounds, schedule.window_tau)
    for i, (start, slots, rounds, tau) in enumerate(np.stack(columns, axis=1).tolist()):
        ax.axvspan(start, start + slots, color=style.FAINT, alpha=0.55 if i % 2 else 0.25, lw=0, zorder=0)
        for edge in (start, start + slots):
            ax.axvline(edge, color=INK, lw=0.7, zorder=1)
        for k in range(1, rounds):
            ax.axvline(start + k * tau, color=MUTED, lw=0.7, ls=DASHED, zorder=1)
        if slots >= NARROW * length:
            text = counted(rounds, "round") if slots >= 2 * NARROW * length else str(rounds)
            middle = (start + slots / 2, 1.0)
            style.note(ax, text, middle, (0, 3), xycoords=("data", "axes fraction"), ha="center", fontsize=7.5)


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

    def chart(view: View) -> Chart:
        gpus = view.architectures[arch].machines.capacity[:, 0].astype(np.int64)
        return server_rows(view.instance, gpus, view.ids)

    return beside_online(
        data,
        f"zhou.{arch}.online",
        Schedule,
        (f"zhou.{arch}.completion",),
        chart,
        lambda view, schedule: gpu_bars(view, arch, schedule),
        lambda view, schedule, objective: f"Σ w·c = {number(objective)}",
    )


# ---------------------------------------------------------------- prices


def price_field(of: Architecture, schedule: Schedule) -> Array:
    """Return ``(k·R, last slot)`` prices (11) that a schedule makes: the mean over the servers of each class."""
    machines, classes = of.machines, of.classes
    taken = schedule.workers[:, None] * machines.worker[schedule.worker_type[schedule.run]]
    if of.id == "ps":
        taken = taken + schedule.ps[:, None] * machines.ps[schedule.ps_type[schedule.run]]
    start = schedule.start[schedule.run] - 1
    end = start + schedule.slots[schedule.run]
    total = np.zeros((classes.size, taken.shape[1], end.max()))
    for server in np.unique(schedule.server):  # the price of the others is 0
        mine = schedule.server == server
        change = np.zeros((total.shape[2] + 1, taken.shape[1]))
        np.add.at(change, start[mine], taken[mine])
        np.add.at(change, end[mine], -taken[mine])
        used = np.cumsum(change, axis=0)[:-1].T
        # What sums leave of nothing would have a price.
        used[used <= NOTHING * machines.capacity[server][:, None]] = 0.0
        total[machines.kind[server]] += of.prices(used[None], np.array([server]))[0]
    return (total / classes.count[:, None, None]).reshape(-1, total.shape[2])


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
    return _price_map(data, arch, style.no_dust(each, SMALL), "Σ w·c per server and slot")


def _price_map(data: Compared, arch: str, field: Array, unit: str) -> Drawn:
    rows = some(style.dearest(field, MAX_PRICES))
    classes = [label(name.removesuffix(".0"), 10) for name in data.view.architectures[arch].classes.names]
    names = [f"{name} {resource}" for name in classes for resource in SHORT]
    free = int((field.max(axis=1) <= 0).sum())
    words = f"{free} are 0 throughout and not drawn. " if free else ""
    more = len(field) - free - len(rows)
    words += f"The {MAX_PRICES} dearest are drawn, {more} are not. " if more else ""
    return style.price_map(field[rows], [names[i] for i in rows], data.view.slot_s, unit), words + data.n(1)


# ---------------------------------------------------------------- weighted completion times


@figure("zhou.completion", "Weighted completion times with {}", of="instance", each=ARCHITECTURES)
def completion_times(data: Compared, arch: str) -> Drawn:
    """Total weighted completion time Σ w·c of all jobs with {}, completions counted from slot 1, by method."""
    kinds = {"completion": "without interruptions", "preemptive": "jobs may be interrupted"}
    known = {text: data.results(f"zhou.{arch}.{kind}")[:MAX_ROWS] for kind, text in kinds.items()}
    groups = [
        style.Group({row.method: row.objective or 0.0 for row in rows}, rows[0].best_bound, text)
        for text, rows in known.items()
        if rows
    ]
    rows = some([row for each in known.values() for row in each])
    sources = " and ".join(dict.fromkeys(clean(row.bound_from) for row in rows if row.bound_from))
    bound = f"In brackets: at most so many times the best possible, by the bound of {sources}. " if sources else ""
    return style.beside_bounds(groups, "Σ w·c [weight × slots]"), bound + data.n(len(rows))


# ---------------------------------------------------------------- several instances


@dataclass(frozen=True, eq=False)
class Panel:
    """Results of one architecture at different values of a parameter, in order, all others being the same.

    `places` on the x axis are by value, `others` differ elsewhere; `results` are the rows by their place in the
    comparison, with ``value`` and ``bound``.
    """

    arch: str
    parameter: str
    places: Mapping[Value, float]
    others: Mapping[str, Value]
    results: pd.DataFrame


def settings(name: str, instance: Instance) -> dict[str, Value]:
    """Return the parameters of an instance: those that its reference names, and those that it shows itself."""
    texts = pd.Series(dict(parse_qsl(name.partition("?")[2])), dtype=object)
    numbers = pd.to_numeric(texts, errors="coerce").astype(float)
    kinds = [worker.name for worker in instance.worker_types]
    shown: dict[str, Value] = {
        "jobs": float(len(instance.jobs)),
        "servers": float(sum(group.count for group in instance.cluster.servers)),
        "unit_worth": "jobs' own" if instance.unit_worth is None else instance.unit_worth,
        "worker_type": kinds[0] if len(kinds) == 1 else "any",
    }
    given = {**texts, **numbers[np.isfinite(numbers)], **shown}
    return {key: value for key, value in given.items() if key != "seed"}


def found(data: Compared, kinds: Sequence[str]) -> list[Panel]:
    """Return a panel for each parameter that differs, and architecture, where there are two values or more."""
    instances, rows = data.run.instances, pd.DataFrame(map(vars, data.rows))
    rows[["arch", "kind"]] = rows["problem"].str.split(".", expand=True)[[1, 2]]
    rows = rows[rows["verified"].eq(True) & rows["objective"].notna() & rows["fingerprint"].isin(list(instances))]
    rows = rows[rows["kind"].isin(kinds)]
    rows["method"] = rows["method"].str.split(".", n=2).str[2]
    rows["bound"] = rows["best_bound"].where(rows["kind"] != "preemptive").astype(float)
    known = [settings(name, instances[mark]) for name, mark in zip(rows["instance"], rows["fingerprint"], strict=True)]
    parameters = pd.DataFrame(known, rows.index, dtype=object)
    differ = [str(key) for key in parameters if len(parameters[key].unique()) > 1]
    differ = sorted(differ, key=lambda key: [*PARAMETERS, key].index(key))[:MAX_PARAMETERS]
    made = [_panel(arch, key, rows, parameters[differ]) for key in differ for arch in ARCHITECTURES]
    return [panel for panel in made if panel]


def _panel(arch: str, parameter: str, rows: pd.DataFrame, parameters: pd.DataFrame) -> Panel | None:
    """Return the results at those values of the other parameters for which this one has most values."""
    known = parameters[rows["arch"] == arch].dropna(subset=[parameter])
    others = [key for key in known if key != parameter]
    groups: Iterable[tuple[Any, pd.DataFrame]]
    groups = known.groupby(others, sort=False, dropna=False) if others else [((), known)]
    same, best = max(groups, key=lambda group: group[1][parameter].nunique(), default=((), known))
    values = list(best[parameter].unique())
    if len(values) < 2:
        return None
    numeric = all(isinstance(value, float) for value in values)
    places = {value: value for value in sorted(values)} if numeric else {v: float(i) for i, v in enumerate(values)}
    fixed = {str(key): value for key, value in zip(others, same, strict=True) if not pd.isna(value)}
    return Panel(arch, parameter, places, fixed, rows.loc[best.index].assign(value=best[parameter]))


def compared(panel: Panel, methods: Iterable[str]) -> pd.DataFrame:
    """Return the results of the instances on which each of these methods that has results for the value has one."""
    mine = panel.results[panel.results["method"].isin(list(methods))]
    there = mine.groupby("value")["method"].transform("nunique")
    here = mine.groupby(["value", "fingerprint"])["method"].transform("nunique")
    return mine[here == there]


@figure("zhou.sweep-completion", "Weighted completion times by parameter")
def completion_by_parameter(data: Compared) -> Drawn:
    """Total weighted completion time Σ w·c, in weight × slots, by method and parameter of the instances.

    Means over the instances on which all methods of a value have results, upright lines from the least to the largest.
    Dashed: mean certified bound (no method without interruptions gets below it).
    """
    return _sweep(data, ("completion", "preemptive"), "Σ w·c [{}weight × slots]")


@figure("zhou.sweep-weight", "Completed weight by parameter")
def weight_by_parameter(data: Compared) -> Drawn:
    """Total weight of the jobs that complete by τ (it depends on the instance), by method and parameter.

    Means over the instances on which all methods of a value have results, upright lines from the least to the largest.
    Dashed: mean certified bound (no method gets above it).
    """
    return _sweep(data, ("weight",), "completed by τ [{}weight]")


def _sweep(data: Compared, kinds: Sequence[str], ylabel: str) -> Drawn:
    """Draw a line per method for each parameter that differs, parameter servers beside rings."""
    shown = some(found(data, kinds))
    methods, out = fitting(dict.fromkeys(m for panel in shown for m in panel.results["method"]), style.MAX_LINES)
    looks = {method: next(look for name, look in data.looks.items() if name.endswith(method)) for method in methods}
    heights = pd.concat([panel.results["objective"] for panel in shown]).abs()
    unit, name = next((size, text) for least, size, text in UNITS if heights.max() >= least)
    sharey = "row" if len({panel.arch for panel in shown}) > 1 else False
    canvas, axes = panels(len(shown), 2.5, 2, ylabel=ylabel.format(name), grid="both", sharey=sharey)
    bounds, drawn = False, set[int]()
    for ax, panel in zip(axes, shown, strict=True):
        results = compared(panel, methods)
        drawn.update(results.index)
        bounds |= _lines(ax, panel, results, looks, unit)
        others = ", ".join(f"{label(BRIEF.get(key, key), 14)} = {_text(value)}" for key, value in panel.others.items())
        ax.set_title(ARCHITECTURES[panel.arch] + (f"\n{others}" if others else ""))
        if heights.min() > 0 and heights.max() > style.WIDE * heights.min():
            style.log_axis(ax, "y")
        else:
            ax.set_ylim(bottom=0.0)
        _values(ax, panel)
    bound = {"certified bound": BOUND} if bounds else {}
    style.line_legend(canvas, {method: {**POINTS, **looks[method]} for method in methods} | bound, 4, limit=26)
    return canvas, out + data.sample(data.rows[i] for i in sorted(drawn))


def _lines(ax: Axes, panel: Panel, results: pd.DataFrame, looks: Mapping[str, style.Look], unit: float) -> bool:
    """Draw means over instances, from the least to the largest result; return whether there is a bound to draw."""
    placed = results.assign(x=results["value"].map(panel.places))
    for method, look in looks.items():
        mine = placed[placed["method"] == method].groupby("x")["objective"].agg(["mean", "min", "max"]) / unit
        ax.plot(mine.index, mine["mean"], **POINTS, **look)
        ax.vlines(mine.index, mine["min"], mine["max"], color=look["color"], lw=0.8)
    each = placed.groupby(["x", "fingerprint"])["bound"].first()
    means = each.groupby("x").agg(lambda bounds: bounds.mean(skipna=False)).dropna() / unit
    ax.plot(means.index, means, **BOUND)
    return bool(len(means))


def _values(ax: Axes, panel: Panel) -> None:
    """Label the x axis with the values; an axis of a wide range is logarithmic."""
    places = list(panel.places.values())
    if places == list(panel.places):
        if min(places) > 0 and max(places) > style.WIDE * min(places):
            ax.set_xscale("log")
            ax.xaxis.set_minor_locator(NullLocator())
        some_places = FixedLocator(places[:: -(-len(places) // 6)])
        ax.xaxis.set(major_locator=some_places, major_formatter=style.plain_number)
    else:
        texts = [_text(value) for value in panel.places]
        crowded = sum(map(len, texts)) > 30
        ax.set_xticks(places, texts, rotation=30 if crowded else 0, ha="right" if crowded else "center")
    ax.set_xlabel(PARAMETERS.get(panel.parameter, label(panel.parameter, 30)))


def _text(value: Value) -> str:
    return label(value, 14) if isinstance(value, str) else number(value)
