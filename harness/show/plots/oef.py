"""Figures of OEF: the devices and the efficiency of each tenant, and envy between tenants.

Each of a few tenants has its own bar or cell. If there are more, they are ordered by their speedup on the fastest GPU
type, and neighbours are averaged where cells would become too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

from schedgap.harness.check import TOLERANCE
from schedgap.harness.show.figure import Drawn, figure
from schedgap.harness.show.plots import style
from schedgap.harness.show.plots.results import Compared, some
from schedgap.harness.show.text import clean
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.text import counted
from schedgap.instances.views.oef import Allocation, OefView, efficiency

FEW_TENANTS = 8
"""Maximum number of tenants with their own bars and colours."""

CELLS = 24
"""Maximum number of tenants along an axis of a heat map; more are averaged in groups."""

MAX_PANELS = 12
MAX_TENANTS = 2000
"""With more tenants, the matrix of envy between all pairs takes more memory and time than a figure is worth."""

ENVY = ["#f2a58e", "#7a0016"]
"""Colours of the smallest and the largest gain; pairs without envy are not drawn."""


def _allocations(data: Compared) -> dict[str, Allocation]:
    """Return the verified allocations that are drawn, by method."""
    allocations = [(method, d) for method, d in data.decisions.items() if isinstance(d, Allocation)]
    return dict(some(allocations[:MAX_PANELS]))


def ranked(speedup: Array) -> list[Ints]:
    """Return tenants by speedup, slowest first, in at most :data:`CELLS` groups of neighbours."""
    return np.array_split(np.argsort(speedup, kind="stable"), min(len(speedup), CELLS))


def _ranked_tenants(view: OefView) -> tuple[list[Ints], list[str]]:
    """Return the groups of tenants by true speedup on the fastest type, and the names of the groups."""
    groups = ranked(per_tenant(view, view.true_speedups[:, -1]))
    return groups, _names(view.tenants, groups)


def _names(tenants: Sequence[str], groups: Sequence[Ints]) -> list[str]:
    """Name each group after its first tenant, and number repeated names."""
    names = [clean(tenants[group[0]], 9) for group in groups]
    return [text if names.index(text) == i else f"{text} ({i + 1})" for i, text in enumerate(names)]


def per_tenant(view: OefView, values: Array) -> Array:
    """Add up the rows of each real tenant's virtual tenants, ``(v, …)`` → ``(n, …)``."""
    total = np.zeros((len(view.tenants), *values.shape[1:]))
    np.add.at(total, view.owner, values)
    return total


def _words(data: Compared, what: str) -> str:
    """Return the end of a caption: `what` explains the drawing, then n, and the number of methods shown."""
    drawn, possible = len(_allocations(data)), len(data.decisions)
    more = f" Only the first {drawn} of {possible} methods are shown." if possible > drawn else ""
    return f"{what} {data.n(drawn, counted(len(data.view.tenants), 'tenant'))}{more}".strip()


@figure("oef.efficiency", "Efficiency per tenant", of="instance")
def efficiencies(data: Compared) -> Drawn:
    """Efficiency of each tenant at its true speedups."""
    allocations, view = _allocations(data), data.view
    split = per_tenant(view, efficiency(view.true_speedups, view.equal_split))
    reached = {method: per_tenant(view, efficiency(view.true_speedups, d.devices)) for method, d in allocations.items()}
    if len(view.tenants) <= FEW_TENANTS:
        tenants = [clean(tenant, 14) for tenant in view.tenants]
        bars = [
            {"method": style.name(method), "tenant": tenant, "efficiency": value, "split": equal}
            for method, values in reached.items()
            for tenant, value, equal in zip(tenants, values, split, strict=True)
        ]
        order, place = list(map(style.name, reached)), alt.X("tenant:N", sort=None, title="tenant")
        look = {"xOffset": alt.XOffset("method:N", sort=order), **style.colour(data.looks, order, "bars")}
        tips = ["method", "tenant", "efficiency", ("split", "equal split")]
        height = style.y("efficiency", "efficiency [slowest-GPU equivalents]")
        line = alt.MarkDef("tick", color=style.INK, thickness=1.5, bandSize=60)
        drawn = style.plot(bars, "bar", place, height, tips=tips, **look)
        chart = alt.layer(drawn, style.plot(bars, line, place, alt.Y("split:Q"), tips=["tenant", "split"]))
        return chart, _words(data, "In slowest-GPU equivalents; lines: equal split.")
    words = (
        "Divided by the efficiency under an equal split (1: the same, purple: worse, orange: better); neighbours in "
        "the order of speedup are averaged if there are many tenants."
    )
    groups, names = _ranked_tenants(view)
    cells = [
        {"method": style.name(method), "tenant": tenant, "value": value, "text": f"{value:.2f}"}
        for method, values in reached.items()
        for tenant, value in zip(names, ((values / split)[group].mean() for group in groups), strict=True)
    ]
    relative = [cell["value"] for cell in cells]
    # Clamp the colours, or one tenant with a whole GPU type would use up the scale.
    away = min(1.0, max(max(relative) - 1.0, 1.0 - min(relative), 0.05))
    colours = alt.Scale(scheme="purpleorange", domain=[1.0 - away, 1.0 + away], clamp=True, domainMid=1.0)
    ratio = "efficiency / equal split"
    chart = style.plot(
        cells,
        "rect",
        alt.X("tenant:N", sort=names, title="tenants by speedup on the fastest type, lowest first"),
        alt.Y("method:N", sort=list(map(style.name, reached)), title=None),
        color=alt.Color("value:Q", scale=colours, title=ratio),
        tips=["method", "tenant", ("text", ratio)],
        size=(style.WIDTH - 120, alt.Step(style.ROW)),
    )
    return chart, _words(data, words)


