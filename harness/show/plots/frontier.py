"""Figures of what fairness costs: the curves of an instance with every mechanism, and prices over instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt

from schedgap.harness.engine.result import grouped
from schedgap.harness.show.figure import Drawn, Part, figure, parts
from schedgap.harness.show.plots import style
from schedgap.harness.show.text import clean
from schedgap.harness.studies.frontier.row import BOTH, ENVY, MECHANISM, SHARE, Frontier, FrontierRow
from schedgap.instances.text import counted

MOST = 6
"""Most instances whose curves are drawn."""

LINES = {ENVY: "ε-envy", BOTH: "ε-envy, and σ = 1", SHARE: "share σ of the equal split"}
"""Curves, in words."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Curves(Part):
    """The curves and mechanisms of an instance."""

    rows: list[FrontierRow]


@dataclass(frozen=True, eq=False, kw_only=True)
class Distribution(Part):
    """The prices on several instances."""

    found: Frontier


@parts.register
def _(found: Frontier) -> list[Part]:
    several: list[Part] = []
    for i, rows in enumerate(grouped(found.rows, "fingerprint")[:MOST]):
        name = clean(rows[0].instance, 60)
        suffix = f"-{i + 1}" if len(found.instances) > 1 else ""
        several.append(Curves(of="frontier", group=name, heading=name, where=name, suffix=suffix, rows=rows))
    if len(found.instances) > 1:
        where = counted(len(found.instances), "instance")
        several.append(Distribution(of="prices", group="prices", heading=where, where=where, found=found))
    return several


@figure("frontier", "What fairness costs", of="frontier")
def drawn_frontier(data: Curves) -> Drawn:
    """Total efficiency lost against envy ε (left) and against the share σ of the equal split (right), with mechanisms.

    Lines are certified: no allocation that is as fair loses less.
    """
    dots = [row for row in data.rows if row.kind == MECHANISM and row.price is not None]
    named = {row.method: style.name(row.method) for row in dots}
    looks = style.looks(named.values())
    left = _panel(data.rows, dots, "epsilon", (ENVY, BOTH), "envy ε", looks)
    right = _panel(data.rows, dots, "sigma", (SHARE,), "share σ of the equal split", looks)
    return alt.hconcat(left, right).resolve_scale(y="shared"), f"n = {counted(len(dots), 'mechanism')}."


def _panel(
    rows: list[FrontierRow], dots: list[FrontierRow], by: str, kinds: tuple[str, ...], title: str, looks: Any
) -> Any:
    """Return the curves of some kinds with the mechanisms over a measure of fairness."""
    lines = [
        {"curve": LINES[row.kind], "x": getattr(row, by), "lost": 100 * row.price_at_most}
        for row in rows
        if row.kind in kinds and row.price_at_most is not None and row.verified
    ]
    points = [
        {"method": style.name(row.method), "x": min(getattr(row, by), 1.0), "lost": 100 * (row.price_at_most or 0.0)}
        for row in dots
    ]
    axis, height = style.x("x", title, domain=[0.0, 1.0]), style.y("lost", "total efficiency lost [%]")
    size: dict[str, Any] = {"width": (style.WIDTH - 80) // 2, "height": 240}
    dashes = {name: list(look.dash) for name, look in style.looks(LINES.values()).items()}
    curve = alt.Chart(style.rows(lines), **size).mark_line(color=style.INK)
    names = list(dict.fromkeys(point["method"] for point in points))
    colours = alt.Scale(domain=names, range=[looks[name].colour for name in names])
    shapes = alt.Scale(domain=names, range=[looks[name].mark for name in names])
    mark = alt.Chart(style.rows(points), **size).mark_point(filled=True, size=60, opacity=0.9)
    return alt.layer(
        curve.encode(axis, height, strokeDash=style.keyed(alt.StrokeDash, "curve", dashes)),
        mark.encode(
            axis,
            height,
            tooltip=style.tip("method", "x", "lost"),
            color=alt.Color("method:N", title=None, scale=colours),
            shape=alt.Shape("method:N", title=None, scale=shapes),
        ),
    )


@figure("prices.prices", "Prices over instances", of="prices")
def drawn_prices(data: Distribution) -> Drawn:
    """Price of each property on each instance, in per cent of the largest total efficiency, at most; ticks: means."""
    rows = [row for row in data.found.prices if row.instances == 1]
    means = [row for row in data.found.prices if row.mean is not None]
    records = [
        {"property": row.requires, "price": 100 * row.price_at_most, "instance": clean(row.instance, 60)}
        for row in rows
    ]
    names = list(dict.fromkeys(row.requires for row in rows))
    side, axis = style.listed(alt.Y, "property", names), style.x("price", "total efficiency lost [%]")
    size: dict[str, Any] = {"width": style.WIDTH - 160, "height": alt.Step(2 * style.ROW)}
    dots = alt.Chart(style.rows(records), **size).mark_point(color=style.ACCENT, opacity=0.6)
    marks = alt.Chart(
        style.rows([{"property": row.requires, "price": 100 * (row.mean or 0.0)} for row in means]), **size
    )
    tick = marks.mark_tick(color=style.INK, thickness=2.5, size=22)
    shown = dots.encode(side, axis, tooltip=style.tip("instance", "price"))
    return alt.layer(shown, tick.encode(side, axis)), f"n = {counted(len(data.found.instances), 'instance')}."
