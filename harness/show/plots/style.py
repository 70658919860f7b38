"""Common style of all figures: colours, units and words, and types of charts that several figures use.

Charts of methods have a column ``method``, by which pages highlight and filter. Charts over time have a column
``time``, by which pages zoom all of them together.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from schedgap.harness.show.looks import PALETTE, Look
from schedgap.harness.show.looks import looks as looks_of
from schedgap.harness.show.text import clean, number, plain, ratio
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.schema import Instance

INK, MUTED, FAINT, IDLE, PAPER = "#1b1f24", "#57606a", "#d8dee4", "#eceff2", "#ffffff"

ACCENT, SECOND, BOUND = PALETTE[0], PALETTE[1], PALETTE[5]

DASHED = [4, 2]

WIDTH = 560
"""Width of a plot in pixels, without the names next to it; pages redraw plots at the available width."""

ROW = 19
"""Height of a method's row in pixels."""

MAX_ROWS = 40
"""Maximum number of methods or policies in a figure with one row each."""

WIDE = 20.0
"""An axis is logarithmic if its largest value exceeds the smallest by this factor."""

SHORT_TIME = 4.0
"""Time axes up to this many units have ticks between whole ones."""

LOG_SPAN = 30.0
"""A time axis is logarithmic if the last completion exceeds the median one by this factor."""

COLUMNS = 120
"""Maximum number of steps in lines and maps over time (slots are averaged), and in distributions (quantiles)."""

SMALL = 1e-4
"""Dual prices below this fraction of the highest one count as 0."""


def name(method: str) -> str:
    """Return the name of a method as shown in tables and charts."""
    return clean(method, 60)


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """Return the look of each method by its name in charts, for all figures of these methods."""
    return looks_of(map(name, methods))


def colour(looks: Mapping[str, Look], methods: Iterable[str], legend: str = "lines") -> dict[str, Any]:
    """Return the encoding of methods by colour, with a legend of `lines` with their dashes, of `bars`, or none."""
    names = list(dict.fromkeys(methods))
    key = LEGENDS.get(legend)
    colours = alt.Scale(domain=names, range=[looks[name].colour for name in names])
    encoding: dict[str, Any] = {"color": alt.Color("method:N", scale=colours, legend=key)}
    if legend == "lines":
        dashes = alt.Scale(domain=names, range=[list(looks[name].dash) for name in names])
        encoding["strokeDash"] = alt.StrokeDash("method:N", scale=dashes, legend=key)
    return encoding


LEGENDS = {
    "lines": alt.Legend(
        title=None,
        symbolType="stroke",
        symbolSize=40**2,
        symbolStrokeWidth=2,
        clipHeight=14,
        columnPadding=30,
        columns=2,
    ),
    "bars": alt.Legend(title=None),
}
"""Legends of methods. A line is 40 pixels long, so that its dashes are seen, and as high as a line of text."""


