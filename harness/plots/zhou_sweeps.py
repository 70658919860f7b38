"""Figures about several instances of Zhou's: what methods reach against a parameter that differs between them.

Methods are compared on the same instances only: where one of them has no result, the instance counts for none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import unquote

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from schedgap.harness.compare.row import Row
from schedgap.harness.plots.curves import MAX_LINES, line_style
from schedgap.harness.plots.figures import FIGURES, FigureInput, FigureSpec
from schedgap.harness.plots.style import DASHED, INK, is_first_column, label, legend_below, log_axis, panels
from schedgap.harness.text import clean, number
from schedgap.instances.schema import Instance
from schedgap.instances.views.zhou import ARCHITECTURES

WIDE = 20.0
"""An axis is logarithmic where its largest value is so many times the smallest."""

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

KINDS = {"completion": ("completion", "preemptive"), "weight": ("weight",)}
"""Problems whose objectives stand in one figure."""

YLABELS = {"completion": "Σ w·c [{}weight × slots]", "weight": "completed by τ [{}weight]"}

UNITS = ((1e7, 1e6, "10⁶ "), (1e5, 1e3, "10³ "), (-1.0, 1.0, ""))
"""From so large objectives on, so many are one of that unit."""

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
    rows
        The results, by value.
    """

    arch: str
    parameter: str
    values: Sequence[Value]
    others: Mapping[str, Value]
    rows: Sequence[tuple[Value, Row]]

    @property
    def numeric(self) -> bool:
        """Whether all values are numbers."""
        return all(isinstance(value, float) for value in self.values)


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


def found(data: FigureInput, figure: str) -> list[Panel]:
    """Return a panel for each parameter that differs, and architecture, where there are two values or more."""
    rows = [row for row in data.rows if row.verified and row.objective is not None]
    rows = [row for row in rows if row.problem.split(".")[2] in KINDS[figure]]
    known = {
        row.fingerprint: settings(row.instance, data.run.instances[row.fingerprint])
        for row in rows
        if row.fingerprint in data.run.instances
    }
    rows = [row for row in rows if row.fingerprint in known]
    names = dict.fromkeys(key for each in known.values() for key in each)
    differ = [key for key in names if len({each.get(key) for each in known.values()}) > 1]
    differ = sorted(differ, key=lambda key: [*PARAMETERS, key].index(key))[:MAX_PARAMETERS]
    made = [
        _panel(arch, parameter, [p for p in differ if p != parameter], known, rows)
        for parameter in differ
        for arch in ARCHITECTURES
    ]
    return [panel for panel in made if panel]


def _panel(
    arch: str, parameter: str, others: Sequence[str], known: Mapping[str, Mapping[str, Value]], rows: Sequence[Row]
) -> Panel | None:
    """Return the results at those values of the other parameters for which this one has most values."""
    groups: dict[tuple[Value | None, ...], list[tuple[Value, Row]]] = {}
    for row in rows:
        each = known[row.fingerprint]
        if row.problem.split(".")[1] == arch and parameter in each:
            groups.setdefault(tuple(each.get(key) for key in others), []).append((each[parameter], row))
    best = max(groups, key=lambda key: len({value for value, _ in groups[key]}), default=None)
    if best is None:
        return None
    values = list(dict.fromkeys(value for value, _ in groups[best]))
    if len(values) < 2:
        return None
    if all(isinstance(value, float) for value in values):
        values.sort()
    same = {key: value for key, value in zip(others, best, strict=True) if value is not None}
    return Panel(arch, parameter, values, same, groups[best])


def draw_sweep(data: FigureInput, figure: str) -> Figure | None:
    """Draw a line per method for each parameter that differs, parameter servers beside rings."""
    shown = found(data, figure)
    if not shown:
        return None
    both = len({panel.arch for panel in shown}) > 1
    columns = 2 if both else min(2, len(shown))
    canvas, axes = panels(len(shown), 2.5, columns, sharey="row" if both else False)
    methods = _methods(shown)
    heights = [abs(row.objective or 0.0) for panel in shown for _, row in panel.rows]
    unit, name = next((size, text) for least, size, text in UNITS if max(heights) >= least)
    bounds = [_lines(ax, panel, methods, unit) for ax, panel in zip(axes, shown, strict=True)]
    for ax, panel in zip(axes, shown, strict=True):
        others = ", ".join(f"{label(BRIEF.get(key, key), 14)} = {_text(value)}" for key, value in panel.others.items())
        ax.set_title(ARCHITECTURES[panel.arch] + (f"\n{others}" if others else ""), fontsize=8.5)
        ax.set_ylabel(YLABELS[figure].format(name) if is_first_column(ax) else "")
        if min(heights) > 0 and max(heights) > WIDE * min(heights):
            log_axis(ax, "y", number)
        else:
            ax.set_ylim(bottom=0.0)
        _values(ax, panel)
        ax.grid()
    handles = [Line2D([], [], marker="o", ms=4, label=label(m, 26), **line_style(i)) for m, i in methods.items()]
    if any(bounds):
        handles.append(Line2D([], [], color=INK, ls=DASHED, lw=1.1, label="certified bound"))
    legend_below(canvas, handles)
    return canvas


