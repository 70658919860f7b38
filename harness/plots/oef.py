"""Figures of OEF: who gets which devices, what each tenant makes of them, and who envies whom.

With few tenants each has its own bar or node. With more, tenants stand in the order of their speedup on the
fastest GPU type, as cells of a heat map, and neighbours are averaged where cells would become too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from schedgap.harness.plots.figures import FIGURES, FigureInput, FigureSpec, counted
from schedgap.harness.plots.style import (
    DASHED,
    INK,
    MUTED,
    PALETTE,
    bins,
    heat_map,
    is_first_column,
    label,
    legend_below,
    one_axes,
    panels,
    sparse_ticks,
    text_colour,
)
from schedgap.harness.text import number
from schedgap.harness.verify import TOLERANCE
from schedgap.instances.views.oef import Allocation, View, efficiency

Array = NDArray[np.float64]

FEW_TENANTS = 8
"""Up to so many tenants have their own bars and colours."""

FEW_NODES = 12
"""Up to so many tenants are nodes of a graph; of more, the arrows hide each other."""

CELLS = 40
"""Largest number of tenants side by side in a heat map; more are averaged in groups."""

NUMBERED_CELLS = 20
"""Up to so many tenants have their number printed in the heat map."""

MAX_PANELS = 12
MAX_TENANTS = 2000
"""Envy compares all pairs: beyond, the matrix takes more memory and time than a figure is worth."""

NODE = 430
ARC = "arc3,rad=0.16"
"""Size of a node, and a bend that keeps an arrow there apart from the arrow back."""

SLIM: dict[str, Any] = {"pad": 0.02, "aspect": 35, "fraction": 0.04}
"""A colour bar that leaves the width to the panels."""

ENVY_COLOURS = sns.light_palette(PALETTE[3], as_cmap=True)


def _allocations(data: FigureInput) -> list[tuple[str, Allocation]]:
    """Return the verified allocations that are drawn, by method."""
    return [(m, d) for m, d in data.decisions.items() if isinstance(d, Allocation)][:MAX_PANELS]


def _order(view: View) -> NDArray[np.intp]:
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
    seeds = " Of several seeds the first is shown." if len({row.seed for row in data.rows}) > 1 else ""
    more = f" The first {drawn} of {possible} methods are shown." if possible > drawn else ""
    tenants, methods = counted(len(data.view.tenants), "tenant"), counted(drawn, "method")
    return f"n = {tenants}, {methods} on {data.where}.{more}{seeds}{data.left_out}"


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
    if _few_bars(data):
        return _efficiency_bars(view, methods, reached, split)
    order = _order(view)
    return _efficiency_map(view, methods, reached[:, order] / split[order])


def _few_bars(data: FigureInput) -> bool:
    return len(data.view.tenants) <= FEW_TENANTS and len(_allocations(data)) <= len(PALETTE)


def _efficiency_bars(view: View, methods: Sequence[str], reached: Array, split: Array) -> Figure:
    figure, ax = one_axes(3.2)
    width = 0.84 / len(methods)
    places = np.arange(len(split))
    for i, values in enumerate(reached):
        ax.bar(places - 0.42 + (i + 0.5) * width, values, width * 0.92, color=PALETTE[i])
    ax.hlines(split, places - 0.46, places + 0.46, color=INK, ls=DASHED, lw=1.3, zorder=3)
    ax.set_xticks(places, [label(name, 14) for name in view.tenants])
    ax.tick_params(axis="x", length=0)
    ax.grid(axis="y")
    ax.set(xlabel="tenant", ylabel="efficiency\n[slowest-GPU equivalents]")
    names = [Patch(color=PALETTE[i], label=method) for i, method in enumerate(methods)]
    legend_below(figure, [*names, Line2D([], [], color=INK, ls=DASHED, lw=1.3, label="equal split")], 3)
    return figure


def _efficiency_map(view: View, methods: Sequence[str], relative: Array) -> Figure:
    """Draw methods × tenants (in order of speedup), coloured by efficiency relative to the equal split."""
    groups = bins(relative.shape[1], CELLS)
    cells = np.array([[row[group].mean() for group in groups] for row in relative])
    figure, ax = one_axes(1.6 + 0.3 * len(methods))
    # one tenant that takes a whole type would leave no colour for all the others
    away = min(1.0, max(cells.max() - 1.0, 1.0 - cells.min(), 0.05))
    extend = "max" if cells.max() > 1.0 + away else "neither"
    sns.heatmap(
        cells,
        ax=ax,
        cmap="PuOr_r",
        vmin=1.0 - away,
        vmax=1.0 + away,
        annot=len(groups) <= NUMBERED_CELLS,
        fmt=".2f" if len(groups) <= NUMBERED_CELLS / 2 else ".1f",
        annot_kws={"fontsize": 6.5},
        linewidths=0.4,
        cbar_kws={"label": "efficiency / equal split [1]", "pad": 0.02, "extend": extend},
    )
    sparse_ticks(ax, "x", _group_labels(view, groups), 10)
    sparse_ticks(ax, "y", [label(method, 30) for method in methods], len(methods))
    ax.set_xlabel("tenants by speedup on the fastest type, lowest first")
    return figure


def _group_labels(view: View, groups: Sequence[NDArray[np.intp]]) -> list[str]:
    """Return the name of each group's first tenant in order of speedup."""
    order = _order(view)
    return [label(view.tenants[order[group[0]]], 9) for group in groups]


