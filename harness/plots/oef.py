"""Figures of OEF: who gets which devices, what each tenant makes of them, and who envies whom.

With few tenants each has its own bar or node. With more, tenants stand in the order of their speedup on the
fastest GPU type, as cells of a heat map, and neighbours are averaged where cells would become too small.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from schedgap.harness.figure import Drawn, figure
from schedgap.harness.plots import style
from schedgap.harness.plots.results import Compared, counted, some
from schedgap.harness.plots.style import INK, MUTED, PALETTE, label, panels, sparse_ticks
from schedgap.harness.text import number
from schedgap.harness.verify import TOLERANCE
from schedgap.instances.arrays import Array, Ints
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
    return dict(some(known[:MAX_PANELS]))


def ranked(speedup: Array) -> list[Ints]:
    """Return tenants by speedup, slowest first, in at most :data:`CELLS` groups of neighbours."""
    return np.array_split(np.argsort(speedup, kind="stable"), min(len(speedup), CELLS))


def _ranked_tenants(view: View) -> tuple[list[Ints], list[str]]:
    """Return the groups of tenants by true speedup on the fastest type, each with the name of its first tenant."""
    groups = ranked(per_tenant(view, view.true_speedups[:, -1]))
    return groups, [label(view.tenants[group[0]], 9) for group in groups]


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


@figure("oef.efficiency", "Efficiency per tenant", of="instance")
def efficiencies(data: Compared) -> Drawn:
    """Efficiency of every tenant at its true speedups."""
    allocations, view = _allocations(data), data.view
    split = per_tenant(view, efficiency(view.true_speedups, view.equal_split))
    reached = {method: per_tenant(view, efficiency(view.true_speedups, d.devices)) for method, d in allocations.items()}
    if len(view.tenants) <= FEW_TENANTS and len(allocations) <= len(PALETTE):
        colours = {method: data.looks[method]["color"] for method in reached}
        words = "In slowest-GPU equivalents; dashed: equal split."
        return _efficiency_bars(view, reached, split, colours), _words(data, words)
    words = (
        "Divided by that of the equal split (1: the same, purple: worse, orange: better); neighbours in order of "
        "speedup are averaged if many."
    )
    relative = {method: values / split for method, values in reached.items()}
    return _efficiency_map(view, relative), _words(data, words)


def _efficiency_bars(view: View, reached: Mapping[str, Array], split: Array, colours: Mapping[str, str]) -> Figure:
    canvas, ax = style.one_axes(3.2, grid="y")
    frame = pd.DataFrame(dict(reached)).melt(ignore_index=False, var_name="method", value_name="efficiency")
    look: dict[str, Any] = {"palette": colours, "saturation": 1, "width": 0.84, "gap": 0.08}
    sns.barplot(frame, x=frame.index, y="efficiency", hue="method", ax=ax, **look)
    handles = ax.get_legend_handles_labels()[0]
    ax.legend_ = None
    places = np.arange(len(split))
    line = ax.hlines(split, places - 0.46, places + 0.46, color=INK, ls=style.DASHED, lw=1.3, zorder=3)
    line.set_label("equal split")
    ax.set_xticks(places, [label(name, 14) for name in view.tenants])
    ax.tick_params(axis="x", length=0)
    ax.set(xlabel="tenant", ylabel="efficiency\n[slowest-GPU equivalents]")
    style.legend_below(canvas, [*handles, line], 3)
    return canvas


def _efficiency_map(view: View, relative: Mapping[str, Array]) -> Figure:
    """Draw methods × tenants (in order of speedup), coloured by efficiency relative to the equal split."""
    groups, names = _ranked_tenants(view)
    cells = np.array([[values[group].mean() for group in groups] for values in relative.values()])
    canvas, ax = style.one_axes(1.6 + 0.3 * len(cells))
    # one tenant that takes a whole type would leave no colour for all the others
    away = min(1.0, max(cells.max() - 1.0, 1.0 - cells.min(), 0.05))
    extend = "max" if cells.max() > 1.0 + away else "neither"
    look: dict[str, Any] = {
        "annot": len(groups) <= NUMBERED_CELLS,
        "fmt": ".2f" if len(groups) <= NUMBERED_CELLS / 2 else ".1f",
        "annot_kws": {"fontsize": 6.5},
        "cmap": "PuOr_r",
        "vmin": 1.0 - away,
        "vmax": 1.0 + away,
        "linewidths": 0.4,
        "cbar_kws": {"label": "efficiency / equal split [1]", "pad": 0.02, "extend": extend},
    }
    sns.heatmap(cells, ax=ax, **look)
    sparse_ticks(ax, "x", names, 10)
    sparse_ticks(ax, "y", [label(method, 40) for method in relative], len(cells))
    ax.set_xlabel("tenants by speedup on the fastest type, lowest first")
    return canvas


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
    allocations, view = _allocations(data), data.view
    if not 2 <= view.size <= MAX_TENANTS:
        return None
    few = view.size <= FEW_NODES
    canvas, axes = panels(len(allocations), 1.75)
    groups = ranked(view.speedups[:, -1])
    for ax, (method, allocation) in zip(axes, allocations.items(), strict=True):
        gain = envy(view, allocation.devices)
        pairs = int(np.count_nonzero(gain))
        words = f"{pairs} of {view.size * (view.size - 1)} pairs envy" if pairs else "nobody envies anybody"
        ax.set_title(f"{label(method, 30)}\n{words}")
        if few:
            _envy_graph(ax, view, gain)
        else:
            cells = [[min(gain[np.ix_(rows, columns)].max(), 1.0) for columns in groups] for rows in groups]
            style.heat_map(ax, 100 * np.array(cells), Normalize(0.0, 100.0), ENVY_COLOURS)
    if few:
        shape = "An arrow leads from a tenant to one whose devices it would rather have, the wider the more it gains."
        return canvas, _words(data, shape)
    canvas.supxlabel("envied tenant (by speedup, slowest left)")
    canvas.supylabel("envying tenant (slowest on top)")
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
    arrows: dict[str, Any] = {"width": widths, "edge_color": PALETTE[3], "connectionstyle": ARC, "arrowsize": 9}
    nx.draw_networkx_edges(graph, places, ax=ax, node_size=node, **arrows)
    ax.set(xlim=(-1.9, 1.9), ylim=(-1.5, 1.5), aspect="equal")
    ax.axis("off")


@figure("oef.devices", "Devices by type and tenant", of="instance")
def devices(data: Compared) -> Drawn:
    """Devices of each GPU type (slowest left) by tenant."""
    view: View = data.view
    held = {method: per_tenant(view, d.devices) for method, d in _allocations(data).items()}
    if len(view.tenants) <= FEW_TENANTS:
        return _device_bars(view, held), _words(data, "Dotted outlines: devices there are.")
    words = "Tenants by speedup on the fastest type (lowest on top), neighbours averaged where there are many."
    return _device_maps(view, held), _words(data, words)


def _device_bars(view: View, held: Mapping[str, Array]) -> Figure:
    """Draw one stacked bar per GPU type, in a panel for each method."""
    canvas, axes = panels(len(held), 2.0, ylabel="devices", sharey=True)
    places = np.arange(len(view.gpu_types))
    idle: dict[str, Any] = {"fill": False, "edgecolor": MUTED, "linestyle": ":"}
    for ax, (method, amounts) in zip(axes, held.items(), strict=True):
        ax.bar(places, view.capacity, 0.7, linewidth=0.7, **idle)
        for row, base, colour in zip(amounts, amounts.cumsum(axis=0) - amounts, PALETTE, strict=False):
            bars = ax.bar(places, row, 0.7, base, color=colour, edgecolor="white")
            shown = [number(height, 2) if height >= 0.12 * view.capacity.max() else "" for height in row]
            ax.bar_label(bars, shown, label_type="center", fontsize=7, color=style.text_colour(colour))
        ax.set_xticks(places, [label(name, 9) for name in view.gpu_types])
        ax.tick_params(axis="x", length=0)
        ax.set_title(label(method, 30))
    names = [Patch(color=c, label=label(name, 16)) for c, name in zip(PALETTE, view.tenants, strict=False)]
    style.legend_below(canvas, [*names, Patch(label="idle", **idle)], 5)
    return canvas


def _device_maps(view: View, held: Mapping[str, Array]) -> Figure:
    """Draw tenants × GPU types, in a panel for each method."""
    groups, names = _ranked_tenants(view)
    canvas, axes = panels(len(held), 1.9)
    cells = np.array([[amounts[group].mean(axis=0) for group in groups] for amounts in held.values()])
    # by the square root, so that small shares show beside whole types in one hand
    norm = PowerNorm(0.5, 0.0, float(cells.max()))
    for i, (ax, method) in enumerate(zip(axes, held, strict=True)):
        style.heat_map(ax, cells[i], norm)
        sparse_ticks(ax, "x", [label(name, 9) for name in view.gpu_types], 6, room=22)
        if i % 3 == 0:
            sparse_ticks(ax, "y", names, 6)
        ax.set_title(label(method, 30))
    canvas.colorbar(axes[0].images[0], ax=axes, label="devices per tenant", **SLIM)
    return canvas
