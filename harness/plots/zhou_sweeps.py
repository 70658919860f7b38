"""Figures about several instances of Zhou's: what methods reach against a parameter that differs between them.

Methods are compared on the same instances only: where one of them has no result, the instance counts for none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from schedgap.harness.compare.row import Row
from schedgap.harness.figure import Drawn, figure
from schedgap.harness.plots.results import Compared, fitting
from schedgap.harness.plots.style import (
    DASHED,
    INK,
    MAX_LINES,
    WIDE,
    Look,
    label,
    line_legend,
    log_axis,
    panels,
)
from schedgap.harness.text import number
from schedgap.instances.schema import Instance
from schedgap.instances.views.zhou import ARCHITECTURES

MAX_PARAMETERS = 4

PARAMETERS = {
    "jobs": "jobs",
    "servers": "servers",
    "unit_worth": "F [weight per capacity and slot]",
    "worker_type": "worker type",
    "workers": "most workers of a job",
    "slots": "timespan [slots]",
}
"""What an axis says of a parameter; others are called what references call them."""

BRIEF = {"unit_worth": "F", "worker_type": "worker type"}
"""What a title says of it, where that is shorter."""

UNITS = ((1e7, 1e6, "10⁶ "), (1e5, 1e3, "10³ "), (0.0, 1.0, ""))
"""Smallest objective that is shown in a unit, the unit, and its name."""

Value = float | str


@dataclass(frozen=True, eq=False)
class Panel:
    """Results of one architecture at different values of a parameter, all others being the same.

    Attributes
    ----------
    arch, parameter
        What is shown.
    values
        Values on the x axis, in order.
    others
        Values of the other parameters that differ somewhere.
    results
        ``value, method, fingerprint, objective, bound``; the index is the place among the rows of the comparison.
    """

    arch: str
    parameter: str
    values: Sequence[Value]
    others: Mapping[str, Value]
    results: pd.DataFrame

    @property
    def places(self) -> dict[Value, float]:
        """Place of each value on the x axis."""
        numeric = all(isinstance(value, float) for value in self.values)
        return {value: float(value if numeric else i) for i, value in enumerate(self.values)}


def settings(name: str, instance: Instance) -> dict[str, Value]:
    """Return the parameters of an instance: those that its reference names, and those that it shows itself."""
    pairs = [part.partition("=") for part in name.partition("?")[2].split("&") if "=" in part]
    given = {unquote(key): _value(unquote(value)) for key, _, value in pairs}
    kinds = [worker.name for worker in instance.worker_types]
    shown: dict[str, Value] = {
        "jobs": float(len(instance.jobs)),
        "servers": float(sum(group.count for group in instance.cluster.servers)),
        "unit_worth": "jobs' own" if instance.unit_worth is None else instance.unit_worth,
        "worker_type": kinds[0] if len(kinds) == 1 else "any",
    }
    return {key: value for key, value in {**given, **shown}.items() if key != "seed"}


def _value(text: str) -> Value:
    try:
        value = float(text)
    except ValueError:
        return text
    return value if np.isfinite(value) else text


def found(data: Compared, kinds: Sequence[str]) -> list[Panel]:
    """Return a panel for each parameter that differs, and architecture, where there are two values or more."""
    instances = data.run.instances
    rows = {
        i: row
        for i, row in enumerate(data.rows)
        if row.verified and row.objective is not None and row.fingerprint in instances
        if row.problem.split(".")[2] in kinds
    }
    known = {row.fingerprint: settings(row.instance, instances[row.fingerprint]) for row in rows.values()}
    names = dict.fromkeys(key for each in known.values() for key in each)
    differ = [key for key in names if len({each.get(key) for each in known.values()}) > 1]
    differ = sorted(differ, key=lambda key: [*PARAMETERS, key].index(key))[:MAX_PARAMETERS]
    made = [_panel(arch, parameter, differ, known, rows) for parameter in differ for arch in ARCHITECTURES]
    return [panel for panel in made if panel]


def _panel(
    arch: str,
    parameter: str,
    differ: Sequence[str],
    known: Mapping[str, Mapping[str, Value]],
    rows: Mapping[int, Row],
) -> Panel | None:
    """Return the results at those values of the other parameters for which this one has most values."""
    others = [key for key in differ if key != parameter]
    groups: dict[tuple[Value | None, ...], dict[int, Row]] = {}
    for i, row in rows.items():
        each = known[row.fingerprint]
        if row.problem.split(".")[1] == arch and parameter in each:
            groups.setdefault(tuple(each.get(key) for key in others), {})[i] = row
    at = {key: [known[row.fingerprint][parameter] for row in mine.values()] for key, mine in groups.items()}
    best = max(groups, key=lambda key: len(set(at[key])), default=None)
    if best is None or len(set(at[best])) < 2:
        return None
    values = list(dict.fromkeys(at[best]))
    if all(isinstance(value, float) for value in values):
        values.sort()
    mine = list(groups[best].values())
    columns = {
        "value": pd.Series(at[best], list(groups[best]), object),
        "method": [_short(row) for row in mine],
        "fingerprint": [row.fingerprint for row in mine],
        "objective": [row.objective for row in mine],
        "bound": pd.Series(
            [None if row.problem.endswith("preemptive") else row.best_bound for row in mine], groups[best], float
        ),
    }
    same = {key: value for key, value in zip(others, best, strict=True) if value is not None}
    return Panel(arch, parameter, values, same, pd.DataFrame(columns))


def _short(row: Row) -> str:
    """Return a method's name without paper and architecture."""
    return row.method.split(".", 2)[2]


