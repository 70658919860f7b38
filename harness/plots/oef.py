"""Figures of OEF: who gets which devices, what each tenant makes of them, and who envies whom.

With few tenants each has its own bar or node. With more, tenants stand in the order of their speedup on the fastest
GPU type, as cells of a heat map, and neighbours are averaged where the cells would become too small.
"""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from harness.plots.figures import FIGURES, FigureInput, FigureSpec
from harness.plots.style import (
    INK,
    MUTED,
    PALETTE,
    bins,
    label,
    legend_below,
    one_axes,
    panels,
    sparse_ticks,
    text_colour,
)
from harness.render.text import number
from instances.views.oef import Allocation, View, efficiency

Array = NDArray[np.float64]

FEW_TENANTS = 8
"""Up to so many tenants have their own bars and colours."""

FEW_NODES = 12
"""Up to so many tenants are nodes of a graph; of more, the edges hide each other."""

CELLS = 40
"""Largest number of tenants side by side in a heat map; more are averaged in groups."""

MAX_PANELS = 12
MAX_TENANTS = 2000
"""Envy compares all pairs: beyond, the matrix no longer fits a figure's budget of time and memory."""

ENVY = 1e-6
"""Relative advantage of another's devices from which a tenant envies: the tolerance of the checks."""


def _allocations(data: FigureInput) -> list[tuple[str, Allocation]]:
    """Return the verified allocations that are drawn, by method."""
    return [(m, d) for m, d in data.decisions.items() if isinstance(d, Allocation)][:MAX_PANELS]


def _order(view: View) -> NDArray[np.int64]:
    """Return the tenants by speedup on the fastest type, slowest first."""
    return np.argsort(per_tenant(view, view.true_speedups[:, -1]), kind="stable")


def per_tenant(view: View, values: Array) -> Array:
    """Sum the rows of virtual tenants to real tenants, ``(v, …)`` to ``(n, …)``."""
    total = np.zeros((len(view.tenants), *values.shape[1:]))
    np.add.at(total, view.owner, values)
    return total


def _sample(data: FigureInput) -> str:
    """Return n, and what is not drawn, for the end of a caption."""
    drawn, possible = len(_allocations(data)), len(data.decisions)
    rows = [row for row in data.rows if row.verified and row.method in data.decisions]
    seeds = " Of several seeds the first is shown." if len({row.seed for row in rows}) > 1 else ""
    more = f" The first {drawn} of {possible} methods are shown." if possible > drawn else ""
    wrong = sum(row.verified is False for row in data.rows)
    out = f" Not drawn: {wrong} WRONG." if wrong else ""
    return f"n = {len(data.view.tenants)} tenants, {drawn} methods on {data.where}.{more}{seeds}{out}"


# ---------------------------------------------------------------- efficiency per tenant


def draw_efficiency(data: FigureInput) -> Figure | None:
    """Draw every tenant's efficiency under every method, beside what the equal split would give it."""
    allocations = _allocations(data)
    if not allocations:
        return None
    view = data.view
    split = per_tenant(view, efficiency(view.true_speedups, view.equal_split))
    reached = np.array([per_tenant(view, efficiency(view.true_speedups, d.devices)) for _, d in allocations])
    methods = [method for method, _ in allocations]
    if len(view.tenants) <= FEW_TENANTS and len(methods) <= len(PALETTE):
        return _efficiency_bars(view, methods, reached, split)
    order = _order(view)
    return _efficiency_map(view, methods, reached[:, order] / split[order], order)


def _efficiency_bars(view: View, methods: Sequence[str], reached: Array, split: Array) -> Figure:
    figure, ax = one_axes(3.2)
    width = 0.84 / len(methods)
    places = np.arange(len(split))
    for i, values in enumerate(reached):
        ax.bar(places - 0.42 + (i + 0.5) * width, values, width * 0.92, color=PALETTE[i])
    ax.hlines(split, places - 0.46, places + 0.46, color=INK, ls=(0, (3, 1.5)), lw=1.3, zorder=3)
    ax.set_xticks(places, [label(name, 14) for name in view.tenants])
    ax.tick_params(axis="x", length=0)
    ax.grid(axis="y")
    ax.set(xlabel="tenant", ylabel="efficiency [devices of the slowest type]")
    names = [Patch(color=PALETTE[i], label=method) for i, method in enumerate(methods)]
    legend_below(
        figure, [*names, Line2D([], [], color=INK, ls=(0, (3, 1.5)), lw=1.3, label="equal split")], 3
    )
    return figure


