"""Figures of OEF: who gets which devices, what each tenant makes of them, and who envies whom.

With few tenants each has its own bar or node. With more, tenants stand in the order of their speedup on the
fastest GPU type, as cells of a heat map, and neighbours are averaged where cells would become too small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from schedgap.harness.figure import Drawn, figure
from schedgap.harness.plots.results import Compared, counted
from schedgap.harness.plots.style import (
    DASHED,
    INK,
    MUTED,
    PALETTE,
    Look,
    bins,
    heat_map,
    label,
    legend_below,
    one_axes,
    panels,
    sparse_ticks,
    text_colour,
)
from schedgap.harness.text import number
from schedgap.harness.verify import TOLERANCE
from schedgap.instances.arrays import Array
from schedgap.instances.views.oef import Allocation, View, efficiency

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


def _allocations(data: Compared) -> dict[str, Allocation]:
    """Return the verified allocations that are drawn, by method."""
    known = [(method, d) for method, d in data.decisions.items() if isinstance(d, Allocation)]
    return dict(known[:MAX_PANELS])


def _order(view: View) -> NDArray[np.intp]:
    """Return the tenants by speedup on the fastest type, slowest first."""
    return np.argsort(per_tenant(view, view.true_speedups[:, -1]), kind="stable")


def per_tenant(view: View, values: Array) -> Array:
    """Sum the rows of virtual tenants to real tenants, ``(v, …)`` to ``(n, …)``."""
    total = np.zeros((len(view.tenants), *values.shape[1:]))
    np.add.at(total, view.owner, values)
    return total


def _words(data: Compared, what: str) -> str:
    """Return the end of a caption: how it is drawn, n, and what is not drawn."""
    drawn, possible = len(_allocations(data)), len(data.decisions)
    more = f" The first {drawn} of {possible} methods are shown." if possible > drawn else ""
    return f"{what} {data.n(drawn, counted(len(data.view.tenants), 'tenant'))}{more}"


# ---------------------------------------------------------------- efficiency per tenant


@figure("oef.efficiency", "Efficiency per tenant", of="instance")
def efficiencies(data: Compared) -> Drawn:
    """Efficiency of every tenant at its true speedups."""
    allocations = _allocations(data)
    if not allocations:
        return None
    view = data.view
    split = per_tenant(view, efficiency(view.true_speedups, view.equal_split))
    reached = {method: per_tenant(view, efficiency(view.true_speedups, d.devices)) for method, d in allocations.items()}
    if len(view.tenants) <= FEW_TENANTS and len(allocations) <= len(PALETTE):
        words = "In slowest-GPU equivalents; dashed: equal split."
        return _efficiency_bars(view, reached, split, data.looks), _words(data, words)
    order = _order(view)
    words = (
        "Divided by that of the equal split (1: the same, purple: worse, orange: better); neighbours in order of "
        "speedup are averaged if many."
    )
    relative = np.array([values[order] / split[order] for values in reached.values()])
    return _efficiency_map(view, list(reached), relative), _words(data, words)


def _efficiency_bars(view: View, reached: Mapping[str, Array], split: Array, styles: Mapping[str, Look]) -> Figure:
    figure, ax = one_axes(3.2)
    frame = pd.DataFrame(dict(reached)).melt(ignore_index=False, var_name="method", value_name="efficiency")
    look = {"palette": {method: styles[method]["color"] for method in reached}, "saturation": 1, "width": 0.84}
    sns.barplot(frame, x=frame.index, y="efficiency", hue="method", gap=0.08, ax=ax, **look)
    handles = ax.get_legend_handles_labels()[0]
    ax.legend_ = None
    places = np.arange(len(split))
    ax.hlines(split, places - 0.46, places + 0.46, color=INK, ls=DASHED, lw=1.3, zorder=3, label="equal split")
    ax.set_xticks(places, [label(name, 14) for name in view.tenants])
    ax.tick_params(axis="x", length=0)
    ax.grid(axis="y")
    ax.set(xlabel="tenant", ylabel="efficiency\n[slowest-GPU equivalents]")
    legend_below(figure, [*handles, *ax.get_legend_handles_labels()[0][-1:]], 3)
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
    sparse_ticks(ax, "y", [label(method, 40) for method in methods], len(methods))
    ax.set_xlabel("tenants by speedup on the fastest type, lowest first")
    return figure


def _group_labels(view: View, groups: Sequence[NDArray[np.intp]]) -> list[str]:
    """Return the name of each group's first tenant in order of speedup."""
    order = _order(view)
    return [label(view.tenants[order[group[0]]], 9) for group in groups]


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


