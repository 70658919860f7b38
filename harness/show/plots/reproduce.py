"""Figures of reproductions: lines, bars, maps and distributions, with axes as specified in the setting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from schedgap.harness.show.figure import Drawn, Part, figure, parts
from schedgap.harness.show.plots import style
from schedgap.harness.show.text import clean, number
from schedgap.harness.studies.published import split
from schedgap.harness.studies.reproduce.measure import Statistic, curve, fits, groups, plain_number, shared, statistic
from schedgap.harness.studies.reproduce.row import Case, Reproduction
from schedgap.harness.studies.reproduce.setting import FigureDrawing, Item, Number, Setting

HEIGHT = 260
"""Height of a plot in pixels."""

AXES = {
    "unit_worth": "F [weight per unit and slot]",
    "worker_type": "worker type",
    "workers": "most workers of a job",
    "round_s": "round [s]",
}
"""Axis titles of parameters; other parameters keep the names that they have in references."""

CELL = 34
"""Height of a row of a map in pixels."""

Record = dict[str, Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawable(Part):
    """A drawing of a setting, with its data."""

    setting: Setting
    drawing: FigureDrawing
    records: Sequence[Record]


@parts.register
def _(found: Reproduction) -> list[Drawable]:
    drawables = []
    for id, setting in found.settings.items():
        for i, drawing in enumerate(setting.drawings, 1):
            title = f"{clean(setting.place, 40)}, {clean(drawing.title or setting.title, 80)}"
            words: dict[str, Any] = {"heading": title, "where": title, "suffix": f"-{id.rpartition('/')[2]}-{i}"}
            data: dict[str, Any] = {"drawing": drawing, "records": records_of(setting, drawing, found.cases[id])}
            drawables.append(Drawable(of="reproduction", group=setting.paper, setting=setting, **words, **data))
    return drawables


def records_of(setting: Setting, drawing: FigureDrawing, cases: Sequence[Case]) -> list[Record]:
    """Return one record per mark with ``x``, ``series``, ``value`` and, if known, ``low``, ``high`` and ``bound``.

    At each point, methods are compared only on the cases in which all of them have a result. Records with ``published``
    are marks of printed values. Records of maps also have ``y``. Distributions have shares of jobs by hours, or of
    rounds by the share of GPUs that work.
    """
    fixed = Item(at=drawing.at)
    here = [case for case in cases if case.run == setting.run_of(drawing.run).name and fits(case, fixed)]
    here = [case for case in here if not case.trouble]
    methods = drawing.methods or tuple(dict.fromkeys(case.method for case in here))
    if drawing.kind == "cdf":
        return [record for method in methods for record in _shares(method, drawing.quantity, here)]
    if drawing.kind == "map":
        return list(_pairs(drawing, methods, here))
    records = []
    for other, among in groups(drawing.across, here).items():
        points = groups(drawing.along, among).values()
        common = [case for point in points for case in shared(methods, drawing.quantity, point)]
        for method in methods:
            name = f"{method}, {drawing.across} = {other}" if drawing.across else method
            means = curve(method, drawing.quantity, drawing.along, common)
            records += [{"x": at, **_mean(name, mean)} for at, mean in means.items()]
    return [*records, *_printed(setting, drawing, methods)]


def _mean(series: str, mean: Statistic) -> Record:
    record = {"series": series, "value": mean.value, "low": mean.low, "high": mean.high, "cases": mean.cases}
    if mean.bound is None:
        return record
    return {**record, "bound": mean.bound, "of": "".join((mean.model, *series.partition(", ")[1:]))}


def _pairs(drawing: FigureDrawing, methods: Sequence[str], cases: Sequence[Case]) -> Iterator[Record]:
    """Yield the mean at each pair of values of two parameters, the second of which may be the method."""
    of_methods = drawing.across == "method"
    for method in methods:
        for other, among in groups("" if of_methods else drawing.across, cases).items():
            for at, here in groups(drawing.along, among).items():
                if (mean := statistic(method, drawing.quantity, here)) and method != split(drawing.quantity)[1]:
                    yield {"x": at, "y": method if of_methods else other, **_mean(method, mean)}


def _shares(method: str, quantity: str, cases: Sequence[Case]) -> Iterator[Record]:
    """Yield the distribution of completion times, or of GPU utilisation over the rounds, in the method's first case."""
    case = next((case for case in cases if case.method == method and case.trace), None)
    if case is None or (trace := case.trace.value if case.trace else None) is None:
        return
    ends, shares = style.shares(trace.utilisation if quantity == "gru" else trace.jct_s / 3600.0)
    for x, share in zip(ends[1:], shares[1:], strict=True):
        yield {"x": float(x), "series": method, "value": float(share)}


def _printed(setting: Setting, drawing: FigureDrawing, methods: Sequence[str]) -> Iterator[Record]:
    """Yield the printed values of the drawing's quantity that belong to single points of its curves."""
    run, numbers = setting.run_of(drawing.run), (item for item in setting.items if isinstance(item, Number))
    for item in numbers:
        same = item.quantity == drawing.quantity and item.method in methods and setting.run_of(item.run) == run
        if same and isinstance(item.value, float) and drawing.along in item.at:
            yield {"x": item.at[drawing.along], "series": item.method, "published": item.value}


def is_numeric(drawn: Sequence[Record]) -> bool:
    """Return whether all values on the x axis are numbers."""
    return all(plain_number(record["x"]) is not None for record in drawn)


# ---------------------------------------------------------------- charts


