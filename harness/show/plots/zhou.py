"""Figures of Zhou's schedulers: windows of A_online, Gantt charts, prices, and completion times with their bound."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from schedgap.harness.show.figure import Drawn, figure
from schedgap.harness.show.plots import gantt, style
from schedgap.harness.show.plots.results import Compared, some
from schedgap.harness.show.text import clean, number
from schedgap.instances.arrays import Array
from schedgap.instances.text import counted
from schedgap.instances.views.zhou import ARCHITECTURES, Architecture, ZhouSchedule, ZhouView

NOTHING = 1e-9
"""Fraction of a capacity up to which its use counts as 0."""

MAX_PRICES = 16
"""Maximum number of rows (server class and resource) in a map of prices; the most expensive ones are drawn."""

SHORT = ("GPU", "CPU", "RAM", "net")
"""Names of GPUs, CPUs, memory and bandwidth in a map of prices."""

MOST_SLOTS = 1_000_000
"""Longer schedules have no map of prices."""

NARROW = 0.035
"""Windows narrower than this fraction of the axis have no room for their number of rounds."""

UNITS = ((1e7, 1e6, "10⁶ "), (1e5, 1e3, "10³ "), (0.0, 1.0, ""))
"""Units of objectives: the smallest objective shown in the unit, the unit, and its name."""


# ---------------------------------------------------------------- windows of A_online


def _online(data: Compared, arch: str) -> ZhouSchedule | None:
    decision = data.decisions.get(f"zhou.{arch}.online")
    return decision if isinstance(decision, ZhouSchedule) and decision.window_start.size else None


@figure("zhou.windows", "Windows of A_online", of="instance")
def windows(data: Compared) -> Drawn:
    """Jobs under A_online, waiting (from their arrival) and running, one row per job in the order of their starts.

    A batch runs in a window (between solid lines) of α rounds of A_maxweight (between dashed lines). Numbers above wide
    windows count the rounds that scheduled jobs.
    """
    online = some({arch: schedule for arch in ARCHITECTURES if (schedule := _online(data, arch))})
    view, unit = data.view, data.clock
    hours = view.slot_s / unit.seconds
    last = max(int((d.start + d.slots).max()) for d in online.values())
    records = []
    for arch, schedule in online.items():
        used = counted(int(schedule.window_rounds.max()), "round")
        count = counted(len(schedule.window_start), "window")
        title = f"zhou.{arch}.online: {count}, up to {used} used"
        for record in (*_windows(schedule, last), *_runs(view, schedule)):
            times = {key: (record[key] - 1) * hours for key in ("time", "end")}
            records.append({"panel": title, "method": f"zhou.{arch}.online", **record, **times})
    bars = {"runs": style.ACCENT, "waits": style.SECOND}
    lines = {"window": [1, 0], "round of A_maxweight": style.DASHED}
    axis, height = style.time_axis(unit, (last - 1) * hours), min(max(6 * view.size, 80), 300)
    base = alt.Chart(width=style.WIDTH, height=height).encode(axis)
    spans, edges = (base.transform_filter(alt.FieldOneOfPredicate("what", list(kinds))) for kinds in (bars, lines))
    rectangles = spans.mark_rect(clip=True).encode(
        alt.X2("end:Q"),
        style.y("top", "jobs by start").scale(domain=[view.size, 0], nice=False).axis(None),
        alt.Y2("bottom:Q"),
        color=style.keyed(alt.Color, "what", bars),
        tooltip=style.tip("job", "what", ("time", f"from [{unit.name}]"), ("end", f"to [{unit.name}]")),
    )
    rules = edges.mark_rule(clip=True, color=style.MUTED, strokeWidth=0.8)
    rules = rules.encode(strokeDash=style.keyed(alt.StrokeDash, "what", lines))
    # The words stand above the plot, where marks of a zoomable chart are clipped by default.
    zoom, words = style.zoom(), base.transform_filter(alt.datum.what == "words").mark_text(dy=-6, clip=False)
    seen = alt.when(zoom).then(alt.value(1)).otherwise(alt.value(0))
    words = words.encode(text="text:N", y=alt.value(0), opacity=seen)
    chart = alt.layer(rules, rectangles.add_params(zoom), words, data=style.rows(records))
    heads = alt.Row("panel:N", title=None, header=alt.Header(labelPadding=14))
    return chart.facet(row=heads), data.n(len(online))


def _windows(schedule: ZhouSchedule, last: int) -> list[dict[str, Any]]:
    """Return records of the edges of windows and rounds, and of the number of rounds at the middle of each window."""
    records: list[dict[str, Any]] = []
    columns = (schedule.window_start, schedule.window_slots, schedule.window_rounds, schedule.window_tau)
    for start, slots, rounds, tau in np.stack(columns, axis=1).tolist():
        seen = min(slots, last - start)  # the axis ends when work ends, which may be before the last window ends
        text = counted(rounds, "round") if seen >= 2 * NARROW * last else str(rounds)
        text = text if seen >= NARROW * last else ""
        records += [{"what": "window", "time": edge} for edge in (start, start + slots)]
        records += [{"what": "round of A_maxweight", "time": start + k * tau} for k in range(1, rounds)]
        records.append({"what": "words", "time": start + seen / 2, "text": text})
    return [{**record, "end": record["time"]} for record in records]


def _runs(view: ZhouView, schedule: ZhouSchedule) -> list[dict[str, Any]]:
    """Return two records per job: a thin bar from its arrival to its start, and a wide one while it runs."""
    records = []
    for i, k in enumerate(np.lexsort((schedule.job, schedule.start)).tolist()):
        job, start = int(schedule.job[k]), int(schedule.start[k])
        about = {"job": clean(view.ids[job], 30)}
        waits = {"what": "waits", "time": int(view.arrival[job]), "end": start, "top": i + 0.38, "bottom": i + 0.62}
        ends = start + int(schedule.slots[k])
        runs = {"what": "runs", "time": start, "end": ends, "top": i + 0.08, "bottom": i + 0.92}
        records += [{**about, **waits}, {**about, **runs}]
    return records


# ---------------------------------------------------------------- Gantt


def gpu_bars(view: ZhouView, arch: str, schedule: ZhouSchedule) -> gantt.Bars:
    """Return the bars of a schedule, in GPUs of workers and parameter servers."""
    machines = view.architectures[arch].machines
    held = schedule.workers * machines.worker[schedule.worker_type[schedule.run], 0]
    if arch == "ps":
        held = held + schedule.ps * machines.ps[schedule.ps_type[schedule.run], 0]
    return gantt.of_runs(schedule, np.rint(held).astype(np.int64), view.slot_s, 1)


@figure("zhou.gantt", "Schedules with {}", of="instance", each=ARCHITECTURES)
def schedules(data: Compared, arch: str) -> Drawn:
    """Jobs on GPUs over time with {}, one row per GPU; white lines separate servers, which are grouped by GPU type.

    Shown are the schedule of zhou.{key}.online and the one with the least weighted completion time Σ w·c (in
    weight × slots) of the other methods without interruptions.
    """
    pairs = gantt.best_and_online(data, f"zhou.{arch}.online", ZhouSchedule, (f"zhou.{arch}.completion",))
    view: ZhouView = data.view
    bars = {f"{style.name(row.method)}: Σ w·c = {number(row.objective)}": gpu_bars(view, arch, d) for row, d in pairs}
    gpus = view.architectures[arch].machines.capacity[:, 0].astype(np.int64)
    return gantt.schedules(data, gantt.server_rows(view.instance, gpus, view.ids), bars)


# ---------------------------------------------------------------- prices


def price_field(of: Architecture, schedule: ZhouSchedule) -> Array:
    """Return the ``(k·R, last slot)`` prices (11) of a schedule, averaged over the servers of each class."""
    machines, classes = of.machines, of.classes
    taken = schedule.workers[:, None] * machines.worker[schedule.worker_type[schedule.run]]
    if of.id == "ps":
        taken = taken + schedule.ps[:, None] * machines.ps[schedule.ps_type[schedule.run]]
    start = schedule.start[schedule.run] - 1
    end = start + schedule.slots[schedule.run]
    total = np.zeros((classes.size, taken.shape[1], end.max()))
    for server in np.unique(schedule.server):  # the price of the others is 0
        here = schedule.server == server
        change = np.zeros((total.shape[2] + 1, taken.shape[1]))
        np.add.at(change, start[here], taken[here])
        np.add.at(change, end[here], -taken[here])
        used = np.cumsum(change, axis=0)[:-1].T
        # Rounding residues of the sums would have a price.
        used[used <= NOTHING * machines.capacity[server][:, None]] = 0.0
        total[machines.kind[server]] += of.prices(used[None], np.array([server]))[0]
    return (total / classes.count[:, None, None]).reshape(-1, total.shape[2])


@figure("zhou.prices", "Prices with {}", of="instance", each=ARCHITECTURES)
def both_prices(data: Compared, arch: str) -> Drawn:
    """Price of each resource by server class and time, on the same axes.

    The prices posted by A_online are (11) per unit (GPU, CPU, GB, Gbit/s), λ^(use/capacity) − 1, in weight per unit and
    slot, averaged over the servers of a class. The dual prices are those with which zhou.{key}.columns proves its
    bound: the cost of all GPUs (CPUs, memory, bandwidth) of one server in a slot, in weight × slots.
    """
    of: Architecture = data.view.architectures[arch]
    schedule, duals = _online(data, arch), data.prices.get(f"zhou.{arch}.columns")
    fields: dict[str, tuple[Array, str]] = {}
    if schedule is not None and int((schedule.start + schedule.slots).max()) <= MOST_SLOTS:
        fields[f"posted by zhou.{arch}.online"] = price_field(of, schedule), "weight per unit and slot"
    if duals is not None:
        field = np.asarray(duals) * of.classes.capacity.reshape(-1, 1)
        fields[f"dual prices of zhou.{arch}.columns"] = style.no_dust(field), "Σ w·c per server and slot"
    tops = np.array([field.max(axis=1) / (field.max() or 1.0) for field, _ in some(fields).values()])
    shown = some(style.dearest(tops.T, MAX_PRICES))
    classes = [clean(text.removesuffix(".0"), 10) for text in of.classes.names]
    names = [f"{text} {resource}" for text in classes for resource in SHORT]
    free = int((tops.max(axis=0) <= 0).sum())
    words = f"{free} are 0 throughout and not drawn. " if free else ""
    more = tops.shape[1] - free - len(shown)
    words += f"The {MAX_PRICES} most expensive are drawn, {more} are not. " if more else ""
    panels = {title: (field[shown], unit) for title, (field, unit) in fields.items()}
    ends = [int((d.start + d.slots).max()) - 1 for d in data.running(ZhouSchedule).values()]
    last = max(field.shape[1] for field, _ in fields.values())
    end_s = min(last, max(ends, default=last)) * data.view.slot_s
    chart = style.price_map(panels, [names[i] for i in shown], data.view.slot_s, data.clock, end_s)
    return chart, words + data.n(len(panels))


# ---------------------------------------------------------------- weighted completion times


@figure("zhou.completion", "Weighted completion times with {}", of="instance", each=ARCHITECTURES)
def completion_times(data: Compared, arch: str) -> Drawn:
    """Total weighted completion time Σ w·c of all jobs with {}, by method; completions count from slot 1."""
    kinds = {"completion": "without interruptions", "preemptive": "jobs may be interrupted"}
    results = {text: data.results(f"zhou.{arch}.{kind}")[: style.MAX_ROWS] for kind, text in kinds.items()}
    groups = [
        style.ValueGroup({row.method: row.objective or 0.0 for row in rows}, rows[0].best_bound, text)
        for text, rows in results.items()
        if rows
    ]
    drawn = some([row for rows in results.values() for row in rows])
    sources = " and ".join(dict.fromkeys(clean(row.bound_from) for row in drawn if row.bound_from))
    bound = f"In brackets: upper estimate of the ratio to the optimum, by the bound of {sources}. " if sources else ""
    largest = max(row.objective or 0.0 for row in drawn)
    unit, size = next((unit, text) for least, unit, text in UNITS if largest >= least)
    return style.beside_bounds(groups, f"Σ w·c [{size}weight × slots]", data.looks, unit), bound + data.n(len(drawn))
