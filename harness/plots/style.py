"""One look for all figures: colours, units and words; and the charts of which several figures are made.

A chart of methods has their names in the column ``method``, one over time has its time in ``time``: pages highlight and
filter by the one, and zoom all charts together by the other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, product
from typing import Any

import altair as alt
import numpy as np

from schedgap.harness.text import clean, number, plain, ratio
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.schema import Instance

INK, MUTED, FAINT, IDLE, PAPER = "#1b1f24", "#57606a", "#d8dee4", "#eceff2", "#ffffff"

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#b3446c", "#8a7a00", "#3f9fd6", "#a87328", "#7f7f7f", "#9467bd", "#5c8a00")
"""Ten colours that people with any common colour blindness tell apart, and that stand out from white and from black."""

DASHES: tuple[list[float], ...] = ([1, 0], [5, 2], [1.5, 2])

ACCENT, SECOND, BOUND = PALETTE[0], PALETTE[1], PALETTE[3]

DASHED = [4, 2]

WIDTH = 560
"""Pixels of a plot without the names beside it; pages redraw it as wide as there is room."""

ROW = 19
"""Pixels of a method's row."""

MAX_ROWS = 40
"""Methods or policies in one figure with a row for each."""

WIDE = 20.0
"""An axis is logarithmic where its largest value is this many times the smallest."""

LOG_SPAN = 30.0
"""A time axis is logarithmic where the last completion is this many times the middle one."""

COLUMNS = 120
"""Steps of a line or map over time, where neighbouring slots are averaged, or of shares of jobs: as many quantiles."""

SMALL = 1e-4
"""Part of the highest dual price below which a price counts as 0."""

Look = tuple[str, list[float]]
"""Colour and dashes of a line."""


def name(method: str) -> str:
    """Return a method as it is called in tables and charts."""
    return clean(method, 60)


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """Return colour and dashes of each method, the same in all figures of these methods; neighbours share neither."""
    styles = cycle((colour, dash) for dash, colour in product(DASHES, PALETTE))
    return dict(zip(dict.fromkeys(map(name, methods)), styles, strict=False))


def colour(looks: Mapping[str, Look], methods: Iterable[str], legend: bool = True) -> dict[str, Any]:
    """Return the encoding of methods by colour, and by dashes where a legend would have the same colour twice."""
    names = list(dict.fromkeys(methods))
    key = alt.Legend(title=None) if legend else None
    colours, dashes = (alt.Scale(domain=names, range=[looks[name][i] for name in names]) for i in (0, 1))
    found: dict[str, Any] = {"color": alt.Color("method:N", scale=colours, legend=key)}
    if legend and len({looks[name][0] for name in names}) < len(names):
        found["strokeDash"] = alt.StrokeDash("method:N", scale=dashes, legend=key)
    return found