def _efficiency_map(view: View, methods: Sequence[str], relative: Array, order: NDArray[np.int64]) -> Figure:
    groups = bins(relative.shape[1], CELLS)
    cells = np.array([[row[group].mean() for group in groups] for row in relative])
    figure, ax = one_axes(1.5 + 0.3 * len(methods))
    sns.heatmap(
        cells,
        ax=ax,
        cmap="PuOr_r",
        center=1.0,
        vmax=max(cells.max(), 2.0 - cells.min()),
        annot=len(groups) <= 20,
        fmt=".2f",
        annot_kws={"fontsize": 6.5},
        linewidths=0.4,
        cbar_kws={"label": "efficiency / equal split [1]", "pad": 0.02},
    )
    sparse_ticks(ax, "x", _group_labels(view, order, groups), 10)
    sparse_ticks(ax, "y", [label(method, 30) for method in methods], len(methods))
    ax.set_xlabel("tenants by speedup on the fastest type, lowest first")
    return figure


def _group_labels(view: View, order: NDArray[np.int64], groups: Sequence[NDArray[np.int64]]) -> list[str]:
    """Return the name of each group's first tenant."""
    return [label(view.tenants[order[group[0]]], 9) for group in groups]


def _caption_efficiency(data: FigureInput) -> str:
    few = len(data.view.tenants) <= FEW_TENANTS
    what = (
        "Efficiency of every tenant, in devices of the slowest type, at its true speedups; dashed: equal split."
        if few
        else "Efficiency of the tenants at their true speedups, divided by that of the equal split (1: the same; "
        "purple: worse, orange: better); neighbours in order of speedup are averaged where there are many."
    )
    return f"{what} {_sample(data)}"


# ---------------------------------------------------------------- envy


def envy(view: View, devices: Array) -> Array:
    """Return by how much row l would be better off with row i's devices: ``(v, v)``, 0.5 for half as much again.

    Devices count per unit of weight, at the reported speedups: envy-freeness is a claim about what tenants report.
    """
    per_weight = devices / view.weight[:, None]
    value = view.speedups @ per_weight.T
    own = np.diagonal(value)[:, None]
    gain = np.divide(value - own, own, out=np.where(value > own, np.inf, 0.0), where=own > 0)
    return np.where(gain > ENVY, gain, 0.0)


def draw_envy(data: FigureInput) -> Figure | None:
    """Draw who envies whom: a small graph per method, or a matrix where tenants are many."""
    allocations = _allocations(data)
    view = data.view if allocations else None
    if view is None or not 2 <= view.size <= MAX_TENANTS:
        return None
    draw = _envy_graph if view.size <= FEW_NODES else _envy_matrix
    figure, axes = panels(len(allocations), 2.1)
    for ax, (method, allocation) in zip(axes, allocations, strict=True):
        gain = envy(view, allocation.devices)
        pairs = int(np.count_nonzero(gain))
        draw(ax, view, gain)
        words = f"{pairs} of {view.size * (view.size - 1)} pairs envy" if pairs else "nobody envies anybody"
        ax.set_title(f"{label(method, 30)}\n{words}", fontsize=8.5)
    return figure


def _envy_graph(ax: Axes, view: View, gain: Array) -> None:
    graph = nx.from_numpy_array(
        np.where(np.isfinite(gain), gain, gain[np.isfinite(gain)].max() + 1.0), create_using=nx.DiGraph
    )
    places = nx.circular_layout(graph)
    names = {i: label(text, 8) for i, text in enumerate(view.labels)}
    strength = np.array([edge["weight"] for _, _, edge in graph.edges(data=True)])
    widths = 0.8 + 1.8 * np.minimum(strength, 1.0)
    nx.draw_networkx_nodes(
        graph, places, ax=ax, node_size=430, node_color="white", edgecolors=MUTED, linewidths=1
    )
    nx.draw_networkx_labels(graph, places, names, ax=ax, font_size=7, font_color=INK)
    nx.draw_networkx_edges(
        graph,
        places,
        ax=ax,
        node_size=430,
        width=widths,
        edge_color=PALETTE[3],
        connectionstyle="arc3,rad=0.16",
        arrowsize=9,
    )
    ax.set(xlim=(-1.45, 1.45), ylim=(-1.35, 1.35), aspect="equal")
    ax.axis("off")


