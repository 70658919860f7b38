"""Figures of OEF: who gets which devices, what each tenant makes of them, and who envies whom.

With few tenants each has its own bar or cell. With more, tenants stand in the order of their speedup on the fastest GPU
type, and neighbours are averaged where cells would become too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

from schedgap.harness.figure import Drawn, figure
from schedgap.harness.plots import style
from schedgap.harness.plots.results import Compared, some
from schedgap.harness.text import clean, counted
from schedgap.harness.verify import TOLERANCE
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.views.oef import Allocation, View, efficiency

FEW_TENANTS = 8
"""Up to so many tenants have their own bars and colours."""

CELLS = 24
"""Largest number of tenants side by side in a heat map; more are averaged in groups."""

MAX_PANELS = 12
MAX_TENANTS = 2000
"""Envy compares all pairs: beyond, the matrix takes more memory and time than a figure is worth."""

ENVY = ["#f2a58e", "#7a0016"]
"""Colours of the least and the largest gain; where nobody envies, nothing is drawn."""


def _allocations(data: Compared) -> dict[str, Allocation]:
    """Return the verified allocations that are drawn, by method."""
    known = [(method, d) for method, d in data.decisions.items() if isinstance(d, Allocation)]
    return dict(some(known[:MAX_PANELS]))


def ranked(speedup: Array) -> list[Ints]:
    """Return tenants by speedup, slowest first, in at most :data:`CELLS` groups of neighbours."""
    return np.array_split(np.argsort(speedup, kind="stable"), min(len(speedup), CELLS))


def _ranked_tenants(view: View) -> tuple[list[Ints], list[str]]:
    """Return the groups of tenants by true speedup on the fastest type, each with the name of its first tenant."""
    groups = ranked(per_tenant(view, view.true_speedups[:, -1]))
    return groups, _names(view.tenants, groups)


def _names(tenants: Sequence[str], groups: Sequence[Ints]) -> list[str]:
    """Return the name of each group's first tenant, different ones for different groups."""
    names = [clean(tenants[group[0]], 9) for group in groups]
    return [text if names.index(text) == i else f"{text} ({i + 1})" for i, text in enumerate(names)]


def per_tenant(view: View, values: Array) -> Array:
    """Sum the rows of virtual tenants to real tenants, ``(v, …)`` to ``(n, …)``."""
    total = np.zeros((len(view.tenants), *values.shape[1:]))
    np.add.at(total, view.owner, values)
    return total


def _words(data: Compared, what: str) -> str:
    """Return the end of a caption: how it is drawn, n, and what is not drawn."""
    drawn, possible = len(_allocations(data)), len(data.decisions)
    more = f" The first {drawn} of {possible} methods are shown." if possible > drawn else ""
    return f"{what} {data.n(drawn, counted(len(data.view.tenants), 'tenant'))}{more}".strip()


@figure("oef.efficiency", "Efficiency per tenant", of="instance")
def efficiencies(data: Compared) -> Drawn:
    """Efficiency of every tenant at its true speedups."""
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
        look = {"xOffset": alt.XOffset("method:N", sort=order), **style.colour(data.looks, order)}
        told = ["method", "tenant", "efficiency", ("split", "equal split")]
        height = style.y("efficiency", "efficiency [slowest-GPU equivalents]")
        line = alt.MarkDef("tick", color=style.INK, thickness=1.5, bandSize=60)
        drawn = style.plot(bars, "bar", place, height, told=told, **look)
        chart = alt.layer(drawn, style.plot(bars, line, place, alt.Y("split:Q"), told=["tenant", "split"]))
        return chart, _words(data, "In slowest-GPU equivalents; lines: equal split.")
    words = (
        "Divided by that of the equal split (1: the same, purple: worse, orange: better); neighbours in order of "
        "speedup are averaged if many."
    )
    groups, names = _ranked_tenants(view)
    cells = [
        {"method": style.name(method), "tenant": tenant, "value": value, "text": f"{value:.2f}"}
        for method, values in reached.items()
        for tenant, value in zip(names, ((values / split)[group].mean() for group in groups), strict=True)
    ]
    relative = [cell["value"] for cell in cells]
    # one tenant that takes a whole type would leave no colour for all the others
    away = min(1.0, max(max(relative) - 1.0, 1.0 - min(relative), 0.05))
    colours = alt.Scale(scheme="purpleorange", domain=[1.0 - away, 1.0 + away], clamp=True, domainMid=1.0)
    ratio = "efficiency / equal split"
    chart = style.plot(
        cells,
        "rect",
        alt.X("tenant:N", sort=names, title="tenants by speedup on the fastest type, lowest first"),
        alt.Y("method:N", sort=list(map(style.name, reached)), title=None),
        color=alt.Color("value:Q", scale=colours, title=ratio),
        told=["method", "tenant", ("text", ratio)],
        size=(style.WIDTH - 120, alt.Step(style.ROW)),
    )
    return chart, _words(data, words)


