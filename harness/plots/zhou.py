"""Figures of Zhou's schedulers: windows of A_online, who runs where, prices, completion times beside the bound; sweeps.

Sweeps show what methods reach on several instances against a parameter that differs between these. Methods are compared
on the same instances only: where one of them has no result, the instance counts for none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import altair as alt
import numpy as np
import pandas as pd

from schedgap.harness.figure import Drawn, figure
from schedgap.harness.plots import style
from schedgap.harness.plots.gantt import Bars, Chart, beside_online, of_runs, server_rows
from schedgap.harness.plots.results import Compared, some
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

    A batch runs in a window (between upright lines) of α rounds of A_maxweight (between dashed ones); numbers above are
    the rounds that scheduled jobs, where windows are wide enough.
    """
    online = some({arch: schedule for arch in ARCHITECTURES if (schedule := _online(data, arch))})
    view, unit = data.view, data.clock
    hours = view.slot_s / unit.seconds
    last = max(int((d.start + d.slots).max()) for d in online.values())
    records = []
    for arch, schedule in online.items():
        used = style.counted(int(schedule.window_rounds.max()), "round")
        count = style.counted(len(schedule.window_start), "window")
        formula = view.architectures[arch].alpha
        title = f"zhou.{arch}.online: {count}, up to {used} used (α by the formula: {formula})"
        found = [*_windows(schedule, last), *_runs(view, schedule)]
        for record in found:
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
    words = base.transform_filter(alt.datum.what == "words").mark_text(dy=-6).encode(text="text:N", y=alt.value(0))
    chart = alt.layer(rules, rectangles.add_params(style.zoom()), words, data=style.rows(records))
    heads = alt.Row("panel:N", title=None, header=alt.Header(labelPadding=14))
    return chart.facet(row=heads), data.n(len(online))


def _windows(schedule: Schedule, last: int) -> list[dict[str, Any]]:
    """Return where windows and the rounds in them begin, and in the middle of windows how many rounds these are."""
    found: list[dict[str, Any]] = []
    columns = (schedule.window_start, schedule.window_slots, schedule.window_rounds, schedule.window_tau)
    for start, slots, rounds, tau in np.stack(columns, axis=1).tolist():
        text = style.counted(rounds, "round") if slots >= 2 * NARROW * last else str(rounds)
        text = text if slots >= NARROW * last else ""
        found += [{"what": "window", "time": edge} for edge in (start, start + slots)]
        found += [{"what": "round of A_maxweight", "time": start + k * tau} for k in range(1, rounds)]
        found.append({"what": "words", "time": start + slots / 2, "text": text})
    return [{**record, "end": record["time"]} for record in found]


def _runs(view: View, schedule: Schedule) -> list[dict[str, Any]]:
    """Return a row for each job: a thin bar from its arrival to its start, a wide one while it runs."""
    found = []
    for i, k in enumerate(np.lexsort((schedule.job, schedule.start)).tolist()):
        job, start = int(schedule.job[k]), int(schedule.start[k])
        about = {"job": style.label(view.ids[job], 30)}
        waits = {"what": "waits", "time": int(view.arrival[job]), "end": start, "top": i + 0.38, "bottom": i + 0.62}
        ends = start + int(schedule.slots[k])
        runs = {"what": "runs", "time": start, "end": ends, "top": i + 0.08, "bottom": i + 0.92}
        found += [{**about, **waits}, {**about, **runs}]
    return found


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


@figure("zhou.prices", "Prices with {}", of="instance", each=ARCHITECTURES)
def both_prices(data: Compared, arch: str) -> Drawn:
    """Price of a unit of each resource by class of servers and time, on the same axes.

    Those that A_online posts are (11), λ^(use/capacity) − 1, in weight per unit (GPU, CPU, GB, Gbit/s) and slot, the
    mean over the servers of the class. The dual prices are those at which zhou.{key}.columns proves its bound: what all
    of one server's GPUs (CPUs, memory, bandwidth) cost in a slot, in weight × slots.
    """
    of: Architecture = data.view.architectures[arch]
    schedule, found = _online(data, arch), data.prices.get(f"zhou.{arch}.columns")
    fields: dict[str, tuple[Array, str]] = {}
    if schedule is not None and int((schedule.start + schedule.slots).max()) <= MOST_SLOTS:
        fields[f"posted by zhou.{arch}.online"] = price_field(of, schedule), "weight per unit and slot"
    if found is not None:
        each = np.asarray(found) * of.classes.capacity.reshape(-1, 1)
        fields[f"dual prices of zhou.{arch}.columns"] = style.no_dust(each, SMALL), "Σ w·c per server and slot"
    tops = np.array([field.max(axis=1) / (field.max() or 1.0) for field, _ in some(fields).values()])
    shown = some(style.dearest(tops.T, MAX_PRICES))
    classes = [style.label(text.removesuffix(".0"), 10) for text in of.classes.names]
    names = [f"{text} {resource}" for text in classes for resource in SHORT]
    free = int((tops.max(axis=0) <= 0).sum())
    words = f"{free} are 0 throughout and not drawn. " if free else ""
    more = tops.shape[1] - free - len(shown)
    words += f"The {MAX_PRICES} dearest are drawn, {more} are not. " if more else ""
    panels = {title: (field[shown], unit) for title, (field, unit) in fields.items()}
    ends = [int((d.start + d.slots).max()) - 1 for d in data.running(Schedule).values()]
    last = max(field.shape[1] for field, _ in fields.values())
    end_s = min(last, max(ends, default=last)) * data.view.slot_s
    return style.price_map(panels, [names[i] for i in shown], data.view.slot_s, data.clock, end_s), words + data.n(
        len(panels)
    )