def compared(panel: Panel, methods: Iterable[str]) -> pd.DataFrame:
    """Return the results of the instances on which each of these methods that has results for the value has one."""
    mine = panel.results[panel.results["method"].isin(list(methods))]
    there = mine.groupby("value")["method"].transform("nunique")
    here = mine.groupby(["value", "fingerprint"])["method"].transform("nunique")
    return mine[here == there]


@figure("zhou.sweep-completion", "Weighted completion times by parameter")
def completion_times(data: Compared) -> Drawn:
    """Total weighted completion time Σ w·c, in weight × slots, by method and parameter of the instances.

    Means over the instances on which all methods of a value have results, upright lines from the least to the largest.
    Dashed: mean certified bound (no method without interruptions gets below it).
    """
    return _sweep(data, ("completion", "preemptive"), "Σ w·c [{}weight × slots]")


@figure("zhou.sweep-weight", "Completed weight by parameter")
def completed_weight(data: Compared) -> Drawn:
    """Total weight of the jobs that complete by τ (it depends on the instance), by method and parameter.

    Means over the instances on which all methods of a value have results, upright lines from the least to the largest.
    Dashed: mean certified bound (no method gets above it).
    """
    return _sweep(data, ("weight",), "completed by τ [{}weight]")


def _sweep(data: Compared, kinds: Sequence[str], ylabel: str) -> Drawn:
    """Draw a line per method for each parameter that differs, parameter servers beside rings."""
    shown = found(data, kinds)
    if not shown:
        return None
    methods, out = fitting(dict.fromkeys(m for panel in shown for m in panel.results["method"]), MAX_LINES)
    styles = {method: next(look for name, look in data.looks.items() if name.endswith(method)) for method in methods}
    heights = pd.concat([panel.results["objective"] for panel in shown]).abs()
    unit, name = next((size, text) for least, size, text in UNITS if heights.max() >= least)
    both = len({panel.arch for panel in shown}) > 1
    canvas, axes = panels(len(shown), 2.5, 2, ylabel=ylabel.format(name), sharey="row" if both else False)
    bounds, drawn = False, set[int]()
    for ax, panel in zip(axes, shown, strict=True):
        results = compared(panel, methods)
        drawn.update(results.index)
        bounds |= _lines(ax, panel, results, styles, unit)
        others = ", ".join(f"{label(BRIEF.get(key, key), 14)} = {_text(value)}" for key, value in panel.others.items())
        ax.set_title(ARCHITECTURES[panel.arch] + (f"\n{others}" if others else ""))
        if heights.min() > 0 and heights.max() > WIDE * heights.min():
            log_axis(ax, "y")
        else:
            ax.set_ylim(bottom=0.0)
        _values(ax, panel)
        ax.grid()
    bound = [Line2D([], [], color=INK, ls=DASHED, lw=1.1, label="certified bound")] if bounds else []
    line_legend(canvas, {label(method, 26): {"marker": "o", "ms": 4, **styles[method]} for method in methods}, bound, 4)
    return canvas, out + data.sample(data.rows[i] for i in sorted(drawn))


def _lines(ax: Axes, panel: Panel, results: pd.DataFrame, styles: Mapping[str, Look], unit: float) -> bool:
    """Draw means over instances, from the least to the largest result; return whether there is a bound to draw."""
    x = pd.Series(panel.places, dtype=float)
    for method, style in styles.items():
        mine = results[results["method"] == method].groupby("value")["objective"].agg(["mean", "min", "max"]) / unit
        at = x.index[x.index.isin(mine.index)]
        mine = mine.loc[at]
        ax.plot(x[at], mine["mean"], marker="o", markersize=4, **style)
        ax.vlines(x[at], mine["min"], mine["max"], color=style["color"], lw=0.8)
    each = results.groupby(["value", "fingerprint"])["bound"].first()
    means = each.groupby("value").agg(lambda bounds: bounds.mean(skipna=False)).dropna() / unit
    at = x.index[x.index.isin(means.index)]
    ax.plot(x[at], means[at], color=INK, ls=DASHED, lw=1.1, zorder=1)
    return bool(len(at))


def _values(ax: Axes, panel: Panel) -> None:
    """Label the x axis with the values; an axis of a wide range is logarithmic."""
    places = list(panel.places.values())
    if panel.values[0] == places[0]:
        if min(places) > 0 and max(places) > WIDE * min(places):
            ax.set_xscale("log")
            ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_locator(FixedLocator(places[:: -(-len(places) // 6)]))
        ax.xaxis.set_major_formatter(lambda value, _: number(value))
    else:
        texts = [_text(value) for value in panel.values]
        crowded = sum(map(len, texts)) > 30
        ax.set_xticks(places, texts, rotation=30 if crowded else 0, ha="right" if crowded else "center")
    ax.set_xlabel(PARAMETERS.get(panel.parameter, label(panel.parameter, 30)))


def _text(value: Value) -> str:
    return label(value, 14) if isinstance(value, str) else number(value)