@figure("oef.envy", "Who envies whom", of="instance")
def envies(data: Compared) -> Drawn:
    """Envy at the reported speedups, per unit of weight."""
    allocations = _allocations(data)
    if not allocations or not 2 <= data.view.size <= MAX_TENANTS:
        return None
    view = data.view
    few = view.size <= FEW_NODES
    canvas, axes = panels(len(allocations), 1.75)
    for ax, (method, allocation) in zip(axes, allocations.items(), strict=True):
        gain = envy(view, allocation.devices)
        pairs = int(np.count_nonzero(gain))
        (_envy_graph if few else _envy_matrix)(ax, view, gain)
        words = f"{pairs} of {view.size * (view.size - 1)} pairs envy" if pairs else "nobody envies anybody"
        ax.set_title(f"{label(method, 30)}\n{words}")
    if few:
        shape = "An arrow leads from a tenant to one whose devices it would rather have, the wider the more it gains."
        return canvas, _words(data, shape)
    canvas.supxlabel("envied tenant (by speedup, slowest left)", fontsize=9)
    canvas.supylabel("envying tenant (slowest on top)", fontsize=9)
    canvas.colorbar(axes[0].images[0], ax=axes, label="gain [%]", **SLIM)
    shape = (
        "Colour: how much a tenant (row) would gain with another's devices (column), in per cent up to 100; the "
        "largest of each group of neighbours in order of speedup."
    )
    return canvas, _words(data, shape)


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
    heat_map(ax, 100 * cells, Normalize(0.0, 100.0), ENVY_COLOURS)


# ---------------------------------------------------------------- devices


@figure("oef.devices", "Devices by type and tenant", of="instance")
def devices(data: Compared) -> Drawn:
    """Devices of each GPU type (slowest left) by tenant."""
    held = {method: per_tenant(data.view, d.devices) for method, d in _allocations(data).items()}
    if not held:
        return None
    if len(data.view.tenants) <= FEW_TENANTS:
        return _device_bars(data.view, held), _words(data, "Dotted outlines: devices there are.")
    words = "Tenants by speedup on the fastest type (lowest on top), neighbours averaged where there are many."
    return _device_maps(data.view, held), _words(data, words)


def _device_bars(view: View, held: Mapping[str, Array]) -> Figure:
    figure, axes = panels(len(held), 2.0, ylabel="devices", sharey=True)
    for ax, (method, amounts) in zip(axes, held.items(), strict=True):
        ax.set_title(label(method, 30))
        _stacks(ax, view, amounts)
    names = [Patch(color=PALETTE[i], label=label(name, 16)) for i, name in enumerate(view.tenants)]
    idle = Patch(facecolor="none", edgecolor=MUTED, linestyle=":", label="idle")
    legend_below(figure, [*names, idle], 5)
    return figure


def _stacks(ax: Axes, view: View, amounts: Array) -> None:
    """Draw one stacked bar per GPU type."""
    places = np.arange(len(view.gpu_types))
    ax.bar(places, view.capacity, 0.7, fill=False, edgecolor=MUTED, linewidth=0.7, linestyle=":")
    base = np.zeros(len(places))
    for row, colour in zip(amounts, PALETTE, strict=False):
        bars = ax.bar(places, row, 0.7, base, color=colour, edgecolor="white")
        shown = [number(height, 2) if height >= 0.12 * view.capacity.max() else "" for height in row]
        ax.bar_label(bars, shown, label_type="center", fontsize=7, color=text_colour(colour))
        base += row
    ax.set_xticks(places, [label(name, 9) for name in view.gpu_types])
    ax.tick_params(axis="x", length=0)


def _device_maps(view: View, held: Mapping[str, Array]) -> Figure:
    order = _order(view)
    groups = bins(len(order), CELLS)
    names = _group_labels(view, groups)
    figure, axes = panels(len(held), 1.9)
    cells = {m: np.array([amounts[order[group]].mean(axis=0) for group in groups]) for m, amounts in held.items()}
    # by the square root, so that small shares show beside whole types in one hand
    norm = PowerNorm(0.5, 0.0, max(float(values.max()) for values in cells.values()))
    for i, (ax, (method, values)) in enumerate(zip(axes, cells.items(), strict=True)):
        heat_map(ax, values, norm)
        sparse_ticks(ax, "x", [label(name, 9) for name in view.gpu_types], 6, room=22)
        if i % 3 == 0:
            sparse_ticks(ax, "y", names, 6)
        ax.set_title(label(method, 30))
    figure.colorbar(axes[0].images[0], ax=axes, label="devices per tenant", **SLIM)
    return figure