def text_colour(background: str) -> str:
    """Return black or white, whichever contrasts more with `background` (WCAG relative luminance)."""
    parts = np.array([int(background[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return "white" if linear @ [0.2126, 0.7152, 0.0722] < 0.179 else "black"


# ---------------------------------------------------------------- data and words


def rows(values: Iterable[Mapping[Any, Any]]) -> dict[str, Any]:
    """Return records as a chart's data: plain numbers of six digits, what is not finite is absent."""
    # Altair would check each record of its own class, and copy lists of them at every step of building a chart.
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
    """Return a scale that ends where `domain` says."""
    ends: dict[str, Any] = {} if domain is None else {"domain": [float(f"{end:.6g}") for end in domain], "nice": False}
    return alt.Scale(**ends, clamp=domain is not None, type="log" if log else alt.Undefined)


def wide(values: Any) -> bool:
    """Return whether positive values need a logarithmic axis."""
    known = np.asarray(values, float)
    return bool(known.size) and known.min() > 0 and known.max() > WIDE * known.min()


def tip(*fields: str | tuple[str, str]) -> list[alt.Tooltip]:
    """Return what hovering tells: fields, or pairs of field and title."""
    pairs = [(each, each) if isinstance(each, str) else each for each in fields]
    return [alt.Tooltip(f"{name}:N", title=title) for name, title in pairs]


def plot(
    records: Iterable[Mapping[Any, Any]],
    mark: Any,
    *axes: Any,
    size: tuple[Any, Any] = (WIDTH, alt.Undefined),
    flat: Sequence[str] = (),
    told: Iterable[Any] = (),
    panels: Sequence[str] = ("",),
    columns: int = 1,
    frame: str | None = None,
    zooms: bool = True,
    **channels: Any,
) -> Any:
    """Return records as marks (Altair's, or its name) along axes, a panel for each title; over ``time`` they zoom.

    Records hold arrays in the fields `flat`; hovering tells the fields `told` (:func:`tip`). A `frame` has that colour.
    """
    view = alt.ViewConfig(stroke=frame) if frame else alt.Undefined
    chart = alt.Chart(rows(records), mark=mark, width=size[0], height=size[1], view=view)
    chart = chart.encode(*axes, tooltip=tip(*told), **channels)
    chart = chart.transform_flatten(list(flat)) if flat else chart
    zoomed = zooms and any(isinstance(axis, alt.X) and axis.shorthand == "time:Q" for axis in axes)
    return in_panels(chart.add_params(zoom()) if zoomed else chart, panels, columns)


def keyed(channel: Any, field: str, marks: Mapping[str, Any]) -> Any:
    """Return a channel of Altair that tells the values of a field apart by these marks: colours, dashes, shapes."""
    return channel(f"{field}:N", title=None, scale=alt.Scale(domain=list(marks), range=list(marks.values())))


def named(field: str, names: Sequence[str]) -> Any:
    """Return a colour of its own for each of a few names."""
    return keyed(alt.Color, field, dict(zip(names, PALETTE, strict=False)))


def listed(axis: type[alt.X] | type[alt.Y], field: str, names: Sequence[str], title: str | None = None) -> Any:
    """Return an axis on which all names stand, in their order."""
    return axis(f"{field}:N", title=title, sort=list(names), scale=alt.Scale(domain=list(names)))


def in_panels(chart: Any, titles: Sequence[str], columns: int = 1, apart: Sequence[str] = ()) -> Any:
    """Return a chart once for each title, with axes `apart` of its own each; of one title as it is."""
    if len(titles) == 1:
        return chart
    heads: dict[str, Any] = {"title": None, "sort": list(map(str, titles))}
    below = {"row": alt.Row("panel:N", **heads)} if columns == 1 else {"facet": alt.Facet("panel:N", **heads)}
    chart = chart.facet(**below, **({} if columns == 1 else {"columns": columns}))
    return chart.resolve_scale(**dict.fromkeys(apart, "independent")) if apart else chart


# ---------------------------------------------------------------- time


@dataclass(frozen=True)
class Clock:
    """The unit of all times of a report: its seconds, and its name."""

    seconds: float
    name: str

    def label(self, what: str = "time") -> str:
        """Return the title of an axis."""
        return f"{what} [{self.name}]"

    def text(self, seconds: float) -> str:
        """Return a time in words."""
        return f"{number(seconds / self.seconds)} {self.name}"


CLOCKS = ((2 * 3600.0, Clock(3600.0, "h")), (180.0, Clock(60.0, "min")), (0.0, Clock(1.0, "s")))
"""Least span in seconds for which a unit reads well."""


def clock(span_s: float) -> Clock:
    """Return the unit in which times up to `span_s` read well; hours are the longest, as in tables."""
    return next(unit for least, unit in CLOCKS if span_s >= least)


def clock_of(instance: Instance) -> Clock:
    """Return the unit of all figures of an instance: that of its horizon, hours where it has none."""
    return clock(instance.horizon.end_s if instance.horizon else math.inf)


def zoom() -> alt.Parameter:
    """Return the parameter by which a reader moves along a time axis; pages hold all charts of one axis together."""
    return alt.selection_interval(name="zoom", bind="scales", encodings=["x"], zoom="wheel![event.shiftKey]")


def time_axis(unit: Clock, end: float) -> alt.X:
    """Return the time axis of a chart, which ends where work ends (in units)."""
    return x("time", unit.label(), domain=[0.0, end])


def averaged(values: Array, edges: Array) -> Array:
    """Return the mean of a step function between `edges`, which are in slots; it is 0 after its end."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    integral = np.interp(edges, np.arange(len(total)), total)
    return np.asarray(np.diff(integral) / np.diff(edges))


def time_edges(slots: int) -> Array:
    """Return the slots between which values are averaged, at most :data:`COLUMNS`."""
    return np.linspace(0, slots, min(slots, COLUMNS) + 1)


def strips(values: Mapping[str, Mapping[str, Array]], slot_s: float, unit: Clock, looks: Mapping[str, Look]) -> Any:
    """Return shares (0 to 1, by slot) over time in per cent: a strip per method, a line per kind, the first filled."""
    edges = time_edges(max(len(row) for each in values.values() for row in each.values()))
    times, kinds = edges * slot_s / unit.seconds, list(next(iter(values.values())))
    records: list[dict[str, Any]] = []
    for method, each in values.items():
        for kind, row in each.items():
            share = 100 * averaged(row, edges)
            told = {"method": name(method), "kind": kind, "mean": f"{100 * float(np.mean(row)):.1f} %"}
            records.append({**told, "time": times, "share": np.append(share, share[-1])})
    names = [record["method"] for record in records]
    look = colour(looks, names, legend=False)
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
    records: Sequence[Mapping[str, Any]], axis: alt.X, series: tuple[str, str], title: str, told: str, most: float = 0.0
) -> Any:
    """Return two stairs and what lies between them, a panel per record; a series without a line is left out.

    Records have ``panel``, ``method``, the text `told`, and arrays of the axis and of both series, the lower one first.
    All panels end at `most` where it is given; else each has axes of its own.
    """
    low, high = series
    known = {name: [np.isfinite(np.asarray(each[name], float)).sum() for each in records] for name in (low, high)}
    names = [name for name, counts in known.items() if max(counts) > 1]
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
        .encode(sides[name], tooltip=tip("method", "series", told), **look)
        for name in names
    ]
    if len(names) == 2:
        span = base.mark_area(interpolate="step-after", color=FAINT, opacity=0.7)
        lines = [span.encode(sides[low], alt.Y2(f"{high}:Q"), tooltip=tip("method", told)), *lines]
    return in_panels(alt.layer(*lines), [each["panel"] for each in records], 2, () if most else ("x", "y"))


# ---------------------------------------------------------------- maps


def no_dust(cells: Array) -> Array:
    """Return prices with 0 where they are small: what rounding leaves of 0 would take most of the colours."""
    return np.where(cells >= SMALL * cells.max(initial=0.0), cells, 0.0)


def dearest(field: Array, most: int) -> Ints:
    """Return the rows of a map of prices that are drawn: not those that are 0 everywhere, of many the highest ones."""
    top = field.max(axis=1)
    found = np.argsort(-top, kind="stable")[:most]
    return np.sort(found[top[found] > 0])


def heat(title: str, cells: Iterable[float], field: str = "value") -> alt.Color:
    """Return a colour for values from 0: logarithmic where positive ones differ a hundredfold (0 is not drawn)."""
    values = np.array([value for value in cells if value > 0])
    most = float(values.max(initial=0.0)) or 1.0
    log = bool(values.size) and most > 100 * values.min()
    ends = [max(float(values.min()), most * 1e-9), most] if log else [0.0, most]
    return alt.Color(f"{field}:Q", title=title, scale=scale(log, ends), legend=alt.Legend(format=".3~g"))


def price_map(
    panels: Mapping[str, tuple[Array, str]], names: Sequence[str], slot_s: float, unit: Clock, end_s: float
) -> Any:
    """Return maps of ``(k, T)`` prices by title: with the same axes, and in the same unit the same colours."""
    charts, end = [], end_s / unit.seconds
    names = [clean(name, 22) for name in names]
    found = {title: cells(field, names, slot_s, unit, end_s) for title, (field, _) in panels.items()}
    for title, (_, what) in panels.items():
        same = [cell["value"] for other, (_, unit_) in panels.items() if unit_ == what for cell in found[other]]
        told = ("name", "what"), ("time", f"from [{unit.name}]"), ("end", f"to [{unit.name}]"), ("value", what)
        axes = time_axis(unit, end), alt.X2("end:Q"), listed(alt.Y, "name", names)
        place: dict[str, Any] = {"size": (WIDTH, alt.Step(22)), "zooms": len(panels) == 1}
        chart = plot(found[title], "rect", *axes, color=heat(what, same), told=told, **place)
        charts.append(chart.properties(title=title if len(panels) > 1 else ""))
    alike = len({unit for _, unit in panels.values()}) == 1
    together = alt.vconcat(*charts).resolve_scale(color="shared" if alike else "independent")
    return charts[0] if len(charts) == 1 else together


def cells(field: Array, names: Sequence[Any], slot_s: float, unit: Clock, end_s: float) -> list[dict[str, Any]]:
    """Return the positive cells of a map, equal neighbours as one; all times are in units."""
    slots = min(field.shape[1], max(1, math.ceil(end_s / slot_s - 1e-9)))
    edges = time_edges(slots)
    found = []
    for name, row in zip(names, field[:, :slots], strict=True):
        values = np.array([float(f"{v:.4g}") for v in averaged(row, edges)])
        starts = np.flatnonzero(np.append(True, np.diff(values) != 0))
        for first, last in zip(starts, [*starts[1:], len(values)], strict=True):
            if values[first] > 0:
                time, end = edges[[first, last]] * slot_s / unit.seconds
                found.append({"name": name, "time": time, "end": end, "value": values[first]})
    return found


# ---------------------------------------------------------------- shares of jobs and cases


def shares(values: Array, start: float = 0.0) -> tuple[Array, Array]:
    """Return at most :data:`COLUMNS` ends of a stair of the share of `values` up to x; NaN and ∞ count as never."""
    known = np.sort(values[np.isfinite(values)])
    share = np.arange(1, known.size + 1) / max(values.size, 1)
    if known.size > COLUMNS:
        chosen = np.linspace(0, known.size - 1, COLUMNS).round().astype(int)
        known, share = known[chosen], share[chosen]
    return np.append(start, known), np.append(0.0, share)


def share_lines(
    lines: Sequence[Mapping[str, Any]], looks: Mapping[str, Look], axis: alt.X, title: str, columns: int = 1
) -> Any:
    """Return stairs of shares up to 1; each line has ``method``, ``x``, ``share``, and maybe a ``panel``."""
    methods = list(dict.fromkeys(line["method"] for line in lines))
    panels = list(dict.fromkeys(line.get("panel", "") for line in lines))
    extra = [key for key in lines[0] if key not in ("method", "x", "share", "panel")]
    mark, size = alt.MarkDef("line", interpolate="step-after", clip=True), WIDTH if columns == 1 else WIDTH // 2 - 30
    axes, told = (axis, y("share", title, domain=[0, 1.02])), ["method", *extra]
    place: dict[str, Any] = {"size": (size, alt.Undefined), "panels": panels, "columns": columns}
    return plot(lines, mark, *axes, flat=["x", "share"], told=told, **place, **colour(looks, methods))


def completion_cdf(times_s: Mapping[str, Array], looks: Mapping[str, Look], unit: Clock) -> Any:
    """Return the share of jobs completed by a time since arrival (NaN: never)."""
    known = np.concatenate([t[np.isfinite(t)] for t in times_s.values()])
    end = 1.02 * float(known.max(initial=1e-9)) / unit.seconds
    log = bool(known.size) and float(known.max()) > LOG_SPAN * float(np.median(known)) and known.min() > 0
    lines = []
    for method, times in times_s.items():
        done = times[np.isfinite(times)]
        start, share = shares(times / unit.seconds)
        median = unit.text(float(np.median(done))) if done.size else "–"
        told = {"median": median, "jobs that never complete": times.size - done.size}
        stair = {"x": np.append(start, end), "share": np.append(share, share[-1])}
        lines.append({"method": method, **stair, **told})
    ends = float(known.min()) / unit.seconds / 1.1 if log else 0.0, end
    axis = x("x", unit.label("completion time"), log=log, domain=ends)
    return share_lines(lines, looks, axis, "share of jobs completed")


# ---------------------------------------------------------------- bars beside bounds


@dataclass(frozen=True)
class Group:
    """Values by method that one lower bound is about, and their name where there are several groups."""

    values: Mapping[str, float]
    bound: float | None
    name: str = ""


def beside_bounds(groups: Sequence[Group], title: str, looks: Mapping[str, Look], unit: float = 1.0) -> Any:
    """Return a bar for each method, one group below the other, with its ratio to the group's lower bound."""
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
    look = colour(looks, [record["method"] for record in records], legend=False)
    told = tip("method", ("value", title), ("bound", "certified lower bound"))
    layers = [base.mark_bar(size=12).encode(tooltip=told, **look)]
    layers += [base.mark_text(align="left", dx=4).encode(text="text:N")]
    if any(group.bound for group in groups):
        key = keyed(alt.StrokeDash, "key", {"certified lower bound": DASHED})
        rule = alt.Chart().transform_calculate(key="'certified lower bound'").mark_rule(color=INK)
        layers.append(rule.encode(alt.X("mean(bound):Q"), strokeDash=key))
    return in_panels(alt.layer(*layers, data=rows(records)), [group.name for group in groups], apart="y")