def _envy_matrix(ax: Axes, view: View, gain: Array) -> None:
    order = np.argsort(view.speedups[:, -1], kind="stable")
    groups = bins(view.size, CELLS)
    sorted_gain = np.minimum(gain, 1.0)[np.ix_(order, order)]
    cells = np.array([[sorted_gain[np.ix_(a, b)].max() for b in groups] for a in groups])
    names = [label(view.labels[order[group[0]]], 9) for group in groups]
    colours = sns.light_palette(PALETTE[3], as_cmap=True)
    sns.heatmap(
        100 * cells,
        ax=ax,
        cmap=colours,
        vmin=0,
        vmax=100,
        square=True,
        cbar_kws={"label": "gain [%]", "shrink": 0.8},
    )
    sparse_ticks(ax, "x", names, 3)
    sparse_ticks(ax, "y", names, 5)
    ax.set(xlabel="envied", ylabel="envies")


def _caption_envy(data: FigureInput) -> str:
    shape = (
        "an arrow leads from a tenant to one whose devices it would rather have; the wider, the more it would gain"
        if data.view.size <= FEW_NODES
        else "cells show how much a tenant (row) would gain with the devices of another (column), in per cent, at most "
        "100; in groups of neighbours the largest"
    )
    return f"Envy at the reported speedups, per unit of weight: {shape}. {_sample(data)}"


# ---------------------------------------------------------------- devices


def draw_devices(data: FigureInput) -> Figure | None:
    """Draw which tenant gets how many devices of each type."""
    allocations = _allocations(data)
    if not allocations:
        return None
    view = data.view
    few = len(view.tenants) <= FEW_TENANTS
    figure, axes = panels(len(allocations), 2.0, sharey=few)
    held = [per_tenant(view, allocation.devices) for _, allocation in allocations]
    order = _order(view)
    top = max(float(devices.max()) for devices in held)
    for i, (ax, (method, _), devices) in enumerate(zip(axes, allocations, held, strict=True)):
        ax.set_title(label(method, 30), fontsize=8.5)
        if few:
            _device_bars(ax, view, devices)
            ax.set_ylabel("devices" if i % 3 == 0 else "")
        else:
            _device_map(ax, view, devices[order], order, top)
    if few:
        legend_below(figure, _tenant_legend(view), 5)
    return figure


def _device_bars(ax: Axes, view: View, devices: Array) -> None:
    places = np.arange(len(view.gpu_types))
    ax.bar(places, view.capacity, 0.7, fill=False, edgecolor=MUTED, linewidth=0.7, linestyle=":")
    base = np.zeros(len(places))
    for tenant, row in enumerate(devices):
        ax.bar(places, row, 0.7, base, color=PALETTE[tenant], edgecolor="white")
        for x, height in enumerate(row):
            if height >= 0.12 * view.capacity.max():
                where = (x, base[x] + height / 2)
                ax.text(
                    *where,
                    number(height, 2),
                    ha="center",
                    va="center",
                    fontsize=7,
                    color=text_colour(PALETTE[tenant]),
                )
        base += row
    ax.set_xticks(places, [label(name, 9) for name in view.gpu_types])
    ax.tick_params(axis="x", length=0)


def _tenant_legend(view: View) -> list[Patch]:
    names = [Patch(facecolor=PALETTE[i], label=label(name, 16)) for i, name in enumerate(view.tenants)]
    return [*names, Patch(facecolor="none", edgecolor=MUTED, linestyle=":", label="idle")]


def _device_map(ax: Axes, view: View, devices: Array, order: NDArray[np.int64], top: float) -> None:
    groups = bins(len(devices), CELLS)
    cells = np.array([devices[group].mean(axis=0) for group in groups])
    sns.heatmap(cells, ax=ax, cmap="viridis", vmin=0.0, vmax=top, cbar_kws={"label": "devices per tenant"})
    sparse_ticks(ax, "y", _group_labels(view, order, groups), 8)
    sparse_ticks(ax, "x", [label(name, 9) for name in view.gpu_types], 4)


def _caption_devices(data: FigureInput) -> str:
    few = len(data.view.tenants) <= FEW_TENANTS
    what = (
        "Devices of each GPU type (slowest left) by tenant; dotted outlines: devices there are."
        if few
        else "Devices of each GPU type (slowest left) per tenant, tenants by speedup on the fastest type (lowest on top); "
        "groups of neighbours are averaged where there are many."
    )
    return f"{what} {_sample(data)}"


FIGURES.register(
    FigureSpec("efficiency", "oef", "Efficiency per tenant", _caption_efficiency, draw_efficiency, True)
)
FIGURES.register(FigureSpec("envy", "oef", "Who envies whom", _caption_envy, draw_envy, True))
FIGURES.register(
    FigureSpec("devices", "oef", "Devices by type and tenant", _caption_devices, draw_devices, True)
)