def text_colour(background: str) -> str:
    """Return black or white, whichever contrasts more with `background` (WCAG relative luminance)."""
    rgb = np.array([int(background[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return "white" if linear @ [0.2126, 0.7152, 0.0722] < 0.179 else "black"


# ---------------------------------------------------------------- data and words


def rows(values: Iterable[Mapping[Any, Any]]) -> dict[str, Any]:
    """Return records as a chart's data: plain numbers with six digits, ``None`` for infinities and NaN."""
    # Altair's own class of records would check each of them, and copy lists at every step of building a chart.
    return {"values": tuple({key: _rounded(plain(value)) for key, value in row.items()} for row in values)}


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def x(field: str, title: str | None, *, log: bool = False, domain: Sequence[float] | None = None) -> alt.X:
    """Return a quantitative x axis; see :func:`scale`."""
    return alt.X(f"{field}:Q", title=title, scale=scale(log, domain), axis=alt.Axis(grid=False))


def y(field: str, title: str | None, *, log: bool = False, domain: Sequence[float] | None = None) -> alt.Y:
    """Return a quantitative y axis with a grid; see :func:`scale`."""
    return alt.Y(f"{field}:Q", title=title, scale=scale(log, domain))


def scale(log: bool, domain: Sequence[float] | None) -> alt.Scale:
    """Return a scale, which clamps values to `domain` if it is given."""
    ends: dict[str, Any] = {} if domain is None else {"domain": [float(f"{end:.6g}") for end in domain], "nice": False}
    return alt.Scale(**ends, clamp=domain is not None, type="log" if log else alt.Undefined)


def wide(values: Any) -> bool:
    """Return whether the values are positive and need a logarithmic axis."""
    array = np.asarray(values, float)
    return bool(array.size) and array.min() > 0 and array.max() > WIDE * array.min()


def tip(*fields: str | tuple[str, str]) -> list[alt.Tooltip]:
    """Return a tooltip of fields, each given by name or as ``(name, title)``."""
    pairs = [(each, each) if isinstance(each, str) else each for each in fields]
    return [alt.Tooltip(f"{name}:N", title=title) for name, title in pairs]


def plot(
    records: Iterable[Mapping[Any, Any]],
    mark: Any,
    *axes: Any,
    size: tuple[Any, Any] = (WIDTH, alt.Undefined),
    flat: Sequence[str] = (),
    tips: Iterable[Any] = (),
    panels: Sequence[str] = ("",),
    columns: int = 1,
    frame: str | None = None,
    zooms: bool = True,
    **channels: Any,
) -> Any:
    """Return a chart of records as marks (an Altair mark or its name), with a panel per title; ``time`` axes zoom.

    Records hold arrays in the fields `flat`; the tooltip shows the fields `tips` (:func:`tip`); `frame` is a colour.
    """
    view = alt.ViewConfig(stroke=frame) if frame else alt.Undefined
    chart = alt.Chart(rows(records), mark=mark, width=size[0], height=size[1], view=view)
    chart = chart.encode(*axes, tooltip=tip(*tips), **channels)
    chart = chart.transform_flatten(list(flat)) if flat else chart
    zoomed = zooms and any(isinstance(axis, alt.X) and axis.shorthand == "time:Q" for axis in axes)
    return in_panels(chart.add_params(zoom()) if zoomed else chart, panels, columns)


def keyed(channel: Any, field: str, marks: Mapping[str, Any]) -> Any:
    """Return an Altair channel that maps the values of a field to `marks`: colours, dashes or shapes."""
    return channel(f"{field}:N", title=None, scale=alt.Scale(domain=list(marks), range=list(marks.values())))


def named(field: str, names: Sequence[str]) -> Any:
    """Return a colour channel with a separate colour for each of a few names."""
    return keyed(alt.Color, field, dict(zip(names, PALETTE, strict=False)))


def listed(axis: type[alt.X] | type[alt.Y], field: str, names: Sequence[str], title: str | None = None) -> Any:
    """Return an axis that shows all names in the given order."""
    return axis(f"{field}:N", title=title, sort=list(names), scale=alt.Scale(domain=list(names)))


def in_panels(chart: Any, titles: Sequence[str], columns: int = 1, apart: Sequence[str] = ()) -> Any:
    """Facet a chart into a panel per title, with independent axes `apart`; a single title leaves it unchanged."""
    if len(titles) == 1:
        return chart
    heads: dict[str, Any] = {"title": None, "sort": list(map(str, titles))}
    row, grid = alt.Row("panel:N", **heads), alt.Facet("panel:N", **heads)
    chart = chart.facet(row=row) if columns == 1 else chart.facet(facet=grid, columns=columns)
    return chart.resolve_scale(**dict.fromkeys(apart, "independent")) if apart else chart


# ---------------------------------------------------------------- time


@dataclass(frozen=True)
class Clock:
    """A unit of time for figures: its length in seconds, and its name."""

    seconds: float
    name: str

    def label(self, what: str = "time") -> str:
        """Return an axis title with the unit."""
        return f"{what} [{self.name}]"

    def text(self, seconds: float) -> str:
        """Return a time as text with the unit."""
        return f"{number(seconds / self.seconds)} {self.name}"


CLOCKS = ((2 * 3600.0, Clock(3600.0, "h")), (180.0, Clock(60.0, "min")), (0.0, Clock(1.0, "s")))
"""Units, each with the minimum span in seconds for which it reads well."""


def clock(span_s: float) -> Clock:
    """Return the unit in which times up to `span_s` read well; hours are the largest, as in tables."""
    return next(unit for least, unit in CLOCKS if span_s >= least)


def clock_of(instance: Instance) -> Clock:
    """Return the unit for all figures of an instance: that of its horizon, or hours if it has none."""
    return clock(instance.horizon.end_s if instance.horizon else math.inf)


def zoom() -> alt.Parameter:
    """Return the parameter that pans and zooms along a time axis; pages synchronise it between charts."""
    return alt.selection_interval(name="zoom", bind="scales", encodings=["x"], zoom="wheel![event.shiftKey]")


def time_axis(unit: Clock, end: float) -> alt.X:
    """Return a time axis from 0 to `end`, in units of the clock, without ticks between whole ones if it is long."""
    step = 1 if end >= SHORT_TIME else alt.Undefined
    return x("time", unit.label(), domain=[0.0, end]).axis(grid=False, tickMinStep=step)


def averaged(values: Array, edges: Array) -> Array:
    """Return the means of a step function between consecutive `edges`, in slots; the function is 0 after its end."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    integral = np.interp(edges, np.arange(len(total)), total)
    return np.asarray(np.diff(integral) / np.diff(edges))


def time_edges(slots: int) -> Array:
    """Return the edges of at most :data:`COLUMNS` intervals over which values are averaged, in slots."""
    return np.linspace(0, slots, min(slots, COLUMNS) + 1)


def strips(values: Mapping[str, Mapping[str, Array]], slot_s: float, unit: Clock, looks: Mapping[str, Look]) -> Any:
    """Return a chart of shares (0 to 1, by slot) over time: a strip per method, a line per kind, the first filled."""
    edges = time_edges(max(len(row) for each in values.values() for row in each.values()))
    times, kinds = edges * slot_s / unit.seconds, list(next(iter(values.values())))
    records: list[dict[str, Any]] = []
    for method, each in values.items():
        for kind, row in each.items():
            share = 100 * averaged(row, edges)
            words = {"method": name(method), "kind": kind, "mean": f"{100 * float(np.mean(row)):.1f} %"}
            records.append({**words, "time": times, "share": np.append(share, share[-1])})
    names = [record["method"] for record in records]
    look = colour(looks, names, legend="")
    if len(kinds) > 1:
        look = {"color": keyed(alt.Color, "kind", dict(zip(kinds, ["#9fb8d0", *PALETTE[1:]], strict=False)))}
    base = alt.Chart(rows(records), height=34 if len(values) > 4 else 70, width=WIDTH)
    base = base.transform_flatten(["time", "share"]).encode(
        time_axis(unit, times[-1]),
        alt.Y("share:Q", title=None, scale=alt.Scale(domain=[0, 100]), axis=alt.Axis(values=[0, 50, 100])),
        tooltip=tip("method", "kind", "mean"),
        **look,
    )
    area = base.transform_filter(alt.datum.kind == kinds[0]).mark_area(interpolate="step-after", opacity=0.75)
    lines = base.transform_filter(alt.datum.kind != kinds[0]).mark_line(interpolate="step-after", strokeWidth=1.2)
    chart = alt.layer(area.add_params(zoom()), lines) if len(kinds) > 1 else area.add_params(zoom())
    heads = alt.Row("method:N", title=None, sort=list(dict.fromkeys(names)))
    return chart.facet(row=heads, spacing=4)


def between(
    records: Sequence[Mapping[str, Any]], axis: alt.X, series: tuple[str, str], title: str, note: str, most: float = 0.0
) -> Any:
    """Return a chart of two step lines and the area between them, a panel per record; empty series are left out.

    Records have ``panel``, ``method``, a text in the field `note` for the tooltip, and arrays of the axis and of both
    series, the lower one first. If `most` is given, it is the top of all panels; else each has its own axes.
    """
    low, high = series
    sizes = {name: [np.isfinite(np.asarray(each[name], float)).sum() for each in records] for name in (low, high)}
    names = [name for name, counts in sizes.items() if max(counts) > 1]
    looks = {low: (ACCENT, [1, 0]), high: (BOUND, DASHED)}
    look = {
        channel: keyed(kind, "series", {name: looks[name][i] for name in names})
        for i, (channel, kind) in enumerate({"color": alt.Color, "strokeDash": alt.StrokeDash}.items())
    }
    fields = [axis.shorthand.removesuffix(":Q"), low, high]
    base = alt.Chart(rows(records), width=WIDTH // 2 - 50, height=125).transform_flatten(fields).encode(axis)
    sides = {name: y(name, title, domain=[0.0, most]) if most else y(name, title).scale(zero=False) for name in series}
    lines: list[Any] = [
        base.transform_calculate(series=json.dumps(name))
        .mark_line(interpolate="step-after")
        .encode(sides[name], tooltip=tip("method", "series", note), **look)
        for name in names
    ]
    if len(names) == 2:
        span = base.mark_area(interpolate="step-after", color=FAINT, opacity=0.7)
        lines = [span.encode(sides[low], alt.Y2(f"{high}:Q"), tooltip=tip("method", note)), *lines]
    return in_panels(alt.layer(*lines), [each["panel"] for each in records], 2, () if most else ("x", "y"))


# ---------------------------------------------------------------- maps


def no_dust(cells: Array) -> Array:
    """Set small prices to 0, since rounding residues would take up most of a logarithmic colour scale."""
    return np.where(cells >= SMALL * cells.max(initial=0.0), cells, 0.0)


def dearest(field: Array, most: int) -> Ints:
    """Return the indices of the `most` rows with the highest prices in a map; rows of zeros are left out."""
    top = field.max(axis=1)
    highest = np.argsort(-top, kind="stable")[:most]
    return np.sort(highest[top[highest] > 0])


def heat(title: str, cells: Iterable[float], field: str = "value") -> alt.Color:
    """Return a colour channel for values from 0 on, logarithmic if positive values differ by a factor over 100."""
    values = np.array([value for value in cells if value > 0])
    most = float(values.max(initial=0.0)) or 1.0
    log = bool(values.size) and most > 100 * values.min()
    ends = [max(float(values.min()), most * 1e-9), most] if log else [0.0, most]
    return alt.Color(f"{field}:Q", title=title, scale=scale(log, ends), legend=alt.Legend(format=".3~g"))


def price_map(
    panels: Mapping[str, tuple[Array, str]], names: Sequence[str], slot_s: float, unit: Clock, end_s: float
) -> Any:
    """Return maps of ``(k, T)`` prices; maps share their axes, and those of the same unit their colours.

    `panels` maps each title to the prices and their unit.
    """
    charts, end = [], end_s / unit.seconds
    names = [clean(name, 22) for name in names]
    maps = {title: cells(field, names, slot_s, unit, end_s) for title, (field, _) in panels.items()}
    for title, (_, what) in panels.items():
        same = [cell["value"] for other, (_, unit_) in panels.items() if unit_ == what for cell in maps[other]]
        tips = ("name", "what"), ("time", f"from [{unit.name}]"), ("end", f"to [{unit.name}]"), ("value", what)
        axes = time_axis(unit, end), alt.X2("end:Q"), listed(alt.Y, "name", names)
        place: dict[str, Any] = {"size": (WIDTH, alt.Step(22)), "zooms": len(panels) == 1}
        chart = plot(maps[title], "rect", *axes, color=heat(what, same), tips=tips, **place)
        charts.append(chart.properties(title=title if len(panels) > 1 else ""))
    alike = len({unit for _, unit in panels.values()}) == 1
    together = alt.vconcat(*charts).resolve_scale(color="shared" if alike else "independent")
    return charts[0] if len(charts) == 1 else together


def cells(field: Array, names: Sequence[Any], slot_s: float, unit: Clock, end_s: float) -> list[dict[str, Any]]:
    """Return the positive cells of a map, with equal neighbours merged; times are in units of the clock."""
    slots = min(field.shape[1], max(1, math.ceil(end_s / slot_s - 1e-9)))
    edges = time_edges(slots)
    records = []
    for name, row in zip(names, field[:, :slots], strict=True):
        values = np.array([float(f"{v:.4g}") for v in averaged(row, edges)])
        starts = np.flatnonzero(np.append(True, np.diff(values) != 0))
        for first, last in zip(starts, [*starts[1:], len(values)], strict=True):
            if values[first] > 0:
                time, end = edges[[first, last]] * slot_s / unit.seconds
                records.append({"name": name, "time": time, "end": end, "value": values[first]})
    return records


# ---------------------------------------------------------------- shares of jobs and cases


def shares(values: Array, start: float = 0.0) -> tuple[Array, Array]:
    """Return x and y of at most :data:`COLUMNS` steps of the distribution of `values`, where NaN and ∞ mean never."""
    ends = np.sort(values[np.isfinite(values)])
    share = np.arange(1, ends.size + 1) / max(values.size, 1)
    if ends.size > COLUMNS:
        chosen = np.linspace(0, ends.size - 1, COLUMNS).round().astype(int)
        ends, share = ends[chosen], share[chosen]
    return np.append(start, ends), np.append(0.0, share)


def share_lines(
    lines: Sequence[Mapping[str, Any]], looks: Mapping[str, Look], axis: alt.X, title: str, columns: int = 1
) -> Any:
    """Return a chart of step lines up to 1; each has ``method``, ``x``, ``share`` and optionally ``panel``."""
    methods = list(dict.fromkeys(line["method"] for line in lines))
    panels = list(dict.fromkeys(line.get("panel", "") for line in lines))
    extra = [key for key in lines[0] if key not in ("method", "x", "share", "panel")]
    mark, size = alt.MarkDef("line", interpolate="step-after", clip=True), WIDTH if columns == 1 else WIDTH // 2 - 30
    axes, tips = (axis, y("share", title, domain=[0, 1.02])), ["method", *extra]
    place: dict[str, Any] = {"size": (size, alt.Undefined), "panels": panels, "columns": columns}
    return plot(lines, mark, *axes, flat=["x", "share"], tips=tips, **place, **colour(looks, methods))


def completion_cdf(times_s: Mapping[str, Array], looks: Mapping[str, Look], unit: Clock) -> Any:
    """Return a chart of the share of jobs completed within a time after arrival; NaN means never."""
    done_s = np.concatenate([t[np.isfinite(t)] for t in times_s.values()])
    end = 1.02 * float(done_s.max(initial=1e-9)) / unit.seconds
    log = bool(done_s.size) and float(done_s.max()) > LOG_SPAN * float(np.median(done_s)) and done_s.min() > 0
    lines = []
    for method, times in times_s.items():
        done = times[np.isfinite(times)]
        start, share = shares(times / unit.seconds)
        median = unit.text(float(np.median(done))) if done.size else "–"
        words = {"median": median, "jobs that never complete": times.size - done.size}
        stair = {"x": np.append(start, end), "share": np.append(share, share[-1])}
        lines.append({"method": method, **stair, **words})
    ends = float(done_s.min()) / unit.seconds / 1.1 if log else 0.0, end
    axis = x("x", unit.label("completion time"), log=log, domain=ends)
    return share_lines(lines, looks, axis, "share of jobs completed")


# ---------------------------------------------------------------- bars and bounds


@dataclass(frozen=True)
class ValueGroup:
    """Values by method with their common lower bound, and a name if there are several groups."""

    values: Mapping[str, float]
    bound: float | None
    name: str = ""


def beside_bounds(groups: Sequence[ValueGroup], title: str, looks: Mapping[str, Look], unit: float = 1.0) -> Any:
    """Return a bar chart with a panel per group; each bar shows its ratio to the group's lower bound."""
    records: list[dict[str, Any]] = [
        {
            "panel": group.name,
            "method": name(method),
            "value": value / unit,
            "bound": (group.bound or math.nan) / unit,
            "text": number(value / unit) + (f"  ({ratio(value / group.bound, True)})" if group.bound else ""),
        }
        for group in groups
        for method, value in group.values.items()
    ]
    side = alt.Y("method:N", title=None, sort=alt.EncodingSortField("value", op="min"))
    base = alt.Chart(width=WIDTH - 140, height=alt.Step(ROW)).encode(side, x("value", title))
    look = colour(looks, [record["method"] for record in records], legend="")
    tips = tip("method", ("value", title), ("bound", "certified lower bound"))
    layers = [base.mark_bar(size=12).encode(tooltip=tips, **look)]
    layers += [base.mark_text(align="left", dx=4).encode(text="text:N")]
    if any(group.bound for group in groups):
        key = keyed(alt.StrokeDash, "key", {"certified lower bound": DASHED})
        rule = alt.Chart().transform_calculate(key="'certified lower bound'").mark_rule(color=INK)
        layers.append(rule.encode(alt.X("mean(bound):Q"), strokeDash=key))
    return in_panels(alt.layer(*layers, data=rows(records)), [group.name for group in groups], apart="y")
