"""Statistical figures on tidy frames, by seaborn: each returns its Axes, which may be changed as usual.

>>> import schedgap as sg
>>> run = sg.sweep("sweeps/mine.toml")  # doctest: +SKIP
>>> ax = sg.plot.ecdf(run.table, x="gap")  # doctest: +SKIP
>>> ax.figure.savefig("gaps.pdf")  # doctest: +SKIP

A frame is ``.table`` of any results, or a part of it. Rows that were skipped, failed or are WRONG are left out.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from schedgap.harness.show.looks import PALETTE, Look, looks
from schedgap.harness.show.measures import HOURS, KNOWN, PERCENT, Measure
from schedgap.instances.errors import UsageError

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes

    from schedgap.harness.studies.simulate.row import Simulation
    from schedgap.instances.fitting import Fit
    from schedgap.instances.schema import Instance

PROOFS = {"exact": "o", "upper": "<"}
"""Markers of values; the triangle of an upper estimate points left, to where the true value may be."""

WIDTH = 1.5
"""Width of a line, in points."""

HANDLE = 4.0
"""Length of a line in a legend, in widths of a letter, in which the longest dashes are seen."""

LINE_HEIGHT = 0.21
"""Height of a line of a legend, in inches."""

CASE = ("instance", "seed", "limits")
"""Columns that name a case, in which methods are compared with each other."""

NEVER = 1e9
"""A value beyond every axis. It stands for results and completions that do not exist: lines of shares end below 1."""


def gaps(table: pd.DataFrame, x: str = "gap", y: str = "method", ax: Axes | None = None) -> Axes:
    """Draw a point per result, and a box (quartiles, whiskers from the least to the largest) per method.

    Triangles are upper estimates: the value is at most what they show.
    """
    import seaborn as sns

    data = sound(table, x)
    ax = ax or _axes(1.2 + 0.24 * data[y].nunique())
    order = data.groupby(y, sort=False)[x].median().sort_values(kind="stable").index
    box: dict[str, Any] = {"whis": (0, 100), "color": "0.9", "width": 0.6, "fliersize": 0, "linewidth": 0.8}
    with warnings.catch_warnings():  # seaborn 0.13 calls matplotlib 3.11 as it was called before
        warnings.simplefilter("ignore", DeprecationWarning)
        sns.boxplot(data, x=x, y=y, order=order, ax=ax, **box)
    place = {name: at for at, name in enumerate(order)}
    beside = np.random.default_rng(0).uniform(-0.18, 0.18, len(data))
    drawn = data.assign(**{y: data[y].map(place).astype(float) + beside})
    proof: dict[str, Any] = {"hue": "proof", "hue_order": [*PROOFS], "style": "proof", "markers": PROOFS}
    by = proof | {"palette": PALETTE[: len(PROOFS)]} if "proof" in data else {}
    sns.scatterplot(drawn, x=x, y=y, ax=ax, s=22, alpha=0.8, zorder=3, **by)
    ax.set(yticks=range(len(order)), yticklabels=order, ylabel="")
    return _labelled(_keyed(ax), x)


def ecdf(table: pd.DataFrame, x: str = "gap", hue: str = "method", ax: Axes | None = None) -> Axes:
    """Draw the share of results that are at most as large as a value, by method."""
    ax = _shares(sound(table, x), x, hue, ax)
    ax.set(ylabel="share of results")
    return _labelled(ax, x)


def profile(table: pd.DataFrame, hue: str = "method", ax: Axes | None = None) -> Axes:
    """Draw a performance profile: the share of cases in which a method is within a factor of the best one.

    A case is an instance with a seed and limits. A method without a result in a case is never within a factor there, so
    its line ends below 1. Factors are those of verified objectives; the certified bound does not matter.
    """
    data = sound(table, "objective")
    if len(set(data["problem"])) > 1:
        raise UsageError(f"a profile compares methods of one problem, not of {', '.join(data['problem'].unique())}")
    case, larger = [name for name in CASE if name in data], (data["sense"] == "max").all()
    own = data["objective"]
    best = data.groupby(case)["objective"].transform("max" if larger else "min")
    factor = (best / own if larger else own / best).where(own != best, 1.0)
    cases = data[case].drop_duplicates()
    whole = cases.merge(data[[hue]].drop_duplicates(), how="cross")
    drawn = whole.merge(data.assign(factor=factor)[[*case, hue, "factor"]], how="left")
    drawn["factor"] = drawn["factor"].replace(np.inf, np.nan)
    most = float(drawn["factor"].max())
    ax = _shares(drawn.fillna({"factor": NEVER}), "factor", hue, ax)
    ax.set(xlim=(1.0, max(most, 1.0 + 1e-6) * 1.02), ylabel="share of cases", xlabel="factor to the best method")
    return ax


def along(
    table: pd.DataFrame, parameter: str, y: str = "gap", hue: str = "method", ax: Axes | None = None, **more: Any
) -> Axes:
    """Draw the mean of a quantity along a parameter (``p.load``), with 95 % bootstrap intervals over the results.

    If some gaps are upper estimates, so is their mean. Further arguments go to ``seaborn.lineplot``.
    """
    import seaborn as sns

    data = sound(table, y).dropna(subset=[parameter])
    known = looks(_values(data, hue))
    look: dict[str, Any] = {
        "palette": {name: one.colour for name, one in known.items()},
        "dashes": {name: _dashed(one) for name, one in known.items()},
        "markers": {name: one.marker for name, one in known.items()},
    }
    how: dict[str, Any] = {"hue_order": [*known], "style": hue, "style_order": [*known], "errorbar": ("ci", 95)}
    ax = sns.lineplot(data, x=parameter, y=y, hue=hue, ax=ax or _axes(), **how | look | {"seed": 0} | more)
    return _labelled(_keyed(ax), y, along="y")


def growth(
    table: pd.DataFrame, parameter: str = "p.jobs", y: str = "solve_s", hue: str = "method", **more: Any
) -> Axes:
    """Draw a quantity along the size of instances, on logarithmic axes: medians, and quartiles as bars."""
    quartiles: dict[str, Any] = {"estimator": "median", "errorbar": ("pi", 50), "err_style": "bars"}
    ax = along(table[table[y] > 0], parameter, y, hue, **quartiles | more)
    ax.set(xscale="log", yscale="log")
    sizes = sorted(table.loc[table[y] > 0, parameter].dropna().unique())
    ax.set_xticks(sizes, [f"{size:g}" for size in sizes], minor=False)
    ax.minorticks_off()
    return ax


def completion(simulation: Simulation, ax: Axes | None = None) -> Axes:
    """Draw the share of jobs completed within a time after their arrival, by policy, on the last instance."""
    times = {policy: trace.jct_s / 3600 for policy, trace in simulation.traces.items()}
    rows = [pd.DataFrame({"policy": policy, "hours": hours}) for policy, hours in times.items()]
    if not rows:
        raise UsageError("no policy has a history")
    # A job that is not done has no time, and counts as one that never completes.
    data = pd.concat(rows, ignore_index=True).fillna({"hours": NEVER})
    ax = _shares(data, "hours", "policy", ax)
    most = data["hours"][data["hours"] < NEVER].max()
    ax.set(xlim=(0, most), xlabel=f"completion time [{HOURS.unit}]", ylabel="share of jobs")
    return ax


def laws(instance: Instance, found: Fit, marginal: str = "durations", ax: Axes | None = None) -> Axes:
    """Draw the distribution of durations, or of gaps between arrivals, of jobs and of the laws fitted to them.

    `found` is ``sg.fit(instance)``.
    """
    from schedgap.instances.fitting import samples

    both = samples(instance, found)
    if marginal not in both:
        raise UsageError(f"marginal = {marginal!r}: {' or '.join(both)}")
    names = found.name, "fitted law"
    parts = [pd.DataFrame({"hours": x / 3600, "of": of}) for x, of in zip(both[marginal], names, strict=True)]
    data = pd.concat(parts, ignore_index=True)
    ax = _shares(data, "hours", "of", ax, log_scale=True)
    ax.set(xlabel=f"{marginal} [{HOURS.unit}]", ylabel="share of jobs")
    return ax


def sound(table: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Return the rows that have a finite value of the quantity, and are not WRONG; raise `UsageError` if none has."""
    if quantity not in table:
        raise UsageError(f"the frame has no column {quantity!r}; it has {', '.join(map(str, table))}")
    finite = np.isfinite(pd.to_numeric(table[quantity], errors="coerce"))
    kept: pd.DataFrame = table[finite & table["verified"].ne(False) if "verified" in table else finite]
    if kept.empty:
        raise UsageError(f"no row has a {quantity}: nothing to draw")
    return kept