# ---------------------------------------------------------------- weighted completion times


@figure("zhou.completion", "Weighted completion times with {}", of="instance", each=ARCHITECTURES)
def completion_times(data: Compared, arch: str) -> Drawn:
    """Total weighted completion time Σ w·c of all jobs with {}, completions counted from slot 1, by method."""
    kinds = {"completion": "without interruptions", "preemptive": "jobs may be interrupted"}
    known = {text: data.results(f"zhou.{arch}.{kind}")[: style.MAX_ROWS] for kind, text in kinds.items()}
    groups = [
        style.Group({row.method: row.objective or 0.0 for row in each}, each[0].best_bound, text)
        for text, each in known.items()
        if each
    ]
    drawn = some([row for each in known.values() for row in each])
    sources = " and ".join(dict.fromkeys(clean(row.bound_from) for row in drawn if row.bound_from))
    bound = f"In brackets: at most so many times the best possible, by the bound of {sources}. " if sources else ""
    unit, size = next(
        (unit, text) for least, unit, text in UNITS if max(row.objective or 0.0 for row in drawn) >= least
    )
    return style.beside_bounds(groups, f"Σ w·c [{size}weight × slots]", data.looks, unit), bound + data.n(len(drawn))


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
    """Return a line per method for each parameter that differs, parameter servers beside rings."""
    shown = some(found(data, kinds))
    heights = pd.concat([panel.results["objective"] for panel in shown]).abs()
    unit, size = next((unit, text) for least, unit, text in UNITS if heights.max() >= least)
    log = style.wide(heights)
    made, methods = [], list(dict.fromkeys(method for panel in shown for method in panel.results["method"]))
    looks = {method: next(look for known, look in data.looks.items() if known.endswith(method)) for method in methods}
    for panel in shown:
        others = ", ".join(
            f"{style.label(BRIEF.get(key, key), 14)} = {_text(value)}" for key, value in panel.others.items()
        )
        title = [ARCHITECTURES[panel.arch], *([others] if others else [])]
        height = style.y("mean", ylabel.format(size), log=log)
        made.append(
            _lines(panel, compared(panel, methods), looks, unit, height).properties(
                title=title, width=style.WIDTH // 2 - 60, height=180
            )
        )
    drawn = sorted({i for panel in shown for i in compared(panel, methods).index})
    return alt.concat(*made, columns=2), data.sample(data.rows[i] for i in drawn)


def _lines(panel: Panel, results: pd.DataFrame, looks: Mapping[str, style.Look], unit: float, height: alt.Y) -> Any:
    """Return means over instances, from the least to the largest result, and the mean bound."""
    placed = results.assign(objective=results["objective"] / unit, bound=results["bound"] / unit)
    values: list[Any] = list(panel.places)
    means = placed.groupby(["method", "value"], sort=False)["objective"].agg(["mean", "min", "max"]).reset_index()
    means = means.sort_values("value", key=lambda each: each.map(panel.places), kind="stable")
    each = placed.groupby(["value", "fingerprint"])["bound"].first()
    bounds = each.groupby("value").agg(lambda found: found.mean(skipna=False)).dropna()
    points = [
        {**point, "method": style.name(point["method"]), "value": _place(point["value"])}
        for point in means.to_dict("records")
    ]
    lines = [
        {"value": _place(value), "mean": bound, "what": "certified bound"}
        for value, bound in bounds.reindex(list(panel.places)).dropna().items()
    ]
    title = PARAMETERS.get(panel.parameter, style.label(panel.parameter, 30))
    if all(isinstance(value, float) for value in values):
        ends = [min(values), max(values)]
        axis = alt.Axis(values=values, format=".4~g", grid=False)
        across: Any = style.x("value", title, log=style.wide(values), domain=ends, axis=axis)
    else:
        across = alt.X(
            "value:N", title=title, sort=[str(_place(value)) for value in values], axis=alt.Axis(labelAngle=-30)
        )
    look = style.colour({style.name(method): look for method, look in looks.items()}, map(style.name, looks))
    base = alt.Chart(style.rows(points)).encode(
        across, height, tooltip=style.tip("method", "value", "mean", "min", "max"), **look
    )
    spread = base.mark_rule(strokeWidth=0.8, strokeDash=[1, 0]).encode(alt.Y("min:Q"), alt.Y2("max:Q"))
    layers = [spread, base.mark_line(point=True)]
    if lines:
        key = alt.Detail("what:N")
        layers.append(
            alt.Chart(style.rows(lines))
            .mark_line(color=style.INK, strokeDash=style.DASHED, strokeWidth=1.1)
            .encode(across, height, key)
        )
    return alt.layer(*layers)


def _place(value: Any) -> Value:
    return style.label(value, 14) if isinstance(value, str) else value


def _text(value: Value) -> str:
    return style.label(value, 14) if isinstance(value, str) else number(value)
