"""Figures of reproductions: lines, bars, maps and distributions, whose axes stand in the setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from schedgap.harness.figure import Drawn, Part, figure, parts
from schedgap.harness.plots import style
from schedgap.harness.reproduce import drawn
from schedgap.harness.reproduce.drawn import Record
from schedgap.harness.reproduce.row import Reproduction
from schedgap.harness.reproduce.setting import Drawing, Setting
from schedgap.harness.text import clean, number

HEIGHT = 260
"""Pixels of a plot."""

AXES = {
    "unit_worth": "F [weight per capacity and slot]",
    "worker_type": "worker type",
    "workers": "most workers of a job",
    "round_s": "round [s]",
}
"""What an axis says of a parameter; others are called what references call them."""

CELL = 34
"""Pixels of a map's row."""


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
        for i, drawing in enumerate(setting.drawings):
            records = drawn.records(setting, drawing, found.cases[id])
            about = f"{clean(setting.place, 40)}, {clean(drawing.title or setting.title, 80)}"
            name = id.rpartition("/")[2]
            place = {"heading": about, "where": about, "suffix": f"-{name}-{i + 1}"}
            made.append(
                Drawable(
                    of="reproduction", group=setting.paper, **place, setting=setting, drawing=drawing, records=records
                )
            )
    return made


@figure("shape", "Reproduced", of="reproduction")
def shape(data: Drawable) -> Drawn:
    """Means over all cases with 95 % bootstrap intervals; crosses are printed values, dashed lines certified bounds."""
    known = [record for record in data.records if "value" in record]
    if not known:
        return None
    drawn: Drawn = KINDS[data.drawing.kind](data, known)
    return drawn


def _series(known: Sequence[Record]) -> tuple[list[str], dict[str, Any]]:
    names = list(dict.fromkeys(record["series"] for record in known))
    return names, style.colour(style.looks(names), names)


def _told(records: Sequence[Record], numeric: bool) -> list[dict[str, Any]]:
    """Return records as a chart has them, methods in the column that pages filter by."""
    return [
        {**record, "method": record["series"], "x": float(record["x"]) if numeric else str(record["x"])}
        for record in records
    ]


def _axes(data: Drawable, known: Sequence[Record]) -> tuple[Any, Any, bool]:
    numeric = drawn.is_numeric(known)
    order = list(dict.fromkeys(str(record["x"]) for record in known))
    across = (
        style.x("x", _axis(data.drawing.along), log=style.wide([float(record["x"]) for record in known]))
        if numeric
        else alt.X("x:N", title=_axis(data.drawing.along), sort=order, axis=alt.Axis(labelAngle=0))
    )
    values = [record["value"] for record in known]
    return across, style.y("value", _quantity(data.drawing), log=style.wide(values)), numeric


def _axis(parameter: str) -> str:
    return AXES.get(parameter, parameter)


def _quantity(drawing: Drawing) -> str:
    return drawing.quantity.replace(":", " to ").replace("_", " ")


def _lines(data: Drawable, known: Sequence[Record]) -> Any:
    across, height, numeric = _axes(data, known)
    _, look = _series(known)
    tip = style.tip("method", ("x", data.drawing.along), "value", "low", "high", "cases")
    base = alt.Chart(style.rows(_told(known, numeric)), width=style.WIDTH, height=HEIGHT)
    lines = base.mark_line(point=True).encode(across, height, tooltip=tip, **look)
    spread = base.mark_rule(strokeWidth=1.0).encode(across, alt.Y("low:Q"), alt.Y2("high:Q"), color=look["color"])
    bounds = (
        alt.Chart(style.rows(_bounds(_told(known, numeric))))
        .mark_line(color=style.INK, strokeDash=style.DASHED, strokeWidth=1.1)
        .encode(
            across, alt.Y("bound:Q"), alt.Detail("of:N"), tooltip=style.tip(("x", data.drawing.along), "bound", "of")
        )
    )
    printed = [record for record in data.records if "published" in record]
    crosses = (
        alt.Chart(style.rows(_told(printed, numeric)))
        .mark_point(shape="cross", size=90, filled=True)
        .encode(across, alt.Y("published:Q"), color=look["color"], tooltip=style.tip("method", "published"))
    )
    return alt.layer(spread, lines, *([crosses] if printed else []), *([bounds] if _bounds(known) else []))


def _bounds(known: Sequence[Record]) -> list[Record]:
    """Return the points of each bound once, also where it is one on several methods."""
    found = [
        {"x": one["x"], "bound": one["bound"], "of": "".join((one["model"], *one["series"].partition(", ")[1:]))}
        for one in known
        if "bound" in one
    ]
    return list({tuple(one.values()): one for one in found}.values())


def _bars(data: Drawable, known: Sequence[Record]) -> Any:
    names, look = _series(known)
    order = list(dict.fromkeys(str(record["x"]) for record in known))
    base = alt.Chart(style.rows(_told(data.records, False)), width=style.WIDTH, height=HEIGHT).encode(
        alt.X("x:N", title=_axis(data.drawing.along), sort=order, axis=alt.Axis(labelAngle=0, labelLimit=200)),
        alt.XOffset("method:N", sort=names),
    )
    tip = style.tip("method", ("x", data.drawing.along), "value", "low", "high", "cases")
    bars = base.mark_bar().encode(style.y("value", _quantity(data.drawing)), color=look["color"], tooltip=tip)
    spread = base.mark_rule(color=style.INK).encode(alt.Y("low:Q"), alt.Y2("high:Q"))
    marks = base.mark_point(shape="cross", size=90, filled=True, color=style.INK)
    return alt.layer(bars, spread, marks.encode(alt.Y("published:Q"), tooltip=style.tip("method", "published")))


def _map(data: Drawable, known: Sequence[Record]) -> Any:
    cells = [
        {**record, "x": str(record["x"]), "y": str(record["y"]), "text": number(record["value"], 3)} for record in known
    ]
    columns, rows = (list(dict.fromkeys(record[axis] for record in cells)) for axis in ("x", "y"))
    base = alt.Chart(style.rows(cells), width=style.WIDTH, height=CELL * len(rows)).encode(
        alt.X("x:N", title=_axis(data.drawing.along), sort=columns, axis=alt.Axis(labelAngle=0)),
        alt.Y("y:N", title=_axis(data.drawing.across), sort=rows, axis=alt.Axis(labelLimit=260)),
        tooltip=style.tip(("x", data.drawing.along), ("y", data.drawing.across), "value", "low", "high", "cases"),
    )
    middle = alt.Scale(scheme="redblue", domainMid=1.0)
    heat = base.mark_rect(opacity=0.6).encode(color=alt.Color("value:Q", title=_quantity(data.drawing), scale=middle))
    return alt.layer(heat, base.mark_text(color=style.INK, fontWeight="bold").encode(text="text:N"))


def _distribution(data: Drawable, known: Sequence[Record]) -> Any:
    _, look = _series(known)
    base = alt.Chart(style.rows(_told(known, True)), width=style.WIDTH, height=HEIGHT)
    rounds = data.drawing.quantity == "gru"
    across = style.x("x", "part of the GPUs that works" if rounds else "completion time [h]")
    height = style.y("value", f"part of the {'rounds' if rounds else 'jobs'}", domain=[0.0, 1.0])
    return base.mark_line(interpolate="step-after").encode(
        across, height, tooltip=style.tip("method", "x", "value"), **look
    )


KINDS: Mapping[str, Callable[[Drawable, Sequence[Record]], Any]] = {
    "lines": _lines,
    "bars": _bars,
    "map": _map,
    "cdf": _distribution,
}
"""How each kind is drawn."""
