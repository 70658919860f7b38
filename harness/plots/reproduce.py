"""Figures of reproductions: lines, bars, maps and distributions, whose axes stand in the setting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from schedgap.harness.figure import Drawn, Part, figure, parts
from schedgap.harness.plots import style
from schedgap.harness.published import split
from schedgap.harness.reproduce.measure import Found, curve, fits, groups, plain_number, shared, statistic
from schedgap.harness.reproduce.row import Case, Reproduction
from schedgap.harness.reproduce.setting import Drawing, Item, Number, Setting
from schedgap.harness.text import clean, number

HEIGHT = 260
"""Pixels of a plot."""

AXES = {
    "unit_worth": "F [weight per unit and slot]",
    "worker_type": "worker type",
    "workers": "most workers of a job",
    "round_s": "round [s]",
}
"""What an axis says of a parameter; others are called what references call them."""

CELL = 34
"""Pixels of a map's row."""

Record = dict[str, Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawable(Part):
    """A drawing of a setting, with what is drawn."""

    setting: Setting
    drawing: Drawing
    records: Sequence[Record]


@parts.register
def _(found: Reproduction) -> list[Drawable]:
    made = []
    for id, setting in found.settings.items():
        for i, drawing in enumerate(setting.drawings, 1):
            about = f"{clean(setting.place, 40)}, {clean(drawing.title or setting.title, 80)}"
            told: dict[str, Any] = {"heading": about, "where": about, "suffix": f"-{id.rpartition('/')[2]}-{i}"}
            told |= {"drawing": drawing, "records": records_of(setting, drawing, found.cases[id])}
            made.append(Drawable(of="reproduction", group=setting.paper, setting=setting, **told))
    return made


def records_of(setting: Setting, drawing: Drawing, cases: Sequence[Case]) -> list[Record]:
    """Return what is drawn, one record per mark: ``x``, ``series``, ``value``; if known ``low``, ``high``, ``bound``.

    Methods are compared at a point on those cases only in which all of them have a result. Records with ``published``
    are marks of printed values. A map has ``y`` in place of the series, a distribution shares of jobs by hours, or of
    rounds by the part of the GPUs that works.
    """
    about = Item(at=drawing.at)
    here = [case for case in cases if case.run == setting.run_of(drawing.run).name and fits(case, about)]
    here = [case for case in here if not case.trouble]
    methods = drawing.methods or tuple(dict.fromkeys(case.method for case in here))
    if drawing.kind == "cdf":
        return [record for method in methods for record in _shares(method, drawing.quantity, here)]
    if drawing.kind == "map":
        return list(_pairs(drawing, methods, here))
    records = []
    for other, among in groups(drawing.across, here).items():
        points = groups(drawing.along, among).values()
        alike = [one for point in points for one in shared(methods, drawing.quantity, point)]
        for method in methods:
            name = f"{method}, {drawing.across} = {other}" if drawing.across else method
            means = curve(method, drawing.quantity, drawing.along, alike)
            records += [{"x": at, **_mean(name, found)} for at, found in means.items()]
    return [*records, *_printed(setting, drawing, methods)]


def _mean(series: str, found: Found) -> Record:
    told = {"series": series, "value": found.value, "low": found.low, "high": found.high, "cases": found.cases}
    if found.bound is None:
        return told
    return {**told, "bound": found.bound, "of": "".join((found.model, *series.partition(", ")[1:]))}


def _pairs(drawing: Drawing, methods: Sequence[str], cases: Sequence[Case]) -> Iterator[Record]:
    """Yield the mean at each pair of two parameters; the second may be the method."""
    of_methods = drawing.across == "method"
    for method in methods:
        for other, among in groups("" if of_methods else drawing.across, cases).items():
            for at, here in groups(drawing.along, among).items():
                if (found := statistic(method, drawing.quantity, here)) and method != split(drawing.quantity)[1]:
                    yield {"x": at, "y": method if of_methods else other, **_mean(method, found)}


def _shares(method: str, quantity: str, cases: Sequence[Case]) -> Iterator[Record]:
    """Yield the part of all jobs completed by a time, or of all rounds up to a use of GPUs, in the first case."""
    case = next((one for one in cases if one.method == method and one.trace), None)
    if case is None or (trace := case.trace.value if case.trace else None) is None:
        return
    known, share = style.shares(trace.utilisation if quantity == "gru" else trace.jct_s / 3600.0)
    for x, part in zip(known[1:], share[1:], strict=True):
        yield {"x": float(x), "series": method, "value": float(part)}


def _printed(setting: Setting, drawing: Drawing, methods: Sequence[str]) -> Iterator[Record]:
    """Yield the printed values of the quantity that belong to one point of a curve."""
    for item in setting.items:
        same = isinstance(item, Number) and item.quantity == drawing.quantity and item.method in methods
        same = same and setting.run_of(item.run) == setting.run_of(drawing.run)
        if same and isinstance(item, Number) and isinstance(item.value, float) and drawing.along in item.at:
            yield {"x": item.at[drawing.along], "series": item.method, "published": item.value}


def is_numeric(drawn: Sequence[Record]) -> bool:
    """Return whether all values on the horizontal axis are numbers."""
    return all(plain_number(record["x"]) is not None for record in drawn)


# ---------------------------------------------------------------- charts


@figure("shape", "Reproduced", of="reproduction")
def shape(data: Drawable) -> Drawn:
    """Means over all cases with 95 % bootstrap intervals; crosses are printed values, dashed lines certified bounds."""
    known = [record for record in data.records if "value" in record]
    return KINDS[data.drawing.kind](data, known) if known else None


def _look(known: Sequence[Record]) -> dict[str, Any]:
    names = [record["series"] for record in known]
    return style.colour(style.looks(names), names)


def _told(records: Sequence[Record], numeric: bool) -> list[dict[str, Any]]:
    """Return records as a chart has them, methods in the column that pages filter by."""
    kind = float if numeric else str
    return [{**record, "method": record["series"], "x": kind(record["x"])} for record in records]


def _quantity(drawing: Drawing) -> str:
    return drawing.quantity.replace(":", " to ").replace("_", " ")


def _names(axis: type[alt.X] | type[alt.Y], field: str, title: str, known: Sequence[Record], **more: Any) -> Any:
    order = list(dict.fromkeys(str(record[field]) for record in known))
    return axis(f"{field}:N", title=AXES.get(title, title), sort=order, axis=alt.Axis(**more))


def _curves(data: Drawable, known: Sequence[Record]) -> Any:
    """Return lines, or bars beside one another, with their intervals and printed values."""
    bars, along = data.drawing.kind == "bars", data.drawing.along
    numeric, look = not bars and is_numeric(known), _look(known)
    across = _names(alt.X, "x", along, known, labelAngle=0, **({"labelLimit": 200} if bars else {}))
    if numeric:
        places = [float(record["x"]) for record in known]
        across = style.x("x", AXES.get(along, along), log=style.wide(places), domain=[min(places), max(places)])
    log = not bars and style.wide([record["value"] for record in known])
    beside = [alt.XOffset("method:N", sort=list(dict.fromkeys(record["series"] for record in known)))] if bars else []
    ink = alt.value(style.INK) if bars else look["color"]

    def base(records: Sequence[Record]) -> alt.Chart:
        chart = alt.Chart(style.rows(_told(records, numeric)), width=style.WIDTH, height=HEIGHT)
        return chart.encode(across, *beside)

    marks = base(known).mark_bar() if bars else base(known).mark_line(point=True)
    told = style.tip("method", ("x", along), "value", "low", "high", "cases")
    means = marks.encode(style.y("value", _quantity(data.drawing), log=log), tooltip=told, **look)
    spread = base(known).mark_rule().encode(alt.Y("low:Q"), alt.Y2("high:Q"), color=ink)
    layers = [means, spread] if bars else [spread, means]
    if printed := [record for record in data.records if "published" in record]:
        crosses = base(printed).mark_point(shape="cross", size=90, filled=True)
        layers.append(crosses.encode(alt.Y("published:Q"), color=ink, tooltip=style.tip("method", "published")))
    if not bars and (bounded := [record for record in known if "bound" in record]):
        dashed = base(bounded).mark_line(color=style.INK, strokeDash=style.DASHED, strokeWidth=1.1)
        layers.append(
            dashed.encode(alt.Y("bound:Q"), alt.Detail("of:N"), tooltip=style.tip(("x", along), "bound", "of"))
        )
    return alt.layer(*layers)


def _map(data: Drawable, known: Sequence[Record]) -> Any:
    along, across = data.drawing.along, data.drawing.across
    cells = [{**one, "x": str(one["x"]), "y": str(one["y"]), "text": number(one["value"], 3)} for one in known]
    height = CELL * len({cell["y"] for cell in cells})
    base = alt.Chart(style.rows(cells), width=style.WIDTH, height=height).encode(
        _names(alt.X, "x", along, known, labelAngle=0),
        _names(alt.Y, "y", across, known, labelLimit=260),
        tooltip=style.tip(("x", along), ("y", across), "value", "low", "high", "cases"),
    )
    # Twice as good and twice as bad are equally far from equal, which has no colour.
    furthest = max(1.05, *(max(cell["value"], 1 / max(cell["value"], 1e-9)) for cell in cells))
    middle = alt.Scale(type="log", scheme="redblue", domain=[1 / furthest, furthest])
    legend = alt.Legend(format=".2~g", values=[1 / furthest, 1, furthest])
    colour = alt.Color("value:Q", title=_quantity(data.drawing), scale=middle, legend=legend)
    heat = base.mark_rect(opacity=0.6).encode(color=colour)
    return alt.layer(heat, base.mark_text(color=style.INK, fontWeight="bold").encode(text="text:N"))


def _distribution(data: Drawable, known: Sequence[Record]) -> Any:
    rounds = data.drawing.quantity == "gru"
    across = style.x("x", "part of the GPUs that works" if rounds else "completion time [h]")
    axes = across, style.y("value", f"part of the {'rounds' if rounds else 'jobs'}", domain=[0.0, 1.0])
    steps, size = alt.MarkDef("line", interpolate="step-after"), (style.WIDTH, HEIGHT)
    return style.plot(_told(known, True), steps, *axes, told=["method", "x", "value"], size=size, **_look(known))


KINDS: Mapping[str, Callable[[Drawable, Sequence[Record]], Any]] = {
    "lines": _curves,
    "bars": _curves,
    "map": _map,
    "cdf": _distribution,
}
"""How each kind is drawn."""