def _short(row: Row) -> str:
    """Return a method's name without paper and architecture."""
    return row.method.split(".", 2)[2]


def _methods(shown: Sequence[Panel]) -> dict[str, int]:
    """Return the number of each method's line; variants of a method are the first to find no room."""
    names = dict.fromkeys(_short(row) for panel in shown for _, row in panel.rows)
    kept = sorted(names, key=lambda name: name.count("."))[:MAX_LINES]
    return {name: i for i, name in enumerate(name for name in names if name in kept)}


def compared(panel: Panel, methods: Collection[str]) -> dict[Value, dict[str, list[Row]]]:
    """Return the rows of each value by method, of the instances on which each method that is there has results."""
    by_value: dict[Value, dict[str, list[Row]]] = {value: {} for value in panel.values}
    for value, row in panel.rows:
        if _short(row) in methods:
            by_value[value].setdefault(_short(row), []).append(row)
    for each in by_value.values():
        common = set.intersection(*({row.fingerprint for row in rows} for rows in each.values())) if each else set()
        for method, rows in each.items():
            each[method] = [row for row in rows if row.fingerprint in common]
    return by_value


def _lines(ax: Axes, panel: Panel, methods: Mapping[str, int], unit: float) -> bool:
    """Draw means over instances, from the least to the largest result; return whether there is a bound to draw."""
    place = {value: value if panel.numeric else float(i) for i, value in enumerate(panel.values)}
    results = compared(panel, methods)
    for method, i in methods.items():
        drawn = {float(place[v]): np.array(_objectives(each.get(method, []))) / unit for v, each in results.items()}
        drawn = {x: values for x, values in drawn.items() if values.size}
        style = line_style(i)
        ax.plot(list(drawn), [values.mean() for values in drawn.values()], marker="o", markersize=4, **style)
        ends = [(values.min(), values.max()) for values in drawn.values()]
        ax.vlines(list(drawn), [low for low, _ in ends], [high for _, high in ends], color=style["color"], lw=0.8)
    bounds = {float(place[value]): _bound(each) for value, each in results.items()}
    known = {x: bound / unit for x, bound in bounds.items() if bound is not None}
    ax.plot(list(known), list(known.values()), color=INK, ls=DASHED, lw=1.1, zorder=1)
    return bool(known)


def _objectives(rows: Sequence[Row]) -> list[float]:
    return [row.objective for row in rows if row.objective is not None]


def _bound(results: Mapping[str, Sequence[Row]]) -> float | None:
    """Return the mean bound of the instances on problems without interruptions, if all of them have one."""
    rows = [row for each in results.values() for row in each]
    bounds = {
        row.fingerprint: row.best_bound
        for row in rows
        if row.best_bound is not None and not row.problem.endswith("preemptive")
    }
    return (
        float(np.mean(list(bounds.values()))) if bounds and len(bounds) == len({r.fingerprint for r in rows}) else None
    )


def _values(ax: Axes, panel: Panel) -> None:
    """Label the x axis with the values; an axis of a wide range is logarithmic."""
    numbers = [value for value in panel.values if isinstance(value, float)]
    if panel.numeric:
        if min(numbers) > 0 and max(numbers) > WIDE * min(numbers):
            ax.set_xscale("log")
            ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_locator(FixedLocator(numbers[:: -(-len(numbers) // 6)]))
        ax.xaxis.set_major_formatter(lambda value, _: number(value))
    else:
        texts = [_text(value) for value in panel.values]
        crowded = sum(map(len, texts)) > 30
        ax.set_xticks(range(len(texts)), texts, rotation=30 if crowded else 0, ha="right" if crowded else "center")
    ax.set_xlabel(PARAMETERS.get(panel.parameter, label(panel.parameter, 30)))


def _text(value: Value) -> str:
    return label(value, 14) if isinstance(value, str) else number(value)


def _caption_sweep(data: FigureInput, figure: str) -> str:
    shown = found(data, figure)
    methods = _methods(shown)
    groups = [rows for panel in shown for each in compared(panel, methods).values() for rows in each.values()]
    drawn = {id(row): row for rows in groups for row in rows}
    names = dict.fromkeys(_short(row) for panel in shown for _, row in panel.rows)
    out = [clean(name, 30) for name in names if name not in methods]
    more = f" No room for: {', '.join(out)}." if out else ""
    what = (
        "Total weighted completion time Σ w·c, in weight × slots,"
        if figure == "completion"
        else "Total weight of the jobs that complete by τ, which depends on the instance,"
    )
    bound = "no method without interruptions gets below it" if figure == "completion" else "no method gets above it"
    return (
        f"{what} by method, against parameters of the instances: means over the instances on which all "
        f"methods of a value have results, upright lines from the least to the largest. Dashed: mean certified bound "
        f"({bound}). {data.sample(list(drawn.values()))}{more}"
    )


for _figure, _title in (("completion", "Weighted completion times"), ("weight", "Completed weight")):
    FIGURES.register(
        FigureSpec(
            f"sweep-{_figure}",
            "zhou",
            f"{_title} by parameter",
            partial(_caption_sweep, figure=_figure),
            partial(draw_sweep, figure=_figure),
        )
    )