def envy(view: View, devices: Array) -> Array:
    """Return by how much row l would gain with row i's devices: ``(v, v)``, 0.5 for half as much again.

    Devices count per unit of weight, at the reported speedups and to the tolerance of the checker, because
    envy-freeness is a claim about what tenants report. Infinite where a tenant has nothing of use.
    """
    value = view.speedups @ (devices / view.weight[:, None]).T
    own = np.diagonal(value)[:, None]
    gain = np.divide(value - own, own, out=np.full_like(value, np.inf), where=own > 0)
    noticed = value - own > TOLERANCE * (view.split_efficiency / view.weight)[:, None]
    return np.where(noticed, gain, 0.0)


@figure("oef.envy", "Who envies whom", of="instance")
def envies(data: Compared) -> Drawn:
    """Envy at the reported speedups, per unit of weight, in the order of speedups.

    Colour: how much a tenant (row) would gain with another's devices (column), in per cent up to 100; nothing is drawn
    where it would gain nothing.
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
            if value > 0 or i == j  # the diagonal keeps all tenants on both axes; nobody envies itself
        ]
    few = alt.Axis(labels=len(names) <= FEW_TENANTS, ticks=False)
    sides = ((alt.X, "envied"), (alt.Y, "envying"))
    axes = [style.listed(axis, who, names, f"{who} tenant").axis(few) for axis, who in sides]
    colours = alt.Color("gain:Q", scale=alt.Scale(domain=[0, 100], range=ENVY), title="gain [%]")
    seen = alt.when(alt.datum.gain > 0).then(colours).otherwise(alt.value("transparent"))
    told = "method", "envying", "envied", ("gain", "gain [%]")
    place: dict[str, Any] = {"size": (170, 120), "frame": style.FAINT, "panels": list(titles.values()), "columns": 3}
    chart = style.plot(cells, "rect", *axes, color=seen, told=told, **place)
    more = "" if len(groups) == view.size else "The largest of each group of neighbours in order of speedup."
    return chart, _words(data, more)


@figure("oef.devices", "Devices by type and tenant", of="instance")
def devices(data: Compared) -> Drawn:
    """Devices of each GPU type (slowest left) by tenant."""
    view: View = data.view
    held = {style.name(method): per_tenant(view, d.devices) for method, d in _allocations(data).items()}
    kinds = [clean(kind, 9) for kind in view.gpu_types]
    few = len(view.tenants) <= FEW_TENANTS
    each = [np.array([i]) for i in range(len(view.tenants))], [clean(tenant, 14) for tenant in view.tenants]
    groups, names = each if few else _ranked_tenants(view)
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
    chart = style.plot(cells, "bar", *axes, told=["method", "tenant", "type", "devices"], **look, **place)
    words = "Colours: tenants by speedup on the fastest type, the lowest dark; of many, neighbours together."
    return chart, _words(data, "" if few else words)