def _caption_efficiency(data: FigureInput) -> str:
    what = (
        "Efficiency of every tenant at its true speedups, in slowest-GPU equivalents; dashed: equal split."
        if _few_bars(data)
        else "Efficiency of the tenants at their true speedups, divided by that of the equal split (1: the "
        "same, purple: worse, orange: better); neighbours in order of speedup are averaged if many."
    )
    return f"{what} {_sample(data)}"


# ---------------------------------------------------------------- envy


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


def draw_envy(data: FigureInput) -> Figure | None:
    """Draw who envies whom: a small graph per method, or a matrix where tenants are many."""
    allocations = _allocations(data)
    if not allocations or not 2 <= data.view.size <= MAX_TENANTS:
        return None
    view = data.view
    few = view.size <= FEW_NODES
    figure, axes = panels(len(allocations), 1.75)
    for ax, (method, allocation) in zip(axes, allocations, strict=True):
        gain = envy(view, allocation.devices)
        pairs = int(np.count_nonzero(gain))
        (_envy_graph if few else _envy_matrix)(ax, view, gain)
        words = f"{pairs} of {view.size * (view.size - 1)} pairs envy" if pairs else "nobody envies anybody"
        ax.set_title(f"{label(method, 30)}\n{words}", fontsize=8.5)
    if not few:
        figure.supxlabel("envied tenant (by speedup, slowest left)", fontsize=9)
        figure.supylabel("envying tenant (slowest on top)", fontsize=9)
        figure.colorbar(axes[0].images[0], ax=axes, label="gain [%]", **SLIM)
    return figure


def _envy_graph(ax: Axes, view: View, gain: Array) -> None:
    """Draw tenants on a circle, the first on top, and an arrow for each that envies."""
    graph = nx.from_numpy_array(np.minimum(gain, 1.0), create_using=nx.DiGraph)
    angles = np.pi / 2 - 2 * np.pi * np.arange(view.size) / view.size
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    places = dict(enumerate(circle))
    names = {i: label(text, 9) for i, text in enumerate(view.labels)}
    inside = max(map(len, names.values())) <= 4
    beside = places if inside else dict(enumerate(circle * [1.55, 1.36]))
    node = NODE if inside else NODE / 4
    widths = [0.8 + 1.8 * edge["weight"] for _, _, edge in graph.edges(data=True)]
    nx.draw_networkx_nodes(graph, places, ax=ax, node_size=node, node_color="white", edgecolors=MUTED)
    nx.draw_networkx_labels(graph, beside, names, ax=ax, font_size=7, font_color=INK)
    nx.draw_networkx_edges(
        graph,
        places,
        ax=ax,
        node_size=node,
        width=widths,
        edge_color=PALETTE[3],
        connectionstyle=ARC,
        arrowsize=9,
    )
    ax.set(xlim=(-1.9, 1.9), ylim=(-1.5, 1.5), aspect="equal")
    ax.axis("off")


def _envy_matrix(ax: Axes, view: View, gain: Array) -> None:
    """Draw the gain of every row of tenants with the devices of every column, the largest of each group."""
    order = np.argsort(view.speedups[:, -1], kind="stable")
    starts = [int(group[0]) for group in bins(view.size, CELLS)]
    by_speedup = np.minimum(gain, 1.0)[np.ix_(order, order)]
    cells = np.maximum.reduceat(np.maximum.reduceat(by_speedup, starts, axis=0), starts, axis=1)
    heat_map(ax, 100 * cells, ENVY_COLOURS, Normalize(0.0, 100.0))