def envy(view: OefView, devices: Array) -> Array:
    """Return the ``(v, v)`` relative gains of row l with row i's devices; 0.5 means 50 % more.

    Devices count per unit of weight, at the reported speedups and to the tolerance of the checker, because
    envy-freeness is a claim about reported values. The gain of a tenant whose own devices have no value is infinite.
    """
    value = view.speedups @ (devices / view.weight[:, None]).T
    own = np.diagonal(value)[:, None]
    gain = np.divide(value - own, own, out=np.full_like(value, np.inf), where=own > 0)
    noticed = value - own > TOLERANCE * (view.split_efficiency / view.weight)[:, None]
    return np.where(noticed, gain, 0.0)


@figure("oef.envy", "Who envies whom", of="instance")
def envies(data: Compared) -> Drawn:
    """Envy at the reported speedups, per unit of weight; tenants are in the order of their speedups.

    Colour: gain of a tenant (row) if it had another tenant's devices (column), in per cent, capped at 100; pairs
    without a gain are not drawn.
    """
    allocations, view = _allocations(data), data.view
    if not 2 <= view.size <= MAX_TENANTS:
        return None
    groups = ranked(view.speedups[:, -1])
    names = _names(view.labels, groups)
    cells, titles = [], {}
    for method, allocation in allocations.items():
        gain = envy(view, allocation.devices)
        pairs = int(np.count_nonzero(gain))
        words = f"{pairs} of {view.size * (view.size - 1)} pairs envy" if pairs else "nobody envies anybody"
        titles[method] = f"{style.name(method)}: {words}"
        largest = {(i, j): float(gain[np.ix_(a, b)].max()) for i, a in enumerate(groups) for j, b in enumerate(groups)}
        about = {"method": style.name(method), "panel": titles[method]}
        cells += [
            {**about, "envying": names[i], "envied": names[j], "gain": min(100 * value, 100.0)}
            for (i, j), value in largest.items()
            if value > 0 or i == j  # the diagonal, which has no envy, keeps all tenants on both axes
        ]
    few = alt.Axis(labels=len(names) <= FEW_TENANTS, ticks=False)
    sides = ((alt.X, "envied"), (alt.Y, "envying"))
    axes = [style.listed(axis, who, names, f"{who} tenant").axis(few) for axis, who in sides]
    colours = alt.Color("gain:Q", scale=alt.Scale(domain=[0, 100], range=ENVY), title="gain [%]")
    seen = alt.when(alt.datum.gain > 0).then(colours).otherwise(alt.value("transparent"))
    tips = "method", "envying", "envied", ("gain", "gain [%]")
    place: dict[str, Any] = {"size": (170, 120), "frame": style.FAINT, "panels": list(titles.values()), "columns": 3}
    chart = style.plot(cells, "rect", *axes, color=seen, tips=tips, **place)
    more = "" if len(groups) == view.size else "Cells show the largest gain between two groups of neighbouring tenants."
    return chart, _words(data, more)


@figure("oef.devices", "Devices by type and tenant", of="instance")
def devices(data: Compared) -> Drawn:
    """Devices of each GPU type by tenant; the slowest type is on the left."""
    view: OefView = data.view
    held = {style.name(method): per_tenant(view, d.devices) for method, d in _allocations(data).items()}
    kinds = [clean(kind, 9) for kind in view.gpu_types]
    few = len(view.tenants) <= FEW_TENANTS
    singles = [np.array([i]) for i in range(len(view.tenants))], [clean(tenant, 14) for tenant in view.tenants]
    groups, names = singles if few else _ranked_tenants(view)
    cells = [
        {"method": method, "panel": method, "type": kind, "tenant": tenant, "devices": value, "order": i}
        for method, amounts in held.items()
        for i, (tenant, group) in enumerate(zip(names, groups, strict=True))
        for kind, value in zip(kinds, amounts[group].sum(axis=0), strict=True)
        if value > 0
    ]
    axes = (
        alt.X("type:N", sort=kinds, title=None),
        style.y("devices", "devices", domain=[0.0, float(view.capacity.max())]),
    )
    ranks = alt.Color("order:Q", title="speedup on the fastest type, lowest first", legend=None)
    look: dict[str, Any] = {"color": style.named("tenant", names) if few else ranks, "order": "order:Q"}
    place: dict[str, Any] = {"size": (150, 130), "panels": list(held), "columns": 3}
    chart = style.plot(cells, "bar", *axes, tips=["method", "tenant", "type", "devices"], **look, **place)
    words = "Colours: tenants by speedup on the fastest type, from dark (lowest); neighbours are grouped if many."
    return chart, _words(data, "" if few else words)