def _shares(data: pd.DataFrame, x: str, by: str, ax: Axes | None, **more: Any) -> Axes:
    """Draw the share of rows up to a value, a line for each value of a column, with a legend."""
    import seaborn as sns

    ax = ax or _axes()
    for name, look in looks(_values(data, by)).items():
        mine = data[data[by] == name]
        sns.ecdfplot(mine, x=x, ax=ax, color=look.colour, linestyle=(0, _dashed(look) or None), label=name, **more)
    ax.legend()
    return _keyed(ax)


def _values(data: pd.DataFrame, column: str) -> list[Any]:
    """Return the values of a column: numbers in their order, others as they come."""
    values = data[column].dropna().unique().tolist()
    return sorted(values) if pd.api.types.is_numeric_dtype(data[column]) else values


def _dashed(look: Look) -> tuple[float, ...]:
    """Return strokes and gaps in widths of a line, as matplotlib has them; empty for a solid line."""
    return tuple(length / WIDTH for length in look.dash) if all(look.dash) else ()


def _axes(height: float = 3.6) -> Axes:
    """Return the axes of a new figure, as wide as a text."""
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(7.2, height), layout="constrained")[1]


def _keyed(ax: Axes) -> Axes:
    """Put the legend beside the drawing, where it hides nothing; a figure of its own grows as high as the legend."""
    import seaborn as sns
    from matplotlib.figure import Figure

    if legend := ax.get_legend():
        sns.move_legend(ax, "upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, handlelength=HANDLE)
        if isinstance(ax.figure, Figure) and len(ax.figure.axes) == 1:
            high = LINE_HEIGHT * (len(legend.get_texts()) + 2)
            ax.figure.set_figheight(max(ax.figure.get_figheight(), high))
    return ax


def _labelled(ax: Axes, quantity: str, along: str = "x") -> Axes:
    """Name the axis of a quantity, and draw fractions in per cent."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    measure = KNOWN.get(quantity) or Measure(quantity, quantity, "")
    ax.set(**{f"{along}label": measure.data_axis})
    if measure.format is PERCENT:
        axis = getattr(ax, f"{along}axis")
        axis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        axis.set_major_locator(MaxNLocator(6))
    return ax


# ---------------------------------------------------------------- graphs


def envy(graph: nx.DiGraph[str], ax: Axes | None = None) -> Axes:
    """Draw an envy graph (:func:`schedgap.harness.ask.graphs.envy`): wider arrows and numbers say how much."""
    import networkx as nx

    ax, place = ax or _axes(4.4), nx.circular_layout(graph)
    gains: list[float] = [*nx.get_edge_attributes(graph, "envy").values()]
    most = max(gains, default=1.0)
    nx.draw_networkx_nodes(graph, place, ax=ax, node_size=900, node_color="#e8eef4", edgecolors="#57606a")
    nx.draw_networkx_labels(graph, place, ax=ax, font_size=9)
    arc: dict[str, Any] = {"connectionstyle": "arc3,rad=0.12", "node_size": 900, "edge_color": PALETTE[1]}
    nx.draw_networkx_edges(graph, place, ax=ax, width=[0.6 + 2.4 * gain / most for gain in gains], **arc)
    texts = {pair: f"{gain:.0%}" for pair, gain in nx.get_edge_attributes(graph, "envy").items()}
    nx.draw_networkx_edge_labels(graph, place, texts, ax=ax, font_size=8, connectionstyle=arc["connectionstyle"])
    ax.set_title("nobody envies anybody" if not gains else "envy, relative to the value of an equal split", fontsize=10)
    ax.set_axis_off()
    return ax


def flow(graph: nx.DiGraph[Any], ax: Axes | None = None) -> Axes:
    """Draw the flow of GPUs in a slot (:func:`schedgap.harness.ask.graphs.flow`).

    Each edge shows its flow and its capacity; edges that are used in full are red.
    """
    import networkx as nx

    from schedgap.harness.ask.graphs import JOB, SERVER, SINK, SOURCE

    columns = {SOURCE[0]: 0, JOB: 1, SERVER: 2, SINK[0]: 3}
    sides = [[node for node in graph if columns[node[0]] == x] for x in range(4)]
    ax = ax or _axes(1.0 + 0.4 * max(map(len, sides)))
    place = {node: (x, 0.5 - (i + 0.5) / len(side)) for x, side in enumerate(sides) for i, node in enumerate(side)}
    used = [(a, b, data) for a, b, data in graph.edges(data=True) if data["flow"] or SINK in (a, b)]
    full = [PALETTE[1] if data["flow"] == data["capacity"] else "#57606a" for *_, data in used]
    widths = [0.5 + data["flow"] for *_, data in used]
    nx.draw_networkx_nodes(graph, place, ax=ax, node_size=80, node_color=PALETTE[0])
    ends = [(a, b) for a, b, _ in used]
    nx.draw_networkx_edges(graph, place, ends, ax=ax, width=widths, edge_color=full, node_size=80)
    labels = {(a, b): f"{data['flow']} of {data['capacity']}" for a, b, data in used}
    nx.draw_networkx_edge_labels(graph, place, labels, ax=ax, font_size=7, label_pos=0.5)
    for node, (x, y) in place.items():
        ax.annotate(node[1] or node[0], (x, y), (0, 7), textcoords="offset points", fontsize=7, ha="center")
    ax.margins(0.1, 0.15)
    ax.set_axis_off()
    return ax


def windows(graph: nx.DiGraph[int], ax: Axes | None = None) -> Axes:
    """Draw windows of A_online in order (:func:`schedgap.harness.ask.graphs.windows`): what arrives, runs and waits.

    A window is red if the weight that runs in it may be less than Lemma 1 asks for.
    """
    import networkx as nx

    ax, place = ax or _axes(2.6), {tau: (float(i), 0.0) for i, tau in enumerate(graph)}
    enough = [data["weight"] >= (1 - 1e-9) * data["most"] for _, data in graph.nodes(data=True)]
    colours = ["#e8eef4" if shown else "#f7d9c4" for shown in enough]
    box: dict[str, Any] = {"node_size": 3600, "node_shape": "s"}
    nx.draw_networkx_nodes(graph, place, ax=ax, node_color=colours, edgecolors="#57606a", **box)
    names = {tau: f"τ = {tau}\n[{data['start']}, {data['end']})" for tau, data in graph.nodes(data=True)}
    nx.draw_networkx_labels(graph, place, names, ax=ax, font_size=8)
    nx.draw_networkx_edges(graph, place, ax=ax, edge_color="#57606a", **box)
    waits = {(a, b): f"{len(data['jobs'])} wait" for a, b, data in graph.edges(data=True)}
    nx.draw_networkx_edge_labels(graph, place, waits, ax=ax, font_size=8)
    arrow: dict[str, Any] = {"arrowprops": {"arrowstyle": "->", "color": PALETTE[0]}}
    beside: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8, "va": "center"}
    for (x, _), data in zip(place.values(), graph.nodes.values(), strict=True):
        ax.annotate("", (x, 0.36), (x, 1.0), **arrow)
        ax.annotate("", (x, -1.0), (x, -0.36), **arrow)
        ax.annotate(f"{len(data['arrived'])} arrive", (x, 1.0), (4, 0), **beside)
        ax.annotate(f"{len(data['jobs'])} run", (x, -1.0), (4, 0), **beside)
    ax.set(xlim=(-0.5, len(graph) - 0.5), ylim=(-1.15, 1.15))
    ax.set_axis_off()
    return ax


def support(graph: nx.Graph[Any], ax: Axes | None = None) -> Axes:
    """Draw which servers hold which jobs (:func:`schedgap.harness.ask.graphs.support`); fragmented jobs stand out."""
    import networkx as nx

    from schedgap.harness.ask.graphs import SERVER, fragmented

    servers = [node for node in graph if node[0] == SERVER]
    jobs = sorted((node for node in graph if node[0] != SERVER), key=lambda node: graph.degree[node], reverse=True)
    ax = ax or _axes(1.0 + 0.16 * max(len(jobs), 3 * len(servers)))
    ordered: nx.Graph[Any] = nx.Graph()
    ordered.add_nodes_from([*servers, *jobs])
    ordered.add_edges_from(graph.edges(data=True))
    columns = enumerate((sorted(servers), jobs))
    place = {node: (x, 0.5 - (i + 0.5) / len(side)) for x, side in columns for i, node in enumerate(side)}
    shares = [3.0 * share for share in nx.get_edge_attributes(ordered, "share").values()]
    split = {*fragmented(graph)}
    of_jobs = (PALETTE[1] if name in split else "#c9d1d9" for _, name in jobs)
    colours = [PALETTE[0]] * len(servers) + [*of_jobs]
    nx.draw_networkx_nodes(ordered, place, ax=ax, node_size=60, node_color=colours)
    nx.draw_networkx_edges(ordered, place, ax=ax, width=shares, edge_color="#57606a", alpha=0.6)
    for kind, name in ordered:
        x, y = place[kind, name]
        left = kind == SERVER
        ax.annotate(name, (x, y), (-6 if left else 6, 0), textcoords="offset points", fontsize=7, va="center",
                    ha="right" if left else "left")  # fmt: skip
    ax.margins(0.15, 0.02)
    ax.set_axis_off()
    return ax