def _caption_envy(data: FigureInput) -> str:
    shape = (
        "an arrow leads from a tenant to one whose devices it would rather have, the wider the more it gains"
        if data.view.size <= FEW_NODES
        else "how much a tenant (row) would gain with another's devices (column), in per cent up to 100; "
        "the largest of each group of neighbours in order of speedup"
    )
    return f"Envy at the reported speedups, per unit of weight: {shape}. {_sample(data)}"


# ---------------------------------------------------------------- devices


def draw_devices(data: FigureInput) -> Figure | None:
    """Draw which tenant gets how many devices of each type."""
    held = [(method, per_tenant(data.view, d.devices)) for method, d in _allocations(data)]
    if not held:
        return None
    if len(data.view.tenants) <= FEW_TENANTS:
        return _device_bars(data.view, held)
    return _device_maps(data.view, held)


def _device_bars(view: View, held: Sequence[tuple[str, Array]]) -> Figure:
    figure, axes = panels(len(held), 2.0, sharey=True)
    for ax, (method, devices) in zip(axes, held, strict=True):
        ax.set_title(label(method, 30), fontsize=8.5)
        _stacks(ax, view, devices)
    names = [Patch(color=PALETTE[i], label=label(name, 16)) for i, name in enumerate(view.tenants)]
    idle = Patch(facecolor="none", edgecolor=MUTED, linestyle=":", label="idle")
    legend_below(figure, [*names, idle], 5)
    return figure


def _stacks(ax: Axes, view: View, devices: Array) -> None:
    """Draw one stacked bar per GPU type."""
    places = np.arange(len(view.gpu_types))
    ax.bar(places, view.capacity, 0.7, fill=False, edgecolor=MUTED, linewidth=0.7, linestyle=":")
    base = np.zeros(len(places))
    for row, colour in zip(devices, PALETTE, strict=False):
        bars = ax.bar(places, row, 0.7, base, color=colour, edgecolor="white")
        shown = [number(height, 2) if height >= 0.12 * view.capacity.max() else "" for height in row]
        ax.bar_label(bars, shown, label_type="center", fontsize=7, color=text_colour(colour))
        base += row
    ax.set_xticks(places, [label(name, 9) for name in view.gpu_types])
    ax.set_ylabel("devices" if is_first_column(ax) else "")
    ax.tick_params(axis="x", length=0)


def _device_maps(view: View, held: Sequence[tuple[str, Array]]) -> Figure:
    order = _order(view)
    groups = bins(len(order), CELLS)
    names = _group_labels(view, groups)
    figure, axes = panels(len(held), 1.9)
    cells = [np.array([devices[order[group]].mean(axis=0) for group in groups]) for _, devices in held]
    # by the square root, so that small shares show beside whole types in one hand
    norm = PowerNorm(0.5, 0.0, max(float(values.max()) for values in cells))
    for ax, (method, _), values in zip(axes, held, cells, strict=True):
        heat_map(ax, values, "viridis", norm)
        sparse_ticks(ax, "x", [label(name, 9) for name in view.gpu_types], 6, room=22)
        if is_first_column(ax):
            sparse_ticks(ax, "y", names, 6)
        ax.set_title(label(method, 30), fontsize=8.5)
    figure.colorbar(axes[0].images[0], ax=axes, label="devices per tenant", **SLIM)
    return figure


def _caption_devices(data: FigureInput) -> str:
    what = (
        "Devices of each GPU type (slowest left) by tenant; dotted outlines: devices there are."
        if len(data.view.tenants) <= FEW_TENANTS
        else "Devices of each GPU type (slowest left) per tenant; tenants by speedup on the fastest type "
        "(lowest on top), neighbours averaged where there are many."
    )
    return f"{what} {_sample(data)}"


FIGURES.register(FigureSpec("efficiency", "oef", "Efficiency per tenant", _caption_efficiency, draw_efficiency, True))
FIGURES.register(FigureSpec("envy", "oef", "Who envies whom", _caption_envy, draw_envy, True))
FIGURES.register(FigureSpec("devices", "oef", "Devices by type and tenant", _caption_devices, draw_devices, True))