@figure("shape", "Reproduced", of="reproduction")
def shape(data: Drawable) -> Drawn:
    """Means over all cases, with 95 % bootstrap intervals; crosses: printed values, dashed lines: certified bounds."""
    means = [record for record in data.records if "value" in record]
    return KINDS[data.drawing.kind](data, means) if means else None


def _look(known: Sequence[Record], bars: bool = False) -> dict[str, Any]:
    names = [record["series"] for record in known]
    return style.colour(style.looks(names), names, "bars" if bars else "lines")


def _with_method(records: Sequence[Record], numeric: bool) -> list[dict[str, Any]]:
    """Return records with the series in the column ``method``, by which pages filter, and ``x`` as number or text."""
    kind = float if numeric else str
    return [{**record, "method": record["series"], "x": kind(record["x"])} for record in records]


def _quantity(drawing: FigureDrawing) -> str:
    return drawing.quantity.replace(":", " to ").replace("_", " ")


def _names(axis: type[alt.X] | type[alt.Y], field: str, title: str, known: Sequence[Record], **more: Any) -> Any:
    order = list(dict.fromkeys(str(record[field]) for record in known))
    return axis(f"{field}:N", title=AXES.get(title, title), sort=order, axis=alt.Axis(**more))


def _curves(data: Drawable, known: Sequence[Record]) -> Any:
    """Return a chart of lines or grouped bars, with intervals and printed values."""
    bars, along = data.drawing.kind == "bars", data.drawing.along
    numeric, look = not bars and is_numeric(known), _look(known, bars)
    across = _names(alt.X, "x", along, known, labelAngle=0, **({"labelLimit": 200} if bars else {}))
    if numeric:
        places = [float(record["x"]) for record in known]
        across = style.x("x", AXES.get(along, along), log=style.wide(places), domain=[min(places), max(places)])
    log = not bars and style.wide([record["value"] for record in known])
    offset = [alt.XOffset("method:N", sort=list(dict.fromkeys(record["series"] for record in known)))] if bars else []
    ink = alt.value(style.INK) if bars else look["color"]

    def base(records: Sequence[Record]) -> alt.Chart:
        chart = alt.Chart(style.rows(_with_method(records, numeric)), width=style.WIDTH, height=HEIGHT)
        return chart.encode(across, *offset)

    marks = base(known).mark_bar() if bars else base(known).mark_line(point=True)
    tips = style.tip("method", ("x", along), "value", "low", "high", "cases")
    means = marks.encode(style.y("value", _quantity(data.drawing), log=log), tooltip=tips, **look)
    spread = base(known).mark_rule().encode(alt.Y("low:Q"), alt.Y2("high:Q"), color=ink)
    layers = [means, spread] if bars else [spread, means]
    if printed := [record for record in data.records if "published" in record]:
        crosses = base(printed).mark_point(shape="cross", size=90, filled=True)
        layers.append(crosses.encode(alt.Y("published:Q"), color=ink, tooltip=style.tip("method", "published")))
    if not bars and (bounded := [record for record in known if "bound" in record]):
        dashed = base(bounded).mark_line(color=style.INK, strokeDash=style.DASHED, strokeWidth=1.1)
        tips = style.tip(("x", along), "bound", "of")
        layers.append(dashed.encode(alt.Y("bound:Q"), alt.Detail("of:N"), tooltip=tips))
    return alt.layer(*layers)


def _map(data: Drawable, known: Sequence[Record]) -> Any:
    along, across = data.drawing.along, data.drawing.across
    cells = [{**cell, "x": str(cell["x"]), "y": str(cell["y"]), "text": number(cell["value"], 3)} for cell in known]
    height = CELL * len({cell["y"] for cell in cells})
    base = alt.Chart(style.rows(cells), width=style.WIDTH, height=height).encode(
        _names(alt.X, "x", along, known, labelAngle=0),
        _names(alt.Y, "y", across, known, labelLimit=260),
        tooltip=style.tip(("x", along), ("y", across), "value", "low", "high", "cases"),
    )
    # The scale is symmetric about 1, which has no colour: twice as good is as far from it as twice as bad.
    furthest = max(1.05, *(max(cell["value"], 1 / max(cell["value"], 1e-9)) for cell in cells))
    scale = alt.Scale(type="log", scheme="redblue", domain=[1 / furthest, furthest])
    legend = alt.Legend(format=".2~g", values=[1 / furthest, 1, furthest])
    colour = alt.Color("value:Q", title=_quantity(data.drawing), scale=scale, legend=legend)
    heat = base.mark_rect(opacity=0.6).encode(color=colour)
    return alt.layer(heat, base.mark_text(color=style.INK, fontWeight="bold").encode(text="text:N"))


def _distribution(data: Drawable, known: Sequence[Record]) -> Any:
    rounds = data.drawing.quantity == "gru"
    across = style.x("x", "share of GPUs working" if rounds else "completion time [h]")
    axes = across, style.y("value", f"share of {'rounds' if rounds else 'jobs'}", domain=[0.0, 1.0])
    steps, size, tips = alt.MarkDef("line", interpolate="step-after"), (style.WIDTH, HEIGHT), ["method", "x", "value"]
    return style.plot(_with_method(known, True), steps, *axes, tips=tips, size=size, **_look(known))


KINDS: Mapping[str, Callable[[Drawable, Sequence[Record]], Any]] = {
    "lines": _curves,
    "bars": _curves,
    "map": _map,
    "cdf": _distribution,
}
"""Function that draws each kind of drawing."""
